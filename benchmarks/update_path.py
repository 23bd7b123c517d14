"""The way of one update through the code: functions, files and packages that it passes.

    python benchmarks/update_path.py

One row is inserted at a SQLite database, and `catch_up` brings it into a join, a summary and a self-maintained view,
each in a warehouse of its own. Counted are the functions of viewkeeper that are called, their files, and how often a
call goes from one package into another. It prints JSON.
"""

import json
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import viewkeeper
from viewkeeper import Warehouse

HOME = str(Path(viewkeeper.__file__).parent)
TABLES = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER);
CREATE TABLE customers (id INTEGER PRIMARY KEY, city TEXT);
INSERT INTO customers VALUES (1, 'Oslo'), (2, 'Rome');
INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20);
"""
JOIN = "SELECT o.id, o.amount, c.city FROM shop.orders o JOIN shop.customers c ON o.customer = c.id"
VIEWS = {
    "join": f"CREATE MATERIALIZED VIEW v AS {JOIN}",
    "summary": "CREATE MATERIALIZED VIEW v AS SELECT customer, SUM(amount) AS total FROM shop.orders GROUP BY customer",
    "self-maintained": f"CREATE MATERIALIZED VIEW v TBLPROPERTIES('storage' = 'viewcache') AS {JOIN}",
}


class Way:
    """What is called, in every thread."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, int]] = set()
        self.switches = 0

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(HOME) or code.co_name.startswith("<"):
            return
        self.functions.add((code.co_filename, code.co_firstlineno))
        before = frame.f_back
        if before is not None and before.f_code.co_filename.startswith(HOME):
            self.switches += _package(before.f_code.co_filename) != _package(code.co_filename)

    def told(self) -> dict[str, int]:
        files = {file for file, _ in self.functions}
        return {"functions": len(self.functions), "files": len(files), "package_switches": self.switches}


def _package(file: str) -> str:
    return str(Path(file).parent)


@contextmanager
def watched(way: Way) -> Iterator[None]:
    threading.setprofile(way)
    sys.setprofile(way)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # as sys.setprofile: None ends it


def measure(sql: str, folder: Path) -> dict[str, int]:
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        database.executescript(TABLES)
        with Warehouse.open(folder / "lake") as warehouse:
            warehouse.add_source("shop", f"sqlite:///{folder}/shop.db", install=True)
            warehouse.create_view(sql)
        way = Way()
        for number, ways in ((3, Way()), (4, way)):  # the first update also finds out what is remembered
            database.execute(f"INSERT INTO orders VALUES ({number}, 1, 30)")
            database.commit()
            with Warehouse.open(folder / "lake") as warehouse, watched(ways):
                warehouse.catch_up()
    return way.told()


def main() -> None:
    found = {}
    for kind, sql in VIEWS.items():
        with tempfile.TemporaryDirectory() as folder:
            found[kind] = measure(sql, Path(folder))
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
