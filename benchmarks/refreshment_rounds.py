"""One join of one size: all storages get the same changes, and take turns.

cold      10 % insertions, then 10 % deletions: opened again, so that what is read and written can be counted
rounds    1 % changes: every view is refreshed, then the join is recomputed; medians of those after the warm-ups
"""

import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from refreshment_io import Traffic, counted
from refreshment_tables import REMOTE, STORAGES, VIEWCACHE
from refreshment_views import KeptJoin, Recomputed, Refreshed, content
from wisconsin_data import JoinedRelations, Rewriting, expected_rows
from wisconsin_lake import Lake

ALL = (REMOTE, *STORAGES)
LARGE_SHARE, SMALL_SHARE = 0.1, 0.01
INSERTIONS, DELETIONS = "10 % insertions", "10 % deletions"
# A larger join is compared once, at the end, and by hashes.
MOST_COMPARED = 100_000


class Inexact(Exception):
    """A view was measured that is not the join."""


class MeasuredJoin:
    """One join of one size, in all storages."""

    def __init__(self, spark: SparkSession, kind: str, size: int, folder: Path, storages: Sequence[str] = ALL) -> None:
        self._spark, self._name = spark, f"{kind} join of {size:,} rows"
        progress(f"{self._name}: loading")
        self._relations = JoinedRelations(kind, size)
        self._lake = Lake(self._relations, folder / "lake")
        self._recomputed = Recomputed(spark, self._lake, folder / "recomputed")
        self._kept: dict[str, KeptJoin] = {}
        for storage in storages:
            progress(f"{self._name}: creating {storage}")
            self._kept[storage] = KeptJoin(spark, self._lake, storage, folder / storage)
            self._kept[storage].forget()
        self._expected = expected_rows(kind, size)
        self._large = self._expected > MOST_COMPARED
        self._found: dict[str, dict[str, Any]] = {storage: {} for storage in storages}

    def told(self, warm_ups: int, rounds: int, *, cold: bool = True) -> dict[str, Any]:
        """Everything about it."""
        first = self._recomputed.rows().count()
        if first != self._expected:
            raise Inexact(f"the {self._name} has {first:,} rows, and not {self._expected:,}")
        rows = {relation.name: relation.rows for relation in self._relations.both}
        self._storage()
        if cold:
            self._cold(INSERTIONS, self._relations.insert(LARGE_SHARE))
            self._cold(DELETIONS, self._relations.delete(LARGE_SHARE))
            self._compact()
        recompute = self._rounds(warm_ups, rounds)
        self._check("all rounds")
        for kept in self._kept.values():
            kept.warehouse.close()
        return {
            "rows": {**rows, "join": first, "join at the end": self._recomputed.rows().count()},
            "bytes of the sources": sum(map(self._lake.bytes, self._relations.both)),
            "recompute_s": round(statistics.median(recompute), 3),
            "storages": self._found,
        }

    def _storage(self) -> None:
        base = self._kept[VIEWCACHE].copies() if VIEWCACHE in self._kept else None
        for storage, kept in self._kept.items():
            sizes = kept.sizes()
            self._found[storage] |= {
                "create_s": round(kept.create_seconds, 2),
                "bytes": {table: size for table, size in sizes.items() if size},
                "overhead": None if base is None else round(sum(sizes.values()) / base, 3),
            }

    def _cold(self, name: str, changes: Mapping[str, Rewriting]) -> None:
        """One refresh of each view, of which nothing was read before."""
        changed = self._lake.apply(changes)
        for storage, kept in self._kept.items():
            progress(f"{self._name}: {name}, {storage}")
            kept.forget()
            with counted(kept.warehouse.path, self._spark) as traffic:
                refreshed = kept.refresh()
            self._found[storage][name] = {"changes": changed, **_cold_told(kept, refreshed, traffic)}
        if not self._large:
            self._check(name)

    def _compact(self) -> None:
        """As each warehouse would do by itself after so many changes, beside what is measured."""
        for storage, kept in self._kept.items():
            progress(f"{self._name}: compacting {storage}")
            start = time.perf_counter()
            kept.warehouse.compact()
            self._found[storage]["compact_s"] = round(time.perf_counter() - start, 2)

    def _rounds(self, warm_ups: int, rounds: int) -> list[float]:
        """1 % changes: refreshes and recomputing in turn; the seconds of recomputing."""
        taken: dict[str, list[Refreshed]] = {storage: [] for storage in self._kept}
        recompute = []
        for number in range(warm_ups + rounds):
            progress(f"{self._name}: 1 % changes, {_round(number, warm_ups)}")
            changed = self._lake.apply(self._relations.mix(SMALL_SHARE))
            for storage, kept in self._kept.items():
                taken[storage].append(kept.refresh())
            recompute.append(self._recomputed.write())
        recompute = recompute[warm_ups:]
        for storage, kept in self._kept.items():
            measured = taken[storage][warm_ups:]
            seconds = {
                "refresh": statistics.median(map(kept.seconds, measured)),
                **{
                    part: statistics.median(getattr(one, part) for one in measured)
                    for part in ("catch_up", "follow", "commit")
                },
            }
            self._found[storage] |= {
                "1 % changes": {
                    "changes": changed,
                    "median_s": {part: round(value, 4) for part, value in seconds.items()},
                    "commits": [one.commits for one in measured],
                },
                "recompute / refresh": round(statistics.median(recompute) / seconds["refresh"], 2),
                "recompute / catch_up": round(statistics.median(recompute) / seconds["catch_up"], 2),
            }
        return recompute

    def _check(self, after: str) -> None:
        progress(f"{self._name}: comparing the views after {after}")
        rows = self._recomputed.rows()
        expected = content(rows, rows.columns, large=self._large)
        for storage, kept in self._kept.items():
            if content(kept.rows(), rows.columns, large=self._large) != expected:
                raise Inexact(f"the {self._name} in {storage} is not the join of its relations after {after}")


def _cold_told(kept: KeptJoin, refreshed: Refreshed, traffic: Traffic) -> dict[str, Any]:
    seconds = {**asdict(refreshed), "refresh": kept.seconds(refreshed)}
    told = {part: round(seconds[part], 4) for part in ("refresh", "catch_up", "follow", "commit")}
    return {
        "s": told,
        "commits": refreshed.commits,
        "rows asked of the sources": refreshed.rows_received,
        **traffic.told(),
    }


def _round(number: int, warm_ups: int) -> str:
    return f"round {number + 1 - warm_ups}" if number >= warm_ups else f"warm-up {number + 1}"


def progress(text: str) -> None:
    print(f"{time.strftime('%X')} {text}", file=sys.stderr, flush=True)
