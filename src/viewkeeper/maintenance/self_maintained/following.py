"""A self-maintained view at work: the changes of its feeds become changes of its structures, in the same states.

    one state       the whole batch at once: by Python if it is small, in Arrow, or by Spark if it is very large
    many states     one after the other, each on what those before it have left; every key is looked up once

No source is queried. The change of the view itself is computed only if somebody listens.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.adaptive import Engines
from viewkeeper.algebra.arrow import ArrowZSet
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.errors import BadDelta, ExpressionError, ViewkeeperError
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import WEIGHT, arrow_schema
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.tables.signed_rows import frame_in_spark, table_in_arrow
from viewkeeper.maintenance.contents import Contents
from viewkeeper.maintenance.self_maintained.in_spark import InSpark
from viewkeeper.maintenance.self_maintained.lookups import ArrowTables, RememberedRows, RowTables, StoredRows
from viewkeeper.mediator.alignment import GroupChange
from viewkeeper.planner.self_maintained.kept_view import KeptView
from viewkeeper.sql.view import View
from viewkeeper.storage.self_maintained import operand_changes, refresh
from viewkeeper.storage.tables import Tables
from viewkeeper.summary.grouping import canonical_floats

FEW = 2_000
"""Changed rows that Python refreshes as fast as Arrow, which has to look at columns first."""
MOST_CHANGES = 1_000_000
"""Changed rows that are refreshed on the driver."""
NUMBERS = 1 << 32
"""How many rows without a key a commit can number: the numbers of a commit begin with that of its first state."""

Deltas = dict[str, tuple[Any, ...]]


@dataclass
class Following:
    """One self-maintained view, told of new states of its group."""

    kept: KeptView
    files: Files
    contents: Contents
    engines: Engines
    listened: Callable[[], bool]
    _evaluable: dict[bool, bool] = field(default_factory=dict)
    """found out once: compiling expressions takes longer than a small refresh"""

    @property
    def name(self) -> str:
        return self.kept.name

    @property
    def algorithm(self) -> str:
        return self.kept.storage_name

    @property
    def definition(self) -> View | None:
        return self.kept.view if isinstance(self.kept.view, View) else None

    @property
    def reads(self) -> Collection[str]:
        return self.kept.feeds

    # --- refreshing ---

    def follow(self, changes: Sequence[GroupChange]) -> list[GroupChange]:
        try:
            return self._followed(changes)
        except pa.ArrowException as error:
            # A view that cannot be refreshed is halted, and its group goes on.
            raise BadDelta(f"a change cannot be followed: {error}", "reload the view") from error

    def _followed(self, changes: Sequence[GroupChange]) -> list[GroupChange]:
        record = self.files.log.last()
        numbers = count((record.groups[self.kept.group].last + 1) * NUMBERS)
        concerning = [change for change in changes if self._deltas(change)]
        refresh_one = self._way(record, concerning)
        followed = []
        for change in changes:
            deltas = refresh_one(change, numbers) if self._deltas(change) else {}
            followed.append(replace(change, deltas={**change.deltas, **deltas}))
        return followed

    def _way(self, record: Record, changes: Sequence[GroupChange]) -> "Callable[[GroupChange, count[int]], Deltas]":
        """How these states are refreshed."""
        sizes = [sum(delta.size() for delta in self._deltas(change)) for change in changes]
        shown = self.listened()
        if shown not in self._evaluable:
            self._evaluable[shown] = evaluable(self.kept, shown=shown)
        if not self._evaluable[shown] or any(size > MOST_CHANGES for size in sizes):
            return InSpark(self.kept, self.files, self.engines, self.refreshed, record).refresh
        stored = StoredRows(self.kept, self.files, self.contents, record)
        if len(changes) > 1:
            remembered = RememberedRows(RowTables(stored))
            self._look_ahead(remembered, changes)
            return lambda change, numbers: self._by_rows(remembered, change, numbers)
        if sum(sizes) <= FEW:
            return lambda change, numbers: self._by_rows(RowTables(stored), change, numbers)
        return lambda change, numbers: self._in_arrow(ArrowTables(stored), change, numbers)

    def _look_ahead(self, tables: RememberedRows, changes: Sequence[GroupChange]) -> None:
        """Look up at once what the states will ask for one by one: as if everything came, and as if everything went."""
        storage = self.kept.storage
        every = {number: self._looked_up(changes, feed, number) for feed, number in self.kept.feeds.items()}
        for sign in (1, -1):
            given = {}
            for number, leaf in enumerate(storage.tree.leaves):
                rows = ((-1, *row) if leaf.numbered else row for row in every[number])
                given[number] = MemoryZSet(leaf.columns, ((row, sign) for row in rows))
            # Rows that never were there together may fail together. That tells nothing about those that were.
            with suppress(ViewkeeperError):
                refresh(storage, tables, given, view=self.listened())

    def _looked_up(self, changes: Sequence[GroupChange], feed: str, number: int) -> Iterable[Row]:
        """The changed rows of an operand; of the versions of a row that are looked up alike, one."""
        leaf, tree = self.kept.storage.tree.leaves[number], self.kept.storage.tree
        compared = {column for join in tree.joins for pair in join.on for column in pair}
        names = leaf.given if leaf.numbered else [c for c in leaf.given if c in compared or c in leaf.ids]
        places = [leaf.given.index(name) for name in names]
        rows = (row for change in changes for row, _ in self.rows(change, feed))
        return {tuple(row[place] for place in places): row for row in rows}.values()

    def _by_rows(self, tables: RowTables | RememberedRows, change: GroupChange, numbers: "count[int]") -> Deltas:
        leaves = self.kept.storage.tree.leaves
        given = {n: MemoryZSet(leaves[n].given, self.rows(change, feed)) for feed, n in self.kept.feeds.items()}
        changes, view = self.refreshed(tables, given, numbers)
        if isinstance(tables, RememberedRows):
            tables.changed(changes)
        deltas: Deltas = {self.kept.table_of(table): (zset,) for table, zset in changes.items() if not zset.is_empty()}
        return self._with_view(deltas, view)

    def _in_arrow(self, tables: ArrowTables, change: GroupChange, numbers: "count[int]") -> Deltas:
        given = {}
        for feed, number in self.kept.feeds.items():
            columns = self.kept.storage.tree.leaves[number].given
            given[number] = self._given(columns, change.deltas.get(feed, ()))
        changes, view = self.refreshed(tables, given, numbers)
        made = {self.kept.table_of(table): zset.consolidate().table for table, zset in changes.items()}
        return self._with_view({name: (table,) for name, table in made.items() if table.num_rows}, view)

    def _given(self, columns: tuple[str, ...], deltas: Sequence[Any]) -> ArrowZSet:
        """The changes of an operand, in Arrow; those in Spark come to the driver as columns."""
        types = [self.kept.types[column] for column in columns]
        tables, rows = [], []
        for delta in deltas:
            if (frame := frame_in_spark(delta)) is not None:
                tables.append(frame.toArrow())
            elif (table := table_in_arrow(delta)) is not None:
                tables.append(table)
            else:
                rows.append(delta.weights())
        whole = ArrowZSet.of_rows(columns, chain.from_iterable(rows), types)
        for table in tables:
            whole = whole + ArrowZSet.of_table(table).rename(columns)
        return whole

    def refreshed(self, tables: Tables[Any], given: Mapping[int, Any], numbers: "count[int]") -> Any:
        """The changes of the structures and, if somebody listens, of the view."""
        leaves = operand_changes(self.kept.storage, tables, given, numbers)
        return refresh(self.kept.storage, tables, leaves, view=self.listened())

    def _with_view(self, deltas: Deltas, view: Any) -> Deltas:
        if view is not None and not view.is_empty():
            deltas[self.name] = (self.engines.zset(view.columns, view.weights()),)
        return deltas

    def _deltas(self, change: GroupChange) -> list[Any]:
        """The changes of all operands."""
        return [delta for feed in self.kept.feeds for delta in change.deltas.get(feed, ())]

    def rows(self, change: GroupChange, feed: str) -> Iterator[tuple[Row, int]]:
        """The changed rows of an operand."""
        return chain.from_iterable(delta.weights() for delta in change.deltas.get(feed, ()))

    # --- afterwards ---

    def committed(self, before: Record, record: Record, changes: Sequence[GroupChange]) -> None:
        """What was remembered of the structures goes on to the commit that has stored these changes."""
        catalog = self.files.catalogs.read(record.catalog)
        for table, structure in self.kept.tables.items():
            if made := [delta for change in changes for delta in change.deltas.get(table, ())]:
                signed = pa.concat_tables([_signed(catalog[table], delta) for delta in made])
                names = list(structure.columns)
                net = signed.group_by(names, use_threads=False).aggregate([(WEIGHT, "sum")])
                net = net.rename_columns([*names, WEIGHT])
                gone = net.filter(pc.less(net[WEIGHT], 0)).select(names)
                come = net.filter(pc.greater(net[WEIGHT], 0)).select(names)
                self.contents.go_on(catalog[table], before, record, gone, come, structure.ids)


def evaluable(kept: KeptView, *, shown: bool) -> bool:
    """Whether the driver can evaluate what a refresh has to: which rows join and, if `shown`, what readers see of them.
    Who only reads the view evaluates that then."""
    tree = kept.storage.tree
    columns = tuple(kept.types)
    expressions = [condition for join in tree.joins for condition in join.where]
    if shown:
        expressions += [*tree.where, *(expression for _, expression in tree.output)]
    try:
        for expression in expressions:
            expression.compile(columns)
    except ExpressionError:
        return False
    return True


def _signed(view: Definition, delta: Any) -> pa.Table:
    schema = arrow_schema(view.columns, signed=False).append(pa.field(WEIGHT, pa.int64()))
    if (table := table_in_arrow(delta)) is not None:
        columns = table.select(schema.names).cast(schema).columns
        return pa.Table.from_arrays([canonical_floats(column) for column in columns], schema=schema)
    rows = list(delta.weights())
    values = zip(*(row for row, _ in rows), strict=True) if rows else ((),) * len(view.columns)
    arrays = [canonical_floats(pa.array(list(column), one.type)) for column, one in zip(values, schema, strict=False)]
    return pa.Table.from_arrays([*arrays, pa.array([weight for _, weight in rows], pa.int64())], schema=schema)
