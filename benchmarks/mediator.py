"""How fast views over three databases are maintained, at complete consistency, and how soon a lone update is seen.

    python benchmarks/mediator.py [--rows 1000000] [--seconds 20]

PostgreSQL with the largest relation, MariaDB and SQLite, in private servers; writers in processes of their own. One and
the same load is maintained by batched-sweep, by sweep, and by sweep with a commit per state. Prints JSON; ratios are
taken within this run.
"""

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS / "sources"))

import psycopg  # noqa: E402
from mariadb_server import PASSWORD, USER, MariaDb, a_server  # noqa: E402
from postgres_server import PostgresServer, binaries, private_cluster  # noqa: E402

from viewkeeper import Warehouse  # noqa: E402
from viewkeeper.lake.tables.spark_session import local_session  # noqa: E402

VIEW = """SELECT o.id AS id, o.amount AS amount, p.name AS name, r.name AS region
    FROM shop.orders o JOIN crm.people p ON o.cust = p.id JOIN geo.regions r ON p.region = r.id"""
PEOPLE, REGIONS = 100_000, 1_000
SHARES = {"shop": 0.95, "crm": 0.049, "geo": 0.001}
LONE = 15
SETTLE = 15.0

PGBENCH = """\\set id random(1, {rows})
\\set amount random(1, 1000)
UPDATE orders SET amount = :amount WHERE id = :id;
"""

WRITER = """
import json, sqlite3, sys, time
import pymysql
told = json.loads(sys.argv[1])
if told["kind"] == "crm":
    connection = pymysql.connect(unix_socket=told["socket"], user=told["user"], password=told["password"],
                                 database=told["database"], autocommit=True)
    cursor = connection.cursor()
    def write(n): cursor.execute("UPDATE people SET name = %s WHERE id = %s", (f"name {n}", n * 7919 % told["rows"]))
else:
    connection = sqlite3.connect(told["path"], isolation_level=None, timeout=30)
    connection.execute("PRAGMA synchronous = NORMAL")
    def write(n): connection.execute("UPDATE regions SET name = ? WHERE id = ?", (f"region {n}", n * 31 % told["rows"]))
begin, done = time.monotonic(), 0
while (elapsed := time.monotonic() - begin) < told["seconds"]:
    while done < elapsed * told["rate"]:
        write(done)
        done += 1
    time.sleep(0.002)
print(done)
"""


def log(text: str) -> None:
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


class World:
    """The three databases and their writers."""

    def __init__(self, postgres: PostgresServer, mariadb: MariaDb, folder: Path, url: str, rows: int) -> None:
        self.postgres, self.mariadb, self.folder, self.url, self.rows = postgres, mariadb, folder, url, rows
        self.urls = {"shop": url, "crm": mariadb.url("bench"), "geo": f"sqlite:///{folder}/geo.db"}
        self._fill()

    def _fill(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as shop:
            shop.execute("CREATE TABLE orders (id int PRIMARY KEY, cust int, amount int)")
            shop.execute(f"INSERT INTO orders SELECT i, i % {PEOPLE}, i % 1000 FROM generate_series(1, {self.rows}) i")
            shop.execute("CREATE INDEX ON orders (cust)")
        with self.mariadb.session("bench") as crm:
            crm.execute("CREATE TABLE people (id int PRIMARY KEY, name varchar(40), region int, KEY (region))")
            for first in range(0, PEOPLE, 10_000):
                values = ", ".join(f"({i}, 'name {i}', {i % REGIONS})" for i in range(first, first + 10_000))
                crm.execute(f"INSERT INTO people VALUES {values}")
        with sqlite3.connect(self.folder / "geo.db") as geo:
            geo.execute("CREATE TABLE regions (id INTEGER PRIMARY KEY, name TEXT)")
            geo.executemany("INSERT INTO regions VALUES (?, ?)", [(i, f"region {i}") for i in range(REGIONS)])
        geo.close()

    def writers(self, rate: float, seconds: float) -> "list[subprocess.Popen[str]]":
        """Everyone writes at a fixed rate in all, for so long."""
        script = self.folder / "update.sql"
        script.write_text(PGBENCH.format(rows=self.rows))
        pgbench = [
            str(binaries() / "pgbench"), "-n", "-f", str(script), "-c", "4", "-R", str(rate * SHARES["shop"]),
            "-T", str(int(seconds)), "-h", "127.0.0.1", "-p", str(self.postgres.port), "-U", "keeper", "bench",
        ]  # fmt: skip
        environment = {**os.environ, "PGOPTIONS": "-c synchronous_commit=off"}
        started = [
            subprocess.Popen(pgbench, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        ]
        crm = {"socket": self.mariadb.socket, "user": USER, "password": PASSWORD, "database": "bench", "rows": PEOPLE}
        geo = {"path": str(self.folder / "geo.db"), "rows": REGIONS}
        for kind, told in (("crm", crm), ("geo", geo)):
            told |= {"kind": kind, "rate": rate * SHARES[kind], "seconds": seconds}
            command = [sys.executable, "-c", WRITER, json.dumps(told)]
            started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return started


def written(writers: "list[subprocess.Popen[str]]") -> int:
    """How many transactions they made."""
    total = 0
    for number, writer in enumerate(writers):
        said, _ = writer.communicate()
        if number == 0:
            line = next(line for line in said.splitlines() if "transactions actually processed" in line)
            total += int(line.split(":")[1].split("/")[0])
        else:
            total += int(said)
    return total


def maintained(world: World, warehouse: Warehouse, rate: float, seconds: float, **options: Any) -> dict[str, Any]:
    """Maintain under load; what came through while the writers wrote, and how long the rest took."""
    writers = world.writers(rate, seconds)
    begin = time.monotonic()
    samples: list[tuple[float, int, int]] = []

    def watch(report: Any) -> None:
        (group,) = report.groups
        samples.append((time.monotonic() - begin, group.states, group.in_progress))
        if all(writer.poll() is not None for writer in writers):
            warehouse.stop()

    report = warehouse.run(seconds * 3, watch=watch, **options)
    count = written(writers)
    (group,) = report.groups
    while_written = [sample for sample in samples if sample[0] <= seconds]
    first, last = while_written[len(while_written) // 4], while_written[-1]
    return {
        "offered_per_s": round(count / seconds),
        "states_per_s": round((last[1] - first[1]) / (last[0] - first[0]), 1),
        "states": group.states,
        "behind_when_the_writers_ended": last[2],
        "states_per_commit": round(group.states / max(group.commits, 1), 1),
        "queries_per_update": round(group.queries / max(group.states, 1), 4),
        "messages_per_update": round(group.messages / max(group.states, 1), 4),
        "rows_sent_per_update": round(group.rows_sent / max(group.states, 1), 2),
        "merged_percent": round(100 * group.merged / max(group.transactions, 1), 3),
    }


def lone_updates(world: World, warehouse: Warehouse, view: str) -> dict[str, float]:
    """The median time from a commit at each source to a committed state that shows it."""
    shop = psycopg.connect(world.url, autocommit=True)
    crm = world.mariadb.session("bench")
    geo = sqlite3.connect(world.folder / "geo.db", isolation_level=None)
    updates: dict[str, Callable[[int], Any]] = {
        "postgresql": lambda n: shop.execute("UPDATE orders SET amount = %s WHERE id = %s", (5000 + n, 10 + n)),
        "mariadb": lambda n: crm.execute("UPDATE people SET name = %s WHERE id = %s", (f"lone {n}", 10 + n)),
        "sqlite": lambda n: geo.execute("UPDATE regions SET name = ? WHERE id = ?", (f"lone {n}", 10 + n)),
    }
    runner = threading.Thread(target=warehouse.run, daemon=True)
    runner.start()
    reader = Warehouse.open(warehouse.path, read_only=True)
    pause = threading.Event()
    times: dict[str, list[float]] = {source: [] for source in updates}
    # What the load has left behind is tidied up first.
    pause.wait(SETTLE)
    for number in range(LONE):
        for source, update in updates.items():
            before = last_state(reader, view)
            update(number)
            begin = time.monotonic()
            while last_state(reader, view) == before:
                time.sleep(0.001)
            times[source].append(1000 * (time.monotonic() - begin))
            pause.wait(0.2)
    warehouse.stop()
    runner.join()
    for connection in (shop, crm.connection, geo, reader):
        connection.close()
    return {source: round(statistics.median(of_source), 1) for source, of_source in times.items()}


def last_state(warehouse: Warehouse, view: str) -> int:
    return next(one.state for one in warehouse.status().views if one.view == view)


def measure(world: World, folder: Path, rate: float, seconds: float) -> dict[str, Any]:
    result: dict[str, Any] = {"rows": world.rows, "cores": os.cpu_count(), "seconds": seconds}
    spark = local_session()
    ways: dict[str, tuple[str, float, dict[str, Any]]] = {
        "batched-sweep": ("batched-sweep", rate, {}),
        "sweep": ("sweep", rate / 4, {}),
        "sweep, a commit per state": ("sweep", rate / 4, {"states_per_commit": 1}),
    }
    for way, (algorithm, offered, options) in ways.items():
        log(f"{way}: loading")
        begin = time.monotonic()
        with Warehouse.open(folder / way.replace(" ", "_"), spark) as warehouse:
            for name, url in world.urls.items():
                warehouse.add_source(name, url, install=True)
            warehouse.create_view(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES('algorithm' = '{algorithm}') AS {VIEW}")
            loaded = time.monotonic() - begin
            log(f"{way}: maintaining")
            result[way] = {"load_s": round(loaded, 1), **maintained(world, warehouse, offered, seconds, **options)}
            if way == "batched-sweep":
                log("catching up, every state, audit")
                warehouse.catch_up()
                states = warehouse.states("v")
                result[way]["readable_states"] = len(states)
                middle = states[len(states) // 2].state
                result[way]["rows_of_a_state_in_between"] = warehouse.read("v", middle).count()
                result[way]["audit_clean"] = warehouse.audit("v").clean
                log("lone updates")
                result["lone_update_ms"] = lone_updates(world, warehouse, "v")
            warehouse.drop_view("v")
            for name in world.urls:
                warehouse.remove_source(name)
    fast = result["batched-sweep"]["states_per_s"]
    result["times_faster_than_sweep_with_a_commit_per_state"] = round(
        fast / result["sweep, a commit per state"]["states_per_s"], 1
    )
    result["times_faster_than_sweep_with_grouped_commits"] = round(fast / result["sweep"]["states_per_s"], 1)
    spark.stop()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the largest relation")
    parser.add_argument("--rate", type=float, default=2_500, help="transactions offered per second")
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made, private_cluster() as postgres:
        servers = a_server()
        mariadb = next(servers)
        try:
            with mariadb.root() as root:
                root.execute("CREATE DATABASE bench")
                root.execute(f"GRANT ALL ON bench.* TO {USER}@'%'")
            with postgres.database("bench") as url:
                log("filling the databases")
                world = World(postgres, mariadb, Path(made), url, options.rows)
                print(json.dumps(measure(world, Path(made), options.rate, options.seconds), indent=2))
        finally:
            servers.close()


if __name__ == "__main__":
    main()
