"""The join of two tables of signed rows, each with its weights in the last column.

    A ⋈ B  =  pairs of places, the conditions on these, then `take`; weights multiplied

Nothing is copied but the columns that a condition mentions and those that are kept. Where both sides have a column, the
left one counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra import arrow_keys
from viewkeeper.algebra.arrow_expressions import true_places
from viewkeeper.algebra.arrow_keys import Keys
from viewkeeper.algebra.arrow_types import in_one_type
from viewkeeper.algebra.zset import WEIGHT, On
from viewkeeper.sql.expressions import Expression

MOST_PAIRS = 1 << 20
"""Of a join without a key, so many pairs are looked at at a time: a condition may leave few of very many."""


def joined(left: pa.Table, right: pa.Table, on: On, where: tuple[Expression, ...], keep: tuple[str, ...]) -> pa.Table:
    """The kept columns of all pairs of rows that meet the conditions, with their weights."""
    pairs = [arrow_keys.pairs(*shared_keys(left, right, on))] if on else _combinations(left.num_rows, right.num_rows)
    return pa.concat_tables(_Pairs(left, right, *places).where(where).kept(keep) for places in pairs)


def shared_keys(left: pa.Table, right: pa.Table, on: On) -> tuple[Keys, Keys]:
    """The columns by which rows of two tables are compared, each pair in one type."""
    both = [(one, other, *in_one_type(one, column_of(left, one), other, column_of(right, other))) for one, other in on]
    return [(one, column) for one, _, column, _ in both], [(other, column) for _, other, _, column in both]


def column_of(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column by its place, for a name may be there twice."""
    return table.column(table.column_names.index(name))


def _combinations(rows: int, others: int) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Every row with every other one; one part at least, which may be empty."""
    width = pa.scalar(max(others, 1), pa.int64())
    for start in range(0, max(rows * others, 1), MOST_PAIRS):
        numbers = pa.arange(start, min(start + MOST_PAIRS, rows * others))
        mine = pc.divide(numbers, width)
        yield mine, pc.subtract(numbers, pc.multiply(mine, width))


@dataclass(frozen=True)
class _Pairs:
    """Pairs of rows by their places."""

    left: pa.Table
    right: pa.Table
    mine: pa.Array
    theirs: pa.Array

    def where(self, conditions: tuple[Expression, ...]) -> "_Pairs":
        if not conditions:
            return self
        names = (*self.left.column_names[:-1], *self.right.column_names[:-1])
        places = true_places(conditions, names, self._column, len(self.mine))
        return _Pairs(self.left, self.right, self.mine.take(places), self.theirs.take(places))

    def kept(self, columns: tuple[str, ...]) -> pa.Table:
        weights = pc.multiply(self.left.columns[-1].take(self.mine), self.right.columns[-1].take(self.theirs))
        return pa.table([*map(self._column, columns), weights], names=[*columns, WEIGHT])

    def _column(self, name: str) -> pa.ChunkedArray:
        if name in self.left.column_names[:-1]:
            return column_of(self.left, name).take(self.mine)
        return column_of(self.right, name).take(self.theirs)
