"""One file per operator of a view's plan: its rule, and the state that the rule looks things up in."""
