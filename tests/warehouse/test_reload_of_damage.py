"""A view whose files are gone, or are not what was written, is written again by a reload."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from viewkeeper.errors import DamagedWarehouse
from viewkeeper.warehouse import Warehouse

JOIN = "CREATE MATERIALIZED VIEW v AS SELECT id, amount FROM shop.orders"
SUMMARY = "CREATE MATERIALIZED VIEW v AS SELECT amount, COUNT(*) AS n FROM shop.orders GROUP BY amount"


@pytest.mark.parametrize("sql", [JOIN, SUMMARY])
def test_a_view_with_a_missing_file_is_reloaded(tmp_path: Path, spark: SparkSession, sql: str) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop, shop:
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER)")
        shop.executemany("INSERT INTO orders VALUES (?, ?)", [(number, number % 7) for number in range(50)])
    with Warehouse.open(tmp_path / "lake", spark) as warehouse:
        warehouse.add_source("shop", f"sqlite:///{tmp_path / 'shop.db'}", install=True)
        warehouse.create_view(sql)
        files = [file for file in (tmp_path / "lake").rglob("*.parquet") if "_viewkeeper" not in file.parts]
        assert files
        for file in files:
            file.unlink()
        with pytest.raises(DamagedWarehouse):
            warehouse.read("v").collect()
        warehouse.reload("v")
        assert warehouse.audit("v").clean
        assert warehouse.read("v").count() in (50, 7)
