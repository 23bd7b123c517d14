"""strobe and c-strobe over PostgreSQL and SQLite that declare single updates: the levels of the paper, live."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
from postgres_server import PostgresServer

from viewkeeper.checker.history import History
from viewkeeper.checker.judge import check
from viewkeeper.levels import Level
from viewkeeper.warehouse import Warehouse
from waiting import joined

JOIN = "SELECT o.id, o.amount, p.id AS person, p.name FROM shop.orders o JOIN crm.people p ON o.cust = p.id"
LEVELS = {"strobe": Level.STRONG, "c_strobe": Level.COMPLETE}


def no_spark() -> Any:
    raise AssertionError("Spark was started")


def write_orders(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for number in range(1, 40):
            connection.execute("INSERT INTO orders VALUES (?, ?, ?)", (number, number % 4, number))
            if number % 3 == 0:
                connection.execute("DELETE FROM orders WHERE id = ?", (number - 1,))
            if number % 5 == 0:
                connection.execute("UPDATE orders SET cust = ? WHERE id = ?", (number % 3, number))


def write_people(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for number in range(20):
            connection.execute("UPDATE people SET name = %s WHERE id = %s", (f"p{number}", number % 4))
            if number % 4 == 3:
                connection.execute("DELETE FROM people WHERE id = %s", (number // 4 % 4,))
                connection.execute("INSERT INTO people VALUES (%s, 'again')", (number // 4 % 4,))


def test_levels_over_single_updates_and_a_halt_over_more(postgres_server: PostgresServer, tmp_path: Path) -> None:
    shop = tmp_path / "shop.db"
    with closing(sqlite3.connect(shop)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, cust INTEGER, amount INTEGER)")
    with postgres_server.database("single_updates") as url, Warehouse.open(tmp_path / "lake", no_spark) as warehouse:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT)")
            connection.execute("INSERT INTO people VALUES (0, 'a'), (1, 'b'), (2, 'c'), (3, 'd')")
        warehouse.add_source("shop", f"sqlite:///{shop}", install=True, transactions="single")
        warehouse.add_source("crm", url, install=True, transactions="single")
        for name in LEVELS:
            properties = f"'algorithm' = '{name.replace('_', '-')}', 'group' = '{name}'"
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES({properties}) AS {JOIN}")
        writers = [
            threading.Thread(target=write_orders, args=(shop,)),
            threading.Thread(target=write_people, args=(url,)),
        ]
        for writer in writers:
            writer.start()
        warehouse.catch_up(history=tmp_path / "first-{view}.json")
        joined(*writers)
        warehouse.catch_up(history=tmp_path / "second-{view}.json")
        assert {one.view: (one.consistency, one.halted) for one in warehouse.status().views} == {
            name: (str(level), None) for name, level in LEVELS.items()
        }
        for name, level in LEVELS.items():
            for part in ("first", "second"):
                assert check(History.load(tmp_path / f"{part}-{name}.json")).level >= level, (part, name)
        with psycopg.connect(url) as connection:
            connection.execute("UPDATE people SET name = 'x'")
        warehouse.catch_up()
        for one in warehouse.status().views:
            assert one.halted is not None
            assert "crm is declared to commit single updates" in one.halted.reason
