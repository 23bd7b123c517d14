"""Self-maintained views over PostgreSQL, MariaDB and SQLite while everyone writes, with no way to ask a source."""

import threading
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from mariadb_server import MariaDb
from postgres_server import PostgresServer
from pyspark.sql import SparkSession
from three_databases import three_databases
from transfers import ACCOUNTS, accounts, transfer

from viewkeeper.checker.history import History
from viewkeeper.checker.judge import check
from viewkeeper.levels import Level
from viewkeeper.mediator.feed import Feed
from viewkeeper.storage.self_maintained import STORAGES
from viewkeeper.warehouse import Warehouse
from waiting import joined

JOIN = """SELECT o.id, o.amount, p.name, r.name AS region
FROM shop.orders o {kind} crm.people p ON o.cust = p.id {kind} geo.regions r ON p.region = r.id"""


def no_questions(*_: Any) -> None:
    raise AssertionError("a source was asked")


def test_views_follow_three_databases_that_nobody_can_ask(
    spark: SparkSession,
    postgres_server: PostgresServer,
    mariadb: MariaDb,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (
        three_databases(postgres_server, mariadb, tmp_path, "alone") as databases,
        Warehouse.open(tmp_path / "lake", spark=spark) as warehouse,
    ):
        databases.add_to(warehouse)
        names = []
        for storage, level in (*product(STORAGES, ["complete"]), ("viewcache", "strong")):
            names.append(f"{storage.replace('-', '_')}_{level}")
            warehouse.create_view(
                f"CREATE MATERIALIZED VIEW {names[-1]} TBLPROPERTIES ('storage' = '{storage}', "
                f"'consistency' = '{level}') AS {JOIN.format(kind='JOIN')}"
            )
        for kind in ("LEFT", "FULL"):
            names.append(f"{kind.lower()}_join")
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {names[-1]} AS {JOIN.format(kind=f'{kind} JOIN')}")
        with monkeypatch.context() as cut:
            cut.setattr(Feed, "ask", no_questions)
            cut.setattr(Feed, "_ask", no_questions)
            cut.setattr(Feed, "read_until_there", no_questions)
            writers = databases.writers(4, seed=4)
            warehouse.run(seconds=5, history=tmp_path / "history-{view}.json")
            assert writers.wait(60) == 0
            warehouse.catch_up()
        status = warehouse.status()
        assert not [(view.view, view.halted) for view in status.views if view.halted]
        for name in names:
            audit = warehouse.audit(name)
            assert audit.clean, (name, audit.missing[:3], audit.extra[:3])
            assert audit.rows > 0
        for name in names:
            if not name.endswith("join"):
                judgement = check(History.load(tmp_path / f"history-{name}.json"), blind=False)
                promised = Level.COMPLETE if name.endswith("complete") else Level.STRONG
                assert judgement.level >= promised, (name, judgement)
        states = {view.view: view.state for view in status.views}
        assert states["viewcache_complete"] > states["viewcache_strong"] > 0


def test_a_spanning_transaction_is_never_seen_half(
    spark: SparkSession, postgres_server: PostgresServer, mariadb: MariaDb, tmp_path: Path
) -> None:
    done = threading.Event()
    with (
        accounts(postgres_server, mariadb) as urls,
        Warehouse.open(tmp_path / "lake", spark=spark) as warehouse,
    ):
        writer = threading.Thread(target=transfer, args=(urls, mariadb, done))
        for name, url in urls.items():
            warehouse.add_source(name, url, install=True)
        writer.start()
        try:
            warehouse.create_view(
                """CREATE MATERIALIZED VIEW both TBLPROPERTIES ('storage' = 'partial-operand') AS
                SELECT h.id, h.amount + w.amount AS total FROM home.accounts h JOIN away.accounts w ON h.id = w.id"""
            )
            warehouse.create_view(
                "CREATE MATERIALIZED VIEW totals AS SELECT COUNT(*) AS n, SUM(total) AS total FROM both"
            )
            warehouse.run(seconds=5)
        finally:
            done.set()
            joined(writer)
        warehouse.catch_up()
        states = warehouse.states("both")
        assert len(states) > 3
        for state in states[:: max(1, len(states) // 8)]:
            total = warehouse.read("both", state.state).selectExpr("COUNT(*)", "SUM(total)").collect()
            assert [tuple(row) for row in total] == [(ACCOUNTS, 100 * ACCOUNTS)]
        for state in warehouse.states("totals"):
            assert [tuple(row) for row in warehouse.read("totals", state.state).collect()] == [
                (ACCOUNTS, 100 * ACCOUNTS)
            ]
        assert warehouse.audit("totals").clean
