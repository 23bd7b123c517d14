"""A summary table by the definition: plain Python over plain rows, to compare the refresh with.

A base is a bag of rows; a summary-delta is made of the rows that a batch inserts and deletes, by the definition too.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from viewkeeper.summary.content import ArrowContent
from viewkeeper.summary.node_shape import NodeShape
from viewkeeper.summary.refresh import Refreshed, refresh

Row = tuple[Any, ...]
"""values in the order of the columns of the base"""
Group = tuple[Any, ...]


def rank(value: Any) -> Any:
    """The order of Spark: NaN last, strings by their bytes."""
    if isinstance(value, float):
        return (value != value, value if value == value else 0.0)
    return value.encode() if isinstance(value, str) else value


def spelled(value: Any) -> Any:
    """A value as a key of a dict, with one NaN."""
    return "NaN" if isinstance(value, float) and value != value else value


@dataclass(frozen=True)
class Table:
    """A node, the columns of the base that its keys are, and what each column aggregates."""

    shape: NodeShape
    keys: tuple[int, ...]
    arguments: Mapping[str, int]
    """the column of the base that each measure and each extreme is over"""
    types: Mapping[str, pa.DataType]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, self.types[name]) for name in self.shape.columns])

    def group(self, row: Row) -> Group:
        return tuple(spelled(row[key]) for key in self.keys)

    def content(self, base: Counter[Row]) -> pa.Table:
        """The whole table, recomputed."""
        groups: dict[Group, list[Row]] = {} if self.keys else {(): []}
        for row in base.elements():
            groups.setdefault(self.group(row), []).append(row)
        return pa.Table.from_pylist([self._row(rows) for rows in groups.values()], self.schema)

    def _row(self, rows: list[Row]) -> dict[str, Any]:
        new = {name: rows[0][key] for name, key in zip(self.shape.keys, self.keys, strict=True)}
        new[self.shape.count] = len(rows)
        for measure in self.shape.linear:
            values = [row[self.arguments[measure.column]] for row in rows]
            values = [value for value in values if value is not None]
            if measure.kind == "count":
                new[measure.column] = len(values)
            else:
                new[measure.column] = sum(values) if values else None
                if measure.rest is not None:
                    new[measure.rest] = 0.0 if values else None
        for extreme in (*self.shape.derived, *self.shape.recomputed):
            values = [row[self.arguments[extreme.column]] for row in rows]
            new[extreme.column] = _extreme(extreme.function, values)
        return new

    def delta(self, changes: Iterable[tuple[Row, int]]) -> pa.Table:
        """The summary-delta of signed rows, as it is defined: one row for each group that they touch."""
        groups: dict[Group, list[tuple[Row, int]]] = {}
        for row, weight in changes:
            groups.setdefault(self.group(row), []).append((row, weight))
        fields = [(name, self.types.get(name) or self.types[self._end(name)]) for name in self.shape.delta_columns]
        return pa.Table.from_pylist([self._delta_row(rows) for rows in groups.values()], pa.schema(fields))

    def _end(self, name: str) -> str:
        return next(each.column for each in self.shape.recomputed if name in (each.inserted, each.deleted))

    def _delta_row(self, changes: list[tuple[Row, int]]) -> dict[str, Any]:
        new = {name: changes[0][0][key] for name, key in zip(self.shape.keys, self.keys, strict=True)}
        new[self.shape.count] = sum(weight for _, weight in changes)
        for measure in self.shape.linear:
            signed = [(row[self.arguments[measure.column]], weight) for row, weight in changes]
            signed = [(value, weight) for value, weight in signed if value is not None]
            if measure.kind == "count":
                new[measure.column] = sum(weight for _, weight in signed)
            else:
                new[measure.column] = sum(value * weight for value, weight in signed) if signed else None
        for extreme in self.shape.recomputed:
            signed = [(row[self.arguments[extreme.column]], weight) for row, weight in changes]
            new[extreme.inserted] = _extreme(extreme.function, [value for value, weight in signed if weight > 0])
            new[extreme.deleted] = _extreme(extreme.function, [value for value, weight in signed if weight < 0])
        return new


def _extreme(function: str, values: list[Any]) -> Any:
    values = [value for value in values if value is not None]
    if function == "distinct":
        return len({spelled(value) for value in values})
    if not values:
        return None
    return (min if function == "min" else max)(values, key=rank)


class Tables:
    """Tables over one base, refreshed batch by batch; each batch is compared with recomputation."""

    def __init__(self, tables: Iterable[Table], base: Iterable[Row] = ()) -> None:
        self.tables = {table.shape.table: table for table in tables}
        self.base = Counter(base)
        self.contents = {name: ArrowContent(table.content(self.base)) for name, table in self.tables.items()}
        self.recomputed: list[Mapping[str, pa.Table]] = []

    def apply(
        self, changes: Counter[Row], split: Callable[[list[tuple[Row, int]]], list[list[tuple[Row, int]]]] | None = None
    ) -> dict[str, Refreshed]:
        """Change the base and refresh; `split` says which parts of the changes are summed up for themselves."""
        new = Counter(self.base)
        for row, weight in changes.items():
            new[row] += weight
        assert min(new.values(), default=0) >= 0
        self.base = +new
        signed = [(row, weight // abs(weight)) for row, weight in changes.items() if weight for _ in range(abs(weight))]
        parts = split(signed) if split else [signed]
        deltas = {name: pa.concat_tables([table.delta(part) for part in parts]) for name, table in self.tables.items()}
        refreshed = refresh(
            [table.shape for table in self.tables.values()], self.contents, deltas, recompute=self._recompute
        )
        for name, answer in refreshed.items():
            self._take(name, answer)
        return refreshed

    def _recompute(self, groups: Mapping[str, pa.Table]) -> Mapping[str, pa.Table]:
        self.recomputed.append(groups)
        answer = {}
        for name, keys in groups.items():
            table = self.tables[name]
            extremes = [each.column for each in table.shape.recomputed]
            columns = [*table.shape.keys, *extremes]
            answer[name] = ArrowContent(table.content(self.base).select(columns)).find(table.shape.keys, keys).rows
        return answer

    def _take(self, name: str, answer: Refreshed) -> None:
        table, content = self.tables[name], self.contents[name]
        keys = table.shape.keys
        old, before, after = (bag(rows) for rows in (content.table, answer.before, answer.after))
        assert before <= old, f"{name}: before has rows that were not there"
        assert not before & after, f"{name}: rows that do not change"
        figures = answer.figures
        assert answer.before.num_rows == figures.updated + figures.deleted
        assert answer.after.num_rows == figures.updated + figures.inserted
        self.contents[name] = content.replaced(answer.before, answer.after, keys)
        new = bag(self.contents[name].table)
        assert new == old - before + after, f"{name}: before and after are not of the same groups"
        assert new == bag(table.content(self.base)), f"{name}: not what recomputation gives"


def bag(table: pa.Table) -> Counter[Row]:
    return Counter(tuple(spelled(row[name]) for name in sorted(row)) for row in table.to_pylist())
