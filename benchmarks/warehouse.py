"""What storing a view costs: appending against rewriting, reads with pending deltas, commits without Spark jobs.

    python benchmarks/warehouse.py [--rows 10000000] [--commits 1000]

Prints JSON. Every ratio is taken within this run, from medians.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from datetime import date, timedelta
from decimal import Decimal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from viewkeeper import Warehouse
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.lake.compaction import CompactionPolicy
from viewkeeper.lake.tables.spark_session import local_session

COLUMNS = {"id": "BIGINT", "store": "INT", "item": "STRING", "price": "DECIMAL(10, 2)", "day": "DATE"}
NAMES = tuple(COLUMNS)
FIRST_DAY = date(2020, 1, 1)
DELTA_ROWS = 10_000
PENDING = 10

LINEAR = {
    "count": "SELECT COUNT(*) FROM v",
    "count by store": "SELECT store, COUNT(*) FROM v GROUP BY store",
    "sum by store": "SELECT store, SUM(price) FROM v GROUP BY store",
    "filtered sum": "SELECT SUM(price) FROM v WHERE store = 17",
    "filter": "SELECT * FROM v WHERE store = 17",
}
OTHER = {
    "all rows": "SELECT * FROM v",
    "distinct": "SELECT COUNT(DISTINCT item) FROM v",
    "maximum": "SELECT store, MAX(price) FROM v GROUP BY store",
    "top": "SELECT * FROM v ORDER BY price DESC, id LIMIT 10",
    "join": "SELECT a.store, COUNT(*) FROM v a JOIN v b ON a.id = b.id + 1 WHERE a.store < 100 GROUP BY a.store",
}


def row(number: int) -> tuple[object, ...]:
    """The same row that `rows` makes of this number."""
    return (
        number,
        number % 1000,
        f"item-{number % 50_000}",
        Decimal(number * 7 % 10_007),
        FIRST_DAY + timedelta(days=number % 1500),
    )


def rows(spark: SparkSession, count: int) -> DataFrame:
    number = F.col("id")
    return spark.range(count).select(
        number,
        (number % 1000).cast("int").alias("store"),
        F.concat(F.lit("item-"), (number % 50_000).cast("string")).alias("item"),
        (number * 7 % 10_007).cast("decimal(10,2)").alias("price"),
        F.date_add(F.lit(FIRST_DAY), (number % 1500).cast("int")).alias("day"),
    )


def delta(done: int, size: int, total: int) -> MemoryZSet:
    """Half deletions of rows that are there, scattered, and half insertions; `done` rows were used before."""
    numbers = range(done, done + size // 2)
    gone = ((row(number * 97 % total), -1) for number in numbers)
    new = ((row(total + number), 1) for number in numbers)
    return MemoryZSet(NAMES, [*gone, *new])


def timed(work, times: int) -> list[float]:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken


def median_ms(taken: list[float]) -> float:
    return round(1000 * statistics.median(taken), 1)


def jobs(spark: SparkSession) -> int:
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))


class Bench:
    """One warehouse with one view of `total` rows."""

    def __init__(self, spark: SparkSession, folder: str, total: int) -> None:
        self.spark, self.total, self.step, self.done = spark, total, 0, 0
        # No new base by itself: what is measured is the deltas. Small deltas are merged as always.
        self.warehouse = Warehouse.open(folder, spark, compaction=CompactionPolicy(share=1e9))
        with self.warehouse.commit() as commit:
            commit.create("v", COLUMNS, rows=rows(spark, total), distinct=True)

    def append(self, size: int) -> float:
        """Commit one delta of `size` rows; the seconds it took, the making of the delta not counted."""
        change = delta(self.done, size, self.total)
        self.step, self.done = self.step + 1, self.done + size // 2
        start = time.perf_counter()
        with self.warehouse.commit() as commit:
            commit.state("main", {"s": f"{self.step:020d}"}, {"v": change})
        return time.perf_counter() - start

    def run(self, query: str) -> None:
        self.warehouse.sql(query).write.format("noop").mode("overwrite").save()

    def read_all(self, *, weights: bool) -> None:
        self.warehouse.read("v", weights=weights).write.format("noop").mode("overwrite").save()

    def rewrite(self, folder: str) -> None:
        """What a warehouse without deltas would do: write all rows of the new state."""
        shutil.rmtree(folder, ignore_errors=True)
        self.warehouse.read("v").write.parquet(folder)


def progress(text: str) -> None:
    print(f"{time.strftime('%X')} {text}", file=sys.stderr, flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--commits", type=int, default=1000)
    arguments = options.parse_args()
    spark = local_session()
    home = tempfile.mkdtemp(prefix="viewkeeper-bench-")
    try:
        report = measure(spark, home, arguments.rows, arguments.commits)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(json.dumps(report, indent=2))
    # Not `spark.stop()`: it waits for its shutdown hooks, and there is nothing left to save.
    sys.stdout.flush()
    os._exit(0)


def measure(spark: SparkSession, home: str, total: int, commits: int) -> dict[str, object]:
    progress(f"loading {total // 10:,} and {total:,} rows")
    start = time.perf_counter()
    small = Bench(spark, f"{home}/small", total // 10)
    large = Bench(spark, f"{home}/large", total)
    load = time.perf_counter() - start

    progress("reads of the compacted view")
    reads = {**LINEAR, **OTHER}
    compacted = {name: median_ms(timed(lambda q=query: large.run(q), 5)[2:]) for name, query in reads.items()}
    weighted = median_ms(timed(lambda: large.read_all(weights=True), 4)[1:])

    progress(f"appending deltas of {DELTA_ROWS:,} rows")
    for _ in range(3):
        small.append(DELTA_ROWS), large.append(DELTA_ROWS)
    to_small = [small.append(DELTA_ROWS) for _ in range(15)]
    to_large = [large.append(DELTA_ROWS) for _ in range(PENDING - 3)]

    progress(f"reads with {PENDING} pending deltas")
    pending = {name: median_ms(timed(lambda q=query: large.run(q), 5)[2:]) for name, query in reads.items()}
    weighted_pending = median_ms(timed(lambda: large.read_all(weights=True), 4)[1:])

    progress("rewriting the view in Spark")
    rewriting = timed(lambda: large.rewrite(f"{home}/rewritten"), 3)

    progress(f"{commits:,} commits of 100 rows")
    before = jobs(spark)
    trickle = [large.append(100) for _ in range(commits)]
    trickle_jobs = jobs(spark) - before
    tenth = max(1, commits // 10)

    progress("compaction")
    compaction = timed(large.warehouse.compact, 1)[0]
    ratios = {name: round(pending[name] / compacted[name], 2) for name in reads}
    return {
        "rows": total,
        "cores": os.cpu_count(),
        "load_s": round(load, 1),
        "append_10k_rows": {
            "to_1/10_ms": median_ms(to_small),
            "to_all_ms": median_ms(to_large),
            "ratio_all_to_1/10": round(statistics.median(to_large) / statistics.median(to_small), 2),
            "rewrite_in_spark_ms": median_ms(rewriting),
            "times_faster_than_rewriting": round(statistics.median(rewriting) / statistics.median(to_large), 1),
        },
        "commits_of_100_rows": {
            "commits": commits,
            "first_tenth_ms": median_ms(trickle[:tenth]),
            "last_tenth_ms": median_ms(trickle[-tenth:]),
            "ratio_last_to_first": round(statistics.median(trickle[-tenth:]) / statistics.median(trickle[:tenth]), 2),
            "p95_ms": round(1000 * statistics.quantiles(trickle, n=20)[-1], 1),
            "longest_ms": round(1000 * max(trickle), 1),
            "spark_jobs": trickle_jobs,
        },
        f"read_with_{PENDING}_pending_deltas": {
            "compacted_ms": compacted,
            "pending_ms": pending,
            "ratio": ratios,
            "weights_ratio": round(weighted_pending / weighted, 2),
            "worst_linear": max(ratios[name] for name in LINEAR),
            "worst_other": max([*(ratios[name] for name in OTHER), round(weighted_pending / weighted, 2)]),
        },
        "compaction_s": round(compaction, 1),
    }


if __name__ == "__main__":
    main()
