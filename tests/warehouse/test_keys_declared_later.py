"""A key that is declared when self-maintained views are there already, whose rows are found by numbers."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from viewkeeper import Warehouse
from viewkeeper.errors import UsageError
from viewkeeper.storage.self_maintained import STORAGES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOIN = "SELECT o.id, o.amount, p.name FROM shop.orders o JOIN shop.people p ON o.cust = p.id"
COUNTED = "SELECT name, COUNT(*) AS n FROM viewcache_v GROUP BY name"
VIEWS = tuple(f"{storage.replace('-', '_')}_v" for storage in STORAGES)


class Shop:
    """Orders and people without primary keys, and a warehouse with a view in every storage over both."""

    def __init__(self, folder: Path, connection: sqlite3.Connection, warehouse: Warehouse) -> None:
        self.url, self.connection, self.warehouse = f"sqlite:///{folder}/shop.db", connection, warehouse
        warehouse.add_source("shop", self.url, install=True)
        for view, storage in zip(VIEWS, STORAGES, strict=True):
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {view} TBLPROPERTIES('storage' = '{storage}') AS {JOIN}")
        warehouse.create_view("CREATE MATERIALIZED VIEW large AS SELECT id, name FROM viewcache_v WHERE amount > 6")
        warehouse.create_view(f"CREATE MATERIALIZED VIEW counted AS {COUNTED}")

    def write(self, number: int) -> None:
        """An order of Ann's comes and one goes, and an order of Bob's changes."""
        self.connection.execute("INSERT INTO orders VALUES (?, 1, 8)", (20 + number,))
        self.connection.execute("DELETE FROM orders WHERE id = ?", (10 + number,))
        self.connection.execute("UPDATE orders SET amount = amount + 1, cust = 2 WHERE id = 19")

    def rows(self, view: str) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(row.values()) for row in self.warehouse.arrow(view).to_pylist())

    def check(self) -> None:
        """Everything is as if it were recomputed."""
        joined = JOIN.replace("shop.", "")
        found = self.connection.execute(joined).fetchall()
        assert not any(view.halted for view in self.warehouse.status().views)
        for view in VIEWS:
            assert self.rows(view) == Counter(found), view
            assert self.warehouse.audit(view).clean, view
        assert self.rows("large") == Counter((id, name) for id, amount, name in found if amount > 6)
        assert self.rows("counted") == Counter(Counter(name for _, _, name in found).items())


@pytest.fixture
def shop(tmp_path: Path, spark: "SparkSession") -> Iterator[Shop]:
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as connection:
        connection.executescript(
            "CREATE TABLE people (id INTEGER, name TEXT);"
            "CREATE TABLE orders (id INTEGER, cust INTEGER, amount INTEGER);"
            "INSERT INTO people VALUES (1, 'Ann'), (2, 'Bob'), (2, 'Bob'), (3, 'Cy');"
            "INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7), (12, 2, 9), (13, 9, 1), (19, 2, 2)"
        )
        with Warehouse.open(tmp_path / "lake", spark) as warehouse:
            yield Shop(tmp_path, connection, warehouse)


def test_views_keep_their_numbers_until_they_are_reloaded(shop: Shop) -> None:
    shop.write(0)
    shop.warehouse.catch_up()
    shop.warehouse.add_source("shop", shop.url, keys={"orders": "id"})
    shop.write(1)
    shop.warehouse.catch_up()
    shop.check()
    # Altered where it is, one view still finds its rows; recreated, another has the key.
    shop.warehouse.create_view(
        "CREATE OR REPLACE MATERIALIZED VIEW matview_v TBLPROPERTIES('storage' = 'matview', 'retention' = '1 day') AS "
        + JOIN
    )
    shop.write(2)
    shop.warehouse.reload("viewcache_v")
    shop.write(3)
    shop.warehouse.catch_up()
    shop.check()


def test_views_over_a_view_that_is_reloaded_follow_it(tmp_path: Path) -> None:
    """Also if it was not halted, so that they were not either."""
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER)")
        with Warehouse.open(tmp_path / "lake") as warehouse:
            warehouse.add_source("shop", f"sqlite:///{tmp_path}/shop.db", install=True)
            warehouse.create_view("CREATE MATERIALIZED VIEW v AS SELECT o.id, o.amount FROM shop.orders o")
            warehouse.create_view("CREATE MATERIALIZED VIEW large AS SELECT id FROM v WHERE amount > 6")
            warehouse.create_view("CREATE MATERIALIZED VIEW largest AS SELECT id FROM large WHERE id > 1")
            connection.execute("INSERT INTO orders VALUES (1, 7), (2, 8), (3, 1)")
            warehouse.reload("v")
            assert [warehouse.arrow(view).num_rows for view in ("v", "large", "largest")] == [3, 2, 1]
            assert all(warehouse.audit(view).clean for view in ("v", "large", "largest"))


def test_a_join_that_finds_its_rows_by_another_key_is_halted(tmp_path: Path) -> None:
    """The keys of a Strobe view are stored with its rows."""
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as connection:
        connection.executescript("CREATE TABLE a (id INTEGER, k INTEGER); CREATE TABLE b (id INTEGER, k INTEGER)")
        connection.executescript("INSERT INTO a VALUES (1, 1), (2, 2); INSERT INTO b VALUES (1, 1), (2, 2)")
        url = f"sqlite:///{tmp_path}/shop.db"
        with Warehouse.open(tmp_path / "lake") as warehouse:
            warehouse.add_source("s", url, keys={"a": "id", "b": "id"}, install=True)
            warehouse.create_view(
                "CREATE MATERIALIZED VIEW v TBLPROPERTIES('algorithm' = 't-strobe') AS "
                "SELECT a.k FROM s.a JOIN s.b ON a.k = b.k"
            )
            warehouse.create_view("CREATE MATERIALIZED VIEW over AS SELECT k FROM v WHERE k > 1")
            warehouse.add_source("s", url, keys={"a": ["id", "k"]})
            connection.execute("INSERT INTO a VALUES (3, 2)")
            warehouse.catch_up()
            assert {one.view: one.halted is not None for one in warehouse.status().views} == {"v": True, "over": True}
            with pytest.raises(UsageError, match="reload v first"):
                warehouse.audit("over")
            for view in ("v", "over"):
                warehouse.reload(view)
            connection.execute("DELETE FROM a WHERE id = 2")
            warehouse.catch_up()
            assert not any(one.halted for one in warehouse.status().views)
            assert [sorted(warehouse.arrow(view)["k"].to_pylist()) for view in ("v", "over")] == [[1, 2], [2]]
            assert warehouse.audit("v").clean
