"""What `explain` tells of a self-maintained view: data, for programs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class StoredStructure:
    """One hidden table that is kept for a view."""

    table: str
    holds: str
    """in plain words"""
    columns: tuple[str, ...]
    rows: int | None
    """None if it is not there yet"""
    bytes: int | None
    looked_up_by: tuple[tuple[str, ...], ...]
    """the most frequent first"""


@dataclass(frozen=True)
class Lookup:
    """What a change makes a refresh look up in a stored table."""

    table: str
    by: tuple[str, ...]
    finds: str


@dataclass(frozen=True)
class ChangeCost:
    """What a change of one relation costs."""

    relation: str
    asks: tuple[str, ...]
    """the sources that are asked: always none"""
    lookups: tuple[Lookup, ...]


@dataclass(frozen=True)
class RowIdentity:
    """How the rows of a relation are distinguished."""

    relation: str
    by: tuple[str, ...]
    numbered: bool
    """whether they get numbers, for want of a key"""


@dataclass(frozen=True)
class Reading:
    """How the view is read."""

    table: str
    """whose rows are the rows of the view, or point to what they are made of"""
    copies: tuple[str, ...]
    """the tables that its rows point into; none if it has everything"""
    kept_from_read: int | None
    """the read of one state from which on the result is kept; None if there is nothing to keep"""


@dataclass(frozen=True)
class RefreshEngines:
    """Which engine refreshes the view, by the number of changed rows in a commit."""

    python_up_to: int
    arrow_up_to: int
    driver_table_rows: int
    """rows of a stored table, above which Spark looks up what does not lie together"""
    always_spark: bool
    """whether the view has an expression that only Spark evaluates"""


@dataclass(frozen=True)
class SelfMaintained:
    """What is stored for a view, and what that is used for."""

    structures: tuple[StoredStructure, ...]
    changes: tuple[ChangeCost, ...]
    identities: tuple[RowIdentity, ...]
    reading: Reading
    engines: RefreshEngines
