"""Data files that Spark writes and reads, and what it says when it cannot."""

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from viewkeeper.algebra.pyspark_names import (
    Column,
    DataFrame,
    F,
    Observation,
    Py4JError,
    PySparkException,
    SparkSession,
)
from viewkeeper.errors import BadDelta, EngineFailure, StorageFailure, ViewkeeperError, first_line, may_pass
from viewkeeper.lake.log.columns import Columns, spark_schema
from viewkeeper.lake.log.store import LocalStore, storage_failure
from viewkeeper.lake.tables.delta_table import DataFile
from viewkeeper.lake.tables.parquet_files import check_file, checksum_of, with_checksum
from viewkeeper.lake.tables.spark_session import MEMORY, TIMESTAMPS, memory
from viewkeeper.summary.statements import quoted

ROWS_PER_FILE = 5_000_000
VERIFIED = "parquet.page.verify-checksum.enabled"
"""that the checksums of pages are verified as they are read; Spark writes them anyway"""
BYTES_TOGETHER = 1_000_000
"""in a group of rows of a table that is looked up"""


def read_files(
    spark: SparkSession,
    store: LocalStore,
    folder: str,
    files: Sequence[DataFile],
    columns: Columns,
    *,
    signed: bool,
    hashed: bool = False,
) -> DataFrame:
    """A DataFrame over exactly these files."""
    schema = spark_schema(columns, signed=signed, hashed=hashed)
    if not files:
        return spark.createDataFrame([], schema)
    for file in files:
        check_file(store, folder, file)
    reading = spark.read.schema(schema).option(VERIFIED, "true")
    return reading.parquet(*(store.spark_pattern(f"{folder}/{file.name}") for file in files))


def write_frame(
    store: LocalStore,
    folder: str,
    name: str,
    frame: "DataFrame",
    observe: "Mapping[str, Column]",
    sorted_by: tuple[str, ...] = (),
) -> tuple[list[str], dict[str, Any]]:
    """Let Spark write a DataFrame as Parquet files; their names there, and the aggregates observed on the way.

    In the order of some columns, if so asked, and in small groups of rows, which a lookup by these can pass over.
    """

    store.about_to_write([f"{folder}/{name}"])
    observation = Observation()
    if sorted_by:
        frame = frame.sort(*(F.col(quoted(column)) for column in sorted_by))
    observed = frame.observe(observation, *(column.alias(key) for key, column in observe.items()))
    with spark_errors(f"writing {store.path(folder)}"), exact_timestamps(frame.sparkSession):
        writing = observed.write.option("maxRecordsPerFile", ROWS_PER_FILE).option("compression", "zstd")
        if sorted_by:
            writing = writing.option("parquet.block.size", BYTES_TOGETHER)
        writing.parquet(store.spark_path(f"{folder}/{name}"))
    written = _with_checksums(store, f"{folder}/{name}")
    # Spark's own leavings: checksums and the marker of success.
    for file in store.names(f"{folder}/{name}"):
        if not file.endswith(".parquet"):
            store.delete(f"{folder}/{name}/{file}")
    store.make_durable((f"{folder}/{name}/{file}" for file in written), new_folders=True)
    return [f"{name}/{file}" for file in written], dict(observation.get)


def _with_checksums(store: LocalStore, folder: str) -> list[str]:
    """Give the files that Spark has written their checksums; the names that they have now."""

    def renamed(file: str) -> str:
        name = with_checksum(file, checksum_of(store.path(f"{folder}/{file}")))
        store.rename(f"{folder}/{file}", f"{folder}/{name}")
        return name

    written = [file for file in store.names(folder) if file.endswith(".parquet")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(renamed, written))


@contextmanager
def exact_timestamps(spark: SparkSession) -> Iterator[None]:
    """Write timestamps as microseconds, also in a session that was given and has other habits."""
    before = {name: spark.conf.get(name) for name in TIMESTAMPS}
    for name, value in TIMESTAMPS.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.set(name, str(old))


@contextmanager
def spark_errors(
    doing: str,
    failure: type[ViewkeeperError] = BadDelta,
    hint: str = "correct the rows, or CAST them to the types of the view",
) -> Iterator[None]:
    """What Spark says when a job fails, without the stack of the JVM; a `failure` unless it is about files."""

    try:
        yield
    except (PySparkException, Py4JError) as error:
        told = first_line(error)
        for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            if os.strerror(number) in str(error):
                raise storage_failure(OSError(number, os.strerror(number)), doing) from error
        if "OutOfMemoryError" in str(error):
            raise StorageFailure(
                f"{doing}: Spark has used up its {memory()} of memory", f"give it more: export {MEMORY}=8g"
            ) from error
        if "Mkdirs failed" in str(error) or "Permission denied" in str(error):
            raise StorageFailure(f"{doing}: {told}", "grant this user access to the folder, or name another") from error
        if "FAILED_READ_FILE" in str(error) or "FileNotFoundException" in str(error) or "PATH_NOT_FOUND" in str(error):
            raise StorageFailure(
                f"{doing}: {told}", "a file is missing or damaged: put it back from a backup, or reload the view"
            ) from error
        if may_pass(error):
            raise EngineFailure(f"{doing}: the process of Spark has ended: {told}", "try again") from error
        raise failure(f"{doing}: {told}", hint) from error


@contextmanager
def full_load(spark: "SparkSession", *, own: bool) -> Iterator[None]:
    """Let Spark re-plan between the stages of a large job; a session that is not ours stays as it is."""
    if not own:
        yield
        return
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    try:
        yield
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "false")
