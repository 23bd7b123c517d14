"""Changing the definition of a view: it is kept, altered in place, or recreated and swapped by one commit."""
