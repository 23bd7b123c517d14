"""A hash of each row of a base, stored beside it: rows are then found without reading their columns.

    h(row) = xxhash64(values, which of them are NULL)          equal rows have equal hashes

The other way round does not hold by itself. That no two rows of a base share a hash is checked when it is written, and
its record says so (`hashed`). A row that a change deletes is in the base, so the one row there with its hash is it.
"""

from collections.abc import Sequence

from viewkeeper.algebra.pyspark_names import Column, F, SparkSession
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import HASH
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.tables.signed_frames import quoted
from viewkeeper.sql.type_families import Family, parse_type, sql_type


def row_hash(view: Definition) -> Column:
    """The hash of a row of the view."""
    values = [_canonical(F.col(quoted(name)), type) for name, type in view.columns]
    # A NULL leaves the hash as it is, so ('a', NULL) and (NULL, 'a') would share theirs.
    missing = F.concat(*(F.col(quoted(name)).isNull().cast("int").cast("string") for name in view.names))
    return F.xxhash64(*values, missing)


def _canonical(column: Column, type: str) -> Column:
    """One form for values that are equal to SQL: 0.0 for -0.0, one NaN."""
    if sql_type(parse_type(type)).family is not Family.FLOATING:
        return column
    return F.when(F.isnan(column), F.lit(float("nan"))).otherwise(column.cast("double") + F.lit(0.0))


def hashes_are_unique(spark: SparkSession, store: LocalStore, folder: str, files: Sequence[str]) -> bool:
    """Whether no two rows in these files share a hash."""
    if not files:
        return True
    paths = [store.spark_pattern(f"{folder}/{file}") for file in files]
    hashes = spark.read.schema(f"{HASH} BIGINT").parquet(*paths)
    rows, different = hashes.agg(F.count(F.lit(1)), F.count_distinct(HASH)).collect()[0]
    return bool(rows == different)
