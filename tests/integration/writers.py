"""Eight writers over three databases, in a process of their own: python writers.py CONFIG SECONDS SEED [PAUSE]

    shop    PostgreSQL    orders(id, cust, amount), lines(id, ord, item)
    crm     MariaDB       people(id, name, region)
    geo     SQLite        regions(id, name)

Transactions of one to four statements: insertions, updates (of keys too), deletions, keys used again; some are rolled
back, some roll back to a savepoint. What fails because two writers met is rolled back and forgotten.
"""

import json
import sqlite3
import sys
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pymysql

from viewkeeper.clock import Random, monotonic, seeded

Execute = Callable[..., Any]
KEYS = 40


def shop(execute: Execute, random: Random) -> None:
    key, other = random.randrange(KEYS), random.randrange(KEYS)
    match random.randrange(8):
        case 0 | 1:
            execute(
                "INSERT INTO orders VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                (key, random.randrange(KEYS // 2), random.randrange(100)),
            )
        case 2 | 3:
            execute("INSERT INTO lines VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", (key, other, f"item {other}"))
        case 4:
            execute("UPDATE orders SET cust = %s, amount = amount + 1 WHERE id = %s", (other // 2, key))
        case 5:
            execute("DELETE FROM orders WHERE id = %s", (key,))
        case 6:
            execute("DELETE FROM lines WHERE id = %s", (key,))
        case _:
            execute("UPDATE lines SET ord = %s WHERE id = %s", (other, key))


def crm(execute: Execute, random: Random) -> None:
    key = random.randrange(KEYS // 2)
    match random.randrange(5):
        case 0 | 1:
            execute("INSERT IGNORE INTO people VALUES (%s, %s, %s)", (key, f"name {key}", random.randrange(8)))
        case 2:
            execute("UPDATE people SET region = %s WHERE id = %s", (random.randrange(8), key))
        case 3:
            execute("REPLACE INTO people VALUES (%s, %s, %s)", (key, f"again {key}", random.randrange(8)))
        case _:
            execute("DELETE FROM people WHERE id = %s", (key,))


def geo(execute: Execute, random: Random) -> None:
    key = random.randrange(8)
    match random.randrange(4):
        case 0:
            execute("INSERT OR IGNORE INTO regions VALUES (?, ?)", (key, f"region {key}"))
        case 1:
            execute("INSERT OR REPLACE INTO regions VALUES (?, ?)", (key, f"region {random.randrange(99)}"))
        case 2:
            execute("UPDATE regions SET name = name || '.' WHERE id = ? AND length(name) < 20", (key,))
        case _:
            execute("DELETE FROM regions WHERE id = ?", (key,))


class Postgres:
    failures = (psycopg.Error,)

    def __init__(self, told: dict[str, Any]) -> None:
        self._connection = psycopg.connect(told["url"], autocommit=True)
        self.execute = self._connection.execute

    def begin(self) -> None:
        self.execute("BEGIN")


class MariaDb:
    failures = (pymysql.MySQLError,)

    def __init__(self, told: dict[str, Any]) -> None:
        self._connection = pymysql.connect(
            unix_socket=told["socket"], user=told["user"], password=told["password"], database=told["database"]
        )
        self._cursor = self._connection.cursor()
        self.execute = self._cursor.execute

    def begin(self) -> None:
        self.execute("BEGIN")


class Sqlite:
    failures = (sqlite3.Error,)

    def __init__(self, told: dict[str, Any]) -> None:
        self._connection = sqlite3.connect(told["path"], isolation_level=None, timeout=20, check_same_thread=False)
        self.execute = self._connection.execute

    def begin(self) -> None:
        self.execute("BEGIN IMMEDIATE")


KINDS: dict[str, tuple[Any, Callable[[Execute, Random], None], int]] = {
    "shop": (Postgres, shop, 3),
    "crm": (MariaDb, crm, 3),
    "geo": (Sqlite, geo, 2),
}


def write(name: str, told: dict[str, Any], seed: int, until: float, pause: float, wait: threading.Event) -> None:
    """One writer. A server that goes away is connected to again."""
    kind, change, _ = KINDS[name]
    random, database = seeded(seed), None
    while monotonic() < until:
        try:
            database = database or kind(told)
            database.begin()
            for _ in range(random.randint(1, 4)):
                if random.random() < 0.1:
                    database.execute("SAVEPOINT s")
                    change(database.execute, random)
                    database.execute("ROLLBACK TO SAVEPOINT s")
                else:
                    change(database.execute, random)
            database.execute("ROLLBACK" if random.random() < 0.1 else "COMMIT")
        except kind.failures:
            try:
                assert database is not None
                database.execute("ROLLBACK")
            except (*kind.failures, AssertionError):
                database = None
                wait.wait(0.1)
        wait.wait(pause * random.random() * 2)


def main() -> None:
    config = json.loads(sys.argv[1])
    seconds, seed = float(sys.argv[2]), int(sys.argv[3])
    pause = float(sys.argv[4]) if len(sys.argv) > 4 else 0.1
    until, wait = monotonic() + seconds, threading.Event()
    threads = [
        threading.Thread(target=write, args=(name, config[name], seed * 100 + place * 10 + one, until, pause, wait))
        for place, (name, (_, _, count)) in enumerate(KINDS.items())
        if name in config
        for one in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
