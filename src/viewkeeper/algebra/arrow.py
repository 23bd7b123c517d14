"""The Z-set engine in Arrow: a table with the columns of the Z-set, and a weight.

    A + B  =  both tables, one below the other                  -A  =  the weights negated
    A ⋈ B  =  pairs of places, then `take`; weights multiplied  π, σ  =  columns, places
    consolidated A  =  the weights of equal rows added up, those of 0 left out

As in Spark, a row may be there several times, and a deletion beside the row that it deletes. They are added up
(`consolidate`) only where that shows: to look inside, for `distinct`, for the keys of `matching`, and before an
expression that can fail on a row. Unlike Spark, nothing is put off: what an operation returns has been computed.

Columns stay where they are. What is computed from them is computed in Python, by the functions of the in-memory engine,
and over the columns that it mentions alone. So it is the engine for many rows that fit into memory and have few
expressions; for a handful of rows the one in memory is faster, as each hash join here costs about a millisecond.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.arrow_expressions import computed, true_places
from viewkeeper.algebra.arrow_join import column_of, joined, shared_keys
from viewkeeper.algebra.arrow_keys import added_up, found, many_pairs
from viewkeeper.algebra.arrow_rows import arrow_table, rows_of, weighted_rows
from viewkeeper.algebra.arrow_types import as_held, as_named, in_one_type
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import WEIGHT, On, Row
from viewkeeper.errors import DefinitionError
from viewkeeper.sql.expressions import Expression

MOST_CHUNKS = 64
"""Each sum has the chunks of both operands; with more than these they are copied into one."""

_ZERO, _ONE = pa.scalar(0, pa.int64()), pa.scalar(1, pa.int64())


class ArrowZSet:
    """A Z-set held in Arrow; see `zset.ZSet` for what the operations mean.

    `table` has the columns of the Z-set in their order, and the weights last. `consolidated`: every row is there once,
    with a weight that is not 0. `positive`: every weight is above 0.
    """

    __slots__ = ("_added_up", "columns", "consolidated", "positive", "table")

    def __init__(self, columns: tuple[str, ...], table: pa.Table, *, consolidated: bool, positive: bool) -> None:
        """Takes over a table with these columns, in types of `arrow_types.py`, and the weights last."""
        if WEIGHT in columns:
            raise DefinitionError(f"a column is called {WEIGHT}, which is the name of the weights", "rename it")
        self.columns = columns
        self.table = table
        self.consolidated = consolidated
        self.positive = positive
        self._added_up: ArrowZSet | None = None

    @classmethod
    def of_table(cls, table: pa.Table, *, consolidated: bool = False, positive: bool = False) -> "ArrowZSet":
        """Rows of a table, each as often as its `_vk_weight` says; once, if it has no such column.

        What is promised about the rows is taken as true.
        """
        columns = tuple(name for name in table.column_names if name != WEIGHT)
        held = [as_held(name, table[name]) for name in columns]
        if WEIGHT not in table.column_names:
            return cls._of(columns, held, pa.repeat(_ONE, table.num_rows), consolidated=consolidated, positive=True)
        weights = table[WEIGHT].cast(pa.int64())
        if weights.null_count:
            raise ValueError(f"{weights.null_count} rows have no {WEIGHT}")
        return cls._of(columns, held, weights, consolidated=consolidated, positive=positive)

    @classmethod
    def of_rows(
        cls, columns: tuple[str, ...], weights: Iterable[tuple[Row, int]], types: Sequence[str] | None = None
    ) -> "ArrowZSet":
        """From rows of Python. A type is the name of a SQL type; where there is none the values decide."""
        return cls.of_memory(MemoryZSet(columns, weights), types)

    @classmethod
    def of_memory(cls, zset: MemoryZSet, types: Sequence[str] | None = None) -> "ArrowZSet":
        """The same Z-set in Arrow."""
        columns, rows = zset.columns, list(zset.weights())
        table = arrow_table(columns, WEIGHT, rows)
        held = [
            as_named(name, column, type)
            for name, column, type in zip(columns, table.columns[:-1], types or ("",) * len(columns), strict=True)
        ]
        positive = all(weight > 0 for _, weight in rows)
        return cls._of(columns, held, table.columns[-1], consolidated=True, positive=positive)

    @classmethod
    def _of(
        cls,
        columns: tuple[str, ...],
        held: Sequence[pa.ChunkedArray],
        weights: pa.ChunkedArray | pa.Array,
        *,
        consolidated: bool,
        positive: bool,
    ) -> "ArrowZSet":
        table = pa.table([*held, weights], names=[*columns, WEIGHT])
        return cls(columns, table, consolidated=consolidated, positive=positive)

    @property
    def nbytes(self) -> int:
        """How much it takes."""
        return int(self.table.nbytes)

    def typed(self, types: Sequence[str]) -> "ArrowZSet":
        """The same Z-set in SQL types; where the name of one is '' the column stays as it is."""
        held = [
            as_named(name, column, type)
            for name, column, type in zip(self.columns, self.table.columns[:-1], types, strict=True)
        ]
        return ArrowZSet._of(self.columns, held, self._weights, consolidated=False, positive=self.positive)

    def like(self, columns: tuple[str, ...], weights: Iterable[tuple[Row, int]]) -> "ArrowZSet":
        return ArrowZSet.of_rows(columns, weights)

    def _like(self, table: pa.Table) -> "ArrowZSet":
        """The same columns and promises over other rows."""
        return ArrowZSet(self.columns, table, consolidated=self.consolidated, positive=self.positive)

    def _at(self, places: pa.Array) -> "ArrowZSet":
        """The rows at these places, each of which is named once."""
        return self if len(places) == self.table.num_rows else self._like(self.table.take(places))

    def _column(self, name: str) -> pa.ChunkedArray:
        return column_of(self.table, name)

    @property
    def _weights(self) -> pa.ChunkedArray:
        return self.table.column(len(self.columns))

    # --- a group under + ---

    def __add__(self, other: "ArrowZSet") -> "ArrowZSet":
        if self.columns != other.columns:
            raise ValueError(f"cannot add Z-sets over {self.columns} and {other.columns}")
        both = [
            in_one_type(name, mine, name, theirs)
            for name, mine, theirs in zip(self.table.column_names, self.table.columns, other.table.columns, strict=True)
        ]
        held = [pa.chunked_array([*mine.chunks, *theirs.chunks], mine.type) for mine, theirs in both]
        table = pa.table(held, names=self.table.column_names)
        some = [zset for zset in (self, other) if zset.table.num_rows]
        # Nothing that is added leaves the rows as they were, but in a type that may find more of them equal.
        kinds = table.schema.types
        same = len(some) <= 1 and all(zset.consolidated and zset.table.schema.types == kinds for zset in some)
        return ArrowZSet(
            self.columns,
            table.combine_chunks() if held[-1].num_chunks > MOST_CHUNKS else table,
            consolidated=same,
            positive=all(zset.positive for zset in some),
        )

    def plus_disjoint(self, *others: "ArrowZSet") -> "ArrowZSet":
        """The sum with others, none of whose rows is in another: if each is added up, so is the sum."""
        whole = reduce(add, others, self)
        some = [zset for zset in (self, *others) if zset.table.num_rows]
        kinds = whole.table.schema.types
        same = all(zset.consolidated and zset.table.schema.types == kinds for zset in some)
        return ArrowZSet(self.columns, whole.table, consolidated=same, positive=whole.positive)

    def __sub__(self, other: "ArrowZSet") -> "ArrowZSet":
        return self + (-other)

    def __neg__(self) -> "ArrowZSet":
        negated = self.table.set_column(len(self.columns), WEIGHT, pc.negate(self._weights))
        positive = not self.table.num_rows
        return ArrowZSet(self.columns, negated, consolidated=self.consolidated, positive=positive)

    # --- relational operations, linear in the weights ---

    def join(self, other: "ArrowZSet", on: On, where: tuple[Expression, ...], keep: tuple[str, ...]) -> "ArrowZSet":
        left, right = self, other
        if _some_can_fail(where):
            # Then every pair of rows is there, too.
            left, right = self._without_cancelled(), other._without_cancelled()
        whole = left.consolidated and right.consolidated and not set(left.columns) & set(right.columns)
        return ArrowZSet(
            keep,
            joined(left.table, right.table, on, where, keep),
            consolidated=whole and set(keep) >= {*left.columns, *right.columns},
            positive=left.positive and right.positive,
        )

    def pairs(self, other: "ArrowZSet", on: On) -> int:
        """How many pairs of rows a join on these columns looks at."""
        if not on:
            return int(self.table.num_rows * other.table.num_rows)
        return many_pairs(*shared_keys(self.table, other.table, on))

    def select(self, conditions: tuple[Expression, ...]) -> "ArrowZSet":
        if not conditions:
            return self
        rows = self._without_cancelled() if _some_can_fail(conditions) else self
        places = true_places(conditions, rows.columns, rows._column, rows.table.num_rows)
        return rows._at(places)

    def project(self, output: tuple[tuple[str, Expression], ...]) -> "ArrowZSet":
        rows = self._without_cancelled() if _some_can_fail(expression for _, expression in output) else self
        types = dict(zip(rows.columns, rows.table.schema.types, strict=False))
        held, same = [], set()
        for name, expression in output:
            column = computed(name, expression, rows.columns, rows._column, rows.table.num_rows)
            source = expression.is_column
            # Two numbers may become one DOUBLE; all other conversions keep apart what is not the same.
            if source in types and (column.type == types[source] or not pa.types.is_floating(column.type)):
                same.add(source)
            held.append(column)
        return ArrowZSet._of(
            tuple(name for name, _ in output),
            held,
            rows._weights,
            consolidated=rows.consolidated and same >= set(rows.columns),
            positive=rows.positive,
        )

    def keep(self, columns: tuple[str, ...]) -> "ArrowZSet":
        if columns == self.columns:
            return self
        consolidated = self.consolidated and set(columns) >= set(self.columns)
        held = [self._column(name) for name in columns]
        return ArrowZSet._of(columns, held, self._weights, consolidated=consolidated, positive=self.positive)

    def rename(self, columns: tuple[str, ...]) -> "ArrowZSet":
        if len(columns) != len(self.columns):
            raise ValueError(f"cannot rename {self.columns} to {columns}")
        table = self.table.rename_columns([*columns, WEIGHT])
        return ArrowZSet(columns, table, consolidated=self.consolidated, positive=self.positive)

    # --- not linear: set semantics, for the keyed algorithms ---

    def distinct(self) -> "ArrowZSet":
        rows = self.consolidate()
        present = rows.table.filter(pc.greater(rows._weights, _ZERO))
        once = present.set_column(len(self.columns), WEIGHT, pa.repeat(_ONE, present.num_rows))
        return ArrowZSet(self.columns, once, consolidated=True, positive=True)

    def matching(self, keys: "ArrowZSet", on: On) -> "ArrowZSet":
        return self._by_keys(keys, on, matching=True)

    def key_delete(self, keys: "ArrowZSet", on: On) -> "ArrowZSet":
        return self._by_keys(keys, on, matching=False)

    def _by_keys(self, keys: "ArrowZSet", on: On, *, matching: bool) -> "ArrowZSet":
        if not on:
            return self if keys.is_empty() is not matching else self._like(self.table.slice(0, 0))
        wanted = keys._without_cancelled()
        places = found(*shared_keys(self.table, wanted.table, on), matching=matching)
        return self._at(places)

    # --- tags ---

    def tag(self, name: str, value: int) -> "ArrowZSet":
        tags = pa.repeat(pa.scalar(value, pa.int64()), self.table.num_rows)
        return ArrowZSet(
            (name, *self.columns),
            self.table.add_column(0, name, tags),
            consolidated=self.consolidated,
            positive=self.positive,
        )

    def split(self) -> dict[Any, "ArrowZSet"]:
        tags = self.table.column(0).combine_chunks()
        order = pc.sort_indices(tags)
        ends = pc.run_end_encode(tags.take(order), run_end_type=pa.int64())
        rows, parts, start = self._like(self.table.take(order)), {}, 0
        for value, end in zip(ends.values.to_pylist(), ends.run_ends.to_pylist(), strict=True):
            parts[value] = rows._like(rows.table.slice(start, end - start)).keep(self.columns[1:])
            # What is dropped is the same in all of them.
            parts[value].consolidated = self.consolidated
            start = end
        return parts

    # --- adding up ---

    def consolidate(self) -> "ArrowZSet":
        """The same Z-set with every row once; who looks inside again finds it added up."""
        if self.consolidated:
            return self
        if self._added_up is None:
            rows = list(zip(self.columns, self.table.columns[:-1], strict=True))
            places, sums = added_up(rows, self._weights)
            held = [column.take(places) for _, column in rows]
            positive = self.positive or not pc.any(pc.less(sums, _ZERO), min_count=0).as_py()
            self._added_up = ArrowZSet._of(self.columns, held, sums, consolidated=True, positive=positive)
        return self._added_up

    def _without_cancelled(self) -> "ArrowZSet":
        """The same Z-set, in which every row that occurs is there."""
        return self if self.positive else self.consolidate()

    # --- looking inside ---

    def values(self, columns: tuple[str, ...]) -> list[Row]:
        rows = self._without_cancelled()
        held = [rows._column(name) for name in columns]
        ones = pa.repeat(_ONE, rows.table.num_rows)
        once = ArrowZSet._of(columns, held, ones, consolidated=False, positive=True).consolidate()
        return list(rows_of(once.table.select(range(len(columns)))))

    def is_empty(self) -> bool:
        return not self._without_cancelled().table.num_rows

    def weights(self) -> Iterator[tuple[Row, int]]:
        return weighted_rows(self.consolidate().table)

    def size(self) -> int:
        return int(self.consolidate().table.num_rows)

    def __repr__(self) -> str:
        return f"ArrowZSet({', '.join(self.columns)})"


def _some_can_fail(expressions: Iterable[Expression]) -> bool:
    return any(expression.can_fail for expression in expressions)
