"""Folders and views with odd names: they work in everything that reads and writes, Spark and deltalake included."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from lakes import ORDER_TYPES, orders

from viewkeeper.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("folder", ["[a] {b,c} ü日#*?", "'x' \"y\" 10:30 a=b &+~;,"])
def test_a_warehouse_in_a_folder_with_an_odd_name(tmp_path: Path, spark: "SparkSession", folder: str) -> None:
    root = tmp_path / folder / "lake"
    # A neighbour that a pattern would match.
    (tmp_path / "a b ü日#xy" / "lake" / "views").mkdir(parents=True)
    numbers = spark.range(10, numPartitions=2).selectExpr("id", "CAST(id AS STRING) AS item")
    change = orders((100, "x"), minus=((1, "1"),))
    with Warehouse.open(root, spark, compaction=None) as wh:
        with wh.commit() as commit:
            commit.create("large", rows=numbers, distinct=True)
            commit.create("small", rows=numbers, layout="rewritten")
            commit.create("staged", ORDER_TYPES, rows=pa.table({"id": [1], "item": ["1"]}))
        for state in (1, 2):
            with wh.commit() as commit:
                assert commit.state("main", {}, {"large": change, "small": change} if state == 1 else {}) == state
        wanted = {(number, str(number)) for number in range(10) if number != 1} | {(100, "x")}
        assert {tuple(row) for row in wh.read("large").collect()} == wanted
        assert wh.sql("SELECT COUNT(*) FROM large JOIN small USING (id) LEFT JOIN staged USING (id)").first() == (10,)
        assert wh.compact() == ["large"]
        assert wh.read("large").count() == 10
        assert wh.changes("small", 0).count() == wh.changes("large", 0).count() == 2
        assert wh.vacuum(0, grace=0).files
        assert wh.publish("large", tmp_path / folder / "copy") == tmp_path / folder / "copy"
    with Warehouse.open(root, spark, read_only=True) as reader:
        assert {tuple(row) for row in reader.read("small").collect()} == wanted
    for table in (root / "views" / "small", tmp_path / folder / "copy"):
        assert sum(pa.table(DeltaTable(str(table)).get_add_actions())["num_records"].to_pylist()) == 10


NAMES = [
    "big orders",
    "big_orders",
    "größe",
    "Größe!",
    "日本",
    "a/b",
    "../up",
    "..",
    "CON",
    "a'b\"c",
    "x" * 300,
    "x" * 301,
    "%41",
    "`",
]


def test_views_with_odd_names_have_folders_of_their_own(tmp_path: Path, spark: "SparkSession") -> None:
    root = tmp_path / "lake"
    with Warehouse.open(root, spark, compaction=None) as wh:
        with wh.commit() as commit:
            for number, name in enumerate(NAMES):
                commit.create(name, ORDER_TYPES, rows=orders((number, name)))
        with wh.commit() as commit:
            commit.state("main", {}, {name: orders((number, "more")) for number, name in enumerate(NAMES)})
        folders = {Path(view.folder) for view in wh.status().views}
        assert len(folders) == len(NAMES)
        assert {folder.parent for folder in folders} == {root / "views"}
        assert {path.name for path in tmp_path.iterdir()} == {"lake"}
        for number, name in enumerate(NAMES[:4]):
            assert {tuple(row) for row in wh.read(name).collect()} == {(number, name), (number, "more")}
            written = "`" + name.replace("`", "``") + "`"
            assert wh.sql(f"SELECT COUNT(*) FROM {written} WHERE {written}.id = {number}").first() == (2,)
        assert wh.sql("SELECT COUNT(*) FROM ````").first() == (2,)
