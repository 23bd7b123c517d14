"""A large transaction is columns from where it is captured to where it is committed."""

import sqlite3
import threading

import pytest

from viewkeeper import Warehouse
from viewkeeper.algebra import adaptive
from viewkeeper.algebra.arrow import ArrowZSet

ROWS = 2_500
JOINED = "SELECT o.id, o.amount, c.city FROM shop.orders o JOIN crm.customers c ON o.customer = c.id"
VIEWS = (
    f"CREATE MATERIALIZED VIEW sales AS {JOINED}",
    f"CREATE MATERIALIZED VIEW stored TBLPROPERTIES ('storage' = 'matview') AS {JOINED}",
    "CREATE MATERIALIZED VIEW by_city AS SELECT city, COUNT(*) AS n, SUM(amount) AS total FROM sales GROUP BY city",
)


def execute(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


@pytest.fixture
def lake(tmp_path, monkeypatch, spark):
    monkeypatch.setattr(adaptive, "FEW_ROWS", 50)
    execute(
        tmp_path / "shop.db",
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, amount DECIMAL(10, 2) NOT NULL)",
    )
    execute(
        tmp_path / "crm.db",
        "CREATE TABLE customers (id INTEGER PRIMARY KEY, city TEXT)",
        "INSERT INTO customers VALUES (0, 'Ulm'), (1, 'Bonn'), (2, NULL)",
    )
    with Warehouse.open(tmp_path / "lake", spark) as warehouse:
        for source in ("shop", "crm"):
            warehouse.add_source(source, f"sqlite:///{tmp_path / source}.db", install=True)
        for view in VIEWS:
            warehouse.create_view(view)
        yield warehouse, tmp_path / "shop.db"


def expected(path):
    """What the views hold, by SQLite."""
    connection = sqlite3.connect(path)
    connection.execute("ATTACH ? AS crm", (str(path.with_name("crm.db")),))
    joined = connection.execute(
        "SELECT o.id, o.amount, c.city FROM orders o JOIN crm.customers c ON o.customer = c.id"
    ).fetchall()
    connection.close()
    groups = {}
    for _, amount, city in joined:
        n, total = groups.get(city, (0, 0))
        groups[city] = n + 1, total + amount
    return sorted(joined), {(city, n, total) for city, (n, total) in groups.items()}


def shown(warehouse, view):
    return [tuple(row.values()) for row in warehouse.arrow(view).to_pylist()]


def test_it_stays_columns_until_it_is_committed(lake, monkeypatch):
    warehouse, path = lake
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) SELECT"
    execute(path, f"INSERT INTO orders {numbers} i, i % 4, i % 97 FROM n")
    as_rows = []
    weights = ArrowZSet.weights

    def watched(zset):
        if zset.size() > adaptive.FEW_ROWS:
            as_rows.append((threading.current_thread().name, zset))
        return weights(zset)

    monkeypatch.setattr(ArrowZSet, "weights", watched)
    monkeypatch.setattr(
        "viewkeeper.algebra.adaptive.Engines.on_spark", lambda *_: pytest.fail("a change was moved to Spark")
    )
    for change in (
        None,
        "UPDATE orders SET amount = amount + 1, customer = (customer + 1) % 4",
        f"DELETE FROM orders WHERE id > {ROWS} - 2200",
    ):
        if change is not None:
            execute(path, change)
        warehouse.catch_up()
        joined, groups = expected(path)
        assert sorted(shown(warehouse, "sales")) == joined
        assert sorted(shown(warehouse, "stored")) == joined
        assert set(shown(warehouse, "by_city")) == groups
    assert as_rows == []
