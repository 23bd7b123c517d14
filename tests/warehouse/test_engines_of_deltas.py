"""A delta is written where it is: one on the driver without Spark, one in Spark without the driver."""

from collections import Counter

import pytest
from pyspark.sql import functions as F

from viewkeeper.algebra.adaptive import Engines
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.errors import BadDelta, DamagedWarehouse
from viewkeeper.lake import compaction
from viewkeeper.lake.compaction_policy import CompactionPolicy
from viewkeeper.lake.tables import loads as loading
from viewkeeper.messages import position
from viewkeeper.warehouse import Warehouse

COLUMNS = {"id": "INT", "name": "STRING"}
NAMES = tuple(COLUMNS)


def no_spark():
    raise AssertionError("Spark was requested")


def jobs(spark):
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))


@pytest.mark.parametrize("layout", ["appended", "rewritten"])
def test_commits_of_small_deltas_start_no_spark_job(tmp_path, spark, layout):
    engines = Engines(no_spark)
    with Warehouse.open(tmp_path / "lake", spark) as warehouse:
        before = jobs(spark)
        with warehouse.commit() as commit:
            commit.create("v", COLUMNS, rows=engines.zset(NAMES, [((0, "zero"), 1)]), layout=layout)
        # Enough of them for their files to be merged on the way.
        for number in range(1, 101):
            delta = engines.zset(NAMES, [((number * 100 + k, "row"), 1) for k in range(100)])
            with warehouse.commit() as commit:
                commit.state("main", {"s": position(number)}, {"v": delta})
        assert jobs(spark) == before
        assert warehouse.status().views[0].files < 100
        assert warehouse.read("v").count() == 10_001


def test_a_small_view_is_compacted_without_spark(tmp_path):
    """The deltas outgrow the base, again and again."""
    policy = CompactionPolicy(share=0.2, least_rows=1_000)
    with Warehouse.open(tmp_path / "lake", no_spark, compaction=policy) as warehouse:
        with warehouse.commit() as commit:
            commit.create("v", COLUMNS, rows=MemoryZSet(NAMES, [((number, "row"), 2) for number in range(1_000)]))
        for number in range(1, 11):
            gone = range(number * 50, number * 50 + 50)
            rows = [((one, "row"), -2) for one in gone] + [((one, None), 1) for one in gone]
            with warehouse.commit() as commit:
                commit.state("main", {"s": position(number)}, {"v": MemoryZSet(NAMES, rows)})
            warehouse._housekeeper._finish()
        table = warehouse.snapshot().record.tables["v"]
        assert table.base > 0, "it has a new base"
        assert table.pending.rows <= 0.2 * 2_000 + 100
        shown = Counter(tuple(row.values()) for row in warehouse.arrow("v").to_pylist())
        changed = set(range(50, 550))
        assert shown == Counter(
            {(n, None) if n in changed else (n, "row"): 1 + (n not in changed) for n in range(1000)}
        )


def test_a_row_that_was_deleted_too_often_is_found_without_spark(tmp_path):
    with Warehouse.open(tmp_path / "lake", no_spark, compaction=None) as warehouse:
        with warehouse.commit() as commit:
            commit.create("v", COLUMNS, rows=MemoryZSet.of(NAMES, (1, "a")))
        with warehouse.commit() as commit:
            commit.state("main", {}, {"v": MemoryZSet(NAMES, [((2, "b"), -1)])})
        with pytest.raises(DamagedWarehouse, match="deleted more often than inserted"):
            warehouse.compact("v")


@pytest.mark.parametrize("layout", ["appended", "rewritten"])
def test_a_large_delta_stays_in_spark(tmp_path, spark, layout):
    engines = Engines(lambda: spark, most_rows=10)
    with Warehouse.open(tmp_path / "lake", spark) as warehouse:
        with warehouse.commit() as commit:
            commit.create("v", COLUMNS, rows=MemoryZSet.of(NAMES, (0, "zero")), layout=layout)
        large = engines.zset(NAMES, [((number, "row"), 1) for number in range(100)])
        assert not large.in_memory
        with warehouse.commit() as commit:
            commit.state("main", {"s": position(1)}, {"v": large - engines.zset(NAMES, [((0, "zero"), 1)])})
        assert warehouse.states("v")[-1].rows == 100
        shown = Counter(tuple(row) for row in warehouse.read("v").collect())
        assert shown == Counter({(number, "row"): 1 for number in range(100)})


def test_a_load_that_is_not_distinct_after_all_is_refused(tmp_path, spark):
    twice = spark.createDataFrame([(1, "a"), (1, "a")], "id INT, name STRING")
    with Warehouse.open(tmp_path / "lake", spark) as warehouse:
        with pytest.raises(BadDelta, match="has a row twice"), warehouse.commit() as commit:
            commit.create("v", COLUMNS, rows=twice, distinct=True)
        assert warehouse.views == ()
        with warehouse.commit() as commit:
            commit.create("v", COLUMNS, rows=twice)
        assert warehouse.read("v").count() == 2


def test_rows_with_equal_hashes_are_told_apart(tmp_path, spark, monkeypatch):
    """With a hash that is the same for every row, rows are found by their columns."""
    monkeypatch.setattr(loading, "row_hash", lambda view: F.lit(7).cast("bigint"))
    rows = spark.createDataFrame([(1, "a"), (2, "a"), (2, None)], "id INT, name STRING")
    with Warehouse.open(tmp_path / "lake", spark) as warehouse:
        with warehouse.commit() as commit:
            commit.create("v", COLUMNS, rows=rows)
        assert not warehouse.snapshot().record.tables["v"].hashed
        with warehouse.commit() as commit:
            commit.state("main", {}, {"v": MemoryZSet(NAMES, [((2, None), -1)])})
        assert {tuple(row) for row in warehouse.read("v").collect()} == {(1, "a"), (2, "a")}
        monkeypatch.setattr(compaction, "MOST_ROWS", 0)
        warehouse.compact()
        assert warehouse.snapshot().record.tables["v"].hashed
        with warehouse.commit() as commit:
            commit.state("main", {}, {"v": MemoryZSet(NAMES, [((2, "a"), -1)])})
        assert [tuple(row) for row in warehouse.read("v").collect()] == [(1, "a")]
        assert [tuple(row) for row in warehouse.read("v", weights=True).collect()] == [(1, "a", 1)]
