"""Summary tables over PostgreSQL, MariaDB and SQLite while everyone writes, and over a spanning transaction."""

import threading
from pathlib import Path

from mariadb_server import MariaDb
from postgres_server import PostgresServer
from pyspark.sql import SparkSession
from three_databases import WITHIN, three_databases
from transfers import ACCOUNTS, accounts, transfer

from viewkeeper.warehouse import Warehouse
from waiting import LONG, joined

# The regions of the people who order: a chain of dimensions in two other databases.
CHAIN = "FROM shop.orders o JOIN crm.people p ON o.cust = p.id JOIN geo.regions r ON p.region = r.id"
SUMMARIES = {
    "by_customer": "SELECT cust, COUNT(*) AS n, SUM(amount) AS total FROM shop.orders GROUP BY cust",
    "by_region": f"""SELECT r.name AS region, COUNT(*) AS n, SUM(o.amount) AS total, AVG(o.amount) AS mean,
        MIN(o.amount) AS least, MAX(p.name) AS last, COUNT(DISTINCT p.id) AS people {CHAIN} GROUP BY r.name""",
    "everything": f"SELECT COUNT(*) AS n, SUM(o.amount * p.region) AS weighted {CHAIN} WHERE o.amount > 3",
    "cube": f"""SELECT r.name AS region, o.amount % 3 AS rest, COUNT(*) AS n {CHAIN}
        GROUP BY CUBE (r.name, o.amount % 3)""",
}


def test_summaries_follow_three_databases_while_everyone_writes(
    spark: SparkSession, postgres_server: PostgresServer, mariadb: MariaDb, tmp_path: Path
) -> None:
    with (
        three_databases(postgres_server, mariadb, tmp_path, "summaries") as databases,
        Warehouse.open(tmp_path / "lake", spark=spark) as warehouse,
    ):
        databases.add_to(warehouse)
        writers = databases.writers(6, seed=3)
        warehouse.create_view(f"CREATE MATERIALIZED VIEW joined AS {WITHIN}")
        warehouse.create_view(
            "CREATE MATERIALIZED VIEW by_name AS "
            "SELECT name, COUNT(*) AS n, MAX(item) AS last FROM joined GROUP BY name"
        )
        for name, select in SUMMARIES.items():
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {select}")
            warehouse.create_view(
                f"CREATE MATERIALIZED VIEW later_{name} TBLPROPERTIES ('refresh' = 'every 1 second') AS {select}"
            )
        warehouse.run(seconds=5)
        writers.wait(LONG)
        warehouse.catch_up()
        warehouse.refresh()
        status = warehouse.status()
        assert not [view.view for view in status.views if view.halted]
        assert all(view.state > 1 for view in status.views)
        for name in ("by_name", *SUMMARIES, *(f"later_{name}" for name in SUMMARIES)):
            audit = warehouse.audit(name)
            assert audit.clean, (name, audit.missing[:3], audit.extra[:3])
            assert audit.rows > 0


def test_a_summary_never_shows_a_spanning_transaction_half(
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
                """CREATE MATERIALIZED VIEW totals AS SELECT COUNT(*) AS n, SUM(h.amount + w.amount) AS total
                FROM home.accounts h JOIN away.accounts w ON h.id = w.id"""
            )
            warehouse.run(seconds=5)
        finally:
            done.set()
            joined(writer)
        warehouse.catch_up()
        states = warehouse.states("totals")
        assert len(states) > 3
        for state in states:
            assert [tuple(row) for row in warehouse.read("totals", state.state).collect()] == [
                (ACCOUNTS, 100 * ACCOUNTS)
            ]
