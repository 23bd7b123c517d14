"""An older copy of a warehouse is put to work, while its sources have forgotten what a newer one has stored.

Whatever a source does then, the views of the copy are right, or halted; never silently without some changes.
"""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from deltalake import DeltaTable, write_deltalake
from mariadb_server import USER, MariaDb
from postgres_server import PostgresServer

from viewkeeper.warehouse import Warehouse

Put = Callable[[int], None]
VIEW = "CREATE MATERIALIZED VIEW {0} AS SELECT t.id FROM s.t t"


def shown(warehouse: Warehouse, view: str = "v") -> list[int]:
    return sorted(row["id"] for row in warehouse.arrow(view).to_pylist())


def halted(warehouse: Warehouse) -> dict[str, str]:
    return {one.view: one.halted for one in warehouse.status().views if one.halted is not None}


def connect(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / "s.db", isolation_level=None)


@contextmanager
def a_sqlite(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[str, Put]]:
    with closing(connect(folder)) as database:
        database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        yield f"sqlite:///{folder}/s.db", lambda number: database.execute(f"INSERT INTO t VALUES ({number})") and None


@contextmanager
def a_folder(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[str, Put]]:
    (folder / "drop").mkdir()

    def put(number: int) -> None:
        lines = "".join(f"{one}\n" for one in range(number + 1))
        (folder / "drop" / ".t").write_text(f"id\n{lines}")
        (folder / "drop" / ".t").rename(folder / "drop" / "t.csv")

    put(0)
    yield f"files://{folder}/drop?quiet=5ms&poll=5ms&schema.t=id BIGINT", put


@contextmanager
def a_delta(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[str, Put]]:
    import pyarrow as pa

    def put(number: int) -> None:
        write_deltalake(folder / "t", pa.table({"id": pa.array([number], pa.int64())}), mode="append")

    put(0)
    assert DeltaTable(folder / "t").version() == 0
    yield f"delta://{folder}/t?poll=5ms", put


@contextmanager
def a_postgres(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[str, Put]]:
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.database("older") as url, psycopg.connect(url, autocommit=True) as database:
        database.execute("CREATE TABLE t (id int PRIMARY KEY)")
        yield url, lambda number: database.execute(f"INSERT INTO t VALUES ({number})".encode()) and None


@contextmanager
def a_mariadb(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[str, Put]]:
    server: MariaDb = request.getfixturevalue("mariadb")
    with server.root() as root:
        root.execute("CREATE DATABASE older")
        root.execute(f"GRANT ALL ON older.* TO {USER}@'%'")
    with server.session("older") as session:
        session.execute("CREATE TABLE t (id int PRIMARY KEY) ENGINE=InnoDB")
        yield server.url("older"), lambda number: session.execute(f"INSERT INTO t VALUES ({number})") and None
    with server.root() as root:
        root.execute("DROP DATABASE older")


@pytest.mark.parametrize(
    "kind",
    [a_sqlite, a_folder, a_delta, *(pytest.param(one, marks=pytest.mark.servers) for one in (a_postgres, a_mariadb))],
)
def test_an_older_copy_misses_nothing_silently(
    kind: Callable[..., AbstractContextManager[tuple[str, Put]]], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        url, put = stack.enter_context(kind(request, tmp_path))
        put(1)
        with Warehouse.open(tmp_path / "lake") as warehouse:
            warehouse.add_source("s", url, install=True)
            warehouse.create_view(VIEW.format("v"))
        shutil.copytree(tmp_path / "lake", tmp_path / "older")
        put(2)
        with Warehouse.open(tmp_path / "lake") as warehouse:
            warehouse.add_source("s", url)
            warehouse.catch_up()
            # Once more: now everyone who reads sees it, so that nobody needs it any more.
            warehouse.catch_up()
            newer = shown(warehouse)
            assert 2 in newer
        put(3)
        with Warehouse.open(tmp_path / "older") as warehouse:
            warehouse.add_source("s", url)
            warehouse.catch_up()
            if halted(warehouse):
                assert 2 not in shown(warehouse)
                warehouse.reload("v")
            assert shown(warehouse) == [*newer, 3]
            assert warehouse.audit("v").clean


@pytest.mark.servers
def test_a_postgres_that_goes_on_without_us_is_no_older_copy(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Groups at different places of a source, changes that concern none of them, a view that comes later."""
    with a_postgres(request, tmp_path) as (url, put), psycopg.connect(url, autocommit=True) as database:
        database.execute("CREATE TABLE other (id int)")
        database.execute("CREATE TABLE seen (id int PRIMARY KEY)")
        for number, view in enumerate(("v", "w", "x")):
            with Warehouse.open(tmp_path / "lake") as warehouse:
                warehouse.add_source("s", url, tables=["t", "seen"], install=True)
                database.execute("INSERT INTO other SELECT generate_series(1, 1000)")
                warehouse.create_view(VIEW.format(f"{view} TBLPROPERTIES('group' = '{view}')"))
                put(number)
                warehouse.catch_up()
                database.execute(f"INSERT INTO seen VALUES ({number})".encode())
                warehouse.catch_up()
                assert halted(warehouse) == {}
                assert all(shown(warehouse, one) == list(range(number + 1)) for one in "vwx"[: number + 1])


@pytest.mark.parametrize("stored", [[1], [1, 2]])
def test_a_database_that_was_put_back_and_has_come_as_far_is_noticed(
    stored: list[int], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Meanwhile it was written to: the numbers of its changes alone would not tell."""
    with a_sqlite(request, tmp_path) as (url, put):
        with Warehouse.open(tmp_path / "lake") as warehouse:
            warehouse.add_source("s", url, install=True)
            for view in ("v", "w"):
                warehouse.create_view(VIEW.format(f"{view} TBLPROPERTIES('group' = '{view}')"))
        with closing(sqlite3.connect(tmp_path / "backup.db")) as backup, closing(connect(tmp_path)) as database:
            database.backup(backup)
        for number in stored:
            put(number)
            with Warehouse.open(tmp_path / "lake") as warehouse:
                warehouse.catch_up()
        with closing(sqlite3.connect(tmp_path / "backup.db")) as backup, closing(connect(tmp_path)) as database:
            backup.backup(database)
        for number in (7, 8, 9):
            put(number)
        with Warehouse.open(tmp_path / "lake") as warehouse:
            warehouse.catch_up()
            assert halted(warehouse).keys() == {"v", "w"}
            for view in ("v", "w"):
                warehouse.reload(view)
            put(10)
            warehouse.catch_up()
            assert halted(warehouse) == {}
            assert shown(warehouse) == shown(warehouse, "w") == [7, 8, 9, 10]


def test_a_delta_table_that_was_made_anew_is_noticed_and_reloaded(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """It has come further than the views have, so that its versions alone would not tell."""
    with a_delta(request, tmp_path) as (url, put), Warehouse.open(tmp_path / "lake") as warehouse:
        warehouse.add_source("s", url)
        for view in ("v", "w"):
            warehouse.create_view(VIEW.format(f"{view} TBLPROPERTIES('group' = '{view}')"))
        put(1)
        warehouse.catch_up()
        shutil.rmtree(tmp_path / "t")
        for number in (7, 8, 9):
            put(number)
        # The other view is not reloaded: what the new table tells means nothing to it.
        warehouse.reload("v")
        put(10)
        warehouse.catch_up()
        assert halted(warehouse).keys() == {"w"}
        assert shown(warehouse) == [7, 8, 9, 10]
        warehouse.reload("w")
        put(11)
        warehouse.catch_up()
        assert shown(warehouse) == shown(warehouse, "w") == [7, 8, 9, 10, 11]
        assert halted(warehouse) == {}


def test_a_delta_table_that_was_made_anew_and_has_not_come_as_far_is_noticed(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """One group was further than the new table is, another was not."""
    with a_delta(request, tmp_path) as (url, put):
        with Warehouse.open(tmp_path / "lake") as warehouse:
            warehouse.add_source("s", url)
            for view in ("v", "w"):
                warehouse.create_view(VIEW.format(f"{view} TBLPROPERTIES('group' = '{view}')"))
            put(1)
            warehouse.catch_up()
            for number in (2, 3, 4):
                put(number)
            warehouse.reload("v")
            warehouse.drop_view("v")
        shutil.rmtree(tmp_path / "t")
        for number in (7, 8, 9):
            put(number)
        with Warehouse.open(tmp_path / "lake") as warehouse:
            warehouse.catch_up()
            assert halted(warehouse).keys() == {"w"}
            warehouse.reload("w")
            assert shown(warehouse, "w") == [7, 8, 9]


def test_reloading_a_view_takes_nothing_from_other_groups(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The others of its group are brought up to date meanwhile; groups that are further back still need the changes."""
    with a_sqlite(request, tmp_path) as (url, put), Warehouse.open(tmp_path / "lake") as warehouse:
        warehouse.add_source("s", url, install=True)
        for view, group in (("v", "one"), ("w", "one"), ("x", "two")):
            warehouse.create_view(VIEW.format(f"{view} TBLPROPERTIES('group' = '{group}')"))
        put(1)
        warehouse.reload("v")
        warehouse.catch_up()
        assert halted(warehouse) == {}
        assert [shown(warehouse, view) for view in ("v", "w", "x")] == [[1]] * 3
