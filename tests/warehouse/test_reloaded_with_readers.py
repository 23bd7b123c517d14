"""A view is reloaded, and others read it: nobody misses a change, and nobody gets one twice."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from viewkeeper import Warehouse
from viewkeeper.errors import UsageError
from viewkeeper.maintenance import reload
from viewkeeper.sources.layout import Alteration
from viewkeeper.sources.sqlite.source import SqliteSource

VIEWS = {
    "remote": "SELECT t.id, t.a FROM s.t t",
    "matview": "SELECT t.id, t.a FROM s.t t JOIN s.p p ON t.id = p.id",
}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as connection:
        connection.executescript(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER); INSERT INTO t VALUES (1, 10);"
            "CREATE TABLE p (id INTEGER PRIMARY KEY); INSERT INTO p VALUES (1), (2), (3)"
        )
        yield connection


@pytest.fixture
def warehouse(tmp_path: Path, database: sqlite3.Connection) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "lake") as opened:
        opened.add_source("s", f"sqlite:///{tmp_path / 's.db'}", install=True)
        yield opened


def create(warehouse: Warehouse, name: str, select: str, storage: str = "remote") -> None:
    warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES('storage' = '{storage}') AS {select}")


def create_large(warehouse: Warehouse) -> None:
    warehouse.create_view("CREATE MATERIALIZED VIEW large AS SELECT id FROM v WHERE a > 6")


def ids(warehouse: Warehouse, view: str) -> list[int]:
    return sorted(row["id"] for row in warehouse.arrow(view).to_pylist())


@pytest.mark.parametrize("storage", VIEWS)
@pytest.mark.parametrize("there", [True, False], ids=["reloaded", "created"])
def test_a_reader_is_not_made_right_before_what_it_reads(
    warehouse: Warehouse, database: sqlite3.Connection, tmp_path: Path, storage: str, there: bool
) -> None:
    create(warehouse, "v", VIEWS[storage], storage)
    if there:
        create_large(warehouse)
    database.executescript(
        "DROP TABLE t; CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER); INSERT INTO t VALUES (2, 20)"
    )
    warehouse.add_source("s", f"sqlite:///{tmp_path / 's.db'}", install=True)
    warehouse.catch_up()
    assert set(warehouse.status().halted) == ({"v", "large"} if there else {"v"})
    with pytest.raises(UsageError, match="large reads v, which is halted\n  hint: reload v first"):
        warehouse.reload("large") if there else create_large(warehouse)
    warehouse.reload("v")
    warehouse.reload("large") if there else create_large(warehouse)
    database.execute("INSERT INTO t VALUES (3, 30)")
    warehouse.catch_up()
    assert warehouse.status().halted == {}
    assert ids(warehouse, "v") == ids(warehouse, "large") == [2, 3]


@pytest.mark.parametrize("storage", VIEWS)
def test_readers_of_a_view_that_gets_other_types_are_made_anew_with_it(
    warehouse: Warehouse, database: sqlite3.Connection, storage: str
) -> None:
    create(warehouse, "v", VIEWS[storage], storage)
    create_large(warehouse)
    warehouse.create_view("CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS n, SUM(a) AS a FROM v")
    before = warehouse.states("large")[-1].state
    database.executescript(
        "CREATE TABLE u (id INTEGER PRIMARY KEY, a REAL); INSERT INTO u SELECT * FROM t; DROP TABLE t;"
        "ALTER TABLE u RENAME TO t; INSERT INTO t VALUES (2, 20.5)"
    )
    warehouse.reload("v")
    assert warehouse.status().halted == {}
    assert ids(warehouse, "v") == ids(warehouse, "large") == [1, 2]
    assert warehouse.states("large")[-1].state > before
    database.execute("INSERT INTO t VALUES (3, 30)")
    warehouse.catch_up()
    assert ids(warehouse, "v") == ids(warehouse, "large") == [1, 2, 3]
    assert warehouse.arrow("total").to_pylist() == [{"n": 3, "a": 60.5}]


def test_a_reload_that_is_broken_off_loses_nothing(
    warehouse: Warehouse, database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another view of the group needs the same changes."""

    def broken_off(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    for name in ("v", "u"):
        create(warehouse, name, "SELECT id, a FROM s.t")
    database.execute("INSERT INTO t VALUES (2, 20)")
    with monkeypatch.context() as patched:
        patched.setattr(reload, "content_of", broken_off)
        with pytest.raises(KeyboardInterrupt):
            warehouse.reload("v")
    database.execute("INSERT INTO t VALUES (3, 30)")
    warehouse.catch_up()
    assert warehouse.status().halted == {}
    assert ids(warehouse, "v") == ids(warehouse, "u") == [1, 2, 3]


def test_what_was_altered_is_not_forgotten_when_adding_the_source_again_fails(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source that notes shapes by itself, as PostgreSQL's does."""
    altered = {"s.t": [Alteration("its columns were swapped")]}
    monkeypatch.setattr(SqliteSource, "altered", lambda _: dict(altered))
    monkeypatch.setattr(SqliteSource, "note", lambda *_: altered.clear())
    url = f"sqlite:///{tmp_path / 's.db'}"
    with pytest.raises(Exception, match=r"s\.t has no column typo"):
        warehouse.add_source("s", url, install=True, hierarchies={"t": ["id", "typo"]})
    warehouse.add_source("s", url, install=True)
    assert set(warehouse.sources[0].anew) == {"s.t"}
    assert altered == {}
