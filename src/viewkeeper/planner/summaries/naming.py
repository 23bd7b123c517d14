"""The names of what is stored for the sake of summaries."""

import re

SUMMARY = "summary"
"""the property of a definition that makes it a table of a lattice"""
CHANGE = "_vk_change"
"""in a table of noted changes: how often a row was inserted, or deleted"""


def log_name(lattice: str, view: str) -> str:
    """The table of the changes of a view that a lattice has noted."""
    return f"_vk_log_{slug(lattice)}_{slug(view)}"


def pending_name(node: str) -> str:
    """The table of the summary-delta of a node that waits."""
    return f"_vk_delta_{slug(node)}"


def waiting_group(lattice: str) -> str:
    return f"{lattice} waiting"


def slug(name: str) -> str:
    """A name as a part of another."""
    return re.sub(r"\W", "_", name)


BROKEN = "broken_foreign_keys"
"""in these figures: facts that found no row in a dimension where a foreign key promised one, by relation"""
METRICS = "summaries"
"""in the figures of a commit: what was done to each lattice"""
