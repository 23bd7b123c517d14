"""A warehouse over two databases with views of all kinds, and changes that are not in them yet."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from viewkeeper import Warehouse

VIEWS = (
    "CREATE MATERIALIZED VIEW named AS SELECT o.id, c.name, o.amount FROM shop.orders o JOIN crm.customers c"
    " ON c.id = o.customer",
    "CREATE MATERIALIZED VIEW large AS SELECT id, amount FROM shop.orders WHERE amount > 10",
    "CREATE MATERIALIZED VIEW held TBLPROPERTIES ('storage' = 'matview') AS SELECT o.id, c.name FROM shop.orders o"
    " JOIN crm.customers c ON c.id = o.customer",
    "CREATE MATERIALIZED VIEW by_customer AS SELECT customer, COUNT(*) AS n, SUM(amount) AS amount FROM shop.orders"
    " GROUP BY customer",
    "CREATE MATERIALIZED VIEW extremes AS SELECT customer, MIN(amount) AS least, MAX(amount) AS most FROM shop.orders"
    " GROUP BY customer",
    "CREATE MATERIALIZED VIEW by_name AS SELECT name, COUNT(*) AS n FROM crm.customers GROUP BY name",
)


def write(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"BEGIN; {script}; COMMIT;")


def make_pending(folder: Path) -> Path:
    """A folder with a warehouse of many groups, and changes at its sources that none of them has yet."""
    write(folder / "shop.db", "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER)")
    write(folder / "crm.db", "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
    before = os.getcwd()
    os.chdir(folder)
    try:
        with Warehouse.open("lake") as warehouse:
            warehouse.add_source("shop", "sqlite:///shop.db", install=True)
            warehouse.add_source("crm", "sqlite:///crm.db", install=True)
            for view in VIEWS:
                warehouse.create_view(view)
    finally:
        os.chdir(before)
    for number in range(8):
        write(folder / "crm.db", f"INSERT INTO customers VALUES ({number}, 'name {number % 5}')")
        write(folder / "shop.db", f"INSERT INTO orders VALUES ({number}, {number % 7}, {number * 3})")
    return folder
