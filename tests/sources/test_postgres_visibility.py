"""Transactions that are streamed and not visible yet: commits that wait for a synchronous standby stay so for long."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import psycopg
import pytest
from exactness import Recorded, matching, read, whole
from postgres_server import PostgresServer
from postgres_tables import TWO_TABLES, Database, a_database, eventually
from test_postgres_exactness import joined

from viewkeeper.sources.postgres.readings import latest_exact_place
from viewkeeper.sources.postgres.snapshots import Retained, Snapshot, Streamed, widened


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[Database]:
    with a_database(postgres_server, TWO_TABLES) as database:
        yield database


class Standby:
    """A standby that is waited for and never there."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pool = ThreadPoolExecutor(4)
        self._commits: list[Future[None]] = []

    def commit(self, *statements: str) -> None:
        """A transaction whose commit record is written; it stays invisible until the standby is given up."""
        before = self._waiting()
        self._commits.append(self._pool.submit(self._run, statements))
        eventually(lambda: self._waiting() > before)

    def _run(self, statements: tuple[str, ...]) -> None:
        with psycopg.connect(self._database.url) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def _waiting(self) -> int:
        sleeping = self._database.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        return int(sleeping.fetchone()[0])

    def give_up(self) -> None:
        self._set("")
        for commit in self._commits:
            commit.result(20)

    def _set(self, names: str) -> None:
        self._database.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        self._database.execute("SELECT pg_reload_conf()")
        eventually(lambda: self._database.execute("SHOW synchronous_standby_names").fetchone() == (names,))

    def __enter__(self) -> "Standby":
        self._database.execute("SET synchronous_commit = local")
        self._set("nobody")
        # The setting reaches the process that keeps it for all a moment later.
        while self._waiting() == 0:
            self._commits.append(self._pool.submit(self._run, ("SELECT pg_logical_emit_message(true, '', '')",)))
            eventually(lambda: self._commits[-1].done() or self._waiting() > 0)
        return self

    def __exit__(self, *_: object) -> None:
        self.give_up()
        self._pool.shutdown()


def test_a_reading_of_one_relation_is_corrected(database: Database) -> None:
    with database.installed("r", "s") as source, Recorded(source) as recorded, Standby(database) as standby:
        standby.commit(
            "UPDATE r SET v = 'unseen' WHERE id = 1",
            "DELETE FROM r WHERE id = 2",
            "INSERT INTO r VALUES (99, 1, 'new')",
        )
        database.execute("UPDATE r SET v = 'seen' WHERE id = 3")
        assert database.execute("SELECT v FROM r WHERE id = 1").fetchone() == ("r1",)
        answer = recorded.read(matching(source.relations["pg.r"], "id", 1, 2, 3, 99))
        assert answer.bags[0] == {(1, 1, "unseen"): 1, (3, 3, "seen"): 1, (99, 1, "new"): 1}
        recorded.read(whole(source.relations["pg.r"]), whole(source.relations["pg.s"]))
        standby.give_up()
        recorded.read(matching(source.relations["pg.r"], "id", 1, 2, 3, 99))
        recorded.catch_up()
    recorded.check()


def test_a_join_waits_for_a_commit_that_the_stream_has_passed(database: Database) -> None:
    with database.installed("r", "s") as source, Recorded(source) as recorded, ThreadPoolExecutor(1) as pool:
        with Standby(database) as standby:
            standby.commit("UPDATE r SET k = k + 1 WHERE id < 10")
            recorded.catch_up()
            reading = pool.submit(recorded.read, joined(source, 1, 2))
            assert not reading.done()
            standby.give_up()
            reading.result(20)
        recorded.catch_up()
    recorded.check()


def test_an_unseen_transaction_is_known_after_a_restart_of_ours(database: Database) -> None:
    """It was delivered, stored and acknowledged: only the slot can tell that a new reading does not show it."""
    with database.installed("r", "s") as source, Standby(database) as standby:
        with Recorded(source) as first:
            standby.commit("DELETE FROM r WHERE id < 30")
            first.catch_up()
            stored = source.end()
            first.catch_up()
            source.acknowledge(stored)
            confirmed = "SELECT confirmed_flush_lsn > '0/0' FROM pg_replication_slots"
            eventually(lambda: database.execute(confirmed).fetchone() == (True,))
        again = database.source("r", "s")
        with Recorded(again, after=stored) as second:
            _, (bag,) = read(again, whole(again.relations["pg.r"]))
            assert len(bag) == 11
            assert second.transactions == []
        again.close()


def test_the_slot_is_let_go_once_all_is_seen(database: Database) -> None:
    with database.installed("r", "s") as source, Recorded(source) as recorded:
        database.execute("DELETE FROM r WHERE id < 30")
        end = source.end()
        recorded.catch_up()
        source.acknowledge(end)
        number = f"{end[:8]}/{end[8:]}"
        moved = "SELECT confirmed_flush_lsn >= %s FROM pg_replication_slots"
        eventually(lambda: database.execute(moved, (number,)).fetchone() == (True,))
        assert len(source._retained) == 0
        assert source.retained() is not None


# --- without a server ---


@pytest.mark.parametrize("near", [5, 2**31, 2**32 - 1, 2**32, 2**32 + 7, 3 * 2**32 + 2**31 + 1])
@pytest.mark.parametrize("distance", [-(2**31) + 1, -7, -1, 0, 1, 6, 2**31 - 1])
def test_transaction_ids_are_widened_to_the_nearest(near: int, distance: int) -> None:
    if near + distance >= 0:
        assert widened((near + distance) % 2**32, near) == near + distance


def test_a_snapshot_across_the_wrap_of_ids() -> None:
    snapshot = Snapshot.parse(f"{2**32 - 2}:{2**32 + 3}:{2**32 - 2},{2**32 + 1}")
    shown = {xid: snapshot.shows(xid % 2**32) for xid in range(2**32 - 4, 2**32 + 6)}
    assert [xid - 2**32 for xid, visible in shown.items() if not visible] == [-2, 1, 3, 4, 5]


def streamed(xid: int, end: int) -> Streamed:
    return Streamed(xid, end - 1, end, None, frozenset({"r"}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("unseen", "began", "exact_at"),
    [
        (set(), 100, 200),  # everything is seen
        ({130}, 100, 129),  # the last one is not seen: before it
        ({120, 130}, 119, 119),  # the last two, right behind what the stream had passed
        ({120, 130}, 120, None),  # one of them was delivered before the reading began
        ({120}, 100, None),  # one that is seen lies behind one that is not
    ],
)
def test_the_place_of_a_join(unseen: set[int], began: int, exact_at: int | None) -> None:
    near = [streamed(xid, 10 * xid) for xid in (11, 12, 13)]
    assert latest_exact_place(near, unseen, began, 200) == exact_at


def test_a_transaction_is_retained_until_every_reading_shows_it() -> None:
    retained = Retained()
    retained.add([streamed(10, 100), streamed(11, 110), streamed(12, 120)])
    retained.observe(Snapshot.parse("11:12:11"))
    assert [one.xid for one in retained.touching(["r"])] == [11, 12]
    assert retained.first_start() == 109
    early = retained.open(passed=120)
    retained.observe(Snapshot.parse("20:20:"))
    assert len(retained) == 2, "the open reading may have a snapshot that is earlier than this one"
    late = retained.open(passed=120)
    retained.close(early)
    retained.observe(Snapshot.parse("20:20:"))
    assert len(retained) == 0
    retained.add([streamed(13, 130)])
    retained.observe(Snapshot.parse("20:20:"))
    assert len(retained) == 1, "the open reading began before the stream had come there"
    retained.close(late)
    retained.observe(Snapshot.parse("15:20:15"))
    assert len(retained) == 0
    assert retained.first_start() is None
