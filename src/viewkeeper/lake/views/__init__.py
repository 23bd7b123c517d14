"""Views as readers see them, over the tables that they are stored in."""
