"""Timestamps that Spark writes are the same to every reader, in any year."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from viewkeeper import Warehouse
from viewkeeper.algebra.memory import MemoryZSet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

YEARS = (1500, 2024, 9999)
AS_NANOSECONDS = {"spark.sql.parquet.outputTimestampType": "INT96"}


def moment(year: int) -> datetime:
    return datetime(year, 12, 31, 23, 59, 59, 999999, UTC)


@pytest.mark.parametrize("layout", ["appended", "rewritten"])
def test_years_beyond_nanoseconds(spark: "SparkSession", tmp_path: Path, layout: str) -> None:
    rows = " UNION ALL ".join(f"SELECT TIMESTAMP '{moment(year):%Y-%m-%d %H:%M:%S.%f}' AS at" for year in YEARS)
    before = {name: spark.conf.get(name) for name in AS_NANOSECONDS}
    try:
        for name, value in AS_NANOSECONDS.items():
            spark.conf.set(name, value)
        with Warehouse.open(tmp_path / "lake", spark) as warehouse:
            with warehouse.commit() as commit:
                commit.create("v", rows=spark.sql(rows), layout=layout)
            with warehouse.commit() as commit:
                commit.state("main", {"s": "1"}, {"v": MemoryZSet.of(("at",), (moment(2025),))})
            warehouse.compact()
            texts = warehouse.read("v").selectExpr("CAST(at AS STRING) AS at").collect()
        assert {name: spark.conf.get(name) for name in AS_NANOSECONDS} == AS_NANOSECONDS, "a session is left as it was"
    finally:
        for name, old in before.items():
            spark.conf.set(name, str(old))
    expected = sorted([*map(moment, YEARS), moment(2025)])
    assert sorted(row.at for row in texts) == [f"{at:%Y-%m-%d %H:%M:%S.%f}" for at in expected]
    assert sorted(pl.read_delta(tmp_path / "lake" / "views" / "v")["at"].to_list()) == expected
