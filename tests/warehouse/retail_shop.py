"""A shop in SQLite with gaps of every kind in its rows, and the same in DuckDB, to ask what a query should give."""

import math
import sqlite3
from collections import Counter
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import sqlglot

from viewkeeper.clock import Random, seeded

TABLES = {
    "pos": "id INTEGER PRIMARY KEY, storeID INTEGER, itemID INTEGER, date DATE, qty INTEGER, price DECIMAL(10, 2), "
    "weight DOUBLE",
    "stores": "storeID INTEGER PRIMARY KEY, city TEXT, region TEXT",
    "items": "itemID INTEGER PRIMARY KEY, name TEXT, category TEXT, cost DECIMAL(10, 2)",
}
HIERARCHIES = {"stores": ["storeID", "city", "region"]}
STORES = "retail.pos p JOIN retail.stores s ON p.storeID = s.storeID"
ITEMS = "retail.pos p JOIN retail.items i ON p.itemID = i.itemID"
BOTH = f"{STORES} JOIN retail.items i ON p.itemID = i.itemID"
SUMMARIES = {
    "sid_sales": "SELECT storeID, itemID, date, COUNT(*) AS n, SUM(qty) AS q, SUM(price) AS total, AVG(weight) AS w "
    "FROM retail.pos GROUP BY storeID, itemID, date",
    "scd_sales": f"SELECT city, date, COUNT(*) AS n, SUM(qty) AS q, MAX(price) AS highest FROM {STORES} "
    "GROUP BY city, date",
    "sic_sales": "SELECT storeID, category, COUNT(*) AS n, MIN(date) AS earliest, COUNT(DISTINCT qty) AS sizes "
    f"FROM {ITEMS} GROUP BY storeID, category",
}


def random_sale(rng: Random, number: int) -> tuple[Any, ...]:
    """Of a store that may be unknown or missing."""
    return (
        number,
        rng.choice([1, 2, 3, 4, 5, 6, 77, None]),
        rng.choice([1, 2, 3, 4, None]),
        rng.choice(["2024-01-01", "2024-01-02", "2024-02-29", None]),
        rng.choice([0, 1, 2, 3, -4, None]),
        rng.choice(["0.10", "12.34", None]),
        rng.choice([0.5, -2.25, 1024.0, None]),
    )


def random_rows(seed: int, sales: int = 120) -> dict[str, list[tuple[Any, ...]]]:
    rng = seeded(seed)
    return {
        "pos": [random_sale(rng, number) for number in range(sales)],
        # Two stores in one city; a city without a region; a store without either.
        "stores": [
            (1, "Bern", "west"),
            (2, "Bern", "west"),
            (3, "Chur", "east"),
            (4, "Ulm", None),
            (5, None, None),
            (6, "Genf", "west"),
        ],
        "items": [(1, "pen", "office", "1.25"), (2, "ink", "office", None), (3, "tea", None, "0.5")],
    }


class RetailShop:
    """The database in a file, and the same in DuckDB."""

    def __init__(self, path: Path, rows: dict[str, list[tuple[Any, ...]]]) -> None:
        self.path = path
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = wal")
            for name, columns in TABLES.items():
                connection.execute(f"CREATE TABLE {name} ({columns})")
                for row in rows[name]:
                    connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
            connection.commit()
        self.database = duckdb.connect()
        self.look_again()

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"

    def write(self, script: str) -> None:
        with closing(sqlite3.connect(self.path)) as connection:
            connection.executescript(f"BEGIN; {script}; COMMIT;")

    def look_again(self) -> None:
        """Make DuckDB's tables what SQLite's are now."""
        self.database.execute("DROP SCHEMA IF EXISTS retail CASCADE")
        self.database.execute("CREATE SCHEMA retail")
        with closing(sqlite3.connect(self.path)) as connection:
            for name, columns in TABLES.items():
                # Integers of SQLite have 64 bits.
                columns = columns.replace("INTEGER", "BIGINT").replace("TEXT", "VARCHAR")
                self.database.execute(f"CREATE TABLE retail.{name} ({columns})")
                found = connection.execute(f"SELECT * FROM {name}").fetchall()
                if found:
                    self.database.executemany(
                        f"INSERT INTO retail.{name} VALUES ({', '.join('?' * len(found[0]))})", found
                    )

    def bag(self, sql: str) -> Counter[tuple[Any, ...]]:
        """What a query in Spark's dialect should give."""
        return bag(self.database.sql(sqlglot.transpile(sql, "spark", "duckdb")[0]).fetchall())


def bag(rows: Any) -> Counter[tuple[Any, ...]]:
    """Rows in which a number is a number, whatever its type."""
    return Counter(tuple(map(_comparable, row)) for row in rows)


def _comparable(value: Any) -> Any:
    if isinstance(value, float | Decimal | int) and not isinstance(value, bool):
        return "NaN" if math.isnan(value) else round(float(value), 6) + 0.0
    return value
