"""The join of two tables of signed rows, each with its weights in the last column.

    A ⋈ B  =  pairs of places, the conditions on these, then `take`; weights multiplied

Nothing is copied but the columns that a condition mentions and those that are kept. Where both sides have a column, the
left one counts.
"""

from collections.abc import Iterator

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

_Places = tuple[pa.Array, pa.Array]
"""of the rows on the left, and of their partners on the right"""


def joined(left: pa.Table, right: pa.Table, on: On, where: tuple[Expression, ...], keep: tuple[str, ...]) -> pa.Table:
    """The kept columns of all pairs of rows that meet the conditions, with their weights."""
    parts = [arrow_keys.pairs(*shared_keys(left, right, on))] if on else _combinations(left.num_rows, right.num_rows)
    pairs = _Pairs(left, right)
    return pa.concat_tables(pairs.kept(pairs.true_for(places, where), keep) for places in parts)


def shared_keys(left: pa.Table, right: pa.Table, on: On) -> tuple[Keys, Keys]:
    """The columns by which rows of two tables are compared, each pair in one type."""
    both = [(one, other, *in_one_type(one, column_of(left, one), other, column_of(right, other))) for one, other in on]
    return [(one, column) for one, _, column, _ in both], [(other, column) for _, other, _, column in both]


def column_of(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column by its place, for a name may be there twice."""
    return table.column(table.column_names.index(name))


def _combinations(rows: int, others: int) -> Iterator[_Places]:
    """Every row with every other one; one part at least, which may be empty."""
    width = pa.scalar(max(others, 1), pa.int64())
    for start in range(0, max(rows * others, 1), MOST_PAIRS):
        numbers = pa.arange(start, min(start + MOST_PAIRS, rows * others))
        mine = pc.divide(numbers, width)
        yield mine, pc.subtract(numbers, pc.multiply(mine, width))


class _Pairs:
    """The rows of two tables, and pairs of them by their places."""

    def __init__(self, left: pa.Table, right: pa.Table) -> None:
        self._weights = left.columns[-1], right.columns[-1]
        self._columns = {
            name: (column, side)
            for side, table in ((1, right), (0, left))
            for name, column in zip(table.column_names[:-1], table.columns[:-1], strict=True)
        }

    def true_for(self, places: _Places, conditions: tuple[Expression, ...]) -> _Places:
        """Those of the pairs for which all conditions are true."""
        if not conditions:
            return places
        names = tuple(self._columns)
        true = true_places(conditions, names, lambda name: self._column(name, places), len(places[0]))
        return places[0].take(true), places[1].take(true)

    def kept(self, places: _Places, columns: tuple[str, ...]) -> pa.Table:
        """These columns of the pairs, and their weights."""
        weights = pc.multiply(*(side.take(where) for side, where in zip(self._weights, places, strict=True)))
        return pa.table([*(self._column(name, places) for name in columns), weights], names=[*columns, WEIGHT])

    def _column(self, name: str, places: _Places) -> pa.ChunkedArray:
        column, side = self._columns[name]
        return column.take(places[side])
