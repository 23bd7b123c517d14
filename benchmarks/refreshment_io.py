"""What a refresh reads and writes at the warehouse, in bytes and in records.

read, on the driver    the column chunks of the Parquet files that are asked for, by their compressed sizes
read, by Spark         what the metrics of its tasks say
written                the files that are there afterwards and were not before; the logs of tables and commits apart

What the sources read to tell their changes, or to answer questions, is not the warehouse's and not counted on the
driver; jobs of Spark cannot be distinguished, and are counted all.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

LOGS = ("_delta_log", "_viewkeeper")
_LISTENING_MS = 60_000


@dataclass
class Traffic:
    """What was read and written."""

    bytes_read_on_driver: int = 0
    records_read_on_driver: int = 0
    bytes_read_by_spark: int = 0
    records_read_by_spark: int = 0
    bytes_written: int = 0
    records_written: int = 0
    bytes_of_logs_written: int = 0

    @property
    def read(self) -> int:
        return self.bytes_read_on_driver + self.bytes_read_by_spark

    @property
    def total(self) -> int:
        """What the paper's table 2 counts in pages."""
        return self.read + self.bytes_written

    def told(self) -> dict[str, int]:
        return {**asdict(self), "bytes_in_all": self.total}


@contextmanager
def counted(warehouse: Path, spark: SparkSession | None) -> Iterator[Traffic]:
    """The traffic of what happens in the `with` block, complete when that ends."""
    traffic, before = Traffic(), _sizes(warehouse)
    jobs = _jobs(spark) if spark else set()
    with _reads_counted(warehouse, traffic):
        yield traffic
    if spark is not None:
        _add_jobs(spark, _jobs(spark) - jobs, traffic)
    for path, size in _sizes(warehouse).items():
        if before.get(path) == size:
            continue
        if any(part in LOGS for part in path.relative_to(warehouse).parts):
            traffic.bytes_of_logs_written += size
        else:
            traffic.bytes_written += size
            traffic.records_written += _RealParquetFile(path).metadata.num_rows


def _sizes(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}


# --- on the driver ---

_RealParquetFile = pq.ParquetFile


@contextmanager
def _reads_counted(warehouse: Path, traffic: Traffic) -> Iterator[None]:
    """All reading on the driver goes through `pq.ParquetFile`, which is replaced for a while."""

    class Counting(_RealParquetFile):  # type: ignore[misc, valid-type]
        def __init__(self, source: Any, *others: Any, **options: Any) -> None:
            super().__init__(source, *others, **options)
            self._counted = isinstance(source, str | Path) and Path(source).is_relative_to(warehouse)

        def read(self, columns: Sequence[str] | None = None, **options: Any) -> Any:
            self._count(range(self.metadata.num_row_groups), columns)
            return super().read(columns=columns, **options)

        def read_row_groups(self, row_groups: Any, columns: Sequence[str] | None = None, **options: Any) -> Any:
            self._count(row_groups, columns)
            return super().read_row_groups(row_groups, columns=columns, **options)

        def iter_batches(
            self, batch_size: int = 65536, row_groups: Any = None, columns: Sequence[str] | None = None, **options: Any
        ) -> Any:
            self._count(range(self.metadata.num_row_groups) if row_groups is None else row_groups, columns)
            return super().iter_batches(batch_size, row_groups=row_groups, columns=columns, **options)

        def _count(self, groups: Any, columns: Sequence[str] | None) -> None:
            if not self._counted:
                return
            wanted = None if columns is None else set(columns)
            for group in groups:
                about = self.metadata.row_group(group)
                traffic.records_read_on_driver += about.num_rows
                for number in range(about.num_columns):
                    chunk = about.column(number)
                    if wanted is None or chunk.path_in_schema in wanted:
                        traffic.bytes_read_on_driver += chunk.total_compressed_size

    pq.ParquetFile = Counting
    try:
        yield
    finally:
        pq.ParquetFile = _RealParquetFile


# --- by Spark ---


def _jobs(spark: SparkSession) -> set[int]:
    return set(spark.sparkContext.statusTracker().getJobIdsForGroup(None))


def _add_jobs(spark: SparkSession, jobs: set[int], traffic: Traffic) -> None:
    context = spark.sparkContext._jsc.sc()
    # The store is told of ended tasks by a queue.
    context.listenerBus().waitUntilEmpty(_LISTENING_MS)
    store, tracker = context.statusStore(), spark.sparkContext.statusTracker()
    told = [tracker.getJobInfo(job) for job in jobs]
    for stage in {stage for info in told if info is not None for stage in info.stageIds}:
        about = store.lastStageAttempt(stage)
        traffic.bytes_read_by_spark += about.inputBytes()
        traffic.records_read_by_spark += about.inputRecords()
