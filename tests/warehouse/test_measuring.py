"""What keeping views fresh has cost, beside recomputing them."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from viewkeeper import Warehouse
from viewkeeper.cli.bench import _verdict
from viewkeeper.cli.main import viewkeeper
from viewkeeper.errors import UnknownView
from viewkeeper.lake.log.catalog import Definition, Layout
from viewkeeper.lake.log.record import Record
from viewkeeper.planner.refreshes import refreshes_of
from viewkeeper.serving.measuring.bench import ViewBench
from viewkeeper.serving.measuring.recompute import Recomputed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def record(commit: int, **metrics: Any) -> Record:
    return Record(commit, "", "w", 0, metrics=metrics)


def refreshed(group: str, transactions: int, queries: int, seconds: float) -> Mapping[str, Any]:
    return {group: {"transactions": transactions, "states": 1, "queries": queries, "seconds": seconds}}


def definition(**properties: Any) -> Definition:
    return Definition("v", "views/v", "g", Layout.APPENDED, (("n", "BIGINT"),), 1, properties=properties)


# --- what the commits tell ---


def test_the_refreshes_of_a_group_since_the_view_was_created() -> None:
    records = [
        record(1, refreshes=refreshed("g", 100, 100, 50.0)),
        record(2, refreshes=refreshed("g", 1, 2, 0.3)),
        record(3, refreshes=refreshed("other", 9, 9, 9.0)),
        record(4, refreshes=refreshed("g", 3, 4, 0.1)),
        record(5, compacted="v"),
        record(6, refreshes=refreshed("g", 0, 0, 0.2)),
    ]
    told = refreshes_of(definition(), records)
    assert told.seconds == (0.3, 0.1, 0.2)
    assert (told.typical, told.updates, told.queries_per_update) == (0.2, 4, 1.5)


def test_a_view_without_a_refresh_has_no_figures() -> None:
    told = refreshes_of(definition(), [record(2)])
    assert (told.typical, told.queries_per_update, told.updates) == (None, None, 0)


def test_a_continuous_summary_is_refreshed_with_its_facts() -> None:
    summary = {"facts": {"core": "g feed"}}
    own = {"changes": 2, "propagate_seconds": 0.25, "refresh_seconds": 0.125}
    records = [
        record(2, refreshes=refreshed("g feed", 2, 0, 0.5), summaries={"g": own}),
        record(3, refreshes=refreshed("g feed", 7, 7, 9.0), summaries={"another": own}),
        record(4, refreshes=refreshed("g feed", 1, 1, 9.0)),
    ]
    told = refreshes_of(definition(summary=summary), records)
    assert (told.seconds, told.own_seconds, told.updates, told.queries) == ((0.5,), (0.375,), 2, 0)
    assert refreshes_of(definition(summary=summary), records[1:]).typical is None


def test_a_propagation_counts_with_the_refresh_that_follows() -> None:
    deferred = definition(summary={"facts": {"core": "g feed"}}, refresh="manual")
    records = [
        record(2, summaries={"g": {"changes": 10, "propagate_seconds": 0.5}}),
        record(3, summaries={"g": {"changes": 2, "propagate_seconds": 0.25, "refresh_seconds": 0.25}}),
        record(4, summaries={"g": {"changes": 9, "recompute_seconds": 2.0}}),
    ]
    told = refreshes_of(deferred, records)
    assert told.seconds == (1.0, 2.0)
    assert (told.updates, told.queries_per_update) == (21, None)


# --- what it means ---


@pytest.mark.parametrize(
    ("refresh", "recompute", "told"),
    [
        (0.1, Recomputed(1.5, 0.5, 1000), "a recompute takes 20 times as long as a typical refresh"),
        (1.0, Recomputed(0.6, 0.4, 1000), "a recompute takes about as long as a typical refresh"),
        (8.0, Recomputed(1.0, 1.0, 1000), "a recompute is 4 times faster than a typical refresh"),
        (None, Recomputed(1.0, 1.0, 1000), "no refresh was measured yet"),
        (0.1, None, "not recomputed: it is away"),
    ],
)
def test_the_verdict_says_which_is_faster(refresh: float | None, recompute: Recomputed | None, told: str) -> None:
    why = "it is away" if recompute is None else None
    assert _verdict(ViewBench("v", 1, 1, 1, 1, None, refresh, refresh, recompute, why)).startswith(told)


# --- over a warehouse ---


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two databases, a join over both, and two updates after its load."""
    folder = tmp_path_factory.mktemp("measured")
    with (
        closing(sqlite3.connect(folder / "shop.db")) as shop,
        closing(sqlite3.connect(folder / "crm.db")) as crm,
        Warehouse.open(folder / "lake") as warehouse,
    ):
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER)")
        shop.executemany("INSERT INTO orders VALUES (?, ?, ?)", ((n, n % 10, n) for n in range(100)))
        shop.commit()
        crm.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
        crm.executemany("INSERT INTO people VALUES (?, ?)", ((n, f"name {n}") for n in range(10)))
        crm.commit()
        for name in ("shop", "crm"):
            warehouse.add_source(name, f"sqlite:///{folder / name}.db", install=True)
        warehouse.create_view(
            "CREATE MATERIALIZED VIEW named AS"
            " SELECT o.id, p.name FROM shop.orders o JOIN crm.people AS p ON o.customer = p.id"
        )
        for number in (200, 201):
            shop.execute("INSERT INTO orders VALUES (?, 3, 1)", (number,))
            shop.commit()
            warehouse.catch_up()
    return folder / "lake"


def test_commits_remember_what_the_views_took(lake: Path) -> None:
    with Warehouse.open(lake, read_only=True) as warehouse:
        (found,) = warehouse.bench(recompute=False)
    assert (found.view, found.rows, found.states) == ("named", 102, 3)
    assert (found.refreshes, found.updates) == (2, 2)
    assert found.queries_per_update is not None
    assert found.refresh_seconds is not None
    assert (found.recompute, found.times) == (None, None)


def test_a_view_that_is_not_there(lake: Path) -> None:
    with Warehouse.open(lake, read_only=True) as warehouse, pytest.raises(UnknownView):
        warehouse.bench("nmaed")


def test_every_kind_of_view_is_recomputed(spark: "SparkSession", tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop:
        shop.executescript(
            "CREATE TABLE stores (storeID INTEGER PRIMARY KEY, city TEXT);"
            "CREATE TABLE sales (id INTEGER PRIMARY KEY, storeID INTEGER, qty INTEGER);"
            "INSERT INTO stores VALUES (1, 'Bern'), (2, 'Basel');"
            "INSERT INTO sales VALUES (1, 1, 3), (2, 1, 4), (3, 9, 7);"
        )
    with Warehouse.open(tmp_path / "lake", spark) as warehouse:
        warehouse.add_source("shop", f"sqlite:///{tmp_path / 'shop.db'}", install=True)
        for text in (
            "by_city AS SELECT city, SUM(qty) AS q FROM shop.sales JOIN shop.stores USING (storeID) GROUP BY city",
            "all_sales AS SELECT s.id, t.city FROM shop.sales s LEFT JOIN shop.stores t ON s.storeID = t.storeID",
            "sold AS SELECT sales.id FROM shop.sales WHERE sales.qty > 3",
            "much AS SELECT id FROM sold WHERE id > 1",
            "how_many AS SELECT COUNT(*) AS n FROM sold",
        ):
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {text}")
        # A state of the view that how_many is over, and none of how_many: it sold too little.
        with closing(sqlite3.connect(tmp_path / "shop.db")) as shop, shop:
            shop.execute("INSERT INTO sales VALUES (4, 1, 1)")
        warehouse.catch_up()
        found = {one.view: one for one in warehouse.bench()}
    assert {name: one.not_recomputed for name, one in found.items()} == dict.fromkeys(found)
    read = {name: one.recompute.rows_read for name, one in found.items() if one.recompute is not None}
    assert read == {"by_city": 6, "all_sales": 6, "sold": 4, "much": 2, "how_many": 2}
    assert {name: one.refreshes for name, one in found.items()} == {
        "by_city": 1,
        "all_sales": 1,
        "sold": 1,
        "much": 1,
        "how_many": 0,
    }


def test_beside_a_recompute(spark: "SparkSession", lake: Path) -> None:
    before = {path for path in lake.rglob("*") if path.is_file()}
    # Beside a writer: no lock is taken.
    with Warehouse.open(lake):
        done = CliRunner().invoke(viewkeeper, ["bench", "-w", str(lake), "--json"], catch_exceptions=False)
    (told,) = json.loads(done.stdout)["views"]
    assert told["recompute"]["rows_read"] == 102 + 10
    assert told["recompute_seconds"] == sum(told["recompute"][f"{part}_seconds"] for part in ("read", "compute"))
    assert told["times"] == told["recompute_seconds"] / told["refresh_seconds"]
    assert {path for path in lake.rglob("*") if path.is_file()} == before
    shown = CliRunner().invoke(viewkeeper, ["bench", "named", "-w", str(lake)], catch_exceptions=False).stdout
    assert "named: a recompute" in shown
    assert "to read 112 rows" in shown
