"""The life of a self-maintained view: created, joined by others, audited, reloaded, dropped; and what is refused."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from viewkeeper import Warehouse
from viewkeeper.errors import DefinitionError, UnknownView, UnsupportedClause, UsageError
from viewkeeper.maintenance import collected_rows as collected
from viewkeeper.maintenance.self_maintained import first_structures
from viewkeeper.maintenance.self_maintained.in_spark import InSpark
from viewkeeper.maintenance.self_maintained.views import SelfMaintainedViews
from viewkeeper.mediator.report import Report
from viewkeeper.storage.self_maintained import STORAGES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOIN = "SELECT o.id, o.amount, p.name FROM shop.orders o JOIN shop.people p ON o.cust = p.id"


class Shop:
    """A database of orders and people, and a warehouse over it."""

    def __init__(self, folder: Path, connection: sqlite3.Connection, warehouse: Warehouse) -> None:
        self.folder, self.connection, self.warehouse = folder, connection, warehouse

    def does(self, sql: str, *values: object) -> None:
        self.connection.execute(sql, values)
        self.connection.commit()

    def create(self, name: str = "v", select: str = JOIN, **properties: str) -> str:
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        return self.warehouse.create_view(
            f"CREATE MATERIALIZED VIEW {name} {f'TBLPROPERTIES ({listed})' if listed else ''} AS {select}"
        )

    def rows(self, view: str = "v") -> Counter[tuple[Any, ...]]:
        return Counter(tuple(row) for row in self.warehouse.read(view).collect())


@pytest.fixture
def shop(tmp_path: Path, spark: "SparkSession") -> Iterator[Shop]:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.executescript(
            "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT);"
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, cust INTEGER, amount INTEGER);"
            "INSERT INTO people VALUES (1, 'Ann'), (2, 'Bob'), (3, 'Cy');"
            "INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7), (12, 2, 9), (13, 9, 1)"
        )
        connection.commit()
        with Warehouse.open(tmp_path / "lake", spark) as warehouse:
            warehouse.add_source("shop", f"sqlite:///{tmp_path / 'shop.db'}", install=True)
            yield Shop(tmp_path, connection, warehouse)


def test_summaries_and_views_stand_on_it(shop: Shop) -> None:
    shop.create(storage="viewcache")
    shop.create("by_name", "SELECT name, COUNT(*) AS n, SUM(amount) AS total FROM v GROUP BY name")
    shop.create("large", "SELECT id, name FROM v WHERE amount > 6")
    shop.does("INSERT INTO orders VALUES (14, 3, 8)")
    shop.does("UPDATE people SET name = 'Anna' WHERE id = 1")
    shop.does("DELETE FROM people WHERE id = 2")
    shop.warehouse.catch_up()
    assert shop.rows() == Counter([(10, 5, "Anna"), (11, 7, "Anna"), (14, 8, "Cy")])
    assert shop.rows("by_name") == Counter([("Anna", 2, 12), ("Cy", 1, 8)])
    assert shop.rows("large") == Counter([(11, "Anna"), (14, "Cy")])
    for view in ("v", "by_name", "large"):
        assert shop.warehouse.audit(view).clean
    with pytest.raises(UsageError, match="read by by_name, large"):
        shop.warehouse.drop_view("v")


def test_an_outer_join_needs_no_property(shop: Shop) -> None:
    shop.create(select="SELECT p.name, o.amount FROM shop.people p LEFT JOIN shop.orders o ON o.cust = p.id")
    assert shop.rows() == Counter([("Ann", 5), ("Ann", 7), ("Bob", 9), ("Cy", None)])
    shop.does("DELETE FROM orders WHERE id = 12")
    shop.does("INSERT INTO orders VALUES (15, 3, 2)")
    shop.warehouse.catch_up()
    assert shop.rows() == Counter([("Ann", 5), ("Ann", 7), ("Bob", None), ("Cy", 2)])
    assert shop.warehouse.audit("v").clean


@pytest.mark.parametrize("storage", STORAGES)
def test_dropping_leaves_nothing(shop: Shop, storage: str) -> None:
    shop.create(storage=storage)
    assert shop.warehouse.status().hidden
    shop.warehouse.drop_view("v")
    status = shop.warehouse.status()
    assert (status.views, status.hidden) == ((), ())
    shop.create(storage=storage)
    assert shop.warehouse.audit("v").clean


@pytest.fixture
def large(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """As if its few rows were many."""
    monkeypatch.setattr(collected, "MOST_ROWS", 2)
    shop.warehouse._keeper.engines.most_rows = 2
    shop.warehouse._keeper.engines.most_bytes = 0
    return shop


@pytest.mark.parametrize("storage", ["outerjoin", "partial-operand"])
def test_large_relations_are_joined_in_arrow(large: Shop, storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored first is what Spark, which audits it, computes."""
    monkeypatch.delattr(SelfMaintainedViews, "computed")
    large.does("INSERT INTO orders VALUES (15, NULL, 9)")
    large.create(storage=storage)
    monkeypatch.undo()
    large.does("INSERT INTO orders VALUES (14, 3, 8)")
    large.does("DELETE FROM people WHERE id = 2")
    large.warehouse.catch_up()
    assert large.rows() == Counter([(10, 5, "Ann"), (11, 7, "Ann"), (14, 8, "Cy")])
    assert large.warehouse.audit("v").clean


@pytest.mark.parametrize(
    ("limit", "low", "enough"), [("MOST_READ", 6, 7), ("MOST_JOINED", 3, 4), ("MOST_BYTES", 100, 1_000)]
)
def test_very_large_relations_are_joined_in_spark(
    large: Shop, limit: str, low: int, enough: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spark(*_: object) -> None:
        raise UsageError("this is for Spark", "")

    monkeypatch.setattr(SelfMaintainedViews, "computed", spark)
    monkeypatch.setattr(first_structures, limit, low)
    with pytest.raises(UsageError, match="this is for Spark"):
        large.create(storage="matview")
    monkeypatch.setattr(first_structures, limit, enough)
    large.create(storage="matview")


@pytest.mark.parametrize("storage", ["outerjoin", "viewcache"])
def test_what_only_spark_shows_is_left_to_those_who_read(
    shop: Shop, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.create(select=JOIN.replace("p.name", "soundex(p.name) AS sound"), storage=storage)
    refreshes: list[str] = []
    in_spark = InSpark.refresh

    def noted(refresh: InSpark, *given: Any) -> Any:
        refreshes.append(storage)
        return in_spark(refresh, *given)

    monkeypatch.setattr(InSpark, "refresh", noted)
    shop.does("INSERT INTO orders VALUES (14, 3, 8)")
    shop.warehouse.catch_up()
    assert refreshes == []
    assert shop.rows()[14, 8, "C000"] == 1
    # A summary follows what the view shows.
    shop.create("n", "SELECT sound, COUNT(*) AS n FROM v GROUP BY sound")
    shop.does("INSERT INTO orders VALUES (15, 3, 9)")
    shop.warehouse.catch_up()
    assert refreshes == [storage]
    assert shop.rows("n")["C000", 2] == 1


def test_an_audit_finds_a_structure_that_is_wrong_and_a_reload_mends_it(shop: Shop) -> None:
    shop.create(storage="matview")
    shop.create("n", "SELECT COUNT(*) AS n FROM v")
    kept = shop.warehouse._keeper.self_maintained.views()["v"]
    alone, joined = kept.table_of("left 1"), kept.table_of("joined 1")
    stored = shop.warehouse._keeper.stored
    vector = shop.warehouse.states("v")[-1].vector
    with shop.warehouse.commit() as commit:
        commit.state("v", vector, {alone: -stored(alone)})
    audit = shop.warehouse.audit("v")
    assert (audit.clean, audit.missing, audit.structures) == (False, (), (alone,))
    with shop.warehouse.commit() as commit:
        commit.state("v", vector, {joined: -stored(joined)})
    assert len(shop.warehouse.audit("v").missing) == 3
    counted = shop.warehouse.audit("n")
    assert (counted.clean, counted.below) == (False, ("v",)), "it is not what the sources give"
    shop.warehouse.reload("v")
    assert shop.warehouse.audit("v").clean
    shop.does("INSERT INTO people VALUES (9, 'Di')")
    shop.warehouse.catch_up()
    assert shop.rows()[13, 1, "Di"] == 1
    assert shop.warehouse.audit("v").clean


def test_a_table_that_lost_a_column_halts_it_and_says_so(shop: Shop) -> None:
    shop.create(storage="partial-join")
    shop.does("ALTER TABLE people RENAME COLUMN name TO called")
    shop.does("INSERT INTO people VALUES (9, 'Di')")
    reports: list[Report] = []
    shop.warehouse.catch_up(watch=reports.append)
    # That the rows come through a feed of its own is nobody's business.
    assert list(reports[-1].halted) == ["v"]
    assert shop.warehouse.status().halted == reports[-1].halted
    assert reports[-1].halted["v"].startswith("shop.people")
    shop.does("ALTER TABLE people RENAME COLUMN called TO name")
    shop.warehouse.reload("v")
    assert shop.warehouse.status().views[0].halted is None
    assert shop.rows()[13, 1, "Di"] == 1


@pytest.mark.parametrize("storage", ["remote", "viewcache"])
def test_a_summary_over_a_halted_view_waits_for_it(shop: Shop, storage: str) -> None:
    shop.create(storage=storage)
    shop.create("total", "SELECT name, COUNT(*) AS n FROM v GROUP BY name")
    shop.does("ALTER TABLE people RENAME COLUMN name TO called")
    shop.does("INSERT INTO people VALUES (9, 'Di')")
    shop.warehouse.catch_up()
    assert "v" in shop.warehouse.status().halted
    with pytest.raises(UsageError, match="reload v first"):
        shop.warehouse.reload("total")
    assert "v" in shop.warehouse.status().halted, "it still misses Di"
    shop.does("ALTER TABLE people RENAME COLUMN called TO name")
    shop.warehouse.reload("v")
    shop.warehouse.reload("total")
    assert shop.warehouse.status().halted == {}
    shop.does("INSERT INTO orders VALUES (20, 9, 5)")
    shop.warehouse.catch_up()
    assert all(audit.clean for audit in shop.warehouse.audits("v", "total"))
    assert shop.rows()[20, 5, "Di"] == 1


def test_what_is_stored_for_a_view_comes_and_goes_with_it(shop: Shop) -> None:
    shop.create(storage="matview")
    hidden = [table.view for table in shop.warehouse.status().hidden]
    assert len(hidden) == 5
    for table in hidden:
        for work in (shop.warehouse.reload, shop.warehouse.audit, shop.warehouse.drop_view):
            with pytest.raises(UnknownView, match="it has: v"):
                work(table)
    assert shop.warehouse.audit("v").clean
    shop.warehouse.drop_view("v")
    assert shop.warehouse.status().hidden == ()


def test_two_views_of_a_group_have_one_vector(shop: Shop) -> None:
    shop.create(storage="viewcache", group="both")
    shop.does("INSERT INTO orders VALUES (16, 3, 3)")
    shop.create("w", "SELECT p.name, o.id FROM shop.people p LEFT JOIN shop.orders o ON o.cust = p.id", group="both")
    shop.does("INSERT INTO orders VALUES (17, 2, 4)")
    shop.warehouse.catch_up()
    first, second = (view for view in shop.warehouse.status().views)
    assert (first.group, first.state, first.vector) == (second.group, second.state, second.vector)
    assert shop.rows("w")["Bob", 17] == 1
    assert shop.warehouse.audit("v").clean
    assert shop.warehouse.audit("w").clean


@pytest.mark.parametrize(
    ("select", "properties", "told"),
    [
        (JOIN, {"storage": "cache"}, "storage of v is 'cache'"),
        (JOIN, {"storage": "viewcache", "algorithm": "sweep"}, "the property algorithm does not apply to v"),
        (JOIN.replace("=", "<"), {"storage": "matview"}, "no equality of columns joins p"),
        ("SELECT id FROM shop.orders", {"storage": "viewcache"}, "v is over one table"),
        (
            "SELECT p.name FROM shop.people p LEFT JOIN shop.orders o ON o.cust = p.id",
            {"storage": "viewcache"},
            "the storage viewcache keeps inner joins",
        ),
        (
            "SELECT p.name FROM shop.people p LEFT JOIN shop.orders o ON o.cust = p.id",
            {"storage": "remote"},
            "only what is stored for it can maintain it",
        ),
    ],
)
def test_what_is_refused(shop: Shop, select: str, properties: dict[str, str], told: str) -> None:
    with pytest.raises((DefinitionError, UnsupportedClause)) as refused:
        shop.create(select=select, **properties)
    assert told in refused.value.detail
    assert shop.warehouse.views == ()
