"""A project: what a warehouse is to hold, written down as files."""
