"""Concurrent writers and readers: every reading is the replay of the stream up to its position."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pymysql
import pytest
from exactness import Recorded, matching, operand, whole
from mariadb_server import MariaDb, Session, a_server

from viewkeeper.clock import Random, seeded
from viewkeeper.messages import Fetch
from viewkeeper.sources.base import Request
from viewkeeper.sources.mysql.source import MySqlSource
from waiting import joined

KEYS = 40
# Deadlocks and their victims: a lock that is waited for too long, a savepoint or an XA transaction that is gone.
EXPECTED = (1213, 1205, 1305, 1399, 1402, 1614)


def write(session: Session, random: Random) -> None:
    """One transaction of a few statements; some roll back, wholly or to a savepoint, some use an XA commit."""
    way = random.random()
    name = f"x{random.getrandbits(60)}"
    session.execute(f"XA START '{name}'" if way > 0.95 else "BEGIN")
    for _ in range(random.choice((1, 1, 2, 4))):
        if way < 0.1:
            session.execute("SAVEPOINT a")
        change(session, random)
        if way < 0.1 and random.random() < 0.5:
            if random.random() < 0.5:
                session.execute("INSERT INTO plain VALUES (1)")
            session.execute("ROLLBACK TO a")
    if way > 0.95:
        session.execute(f"XA END '{name}'")
        session.execute(f"XA PREPARE '{name}'")
        session.execute(f"XA {'ROLLBACK' if way > 0.98 else 'COMMIT'} '{name}'")
    else:
        session.execute("ROLLBACK" if way > 0.9 else "COMMIT")


def change(session: Session, random: Random) -> None:
    table, key, value = random.choice("ab"), random.randrange(KEYS), random.randrange(1000)
    match random.randrange(4):
        case 0:
            session.execute(f"INSERT IGNORE INTO {table} VALUES (%s, %s, %s)", (key, key % 7, str(value)))
        case 1:
            session.execute(f"UPDATE {table} SET v = %s, k = %s WHERE id = %s", (str(value), value % 7, key))
        case 2:
            session.execute(f"DELETE FROM {table} WHERE id = %s", (key,))
        case 3:
            session.execute(f"REPLACE INTO {table} VALUES (%s, %s, %s)", (key, value % 7, str(value)))


def write_on(server: MariaDb, seed: int, stop: threading.Event, done: list[int], pause: float) -> None:
    random, written = seeded(seed), 0
    session = server.session("load_test")
    while not stop.is_set():
        try:
            write(session, random)
            written += 1
            stop.wait(pause)
        except pymysql.Error as error:
            if error.args[0] not in EXPECTED:
                raise
            # An XA transaction that was a victim needs a session of its own to be forgotten in.
            session.connection.close()
            session = server.session("load_test")
    session.connection.close()
    done.append(written)


def some_fetches(source: MySqlSource, random: Random) -> tuple[Fetch, ...]:
    a, b = source.relations["s.a"], source.relations["s.b"]
    one = matching(random.choice((a, b)), random.choice(("id", "k")), *random.sample(range(KEYS), 3))
    left, right = operand(a, "l", 0), operand(b, "r", 1)
    columns = left.columns + right.columns
    joined = Fetch((left, right), columns, (("l.k", "r.k"),), ("l.id",), ((random.randrange(KEYS),), (KEYS + 1,)))
    closed = Fetch((left, right), columns, (("l.id", "r.id"),), ("l.id",), ((random.randrange(KEYS),),))
    # The rows of b that meet some of a, and those of a that meet these.
    first = Fetch((left,), left.columns, (), ("l.id",), joined.keys)
    second = Fetch((right,), right.columns, (), ("r.k",), None, replace(first, columns=("l.k",)))
    again = operand(a, "z", 2)
    third = Fetch((again,), again.columns, (), ("z.id",), None, replace(second, columns=("r.id",)))
    beyond = (first, second, third)
    return random.choice((beyond, (one,), (one, joined), (joined,), (closed,), (whole(a),), (whole(a), whole(b))))


@contextmanager
def loaded(server: MariaDb, writers: int, seed: int, pause: float) -> Iterator[MySqlSource]:
    """A source with two tables, over which writers run."""
    with server.root() as root:
        root.execute("CREATE OR REPLACE DATABASE load_test")
        root.execute("USE load_test")
        for table in "ab":
            root.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, k INT NOT NULL, v VARCHAR(20), INDEX (k))")
        root.execute("CREATE TABLE plain (id INT) ENGINE = MyISAM")
    source = MySqlSource(Request("s", server.url("load_test"), "load", ("a", "b")))
    stop, done = threading.Event(), list[int]()
    threads = [threading.Thread(target=write_on, args=(server, seed + n, stop, done, pause)) for n in range(writers)]
    for thread in threads:
        thread.start()
    try:
        yield source
    finally:
        stop.set()
        joined(*threads)
        source.close()
    assert len(done) == writers, "a writer failed"


def read_under_load(
    server: MariaDb, answers: int, readers: int, writers: int, seed: int, pause: float = 0
) -> tuple[Recorded, Any]:
    failures: list[Exception] = []

    def read_on(recorded: Recorded, random: Random) -> None:
        try:
            for _ in range(answers // readers):
                recorded.read(*some_fetches(source, random))
        except Exception as error:
            failures.append(error)

    with loaded(server, writers, seed, pause) as source, Recorded(source) as recorded:
        threads = [threading.Thread(target=read_on, args=(recorded, seeded(seed * 7 + n))) for n in range(readers)]
        for thread in threads:
            thread.start()
        joined(*threads)
        recorded.catch_up()
    assert not failures, failures
    recorded.check()
    return recorded, source.readings.outcomes


def test_readings_under_load_are_exact(mariadb: MariaDb) -> None:
    recorded, outcomes = read_under_load(mariadb, answers=240, readers=3, writers=6, seed=11, pause=0.005)
    assert len(recorded.answers) == 240
    assert recorded.transactions
    assert outcomes["exact"] + outcomes["at its word"] == 241


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_thousands_of_readings_under_load_are_exact(seed: int) -> None:
    """On a server that flushes at every commit, where groups of transactions are committed together."""
    for server in a_server("--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"):
        recorded, outcomes = read_under_load(server, answers=4_000, readers=4, writers=8, seed=seed)
        print(len(recorded.transactions), "transactions", dict(outcomes))
