"""Minutes under a steady load: `viewkeeper run` in a process of its own, a writer of so many transactions per second.

    python benchmarks/sustained.py [--seconds 600] [--rate 2000] [--rows 50000] [--url postgresql://...] [--quick]

The source is SQLite in a new folder, or the PostgreSQL database of `--url`, in which the table `sustained_orders` is
made and dropped. The views: a summary of 100 groups with MAX, whose hidden table has a row per value, and a selection.
Every ten seconds: the memory of the process (RSS, its own and that of the JVM, if it started one) and its CPU time, the
size of the warehouse by kind of file, commits, and the transactions that were not captured yet, or captured and not
committed by the slowest group. Prints JSON: the samples, the bytes that were written and the CPU time per transaction,
RSS and lag in the first and in the last minute, what a day would grow to at this rate, and what `vacuum` takes away.
Nothing is deleted meanwhile, so what the disk grows by is what was written.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from viewkeeper import Warehouse
from viewkeeper.clock import monotonic

GROUPS = 100
EVERY = 10.0
TABLE = "sustained_orders"
VIEWS = (
    f"CREATE MATERIALIZED VIEW maxima AS SELECT shop, COUNT(*) AS n, SUM(amount) AS total, MAX(amount) AS most "
    f"FROM source.{TABLE} GROUP BY shop",
    f"CREATE MATERIALIZED VIEW large AS SELECT id, shop, amount FROM source.{TABLE} WHERE amount > 500000",
)
DAY = 86_400


def amount(number: int) -> int:
    """A value that is seldom there twice, and in no order."""
    return number * 7919 % 1_000_003


class Sqlite:
    def __init__(self, folder: Path, _: str | None) -> None:
        self.url = f"sqlite:///{folder / 'orders.db'}"
        self.connection = sqlite3.connect(folder / "orders.db", isolation_level=None, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = OFF")

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> int:
        return self.connection.execute(statement, values).rowcount

    def many(self, statement: str, rows: Iterator[tuple[Any, ...]]) -> None:
        self.connection.execute("BEGIN")
        self.connection.executemany(statement, rows)
        self.connection.execute("COMMIT")

    mark = "?"


class Postgres:
    def __init__(self, _: Path, url: str | None) -> None:
        import psycopg

        assert url is not None
        self.url = url
        self.connection = psycopg.connect(url, autocommit=True)
        self.execute("SET synchronous_commit = off")

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> int:
        return self.connection.execute(statement.encode(), values or None).rowcount

    def many(self, statement: str, rows: Iterator[tuple[Any, ...]]) -> None:
        with self.connection.cursor() as cursor:
            cursor.executemany(statement.encode(), rows)

    mark = "%s"


class Writer(threading.Thread):
    """Inserts, updates and deletes of one row, each a transaction, as many per second as asked for if the database
    takes them. Of each ten rows of the table the first is deleted at some time, and the next three are updated."""

    def __init__(self, database: Sqlite | Postgres, rows: int, rate: float) -> None:
        super().__init__()
        assert rows % 10 == 0, "the rows come in tens"
        self.database, self.rows, self.rate = database, rows, rate
        self.done = self.without_effect = 0
        self.stopped = threading.Event()

    def run(self) -> None:
        begin = monotonic()
        while not self.stopped.is_set():
            while self.done < (monotonic() - begin) * self.rate and not self.stopped.is_set():
                self.without_effect += self.transaction(self.done) != 1
                self.done += 1
            self.stopped.wait(0.002)

    def transaction(self, number: int) -> int:
        """Do it; the rows that it has changed."""
        mark, new, old = self.database.mark, self.rows + number, number - number % 10
        if number % 10 < 6:
            values = (new, new % GROUPS, amount(new))
            return self.database.execute(f"INSERT INTO {TABLE} VALUES ({mark}, {mark}, {mark})", values)
        if number % 10 < 9:
            values = (amount(new), old + number % 10 - 5)
            return self.database.execute(f"UPDATE {TABLE} SET amount = {mark} WHERE id = {mark}", values)
        return self.database.execute(f"DELETE FROM {TABLE} WHERE id = {mark}", (old,))


def sizes(root: Path) -> Counter[str]:
    """Bytes on disk by kind of file."""
    found: Counter[str] = Counter()
    for place, _, names in os.walk(root):
        for name in names:
            try:
                size = Path(place, name).stat().st_size
            except FileNotFoundError:
                continue
            kind = (
                "delta logs"
                if "_delta_log" in place
                else "records"
                if "_viewkeeper/commits" in place
                else "data"
                if "/views/" in place or "/changes/" in place
                else "other"
            )
            found[kind] += size
            found["all"] += size
            found["files"] += 1
    return found


def resident(pid: int) -> tuple[float, float]:
    """The memory of a process, and of those that it started, in MB."""
    own = started = 0.0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            size = int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6
            own += size if int(entry.name) == pid else 0
            started += size if int(fields[1]) == pid else 0
        except (OSError, IndexError, ValueError):
            continue
    return round(own, 1), round(started, 1)


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process so far, all of its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sample(lake: Path, process: int, writer: Writer, began: float) -> dict[str, Any]:
    with Warehouse.open(lake, read_only=True) as warehouse:
        status = warehouse.status()
    on_disk = sizes(lake)
    report = status.running.report if status.running else None
    written, captured = writer.done, report.transactions if report else 0
    waiting = max((sum(group.behind.values()) for group in report.groups), default=0) if report else 0
    own, jvm = resident(process)
    return {
        "seconds": round(monotonic() - began, 1),
        "transactions": written,
        "processed": captured - waiting,
        "commits": status.commit,
        "states": max(view.state for view in status.views),
        "rss_mb": own,
        "jvm_rss_mb": jvm,
        "cpu_seconds": cpu_seconds(process),
        "disk_mb": {kind: round(size / 1e6, 2) for kind, size in on_disk.items() if kind != "files"},
        "files": on_disk["files"],
        "not_captured": written - captured,
        "captured_and_not_committed": waiting,
    }


@contextmanager
def keeper(lake: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`viewkeeper run`, until the block ends."""
    with subprocess.Popen(
        [sys.executable, "-m", "viewkeeper", "run", "-w", str(lake)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            while not (lake / "_viewkeeper" / "running.json").exists():
                if process.poll() is not None:
                    raise SystemExit(f"viewkeeper run has ended with exit code {process.returncode}")
                threading.Event().wait(0.1)
            yield process
        finally:
            process.terminate()
            process.wait(120)


def minutes(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """The first and the last minute after the first sample, of a short run a quarter of it."""
    first, last = samples[0]["seconds"], samples[-1]["seconds"]
    long = min(60.0, (last - first) / 4)
    begin = [one for one in samples if one["seconds"] - first <= long + 1] or samples
    end = [one for one in samples if last - one["seconds"] <= long + 1]
    return {
        "first_minute": _figures(begin if len(begin) > 1 else samples[:2]),
        "last_minute": _figures(end if len(end) > 1 else samples[-2:]),
        "all": _figures(samples),
    }


def _figures(samples: list[dict[str, Any]]) -> dict[str, Any]:
    before, after = samples[0], samples[-1]
    grown = (after["disk_mb"]["all"] - before["disk_mb"]["all"]) * 1e6
    transactions = max(1, after["processed"] - before["processed"])
    commits = max(1, after["commits"] - before["commits"])
    seconds = after["seconds"] - before["seconds"]
    return {
        "seconds": round(seconds, 1),
        "transactions_per_second": round(transactions / seconds, 1),
        "commits_per_second": round(commits / seconds, 2),
        "cpu_seconds_per_1000": round((after["cpu_seconds"] - before["cpu_seconds"]) * 1_000 / transactions, 3),
        "bytes_per_transaction": round(grown / transactions, 1),
        "bytes_per_commit": round(grown / commits),
        "rss_mb": [min(one["rss_mb"] for one in samples), max(one["rss_mb"] for one in samples)],
        "most_lag": max(one["not_captured"] + one["captured_and_not_committed"] for one in samples),
    }


def main() -> None:
    """Load, run, sample, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--rate", type=float, default=2_000.0, help="transactions per second")
    parser.add_argument("--rows", type=int, default=50_000, help="in the table at first")
    parser.add_argument("--url", help="a PostgreSQL database; SQLite if there is none")
    parser.add_argument("--quick", action="store_true", help="20 seconds at 200 per second")
    given = parser.parse_args()
    if given.quick:
        given.seconds, given.rate, given.rows = 20.0, 200.0, 5_000
    every = min(EVERY, given.seconds / 4)
    with tempfile.TemporaryDirectory(prefix="viewkeeper-") as place:
        lake = Path(place) / "lake"
        database = (Postgres if given.url else Sqlite)(Path(place), given.url)
        database.execute(
            f"CREATE TABLE {TABLE} (id INTEGER PRIMARY KEY, shop INTEGER NOT NULL, amount INTEGER NOT NULL)"
        )
        mark = database.mark
        database.many(
            f"INSERT INTO {TABLE} VALUES ({mark}, {mark}, {mark})",
            ((number, number % GROUPS, amount(number)) for number in range(given.rows)),
        )
        try:
            with Warehouse.open(lake) as warehouse:
                warehouse.add_source("source", database.url, [TABLE], install=True)
                for view in VIEWS:
                    warehouse.create_view(view)
            writer, samples = Writer(database, given.rows, given.rate), []
            with keeper(lake) as process:
                writer.start()
                began = monotonic()
                while monotonic() - began < given.seconds:
                    threading.Event().wait(every)
                    samples.append(sample(lake, process.pid, writer, began))
                writer.stopped.set()
                writer.join()
            assert not writer.without_effect, f"{writer.without_effect} transactions have changed nothing"
            written = sizes(lake)["all"]
            with Warehouse.open(lake) as warehouse:
                begin = monotonic()
                warehouse.catch_up()
                caught_up = monotonic() - begin
                clean = {view: warehouse.audit(view).clean for view in ("maxima", "large")}
                begin = monotonic()
                vacuumed = warehouse.vacuum(0, grace=0)
                vacuum_seconds = monotonic() - begin
                left = sizes(lake)["all"]
                for view in ("maxima", "large"):
                    warehouse.drop_view(view)
                warehouse.remove_source("source")
        finally:
            database.execute(f"DROP TABLE IF EXISTS {TABLE}")
    figures = minutes(samples)
    print(
        json.dumps(
            {
                "rate": {
                    "asked": given.rate,
                    "reached": round(samples[-1]["transactions"] / samples[-1]["seconds"], 1),
                },
                "samples": samples,
                **figures,
                "gb_a_day_at_2200_per_second": round(
                    figures["last_minute"]["bytes_per_transaction"] * 2_200 * DAY / 1e9, 1
                ),
                "clean": clean,
                "catch_up_seconds": round(caught_up, 2),
                "vacuum": {
                    "seconds": round(vacuum_seconds, 2),
                    "files": vacuumed.files,
                    "mb_before": round(written / 1e6, 2),
                    "mb_after": round(left / 1e6, 2),
                },
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
