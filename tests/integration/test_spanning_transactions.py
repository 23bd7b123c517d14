"""A transaction that spans PostgreSQL and MariaDB: a transfer, whose two halves are never seen apart."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from mariadb_server import MariaDb
from postgres_server import PostgresServer
from transfers import accounts, transfer

from viewkeeper.algorithms.registry import ALGORITHMS, Transactions
from viewkeeper.checker.history import History
from viewkeeper.checker.judge import check
from viewkeeper.levels import Level
from viewkeeper.warehouse.warehouse import Warehouse

# Both halves of an account in one row: in a state that shows a transfer half, they do not add up to 100.
BOTH = """SELECT h.id AS h_id, w.id AS w_id, h.amount AS home, w.amount AS away
    FROM home.accounts h JOIN away.accounts w ON h.id = w.id"""


@pytest.fixture
def urls(postgres_server: PostgresServer, mariadb: MariaDb) -> Iterator[dict[str, str]]:
    with accounts(postgres_server, mariadb) as made:
        yield made


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
            level = ALGORITHMS[name].levels[Transactions.GLOBAL]
            properties = f"'algorithm' = '{name}', 'consistency' = '{level}', 'group' = '{name}'"
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
