"""The retail warehouse that is measured: its summary tables brought up to date in every way that there is to compare.

    maintain      one commit: the changes appended to pos, propagated, all four tables refreshed and published
    propagate     the summary-deltas alone, on the driver and in Spark, with the lattice and each from the changes
    rematerialize the same commit with all four tables recomputed on the driver, each from the one above it
    recompute     all four tables in Spark, each from the one above it, and each from pos
    count         the counting algorithm: every group that is touched is deleted, and recomputed from pos

All but the first leave the warehouse as it is. Recomputation reads the Parquet files that pos was loaded from, without
any deltas to add up: nothing is easier to read.
"""

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from retail_data import Retail
from retail_views import FIGURE_1, recompute_each, recompute_with_lattice, recomputed_on_driver

from viewkeeper import Warehouse
from viewkeeper.maintenance.contents import frame_of_table
from viewkeeper.planner.summaries.lattice import Lattice
from viewkeeper.planner.summaries.naming import METRICS
from viewkeeper.summary.content import Content
from viewkeeper.summary.counting import counting_refresh
from viewkeeper.summary.derivation import Derivation
from viewkeeper.summary.plan import CHANGES, Plan
from viewkeeper.summary.propagate import Inputs, propagate
from viewkeeper.summary.propagate_arrow import ArrowInputs, propagate_arrow
from viewkeeper.summary.refresh import Refreshed

UPDATE, INSERTION = "update", "insertion"
WAYS_IN_SPARK = {"recompute_with_lattice": recompute_with_lattice, "recompute_each": recompute_each}
TYPES = {
    "storeID": "INT",
    "itemID": "INT",
    "date": "DATE",
    "city": "STRING",
    "region": "STRING",
    "category": "STRING",
    "EarliestSale": "DATE",
    "TotalCount": "BIGINT",
    "TotalQuantity": "BIGINT",
}
DECLARED = {
    "stores": {"key": ["storeID"], "hierarchy": ["storeID", "city", "region"]},
    "items": {"key": ["itemID"]},
}

Propagation = Callable[[], Mapping[str, pa.Table]]


class RetailWarehouse:
    """pos, stores, items and the four summary tables of figure 1, below one folder."""

    def __init__(self, retail: Retail, folder: Path) -> None:
        self.retail, self.spark, self._folder = retail, retail.spark, folder
        self._batches: Counter[str] = Counter()
        self._commits = 0
        start = time.perf_counter()
        self.plain = retail.write(folder / "plain")
        # No compaction by itself: it would fall into some rounds and not into others.
        self.warehouse = Warehouse.open(folder / "warehouse", spark=self.spark, compaction=None)
        with self.warehouse.commit() as commit:
            for name, rows in self.plain.items():
                commit.create(name, rows=rows, properties=DECLARED.get(name, {}), group="retail")
        self.load_seconds = time.perf_counter() - start
        # The tables that are rematerialized are in another, with a pos of its own.
        self._other = Warehouse.open(folder / "rematerialized", spark=self.spark, compaction=None)
        with self._other.commit() as commit:
            commit.create("pos", rows=self.plain["pos"], group="retail")
        self._rematerialized = 0
        start = time.perf_counter()
        names = {name: name for name in self.plain}
        # A view is known by a name of its own, in small letters.
        self.views = {
            name: self.warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {query.format(**names)}")
            for name, query in FIGURE_1.items()
        }
        self.create_seconds = time.perf_counter() - start
        self._summaries = self.warehouse._keeper.summaries

    @property
    def lattice(self) -> Lattice:
        return self._summaries.lattice_of(self.views["SID_sales"])

    def sizes(self) -> dict[str, int]:
        """The rows of all tables, those of the lattice that nobody sees included."""
        sizes = self._summaries.sizes()
        return {name: sizes[name] for name in (*self.plain, *self.lattice.tables)}

    def next_changes(self, kind: str, count: int) -> pa.Table:
        """Changes of one kind that were not made before."""
        batch = self._batches[kind]
        self._batches[kind] += 1
        make = {UPDATE: self.retail.update_generating, INSERTION: self.retail.insertion_generating}[kind]
        return make(count, batch=batch)

    # --- maintain ---

    def maintain(self, changes: pa.Table) -> dict[str, float]:
        """Commit the changes; the seconds of it all, and those of the two phases."""
        self._commits += 1
        _settle_disk()
        start = time.perf_counter()
        with self.warehouse.commit() as commit:
            commit.state("retail", {"load": f"{self._commits:09d}"}, {"pos": changes})
        seconds = time.perf_counter() - start
        told = self.warehouse.status().metrics.get(METRICS, {}).get(self.lattice.name, {})
        if told.get("decision") != "incremental":
            raise RuntimeError(f"the summary tables were not refreshed by summary-deltas: {told or 'they are halted'}")
        return {"commit": seconds, "propagate": told["propagate_seconds"], "refresh": told["refresh_seconds"]}

    # --- propagate ---

    def propagations(self, changes: pa.Table, *, in_spark: bool = True) -> dict[str, Propagation]:
        """The ways to the summary-deltas of changes that are not committed."""
        record = self._summaries.writer.last
        learned = self._summaries.learned(self.lattice, record)
        planned = self.lattice.lineage.plan(learned.expected(self._summaries.sizes())).edges
        direct = [self._from_changes(name) for name in self.lattice.nodes]
        contents, paths = self._summaries.contents, self.lattice.paths
        tables = {path: contents.table(view, record) for path, view in paths.items()}
        frames = {path: contents.frame(view, record) for path, view in paths.items()}
        # Tables as they are now are read where a dimension changes: here none does.
        now: Mapping[str, Any] = {}

        def on_driver(edges: Sequence[Derivation]) -> Mapping[str, pa.Table]:
            inputs = ArrowInputs(changes, now.__getitem__, old=tables, new=tables)
            # All groups of figure 1 are columns, and keep their types.
            return propagate_arrow(edges, inputs, types=lambda *_: None)

        def by_spark(edges: Sequence[Derivation]) -> Mapping[str, pa.Table]:
            inputs = Inputs(frame_of_table(self.spark, changes), now.__getitem__, old=frames, new=frames)
            return propagate(self.spark, Plan(tuple(edges), {}), inputs)

        ways: dict[str, Propagation] = {
            "propagate_on_driver": lambda: on_driver(planned),
            "propagate_on_driver_without_lattice": lambda: on_driver(direct),
        }
        if in_spark:
            ways["propagate_in_spark"] = lambda: by_spark(planned)
            ways["propagate_in_spark_without_lattice"] = lambda: by_spark(direct)
        return ways

    def _from_changes(self, name: str) -> Derivation:
        return next(edge for edge in self.lattice.lineage.ways(name) if edge.above.name == CHANGES)

    # --- recompute ---

    def rematerialize(self, changes: pa.Table) -> float:
        """The seconds of the same commit to another warehouse, with all four tables recomputed on the driver.

        What is read are the Parquet files that pos was loaded from, without any deltas to add up.
        """
        before, self._rematerialized = self._rematerialized, self._rematerialized + 1
        _settle_disk()
        start = time.perf_counter()
        made = recomputed_on_driver(self._folder / "plain")
        with self._other.commit() as commit:
            commit.state("retail", {"load": f"{self._rematerialized:09d}"}, {"pos": changes})
            for name, rows in made.items():
                new, columns = f"{name}_{self._rematerialized}".lower(), {one: TYPES[one] for one in rows.column_names}
                commit.create(new, columns, rows=rows, layout="rewritten", distinct=True)
                if before:
                    commit.drop(f"{name}_{before}".lower())
        return time.perf_counter() - start

    def recompute(self) -> dict[str, float]:
        """The seconds of recomputing all four tables in Spark and writing them, in both ways."""
        seconds = {}
        for way, run in WAYS_IN_SPARK.items():
            into = self._folder / way
            _settle_disk()
            seconds[way] = run(self.spark, self.plain, into)["total"]
            shutil.rmtree(into)
        return seconds

    # --- count ---

    def contents(self) -> dict[str, Content]:
        """The four tables as they are now; later commits do not change what is returned."""
        record = self._summaries.writer.last
        return {
            name: self._summaries.contents.content(table.definition, record)
            for name, table in self.lattice.visible.items()
        }

    def count(self, before: Mapping[str, Content], changes: pa.Table) -> dict[str, Refreshed]:
        """What the counting algorithm makes of the changes of the last commit, from the four tables before it."""
        frames = {path: self.warehouse.read(view) for path, view in self.lattice.paths.items()}
        nodes = [table.node for table in self.lattice.visible.values()]
        pos, changed = self.warehouse.read("pos"), frame_of_table(self.spark, changes)
        return counting_refresh(self.spark, nodes, self.lattice.fact, pos, changed, frames, before)

    # --- exactness ---

    def inexact(self) -> list[str]:
        """The summary tables that are not, row by row, what Spark computes from pos."""
        tables = {name: self.warehouse.read(name) for name in self.plain}
        return [
            name
            for name, query in FIGURE_1.items()
            if not _same_bag(self.warehouse.read(self.views[name]), self.spark.sql(query, None, **tables))
        ]

    def miscounted(self, counted: Mapping[str, Refreshed]) -> list[str]:
        """The summary tables in which the counting algorithm finds other rows than the last commit did."""
        now = self.contents()
        wrong = []
        for name, table in self.lattice.visible.items():
            keys, after = table.node.keys, counted[name].after
            found = now[name].find(keys, after.select(list(keys))).rows
            if not same_rows(found.select(after.column_names), after):
                wrong.append(name)
        return wrong


def _settle_disk() -> None:
    """Whoever waits for the disk does not wait for what another has written before it."""
    os.sync()


def _same_bag(one: DataFrame, other: DataFrame) -> bool:
    other = other.select(*one.columns)
    return one.exceptAll(other).isEmpty() and other.exceptAll(one).isEmpty()


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables have the same rows, in whatever order."""
    other = other.select(one.column_names).cast(one.schema)
    order = [(name, "ascending") for name in one.column_names]
    return one.sort_by(order).equals(other.sort_by(order))
