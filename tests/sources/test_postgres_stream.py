"""The stream of PostgreSQL: transactions, what disrupts a relation, lost connections, acknowledgement."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from exactness import Recorded, matching, read, whole
from postgres_server import PostgresServer, private_cluster
from postgres_tables import TWO_TABLES, Database, a_database, eventually, write

from viewkeeper.errors import PositionLost, SourceUnavailable, SourceUnfit
from viewkeeper.messages import Change, GlobalPart
from viewkeeper.sources.base import Batch, Disruption, Source


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[Database]:
    with a_database(postgres_server, TWO_TABLES) as database:
        yield database


def disruptions(recorded: Recorded) -> dict[str, str]:
    return {event.relation: event.reason for event in recorded.events if isinstance(event, Disruption)}


def changes(recorded: Recorded) -> list[list[tuple[tuple[object, ...], int]]]:
    return [[(change.row, change.count) for change in one.changes] for one in recorded.transactions]


# --- transactions ---


def test_a_transaction_is_what_was_committed_at_once(database: Database) -> None:
    with database.installed("r") as source, Recorded(source) as recorded:
        with database.owner.transaction():
            database.execute("INSERT INTO r VALUES (100, 1, 'a')")
            with database.owner.transaction(force_rollback=True):
                database.execute("INSERT INTO r VALUES (101, 1, 'b')")
            database.execute("UPDATE r SET v = 'c' WHERE id = 100")
            database.execute("INSERT INTO s VALUES (100, 1, 1)")
        with database.owner.transaction(force_rollback=True):
            database.execute("DELETE FROM r")
        database.execute("INSERT INTO s VALUES (101, 1, 1)")
        database.execute("DELETE FROM r WHERE id = 100")
        recorded.catch_up()
    assert changes(recorded) == [
        [((100, 1, "a"), 1), ((100, 1, "a"), -1), ((100, 1, "c"), 1)],
        [((100, 1, "c"), -1)],
    ]


def test_a_prepared_transaction_comes_when_it_is_committed(database: Database) -> None:
    with database.installed("r") as source, Recorded(source) as recorded:
        database.execute("BEGIN; INSERT INTO r VALUES (100, 1, 'a'); PREPARE TRANSACTION 'p'")
        database.execute("BEGIN; INSERT INTO r VALUES (101, 1, 'a'); PREPARE TRANSACTION 'q'")
        database.execute("INSERT INTO r VALUES (102, 1, 'a')")
        assert recorded.read(matching(source.relations["pg.r"], "id", 100, 101, 102)).bags == [{(102, 1, "a"): 1}]
        database.execute("COMMIT PREPARED 'p'")
        database.execute("ROLLBACK PREPARED 'q'")
        recorded.read(matching(source.relations["pg.r"], "id", 100, 101, 102))
        recorded.catch_up()
    assert [one[0][0][0] for one in changes(recorded)] == [102, 100]
    recorded.check()


def test_a_row_in_global_tx_makes_a_part_of_a_global_transaction(database: Database) -> None:
    database.execute("CREATE TABLE global_tx (participants text, gid text, source text, at timestamptz DEFAULT now())")
    with database.installed() as source, Recorded(source) as recorded:
        assert sorted(source.relations) == ["pg.r", "pg.s"]
        assert source.global_transactions
        with database.owner.transaction():
            database.execute("INSERT INTO r VALUES (100, 1, 'a')")
            database.execute("INSERT INTO global_tx VALUES ('pg, crm', 'g1', 'pg')")
        database.execute("INSERT INTO global_tx VALUES ('pg,crm', 'g2', 'pg')")
        database.execute("DELETE FROM global_tx")
        recorded.catch_up()
    assert [(one.parts, len(one.changes)) for one in recorded.transactions] == [
        ((GlobalPart("g1", ("pg", "crm")),), 1),
        ((GlobalPart("g2", ("pg", "crm")),), 0),
    ]


def test_a_long_value_that_an_update_leaves_alone(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, long text, n int); ALTER TABLE t ALTER long SET STORAGE EXTERNAL"
    )
    long = "ü0123456789" * 4000
    database.execute("INSERT INTO t VALUES (1, %s, 1)", (long,))
    with database.installed("t") as source, Recorded(source) as recorded:
        database.execute("UPDATE t SET n = 2")
        database.execute("UPDATE t SET id = 5")
        database.execute("DELETE FROM t")
        recorded.catch_up()
    assert changes(recorded)[0] == [((1, long, 1), -1), ((1, long, 2), 1)]
    recorded.check()
    assert recorded.contents == {"pg.t": {}}


def test_a_table_without_a_key_keeps_equal_rows_apart(database: Database) -> None:
    database.execute("CREATE TABLE bag (a int, b text); INSERT INTO bag VALUES (1, NULL), (1, NULL), (2, 'x')")
    with database.installed("bag") as source, Recorded(source) as recorded:
        assert source.relations["pg.bag"].key is None
        database.execute("DELETE FROM bag WHERE ctid = (SELECT min(ctid) FROM bag)")
        database.execute("UPDATE bag SET a = 1 WHERE b = 'x'")
        recorded.read(whole(source.relations["pg.bag"]))
        recorded.catch_up()
    recorded.check()
    assert recorded.contents == {"pg.bag": {(1, None): 1, (1, "x"): 1}}


# --- what disrupts a relation ---

ALTERATIONS = {
    "TRUNCATE r": "truncated",
    "ALTER TABLE r DROP COLUMN v": "column v was dropped",
    "ALTER TABLE r RENAME COLUMN v TO u": "column v was dropped or renamed",
    "ALTER TABLE r ALTER k TYPE bigint": "column k was altered and the table rewritten",
    "ALTER TABLE r ALTER k TYPE int USING k + 1": "column k was altered and the table rewritten",
    "ALTER TABLE r DROP COLUMN v; ALTER TABLE r ADD COLUMN v text": "column v has another type, or was dropped",
    "ALTER TABLE r RENAME TO q": "renamed",
    "DROP TABLE r": "dropped",
    "ALTER PUBLICATION viewkeeper_w1_pg DROP TABLE r": "taken out of the publication",
}


# Without a change afterwards only the catalog tells.
SILENT = ["ALTER TABLE r ALTER k TYPE int USING k + 1", "ALTER TABLE r RENAME TO q"]


@pytest.mark.parametrize(
    ("alteration", "changed_after"),
    [*((text, text != "DROP TABLE r") for text in ALTERATIONS), *((text, False) for text in SILENT)],
)
def test_what_the_stream_cannot_tell_is_said(database: Database, alteration: str, changed_after: bool) -> None:
    with database.installed("r", "s") as source, Recorded(source) as recorded:
        database.execute("INSERT INTO r VALUES (100, 1, 'before'); INSERT INTO s VALUES (100, 1, 1)")
        recorded.catch_up()
        database.execute(alteration)
        name = "q" if "RENAME TO q" in alteration else "r"
        if changed_after:
            database.execute(f"UPDATE {name} SET k = k + 1 WHERE id < 5; INSERT INTO {name} (id) VALUES (200)")
        database.execute("INSERT INTO s VALUES (101, 1, 1)")
        eventually(lambda: "pg.r" in disruptions(recorded))
        recorded.catch_up()
        if "TRUNCATE" in alteration:
            recorded.read(whole(source.relations["pg.r"]))
        else:
            with pytest.raises(SourceUnfit):
                recorded.read(whole(source.relations["pg.r"]))
        answer = recorded.read(matching(source.relations["pg.s"], "id", 100, 101))
        assert len(answer.bags[0]) == 2
    assert ALTERATIONS[alteration] in disruptions(recorded)["pg.r"]
    assert list(disruptions(recorded)) == ["pg.r"]
    place = next(i for i, event in enumerate(recorded.events) if isinstance(event, Disruption))
    assert any(change.row[0] == 100 for event in recorded.events[:place] for change in event.changes)
    assert any(Change("pg.s", (101, 1, 1), 1) in one.changes for one in recorded.transactions)


HARMLESS = [
    "ALTER TABLE r ADD COLUMN extra int DEFAULT 7",
    "ALTER TABLE r ADD COLUMN extra text DEFAULT clock_timestamp()::text",
    "VACUUM FULL r",
    "ALTER TABLE r ALTER v SET NOT NULL",
    "CREATE INDEX ON r (v)",
    "ANALYZE r",
    "GRANT SELECT ON r TO PUBLIC",
]


@pytest.mark.parametrize("alteration", HARMLESS)
def test_what_leaves_the_captured_columns_alone_does_no_harm(database: Database, alteration: str) -> None:
    with database.installed("r", "s") as source, Recorded(source) as recorded:
        database.execute("UPDATE r SET v = 'before' WHERE id < 5")
        database.execute(alteration)
        recorded.read(whole(source.relations["pg.r"]))
        database.execute("UPDATE r SET v = 'after' WHERE id < 5; DELETE FROM r WHERE id = 7")
        recorded.read(whole(source.relations["pg.r"]))
        recorded.catch_up()
    assert disruptions(recorded) == {}
    recorded.check()


def test_a_table_that_was_altered_while_nobody_followed(database: Database) -> None:
    with database.installed("r", "s") as source, Recorded(source) as first:
        stored = source.end()
        first.catch_up()
    database.execute("ALTER TABLE r ALTER k TYPE int USING k + 1")
    again = database.source("r", "s")
    with Recorded(again, after=stored) as second:
        eventually(lambda: bool(disruptions(second)))
        assert "rewritten" in disruptions(second)["pg.r"]
        assert all(event.position > stored for event in second.events)
    again.install()
    with Recorded(again, after=again.end()) as third:
        database.execute("INSERT INTO r VALUES (100, 1, 'a')")
        third.catch_up()
    assert disruptions(third) == {}
    assert len(third.transactions) == 1
    again.close()


def test_a_value_that_cannot_be_represented_disrupts_its_relation_alone(database: Database) -> None:
    database.execute("CREATE TABLE d (id int PRIMARY KEY, day date)")
    with database.installed("d", "s") as source, Recorded(source) as recorded:
        database.execute("INSERT INTO d VALUES (1, '2024-02-29')")
        database.execute("INSERT INTO d VALUES (2, 'infinity')")
        database.execute("INSERT INTO s VALUES (100, 1, 1)")
        recorded.catch_up()
    assert "pg.d.day has the value 'infinity'" in disruptions(recorded)["pg.d"]
    assert [one.changes[0].relation for one in recorded.transactions] == ["pg.d", "pg.s"]


def test_labels_of_an_enum(database: Database) -> None:
    database.execute("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE e (id int PRIMARY KEY, m mood, many mood[])")
    database.execute("INSERT INTO e VALUES (1, 'sad', '{ok,sad}')")
    with database.installed("e") as source, Recorded(source) as recorded:
        database.execute("ALTER TYPE mood ADD VALUE 'glad' BEFORE 'ok'")
        database.execute("INSERT INTO e VALUES (2, 'glad', NULL)")
        recorded.read(whole(source.relations["pg.e"]))
        recorded.catch_up()
        recorded.check()
        database.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'")
        with pytest.raises(SourceUnfit, match="labels"):
            recorded.read(whole(source.relations["pg.e"]))
        eventually(lambda: "labels" in disruptions(recorded).get("pg.e", ""))


# --- lost connections ---


def replayed(rows: set[tuple[object, ...]], relation: str, batches: list[Batch]) -> set[tuple[object, ...]]:
    """The rows of a keyed relation after the changes of batches; none may be lost or come twice."""
    events = [event for batch in batches for event in batch.events]
    assert [event.position for event in events] == sorted({event.position for event in events})
    for event in events:
        for change in event.changes:
            if change.relation == relation and change.count > 0:
                assert change.row not in rows
                rows.add(change.row)
            elif change.relation == relation:
                rows.remove(change.row)
    return rows


class Follower:
    """Follows a source through as many lost connections as there are."""

    def __init__(self, source: Source, after: str) -> None:
        self.source, self.after, self.batches, self.breaks = source, after, list[Batch](), 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                for batch in self.source.transactions(self.after, self._stop):
                    self.batches.append(batch)
                    self.after = batch.upto
            except SourceUnavailable as error:
                self.breaks += 1
                self.source.stream_broke(error)
                self._stop.wait(0.05)

    def finish(self) -> list[Batch]:
        end = self.source.end()
        eventually(lambda: self.after >= end)
        self._stop.set()
        self._thread.join(20)
        assert not self._thread.is_alive()
        return self.batches


def rows_of(database: Database, table: str) -> set[tuple[object, ...]]:
    return set(database.execute(f"SELECT * FROM {table}").fetchall())


def test_terminated_connections_lose_nothing_and_repeat_nothing(database: Database) -> None:
    stop = threading.Event()
    with database.installed("r", "s") as source, ThreadPoolExecutor(1) as pool:
        before, follower = rows_of(database, "r"), Follower(source, source.end())
        writing = pool.submit(write, database.url, 1, stop)
        terminated = "SELECT pg_terminate_backend(pid) FROM pg_stat_replication"
        try:
            for breaks in range(3):
                eventually(lambda: database.execute(terminated).fetchone() is not None)
                eventually(lambda breaks=breaks: follower.breaks > breaks)
        finally:
            stop.set()
        assert writing.result() > 0
        batches = follower.finish()
    assert replayed(before, "pg.r", batches) == rows_of(database, "r")


def test_a_server_that_restarts(tmp_path: object) -> None:
    with (
        private_cluster() as server,
        a_database(server, TWO_TABLES) as database,
        database.installed("r", "s") as source,
    ):
        before, follower = rows_of(database, "r"), Follower(source, source.end())
        for mode in ("fast", "immediate"):
            database.execute(f"INSERT INTO r SELECT i, 1, '{mode}' FROM generate_series(1000, 1009) i")
            read(source, matching(source.relations["pg.r"], "k", 1))
            breaks = follower.breaks
            server.restart(mode)
            database.reconnect()
            database.execute("DELETE FROM r WHERE id > 500")
            eventually(lambda breaks=breaks: follower.breaks > breaks)
        batches = follower.finish()
        assert replayed(before, "pg.r", batches) == rows_of(database, "r")
        assert follower.breaks >= 2


def test_a_reading_whose_connection_is_lost(database: Database) -> None:
    database.execute("INSERT INTO r SELECT i, 1, 'many' FROM generate_series(1000, 21000) i")
    kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'FETCH%%'"
    with database.installed("r") as source, Recorded(source) as recorded:
        with suppress(SourceUnavailable), source.reading([whole(source.relations["pg.r"])]) as reading:
            assert len(next(reading.rows[0])) == 5000
            database.execute(kill)
            with pytest.raises(SourceUnavailable):
                list(reading.rows[0])
        recorded.read(whole(source.relations["pg.r"]))
    recorded.check()


def test_readings_do_not_wait_for_ever(database: Database) -> None:
    with database.installed("r") as source:
        source.stream_broke(SourceUnavailable("no stream"))
        with pytest.raises(SourceUnavailable), source.reading([whole(source.relations["pg.r"])]):
            pass


def test_wal_that_nobody_flushes_holds_up_no_reading(database: Database) -> None:
    with database.installed("r") as source, Recorded(source) as recorded:
        database.execute("SET synchronous_commit = off")
        for number in range(5):
            database.execute(f"INSERT INTO r VALUES ({100 + number}, 1, 'a')")
            with database.owner.transaction(force_rollback=True):
                database.execute("INSERT INTO r SELECT i, 1, 'b' FROM generate_series(1000, 1050) i")
            recorded.read(matching(source.relations["pg.r"], "k", 1))
    recorded.check()


# --- positions ---


def test_the_stream_resumes_behind_any_position(database: Database) -> None:
    with database.installed("r") as source:
        with Recorded(source) as recorded:
            for number in range(5):
                database.execute(f"INSERT INTO r VALUES ({100 + number}, 1, 'a')")
            recorded.catch_up()
        places = [one.position for one in recorded.transactions]
        for place in places:
            with Recorded(source, after=place) as again:
                again.catch_up()
            assert [one.position for one in again.transactions] == [later for later in places if later > place]


def test_a_slot_that_was_made_again_has_lost_what_was_before(database: Database) -> None:
    with database.installed("r") as source:
        before = source.end()
        source.remove()
        database.execute("INSERT INTO r VALUES (100, 1, 'a')")
        with pytest.raises(PositionLost, match="is gone"):
            next(source.transactions(before, threading.Event()))
        source.install()
        with pytest.raises(PositionLost, match="made later"):
            next(source.transactions(before, threading.Event()))
        with pytest.raises(PositionLost, match="restored from a backup"):
            next(source.transactions("00FFFFFFFFFFFFFF", threading.Event()))
        with Recorded(source, after=source.end()):
            pass


def test_a_slot_that_lost_its_wal(database: Database) -> None:
    with database.installed("r") as source:
        position = source.end()
        database.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
        database.execute("SELECT pg_reload_conf()")
        try:
            for _ in range(3):
                database.execute("SELECT pg_logical_emit_message(false, '', 'x'), pg_switch_wal()")
            database.execute("CHECKPOINT")
            with pytest.raises(PositionLost, match="has lost WAL"):
                next(source.transactions(position, threading.Event()))
            assert any("has lost WAL" in finding.what for finding in source.doctor() if finding.fatal)
            source.install()
            with Recorded(source) as recorded:
                database.execute("INSERT INTO r VALUES (100, 1, 'a')")
                recorded.catch_up()
            assert len(recorded.transactions) == 1
        finally:
            database.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
            database.execute("SELECT pg_reload_conf()")


def test_a_slot_is_followed_once(database: Database) -> None:
    with database.installed("r") as source, Recorded(source), database.installed("r") as other:
        with pytest.raises(SourceUnavailable, match="active"):
            next(other.transactions(None, threading.Event()))
        assert any("being followed" in finding.what for finding in other.doctor() if not finding.fatal)


def test_an_idle_stream_tells_that_time_goes_on(database: Database) -> None:
    with database.installed("r") as source:
        stop = threading.Event()
        batches = source.transactions(None, stop)
        reached = next(batch.upto for batch in batches)
        database.execute("INSERT INTO s SELECT i, 1, 1 FROM generate_series(1000, 1010) i")
        later = next(batches)
        stop.set()
        assert list(batches) == []
        assert later.events == []
        assert later.upto > reached


def test_a_table_that_joins_later(database: Database) -> None:
    with database.installed("r") as source, Recorded(source) as first:
        database.execute("INSERT INTO s VALUES (100, 1, 1); INSERT INTO r VALUES (100, 1, 'a')")
        first.catch_up()
        position = source.end()
    with database.installed("r", "s") as both, Recorded(both, after=position) as second:
        database.execute("INSERT INTO s VALUES (101, 1, 1); INSERT INTO r VALUES (101, 1, 'a')")
        second.read(whole(both.relations["pg.s"]))
        second.catch_up()
    second.check()
    assert len(second.transactions) == 1


def test_the_driver_sees_no_prepared_statement(database: Database) -> None:
    """A statement that was prepared would keep the types of an earlier cursor of the same name."""
    with database.installed("r", "s") as source, Recorded(source) as recorded:
        for _ in range(8):
            recorded.read(whole(source.relations["pg.r"]))
            recorded.read(whole(source.relations["pg.s"]))
    recorded.check()
