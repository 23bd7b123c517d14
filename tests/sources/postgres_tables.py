"""A database with tables, its source, and writers, for the tests of PostgreSQL."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from postgres_server import PostgresServer

from viewkeeper.clock import monotonic, seeded
from viewkeeper.sources.base import Request
from viewkeeper.sources.postgres.source import PostgresSource

TWO_TABLES = """
CREATE TABLE r (id int PRIMARY KEY, k int, v text);
CREATE TABLE s (id int PRIMARY KEY, k int, w numeric(12, 2));
CREATE INDEX ON r (k); CREATE INDEX ON s (k);
INSERT INTO r SELECT i, i % 7, 'r' || i FROM generate_series(1, 40) i;
INSERT INTO s SELECT i, i % 7, i / 4.0 FROM generate_series(1, 40) i;
"""


class Database:
    """A fresh database with a script run in it; `execute` as its owner."""

    def __init__(self, server: PostgresServer, name: str, url: str) -> None:
        self.server, self.name, self.url = server, name, url
        self.owner: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True)

    def execute(self, text: str, parameters: Any = None) -> psycopg.Cursor[Any]:
        return self.owner.execute(text.encode(), parameters)

    def reconnect(self) -> None:
        self.owner.close()
        self.owner = psycopg.connect(self.url, autocommit=True)

    def source(self, *tables: str, url: str = "", name: str = "pg", **more: Any) -> PostgresSource:
        return PostgresSource(Request(name, url or self.url, "w1", tables or None, **more))

    @contextmanager
    def installed(self, *tables: str, **more: Any) -> Iterator[PostgresSource]:
        source = self.source(*tables, **more)
        try:
            source.install()
            yield source
        finally:
            source.close()


@contextmanager
def a_database(server: PostgresServer, script: str, name: str = "shop") -> Iterator[Database]:
    with server.database(name) as url:
        database = Database(server, name, url)
        try:
            if script:
                database.execute(script)
            yield database
        finally:
            database.owner.close()


def write(url: str, seed: int, stop: threading.Event, keys: int = 40, *, sync: bool = True) -> int:
    """Random transactions on r and s until told to stop: several statements, savepoints, rollbacks, keys used again."""
    random = seeded(seed)
    done = 0
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET synchronous_commit = {'on' if sync else 'off'}".encode())
        # A commit takes its time between its record and its visibility, as on a slow disk.
        connection.execute("SET commit_siblings = 0; SET commit_delay = 2000")
        while not stop.is_set():
            try:
                with connection.transaction(force_rollback=random.random() < 0.1):
                    for _ in range(random.choice([1, 1, 2, 4])):
                        if random.random() < 0.2:
                            with connection.transaction(force_rollback=random.random() < 0.5):
                                _change(connection, random, keys)
                        else:
                            _change(connection, random, keys)
                done += 1
            except (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected):
                continue
    return done


def _change(connection: psycopg.Connection[Any], random: Any, keys: int) -> None:
    table, id, k = random.choice("rs"), random.randrange(keys), random.randrange(7)
    value = f"v{random.randrange(1000)}" if table == "r" else random.randrange(10_000) / 100
    column = "v" if table == "r" else "w"
    match random.randrange(4):
        case 0:
            connection.execute(f"INSERT INTO {table} VALUES (%s, %s, %s)".encode(), (id, k, value))
        case 1:
            connection.execute(f"DELETE FROM {table} WHERE id = %s".encode(), (id,))
        case 2:
            connection.execute(f"UPDATE {table} SET k = %s, {column} = %s WHERE id = %s".encode(), (k, value, id))
        case _:
            connection.execute(f"UPDATE {table} SET id = id + {keys} WHERE id = %s".encode(), (id,))


def eventually(holds: Callable[[], bool], patience: float = 20.0) -> None:
    """Wait until something holds at the server."""
    deadline = monotonic() + patience
    while not holds():
        assert monotonic() < deadline, "it never came to hold"
        threading.Event().wait(0.01)
