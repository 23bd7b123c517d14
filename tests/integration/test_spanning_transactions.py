"""A transaction that spans PostgreSQL and MariaDB: a transfer, whose two halves are never seen apart."""

import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest
from mariadb_server import MariaDb
from postgres_server import PostgresServer

from viewkeeper.algorithms.registry import ALGORITHMS, Transactions
from viewkeeper.checker.history import History
from viewkeeper.checker.judge import check
from viewkeeper.clock import seeded
from viewkeeper.levels import Level
from viewkeeper.warehouse.warehouse import Warehouse

GLOBAL_TX = "CREATE TABLE global_tx (gid varchar(40), source varchar(20), participants varchar(40), PRIMARY KEY (gid))"
ACCOUNTS = 6
# Both halves of an account in one row: in a state that shows a transfer half, they do not add up to 100.
BOTH = """SELECT h.id AS h_id, w.id AS w_id, h.amount AS home, w.amount AS away
    FROM home.accounts h JOIN away.accounts w ON h.id = w.id"""


@pytest.fixture
def urls(postgres_server: PostgresServer, mariadb: MariaDb) -> Iterator[dict[str, str]]:
    with mariadb.root() as root:
        root.execute("DROP DATABASE IF EXISTS spanning")
        root.execute("CREATE DATABASE spanning")
        root.execute("GRANT ALL ON spanning.* TO keeper@'%'")
    with postgres_server.database("spanning") as url:
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


def test_a_spanning_transaction_is_never_seen_half(urls: dict[str, str], mariadb: MariaDb, tmp_path: Path) -> None:
    algorithms = ("batched-sweep", "g-strobe", "t-strobe")
    with Warehouse.open(tmp_path / "lake") as warehouse:
        for name, url in urls.items():
            warehouse.add_source(name, url, install=True)
        # The views are created in the midst of it.
        done = threading.Event()
        writer = threading.Thread(target=transfer, args=(urls, mariadb, done))
        writer.start()
        for name in algorithms:
            properties = f"'algorithm' = '{name}', 'group' = '{name}'"
            view = name.replace("-", "_")
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {view} TBLPROPERTIES({properties}) AS {BOTH}")
        end = threading.Timer(9, done.set)
        end.start()
        report = warehouse.run(10, history=tmp_path / "{view}.json")
        end.join()
        writer.join()
        assert not report.halted
        warehouse.catch_up()
        assert all(warehouse.audit(name.replace("-", "_")).clean for name in algorithms)
    half = {}
    for name in algorithms:
        history = History.load(tmp_path / f"{name.replace('-', '_')}.json")
        half[name] = [
            state
            for state in history.states
            if any(home + away != 100 for (_, _, home, away), _ in state.rows.weights())
        ]
        promised = ALGORITHMS[name].levels[Transactions.GLOBAL]
        judged = check(history, blind=True).level
        assert judged >= promised, name
        if name == "t-strobe":
            assert judged < Level.STRONG, "t-strobe was not caught"
    assert not half["batched-sweep"]
    assert not half["g-strobe"]
    assert half["t-strobe"]
