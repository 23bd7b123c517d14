"""A small shop for tests of summaries: sales, stores, and lattices over them, all on the driver."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from summary_engines import no_spark

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.maintenance.contents import read_rows
from viewkeeper.messages import position
from viewkeeper.serving.snapshot import Snapshot
from viewkeeper.warehouse import Warehouse

SALES = {"store": "INT", "item": "STRING", "qty": "INT"}
STORES = {"id": "INT", "city": "STRING"}
VIEWS = {
    "by_store_and_item": "SELECT store, item, COUNT(*) AS n, SUM(qty) AS total FROM sales GROUP BY store, item",
    "by_city": (
        "SELECT city, COUNT(*) AS n, SUM(qty) AS total, MIN(qty) AS least FROM sales JOIN stores ON store = id "
        "GROUP BY city"
    ),
    "of_all": "SELECT COUNT(*) AS n, SUM(qty) AS total FROM sales",
}
Sale = tuple[int, str, int | None]


def sales(*rows: Sale) -> MemoryZSet:
    return MemoryZSet.of(tuple(SALES), *rows)


def stores(*rows: tuple[int, str]) -> MemoryZSet:
    return MemoryZSet.of(tuple(STORES), *rows)


def open_shop(folder: Path, first: MemoryZSet, known: MemoryZSet, spark: Callable[[], Any] = no_spark) -> Warehouse:
    """A warehouse with sales and stores, and no summaries yet."""
    wh = Warehouse.open(folder, spark, compaction=None)
    with wh.commit() as commit:
        at = {"load": position(0)}
        commit.create("sales", SALES, rows=first, vector=at)
        commit.create("stores", STORES, rows=known, vector=at, properties={"key": ["id"]})
    return wh


def create_views(wh: Warehouse, suffix: str = "", **properties: str) -> None:
    told = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    for name, sql in VIEWS.items():
        wh.create_view(f"CREATE MATERIALIZED VIEW {name}{suffix}{f' TBLPROPERTIES ({told})' if told else ''} AS {sql}")


def sell(wh: Warehouse, number: int, change: MemoryZSet, moved: MemoryZSet | None = None) -> None:
    """Commit changes of sales, and perhaps of stores, as the state of this number."""
    with wh.commit() as commit:
        changes = {"sales": change} if moved is None else {"sales": change, "stores": moved}
        commit.state("main", {"load": position(number)}, changes)


def rows_in(snapshot: Snapshot, name: str) -> pa.Table:
    """The stored rows of a table as a snapshot has them, without a job of Spark."""
    return read_rows(snapshot._files, snapshot.catalog[name], snapshot.record)


def total_of(snapshot: Snapshot, name: str) -> tuple[int, int]:
    """COUNT(*) and SUM(qty) over all groups of a table."""
    rows = rows_in(snapshot, name)
    return pc.sum(rows["n"]).as_py() or 0, pc.sum(rows["total"]).as_py() or 0
