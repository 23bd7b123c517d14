"""What runs on one Spark process runs on several: the driver and the executors share nothing but the files.

Part of the ordinary run on the suite's session; `make test` runs it again on two worker processes.
"""

import os
import subprocess
import sys
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from standalone_cluster import standalone_cluster

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.spark import SparkZSet
from viewkeeper.lake import compaction
from viewkeeper.messages import position
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.cluster

COLUMNS = {"id": "BIGINT", "price": "DECIMAL(10, 2)"}
NAMES = tuple(COLUMNS)
ROWS = [((number % 40, Decimal(number % 3)), 1) for number in range(100)]


def bag(frame) -> Counter:
    return Counter(tuple(row) for row in frame.collect())


def elements(weights) -> Counter:
    total = Counter()
    for row, weight in weights:
        total[row] += weight
    return +total


@pytest.fixture
def lake(tmp_path, spark):
    with Warehouse.open(tmp_path / "lake", spark, compaction=None) as warehouse:
        rows = spark.createDataFrame([row for row, _ in ROWS], "id BIGINT, price DECIMAL(10, 2)").repartition(4)
        with warehouse.commit() as commit:
            commit.create("v", COLUMNS, rows=rows, vector={"s": position(0)})
            commit.create("w", COLUMNS, rows=rows, layout="rewritten")
        yield warehouse


def change(warehouse, number, delta):
    with warehouse.commit() as commit:
        commit.state("main", {"s": position(number)}, {"v": delta, "w": delta})


DELTA = MemoryZSet(NAMES, [((0, Decimal(0)), -1), ((7, Decimal("0.50")), 2)])
AFTER = elements([*ROWS, *DELTA.weights()])


def test_a_bulk_load_is_written_by_executors(lake):
    assert bag(lake.read("v")) == bag(lake.read("w")) == elements(ROWS)


def test_rows_are_counted(lake):
    counted = {tuple(row[:2]): row[2] for row in lake.read("v", weights=True).collect()}
    assert counted == dict(elements(ROWS))


def test_a_delta_of_the_driver_is_read_by_executors(lake):
    change(lake, 1, DELTA)
    assert bag(lake.read("v")) == bag(lake.read("w")) == AFTER


def test_a_delta_of_spark(lake, spark):
    signed = SparkZSet.of_rows(spark, NAMES, DELTA.weights(), types=tuple(COLUMNS.values()))
    change(lake, 1, signed)
    assert bag(lake.read("v")) == bag(lake.read("w")) == AFTER


def test_earlier_states(lake):
    change(lake, 1, DELTA)
    change(lake, 2, -DELTA)
    assert bag(lake.read("v", 1)) == bag(lake.read("w", 1)) == AFTER
    assert bag(lake.read("v", 2)) == bag(lake.read("w", 2)) == elements(ROWS)


def test_changes_between_states(lake):
    change(lake, 1, DELTA)
    for view in ("v", "w"):
        changes = {tuple(row[:2]): (row[2], row[3]) for row in lake.changes(view, 0).collect()}
        assert changes == {row: (weight, 1) for row, weight in DELTA.weights()}


def test_compaction(lake, monkeypatch):
    monkeypatch.setattr(compaction, "MOST_ROWS", 0)
    change(lake, 1, DELTA)
    assert lake.compact() == ["v"]
    assert bag(lake.read("v")) == AFTER
    assert bag(lake.read("v", 0)) == elements(ROWS)


def test_a_pinned_snapshot_survives_vacuum(lake):
    with lake.snapshot() as snapshot:
        change(lake, 1, DELTA)
        lake.compact()
        lake.vacuum(0, grace=0)
        assert bag(snapshot.read("v")) == elements(ROWS)
    assert bag(lake.read("v")) == AFTER


def test_queries_over_several_views(lake):
    change(lake, 1, DELTA)
    joined = lake.sql("SELECT COUNT(*) FROM v JOIN w ON v.id = w.id AND v.price = w.price").collect()
    assert joined[0][0] == sum(count * count for count in AFTER.values())


def test_linear_queries(lake):
    change(lake, 1, DELTA)
    (total,) = lake.sql("SELECT COUNT(*), SUM(price) FROM v").collect()
    assert tuple(total) == (AFTER.total(), sum(row[1] * count for row, count in AFTER.items()))


def test_a_published_copy(lake, tmp_path, spark):
    change(lake, 1, DELTA)
    copy = lake.publish("v", tmp_path / "copy")
    assert bag(spark.read.parquet(*(str(path) for path in copy.rglob("rows-*/*.parquet")))) == AFTER


def test_rows_staged_by_the_driver(lake):
    table = pa.table({"id": [1, 1, None], "price": pa.array([Decimal(1), Decimal(1), None], pa.decimal128(10, 2))})
    with lake.commit() as commit:
        commit.create("staged", COLUMNS, rows=table)
    assert bag(lake.read("staged")) == Counter({(1, Decimal(1)): 2, (None, None): 1})


@pytest.mark.soak
@pytest.mark.skipif("VIEWKEEPER_TEST_MASTER" in os.environ, reason="this very run is the one on several processes")
def test_a_standalone_master_with_two_workers():
    with standalone_cluster(workers=2) as master:
        inner = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::test_compaction"],
            env={**os.environ, "VIEWKEEPER_TEST_MASTER": master},
            capture_output=True,
            text=True,
            check=False,
        )
    assert inner.returncode == 0, inner.stdout + inner.stderr
    assert "1 passed" in inner.stdout
