"""What it takes to make a view what another definition says, found out before anything is done."""
