"""What a long commit log costs each verb that reads it: `states --last 1`, `status`, `catch-up` with nothing to do.

    python benchmarks/commit_log.py [--commits 1000 10000 100000] [--quick]

A small warehouse over SQLite is made by viewkeeper; its last commit is then followed by as many more as are asked for:
records that each add a state to every group, appended to the log as a commit appends them; a version in the log of
every Delta table, put aside as commits put them aside; and a data file that has been merged away. Only what waits for
the disk and what reads rows is left out, so that 100,000 commits take a few minutes.

Prints JSON: seconds per verb and the processor's seconds, each in a process of its own, the best of three, and how much
of it is more than the start of a process that reads no warehouse. `after a kill` is the opening that has to look for
what a writer has left that was killed. Modules are compiled once, as those of an installed package are.
"""

import argparse
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from deltalake import DeltaTable

from viewkeeper import Warehouse
from viewkeeper.clock import monotonic
from viewkeeper.lake.log.commit_log import CommitLog
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.tables.delta_log import AT_ONCE, LOG, put_old_entries_aside
from viewkeeper.lake.tables.delta_table import DELTA
from viewkeeper.lake.tables.parquet_files import file_name
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
    log = CommitLog(store)
    last = log.last()
    with Warehouse.open(root, read_only=True) as warehouse:
        status = warehouse.status()
        folders = {view.view: Path(view.folder) for view in (*status.views, *status.hidden)}
    with without_waiting_for_the_disk():
        for number in range(last.commit + 1, commits + 1):
            last = following(last)
            log.append(last)
            for view, folder in folders.items():
                entry = folder / LOG / f"{last.tables[view].version:020d}.json"
                entry.write_text(json.dumps({"commitInfo": {"viewkeeper.commit": str(number)}}) + "\n")
                (folder / f"{file_name(DELTA, number)}.parquet").touch()
            if number % AT_ONCE == 0 or number == commits:
                for view, folder in folders.items():
                    DeltaTable(str(folder)).create_checkpoint()
                    put_old_entries_aside(store, folder.relative_to(root).as_posix(), last.tables[view].version)
    store.delete(CLOSED)
    with Warehouse.open(root):
        pass


@contextmanager
def without_waiting_for_the_disk() -> Iterator[None]:
    """Nothing is synced meanwhile: it makes no difference to what is there."""
    sync, os.fsync = os.fsync, lambda _: None
    try:
        yield
    finally:
        os.fsync = sync


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


def measured(*words: str, before: Callable[[], None] = lambda: None) -> dict[str, float]:
    """The best of a few tries of a verb, each after `before`."""
    tries = []
    for _ in range(TRIES):
        before()
        used, begin = processor_seconds(), monotonic()
        subprocess.run([sys.executable, "-m", "viewkeeper", *words], check=True, capture_output=True)
        tries.append((monotonic() - begin, processor_seconds() - used))
    return {"seconds": round(min(it for it, _ in tries), 3), "processor": round(min(it for _, it in tries), 3)}


def processor_seconds() -> float:
    """What the processes that this one has started have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def kill_a_writer(root: Path) -> None:
    """Open the warehouse in a process that is then killed."""
    killed = (
        "import os, sys; from viewkeeper import Warehouse; it = Warehouse.open(sys.argv[1]); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", killed, str(root)], check=False)


def main() -> None:
    """Make, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--quick", action="store_true", help="100 and 1,000 commits")
    given = parser.parse_args()
    taken: dict[int, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="viewkeeper-") as place:
        root = Path(place)
        lake = root / "lake"
        installed(root / "compiled")
        make(root)
        start = measured("states", "--help")
        for commits in sorted([100, 1_000] if given.quick else given.commits):
            lengthen(lake, commits)
            of = taken[commits] = {verb: measured(*words, "-w", str(lake)) for verb, words in VERBS.items()}
            of["catch-up after a kill"] = measured("catch-up", "-w", str(lake), before=lambda: kill_a_writer(lake))
            for it in of.values():
                it["beyond_start"] = round(it["seconds"] - start["seconds"], 3)
    print(json.dumps({"process_start": start, "commits": taken, "cpus": os.cpu_count()}, indent=2))


if __name__ == "__main__":
    main()
