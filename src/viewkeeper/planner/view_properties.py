"""What the definition of a maintained view says about how it is maintained."""

SQL, ALGORITHM, LEVEL, SOURCES = "sql", "algorithm", "level", "sources"
KEY = "key"
"""the columns that no two of its rows share, if that is known"""
HIERARCHY = "hierarchy"
"""columns each of which determines the next, if that is known"""

VIEWS = ""
"""The source of a relation that is a view of this warehouse."""
