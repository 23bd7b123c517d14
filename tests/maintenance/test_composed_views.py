"""Views that are any query, end to end: created over databases, followed, audited, reopened, replaced, dropped."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from viewkeeper import Warehouse
from viewkeeper.errors import DefinitionError, UnsupportedClause, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATEST = """CREATE MATERIALIZED VIEW latest AS
WITH ranked AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY cust ORDER BY day DESC, id DESC) AS place FROM shop.orders)
SELECT r.cust, r.total, p.name FROM ranked r LEFT JOIN crm.people p ON p.id = r.cust WHERE r.place = 1"""
IDLE = """CREATE MATERIALIZED VIEW idle AS
SELECT name FROM crm.people WHERE id NOT IN (SELECT cust FROM shop.orders WHERE cust IS NOT NULL)"""


def write(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)


@pytest.fixture
def databases(tmp_path: Path) -> Path:
    write(
        tmp_path / "shop.db",
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, cust BIGINT, day DATE, total DECIMAL(9,2))",
        "INSERT INTO orders VALUES (1, 1, '2024-01-01', 10), (2, 1, '2024-01-02', 20), (3, 2, '2024-01-01', 5)",
    )
    write(
        tmp_path / "crm.db",
        "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)",
        "INSERT INTO people VALUES (1, 'ada'), (2, 'bob'), (3, 'cyd')",
    )
    return tmp_path


@pytest.fixture
def warehouse(databases: Path, spark: "SparkSession") -> Iterator[Warehouse]:
    with Warehouse.open(databases / "warehouse", spark) as opened:
        opened.add_source("shop", f"sqlite:///{databases}/shop.db", install=True)
        opened.add_source("crm", f"sqlite:///{databases}/crm.db", install=True)
        yield opened


def rows(warehouse: Warehouse, view: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in warehouse.arrow(view).to_pylist()), key=str)


def test_two_databases(warehouse: Warehouse, databases: Path) -> None:
    warehouse.create_view(LATEST)
    warehouse.create_view(IDLE)
    assert [(cust, str(total), name) for cust, total, name in rows(warehouse, "latest")] == [
        (1, "20.00", "ada"),
        (2, "5.00", "bob"),
    ]
    assert rows(warehouse, "idle") == [("cyd",)]
    write(databases / "shop.db", "INSERT INTO orders VALUES (4, 3, '2024-02-01', 7)", "DELETE FROM orders WHERE id = 2")
    write(databases / "crm.db", "UPDATE people SET name = 'eve' WHERE id = 1", "DELETE FROM people WHERE id = 2")
    warehouse.catch_up()
    assert [(cust, str(total), name) for cust, total, name in rows(warehouse, "latest")] == [
        (1, "10.00", "eve"),
        (2, "5.00", None),
        (3, "7.00", "cyd"),
    ]
    assert rows(warehouse, "idle") == []
    assert warehouse.audit("latest").clean
    assert warehouse.audit("idle").clean


def test_followed_by_another_process(warehouse: Warehouse, databases: Path, spark: "SparkSession") -> None:
    warehouse.create_view(LATEST)
    write(databases / "shop.db", "INSERT INTO orders VALUES (4, 2, '2024-02-01', 7)")
    warehouse.close()
    with Warehouse.open(databases / "warehouse", spark) as again:
        again.catch_up()
        write(databases / "shop.db", "DELETE FROM orders WHERE id = 4")
        again.catch_up()
        assert again.audit("latest").clean
        assert [str(total) for _, total, _ in rows(again, "latest")] == ["20.00", "5.00"]


def test_complete(warehouse: Warehouse, databases: Path) -> None:
    """Each transaction has its own state."""
    warehouse.create_view(
        "CREATE MATERIALIZED VIEW n TBLPROPERTIES ('consistency' = 'complete') AS "
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT cust FROM shop.orders)"
    )
    first = next(iter(warehouse.status().views)).state
    write(databases / "shop.db", "INSERT INTO orders VALUES (4, 3, '2024-02-01', 7)")
    write(databases / "shop.db", "DELETE FROM orders WHERE cust = 1")
    write(databases / "shop.db", "DELETE FROM orders")
    warehouse.catch_up()
    seen = [warehouse.arrow("n", first + number)["n"].to_pylist() for number in range(4)]
    assert seen == [[2], [3], [2], [0]]


def test_over_views(warehouse: Warehouse, databases: Path) -> None:
    """A view of any query reads a view, which may be one of these itself, and tables beside it."""
    warehouse.create_view(LATEST)
    warehouse.create_view(
        "CREATE MATERIALIZED VIEW names AS "
        "SELECT name FROM latest UNION SELECT name FROM crm.people WHERE name LIKE 'c%'"
    )
    write(databases / "crm.db", "UPDATE people SET name = 'eve' WHERE id = 1")
    warehouse.catch_up()
    assert rows(warehouse, "names") == [("bob",), ("cyd",), ("eve",)]
    assert warehouse.audit("names").clean
    with pytest.raises(UsageError, match="view latest is read by names"):
        warehouse.drop_view("latest")


def test_read_by_a_join_and_by_a_summary(warehouse: Warehouse, databases: Path) -> None:
    """Whatever reads it follows it in the same states, also what was created as another kind of view."""
    warehouse.create_view(LATEST)
    warehouse.create_view("CREATE MATERIALIZED VIEW large AS SELECT cust, name FROM latest WHERE total > 8")
    warehouse.create_view(
        "CREATE MATERIALIZED VIEW totals AS SELECT name, SUM(total) AS total FROM latest GROUP BY name"
    )
    write(
        databases / "shop.db", "INSERT INTO orders VALUES (4, 2, '2024-02-01', 30)", "DELETE FROM orders WHERE id < 3"
    )
    warehouse.catch_up()
    assert rows(warehouse, "large") == [(2, "bob")]
    assert [(name, str(total)) for name, total in rows(warehouse, "totals")] == [("bob", "30.00")]
    assert all(warehouse.audit(view).clean for view in ("latest", "large", "totals"))


def test_replaced_and_reloaded(warehouse: Warehouse, databases: Path) -> None:
    warehouse.create_view(IDLE)
    warehouse.create_view(IDLE.replace("CREATE", "CREATE OR REPLACE", 1))
    other = IDLE.replace("SELECT name", "SELECT upper(name) AS name").replace("CREATE", "CREATE OR REPLACE", 1)
    warehouse.create_view(other)
    assert rows(warehouse, "idle") == [("CYD",)]
    write(databases / "shop.db", "DELETE FROM orders WHERE cust = 2")
    warehouse.reload("idle")
    assert rows(warehouse, "idle") == [("BOB",), ("CYD",)]
    warehouse.drop_view("idle")
    assert not list(warehouse.status().views)


def test_halted_when_a_column_is_gone(warehouse: Warehouse, databases: Path) -> None:
    warehouse.create_view(IDLE)
    warehouse.create_view("CREATE MATERIALIZED VIEW n AS SELECT cust FROM shop.orders ORDER BY cust LIMIT 2")
    write(databases / "crm.db", "ALTER TABLE people RENAME COLUMN name TO called")
    write(databases / "shop.db", "INSERT INTO orders VALUES (9, 0, '2024-02-01', 7)")
    warehouse.catch_up()
    assert rows(warehouse, "n") == [(0,), (1,)]
    halted = {view.view for view in warehouse.status().views if view.halted}
    assert halted == {"idle"}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT id, rand() AS r FROM shop.orders", "rand"),
        ("SELECT * FROM (SELECT nosuch FROM shop.orders)", "nosuch"),
        ("WITH c AS (SELECT id FROM shop.nosuch) SELECT id FROM c", "nosuch"),
        ("SELECT java_method('java.lang.System', 'exit', 1) AS x FROM shop.orders LIMIT 1", "java_method"),
    ],
)
def test_refused(query: str, said: str, warehouse: Warehouse) -> None:
    with pytest.raises(DefinitionError, match=said):
        warehouse.create_view(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert not list(warehouse.status().views)


def test_full(warehouse: Warehouse, databases: Path) -> None:
    """Spark computes the whole query again; the difference is its change."""
    full = LATEST.replace("latest AS", "latest TBLPROPERTIES ('refresh_policy' = 'full') AS")
    warehouse.create_view(full)
    write(databases / "shop.db", "INSERT INTO orders VALUES (4, 3, '2024-02-01', 7)")
    warehouse.catch_up()
    assert [cust for cust, _, _ in rows(warehouse, "latest")] == [1, 2, 3]
    assert warehouse.audit("latest").clean
    assert any("computed again by Spark" in line for line in warehouse.explain("latest").in_words.how)


def test_rows_that_cannot_be_stored(warehouse: Warehouse, databases: Path) -> None:
    """An operator would need rows without columns, or with maps: Spark computes the query as a whole."""
    warehouse.create_view(
        "CREATE MATERIALIZED VIEW v AS SELECT name FROM crm.people WHERE EXISTS (SELECT 1 FROM shop.orders)"
    )
    write(databases / "shop.db", "DELETE FROM orders")
    warehouse.catch_up()
    assert rows(warehouse, "v") == []
    write(databases / "shop.db", "INSERT INTO orders VALUES (4, 3, '2024-02-01', 7)")
    warehouse.catch_up()
    assert rows(warehouse, "v") == [("ada",), ("bob",), ("cyd",)]


def test_property_that_does_not_apply(warehouse: Warehouse) -> None:
    with pytest.raises(UnsupportedClause, match="the property algorithm does not apply to v"):
        warehouse.create_view(
            "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('algorithm' = 'sweep') AS SELECT id FROM shop.orders LIMIT 1"
        )


def test_explained(warehouse: Warehouse) -> None:
    before = warehouse.explain(LATEST)
    warehouse.create_view(LATEST)
    after = warehouse.explain("latest")
    assert (before.kind, after.kind) == ("query", "query")
    assert any("window over partitions" in line for line in after.in_words.how)
    assert any("left join" in line and "stored" in line for line in after.in_words.how)
