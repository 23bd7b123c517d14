"""Refreshing by Spark: for structures and batches that are too large for the driver.

What all structures change by is one plan, and is computed by one job.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.adaptive import Engines
from viewkeeper.algebra.arrow_rows import weighted_rows
from viewkeeper.lake.log.columns import WEIGHT
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.lake.tables.signed_rows import frame_in_spark, table_in_arrow
from viewkeeper.maintenance.self_maintained.lookups import SparkTables
from viewkeeper.mediator.alignment import GroupChange
from viewkeeper.planner.self_maintained.kept_view import KeptView
from viewkeeper.storage.join_tree import Columns
from viewkeeper.storage.tables import After, Tables
from viewkeeper.summary.statements import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from viewkeeper.algebra.spark import SparkZSet

PART = "_vk_part"

Refreshed = Callable[[Tables[Any], Mapping[int, Any], "count[int]"], Any]
"""the changes of the structures and, if somebody listens, of the view"""


class InSpark:
    """The states of one commit, refreshed one after the other."""

    def __init__(self, kept: KeptView, files: Files, engines: Engines, refreshed: Refreshed, record: Record) -> None:
        self._kept, self._files, self._engines, self._refreshed = kept, files, engines, refreshed
        self._stored = SparkTables(kept, HeldCommit(files, record))
        self._changed: dict[str, SparkZSet] = {}

    def refresh(self, change: GroupChange, numbers: "count[int]") -> dict[str, tuple[Any, ...]]:
        """The changes of the tables of the structures and, if somebody listens, of the view."""
        from viewkeeper.lake.tables.spark_files import spark_errors

        kept, spark = self._kept, self._files.spark()
        given = {}
        for feed, number in kept.feeds.items():
            columns = kept.storage.tree.leaves[number].given
            given[number] = self._zset(columns, change.deltas.get(feed, ()))
        tables: Tables[SparkZSet] = After(self._stored, self._changed)
        with spark_errors(f"refreshing {kept.name}"):
            changes, view = self._refreshed(tables, given, numbers)
            named = {kept.table_of(table): delta for table, delta in changes.items()}
            found = collected(named if view is None else {**named, kept.name: view})
        for table, rows in found.items():
            if table != kept.name and rows.num_rows:
                self._go_on(spark, kept.tables[table].name, rows)
        deltas: dict[str, tuple[Any, ...]] = {table: (rows,) for table, rows in found.items() if rows.num_rows}
        if view is not None and kept.name in deltas:
            deltas[kept.name] = (self._engines.zset(view.columns, weighted_rows(found[kept.name])),)
        return deltas

    def _zset(self, columns: Columns, deltas: Iterable[Any]) -> "SparkZSet":
        from viewkeeper.algebra.spark import SparkZSet

        types = [self._kept.types[column] for column in columns]
        made = SparkZSet.of_rows(self._files.spark(), columns, (), types)
        for delta in deltas:
            frame = frame_in_spark(delta) if table_in_arrow(delta) is None else delta.frame
            if frame is None:
                some = SparkZSet.of_rows(self._files.spark(), columns, delta.weights(), types)
            else:
                some = SparkZSet(frame).rename(columns)
            made = made + some
        return made

    def _go_on(self, spark: "SparkSession", structure: str, rows: pa.Table) -> None:
        from viewkeeper.algebra.spark import SparkZSet
        from viewkeeper.maintenance.contents import frame_of_table

        change = SparkZSet(frame_of_table(spark, rows), consolidated=True)
        there = self._changed.get(structure)
        self._changed[structure] = change if there is None else there + change


def collected(changes: "Mapping[str, SparkZSet]") -> dict[str, pa.Table]:
    """All these rows, added up, on the driver: one job."""
    from viewkeeper.algebra.pyspark_names import F

    frames = []
    for place, zset in enumerate(changes.values()):
        named = [F.col(quoted(column)).alias(_column(place, number)) for number, column in enumerate(zset.columns)]
        frames.append(zset.consolidate().frame.select(F.lit(place).alias(PART), *named, WEIGHT))
    whole = reduce(lambda some, more: some.unionByName(more, allowMissingColumns=True), frames).toArrow()
    found = {}
    for place, (name, zset) in enumerate(changes.items()):
        own = whole.filter(pc.equal(whole[PART], place))
        columns = [_column(place, number) for number in range(len(zset.columns))]
        found[name] = own.select([*columns, WEIGHT]).rename_columns([*zset.columns, WEIGHT])
    return found


def _column(place: int, number: int) -> str:
    return f"_vk_{place}_{number}"
