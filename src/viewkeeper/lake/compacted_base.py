"""A new base for a view, computed and written by Spark."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from viewkeeper.algebra.pyspark_names import F
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import HASH, STATE, WEIGHT
from viewkeeper.lake.tables.delta_table import DataFile
from viewkeeper.lake.tables.parquet_files import STAGING
from viewkeeper.lake.tables.row_hash import hashes_are_unique, row_hash
from viewkeeper.lake.tables.spark_files import write_frame
from viewkeeper.lake.tables.spark_tables import AppendedView
from viewkeeper.lake.tables.staged import WrittenBase

if TYPE_CHECKING:
    from viewkeeper.lake.writer import Writer


def write_base(
    writer: "Writer", view: Definition, files: Sequence[DataFile], state: int, name: str, *, hashed: bool
) -> WrittenBase:
    """Write the view at a state into a staging folder, each distinct row once with its count."""
    content = AppendedView(writer.spark(), writer.store, view, files, state, hashed=hashed).weights()
    stamped = content.withColumn(STATE, F.lit(state).cast("bigint")).withColumn(HASH, row_hash(view))
    smallest = {"smallest": F.min(WEIGHT)}
    written, observed = write_frame(writer.store, STAGING, name, stamped, smallest, view.sorted_by)
    unique = hashes_are_unique(writer.spark(), writer.store, STAGING, written)
    names = [file.removeprefix(f"{name}/") for file in written]
    return WrittenBase(names, hashed=unique, smallest=observed["smallest"] or 0)
