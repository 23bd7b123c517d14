"""How a view is maintained, in words: what a change of each relation costs, why it is done so, what would be better."""
