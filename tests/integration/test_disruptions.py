"""What a stream cannot tell halts the views that it concerns and says why; the others go on, and reload fixes it."""

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pymysql
import pytest
from mariadb_server import PASSWORD, MariaDb, Session
from postgres_server import PostgresServer
from three_databases import ThreeDatabases, three_databases

from viewkeeper.errors import (
    BadSourceUrl,
    DefinitionError,
    SourceUnfit,
    UnknownName,
    UnknownTable,
    UnsupportedType,
    UsageError,
    ViewkeeperError,
)
from viewkeeper.warehouse import Warehouse

BIG = """CREATE MATERIALIZED VIEW big AS SELECT o.id AS id, o.amount AS amount, p.name AS name
    FROM shop.orders o JOIN crm.people p ON o.cust = p.id"""
LINES = "CREATE MATERIALIZED VIEW items AS SELECT l.id AS id, l.item AS item FROM shop.lines l"
NAMES = "CREATE MATERIALIZED VIEW names AS SELECT p.id AS id, p.name AS name FROM crm.people p"
PLACES = "CREATE MATERIALIZED VIEW places AS SELECT r.id AS id, r.name AS name FROM geo.regions r"


@pytest.fixture
def databases(postgres_server: PostgresServer, mariadb: MariaDb, tmp_path: Path) -> Iterator[ThreeDatabases]:
    with three_databases(postgres_server, mariadb, tmp_path, "disruptions") as made:
        yield made


@pytest.fixture
def warehouse(databases: ThreeDatabases, tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "lake") as made:
        databases.add_to(made)
        for sql in (BIG, LINES, NAMES, PLACES):
            made.create_view(sql)
        yield made


def shop(databases: ThreeDatabases, *statements: str) -> None:
    with psycopg.connect(databases.urls["shop"], autocommit=True) as owner:
        for statement in statements:
            owner.execute(statement.encode())


def halted(warehouse: Warehouse) -> dict[str, str]:
    return {one.view: one.halted.reason for one in warehouse.status().views if one.halted}


def all_clean(warehouse: Warehouse, *views: str) -> None:
    for view in views:
        audit = warehouse.audit(view)
        assert audit.clean, audit


def test_a_truncated_table_halts_its_view_alone(databases: ThreeDatabases, warehouse: Warehouse) -> None:
    shop(databases, "TRUNCATE orders", "INSERT INTO lines VALUES (900, 1, 'after')")
    warehouse.catch_up()
    assert set(halted(warehouse)) == {"big"}
    assert "truncate" in halted(warehouse)["big"].lower()
    all_clean(warehouse, "items", "names", "places")
    warehouse.reload("big")
    assert not halted(warehouse)
    shop(databases, "INSERT INTO orders VALUES (901, 3, 77)")
    warehouse.catch_up()
    all_clean(warehouse, "big", "items", "names", "places")
    assert warehouse.audit("big").rows == 1


def test_a_dropped_column_halts_its_view_and_a_reload_says_what_is_missing(
    databases: ThreeDatabases, warehouse: Warehouse
) -> None:
    shop(databases, "ALTER TABLE orders DROP COLUMN amount", "INSERT INTO lines VALUES (902, 1, 'after')")
    warehouse.catch_up()
    assert set(halted(warehouse)) == {"big"}
    with pytest.raises(UnknownName, match="amount"):
        warehouse.reload("big")
    warehouse.catch_up()
    all_clean(warehouse, "items", "names", "places")
    warehouse.drop_view("big")
    warehouse.create_view(BIG.replace(", o.amount AS amount", ""))
    shop(databases, "INSERT INTO orders VALUES (903, 3)")
    warehouse.catch_up()
    all_clean(warehouse, "big", "items")


def test_a_wider_type_is_taken_over(databases: ThreeDatabases, warehouse: Warehouse) -> None:
    shop(databases, "ALTER TABLE orders ALTER COLUMN amount TYPE bigint", "UPDATE orders SET amount = 5000000000")
    warehouse.catch_up()
    assert not halted(warehouse)
    shop(databases, "UPDATE orders SET amount = 6000000000 WHERE id = 1")
    warehouse.catch_up()
    all_clean(warehouse, "big", "items", "names")
    assert not halted(warehouse)


def test_a_lost_slot_halts_the_views_over_it(databases: ThreeDatabases, warehouse: Warehouse) -> None:
    warehouse.close()
    shop(
        databases,
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()",
        "INSERT INTO orders VALUES (904, 2, 1)",
    )
    with Warehouse.open(warehouse.path) as again:
        databases.add_to(again)
        again.catch_up()
        lost = halted(again)
        assert set(lost) == {"big", "items"}, lost
        all_clean(again, "names", "places")
        for view in lost:
            again.reload(view)
        shop(databases, "INSERT INTO orders VALUES (905, 2, 1)")
        again.catch_up()
        all_clean(again, "big", "items", "names", "places")


def purge(root: Session, last: str) -> None:
    """A file that somebody is still reading is not purged: their connections are cut first."""
    while len(root.execute("SHOW BINARY LOGS")) > 1:
        for (reader,) in root.execute(
            "SELECT id FROM information_schema.processlist WHERE command LIKE %s", ("Binlog Dump%",)
        ):
            with suppress(pymysql.MySQLError):
                root.execute(f"KILL {reader}")
        root.execute(f"PURGE BINARY LOGS TO '{last}'")


def test_a_purged_binary_log_halts_the_views_over_it(databases: ThreeDatabases, warehouse: Warehouse) -> None:
    with databases.mariadb.root() as root, databases.mariadb.session("disruptions") as crm:
        crm.execute("INSERT INTO people VALUES (700, 'lost', 1)")
        root.execute("FLUSH BINARY LOGS")
        ((last, *_),) = root.execute("SHOW MASTER STATUS")
        purge(root, last)
        crm.execute("INSERT INTO people VALUES (701, 'after', 1)")
    warehouse.catch_up()
    assert set(halted(warehouse)) == {"big", "names"}
    all_clean(warehouse, "items", "places")
    for view in ("big", "names"):
        warehouse.reload(view)
    with databases.mariadb.session("disruptions") as crm:
        crm.execute("UPDATE people SET name = 'fixed' WHERE id = 701")
    warehouse.catch_up()
    all_clean(warehouse, "big", "names", "items", "places")


def test_a_dropped_table_in_sqlite(databases: ThreeDatabases, warehouse: Warehouse, tmp_path: Path) -> None:
    geo = sqlite3.connect(tmp_path / "geo.db", isolation_level=None)
    geo.execute("DROP TABLE regions")
    geo.close()
    shop(databases, "INSERT INTO orders VALUES (906, 2, 1)")
    warehouse.catch_up()
    assert set(halted(warehouse)) == {"places"}
    all_clean(warehouse, "big", "items", "names")


def test_a_source_that_views_are_over_stays(warehouse: Warehouse) -> None:
    with pytest.raises(UsageError, match="big"):
        warehouse.remove_source("shop")


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("oracle://db/x", BadSourceUrl),
        ("postgresql://keeper:hunter2secret@127.0.0.1:{port}/nowhere", SourceUnfit),
        ("postgresql://with_password:hunter2secret@127.0.0.1:{port}/disruptions", SourceUnfit),
        ("sqlite:////no/such/folder/x.db", ViewkeeperError),
        ("mariadb://keeper:hunter2secret@localhost/disruptions?unix_socket={socket}", SourceUnfit),
    ],
)
def test_a_url_that_does_not_work(
    url: str, error: type[ViewkeeperError], databases: ThreeDatabases, tmp_path: Path
) -> None:
    shop(databases, "DROP ROLE IF EXISTS with_password", "CREATE ROLE with_password LOGIN PASSWORD 'other'")
    url = url.format(port=databases.postgres.port, socket=databases.mariadb.socket)
    with Warehouse.open(tmp_path / "other") as warehouse:
        with pytest.raises(error) as raised:
            warehouse.add_source("bad", url, install=True)
        assert "hunter2secret" not in f"{raised.value} {raised.value!r}"
        assert raised.value.hint
        assert not [file for file in (tmp_path / "other").rglob("*bad*") if file.is_file()]


def test_what_cannot_be_captured_is_refused_by_name(databases: ThreeDatabases, tmp_path: Path) -> None:
    shop(databases, "CREATE TABLE odd (id int PRIMARY KEY, price money)")
    with Warehouse.open(tmp_path / "other") as warehouse:
        with pytest.raises(UnsupportedType, match="price"):
            warehouse.add_source("shop", databases.urls["shop"], tables=["odd"], install=True)
        with pytest.raises(UnknownTable, match="nothing"):
            warehouse.add_source("shop", databases.urls["shop"], tables=["nothing"], install=True)
        with pytest.raises(SourceUnfit, match="shop"):
            warehouse.add_source("shop", databases.urls["shop"], tables=["orders"])
        with pytest.raises(DefinitionError):
            warehouse.add_source("Shop 1", databases.urls["shop"])


def test_no_password_is_stored_or_shown(databases: ThreeDatabases, warehouse: Warehouse) -> None:
    for file in warehouse.path.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert PASSWORD.encode() not in content, file
            assert b"s3cr3t%3A" not in content, file
    assert "s3cr3t" not in repr(warehouse.status())
