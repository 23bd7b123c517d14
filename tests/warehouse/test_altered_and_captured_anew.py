"""A table is altered while nobody looks, and captured again before anybody has followed: by adding its source again, or
by the reload of one view. Whoever has rows of what it was is halted; who was recreated is not.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from mariadb_server import PASSWORD, USER, MariaDb
from postgres_server import PostgresServer

from viewkeeper.warehouse import Warehouse

Run = Callable[[str], Any]
SWAP = [
    "ALTER TABLE t RENAME COLUMN a TO c",
    "ALTER TABLE t RENAME COLUMN b TO a",
    "ALTER TABLE t RENAME COLUMN c TO b",
]
AGAIN = ["DROP TABLE t", "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER)"]


@contextmanager
def a_sqlite(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[str, Run]]:
    with closing(sqlite3.connect(folder / "s.db", isolation_level=None)) as database:
        yield f"sqlite:///{folder}/s.db", database.execute


@contextmanager
def a_postgres(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[str, Run]]:
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.database("anew") as url, psycopg.connect(url, autocommit=True) as database:
        yield url, lambda sql: database.execute(sql.encode())


@contextmanager
def a_mariadb(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[str, Run]]:
    server: MariaDb = request.getfixturevalue("mariadb")
    with server.root() as root:
        root.execute("CREATE DATABASE anew")
        root.execute(f"GRANT ALL ON again.* TO {USER}@'%'")
    try:
        with server.session("anew") as session:
            yield server.url("anew"), session.execute
    finally:
        with server.root() as root:
            root.execute("DROP DATABASE anew")


KINDS = {"sqlite": a_sqlite, "postgres": a_postgres, "mariadb": a_mariadb}
EVERY_KIND = ["sqlite", *(pytest.param(name, marks=pytest.mark.servers) for name in ("postgres", "mariadb"))]


def shown(warehouse: Warehouse, view: str) -> list[tuple[int, int]]:
    return sorted((row["id"], row["a"]) for row in warehouse.arrow(view).to_pylist())


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize(
    ("altered", "anew"), [(SWAP, "added again"), (AGAIN, "reloaded")], ids=["swapped", "made again"]
)
def test_who_has_rows_of_what_a_table_was_is_halted(
    kind: str, altered: list[str], anew: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with KINDS[kind](request, tmp_path) as (url, run), Warehouse.open(tmp_path / "lake") as warehouse:
        run("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER)")
        run("INSERT INTO t VALUES (1, 10, 100)")
        warehouse.add_source("s", url, install=True)
        for view in ("one", "other"):
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {view} AS SELECT id, a FROM s.t")
        for statement in altered:
            run(statement)
        run("INSERT INTO t (id, a, b) VALUES (2, 20, 200)")
        if anew == "added again":
            warehouse.add_source("s", url, install=True)
            warehouse.catch_up()
            assert set(warehouse.status().halted) == {"one", "other"}
        warehouse.reload("one")
        run("INSERT INTO t (id, a, b) VALUES (3, 30, 300)")
        warehouse.catch_up()
        assert set(warehouse.status().halted) == {"other"}
        rows = [(2, 20), (3, 30)] if altered is AGAIN else [(1, 100), (2, 20), (3, 30)]
        assert shown(warehouse, "one") == rows
        warehouse.reload("other")
        run("DELETE FROM t WHERE id = 2")
        warehouse.catch_up()
        assert warehouse.status().halted == {}
        del rows[-2]
        assert shown(warehouse, "one") == shown(warehouse, "other") == rows


@pytest.mark.parametrize("again", [False, True], ids=["followed", "added again"])
@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        ("sqlite", "ALTER TABLE t ADD COLUMN more INTEGER"),
        pytest.param("postgres", "ALTER TABLE t ADD COLUMN more INTEGER", marks=pytest.mark.servers),
        pytest.param("postgres", "ALTER TABLE t DROP COLUMN b", marks=pytest.mark.servers),
    ],
)
def test_summaries_of_a_table_with_other_columns_are_made_anew(
    kind: str, statement: str, again: bool, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with KINDS[kind](request, tmp_path) as (url, run), Warehouse.open(tmp_path / "lake") as warehouse:
        run("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER)")
        run("INSERT INTO t VALUES (1, 10, 100)")
        warehouse.add_source("s", url, install=True)
        warehouse.create_view("CREATE MATERIALIZED VIEW sums AS SELECT a, COUNT(*) AS n FROM s.t GROUP BY a")
        warehouse.create_view("CREATE MATERIALIZED VIEW up AS SELECT a, COUNT(*) AS n FROM s.t GROUP BY ROLLUP (a)")
        run(statement)
        run("INSERT INTO t (id, a) VALUES (2, 10)")
        if again:
            warehouse.add_source("s", url, install=True)
        warehouse.catch_up()
        warehouse.reload("up")
        assert warehouse.status().halted == {}, "a lattice is fixed as a whole"
        run("INSERT INTO t (id, a) VALUES (3, 20)")
        warehouse.catch_up()
        assert warehouse.status().halted == {}
        assert sorted((row["a"], row["n"]) for row in warehouse.arrow("sums").to_pylist()) == [(10, 2), (20, 1)]
        assert warehouse.arrow("up_total").to_pylist() == [{"n": 3}]


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize("named", [True, False], ids=["named tables", "all tables"])
@pytest.mark.parametrize("gone", ["DROP TABLE u", "ALTER TABLE u RENAME TO other"], ids=["dropped", "renamed"])
def test_new_tables_are_nobodys_business_and_one_that_is_gone_halts_its_views_alone(
    kind: str,
    named: bool,
    gone: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OF_S", PASSWORD)
    with KINDS[kind](request, tmp_path) as (url, run):
        url = url.replace(quote(PASSWORD, safe=""), "${OF_S}")
        for table in ("t", "u"):
            run(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, a INTEGER)")
        with Warehouse.open(tmp_path / "lake") as warehouse:
            warehouse.add_source("s", url, tables=["t", "u"] if named else None, install=True)
            for view, table in (("one", "t"), ("other", "u")):
                warehouse.create_view(
                    f"CREATE MATERIALIZED VIEW {view} TBLPROPERTIES('group' = '{view}') AS SELECT id, a FROM s.{table}"
                )
        run("CREATE TABLE fresh (id INTEGER PRIMARY KEY, a INTEGER)")
        run("INSERT INTO fresh VALUES (1, 1)")
        run("INSERT INTO t VALUES (1, 10)")
        with Warehouse.open(tmp_path / "lake") as warehouse:
            warehouse.catch_up()
            assert warehouse.status().halted == {}
            assert shown(warehouse, "one") == [(1, 10)]
        run(gone)
        run("INSERT INTO t VALUES (2, 20)")
        with Warehouse.open(tmp_path / "lake") as warehouse:
            warehouse.catch_up()
            assert set(warehouse.status().halted) == {"other"}
            assert shown(warehouse, "one") == [(1, 10), (2, 20)]


def test_views_over_a_database_that_another_has_replaced_are_halted_and_reloaded(tmp_path: Path) -> None:
    url, table = f"sqlite:///{tmp_path / 's.db'}", "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)"
    with closing(sqlite3.connect(tmp_path / "s.db")) as database:
        database.executescript(f"{table}; INSERT INTO t VALUES (1, 10)")
    with Warehouse.open(tmp_path / "lake") as warehouse:
        warehouse.add_source("s", url, install=True)
        warehouse.create_view("CREATE MATERIALIZED VIEW v AS SELECT id, a FROM s.t")
    for file in tmp_path.glob("s.db*"):
        file.unlink()
    with closing(sqlite3.connect(tmp_path / "s.db")) as database:
        database.executescript(f"{table}; INSERT INTO t VALUES (7, 70)")
    with Warehouse.open(tmp_path / "lake") as warehouse:
        warehouse.catch_up()
        assert "another database is in its place" in warehouse.status().halted["v"]
        warehouse.reload("v")
        warehouse.catch_up()
        assert warehouse.status().halted == {}
        assert shown(warehouse, "v") == [(7, 70)]


def test_two_sources_over_one_database_do_not_know_of_each_other(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as database:
        database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)")
        with Warehouse.open(tmp_path / "lake") as warehouse:
            for source, view in (("one", "v"), ("other", "w")):
                warehouse.add_source(source, url, install=True)
                warehouse.create_view(f"CREATE MATERIALIZED VIEW {view} AS SELECT id, a FROM {source}.t")
            database.execute("INSERT INTO t VALUES (1, 10)")
            database.execute("INSERT OR REPLACE INTO t VALUES (1, 20)")
            warehouse.catch_up()
            assert shown(warehouse, "v") == shown(warehouse, "w") == [(1, 20)]
            warehouse.drop_view("v")
            assert warehouse.remove_source("one") == []
            database.execute("INSERT INTO t VALUES (2, 30)")
            warehouse.catch_up()
            assert warehouse.status().halted == {}
            assert shown(warehouse, "w") == [(1, 20), (2, 30)]
            warehouse.drop_view("w")
            warehouse.remove_source("other")
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("t",)]
