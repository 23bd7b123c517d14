"""Tables that are altered while views read them: what a view does not read is no concern of it, and what it reads and
is gone halts it alone, with the statement that fixes it."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from mariadb_server import PASSWORD, MariaDb
from postgres_server import PostgresServer
from three_databases import ThreeDatabases, three_databases

from viewkeeper.errors import UnknownName
from viewkeeper.mediator.report import Report
from viewkeeper.warehouse import Warehouse

AMOUNTS = "CREATE MATERIALIZED VIEW amounts AS SELECT o.id AS id, o.amount AS amount FROM shop.orders o"
CUSTOMERS = "CREATE MATERIALIZED VIEW customers AS SELECT o.id AS id, o.cust AS cust FROM shop.orders o"
ITEMS = "CREATE MATERIALIZED VIEW items AS SELECT l.id AS id, l.item AS item FROM shop.lines l"
NAMES = "CREATE MATERIALIZED VIEW names AS SELECT p.id AS id, p.name AS name FROM crm.people p"
REGIONS = "CREATE MATERIALIZED VIEW homes AS SELECT p.id AS id, p.region AS region FROM crm.people p"
PLACES = "CREATE MATERIALIZED VIEW places AS SELECT r.id AS id, r.name AS name FROM geo.regions r"
PER_CUSTOMER = """CREATE MATERIALIZED VIEW per_customer AS
    SELECT o.cust AS cust, COUNT(*) AS n FROM shop.orders o GROUP BY o.cust"""
PER_TAX = (
    "CREATE MATERIALIZED VIEW per_tax AS SELECT tax, COUNT(*) AS n, SUM(amount) AS amount FROM shop.orders GROUP BY tax"
)


@pytest.fixture
def databases(
    postgres_server: PostgresServer, mariadb: MariaDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ThreeDatabases]:
    monkeypatch.setenv("VIEWKEEPER_PASSWORD_CRM", PASSWORD)
    with three_databases(postgres_server, mariadb, tmp_path, "altered") as made:
        yield made


@pytest.fixture
def warehouse(databases: ThreeDatabases, tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "lake") as made:
        databases.add_to(made)
        yield made


def shop(databases: ThreeDatabases, *statements: str) -> None:
    with psycopg.connect(databases.urls["shop"], autocommit=True) as owner:
        for statement in statements:
            owner.execute(statement.encode())


def crm(databases: ThreeDatabases, *statements: str) -> None:
    with databases.mariadb.session("altered") as session:
        for statement in statements:
            session.execute(statement)


def geo(databases: ThreeDatabases, *statements: str) -> None:
    with closing(sqlite3.connect(databases.urls["geo"].removeprefix("sqlite:///"))) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def halted(warehouse: Warehouse) -> dict[str, str]:
    return {one.view: one.halted.reason for one in warehouse.status().views if one.halted}


EXPECTED = {
    "amounts": ("shop", "SELECT id, amount FROM orders"),
    "customers": ("shop", "SELECT id, cust FROM orders"),
    "items": ("shop", "SELECT id, item FROM lines"),
    "notes": ("shop", "SELECT id, note FROM orders"),
    "taxes": ("shop", "SELECT id, tag, tax FROM orders"),
    "per_customer": ("shop", "SELECT cust, COUNT(*) FROM orders GROUP BY cust"),
    "per_note": ("shop", "SELECT note, COUNT(*) FROM orders GROUP BY note"),
    "per_tax": ("shop", "SELECT tax, COUNT(*), SUM(amount) FROM orders GROUP BY tax"),
    "names": ("crm", "SELECT id, name FROM people"),
    "homes": ("crm", "SELECT id, region FROM people"),
    "ages": ("crm", "SELECT id, since FROM people"),
    "scores": ("crm", "SELECT id, score, debt FROM people"),
    "places": ("geo", "SELECT id, name FROM regions"),
    "sizes": ("geo", "SELECT id, size FROM regions"),
}


def rows_at(databases: ThreeDatabases, source: str, query: str) -> list[tuple[object, ...]]:
    if source == "shop":
        with psycopg.connect(databases.urls["shop"]) as connection:
            return connection.execute(query.encode()).fetchall()
    if source == "crm":
        with databases.mariadb.session("altered") as session:
            return [tuple(row) for row in session.execute(query)]
    with closing(sqlite3.connect(databases.urls["geo"].removeprefix("sqlite:///"))) as connection:
        return connection.execute(query).fetchall()


def all_right(databases: ThreeDatabases, warehouse: Warehouse, *views: str) -> None:
    """Each view is what its source gives now."""
    for view in views:
        shown = Counter(tuple(row.values()) for row in warehouse.arrow(view).to_pylist())
        assert shown == Counter(rows_at(databases, *EXPECTED[view])), view


def reopened(warehouse: Warehouse) -> Warehouse:
    """As the next process finds it."""
    warehouse.close()
    return Warehouse.open(warehouse.path)


def test_columns_that_are_added_halt_nothing_and_can_be_used(databases: ThreeDatabases, warehouse: Warehouse) -> None:
    views = ("amounts", "names", "places", "per_customer")
    for sql in (AMOUNTS, NAMES, PLACES, PER_CUSTOMER):
        warehouse.create_view(sql)
    shop(databases, "ALTER TABLE orders ADD COLUMN note text DEFAULT 'old', ADD COLUMN at money")
    crm(databases, "ALTER TABLE people ADD COLUMN since DATETIME(3), ADD COLUMN at TIME FIRST, ADD INDEX (name)")
    geo(databases, "ALTER TABLE regions ADD COLUMN size INTEGER", "ALTER TABLE regions ADD COLUMN odd POINT")

    def write(number: int) -> None:
        shop(databases, f"INSERT INTO orders (id, cust, amount, note) VALUES ({number}, 1, 5, 'new')")
        crm(databases, f"INSERT INTO people (id, name, region, since) VALUES ({number}, 'x', 1, '2024-01-01 10:00:00')")
        geo(databases, f"INSERT INTO regions (id, name, size) VALUES ({number}, 'y', 7)")

    write(800)
    warehouse.catch_up()
    assert not halted(warehouse)
    with reopened(warehouse) as again:
        write(801)
        again.catch_up()
        assert not halted(again)
        again.create_view("CREATE MATERIALIZED VIEW notes AS SELECT o.id AS id, o.note AS note FROM shop.orders o")
        again.create_view("CREATE MATERIALIZED VIEW ages AS SELECT p.id AS id, p.since AS since FROM crm.people p")
        again.create_view("CREATE MATERIALIZED VIEW sizes AS SELECT r.id AS id, r.size AS size FROM geo.regions r")
        again.create_view(
            "CREATE MATERIALIZED VIEW per_note AS SELECT o.note, COUNT(*) AS n FROM shop.orders o GROUP BY o.note"
        )
        write(802)
        again.catch_up()
        assert not halted(again)
    with reopened(warehouse) as last:
        write(803)
        last.catch_up()
        assert not halted(last)
        all_right(databases, last, *views, "notes", "ages", "sizes", "per_note")


@pytest.mark.parametrize("while_following", [True, False])
def test_a_column_that_is_gone_halts_the_views_that_read_it_alone(
    databases: ThreeDatabases, warehouse: Warehouse, while_following: bool
) -> None:
    for sql in (AMOUNTS, CUSTOMERS, NAMES, REGIONS, PLACES, PER_CUSTOMER):
        warehouse.create_view(sql)
    geo(databases, "ALTER TABLE regions ADD COLUMN size INTEGER")
    warehouse.create_view("CREATE MATERIALIZED VIEW sizes AS SELECT r.id AS id, r.size AS size FROM geo.regions r")
    warehouse.catch_up()
    if not while_following:
        warehouse = reopened(warehouse)
    shop(databases, "ALTER TABLE orders RENAME COLUMN amount TO price", "INSERT INTO orders VALUES (810, 1, 5)")
    crm(databases, "ALTER TABLE people DROP COLUMN name", "INSERT INTO people VALUES (810, 1)")
    geo(databases, "ALTER TABLE regions RENAME COLUMN size TO area", "INSERT INTO regions VALUES (810, 'z', 2)")
    with warehouse:
        warehouse.catch_up()
        told = halted(warehouse)
        assert set(told) == {"amounts", "names", "sizes"}
        for view, reason in told.items():
            assert f"viewkeeper reload {view}" in reason, reason
        with pytest.raises(UnknownName, match="amount"):
            warehouse.reload("amounts")
        # What is reloaded takes the table as it is: the others go on all the same.
        warehouse.reload("customers")
        shop(databases, "INSERT INTO orders VALUES (811, 2, 6)")
        warehouse.catch_up()
        assert set(halted(warehouse)) == {"amounts", "names", "sizes"}
        all_right(databases, warehouse, "customers", "homes", "places", "per_customer")
        shop(databases, "ALTER TABLE orders RENAME COLUMN price TO amount")
        crm(databases, "ALTER TABLE people ADD COLUMN name VARCHAR(50)")
        geo(databases, "ALTER TABLE regions RENAME COLUMN area TO size")
        for view in told:
            warehouse.reload(view)
        shop(databases, "INSERT INTO orders VALUES (812, 2, 6)")
        crm(databases, "INSERT INTO people (id, name, region) VALUES (812, 'w', 1)")
        geo(databases, "INSERT INTO regions VALUES (812, 'z', 2)")
        warehouse.catch_up()
        assert not halted(warehouse)
        all_right(databases, warehouse, "amounts", "customers", "names", "homes", "places", "sizes", "per_customer")


def test_widened_types_go_on(databases: ThreeDatabases, warehouse: Warehouse) -> None:
    crm(databases, "ALTER TABLE people ADD COLUMN score INT, ADD COLUMN debt DECIMAL(6, 2)")
    shop(databases, "ALTER TABLE orders ADD COLUMN tag varchar(3), ADD COLUMN tax numeric(6, 2)")
    for sql in (AMOUNTS, CUSTOMERS, NAMES, PER_CUSTOMER, PER_TAX):
        warehouse.create_view(sql)
    warehouse.create_view(
        "CREATE MATERIALIZED VIEW scores AS SELECT p.id AS id, p.score AS score, p.debt AS debt FROM crm.people p"
    )
    warehouse.create_view(
        "CREATE MATERIALIZED VIEW taxes AS SELECT o.id AS id, o.tag AS tag, o.tax AS tax FROM shop.orders o"
    )
    views = ("amounts", "customers", "names", "per_customer", "per_tax", "scores", "taxes")
    warehouse.catch_up()
    crm(
        databases,
        "ALTER TABLE people MODIFY score BIGINT, MODIFY debt DECIMAL(12, 3), MODIFY name VARCHAR(200)",
        f"INSERT INTO people (id, name, region, score, debt) VALUES (820, '{'n' * 150}', 1, 5, 1.5)",
    )
    shop(
        databases,
        "ALTER TABLE orders ALTER COLUMN tag TYPE varchar(30), ALTER COLUMN tax TYPE numeric(12, 2)",
        "INSERT INTO orders (id, cust, amount, tag, tax) VALUES (820, 1, 5, 'a longer tag', 12.5)",
    )
    warehouse.catch_up()
    assert not halted(warehouse)
    # Values that the old types do not hold: the views that read them get the new types by themselves.
    crm(databases, "INSERT INTO people (id, name, region, score, debt) VALUES (821, 'm', 1, 5000000000, 1234567.125)")
    shop(databases, "UPDATE orders SET tax = 1234567890.25 WHERE id = 820")
    shop(
        databases,
        "ALTER TABLE orders ALTER COLUMN amount TYPE bigint",
        "UPDATE orders SET amount = 5000000000 WHERE id = 1",
    )
    warehouse.catch_up()
    assert not halted(warehouse)
    with reopened(warehouse) as again:
        shop(databases, "UPDATE orders SET amount = 6000000000 WHERE id = 2")
        crm(databases, "UPDATE people SET score = 6000000000 WHERE id = 820")
        again.catch_up()
        assert not halted(again)
        all_right(databases, again, *views)


def test_a_run_computes_a_widened_view_again(databases: ThreeDatabases, warehouse: Warehouse) -> None:
    for sql in (AMOUNTS, PER_CUSTOMER, NAMES):
        warehouse.create_view(sql)
    shop(databases, "INSERT INTO orders VALUES (850, 1, 5)")
    reports: list[Report] = []
    steps = [
        # Each when the view shows what the one before has done.
        (850, ("ALTER TABLE orders ALTER COLUMN amount TYPE bigint", "INSERT INTO orders VALUES (851, 1, 5000000000)")),
        (851, ("INSERT INTO orders VALUES (852, 1, 6000000000)",)),
        (852, ()),
    ]

    def watch(report: Report) -> None:
        reports.append(report)
        with Warehouse.open(warehouse.path, read_only=True) as reader:
            ids = reader.arrow("amounts").to_pydict()["id"]
        if steps and steps[0][0] in ids:
            shop(databases, *steps.pop(0)[1])
        if not steps:
            warehouse.stop()

    warehouse.run(300, watch=watch)
    assert steps == [], reports[-1:]
    assert not halted(warehouse)
    assert str(warehouse.arrow("amounts").schema.field("amount").type) == "int64"
    all_right(databases, warehouse, "amounts", "per_customer", "names")
    # It stops for no other view, and goes on with all of them.
    crm(databases, "INSERT INTO people VALUES (850, 'after', 1)")
    warehouse.catch_up()
    all_right(databases, warehouse, "names")


def test_a_swapped_table_halts_the_views_over_it_alone(databases: ThreeDatabases, warehouse: Warehouse) -> None:
    for sql in (AMOUNTS, ITEMS, NAMES):
        warehouse.create_view(sql)
    shop(
        databases,
        "CREATE TABLE orders_new (LIKE orders INCLUDING ALL)",
        "INSERT INTO orders_new SELECT * FROM orders",
        "ALTER TABLE orders RENAME TO orders_old",
        "ALTER TABLE orders_new RENAME TO orders",
        "INSERT INTO lines VALUES (830, 1, 'after')",
    )
    warehouse.catch_up()
    with reopened(warehouse) as again:
        shop(databases, "INSERT INTO lines VALUES (831, 1, 'later')", "INSERT INTO orders VALUES (831, 1, 9)")
        again.catch_up()
        told = halted(again)
        assert set(told) == {"amounts"}
        assert "viewkeeper reload amounts" in told["amounts"]
        all_right(databases, again, "items", "names")
        again.reload("amounts")
        shop(databases, "INSERT INTO orders VALUES (832, 1, 9)", "INSERT INTO lines VALUES (832, 1, 'last')")
        again.catch_up()
        assert not halted(again)
        all_right(databases, again, "amounts", "items", "names")


def test_a_wrong_replica_identity_halts_the_views_over_its_table_alone_and_a_reload_mends_it(
    databases: ThreeDatabases, warehouse: Warehouse
) -> None:
    for sql in (AMOUNTS, ITEMS, NAMES):
        warehouse.create_view(sql)
    shop(
        databases,
        "ALTER TABLE orders REPLICA IDENTITY DEFAULT",
        "UPDATE orders SET amount = amount + 1",
        "INSERT INTO lines VALUES (840, 1, 'after')",
    )
    with reopened(warehouse) as again:
        again.catch_up()
        assert set(halted(again)) == {"amounts"}
        all_right(databases, again, "items", "names")
        again.reload("amounts")
        for number in (841, 842):
            shop(databases, f"UPDATE orders SET amount = {number}", f"INSERT INTO lines VALUES ({number}, 1, 'on')")
            again.catch_up()
            assert not halted(again)
        all_right(databases, again, "amounts", "items", "names")
