"""What refreshes take, beside recomputing."""
