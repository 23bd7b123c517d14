"""One join, kept as a view in every way that there is, and recomputed as one would without any.

remote and the five storages    a warehouse for each, over the same two Delta tables
recompute                       Spark reads the tables' files, joins them and writes a Delta table
"""

import gc
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import convert_to_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from refreshment_tables import REMOTE
from wisconsin_data import COLUMNS, JOINED, KEY, shown
from wisconsin_lake import Lake

from viewkeeper import Warehouse
from viewkeeper.maintenance.self_maintained.following import Following
from viewkeeper.maintenance.stored_states import StoredStates
from viewkeeper.mediator.group import Group
from viewkeeper.mediator.report import Report
from viewkeeper.messages import Transaction

VIEW = "v"


@dataclass
class Refreshed:
    """The seconds of one refresh."""

    catch_up: float = 0.0
    """all of `catch_up`: the sources find out what has changed, the rows are delivered, the view is refreshed"""
    busy: float = 0.0
    """what the view's group did with the delivered rows, commits included"""
    elapsed: float = 0.0
    """from the first delivery to the last commit, what the sources take to answer included"""
    follow: float = 0.0
    """of that, the algorithm of the storage"""
    commit: float = 0.0
    """of that, storing"""
    commits: int = 0
    rows_received: int = 0
    """rows that sources have answered"""


class KeptJoin:
    """The view in one storage."""

    def __init__(self, spark: SparkSession, lake: Lake, storage: str, folder: Path) -> None:
        self.storage, self._spark, self._folder = storage, spark, folder
        self.warehouse = self._opened()
        left, right = (relation.name for relation in lake.relations.both)
        for name in (left, right):
            self.warehouse.add_source(f"of_{name}", lake.url(name), keys={name: KEY}, install=True)
        stored = "" if storage == REMOTE else f"'storage' = '{storage}', "
        start = time.perf_counter()
        self.warehouse.create_view(
            f"CREATE MATERIALIZED VIEW {VIEW} TBLPROPERTIES({stored}'consistency' = 'strong') AS "
            f"SELECT {', '.join(shown((left, right)))} FROM of_{left}.{left} {left} "
            f"JOIN of_{right}.{right} {right} ON {left}.{JOINED} = {right}.{JOINED}"
        )
        self.create_seconds = time.perf_counter() - start

    def _opened(self) -> Warehouse:
        # No new base by itself: it would be made beside what is measured next.
        return Warehouse.open(self._folder, self._spark, compaction=None)

    def forget(self) -> None:
        """Nothing that was read before is remembered; the memory is for the next."""
        self.warehouse.close()
        self.warehouse = self._opened()
        gc.collect()
        pa.default_memory_pool().release_unused()

    def refresh(self) -> Refreshed:
        """Bring it up to date."""
        reports: list[Report] = []
        with _clocked() as found:
            start = time.perf_counter()
            self.warehouse.catch_up(watch=reports.append)
            found.catch_up = time.perf_counter() - start
        if halted := reports[-1].halted:
            raise RuntimeError(f"{self.storage} was halted: {halted}")
        (group,) = reports[-1].groups
        found.rows_received = group.rows_received
        return found

    def rows(self) -> DataFrame:
        return self.warehouse.read(VIEW)

    def sizes(self) -> dict[str, int]:
        """The bytes of each table that is stored for the view."""
        files = self.warehouse._files
        record = files.log.last()
        catalog = files.catalogs.read(record.catalog)
        return {
            name: sum(
                files.store.path(f"{view.folder}/{file.name}").stat().st_size
                for file in files.tables.files(view, record.tables[name])
            )
            for name, view in catalog.items()
        }

    def copies(self) -> int:
        """The bytes of the copies of the relations, for a storage that has them."""
        kept = self.warehouse._keeper.self_maintained.views()[VIEW]
        sizes = self.sizes()
        return sum(sizes[table] for table, one in kept.tables.items() if one.name.startswith("copy "))

    def seconds(self, refreshed: Refreshed) -> float:
        """What a refresh takes, the finding out of changes at the sources apart."""
        return refreshed.elapsed if self.storage == REMOTE else refreshed.busy


@contextmanager
def _clocked() -> Iterator[Refreshed]:
    """Time the parts of a refresh, which runs in a thread of its own."""
    found = Refreshed()
    first: list[float] = []
    waiting: set[str] = set()
    real: dict[tuple[type, str], Any] = {}

    def clock(owner: type, name: str, note: Any) -> None:
        work = real[owner, name] = getattr(owner, name)

        def timed(*given: Any, **named: Any) -> Any:
            start = time.perf_counter()
            try:
                return work(*given, **named)
            finally:
                note(start, time.perf_counter(), given)

        setattr(owner, name, timed)

    def delivered(start: float, _: float, given: tuple[Any, ...]) -> None:
        if isinstance(given[1], Transaction):
            first.append(start)

    def committed(start: float, end: float, _: tuple[Any, ...]) -> None:
        found.commit += end - start
        found.commits += 1
        found.elapsed = end - first[0]

    def followed(start: float, end: float, _: tuple[Any, ...]) -> None:
        found.follow += end - start

    def stepped(start: float, end: float, _: tuple[Any, ...]) -> None:
        found.busy += end - start

    commit = real[Group, "_commit"] = Group._commit

    def commit_of_both(group: Group) -> bool:
        # Both relations are refreshed at once, as in the paper; else it would depend on chance.
        waiting.update(source for source, _ in group._in_progress)
        return waiting == set(group.channels) and commit(group)

    Group._commit = commit_of_both  # type: ignore[method-assign]
    clock(Group, "_deliver", delivered)
    clock(Group, "step", stepped)
    clock(Following, "follow", followed)
    clock(StoredStates, "commit", committed)
    try:
        yield found
    finally:
        for (owner, name), work in real.items():
            setattr(owner, name, work)


# --- recomputing ---


class Recomputed:
    """The join of the tables as they are, computed by Spark."""

    def __init__(self, spark: SparkSession, lake: Lake, into: Path) -> None:
        self._spark, self._lake, self._into = spark, lake, into
        self._schema = spark.read.parquet(lake.files(lake.relations.left)[0]).schema

    def rows(self) -> DataFrame:
        left, right = self._lake.relations.both
        one, other = (
            self._spark.read.schema(self._schema)
            .parquet(*self._lake.files(relation))
            .select(*(F.col(column).alias(f"{relation.name}_{column}") for column in COLUMNS))
            for relation in (left, right)
        )
        return one.join(other, F.col(f"{left.name}_{JOINED}") == F.col(f"{right.name}_{JOINED}"))

    def write(self) -> float:
        """Compute and store it; the seconds."""
        # As full loads do: a session that is tuned for small jobs would shuffle into two parts.
        self._spark.conf.set("spark.sql.adaptive.enabled", "true")
        try:
            start = time.perf_counter()
            self.rows().write.option("compression", "zstd").parquet(str(self._into))
            convert_to_deltalake(str(self._into))
            return time.perf_counter() - start
        finally:
            self._spark.conf.set("spark.sql.adaptive.enabled", "false")
            shutil.rmtree(self._into, ignore_errors=True)


def content(rows: DataFrame, columns: list[str], *, large: bool) -> tuple[Any, ...]:
    """What tells a result from others: its types and all of its rows; of a large one, which takes longer to compare
    than to compute, their number and the sums of two hashes of 64 bits."""
    rows = rows.select(*columns)
    if large:
        return (rows.dtypes, *_fingerprint(rows))
    return rows.dtypes, rows.toArrow().sort_by([(column, "ascending") for column in columns]).combine_chunks()


def _fingerprint(rows: DataFrame) -> tuple[int, Any, Any]:
    columns = [F.col(f"`{column}`") for column in rows.columns]
    hashes = [F.xxhash64(*some).cast("decimal(20, 0)") for some in (columns, [F.lit("again"), *reversed(columns)])]
    hashed = rows.select(hashes[0].alias("one"), hashes[1].alias("other"))
    (found,) = hashed.agg(
        F.count("*").alias("rows"), F.sum("one").alias("one"), F.sum("other").alias("other")
    ).collect()
    return found["rows"], found["one"], found["other"]
