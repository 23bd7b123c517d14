"""A commit writes in proportion to its change, whatever the size of the tables and however many commits there were."""

import errno
import itertools
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from deltalake import DeltaTable
from images import copy
from lakes import ORDER_TYPES, orders
from lakes import place as position
from stored_content import Stored

from viewkeeper.lake.compaction import CompactionPolicy
from viewkeeper.lake.log.commit_log import CommitLog
from viewkeeper.lake.log.store import LocalStore, storage_failure
from viewkeeper.lake.tables import delta_log
from viewkeeper.storage.self_maintained import STORAGES
from viewkeeper.warehouse import Warehouse

MAXIMA = (
    "CREATE MATERIALIZED VIEW maxima AS SELECT shop, COUNT(*) AS n, MAX(amount) AS most FROM s.orders GROUP BY shop"
)


def bytes_of(root: Path) -> int:
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def written_by_changes(folder: Path, rows: int, commits: int) -> float:
    """What the refreshes of a summary with MAX write on average, for one new order each."""
    database = folder / "orders.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, shop INTEGER, amount INTEGER)")
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?)", ((n, n % 10, n * 7919) for n in range(rows)))
    with Warehouse.open(folder / "lake") as warehouse:
        warehouse.add_source("s", f"sqlite:///{database}", install=True)
        warehouse.create_view(MAXIMA)
        before = bytes_of(folder / "lake")
        for number in range(rows, rows + commits):
            with closing(sqlite3.connect(database)) as connection, connection:
                connection.execute("INSERT INTO orders VALUES (?, ?, ?)", (number, number % 10, number * 7919))
            warehouse.catch_up()
        after = bytes_of(folder / "lake")
        shown = {row["shop"]: (row["n"], row["most"]) for row in warehouse.arrow("maxima").to_pylist()}
    every = range(rows + commits)
    assert shown == {
        shop: (len(every[shop::10]), max(number * 7919 for number in every[shop::10])) for shop in range(10)
    }
    return (after - before) / commits


def test_a_summary_with_max_writes_what_changes_and_not_its_hidden_table(tmp_path: Path) -> None:
    written = {}
    for rows in (1_000, 40_000):
        (folder := tmp_path / str(rows)).mkdir()
        written[rows] = written_by_changes(folder, rows, commits=12)
    # A hidden table of 40,000 rows takes 300 KB.
    assert written[40_000] < 1.5 * written[1_000]
    assert written[40_000] < 40_000


@pytest.mark.parametrize("storage", STORAGES)
def test_a_self_maintained_view_writes_what_changes_and_not_its_structures(tmp_path: Path, storage: str) -> None:
    written = {}
    for rows in (200, 8_000):
        (folder := tmp_path / str(rows)).mkdir()
        with closing(sqlite3.connect(folder / "shop.db")) as connection, Warehouse.open(folder / "lake") as warehouse:
            connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name INTEGER)")
            connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, cust INTEGER, amount INTEGER)")
            connection.executemany("INSERT INTO people VALUES (?, ?)", ((n, n * 7919) for n in range(rows)))
            connection.executemany("INSERT INTO orders VALUES (?, ?, ?)", ((n, n, n * 7907) for n in range(rows)))
            connection.commit()
            warehouse.add_source("s", f"sqlite:///{folder / 'shop.db'}", install=True)
            warehouse.create_view(
                f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('storage' = '{storage}') AS "
                "SELECT o.id, o.amount, p.name FROM s.orders o JOIN s.people p ON o.cust = p.id"
            )
            before = bytes_of(folder / "lake")
            for number in range(rows, rows + 10):
                connection.execute("INSERT INTO orders VALUES (?, ?, 1)", (number, number % 100))
                connection.execute("UPDATE people SET name = name + 1 WHERE id = ?", (number % 100,))
                connection.commit()
                warehouse.catch_up()
            written[rows] = (bytes_of(folder / "lake") - before) / 10
            assert warehouse.arrow("v").num_rows == rows + 10
    assert written[8_000] < 1.5 * written[200]


def test_a_view_that_is_compacted_again_and_again_writes_in_proportion(place: Path) -> None:
    """Bases and merged deltas included: many commits of few rows, on a large and on a small table."""
    written = {}
    for rows in (100, 5_000):
        root = place / f"of {rows}"
        policy = CompactionPolicy(share=0.2, least_rows=1_000, files=8)
        with Warehouse.open(root, compaction=policy) as wh:
            with wh.commit() as commit:
                first = orders(*((number, f"item {number % 50}") for number in range(rows)))
                commit.create("v", ORDER_TYPES, rows=first, group="shop", vector={"shop": position(0)})
            before = bytes_of(root)
            for step in range(200):
                with wh.commit() as commit:
                    new = [(rows + 5 * step + number, "new") for number in range(5)]
                    commit.state("shop", {"shop": position(step + 1)}, {"v": orders(*new)})
        written[rows] = (bytes_of(root) - before) / 200
        with Warehouse.open(root, read_only=True) as wh:
            assert wh.arrow("v").num_rows == rows + 1000
            assert wh.arrow("v", 7).num_rows == rows + 35
    # Each pending row is compacted with at most five of the base.
    assert written[5_000] < 2 * written[100]


# --- the logs of Delta tables ---


@pytest.fixture
def long_log(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A rewritten and an appended view after more commits than stay in a log."""
    monkeypatch.setattr(delta_log, "IN_THE_LOG", 20)
    root = place / "long"
    if root.exists():
        return root
    with Warehouse.open(root, compaction=CompactionPolicy(files=8)) as wh:
        with wh.commit() as commit:
            commit.create("a", ORDER_TYPES, rows=orders((0, "x")), vector={"shop": position(0)})
            commit.create("r", ORDER_TYPES, rows=orders((0, "x")), layout="rewritten")
        for step in range(1, 80):
            moved = {"a": orders((step, "x")), "r": orders((step, "x"), minus=((step - 1, "x"),))}
            with wh.commit() as commit:
                commit.state("main", {"shop": position(step)}, moved)
    return root


def test_a_log_stays_short_and_every_state_can_be_read(long_log: Path) -> None:
    for view in ("a", "r"):
        assert len(list((long_log / "views" / view / "_delta_log").iterdir())) < 50
        assert DeltaTable(str(long_log / "views" / view)).version() >= 79
    with Warehouse.open(long_log, read_only=True) as wh:
        for state in range(80):
            assert sorted(wh.arrow("a", state)["id"].to_pylist()) == list(range(state + 1))
            assert wh.arrow("r", state)["id"].to_pylist() == [state]


def test_checkpoints_do_not_list_files_that_were_removed(long_log: Path) -> None:
    log = long_log / "views" / "r"
    sizes = [path.stat().st_size for path in sorted(log.rglob("*.checkpoint.parquet"))]
    assert len(sizes) > 5
    assert max(sizes[1:]) < 1.05 * min(sizes[1:])


def test_a_state_is_read_though_writers_were_killed_before_they_wrote_checkpoints(long_log: Path) -> None:
    root = copy(long_log)
    for checkpoint in sorted(root.glob("views/a/_delta_log*/*.checkpoint.parquet"), key=lambda path: path.name)[:3]:
        checkpoint.unlink()
    with Warehouse.open(root, read_only=True) as wh:
        for state in (0, 25, 35, 45):
            assert wh.arrow("a", state).num_rows == state + 1


def test_a_reader_finds_entries_that_are_put_aside_while_it_reads(
    long_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy(long_log)
    with Warehouse.open(root, read_only=True) as wh:
        log, reads = delta_log.LOG, []

        def read(path: Path) -> bytes:
            """The writer is just ahead of the reader."""
            reads.append(path)
            if path.parent.name == log and path.exists():
                path.rename(path.parent.with_name(delta_log.OLD_LOG) / path.name)
            return path.read_bytes()

        opened = delta_log._opened
        monkeypatch.setattr(
            delta_log, "_opened", lambda *given: opened(*given[:3], read if given[3] is Path.read_bytes else given[3])
        )
        assert wh.arrow("a", 78).num_rows == 79
        assert {path.parent.name for path in reads} == {log, delta_log.OLD_LOG}


def test_a_commit_stands_though_old_entries_cannot_be_put_aside(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(delta_log, "IN_THE_LOG", 5)
    root = place / "stuck"

    def fail(store: LocalStore, names: list[str], folder: str, target: str) -> None:
        raise storage_failure(OSError(errno.ENOSPC, "full"), store.path(target))

    with Warehouse.open(root, compaction=None) as wh:
        with wh.commit() as commit:
            commit.create("a", ORDER_TYPES, vector={"shop": position(0)})
        with monkeypatch.context() as patch:
            patch.setattr(LocalStore, "move_all", fail)
            for step in range(1, 25):
                with wh.commit() as commit:
                    commit.state("main", {"shop": position(step)}, {"a": orders((step, "x"))})
        assert "entries stay in the Delta log of views/a" in caplog.text
        assert not list(root.rglob("_delta_log_old/*"))
        assert wh.arrow("a").num_rows == 24
        for step in range(25, 31):
            with wh.commit() as commit:
                commit.state("main", {"shop": position(step)}, {"a": orders((step, "x"))})
        assert list(root.rglob("_delta_log_old/*"))
        assert wh.arrow("a", 3).num_rows == 3


def test_vacuum_takes_the_old_entries_away(long_log: Path) -> None:
    with Warehouse.open(long_log) as wh:
        wh.vacuum(0, grace=0)
        assert wh.arrow("r")["id"].to_pylist() == [79]
    assert not list(long_log.rglob("_delta_log_old/*"))


def test_a_long_log_of_an_earlier_version_is_shortened_little_by_little(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = place / "earlier"
    with Warehouse.open(root, compaction=None) as wh:
        with wh.commit() as commit:
            commit.create("a", ORDER_TYPES, vector={"shop": position(0)})
        for step in range(1, 60):
            with wh.commit() as commit:
                commit.state("main", {"shop": position(step)}, {"a": orders((step, "x"))})
    assert not list(root.rglob("_delta_log_old/*"))
    monkeypatch.setattr(delta_log, "IN_THE_LOG", 20)
    monkeypatch.setattr(delta_log, "AT_ONCE", 15)
    aside = []
    with Warehouse.open(root, compaction=None) as wh:
        for step in range(60, 100):
            with wh.commit() as commit:
                commit.state("main", {"shop": position(step)}, {"a": orders((step, "x"))})
            aside.append(len(list(root.rglob("_delta_log_old/*.json"))))
        assert {here - before for before, here in itertools.pairwise(aside)} <= {0, 10, 15}
        assert aside[-1] == 60
        assert wh.arrow("a", 30).num_rows == 30
    assert CommitLog(LocalStore(root)).last().tables["a"].version == 99
    assert Stored(root).last["commit"] == 100
