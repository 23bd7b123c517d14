"""The stored structures of a view, as the algorithms see them.

    matching(T, columns, keys)  =  T ⋉ keys        over `columns`, where NULL = NULL

That is all that a refresh asks: rows that a change may concern, found by what is compared or by id. Nothing asks for a
whole table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Generic, Protocol, TypeVar

from viewkeeper.algebra.zset import ZSet
from viewkeeper.storage.join_tree import Columns

Z = TypeVar("Z", bound=ZSet)


@dataclass(frozen=True)
class Structure:
    """One stored table: its name within the view, its columns, and by which of them it is looked up."""

    name: str
    columns: Columns
    ids: Columns
    """what tells its rows apart"""
    by: tuple[Columns, ...]
    """how it is looked up, the most frequent first: rows that are equal there are best stored side by side"""


class Tables(Protocol[Z]):
    """What a refresh reads."""

    def matching(self, table: str, columns: Columns, keys: Z, wanted: Columns | None = None) -> Z:
        """The rows of a table whose `columns` are those of some row of `keys`, which has as many, in this order.

        Of the rows, the columns that are wanted, ids among them; by default all.
        """
        ...


Changes = dict[str, Z]
"""Signed rows, by structure."""


@dataclass(frozen=True)
class After(Generic[Z]):
    """Tables behind changes that are not stored yet."""

    before: Tables[Z]
    changes: Mapping[str, Z]

    def matching(self, table: str, columns: Columns, keys: Z, wanted: Columns | None = None) -> Z:
        rows = self.before.matching(table, columns, keys, wanted)
        change = self.changes.get(table)
        return rows if change is None else rows + matching(change, columns, keys).keep(rows.columns)


class HeldTables(Generic[Z]):
    """Tables held as Z-sets: for tests, and for structures that are being made."""

    def __init__(self, held: Mapping[str, Z]) -> None:
        self.held = dict(held)

    def matching(self, table: str, columns: Columns, keys: Z, wanted: Columns | None = None) -> Z:
        rows = matching(self.held[table], columns, keys)
        return rows if wanted is None else rows.keep(wanted)

    def apply(self, changes: Mapping[str, Z]) -> None:
        """Go to the next state."""
        for table, change in changes.items():
            self.held[table] = self.held[table] + change


def matching(rows: Z, columns: Columns, keys: Z) -> Z:
    """rows ⋉ keys."""
    return rows.matching(keys.distinct(), tuple(zip(columns, keys.columns, strict=True)))


def disjoint_sum(first: Z, *others: Z) -> Z:
    """Their sum. No row of one is in another, which saves an engine that adds rows up late from looking."""
    told: Callable[..., Z] | None = getattr(first, "plus_disjoint", None)
    return reduce(add, others, first) if told is None else told(*others)


def computed_once(rows: Z) -> Z:
    """The same rows. In an engine that puts work off they are used many times, and are to be computed once."""
    once = getattr(rows, "computed_once", None)
    return rows if once is None else once()
