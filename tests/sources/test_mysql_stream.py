"""The stream of MariaDB: whole transactions, in order, once; and what it says when it cannot go on."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from exactness import Recorded, matching, operand, read, whole
from mariadb_server import MariaDb, Session, a_server

from viewkeeper.errors import (
    BadSourceUrl,
    PositionLost,
    SourceUnavailable,
    SourceUnfit,
    UnknownTable,
)
from viewkeeper.messages import Fetch, GlobalPart, Transaction
from viewkeeper.sources.base import Disruption, Request
from viewkeeper.sources.mysql.source import MySqlSource
from waiting import joined

DATABASE = "stream_test"
Open = Callable[..., MySqlSource]


@pytest.fixture
def root(mariadb: MariaDb) -> Iterator[Session]:
    with mariadb.root() as session:
        session.execute(f"CREATE OR REPLACE DATABASE {DATABASE}")
        session.execute(f"USE {DATABASE}")
        session.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))")
        yield session


@pytest.fixture
def opened(mariadb: MariaDb) -> Iterator[Open]:
    sources: list[MySqlSource] = []

    def open_one(*tables: str, url: str = mariadb.url(DATABASE), **more: Any) -> MySqlSource:
        sources.append(MySqlSource(Request("s", url, "stream", tables or None, **more)))
        return sources[-1]

    yield open_one
    for source in sources:
        source.close()


def rows_of(recorded: Recorded) -> list[list[tuple[Any, ...]]]:
    """Per transaction its rows with their counts."""
    return [[(*change.row, change.count) for change in one.changes] for one in recorded.transactions]


# --- transactions ---


def test_statements_become_whole_transactions(root: Session, opened: Open) -> None:
    with Recorded(opened()) as recorded:
        root.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        root.execute("BEGIN")
        root.execute("UPDATE t SET v = 'c' WHERE id = 1")
        root.execute("DELETE FROM t WHERE id = 2")
        root.execute("COMMIT")
        root.execute("BEGIN")
        root.execute("INSERT INTO t VALUES (3, 'never')")
        root.execute("ROLLBACK")
        root.execute("REPLACE INTO t VALUES (1, NULL)")
        recorded.catch_up()
    recorded.check()
    assert rows_of(recorded) == [
        [(1, "a", 1), (2, "b", 1)],
        [(1, "a", -1), (1, "c", 1), (2, "b", -1)],
        [(1, "c", -1), (1, None, 1)],
    ]


def test_work_behind_a_savepoint_that_was_rolled_back_never_appears(root: Session, opened: Open) -> None:
    """With a table that has no transactions in between, the log holds the rows and then the way back."""
    root.execute("CREATE TABLE plain (id INT) ENGINE = MyISAM")
    with Recorded(opened("t")) as recorded:
        for statement in (
            "BEGIN",
            "INSERT INTO t VALUES (1, 'a')",
            "SAVEPOINT one",
            "INSERT INTO t VALUES (2, 'never')",
            "SAVEPOINT two",
            "INSERT INTO plain VALUES (1)",
            "INSERT INTO t VALUES (3, 'never')",
            "ROLLBACK TO one",
            "INSERT INTO t VALUES (4, 'd')",
            "COMMIT",
            "BEGIN",
            "INSERT INTO t VALUES (5, 'never')",
            "INSERT INTO plain VALUES (2)",
            "ROLLBACK",
        ):
            root.execute(statement)
        recorded.catch_up()
    assert rows_of(recorded) == [[(1, "a", 1), (4, "d", 1)]]


def test_an_xa_transaction_appears_when_it_is_committed(root: Session, opened: Open) -> None:
    with Recorded(opened()) as recorded:
        for name, number in (("one", 1), ("two", 2)):
            root.execute(f"XA START '{name}', 'branch'")
            root.execute("INSERT INTO t VALUES (%s, 'xa')", (number,))
            root.execute(f"XA END '{name}', 'branch'")
            root.execute(f"XA PREPARE '{name}', 'branch'")
            if number == 1:
                root.execute("XA ROLLBACK 'one', 'branch'")
        recorded.catch_up()
        assert rows_of(recorded) == []
        root.execute("XA COMMIT 'two', 'branch'")
        root.execute("XA START 'three'")
        root.execute("INSERT INTO t VALUES (3, 'xa')")
        root.execute("XA END 'three'")
        root.execute("XA COMMIT 'three' ONE PHASE")
        recorded.catch_up()
    assert rows_of(recorded) == [[(2, "xa", 1)], [(3, "xa", 1)]]


def test_an_xa_transaction_that_was_prepared_before_is_a_disruption(root: Session, opened: Open) -> None:
    root.execute("XA START 'early'")
    root.execute("INSERT INTO t VALUES (1, 'xa')")
    root.execute("XA END 'early'")
    root.execute("XA PREPARE 'early'")
    with Recorded(opened()) as recorded:
        root.execute("XA COMMIT 'early'")
        recorded.catch_up()
    assert [(type(event), event.relation) for event in recorded.events] == [(Disruption, "s.t")]


def test_a_row_in_global_tx_makes_a_transaction_a_part_of_a_global_one(root: Session, opened: Open) -> None:
    root.execute("CREATE TABLE global_tx (gid VARCHAR(40), source VARCHAR(40), participants VARCHAR(100))")
    source = opened("t")
    assert list(source.relations) == ["s.t"]
    with Recorded(source) as recorded:
        root.execute("BEGIN")
        root.execute("INSERT INTO global_tx VALUES ('g7', 's', 's, other')")
        root.execute("INSERT INTO t VALUES (1, 'a')")
        root.execute("COMMIT")
        recorded.catch_up()
    (one,) = recorded.transactions
    assert (one.parts, len(one.changes)) == ((GlobalPart("g7", ("s", "other")),), 1)


def test_other_databases_only_move_the_position(root: Session, opened: Open) -> None:
    source = opened("t")
    root.execute("CREATE TABLE u (id INT)")
    with Recorded(source) as recorded:
        root.execute("INSERT INTO u VALUES (1)")
        root.execute("CREATE OR REPLACE DATABASE stream_elsewhere")
        root.execute("CREATE TABLE stream_elsewhere.t (id INT PRIMARY KEY, v INT)")
        root.execute("INSERT INTO stream_elsewhere.t VALUES (1, 1)")
        recorded.catch_up()
    assert recorded.events == []


def test_a_table_of_another_database_can_be_named(root: Session, opened: Open) -> None:
    root.execute("CREATE OR REPLACE DATABASE stream_elsewhere")
    root.execute("CREATE TABLE stream_elsewhere.t (a INT PRIMARY KEY)")
    source = opened("t", "stream_elsewhere.t")
    assert set(source.relations) == {"s.t", "s.stream_elsewhere.t"}
    with Recorded(source) as recorded:
        root.execute("INSERT INTO stream_elsewhere.t VALUES (1)")
        root.execute("INSERT INTO t VALUES (2, 'b')")
        recorded.read(whole(source.relations["s.stream_elsewhere.t"]), whole(source.relations["s.t"]))
        recorded.catch_up()
    recorded.check()
    assert [change.relation for one in recorded.transactions for change in one.changes] == [
        "s.stream_elsewhere.t",
        "s.t",
    ]


def test_large_transactions_and_large_fetches(root: Session, opened: Open) -> None:
    source = opened()
    with Recorded(source) as recorded:
        root.execute("INSERT INTO t SELECT seq, CONCAT('v', seq) FROM seq_1_to_30000")
        relation = source.relations["s.t"]
        recorded.read(whole(relation))
        with source.reading([whole(relation), whole(relation)]) as reading:
            first, second = reading.rows
            begun = len(next(first))
            assert 0 < begun < 10_000, "a whole table comes in batches"
            assert sum(map(len, second)) == 30_000, "a second result can be read before the first is finished"
            assert begun + sum(map(len, first)) == 30_000
        with source.reading([whole(relation)]) as reading:
            next(reading.rows[0])
        many = matching(relation, "v", *(f"v{number}" for number in range(5_000, 25_000)))
        assert sum(recorded.read(many).bags[0].values()) == 20_000
        recorded.catch_up()
    assert [len(one.changes) for one in recorded.transactions] == [30_000]


def test_a_fetch_of_no_columns_counts_rows(root: Session, opened: Open) -> None:
    source = opened()
    root.execute("INSERT INTO t VALUES (1, 'a'), (2, 'a'), (3, 'b')")
    with Recorded(source):
        only = operand(source.relations["s.t"])
        (bag,) = read(source, Fetch((only,), (), (), ("r.v",), (("a",),)))[1]
        assert bag == {(): 2}
        (bag,) = read(source, Fetch((only,), only.columns, (), ("r.v",), ()))[1]
        assert bag == {}


def test_rows_that_meet_others_are_found_whatever_their_collations(root: Session, opened: Open) -> None:
    """The server refuses to compare columns of two collations; a row comes once, though its equality is wider."""
    root.execute("CREATE TABLE a (id INT PRIMARY KEY, c VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_bin)")
    root.execute("CREATE TABLE b (c VARCHAR(20) COLLATE utf8mb4_general_ci, n INT, INDEX (c))")
    root.execute("INSERT INTO a VALUES (1, 'x'), (2, 'X'), (3, 'é'), (4, 'q'), (5, NULL)")
    root.execute("INSERT INTO b VALUES ('x', 1), ('x', 1), ('é', 2), ('q', 3), ('☃', 4), (NULL, 5)")
    source = opened("a", "b")
    with Recorded(source):
        a, b = operand(source.relations["s.a"], "a"), operand(source.relations["s.b"], "b", 1)
        among = Fetch((a,), ("a.c",), (), ("a.id",), ((1,), (2,), (3,), (5,)))
        (bag,) = read(source, Fetch((b,), b.columns, (), ("b.c",), None, among))[1]
        assert bag == {("x", 1): 2, ("é", 2): 1}
        among = Fetch((b,), ("b.c",), (), ("b.n",), ((1,), (4,)))
        (bag,) = read(source, Fetch((a,), a.columns, (), ("a.c",), None, among))[1]
        assert bag == {(1, "x"): 1}


# --- what the stream does not tell ---


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE TABLE t",
        "DROP TABLE t",
        "RENAME TABLE t TO u",
        "CREATE OR REPLACE TABLE t (a INT)",
        "/* why */ alter table `stream_test`.`t` CONVERT TO CHARACTER SET latin1",
        "SET STATEMENT binlog_format = 'STATEMENT' FOR INSERT INTO t VALUES (9, 'x')",
    ],
)
def test_what_changes_a_table_as_a_whole_is_a_disruption(root: Session, opened: Open, statement: str) -> None:
    with Recorded(opened()) as recorded:
        root.execute("CREATE TABLE other (id INT)")
        root.execute("INSERT INTO t VALUES (1, 'a')")
        root.execute("TRUNCATE TABLE other")
        root.execute("ALTER TABLE other ADD COLUMN t INT")
        root.execute("CREATE INDEX by_v ON t (v)")
        root.execute("ANALYZE TABLE t")
        root.execute(statement)
        recorded.catch_up()
    first, second = recorded.events
    assert isinstance(first, Transaction)
    assert isinstance(second, Disruption)
    assert second.relation == "s.t"
    assert second.position > first.position


def test_rows_in_another_form_are_a_disruption(root: Session, opened: Open) -> None:
    """They were written before the table got its present columns, or by a session that logs less."""
    root.execute("CREATE TABLE o (id INT PRIMARY KEY)")
    before = opened("t").end()
    root.execute("INSERT INTO o VALUES (1)")
    root.execute("ALTER TABLE o ADD COLUMN w INT")
    root.execute("SET SESSION binlog_row_image = MINIMAL")
    root.execute("UPDATE o SET w = 2")
    source = opened("o")
    stop = threading.Event()
    events: list[Any] = []
    end = source.end()
    for batch in source.transactions(before, stop):
        events += batch.events
        if batch.upto >= end:
            stop.set()
    lacking, inserted, partial = events
    assert (lacking.relation, lacking.columns) == ("s.o", frozenset({"w"}))
    assert [change.row for change in inserted.changes] == [(1, None)]
    assert (partial.relation, partial.columns) == ("s.o", None)


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        ("ALTER TABLE t ADD COLUMN w INT DEFAULT 5, ADD INDEX (v)", None),
        ("ALTER TABLE t ADD (w TIME, x JSON), COMMENT = 'new'", None),
        ("/* why */ alter table `stream_test`.`t` MODIFY v TEXT", None),
        ("ALTER TABLE t CHANGE COLUMN v v VARCHAR(200)", None),
        ("ALTER TABLE t DROP COLUMN v", {"v"}),
        ("ALTER TABLE t RENAME COLUMN v TO w, ADD COLUMN x INT", {"v"}),
        ("ALTER TABLE t MODIFY COLUMN v INT", {"v"}),
    ],
)
def test_what_alters_columns_is_told_to_those_who_read_them(
    root: Session, opened: Open, statement: str, columns: set[str] | None
) -> None:
    with Recorded(opened()) as recorded:
        root.execute("INSERT INTO t VALUES (1, '7')")
        root.execute(statement)
        root.execute("INSERT INTO t (id) VALUES (2)")
        recorded.catch_up()
    first, *told, last = recorded.events
    assert isinstance(first, Transaction)
    assert {column for one in told for column in one.columns or {"all"}} == (columns or set())
    assert [change.row for change in last.changes] == [(2, None)]


# --- going on ---


def test_the_stream_goes_on_where_it_stopped_also_across_files(root: Session, opened: Open) -> None:
    source = opened()
    with Recorded(source) as first:
        root.execute("INSERT INTO t VALUES (1, 'a')")
        root.execute("FLUSH BINARY LOGS")
        root.execute("INSERT INTO t VALUES (2, 'b')")
        first.catch_up()
    root.execute("INSERT INTO t VALUES (3, 'c')")
    root.execute("FLUSH BINARY LOGS")
    root.execute("INSERT INTO t VALUES (4, 'd')")
    for place in (0, 1):
        with Recorded(opened(), first.transactions[place].position) as second:
            second.catch_up()
        assert [row[0][0] for row in rows_of(second)] == [2, 3, 4][place:]
    with Recorded(opened(), source.end()) as third:
        third.catch_up()
        root.execute("INSERT INTO t VALUES (5, 'e')")
        third.catch_up()
    assert [row[0][0] for row in rows_of(third)] == [5]


def test_a_position_that_is_gone_is_told(root: Session, opened: Open) -> None:
    source = opened()
    old = source.end()
    root.execute("FLUSH BINARY LOGS")
    ((current, *_),) = root.execute("SHOW MASTER STATUS")
    # A file is not purged while a stream that has just ended still holds it.
    while root.execute("SHOW BINARY LOGS")[0][0] != current:
        root.execute(f"PURGE BINARY LOGS TO '{current}'")
        threading.Event().wait(0.05)
    for position in (old, "9999999999:000000000004", "nonsense"):
        with pytest.raises(PositionLost) as lost:
            next(iter(source.transactions(position, threading.Event())))
        assert "reload" in lost.value.hint


def test_a_log_that_was_reset_and_has_come_as_far_is_told(root: Session, opened: Open) -> None:
    source = opened()
    root.execute("RESET MASTER")
    root.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    old = source.end()
    root.execute("RESET MASTER")
    for number in range(10, 15):
        with pytest.raises(PositionLost):
            next(iter(source.transactions(old, threading.Event())))
        root.execute(f"INSERT INTO t VALUES ({number}, 'd')")
    assert source.end() > old


def test_a_stream_that_is_killed_can_be_taken_up_again(root: Session, opened: Open) -> None:
    first = Recorded(opened())

    def killed() -> None:
        with first:
            root.execute("INSERT INTO t VALUES (1, 'a')")
            first.catch_up()
            for number, command in root.execute("SELECT id, command FROM information_schema.processlist"):
                if command == "Binlog Dump":
                    root.execute(f"KILL {number}")
            joined(first._thread)

    with pytest.raises(SourceUnavailable):
        killed()
    root.execute("INSERT INTO t VALUES (2, 'b')")
    with Recorded(opened(), first.transactions[-1].position) as second:
        second.catch_up()
    assert rows_of(second) == [[(2, "b", 1)]]


def test_a_reader_that_is_killed_is_unavailable_and_the_next_is_not(root: Session, opened: Open) -> None:
    source = opened()
    root.execute("INSERT INTO t SELECT seq, 'x' FROM seq_1_to_50000")
    with Recorded(source) as recorded:

        def kill_readers() -> None:
            for (number,) in root.execute(
                "SELECT id FROM information_schema.processlist WHERE command IN ('Sleep', 'Query') AND user = 'keeper'"
            ):
                root.execute(f"KILL {number}")

        def killed() -> None:
            with source.reading([whole(source.relations["s.t"])]) as reading:
                next(reading.rows[0])
                kill_readers()
                for _ in reading.rows[0]:
                    pass

        with pytest.raises(SourceUnavailable):
            killed()
        read(source, matching(source.relations["s.t"], "id", 1))
        kill_readers()
        assert read(source, matching(source.relations["s.t"], "id", 1))[1] == [{(1, "x"): 1}]
        recorded.catch_up()


def test_a_server_that_restarts_loses_nothing() -> None:
    for server in a_server():
        with server.root() as root:
            root.execute(f"CREATE DATABASE {DATABASE}")
            root.execute(f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY, v VARCHAR(20))")
        source = MySqlSource(Request("s", server.url(DATABASE), "restart"))
        first = Recorded(source)

        def stopped(first: Recorded, server: MariaDb) -> None:
            with first:
                with server.root() as root:
                    root.execute(f"INSERT INTO {DATABASE}.t VALUES (1, 'a')")
                first.catch_up()
                server.stop()
                joined(first._thread)

        with pytest.raises(SourceUnavailable):
            stopped(first, server)
        with pytest.raises(SourceUnavailable):
            source.end()
        with pytest.raises(SourceUnavailable):
            read(source, whole(source.relations["s.t"]))
        server.start()
        with server.root() as root:
            root.execute(f"INSERT INTO {DATABASE}.t VALUES (2, 'b')")
        source.close()
        source = MySqlSource(Request("s", server.url(DATABASE), "restart"))
        with Recorded(source, first.transactions[-1].position) as second:
            second.catch_up()
        assert rows_of(second) == [[(2, "b", 1)]]
        assert second.start[1]["s.t"] == {(1, "a"): 1, (2, "b"): 1}
        source.close()


def test_an_idle_stream_ends_soon(root: Session, opened: Open) -> None:
    source = opened()
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    following = threading.Thread(target=lambda: list(source.transactions(None, stop)), daemon=True)
    following.start()
    following.join(60)
    assert not following.is_alive()


# --- what cannot be opened ---


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("keeper:", "nobody:"), SourceUnfit),
        (("s3cr3t", "s3cr3t-wrong"), SourceUnfit),
        ((f"/{DATABASE}", "/not_there"), BadSourceUrl),
        ((".sock", ".gone"), SourceUnavailable),
        (("unix_socket", "socket"), BadSourceUrl),
        (("mariadb:", "oracle:"), BadSourceUrl),
        (("@localhost", "@localhost:port"), BadSourceUrl),
    ],
)
def test_a_url_that_leads_nowhere_is_told_without_its_password(
    root: Session, mariadb: MariaDb, opened: Open, change: tuple[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error) as told:
        opened(url=mariadb.url(DATABASE).replace(*change))
    assert "s3cr3t" not in f"{told.value!r} {told.value} {told.value.__cause__} {told.value.__context__}"


def test_a_port_that_nobody_listens_to_is_unavailable(opened: Open) -> None:
    with pytest.raises(SourceUnavailable):
        opened(url="mysql://a:b@127.0.0.1:1/d")


def test_tables_that_cannot_be_captured_are_refused_by_name(root: Session, opened: Open) -> None:
    root.execute("CREATE VIEW w AS SELECT * FROM t")
    root.execute("CREATE TABLE my (id INT) ENGINE = MyISAM")
    root.execute("CREATE TABLE versions (id INT PRIMARY KEY) WITH SYSTEM VERSIONING")
    root.execute("CREATE TABLE p (id INT PRIMARY KEY)")
    root.execute("CREATE TABLE fine (id INT PRIMARY KEY, p INT REFERENCES p (id))")
    root.execute(
        "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY cut (p) REFERENCES p (id) ON DELETE CASCADE)"
    )
    for name, why in (
        ("w", "view"),
        ("my", "MyISAM"),
        ("versions", "versioned"),
        ("child", "CASCADE"),
        ("x", "no table"),
    ):
        with pytest.raises(UnknownTable, match=why) as refused:
            opened(name)
        assert name in refused.value.detail
        assert refused.value.hint
    assert list(opened("fine", "p").relations) == ["s.fine", "s.p"]


def test_a_key_can_be_declared(root: Session, opened: Open) -> None:
    assert opened().relations["s.t"].key == ("id",)
    assert opened(keys={"t": ("v", "id")}).relations["s.t"].key == ("v", "id")
    with pytest.raises(SourceUnfit, match="nope"):
        opened(keys={"t": ("nope",)})
