"""The rows of a DataFrame as exact text, one after the other, and as one Parquet file.

Spark makes the text: Python's own types write a FLOAT with digits that it does not have, and know no year after 9999.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from viewkeeper.algebra.pyspark_names import Column, DataFrame, F, T
from viewkeeper.clock import unique_id
from viewkeeper.errors import ExpressionError, StorageFailure
from viewkeeper.lake.log.store import TEMPORARY
from viewkeeper.lake.tables.spark_files import exact_timestamps, spark_errors

TextRow = tuple[str | None, ...]


class Kind(StrEnum):
    """What a text stands for."""

    NUMBER = "number"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True)
class TextRows:
    """Columns with the kind of their values, and the rows: NULL is None."""

    columns: tuple[tuple[str, Kind], ...]
    rows: Iterator[TextRow]


def text_rows(frame: DataFrame, limit: int | None = None) -> TextRows:
    """The rows, fetched partition by partition while they are read."""
    if limit is not None:
        frame = frame.limit(limit)
    columns = tuple((field.name, _kind(field.dataType)) for field in frame.schema)
    # By number: a query may give two columns the same name.
    numbered = frame.toDF(*(f"_{number}" for number in range(len(columns))))
    texts = [_text(F.col(field.name), field.dataType).alias(field.name) for field in numbered.schema]
    return TextRows(columns, _fetched(numbered.select(*texts)))


def _fetched(frame: DataFrame) -> Iterator[TextRow]:
    with _query_errors():
        for row in frame.toLocalIterator():
            yield tuple(row)


def write_parquet(frame: DataFrame, target: Path) -> None:
    """Let Spark write the rows as one Parquet file, in place of one that is there."""
    # Beside it, so that the last step is a rename; the same place on all machines, as the warehouse is.
    folder = target.parent / f"{TEMPORARY}{unique_id()}"
    try:
        with _query_errors(), exact_timestamps(frame.sparkSession):
            frame.coalesce(1).write.option("compression", "zstd").parquet(f"file:{folder}")
        (written,) = folder.glob("part-*.parquet")
        os.replace(written, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _query_errors() -> Iterator[None]:
    try:
        with spark_errors("running the query", ExpressionError, "correct the query, or leave out the rows it fails on"):
            yield
    except (EOFError, ConnectionError) as error:
        raise StorageFailure("Spark ended while the query ran", "it may be short of memory: ask for less") from error


def _kind(type: T.DataType) -> Kind:
    if isinstance(type, T.DecimalType):
        return Kind.DECIMAL
    if isinstance(type, T.NumericType):
        return Kind.NUMBER
    if isinstance(type, T.BooleanType):
        return Kind.BOOLEAN
    return Kind.JSON if _is_nested(type) else Kind.TEXT


def _text(column: Column, type: T.DataType) -> Column:
    if isinstance(type, T.BinaryType):
        return F.lower(F.hex(column))
    if isinstance(type, T.TimestampType):
        # The sessions that the command line starts are in UTC.
        return F.concat(_iso_8601(column), F.lit("Z"))
    if isinstance(type, T.TimestampNTZType):
        return _iso_8601(column)
    if _is_nested(type):
        return F.to_json(column, {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]XXX"})
    return column.cast("string")


def _iso_8601(column: Column) -> Column:
    return F.replace(column.cast("string"), F.lit(" "), F.lit("T"))


def _is_nested(type: T.DataType) -> bool:
    return isinstance(type, T.ArrayType | T.MapType | T.StructType | T.VariantType)
