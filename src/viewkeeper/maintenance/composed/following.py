"""A view that is a plan of operators at work: changes of what it reads become changes of its tables and of itself.

Each state of its group is one change of the plan, or several states together if the level allows it. No source is
queried.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

import pyarrow as pa

from viewkeeper.errors import BadDelta
from viewkeeper.lake.log.columns import WEIGHT, arrow_schema
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.tables.signed_rows import frame_in_spark, table_in_arrow
from viewkeeper.maintenance.composed.evaluating import OperatorEngine
from viewkeeper.maintenance.composed.state_tables import StateTables
from viewkeeper.maintenance.self_maintained.lookups import fitting_rows
from viewkeeper.mediator.alignment import GroupChange
from viewkeeper.operators.expressions import flat, flat_names
from viewkeeper.operators.node import Z
from viewkeeper.planner.composed.composed_view import ComposedView
from viewkeeper.planner.composed.naming import OPERATORS
from viewkeeper.sql.view import View


@dataclass
class _Stored:
    """The tables of a view at a commit, and what states after it have changed."""

    view: ComposedView
    files: Files
    tables: StateTables
    engine: OperatorEngine
    record: Record
    changed: dict[str, Z] = field(default_factory=dict)

    def matching(self, table: str, columns: Sequence[str], keys: Z) -> Z:
        definition = self._definition(table)
        types = dict(definition.columns)
        schema = arrow_schema(tuple((column, types[column]) for column in columns), signed=False)
        wanted = fitting_rows((row for row, _ in keys.weights()), schema)
        rows = self._zset(table, self.tables.find(definition, self.record, tuple(columns), wanted))
        change = self.changed.get(table)
        if change is None:
            return rows
        on = tuple((flat(mine), theirs) for mine, theirs in zip(columns, keys.columns, strict=True))
        return rows + change.matching(keys, on)

    def whole(self, table: str) -> Z:
        rows = self._zset(table, self.tables.whole(self._definition(table), self.record))
        change = self.changed.get(table)
        return rows if change is None else rows + change

    def add(self, changes: dict[str, Z]) -> None:
        for table, change in changes.items():
            there = self.changed.get(table)
            self.changed[table] = change if there is None else there + change

    def _definition(self, table: str) -> Any:
        return self.files.catalogs.read(self.record.catalog)[self.view.table_of(table)]

    def _zset(self, table: str, rows: pa.Table) -> Z:
        from viewkeeper.algebra.arrow_rows import weighted_rows

        columns = self.view.plan.tables[table][0].columns
        return self.engine.zset(flat_names(columns), weighted_rows(rows))


@dataclass
class ComposedFollowing:
    """One view, given new states of its group."""

    view: ComposedView
    files: Files
    tables: StateTables
    engine: OperatorEngine

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def algorithm(self) -> str:
        return OPERATORS

    @property
    def definition(self) -> View | None:
        return None

    @property
    def reads(self) -> Collection[str]:
        return (*self.view.feeds, *self.view.views)

    def follow(self, changes: Sequence[GroupChange]) -> list[GroupChange]:
        try:
            return self._followed(changes)
        except pa.ArrowException as error:
            # A view that cannot be refreshed is halted, and its group goes on.
            raise BadDelta(f"a change cannot be followed: {error}", "reload the view") from error

    def _followed(self, changes: Sequence[GroupChange]) -> list[GroupChange]:
        stored = _Stored(self.view, self.files, self.tables, self.engine, self.files.log.last())
        followed = []
        for change in changes:
            if not any(name in change.deltas for name in self.reads):
                followed.append(change)
                continue
            scanned = {scan: self._changed(scan, change) for scan in self.view.plan.scans}
            delta, tables = self.view.plan.follow(scanned, stored, self.engine)
            stored.add(tables)
            made = {self.view.table_of(name): rows.rename(self._names(name)) for name, rows in tables.items()}
            made[self.name] = delta.rename(self.view.query.names)
            deltas = {name: (rows,) for name, rows in made.items() if not rows.is_empty()}
            followed.append(replace(change, deltas={**change.deltas, **deltas}))
        return followed

    def _names(self, table: str) -> tuple[str, ...]:
        return tuple(column.name for column in self.view.plan.tables[table][0].columns)

    def _changed(self, scan: Any, change: GroupChange) -> Z:
        """The changed rows of a relation, under the names of the tree."""
        names = flat_names(scan.columns)
        deltas = change.deltas.get(self.view.feed_of(scan.relation), ())
        return reduce(add, (self._zset(delta, scan.fields).rename(names) for delta in deltas), self.engine.zset(names))

    def _zset(self, delta: Any, fields: tuple[str, ...]) -> Z:
        if isinstance(delta, pa.Table) or (frame_in_spark(delta) is delta):
            delta = self.engine.of_table(delta)
        return delta.keep(fields)

    def committed(self, before: Record, record: Record, changes: Sequence[GroupChange]) -> None:
        """These changes are stored."""
        catalog = self.files.catalogs.read(record.catalog)
        for name in self.view.tables:
            if made := [delta for change in changes for delta in change.deltas.get(name, ())]:
                self.tables.committed(catalog[name], before, record, [_signed(catalog[name], delta) for delta in made])


def _signed(table: Any, delta: Any) -> pa.Table:
    """A change as columns, with `_vk_weight`."""
    if (columns := table_in_arrow(delta)) is not None:
        return columns
    schema = arrow_schema(table.columns, signed=False).append(pa.field(WEIGHT, pa.int64()))
    rows = [(*row, weight) for row, weight in delta.weights()]
    values = zip(*rows, strict=True) if rows else ((),) * len(schema)
    return pa.Table.from_arrays(
        [pa.array(list(column), one.type) for column, one in zip(values, schema, strict=True)], schema=schema
    )
