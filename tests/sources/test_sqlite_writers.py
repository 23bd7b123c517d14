"""Several programs write at once: nothing is lost, nothing split, and none of them fails."""

import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from exactness import Recorded, matching, operand, whole

from viewkeeper.clock import seeded
from viewkeeper.errors import PositionLost
from viewkeeper.messages import Fetch
from viewkeeper.sources.base import Request
from viewkeeper.sources.sqlite import SqliteSource
from waiting import joined, program

pytestmark = pytest.mark.processes

SCHEMA = """
CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT UNIQUE, b INT);
CREATE TABLE bag (k INT, v BLOB);
CREATE INDEX of_bag ON bag (k);
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(SCHEMA)
    connection.close()
    return path


@pytest.fixture
def source(database: Path) -> Iterator[SqliteSource]:
    source = source_of(database)
    yield source
    source.close()


def source_of(database: Path) -> SqliteSource:
    return SqliteSource(Request("s", f"sqlite:///{database}", "w1"))


def writers(database: Path, count: int, transactions: int) -> list[subprocess.Popen[bytes]]:
    program = str(Path(__file__).with_name("sqlite_writer.py"))
    return [
        subprocess.Popen([sys.executable, program, str(database), str(seed), str(transactions)])
        for seed in range(count)
    ]


def contents(database: Path) -> dict[str, Counter[tuple[object, ...]]]:
    connection = sqlite3.connect(database)
    try:
        return {f"s.{name}": Counter(connection.execute(f"SELECT * FROM {name}").fetchall()) for name in ("bag", "t")}
    finally:
        connection.close()


def stress(source: SqliteSource, database: Path, count: int, transactions: int) -> Recorded:
    """Writers, two readers, and one who empties the -wal file now and then."""
    running = writers(database, count, transactions)
    done = threading.Event()

    def read(seed: int) -> None:
        random = seeded(seed)
        t, bag = operand(source.relations["s.t"], "t"), operand(source.relations["s.bag"], "b", 1)
        while not done.wait(0.05):
            ids = tuple((number,) for number in {random.randrange(100) for _ in range(8)})
            recorded.read(
                matching(source.relations["s.t"], "id", *(random.randrange(100) for _ in range(8))),
                Fetch((bag,), bag.columns, (), ("b.k",), None, Fetch((t,), ("t.id",), (), ("t.id",), ids)),
                matching(source.relations["s.bag"], "k", random.randrange(10)),
            )

    def checkpoint() -> None:
        connection = sqlite3.connect(database, timeout=30)
        while not done.wait(0.3):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    with Recorded(source) as recorded:
        helpers = [threading.Thread(target=read, args=(seed,)) for seed in range(2)]
        helpers.append(threading.Thread(target=checkpoint))
        for helper in helpers:
            helper.start()
        try:
            codes = [process.wait() for process in running]
        finally:
            done.set()
            joined(*helpers)
        recorded.catch_up()
    assert codes == [0] * count
    recorded.check()
    assert recorded.contents == contents(database)
    return recorded


def test_answers_are_exact_and_transactions_are_told_apart(source: SqliteSource, database: Path) -> None:
    source.install()
    recorded = stress(source, database, 3, 300)
    merged = sum(transaction.merged for transaction in recorded.transactions)
    assert len(recorded.transactions) > 200
    assert merged <= len(recorded.transactions) / 100


@pytest.mark.soak
def test_many_writers_for_long(source: SqliteSource, database: Path) -> None:
    source.install()
    recorded = stress(source, database, 8, 3000)
    merged = sum(transaction.merged for transaction in recorded.transactions)
    assert merged <= len(recorded.transactions) / 100


def test_install_while_others_write(source: SqliteSource, database: Path) -> None:
    running = writers(database, 3, 150)
    source.install()
    with Recorded(source) as recorded:
        assert [process.wait() for process in running] == [0, 0, 0]
        recorded.catch_up()
    recorded.check()
    assert recorded.contents == contents(database)


CAPTURE = """
import sys, threading
from viewkeeper.sources.base import Request
from viewkeeper.sources.sqlite import SqliteSource

source = SqliteSource(Request("s", "sqlite:///" + sys.argv[1], "w1"))
for batch in source.transactions(None, threading.Event()):
    for event in batch.events:
        for change in event.changes:
            print(repr((event.position, change.relation, change.row, change.count)))
        print(repr((event.position,)), flush=True)
"""


def test_a_capturing_process_is_killed_and_another_goes_on(source: SqliteSource, database: Path) -> None:
    source.install()
    running = writers(database, 2, 200)
    first: Counter[tuple[str, tuple[object, ...]]] = Counter()
    portion: list[tuple[str, tuple[object, ...], int]] = []
    after = ""
    with program([sys.executable, "-c", CAPTURE, str(database)], stdout=subprocess.PIPE, text=True) as capturing:
        for line in capturing.stdout:
            told = eval(line)
            if len(told) > 1:
                portion.append(told[1:])
                continue
            (after,) = told
            for relation, row, count in portion:
                first[relation, row] += count
            portion.clear()
            if sum(first.values()) > 30:
                break
    assert [process.wait() for process in running] == [0, 0]
    with Recorded(source, after) as recorded:
        recorded.catch_up()
    for transaction in recorded.transactions:
        assert transaction.position > after
        for change in transaction.changes:
            first[change.relation, change.row] += change.count
    expected = Counter({(name, row): count for name, bag in contents(database).items() for row, count in bag.items()})
    assert +first == expected
    assert min(first.values()) >= 0


def test_what_was_acknowledged_is_forgotten(source: SqliteSource, database: Path) -> None:
    source.install()
    begin = source.end()
    for process in writers(database, 1, 50):
        process.wait()
    with Recorded(source) as recorded:
        recorded.catch_up()
        before = source.retained()
        source.acknowledge(source.end())
        after = source.retained()
    assert before is not None
    assert after is not None
    assert after < before / 10
    with pytest.raises(PositionLost):
        next(source.transactions(begin, threading.Event()))
    with Recorded(source, source.end()) as recorded:
        for process in writers(database, 1, 20):
            process.wait()
        recorded.catch_up()
        recorded.read(whole(source.relations["s.t"]))
    recorded.check()
    assert recorded.transactions
