"""Figure 1 of the summary-delta paper, end to end: its four views over a database, loaded and then maintained."""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from retail_paper import FIGURE_1

from viewkeeper.warehouse import Warehouse

TABLES = """
    CREATE TABLE stores (storeID INTEGER PRIMARY KEY, city TEXT, region TEXT);
    CREATE TABLE items (itemID INTEGER PRIMARY KEY, name TEXT, category TEXT, cost DECIMAL(10, 2));
    CREATE TABLE pos (storeID INTEGER, itemID INTEGER, date DATE, qty INTEGER, price DECIMAL(10, 2));
    INSERT INTO stores VALUES (1, 'Bern', 'west'), (2, 'Bern', 'west'), (3, 'Chur', 'east'), (4, 'Genf', 'west');
    INSERT INTO items VALUES (1, 'pen', 'office', 1.5), (2, 'ink', 'office', 2.5), (3, 'tea', 'food', 0.5);
    INSERT INTO pos VALUES (1, 1, '1996-06-01', 3, 1.5), (1, 1, '1996-06-01', 3, 1.5), (1, 2, '1996-06-02', 1, 2.5),
        (2, 3, '1996-06-01', 7, 0.5), (3, 3, '1996-06-03', NULL, 0.5), (3, 1, '1996-06-02', 4, 1.5),
        (4, 2, '1996-06-03', 2, 2.5);
"""
# A duplicate goes and its twin stays, a group loses its earliest sale, another all of its sales, and a third is new.
CHANGES = """
    DELETE FROM pos WHERE rowid = (SELECT MIN(rowid) FROM pos WHERE storeID = 1 AND itemID = 1);
    DELETE FROM pos WHERE storeID = 3 AND itemID = 1;
    DELETE FROM pos WHERE storeID = 2;
    UPDATE pos SET qty = 5, date = '1996-06-04' WHERE storeID = 4;
    INSERT INTO pos VALUES (2, 1, '1996-06-05', 6, 1.5), (1, 2, '1996-05-31', 1, 2.5);
"""


def test_figure_1_the_four_views_are_created_and_equal_recomputation(spark: SparkSession, tmp_path: Path) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "retail.db", isolation_level=None)) as database,
        Warehouse.open(tmp_path / "lake", spark=spark) as warehouse,
    ):
        database.execute("PRAGMA journal_mode = WAL")
        database.executescript(TABLES)
        hierarchies = {"stores": ["storeID", "city", "region"]}
        url = f"sqlite:///{tmp_path / 'retail.db'}"
        warehouse.add_source("retail", url, hierarchies=hierarchies, install=True)
        views = {
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {sql}"): sql for name, sql in FIGURE_1.items()
        }
        for name, sql in views.items():
            assert read(warehouse, name) == recomputed(database, sql), name
        database.executescript(f"BEGIN; {CHANGES} COMMIT")
        warehouse.catch_up()
        for name, sql in views.items():
            assert read(warehouse, name) == recomputed(database, sql), f"{name}, maintained"
            assert len(warehouse.states(name)) == 2


def read(warehouse: Warehouse, name: str) -> Counter[tuple[Any, ...]]:
    return Counter(plain(row) for row in warehouse.read(name).collect())


def recomputed(database: sqlite3.Connection, sql: str) -> Counter[tuple[Any, ...]]:
    return Counter(plain(row) for row in database.execute(sql.replace("retail.", "")))


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Days as text: SQLite has no others."""
    return tuple(value if value is None or isinstance(value, int) else str(value) for value in row)
