"""The rows of stored tables, where the refresh looks them up: on the driver while they are few, else in Spark.

A table that was looked at is remembered, with its version: the refresh after it finds it as it left it.
"""

import threading
from collections import OrderedDict
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.lake.log.catalog import Definition, Layout, find
from viewkeeper.lake.log.columns import WEIGHT, arrow_schema
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.tables.driver_memory import share_of_memory
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.lake.tables.parquet_files import read_table
from viewkeeper.lake.views.stored_views import with_hidden
from viewkeeper.summary.content import ArrowContent, Content, Found
from viewkeeper.summary.grouping import numbered, placed
from viewkeeper.summary.spread import spread_table
from viewkeeper.summary.statements import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_ON_DRIVER = 5_000_000
"""Rows of a table that are looked up on the driver."""
MOST_REMEMBERED = share_of_memory()
"""Bytes of tables that are remembered."""
MOST_REWRITTEN = 1_000
"""Rows of a table that readers see and that every refresh rewrites in place: that is little more than a change of it. A
larger one gets its changes appended, and so does one that only the refresh reads."""
SMALL = 100_000
"""Rows of a dimension that Spark gets from the driver, without reading files."""


Names = tuple[str, ...]
_Key = tuple[str, int, int, Names | None]


class Contents:
    """The stored tables of one warehouse, by name and version."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._remembered: OrderedDict[_Key, ArrowContent] = OrderedDict()
        # Groups are maintained side by side, and what a commit has made of a table is remembered when it is over.
        self._remembering = threading.Lock()
        self._frames: dict[str, tuple[_Key, DataFrame]] = {}

    @property
    def room(self) -> int:
        """The bytes of a table that can be remembered."""
        return MOST_REMEMBERED

    def content(
        self, view: Definition, record: Record, columns: Names | None = None, most: int | None = None
    ) -> Content:
        """The rows of a table at a commit; of each row some columns, or all. With more rows than `most`, in Spark."""
        if record.tables[view.name].rows > (MOST_ON_DRIVER if most is None else most):
            frame = self._frame_of_files(view, record)
            if columns is not None:
                frame = frame.select(*(quoted(column) for column in columns))
            return SparkContent(frame, record.tables[view.name].rows)
        return self._on_driver(view, record, columns)

    def _on_driver(self, view: Definition, record: Record, columns: Names | None = None) -> ArrowContent:
        key = _key(view, record, columns)
        with self._remembering:
            known = self._remembered.get(key)
            if known is not None:
                self._remembered.move_to_end(key)
                return known
        known = ArrowContent(read_rows(self._files, view, record, columns))
        self.remember(view, record, known, columns)
        return known

    def remember(self, view: Definition, record: Record, content: ArrowContent, columns: Names | None = None) -> None:
        """Keep the rows of a table at a commit, and those of no other commit."""
        new = _key(view, record, columns)
        with self._remembering:
            for other in [key for key in self._remembered if key[:2] == new[:2] and key[2] != new[2]]:
                del self._remembered[other]
            self._remembered[new] = content
            while sum(one.nbytes for one in self._remembered.values()) > MOST_REMEMBERED and len(self._remembered) > 1:
                self._remembered.popitem(last=False)

    def remembers(self, view: Definition, record: Record, columns: Names | None = None) -> bool:
        """Whether a table can be looked at without reading it."""
        with self._remembering:
            return _key(view, record, columns) in self._remembered

    def go_on(
        self, view: Definition, before: Record, record: Record, gone: pa.Table, come: pa.Table, ids: Names
    ) -> None:
        """Bring what is remembered of a table from one commit to the next; rows are distinguished by their ids."""
        with self._remembering:
            known = {key: one for key, one in self._remembered.items() if key[:3] == _key(view, before, None)[:3]}
        for key, content in known.items():
            columns = key[3]
            old, new = (rows if columns is None else rows.select(list(columns)) for rows in (gone, come))
            self.remember(view, record, content.replaced(old, new, ids), columns)

    def table(self, name: str, record: Record) -> pa.Table:
        """A stored table on the driver."""
        return self._on_driver(find(self._files.catalogs.read(record.catalog), name), record).table

    def frame(self, name: str, record: Record) -> "DataFrame":
        """A stored table as a frame: from the driver if it is small."""
        view = find(self._files.catalogs.read(record.catalog), name)
        if record.tables[name].rows > SMALL:
            return self._frame_of_files(view, record)
        key = _key(view, record, None)
        known = self._frames.get(name)
        if known is None or known[0] != key:
            table = self._on_driver(view, record).table
            known = self._frames[name] = key, frame_of_table(self._files.spark(), table)
        return known[1]

    def _frame_of_files(self, view: Definition, record: Record) -> "DataFrame":
        return with_hidden(HeldCommit(self._files, record), view.name).bag()


def _key(view: Definition, record: Record, columns: Names | None) -> "_Key":
    # Of a view that is computed from others, each change of one of them makes the sum of their versions another one.
    tables = view.computed.tables if view.computed is not None else (view.name,)
    return view.folder, view.created, sum(record.tables[table].version for table in tables), columns


def frame_of_table(spark: "SparkSession", table: pa.Table) -> "DataFrame":
    """The rows of an Arrow table as a frame. Few rows are one partition: nothing is then exchanged to group or join."""
    from viewkeeper.algebra.pyspark_names import from_arrow_schema

    frame = spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))
    return frame.coalesce(1) if table.num_rows <= SMALL else frame


def read_rows(files: Files, view: Definition, record: Record, columns: Names | None = None) -> pa.Table:
    """All rows of a table on the driver, each as often as it is there; of each some columns, or all."""
    types = dict(view.columns)
    names = view.names if columns is None else list(columns)
    plain = arrow_schema(tuple((name, types[name]) for name in names), signed=False)
    if view.computed is not None:
        return with_hidden(HeldCommit(files, record), view.name).bag().toArrow().select(names).cast(plain)
    listed = files.tables.files(view, record.tables[view.name])
    if view.layout is Layout.REWRITTEN:
        return pa.concat_tables(
            [plain.empty_table(), *(read_table(files.store, view.folder, f, plain) for f in listed)]
        )
    weighted = plain.append(pa.field(WEIGHT, pa.int64()))
    base, deltas = (
        pa.concat_tables([weighted.empty_table(), *(read_table(files.store, view.folder, f, weighted) for f in some)])
        for some in ([file for file in listed if not file.is_delta], [file for file in listed if file.is_delta])
    )
    rows = _merged(base, deltas, tuple(name for name in view.sorted_by if name in names))
    counts = rows[WEIGHT].combine_chunks()
    rows = rows.select(names).cast(plain)
    if pc.max(counts).as_py() in (None, 1):
        return rows
    repeated = [place for place, count in enumerate(counts.to_pylist()) for _ in range(count)]
    return rows.take(pa.array(repeated, pa.int64()))


def _merged(base: pa.Table, deltas: pa.Table, by: Names) -> pa.Table:
    """base + deltas. Only rows that agree with a changed one in `by` are added up: of a large table, few."""
    if not deltas.num_rows:
        return base
    names = [name for name in base.column_names if name != WEIGHT]
    changed, _ = numbered((deltas,), by)
    stored = ArrowContent(base)
    touched = pa.concat_tables([stored.find(by, changed).rows, deltas])
    added = touched.group_by(names, use_threads=False).aggregate([(WEIGHT, "sum")]).rename_columns([*names, WEIGHT])
    return stored.replaced(deltas, added.filter(pc.not_equal(added[WEIGHT], 0)), by).table


class SparkContent:
    """Rows that are too many for the driver: what is requested is found by a job."""

    def __init__(self, frame: "DataFrame", rows: int) -> None:
        self._frame = frame
        self.rows = rows

    def find(self, columns: tuple[str, ...], values: pa.Table) -> Found:
        from viewkeeper.lake.tables.spark_files import spark_errors

        with spark_errors("looking up stored rows"):
            rows = self._matching(columns, values).toArrow()
        # The values come first, so they keep their numbers.
        _, (_, numbers) = numbered((values, rows), columns)
        return Found(rows, numbers, looked_up=values.num_rows)

    def best(
        self, columns: tuple[str, ...], values: pa.Table, ranked: str, function: Literal["min", "max"], most: int
    ) -> Found:
        """Of a group that is as large as the table itself, few rows reach the driver."""
        from viewkeeper.algebra.pyspark_names import F, Window
        from viewkeeper.lake.tables.spark_files import spark_errors

        value = F.col(quoted(ranked))
        order = value.asc() if function == "min" else value.desc()
        frame = self._matching(columns, values).filter(value.isNotNull())
        if columns:
            number = F.row_number().over(Window.partitionBy(*map(quoted, columns)).orderBy(order))
            frame = frame.withColumn(_NUMBER, number).filter(F.col(_NUMBER) <= most).drop(_NUMBER)
        else:
            frame = frame.orderBy(order).limit(most)
        with spark_errors("looking up stored extremes"):
            rows = frame.toArrow()
        _, (_, numbers) = numbered((values, rows), columns)
        return Found(rows, numbers, looked_up=values.num_rows)

    def spread(self, columns: tuple[str, ...], values: pa.Table, of: str, count: str, changed: pa.Table) -> pa.Array:
        from viewkeeper.algebra.pyspark_names import F
        from viewkeeper.lake.tables.spark_files import spark_errors
        from viewkeeper.summary.propagate import TemporaryNames

        spark, keys = self._frame.sparkSession, [quoted(name) for name in columns]
        listed = [*keys, quoted(of), quoted(count)]
        _, (_, numbers) = numbered((values, changed), columns)
        mine = changed.filter(pc.less(numbers, pa.scalar(values.num_rows, pa.int64())))
        rows = self._matching(columns, values).select(*listed)
        if mine.num_rows:
            rows = rows.unionByName(frame_of_table(spark, mine).select(*listed))
        total = rows.groupBy(*listed[:-1]).agg(F.sum(listed[-1]).alias(count)).filter(F.col(listed[-1]) > 0)
        with spark_errors("computing stored variances"), TemporaryNames(spark) as temporary:
            type = self._frame.schema[of].dataType.simpleString()
            statement = spread_table(temporary.name(total), keys, {_SPREAD: (listed[-2], listed[-1], type)})
            made = spark.sql(statement).toArrow()
        _, (_, places) = numbered((values, made), columns)
        return placed(made[_SPREAD].combine_chunks(), places, values.num_rows)

    def _matching(self, columns: tuple[str, ...], values: pa.Table) -> "DataFrame":
        from viewkeeper.algebra.pyspark_names import F

        if not columns:
            return self._frame if values.num_rows else self._frame.limit(0)
        wanted = frame_of_table(self._frame.sparkSession, values.select(columns)).alias("wanted")
        stored = self._frame.alias("stored")
        same = [F.col(f"stored.{quoted(name)}").eqNullSafe(F.col(f"wanted.{quoted(name)}")) for name in columns]
        return stored.join(F.broadcast(wanted), reduce(and_, same), "left_semi")


_SPREAD = "_vk_spread"
_NUMBER = "_vk_number"
"""the place of a row among those of its group"""
