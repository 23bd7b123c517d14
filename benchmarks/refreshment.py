"""Self-maintained views in the five storages, against each other and against recomputing: section 5 of the paper.

    python benchmarks/refreshment.py [--scale 1 100] [--kinds key-key ...] [--storages matview ...] [--rounds 5]
                                     [--warm-ups 2] [--rounds-only] [--spark] [--quick]

Wisconsin relations R and T of 10,000 rows x scale and S of 24,000 x scale, as Delta tables in two sources. Three joins
of them, with the sizes of the paper: key-key R ⋈ T with 10,000 rows, key-foreign key R ⋈ S with 24,000, non key-non key
R ⋈ S with 48,000. 20 % of R have no partner in S.

Each join is a view in each storage, in warehouses of their own, and an ordinary view, `remote`. All of them get the
same changes: 10 % insertions into each relation; 10 % deletions; then rounds of 1 % changes (half insertions, a quarter
deletions, a quarter updates), in which the join is also recomputed from the files of the tables by the same Spark
session and written as a Delta table. Refreshes and recomputing take turns. A refresh begins when the changes of both
relations have come.

Prints JSON: tables 1 and 2 in bytes of Parquet beside the paper's pages (refreshment_pages.py counts pages), seconds,
and medians of the rounds with their ratios, all of this run.
It prints nothing if any view is not exactly the join: compared row by row if it has up to 100,000 rows, else by the
number of rows and the sums of two hashes of all columns.

--rounds-only leaves out the 10 % changes, which take longest, and with them table 2.
--spark lets Spark refresh what the driver would. --quick shows that everything works; its figures mean little.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from refreshment_rounds import ALL, INSERTIONS, MeasuredJoin
from refreshment_tables import REMOTE, TABLE_1, TABLE_2, side_by_side
from wisconsin_data import KINDS

from viewkeeper.lake.tables.spark_session import local_session
from viewkeeper.maintenance.self_maintained import following

SIZE = 10_000
TARGET = 5
"""how many times as fast as recomputing a refresh should be, at the largest scale"""

MEANING = {
    "catch_up": "all of catch_up: the sources find out what has changed, it is delivered, refreshed and stored",
    "refresh": "what becomes of the delivered changes: the algorithm and the commits. For remote, from the first "
    "delivery to the last commit, for the sources are queried in between",
    "follow": "of refresh, the algorithm of the storage",
    "commit": "of refresh, storing",
    "recompute": "reading both tables, joining them and writing the result as a Delta table, in Spark",
    "overhead": "bytes of all that is stored for the view / bytes of both relations, as viewcache copies them",
    "cold": "nothing of the warehouse was read before in this process; the files may be in the system's cache",
    "bytes_in_all": "bytes of the Parquet chunks read and of the data files written, at the warehouse",
}


@dataclass(frozen=True)
class Effort:
    """What is measured, and how often."""

    sizes: Sequence[int]
    kinds: Sequence[str]
    storages: Sequence[str]
    warm_ups: int
    rounds: int
    cold: bool
    spark: bool


def effort_of(given: Sequence[str] | None = None) -> Effort:
    """What the options ask for."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--scale", type=int, nargs="+", default=[1, 100])
    options.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    options.add_argument("--storages", nargs="+", choices=ALL, default=list(ALL))
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--warm-ups", type=int, default=2)
    options.add_argument("--rounds-only", action="store_true")
    options.add_argument("--spark", action="store_true")
    options.add_argument("--quick", action="store_true")
    told = options.parse_args(given)
    if told.rounds < 1 or told.warm_ups < 0 or min(told.scale) < 1:
        options.error("there has to be at least one round, no fewer than no warm-ups, and a scale of at least 1")
    if told.quick:
        return Effort([1_000], told.kinds, told.storages, 1, 2, not told.rounds_only, told.spark)
    sizes = [SIZE * scale for scale in sorted(set(told.scale))]
    return Effort(sizes, told.kinds, told.storages, told.warm_ups, told.rounds, not told.rounds_only, told.spark)


def main() -> None:
    effort = effort_of()
    if effort.spark:
        # No batch is small enough for the driver.
        following.MOST_CHANGES = -1
    with tempfile.TemporaryDirectory(prefix="viewkeeper-bench-") as home:
        report = measure(local_session(), Path(home), effort)
    print(json.dumps(report, indent=2))
    # Not `spark.stop()`: it waits for its shutdown hooks, and there is nothing left to save.
    sys.stdout.flush()
    os._exit(0)


def measure(spark: SparkSession, home: Path, effort: Effort) -> dict[str, Any]:
    """The report; `Inexact` if any view is wrong."""
    report: dict[str, Any] = {
        "cores": os.cpu_count(),
        "engine": "Spark" if effort.spark else "the driver, and Spark for what is too large for it",
        "warm_ups": effort.warm_ups,
        "rounds": effort.rounds,
        "what is what": MEANING,
        "sizes": {},
    }
    for size in effort.sizes:
        joins = {}
        for kind in effort.kinds:
            with tempfile.TemporaryDirectory(dir=home) as folder:
                join = MeasuredJoin(spark, kind, size, Path(folder), effort.storages)
                joins[kind] = join.told(effort.warm_ups, effort.rounds, cold=effort.cold)
        report["sizes"][f"R and T {size:,}, S {size * 24 // 10:,}"] = _of_size(joins)
    report["peak_memory_mb"] = _peak_memory(spark)
    return report


def _of_size(joins: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The joins of one size, and the tables of the paper beside what was measured."""
    overheads = {kind: _each(join, lambda one: one["overhead"]) for kind, join in joins.items()}
    traffic = {
        kind: _each(join, lambda one: one.get(INSERTIONS, {}).get("bytes_in_all")) for kind, join in joins.items()
    }
    ratios = {kind: _each(join, lambda one: one["recompute / refresh"]) for kind, join in joins.items()}
    return {
        "table 1: storage overhead": {kind: side_by_side(TABLE_1[kind], one) for kind, one in overheads.items()},
        "table 2: I/O of a cold refresh after 10 % insertions, pages there and bytes here": {
            kind: side_by_side(TABLE_2[kind], one) for kind, one in traffic.items()
        },
        "recompute / refresh after 1 % changes": ratios,
        f"below {TARGET}": [
            f"{kind}, {storage}"
            for kind, one in ratios.items()
            for storage, ratio in one.items()
            if ratio < TARGET and storage != REMOTE
        ],
        "joins": joins,
    }


def _each(join: Mapping[str, Any], of: Callable[[Mapping[str, Any]], float | None]) -> dict[str, Any]:
    return {storage: of(one) for storage, one in join["storages"].items() if of(one) is not None}


def _peak_memory(spark: SparkSession) -> dict[str, int | None]:
    """The most that was ever resident, of this process and of Spark's."""
    status = Path(f"/proc/{spark._jvm.java.lang.ProcessHandle.current().pid()}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    peak = next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM:")), None)
    return {"driver": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "spark": peak}


if __name__ == "__main__":
    main()
