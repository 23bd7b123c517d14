"""How many rows a source thinks a table has, without counting them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from mariadb_server import MariaDb
from postgres_server import PostgresServer
from postgres_tables import a_database

from viewkeeper.sources.base import Request
from viewkeeper.sources.mysql.source import MySqlSource
from viewkeeper.sources.sqlite import source as sqlite_source
from viewkeeper.sources.sqlite.source import SqliteSource


@pytest.mark.parametrize(
    ("small", "expected"),
    [
        (0, {"orders": 10, "words": 2, "none": 0, "pairs": None}),
        (1 << 20, {"orders": 3, "words": 2, "none": 0, "pairs": 1}),
    ],
)
def test_sqlite_goes_by_the_first_and_the_last_row_of_a_large_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int, expected: dict[str, int | None]
) -> None:
    monkeypatch.setattr(sqlite_source, "SMALL", small)
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.executescript(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY); INSERT INTO orders VALUES (11), (12), (20);"
            "CREATE TABLE words (word TEXT); INSERT INTO words VALUES ('a'), ('b');"
            "CREATE TABLE none (n INTEGER);"
            "CREATE TABLE pairs (a INTEGER, b INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID;"
            "INSERT INTO pairs VALUES (1, 2)"
        )
    with closing(SqliteSource(Request("shop", f"sqlite:///{tmp_path / 'shop.db'}", "w1"))) as source:
        told = {name: source.estimated_rows(f"shop.{name}") for name in ("orders", "words", "none", "pairs")}
    assert told == expected


def test_postgres_knows_after_the_first_analyze(postgres_server: PostgresServer) -> None:
    with a_database(postgres_server, "CREATE TABLE r (id int PRIMARY KEY)") as database:
        database.execute("INSERT INTO r SELECT generate_series(1, 500)")
        with closing(database.source("r")) as source:
            assert source.estimated_rows("pg.r") is None
            database.execute("ANALYZE r")
            assert source.estimated_rows("pg.r") == 500


def test_mysql_has_statistics(mariadb: MariaDb) -> None:
    with mariadb.root() as root:
        root.execute("CREATE OR REPLACE DATABASE estimates")
        root.execute("CREATE TABLE estimates.t (id INT PRIMARY KEY)")
        root.execute("INSERT INTO estimates.t SELECT seq FROM estimates.seq_1_to_500")
        root.execute("ANALYZE TABLE estimates.t")
        with closing(MySqlSource(Request("s", mariadb.url("estimates"), "estimates"))) as source:
            told = source.estimated_rows("s.t")
        root.execute("DROP DATABASE estimates")
    assert told is not None
    assert 400 <= told <= 600
