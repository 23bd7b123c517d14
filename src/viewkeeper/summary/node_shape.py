"""What the columns of a stored summary table mean to the refresh.

    node = keys | COUNT(*) | linear measures | extremes and distinct counts

A *node* is a stored summary table with one row per group. Its linear measures (counts and sums) add up, so a
summary-delta is a table of the same columns whose numbers are changes. MIN, MAX and COUNT(DISTINCT e) do not add up:
they are derived from a hidden node that is grouped by `e` too, or recomputed, the way of the paper. A summary-delta has
no column for what is derived, and two for what is recomputed.

All names are names of columns in the node's own table and in its summary-delta.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Linear:
    """A count or a sum: `new = old + change`.

    COUNT(e) is never NULL. A sum is NULL in the table exactly if `count`, the column with its COUNT(e), is 0; without
    `count` it is over a value that is never NULL, and goes by the COUNT(*) of the node. A float_sum has a second column
    in the table, `rest`, with what rounding took from the sum; its summary-delta has no such column.
    """

    column: str
    kind: Literal["count", "sum", "float_sum"]
    count: str | None = None
    rest: str | None = None

    def __post_init__(self) -> None:
        if (self.kind == "float_sum") != (self.rest is not None):
            raise ValueError(f"{self.column}: a float_sum, and nothing else, has a column for the rest")
        if self.kind == "count" and self.count is not None:
            raise ValueError(f"{self.column}: a count is never NULL and goes by no other count")


@dataclass(frozen=True)
class FromNode:
    """MIN, MAX, COUNT(DISTINCT) or the spread of the column `value` of the hidden node, over the rows of a group.

    `keys` are the columns of the hidden node that correspond to the keys of this table, in their order. The hidden node
    may be grouped by more columns than these and `value`.
    """

    column: str
    function: Literal["min", "max", "distinct", "spread"]
    node: str
    keys: tuple[str, ...]
    value: str
    count: str = ""
    """the COUNT(*) of the hidden node, which `spread`, Σ (value - mean)², needs"""


@dataclass(frozen=True)
class Recomputed:
    """MIN or MAX, recomputed for a group whose extreme may have been deleted; NULL exactly if `count` is 0.

    The summary-delta has no column of that name. It has the extreme of the inserted and of the deleted values instead,
    in the columns `inserted` and `deleted`, NULL if there are none.
    """

    column: str
    function: Literal["min", "max"]
    count: str
    inserted: str
    deleted: str


@dataclass(frozen=True)
class NodeShape:
    """A stored summary table: one row per group, or, without keys, always exactly one row."""

    table: str
    keys: tuple[str, ...]
    count: str
    linear: tuple[Linear, ...]
    derived: tuple[FromNode, ...] = ()
    recomputed: tuple[Recomputed, ...] = ()

    def __post_init__(self) -> None:
        if twice := sorted({name for name in self.columns if self.columns.count(name) > 1}):
            raise ValueError(f"{self.table}: more than one column is called {', '.join(twice)}")
        counts = {self.count, *(each.column for each in self.linear if each.kind == "count")}
        goes_by = {each.count for each in self.linear if each.count is not None}
        goes_by |= {each.count for each in self.recomputed}
        if unknown := sorted(goes_by - counts):
            raise ValueError(f"{self.table}: no count is called {', '.join(unknown)}")
        for derived in self.derived:
            if len(derived.keys) != len(self.keys):
                raise ValueError(f"{self.table}.{derived.column}: {derived.node} needs a key for each of {self.keys}")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table."""
        rests = tuple(each.rest for each in self.linear if each.rest is not None)
        derived = tuple(each.column for each in self.derived)
        recomputed = tuple(each.column for each in self.recomputed)
        return (*self.keys, self.count, *(each.column for each in self.linear), *rests, *derived, *recomputed)

    @property
    def delta_columns(self) -> tuple[str, ...]:
        """The columns of its summary-delta."""
        ends = tuple(column for each in self.recomputed for column in (each.inserted, each.deleted))
        return (*self.keys, self.count, *(each.column for each in self.linear), *ends)
