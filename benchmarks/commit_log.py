"""What a long commit log costs each verb that reads it: `states --last 1`, `status`, `catch-up` with nothing to do.

    python benchmarks/commit_log.py [--commits 1000 10000 100000] [--quick]

A small warehouse over SQLite is made by viewkeeper; its last commit is then followed by as many more as are asked for,
written as files: records that each add a state to every group, an entry in the log of every Delta table, and a data
file that has been merged away. Prints JSON: seconds per verb, each in a process of its own, the best of three, and how
much of it is more than the start of a process that reads no warehouse. `after a kill` is the opening that has to look
for what a dead writer has left. Modules are compiled once, as those of an installed package are.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from deltalake import DeltaTable

from viewkeeper import Warehouse
from viewkeeper.clock import monotonic
from viewkeeper.lake.log.commit_log import CHECKPOINT, CommitLog, record_name
from viewkeeper.lake.log.record import Record, encode
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.writer import CLOSED

TRIES = 3
VERBS = {
    "states --last 1": ("states", "orders_of_shops", "--last", "1"),
    "status": ("status",),
    "catch-up": ("catch-up",),
}
VIEWS = (
    "CREATE MATERIALIZED VIEW orders_of_shops AS SELECT o.id, o.amount, s.city FROM shop.orders o JOIN shop.shops s "
    "ON o.shop = s.id",
    "CREATE MATERIALIZED VIEW by_shop AS SELECT shop, COUNT(*) AS n, SUM(amount) AS total FROM shop.orders "
    "GROUP BY shop",
)


def make(root: Path) -> None:
    """A warehouse with two views over a database, and a few commits."""
    database = root / "shop.db"
    with sqlite3.connect(database) as connection:
        connection.executescript(
            "CREATE TABLE shops (id INTEGER PRIMARY KEY, city TEXT NOT NULL);"
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, shop INTEGER NOT NULL, amount INTEGER NOT NULL);"
            "INSERT INTO shops VALUES (1, 'Ulm'), (2, 'Bonn');"
            "INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20);"
        )
    connection.close()
    with Warehouse.open(root / "lake") as warehouse:
        warehouse.add_source("shop", f"sqlite:///{database}", install=True)
        for view in VIEWS:
            warehouse.create_view(view)
        for number in range(3, 6):
            with sqlite3.connect(database) as connection:
                connection.execute("INSERT INTO orders VALUES (?, 1, 1)", (number,))
            connection.close()
            warehouse.catch_up()


def lengthen(root: Path, commits: int) -> None:
    """Follow the last commit by others, up to this number."""
    store = LocalStore(root)
    last = CommitLog(store).last()
    with Warehouse.open(root, read_only=True) as warehouse:
        status = warehouse.status()
        folders = {view.view: Path(view.folder) for view in (*status.views, *status.hidden)}
    for number in range(last.commit + 1, commits + 1):
        last = following(last)
        store.path(record_name(number)).write_bytes(encode(last))
        for view, folder in folders.items():
            entry = folder / "_delta_log" / f"{last.tables[view].version:020d}.json"
            entry.write_text(json.dumps({"commitInfo": {"viewkeeper.commit": str(number)}}) + "\n")
            (folder / f"delta-{number:020d}-{number:032x}.parquet").touch()
    for folder in folders.values():
        DeltaTable(str(folder)).create_checkpoint()
    for name in (CHECKPOINT, CLOSED):
        store.delete(name)
    with Warehouse.open(root):
        pass


def following(record: Record) -> Record:
    """The next commit: one more state of every group, one more version of every table."""
    return replace(
        record,
        commit=record.commit + 1,
        tables={name: replace(table.untouched(), version=table.version + 1) for name, table in record.tables.items()},
        groups={
            name: replace(group, last=group.last + 1, steps=({},), before=group.vector)
            for name, group in record.groups.items()
        },
    )


def installed(folder: Path) -> None:
    """From now on processes find modules compiled in this folder, as those of an installed package are."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder)


def seconds(*words: str, before: Path | None = None) -> float:
    """The best of a few tries of a verb; `before` is a file to delete before each."""
    best = float("inf")
    for _ in range(TRIES):
        if before is not None:
            before.unlink(missing_ok=True)
        begin = monotonic()
        subprocess.run([sys.executable, "-m", "viewkeeper", *words], check=True, capture_output=True)
        best = min(best, monotonic() - begin)
    return round(best, 3)


def main() -> None:
    """Make, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--quick", action="store_true", help="100 and 1,000 commits")
    given = parser.parse_args()
    measured = {}
    with tempfile.TemporaryDirectory(prefix="viewkeeper-") as place:
        root = Path(place)
        installed(root / "compiled")
        make(root)
        start = seconds("states", "--help")
        for commits in sorted([100, 1_000] if given.quick else given.commits):
            lengthen(root / "lake", commits)
            taken = {verb: seconds(*words, "-w", str(root / "lake")) for verb, words in VERBS.items()}
            killed = root / "lake" / CLOSED
            taken["catch-up after a kill"] = seconds("catch-up", "-w", str(root / "lake"), before=killed)
            measured[commits] = {
                verb: {"seconds": it, "beyond_start": round(it - start, 3)} for verb, it in taken.items()
            }
    print(json.dumps({"process_start": start, "commits": measured, "cpus": os.cpu_count()}, indent=2))


if __name__ == "__main__":
    main()
