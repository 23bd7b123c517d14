"""Initial loads: computed and written by Spark, never row by row through the driver.

base = Σ rows, each distinct row once with its count
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from viewkeeper.algebra.pyspark_names import DataFrame, F, SparkSession
from viewkeeper.clock import unique_id
from viewkeeper.errors import BadDelta
from viewkeeper.lake.log.catalog import Definition, Layout
from viewkeeper.lake.log.columns import HASH, STATE, WEIGHT, arrow_schema, table_schema
from viewkeeper.lake.log.record import TableState
from viewkeeper.lake.log.store import LocalStore, explained
from viewkeeper.lake.tables.delta_table import BASE, ROWS, describe_file
from viewkeeper.lake.tables.parquet_files import STAGING, file_name
from viewkeeper.lake.tables.row_hash import hashes_are_unique, row_hash
from viewkeeper.lake.tables.signed_frames import conformed_frame, quoted
from viewkeeper.lake.tables.spark_files import write_frame
from viewkeeper.lake.tables.staged import StagedTable


def stage_load(
    store: LocalStore, view: Definition, rows: DataFrame, state: int, commit: int, *, distinct: bool
) -> StagedTable:
    """Let Spark write the first content of a view; `distinct` says that no row occurs twice."""
    weighted = rows if WEIGHT in rows.columns else rows.withColumn(WEIGHT, F.lit(1).cast("bigint"))
    signed = view.layout is Layout.APPENDED
    conformed = conformed_frame(view, weighted)
    if signed:
        if not distinct:
            grouped = conformed.groupBy(*(F.col(quoted(name)) for name in view.names))
            conformed = grouped.agg(F.sum(WEIGHT).alias(WEIGHT)).filter(F.col(WEIGHT) != 0)
        content = conformed.withColumn(STATE, F.lit(state).cast("bigint")).withColumn(HASH, row_hash(view))
        figures = {"rows": F.sum(WEIGHT), "smallest": F.min(WEIGHT)}
    else:
        content = repeated(conformed, view)
        figures = {"rows": F.count(F.lit(1))}
    written, observed = write_frame(
        store, view.folder, file_name(BASE if signed else ROWS, commit), content, figures, view.sorted_by
    )
    if (observed.get("smallest") or 0) < 0:
        raise BadDelta(f"the load of {view.name} has a row with a negative count", "load each row at least once")
    adds = [describe_file(store, view.folder, name)[1] for name in written]
    hashed = signed and hashes_are_unique(rows.sparkSession, store, view.folder, written)
    if signed and distinct and not hashed:
        raise BadDelta(f"the load of {view.name} has a row twice", "load it without distinct=True")
    after = TableState(-1, state, state, commit, observed["rows"] or 0, hashed=hashed, added=tuple(written))
    schema = table_schema(view.columns) if signed else arrow_schema(view.columns, signed=False)
    return StagedTable(view, schema, adds, (), after)


def repeated(frame: DataFrame, view: Definition) -> DataFrame:
    """A bag: each row as often as its weight says."""
    copies = F.explode(F.sequence(F.lit(1).cast("bigint"), F.col(WEIGHT)))
    rows = frame.filter(F.col(WEIGHT) > 0).withColumn(WEIGHT, copies)
    return rows.select(*(F.col(quoted(name)) for name in view.names))


class Staging:
    """Rows on their way from a source to Spark: Parquet files that all executors can read."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._folders: list[str] = []

    def stage(self, spark: SparkSession, batches: Iterable[Any], schema: Any) -> DataFrame:
        """A DataFrame over rows that arrive as Arrow record batches."""
        folder = f"{STAGING}/{unique_id()}"
        self._folders.append(folder)
        path = self._store.new_file(f"{folder}/rows.parquet")
        with explained(path), pq.ParquetWriter(path, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return spark.read.parquet(self._store.spark_pattern(f"{folder}/rows.parquet"))

    def clear(self) -> None:
        """Delete what was staged."""
        for folder in self._folders:
            for file in list(self._store.files(folder)):
                self._store.delete(file.name)
            self._store.remove_empty_folders(folder)
        self._folders.clear()


def frame_of(spark: SparkSession, staging: Staging, rows: Any) -> DataFrame:
    """The DataFrame of whatever a load was given: a DataFrame, Parquet files, an Arrow table or its batches."""
    if isinstance(rows, DataFrame):
        return rows
    if isinstance(rows, pa.Table):
        return staging.stage(spark, rows.to_batches(), rows.schema)
    if isinstance(rows, pa.RecordBatchReader):
        return staging.stage(spark, rows, rows.schema)
    paths = [rows] if isinstance(rows, str) or hasattr(rows, "__fspath__") else rows
    if isinstance(paths, Sequence) and all(isinstance(path, str) or hasattr(path, "__fspath__") for path in paths):
        return spark.read.parquet(*map(str, paths))
    raise BadDelta(
        f"a view cannot be loaded from {type(rows).__name__}",
        "give a Spark DataFrame, an Arrow table or record batches, a Z-set, or paths of Parquet files",
    )
