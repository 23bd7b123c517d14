"""SQLite as a source: what it accepts, what it refuses, and what it leaves behind."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from exactness import Recorded, matching, operand, read, whole

from viewkeeper.errors import (
    BadSourceUrl,
    PositionLost,
    SourceUnavailable,
    SourceUnfit,
    UnknownTable,
    UnsupportedType,
)
from viewkeeper.messages import Fetch, GlobalPart, position
from viewkeeper.sources.base import Disruption, Request
from viewkeeper.sources.sqlite import SqliteSource
from viewkeeper.sources.sqlite import source as sqlite_source

Opened = Callable[..., SqliteSource]


@pytest.fixture
def user(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "a.db", isolation_level=None, timeout=30)
    yield connection
    connection.close()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    sources: list[SqliteSource] = []

    def make(identity: str = "w1", **more: object) -> SqliteSource:
        sources.append(SqliteSource(Request("s", f"sqlite:///{tmp_path / 'a.db'}", identity, **more)))  # type: ignore[arg-type]
        return sources[-1]

    yield make
    for source in sources:
        source.close()


def schema(user: sqlite3.Connection) -> list[tuple[str, ...]]:
    return user.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").fetchall()


# Installing and removing


def test_removal_leaves_everything_as_it_was(user: sqlite3.Connection, opened: Opened) -> None:
    user.executescript('CREATE TABLE t (id INTEGER PRIMARY KEY); CREATE TABLE "a ""b"" \'c\'" ("select" INT UNIQUE)')
    before = schema(user)
    user.close()
    source = opened()
    source.install()
    installed = sqlite3.connect(source._database.path)
    again = schema(installed)
    assert again != before
    assert installed.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    installed.close()
    source.install()
    assert source.doctor() == []
    assert source.remove() == []
    after = sqlite3.connect(source._database.path)
    assert schema(after) == before
    assert after.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    after.close()
    assert source.remove() == []


def test_the_journal_mode_is_left_to_others_who_have_the_database_open(
    user: sqlite3.Connection, opened: Opened
) -> None:
    user.execute("CREATE TABLE t (id INT)")
    source = opened()
    source.install()
    user.execute("SELECT * FROM t").fetchall()
    assert source.remove() == ["PRAGMA journal_mode = DELETE;"]


def test_two_warehouses_capture_one_database(user: sqlite3.Connection, opened: Opened) -> None:
    user.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INT UNIQUE)")
    one, other = opened("w1"), opened("w2")
    one.install()
    other.install()
    user.execute("INSERT INTO t VALUES (1, 1)")
    user.execute("INSERT OR REPLACE INTO t VALUES (2, 1)")
    for source in (one, other):
        with Recorded(source) as recorded:
            recorded.catch_up()
        assert [[(c.row, c.count) for c in t.changes] for t in recorded.transactions] == [
            [((1, 1), 1)],
            [((1, 1), -1), ((2, 1), 1)],
        ]
    assert one.remove() == []
    user.close()
    assert other.doctor() == []
    assert other.remove() == []
    left = sqlite3.connect(one._database.path)
    assert left.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    left.close()


def test_the_doctor_shows_the_statements_that_install_runs(user: sqlite3.Connection, opened: Opened) -> None:
    user.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT UNIQUE)")
    source = opened()
    fatal = {finding.fatal: finding for finding in source.doctor()}
    assert fatal.keys() == {True, False}
    with pytest.raises(SourceUnfit, match="not captured: t"):
        source.end()
    with pytest.raises(SourceUnfit):
        next(source.transactions(None, threading.Event()))
    with pytest.raises(SourceUnfit):
        read(source, whole(source.relations["s.t"]))
    user.executescript(fatal[True].fix)
    user.executescript(fatal[False].fix)
    assert source.doctor() == []
    user.execute("INSERT INTO t VALUES (1, 'a')")
    with Recorded(source) as recorded:
        recorded.catch_up()
    assert len(recorded.transactions) == 1


def test_positions_of_a_former_installation_are_lost(user: sqlite3.Connection, opened: Opened) -> None:
    user.execute("CREATE TABLE t (id INT)")
    source = opened()
    source.install()
    former = source.end()
    source.remove()
    source.install()
    for after in (former, position(1 << 62), "nonsense"):
        with pytest.raises(PositionLost):
            next(source.transactions(after, threading.Event()))


# Transactions


def test_each_commit_is_a_transaction_even_after_a_checkpoint(user: sqlite3.Connection, opened: Opened) -> None:
    user.executescript("CREATE TABLE t (id INT); CREATE TABLE global_tx (gid TEXT, source TEXT, participants TEXT)")
    source = opened(tables=("t",))
    source.install()
    with Recorded(source) as recorded:
        for number in range(5):
            user.execute("BEGIN")
            user.execute("INSERT INTO t VALUES (?)", (number,))
            user.execute("INSERT INTO global_tx VALUES (?, 's', 's, r')", (f"g{number}",))
            user.execute("COMMIT")
            recorded.catch_up()
            user.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if number == 2:
                user.execute("VACUUM")
    assert list(source.relations) == ["s.t"]
    assert [(t.parts, len(t.changes)) for t in recorded.transactions] == [
        ((GlobalPart(f"g{number}", ("s", "r")),), 1) for number in range(5)
    ]


def test_commits_that_nobody_followed_are_told_apart_by_the_wal_file(user: sqlite3.Connection, opened: Opened) -> None:
    user.execute("CREATE TABLE t (id INT)")
    source = opened()
    source.install()
    for number in range(20):
        user.execute("INSERT INTO t VALUES (?)", (number,))
    with Recorded(source) as recorded:
        recorded.catch_up()
    assert len(recorded.transactions) == 20
    assert sum(transaction.merged for transaction in recorded.transactions) <= 1


def test_without_the_wal_commits_are_merged_but_not_across_a_reading(user: sqlite3.Connection, opened: Opened) -> None:
    user.execute("CREATE TABLE t (id INT)")
    source = opened()
    source.install()
    source.close()
    user.execute("SELECT * FROM t").fetchall()
    assert user.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    source = opened()
    assert [finding.fatal for finding in source.doctor()] == [False]
    for number in range(10):
        user.execute("INSERT INTO t VALUES (?)", (number,))
        if number == 5:
            between, _ = read(source, whole(source.relations["s.t"]))
    with Recorded(source) as recorded:
        recorded.catch_up()
    assert [len(transaction.changes) for transaction in recorded.transactions] == [6, 4]
    assert recorded.transactions[0].position == between
    assert all(transaction.merged for transaction in recorded.transactions)


def test_a_merged_transaction_has_every_global_id_of_it(user: sqlite3.Connection, opened: Opened) -> None:
    user.executescript("CREATE TABLE t (id INT); CREATE TABLE global_tx (gid TEXT, source TEXT, participants TEXT)")
    source = opened(tables=("t",))
    source.install()
    source.close()
    user.execute("SELECT * FROM t").fetchall()
    user.execute("PRAGMA journal_mode = DELETE").fetchone()
    source = opened(tables=("t",))
    for gid, participants in (("g1", "s, r"), ("g2", "s"), ("g1", "s, r")):
        user.execute("BEGIN")
        user.execute("INSERT INTO t VALUES (1)")
        user.execute("INSERT INTO global_tx VALUES (?, 's', ?)", (gid, participants))
        user.execute("COMMIT")
    with Recorded(source) as recorded:
        recorded.catch_up()
    (transaction,) = recorded.transactions
    assert transaction.merged
    assert transaction.parts == (GlobalPart("g1", ("s", "r"), 2), GlobalPart("g2", ("s",)))
    assert len(transaction.changes) == 3


# Values


TYPED = """CREATE TABLE t (
    i INTEGER, r REAL, s VARCHAR(10), b BLOB, o BOOLEAN, d DECIMAL(10, 2), y DATE, z DATETIME, n NUMERIC(5)
)"""
ROWS = [
    (
        1 << 62,
        0.1,
        "é\U0001f600",
        b"\0\xff",
        True,
        Decimal("12.30"),
        date(2024, 2, 29),
        datetime(2024, 1, 1),
        Decimal(7),
    ),
    (-1, 3.0, "", b"", False, Decimal("5.00"), date(1, 1, 1), datetime(2024, 1, 1, 1, 2, 3, 500000), Decimal(0)),
    (None,) * 9,
]
STORED = [
    (1 << 62, 0.1, "é\U0001f600", b"\0\xff", 1, 12.3, "2024-02-29", "2024-01-01 00:00:00", 7),
    (-1, 3, "", b"", 0, 5, "0001-01-01", "2024-01-01T01:02:03.500", "0"),
    (None,) * 9,
]


def test_values_are_the_same_in_stream_and_readings_and_as_keys(user: sqlite3.Connection, opened: Opened) -> None:
    user.execute(TYPED)
    source = opened()
    source.install()
    relation = source.relations["s.t"]
    assert relation.types == (
        *(
            "BIGINT",
            "DOUBLE",
            "STRING",
            "BINARY",
            "BOOLEAN",
            "DECIMAL(10, 2)",
            "DATE",
            "TIMESTAMP_NTZ",
            "DECIMAL(5, 0)",
        ),
    )
    with Recorded(source) as recorded:
        user.executemany(f"INSERT INTO t VALUES ({', '.join('?' * 9)})", STORED)
        for place, column in enumerate(relation.columns):
            for row in ROWS[:2]:
                (answer,) = recorded.read(matching(relation, column, row[place])).bags
                assert list(answer) == [row]
        recorded.catch_up()
    recorded.check()
    got = [change.row for transaction in recorded.transactions for change in transaction.changes]
    assert got == ROWS
    assert [[type(value) for value in row] for row in got] == [[type(value) for value in row] for row in ROWS]


def test_timestamps_join_whatever_form_they_are_stored_in(user: sqlite3.Connection, opened: Opened) -> None:
    user.executescript("CREATE TABLE a (x TIMESTAMP); CREATE TABLE b (y TIMESTAMP)")
    user.execute("INSERT INTO a VALUES ('2024-01-01 00:00:00')")
    user.execute("INSERT INTO b VALUES ('2024-01-01T00:00:00.000')")
    source = opened()
    source.install()
    a, b = operand(source.relations["s.a"], "a"), operand(source.relations["s.b"], "b", 1)
    _, (bag,) = read(source, Fetch((a, b), ("a.x", "b.y"), (("a.x", "b.y"),)))
    assert list(bag) == [(datetime(2024, 1, 1), datetime(2024, 1, 1))]


@pytest.mark.parametrize("declared", ["", "JSON", "NUMERIC", "DECIMAL(20, 2)", "DECIMAL(19)", "TIME", "ANY"])
def test_types_that_cannot_be_kept_are_refused(user: sqlite3.Connection, opened: Opened, declared: str) -> None:
    user.execute(f"CREATE TABLE t (id INT, c {declared})")
    with pytest.raises(UnsupportedType, match="column c of table t"):
        opened()


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("INTEGER", "'x'"),
        ("INTEGER", "1.5"),
        ("TEXT", "x'00'"),
        ("TEXT", "CAST(x'ff' AS TEXT)"),
        ("BLOB", "1"),
        ("BOOLEAN", "2"),
        ("DECIMAL(5, 2)", "0.1 + 0.2"),
        ("DECIMAL(5, 2)", "1000"),
        ("DATE", "'2024-1-1'"),
        ("TIMESTAMP", "'2024-01-01 00:00:00Z'"),
        ("TIMESTAMP", "1700000000"),
    ],
)
def test_a_value_that_is_not_of_its_type_disrupts_its_relation_alone(
    user: sqlite3.Connection, opened: Opened, declared: str, value: str
) -> None:
    user.executescript(f"CREATE TABLE bad (id INT, c {declared}); CREATE TABLE good (id INT)")
    source = opened()
    source.install()
    with Recorded(source) as recorded:
        user.executescript(
            f"BEGIN; INSERT INTO good VALUES (1); INSERT INTO bad VALUES (7, {value}); COMMIT;"
            "INSERT INTO bad VALUES (8, NULL); INSERT INTO good VALUES (2);"
        )
        recorded.catch_up()
        with pytest.raises(UnsupportedType, match=r"table bad of s holds .* in column c \(rowid 1\)"):
            read(source, whole(source.relations["s.bad"]))
        recorded.read(whole(source.relations["s.good"]))
    disruptions = [event for event in recorded.events if isinstance(event, Disruption)]
    assert [(event.relation, event.position) for event in disruptions] == [("s.bad", recorded.transactions[0].position)]
    assert [change.relation for transaction in recorded.transactions for change in transaction.changes] == [
        "s.good"
    ] * 2


# Tables


@pytest.mark.parametrize(
    "alteration",
    [
        "ALTER TABLE t RENAME TO other",
        "ALTER TABLE t RENAME COLUMN a TO b",
        "CREATE UNIQUE INDEX more ON t (a)",
        "DROP TABLE t",
        "DROP TABLE t; CREATE TABLE t (id INTEGER PRIMARY KEY, a INT)",
    ],
)
def test_an_altered_table_is_disrupted_until_it_is_installed_again(
    user: sqlite3.Connection, opened: Opened, alteration: str
) -> None:
    user.executescript("CREATE TABLE t (id INTEGER PRIMARY KEY, a INT); CREATE TABLE good (id INT)")
    source = opened()
    source.install()
    with Recorded(source) as recorded:
        user.execute("INSERT INTO t VALUES (1, 1)")
        recorded.catch_up()
        user.executescript(alteration)
        user.execute("INSERT INTO good VALUES (1)")
        recorded.catch_up()
        with pytest.raises(UnknownTable, match="table t"):
            read(source, whole(source.relations["s.t"]))
    assert [event.relation for event in recorded.events if isinstance(event, Disruption)] == ["s.t"]
    assert [change.relation for t in recorded.transactions for change in t.changes] == ["s.t", "s.good"]
    after = recorded.transactions[-1].position
    again = opened()
    assert any("t" in finding.what and finding.fatal for finding in again.doctor())
    if "RENAME TO" in alteration or alteration == "DROP TABLE t":
        return
    again.install()
    assert again.doctor() == []
    with Recorded(again, after) as recorded:
        user.execute("INSERT INTO t VALUES (2, 2)")
        recorded.catch_up()
    # A column that was renamed was captured all the time: who reads it is told by its name.
    missed = [] if "RENAME COLUMN" in alteration else ["s.t"]
    assert [event.relation for event in recorded.events if isinstance(event, Disruption)] == missed
    assert [change.row for t in recorded.transactions for change in t.changes] == [(2, 2)]


def test_a_disruption_comes_without_any_change(user: sqlite3.Connection, opened: Opened) -> None:
    user.execute("CREATE TABLE t (id INT)")
    source = opened()
    source.install()
    for batch in source.transactions(None, threading.Event()):
        if batch.events:
            break
        user.execute("DROP TABLE IF EXISTS t")
    assert [event.relation for event in batch.events if isinstance(event, Disruption)] == ["s.t"]


def test_an_added_column_is_captured_from_the_next_installation_on(user: sqlite3.Connection, opened: Opened) -> None:
    user.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    source = opened()
    source.install()
    with Recorded(source) as recorded:
        user.execute("ALTER TABLE t ADD COLUMN a INT")
        user.execute("INSERT INTO t VALUES (1, 1)")
        recorded.catch_up()
        recorded.read(whole(source.relations["s.t"]))
    recorded.check()
    again = opened()
    assert again.relations["s.t"].columns == ("id",)
    assert again.doctor()
    again.install()
    assert again.relations["s.t"].columns == ("id", "a")


def test_names_keys_and_tables(user: sqlite3.Connection, opened: Opened) -> None:
    user.executescript(
        """CREATE TABLE "Grün ""x"" select" ("order by" INT, "ünï" TEXT, PRIMARY KEY ("ünï", "order by")) WITHOUT ROWID;
        CREATE TABLE bag ("rowid" INT, b TEXT); CREATE VIEW v AS SELECT 1; CREATE VIRTUAL TABLE f USING fts5(x)"""
    )
    source = opened(keys={"BAG": ("B",)})
    assert {name: relation.key for name, relation in source.relations.items()} == {
        's.Grün "x" select': ("ünï", "order by"),
        "s.bag": ("b",),
    }
    source.install()
    with Recorded(source) as recorded:
        user.execute('INSERT INTO "Grün ""x"" select" VALUES (1, \'a\')')
        user.execute('REPLACE INTO "Grün ""x"" select" VALUES (1, \'a\')')
        user.execute("INSERT INTO bag VALUES (5, 'b'), (5, 'b')")
        recorded.read(*map(whole, source.relations.values()))
        recorded.catch_up()
    recorded.check()
    assert recorded.contents["s.bag"] == {(5, "b"): 2}
    for wrong in ({"tables": ("nope",)}, {"tables": ("v",)}, {"keys": {"bag": ("c",)}}):
        with pytest.raises(UnknownTable):
            opened(**wrong)
    user.executescript("DELETE FROM bag; CREATE UNIQUE INDEX e ON bag (lower(b))")
    with pytest.raises(UnknownTable, match="expression"):
        opened("w3")


def test_many_keys_use_an_index_and_give_each_row_once(user: sqlite3.Connection, opened: Opened) -> None:
    user.executescript("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT COLLATE NOCASE); CREATE INDEX i ON t (a)")
    user.execute("BEGIN")
    user.executemany("INSERT INTO t VALUES (?, ?)", ((number, f"k{number}") for number in range(30_000)))
    user.execute("COMMIT")
    source = opened()
    source.install()
    relation = source.relations["s.t"]
    keys = [f"{'kK'[number % 2]}{number // 2}" for number in range(40_000)]
    _, (bag, everything, nothing) = read(
        source, matching(relation, "a", *keys), whole(relation), matching(relation, "a")
    )
    assert len(bag) == 20_000
    assert set(bag.values()) == {1}
    assert len(everything) == 30_000
    assert not nothing


# Errors


@pytest.mark.parametrize(
    "url", ["sqlite://host/a.db", "sqlite:///", "sqlite:///:memory:", "sqlite:///a.db?mode=ro", "postgres:///a", "a.db"]
)
def test_bad_urls(url: str) -> None:
    with pytest.raises(BadSourceUrl):
        SqliteSource(Request("s", url, "w1"))


def test_files_that_are_no_database(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database at all, and long enough to be looked at" * 100)
    with pytest.raises(SourceUnfit, match="not a database"):
        SqliteSource(Request("s", f"sqlite:///{tmp_path}/text", "w1"))
    with pytest.raises(SourceUnfit, match="No such file"):
        SqliteSource(Request("s", f"sqlite:///{tmp_path}/missing", "w1"))
    assert not (tmp_path / "missing").exists()


def test_a_locked_database(user: sqlite3.Connection, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viewkeeper.sources.sqlite.connections.Database.connect.__kwdefaults__", {"busy_seconds": 0.1})
    user.execute("CREATE TABLE t (id INT)")
    source = opened()
    user.execute("BEGIN IMMEDIATE")
    with pytest.raises(SourceUnavailable, match="locked"):
        source.install()
    user.execute("COMMIT")
    source.install()


def test_a_database_file_that_is_replaced(user: sqlite3.Connection, opened: Opened, tmp_path: Path) -> None:
    user.execute("CREATE TABLE t (id INT)")
    source = opened()
    source.install()
    stream = source.transactions(None, threading.Event())
    next(stream)
    (tmp_path / "b.db").touch()
    os.replace(tmp_path / "b.db", tmp_path / "a.db")
    with pytest.raises(SourceUnavailable, match="replaced"):
        next(stream)


def test_a_stream_that_waits_for_changes_stops_at_once(
    user: sqlite3.Connection, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_source, "REST", 3600)
    user.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    source = opened()
    source.install()
    stop, begun = threading.Event(), threading.Event()

    def follow() -> None:
        for _ in source.transactions(None, stop):
            begun.set()

    stream = threading.Thread(target=follow)
    stream.start()
    assert begun.wait(20)
    stop.set()
    stream.join(20)
    assert not stream.is_alive()
