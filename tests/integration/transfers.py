"""Accounts in PostgreSQL and MariaDB, and transfers between them: transactions that span the two."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import psycopg
from mariadb_server import MariaDb
from postgres_server import PostgresServer

from viewkeeper.clock import seeded

GLOBAL_TX = "CREATE TABLE global_tx (gid varchar(40), source varchar(20), participants varchar(40), PRIMARY KEY (gid))"
ACCOUNTS = 6


@contextmanager
def accounts(postgres: PostgresServer, mariadb: MariaDb) -> Iterator[dict[str, str]]:
    """The URLs of both databases, with the tables in them."""
    with mariadb.root() as root:
        root.execute("DROP DATABASE IF EXISTS spanning")
        root.execute("CREATE DATABASE spanning")
        root.execute("GRANT ALL ON spanning.* TO keeper@'%'")
    with postgres.database("spanning") as url:
        with psycopg.connect(url, autocommit=True) as home, mariadb.session("spanning") as away:
            for execute in (home.execute, away.execute):
                execute("CREATE TABLE accounts (id int PRIMARY KEY, amount int)")
                execute(GLOBAL_TX)
                for number in range(ACCOUNTS):
                    execute("INSERT INTO accounts VALUES (%s, 50)", (number,))
        yield {"home": url, "away": mariadb.url("spanning")}
    with mariadb.root() as root:
        root.execute("DROP DATABASE spanning")


def transfer(urls: dict[str, str], mariadb: MariaDb, done: threading.Event) -> None:
    """Move amounts from one database to the other, in transactions that say that they belong together."""
    random, pause = seeded(11), threading.Event()
    with psycopg.connect(urls["home"], autocommit=True) as home, mariadb.session("spanning") as away:
        for number in count():
            if done.is_set():
                break
            gid, account, amount = f"g{number}", random.randrange(ACCOUNTS), random.randint(1, 9)
            halves = [(home.execute, amount), (away.execute, -amount)]
            for execute, _ in halves:
                execute("BEGIN")
            for (execute, moved), source in zip(halves, ("home", "away"), strict=True):
                execute("UPDATE accounts SET amount = amount + %s WHERE id = %s", (moved, account))
                execute("INSERT INTO global_tx VALUES (%s, %s, 'home,away')", (gid, source))
            random.shuffle(halves)
            for half, (execute, _) in enumerate(halves):
                execute("COMMIT")
                # One half is committed and the other is not: a reader of both databases could see that.
                pause.wait(0.7 if number % 4 == 3 and half == 0 else 0.02 * random.random())
