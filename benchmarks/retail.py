"""Summary tables maintained by summary-deltas, against recomputing them: section 6 of the paper, at larger sizes.

    python benchmarks/retail.py [--rows 1000000 10000000] [--large] [--changes 10000] [--rounds 7] [--warm-ups 5]
                                [--quick]

The retail warehouse of the paper in several sizes, with its four summary tables. Prints JSON: medians of rounds after
warm-ups, and ratios of them, all taken in this run with all ways in turn. It prints nothing, and draws nothing, if any
table is not exactly what Spark computes from pos.

Whatever is divided by each other was computed by one engine, the driver's Arrow or Spark, and written by both sides if
by any; counting alone writes nothing. --large adds 50,000,000 sales. --quick shows that everything works; its figures
mean little. Figure 10 itself is `retail_figure.py`.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from retail_data import Retail
from retail_rounds import Medians, in_turns, progress
from retail_warehouse import INSERTION, UPDATE, RetailWarehouse

from viewkeeper.lake.tables.spark_session import local_session

LARGE = 50_000_000
KINDS = (UPDATE, INSERTION)

# Each is so many times as slow as the other: the first median over the second.
RATIOS = {
    "recompute / commit, on the driver": ("rematerialize", "commit"),
    "recompute each / with lattice, in Spark": ("recompute_each", "recompute_with_lattice"),
    "counting / recompute with lattice, in Spark": ("counting", "recompute_with_lattice"),
    "propagate without lattice / with, on the driver": ("propagate_on_driver_without_lattice", "propagate_on_driver"),
    "propagate without lattice / with, in Spark": ("propagate_in_spark_without_lattice", "propagate_in_spark"),
}
# The sales of the first day are deleted by other rules.
MOST_DELETED = 0.9


@dataclass(frozen=True)
class Effort:
    """What is measured, and how often."""

    rows: Sequence[int]
    changes: int
    warm_ups: int
    rounds: int

    @property
    def batches(self) -> int:
        """Batches of one kind that a warehouse gets: all rounds, and one to count."""
        return self.warm_ups + self.rounds + 1

    def too_small(self) -> list[int]:
        """The sizes of pos that have too few sales to delete."""
        return [rows for rows in self.rows if self.batches * self.changes / 2 > MOST_DELETED * rows]


def effort_of(given: Sequence[str] | None = None) -> Effort:
    """What the options ask for."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    options.add_argument("--large", action="store_true")
    options.add_argument("--changes", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--warm-ups", type=int, default=5)
    options.add_argument("--quick", action="store_true")
    told = options.parse_args(given)
    if told.rounds < 1 or told.warm_ups < 0:
        options.error("there has to be at least one round, and no fewer than no warm-ups")
    rows = sorted({*told.rows, *([LARGE] if told.large else [])})
    effort = (
        Effort([100_000], told.changes, 1, 2) if told.quick else Effort(rows, told.changes, told.warm_ups, told.rounds)
    )
    if small := effort.too_small():
        sizes = ", ".join(f"{size:,}" for size in small)
        options.error(f"too many changes for a pos of {sizes} rows: take fewer changes, fewer rounds, or more rows")
    return effort


def main() -> None:
    effort = effort_of()
    with tempfile.TemporaryDirectory(prefix="viewkeeper-bench-") as home:
        report = measure(local_session(), Path(home), effort)
    print(json.dumps(report, indent=2))
    # Not `spark.stop()`: it waits for its shutdown hooks, and there is nothing left to save.
    sys.stdout.flush()
    os._exit(0)


def measure(spark: SparkSession, home: Path, effort: Effort) -> dict[str, Any]:
    """The report; `Inexact` if any result is wrong."""
    shops = [_loaded(spark, home, rows, effort.batches) for rows in effort.rows]
    report: dict[str, Any] = {
        "cores": os.cpu_count(),
        "changes": effort.changes,
        "warm_ups": effort.warm_ups,
        "rounds": effort.rounds,
        "sales": {
            f"{shop.retail.rows:,}": {
                "load_s": round(shop.load_seconds, 1),
                "create_views_s": round(shop.create_seconds, 1),
                "rows": shop.sizes(),
            }
            for shop in shops
        },
    }
    found: dict[str, dict[int, Medians]] = {}
    for kind in KINDS:
        found[kind] = in_turns(
            shops, kind, effort.changes, warm_ups=effort.warm_ups, rounds=effort.rounds, counting=True
        )
        for rows, medians in found[kind].items():
            report["sales"][f"{rows:,}"][f"{kind}_generating"] = _told(medians)
    report["propagate, most sales / fewest"] = {kind: _growth(found[kind]) for kind in KINDS}
    report["peak_memory_mb"] = _peak_memory(spark)
    return report


def _loaded(spark: SparkSession, home: Path, rows: int, batches: int) -> RetailWarehouse:
    progress(f"loading {rows:,} sales")
    return RetailWarehouse(Retail(rows, batches=batches, spark=spark), home / str(rows))


def _told(medians: Medians) -> dict[str, object]:
    ratios = {name: round(medians[slow] / medians[fast], 2) for name, (slow, fast) in RATIOS.items()}
    return {"median_ms": {way: round(1000 * seconds, 1) for way, seconds in medians.items()}, "ratios": ratios}


def _growth(medians: Mapping[int, Medians]) -> dict[str, object]:
    """How propagate depends on the size of pos: it should not."""
    fewest, most = medians[min(medians)], medians[max(medians)]
    ways = ("propagate", "propagate_on_driver", "propagate_in_spark")
    return {"sales": [min(medians), max(medians)], **{way: round(most[way] / fewest[way], 2) for way in ways}}


def _peak_memory(spark: SparkSession) -> dict[str, int | None]:
    """The most that was ever resident, of this process and of Spark's."""
    status = Path(f"/proc/{spark._jvm.java.lang.ProcessHandle.current().pid()}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    peak = next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM:")), None)
    return {"driver": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "spark": peak}


if __name__ == "__main__":
    main()
