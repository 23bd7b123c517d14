"""A transaction that spans PostgreSQL and MariaDB: a transfer, whose two halves are never seen apart."""

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow.compute as pc
import pytest
from mariadb_server import MariaDb
from postgres_server import PostgresServer
from transfers import accounts, transfer

from viewkeeper.algorithms.registry import ALGORITHMS, Transactions
from viewkeeper.checker.history import History
from viewkeeper.checker.judge import check
from viewkeeper.levels import Level
from viewkeeper.warehouse import Warehouse
from waiting import joined

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
        joined(end, writer)
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


def test_a_part_that_a_server_does_not_commit_is_named_and_given_up(
    urls: dict[str, str], mariadb: MariaDb, tmp_path: Path
) -> None:
    with Warehouse.open(tmp_path / "lake") as warehouse:
        for name, url in urls.items():
            warehouse.add_source(name, url, install=True)
        warehouse.create_view(f"CREATE MATERIALIZED VIEW both AS {BOTH}")
        with psycopg.connect(urls["home"]) as home:
            home.execute("UPDATE accounts SET amount = 40 WHERE id = 0")
            home.execute("INSERT INTO global_tx VALUES ('g', 'home', 'home,away')")
        warehouse.catch_up()
        (wait,) = warehouse.status().waits
        assert (wait.wait.id, wait.wait.missing) == ("g", ("away",))
        assert warehouse.arrow("both").filter(pc.field("h_id") == 0).column("home").to_pylist() == [50]
        warehouse.give_up("g")
        warehouse.catch_up(history=tmp_path / "half.json")
        assert warehouse.arrow("both").filter(pc.field("h_id") == 0).column("home").to_pylist() == [40]
        assert [view.consistency for view in warehouse.status().views] == ["weak"]
        with mariadb.session("spanning") as away:
            away.execute("BEGIN")
            away.execute("UPDATE accounts SET amount = 60 WHERE id = 0")
            away.execute("INSERT INTO global_tx VALUES ('g', 'away', 'home,away')")
            away.execute("COMMIT")
        warehouse.catch_up()
        status = warehouse.status()
        assert (status.waits, status.given_up) == ((), ())
        assert [view.consistency for view in status.views] == ["complete"]
        assert warehouse.audit("both").clean
    assert check(History.load(tmp_path / "half.json")).level is Level.WEAK
