"""What a large transaction costs per row: inserts and updates, by size and by the source that they happen at.

    python benchmarks/large_transactions.py [--rows 50000 500000] [--sources sqlite postgresql] [--quick]

For every size a database with as many orders, and customers in another one. Three views: a join over the two sources,
a summary with MAX over the join, and a join that is maintained without queries. One transaction inserts as many orders
as there are, another one updates every second order; `catch-up` is timed after each. Every view is then compared with
a recomputation. Prints JSON; `per_row_ratio` is the time per row at the largest size over that at the smallest: 1 is
linear, less than 1 shows what is paid once per transaction. `driver_cpu_s` is the time of the processor without that of
Spark, and is the figure to go by on a busy machine. PostgreSQL runs as a private server.
"""

import argparse
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "sources"))

from postgres_server import private_cluster

from viewkeeper import Warehouse

ROWS, QUICK = (50_000, 500_000), (2_000, 10_000)
FIRST = 1_000
"""of what is measured first and thrown away"""
CUSTOMERS, CITIES = 10_000, 100
JOINED = (
    "SELECT o.id, o.amount, o.price, o.day, o.note, c.name, c.city "
    "FROM shop.orders o JOIN crm.customers c ON o.customer = c.id"
)
VIEWS = {
    "sales": f"CREATE MATERIALIZED VIEW sales AS {JOINED}",
    "by_city": "CREATE MATERIALIZED VIEW by_city AS SELECT city, COUNT(*) AS n, SUM(price) AS total, "
    "MAX(amount) AS most FROM sales GROUP BY city",
    "stored": f"CREATE MATERIALIZED VIEW stored TBLPROPERTIES ('storage' = 'matview') AS {JOINED}",
}
TABLE = (
    "CREATE TABLE orders (id INTEGER NOT NULL PRIMARY KEY, customer INTEGER NOT NULL, amount INTEGER NOT NULL, "
    "price DECIMAL(10, 2) NOT NULL, day DATE NOT NULL, note VARCHAR(40))"
)
UPDATE = "UPDATE orders SET amount = amount + 1 WHERE id % 2 = 0"


def log(text: str) -> None:
    print(time.strftime("%X"), text, file=sys.stderr, flush=True)


# --- the databases ---


def orders(first: int, last: int, numbers: str, day: str) -> str:
    """The statement that inserts the orders with these numbers."""
    return (
        f"INSERT INTO orders SELECT i, i * 7919 % {CUSTOMERS}, i * 37 % 1000, i * 31 % 100000 / 100.0, {day}, "
        f"'order number ' || i FROM {numbers.format(first=first, last=last)}"
    )


class Sqlite:
    """Orders in a SQLite file."""

    kind = "sqlite"

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path}"
        self._path = path
        self.execute("PRAGMA journal_mode = WAL")

    def execute(self, statement: str) -> None:
        """One transaction."""
        with sqlite3.connect(self._path) as connection:
            connection.execute(statement)
        connection.close()

    def insert(self, first: int, last: int) -> None:
        """Orders with these numbers, in one transaction."""
        numbers = (
            "(WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last}) SELECT i FROM n)"
        )
        self.execute(orders(first, last, numbers, "date('2026-01-01', (i % 365) || ' days')"))


class PostgreSql:
    """Orders in a database of a private server."""

    kind = "postgresql"

    def __init__(self, url: str) -> None:
        self.url = url

    def execute(self, statement: str) -> None:
        """One transaction."""
        import psycopg

        with psycopg.connect(self.url) as connection:
            connection.execute(statement.encode())

    def insert(self, first: int, last: int) -> None:
        """Orders with these numbers, in one transaction."""
        numbers = "generate_series({first}::bigint, {last}::bigint) AS n(i)"
        self.execute(orders(first, last, numbers, "date '2026-01-01' + (i % 365)::int"))


def customers(path: Path) -> str:
    """The other source; its URL."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE customers (id INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, city TEXT)")
        connection.executemany(
            "INSERT INTO customers VALUES (?, ?, ?)",
            ((number, f"customer {number}", f"city {number % CITIES}") for number in range(CUSTOMERS)),
        )
    connection.close()
    return f"sqlite:///{path}"


@contextmanager
def databases(kind: str, folder: Path) -> Iterator["Callable[[int], Sqlite | PostgreSql]"]:
    """Gives a database of this kind for every size."""
    if kind == "sqlite":
        yield lambda size: Sqlite(folder / f"shop-{size}.db")
        return
    with private_cluster() as server, ExitStack() as made:
        yield lambda size: PostgreSql(made.enter_context(server.database(f"shop{size}")))


# --- what is measured ---


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(database: "Sqlite | PostgreSql", folder: Path, rows: int) -> dict[str, Any]:
    """One size at one kind of source."""
    folder.mkdir()
    database.execute(TABLE)
    database.insert(1, rows)
    with Warehouse.open(folder / "lake") as warehouse:
        warehouse.add_source("shop", database.url, install=True)
        warehouse.add_source("crm", customers(folder / "crm.db"), install=True)
        for view in VIEWS.values():
            log(f"{database.kind}, {rows:,} rows: {view.split()[3]}")
            warehouse.create_view(view)
        figures = {
            "insert": transaction(warehouse, rows, lambda: database.insert(rows + 1, 2 * rows)),
            "update": transaction(warehouse, rows, lambda: database.execute(UPDATE)),
        }
        for view in VIEWS:
            log(f"{database.kind}, {rows:,} rows: audit of {view}")
            audit = warehouse.audit(view)
            if not audit.clean:
                raise SystemExit(f"{view} is not what a recomputation gives: {audit}")
        warehouse.drop_view("by_city")
        for view in ("sales", "stored"):
            warehouse.drop_view(view)
        for source in ("shop", "crm"):
            warehouse.remove_source(source)
    return figures


def transaction(warehouse: Warehouse, rows: int, work: Callable[[], object]) -> dict[str, Any]:
    """Change so many rows in one transaction, and follow."""
    at_source = timed(work)
    log(f"{rows:,} changed rows: catching up")
    before = time.process_time()
    taken = timed(warehouse.catch_up)
    cpu = time.process_time() - before
    log(f"{taken:.1f} s")
    return {
        "rows": rows,
        "at_source_s": round(at_source, 2),
        "catch_up_s": round(taken, 2),
        "us_per_row": round(1e6 * taken / rows, 1),
        "driver_cpu_s": round(cpu, 2),
    }


def ratios(figures: dict[int, dict[str, Any]]) -> dict[str, float]:
    """The time per row at the largest size over that at the smallest."""
    first, last = figures[min(figures)], figures[max(figures)]
    return {kind: round(last[kind]["us_per_row"] / first[kind]["us_per_row"], 2) for kind in first}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS), help="changed rows per transaction")
    parser.add_argument("--sources", nargs="+", choices=["sqlite", "postgresql"], default=["sqlite", "postgresql"])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK[0]:,} and {QUICK[1]:,} rows")
    given = parser.parse_args()
    report: dict[str, Any] = {"cores": os.cpu_count(), "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(prefix="viewkeeper-") as made:
        for kind in given.sources:
            folder = Path(made) / kind
            folder.mkdir()
            with databases(kind, folder) as database:
                sizes = sorted(QUICK if given.quick else given.rows)
                # The first is thrown away: what starts once, such as Spark, is not a matter of the size.
                measure(database(FIRST), folder / "start", FIRST)
                figures = {size: measure(database(size), folder / f"{size}", size) for size in sizes}
            report[kind] = {"sizes": figures, "per_row_ratio": ratios(figures)}
    print(json.dumps(report, indent=2))
    # Not `spark.stop()`: it waits for its shutdown hooks, and there is nothing left to save.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
