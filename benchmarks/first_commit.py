"""How soon the first commit comes after a start of `viewkeeper run` with pending changes, after a kill each time.

    python benchmarks/first_commit.py [--starts 5] [--quick]

A warehouse over two SQLite databases has a join, a self-maintained view and summaries with MIN and MAX. Before each
start 50 transactions are committed at each database; the process is killed when its first state is committed. Prints
JSON: the seconds of wall-clock and processor time from the start of each process to that commit, the least first.
Modules are compiled once, as those of an installed package are.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path

from viewkeeper import Warehouse
from viewkeeper.clock import monotonic
from viewkeeper.lake.log.commit_log import CommitLog
from viewkeeper.lake.log.store import LocalStore

VIEWS = (
    "CREATE MATERIALIZED VIEW named AS SELECT o.id, c.name, o.amount FROM shop.orders o JOIN crm.customers c"
    " ON c.id = o.customer",
    "CREATE MATERIALIZED VIEW held TBLPROPERTIES ('storage' = 'matview') AS SELECT o.id, c.name FROM shop.orders o"
    " JOIN crm.customers c ON c.id = o.customer",
    "CREATE MATERIALIZED VIEW by_customer AS SELECT customer, COUNT(*) AS n, SUM(amount) AS amount,"
    " MIN(amount) AS least, MAX(amount) AS most FROM shop.orders GROUP BY customer",
    "CREATE MATERIALIZED VIEW by_name AS SELECT name, COUNT(*) AS n FROM crm.customers GROUP BY name",
)
PENDING = 50
TICK = 0.005


def write(path: Path, *statements: str) -> None:
    """Each as a transaction."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def make(root: Path) -> None:
    """The databases and the warehouse."""
    write(root / "shop.db", "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER)")
    write(root / "crm.db", "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
    with Warehouse.open(root / "lake") as warehouse:
        for name in ("shop", "crm"):
            warehouse.add_source(name, f"sqlite:///{root / name}.db", install=True)
        for view in VIEWS:
            warehouse.create_view(view)


def reached(lake: Path) -> int:
    """The states of all groups: a commit that puts right what a killed process left makes none."""
    return sum(group.last for group in CommitLog(LocalStore(lake)).last().groups.values())


def processor_seconds(pid: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start(root: Path, number: int) -> tuple[float, float]:
    """Seconds of wall-clock and processor time to the first commit of the start of this number."""
    ids = range(number * PENDING, (number + 1) * PENDING)
    write(root / "crm.db", *(f"INSERT INTO customers VALUES ({id}, 'name {id % 9}')" for id in ids))
    write(root / "shop.db", *(f"INSERT INTO orders VALUES ({id}, {id % 40}, {id})" for id in ids))
    lake, wait = root / "lake", threading.Event()
    before, begin = reached(lake), monotonic()
    command = [sys.executable, "-m", "viewkeeper", "run", "-w", str(lake)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while reached(lake) == before and process.poll() is None:
            wait.wait(TICK)
        taken = monotonic() - begin, processor_seconds(process.pid)
        process.kill()
    return taken


def main() -> None:
    """Make, start, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="two starts")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="viewkeeper-") as place:
        root = Path(place)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(root / "compiled")
        make(root)
        start(root, 0)  # compiles
        taken = [start(root, number) for number in range(1, (2 if given.quick else given.starts) + 1)]
    figures = {
        "wall_seconds": sorted(round(wall, 3) for wall, _ in taken),
        "processor_seconds": sorted(round(used, 3) for _, used in taken),
        "cpus": os.cpu_count(),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
