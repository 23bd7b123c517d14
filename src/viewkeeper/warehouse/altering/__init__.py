"""Changing the definition of a view: it is kept, altered in place, or made anew and swapped by one commit."""
