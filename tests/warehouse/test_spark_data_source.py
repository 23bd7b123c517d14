"""`spark.read` and `spark.readStream` of the format `viewkeeper`, which Spark finds by itself, beside `Warehouse.read`.

load(v) = Warehouse.read(v)         Σ of what a stream has delivered up to state s = V(s)
"""

from collections import Counter
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from retail_shop import BOTH, HIERARCHIES, STORES, RetailShop, random_rows

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.errors import UsageError
from viewkeeper.messages import position
from viewkeeper.warehouse.arrow_reading.changed_rows import changes_of, read_changed
from viewkeeper.warehouse.data_source.options import LATEST, Asked, read_options
from viewkeeper.warehouse.data_source.source import ViewkeeperDataSource
from viewkeeper.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = tuple[Any, ...]


def comparable(row: Any) -> Row:
    return tuple("NaN" if isinstance(value, float) and isnan(value) else value for value in row)


def bag(frame: "DataFrame") -> Counter[Row]:
    return Counter(map(comparable, frame.collect()))


def load(warehouse: Warehouse, view: str, **options: Any) -> "DataFrame":
    reader = warehouse.spark.read.format("viewkeeper").option("warehouse", str(warehouse.path))
    return reader.options(**options).load(view)


# --- every kind of view ---

KINDS = {
    "joined": f"SELECT p.id, s.city, i.name, p.price, p.date FROM {BOTH}",
    "averages": "SELECT region, COUNT(*) AS n, AVG(price) AS price, AVG(qty) AS qty, AVG(weight) AS weight, "
    f"SUM(weight) AS total, SUM(price) + 1 AS more FROM {STORES} GROUP BY region HAVING COUNT(*) > 1",
    "spread": "SELECT storeID, VAR_SAMP(qty) AS a, STDDEV_POP(price) AS b, VAR_POP(weight) AS c, MIN(date) AS first, "
    "COUNT(DISTINCT qty) AS sizes FROM retail.pos GROUP BY storeID",
    "cube": "SELECT region, category, GROUPING_ID() AS id, SUM(qty) AS qty, AVG(price) AS price "
    f"FROM {BOTH} GROUP BY CUBE (region, category)",
    "outer_joined": "SELECT p.id, s.city FROM retail.pos p LEFT JOIN retail.stores s ON p.storeID = s.storeID",
}
STORED_AS = ("matview", "viewcache", "partial-join")
KEPT = f"SELECT p.id, p.qty + 1 AS more, s.city, s.region FROM {STORES} WHERE p.qty > 0"


@pytest.fixture(scope="module")
def retail(place: Path, spark: "SparkSession") -> Iterator[Warehouse]:
    """A view of each kind, with a few states."""
    shop = RetailShop(place / "retail.db", random_rows(3))
    with Warehouse.open(place / "retail", spark, compaction=None) as warehouse:
        warehouse.add_source("retail", shop.url, install=True, hierarchies=HIERARCHIES)
        for name, select in KINDS.items():
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {select}")
        for storage in STORED_AS:
            name = storage.replace("-", "_")
            told = f"TBLPROPERTIES ('storage' = '{storage}')"
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} {told} AS {KEPT}")
        for script in (
            "DELETE FROM pos WHERE id < 10; UPDATE stores SET region = 'north' WHERE storeID = 2",
            "UPDATE pos SET price = '99.99' WHERE id = 20; INSERT INTO pos VALUES (999, 1, 1, NULL, 3, '0.33', 0.1)",
        ):
            shop.write(script)
            warehouse.catch_up()
        yield warehouse


def test_arrow_reads_every_state_of_every_kind_as_spark_does(retail: Warehouse) -> None:
    assert set(retail.views) > {*KINDS, "cube_region", "cube_total", "partial_join"}
    for view in retail.views:
        for state in (one.state for one in retail.states(view)):
            frame = retail.read(view, state)
            table = retail.arrow(view, state)
            assert Counter(comparable(row.values()) for row in table.to_pylist()) == bag(frame), (view, state)
            assert table.schema.names == frame.columns
            assert table.schema.types == frame.limit(0).toArrow().schema.types, view


def test_arrow_finds_every_change_of_every_kind_that_spark_does(retail: Warehouse) -> None:
    for view in retail.views:
        first, *_, last = (one.state for one in retail.states(view))
        table = read_changed(retail._files.store, changes_of(retail._latest(), view, first, last)).table
        frame = retail.changes(view, first, last)
        found = Counter(comparable(row.values()) for row in table.select(frame.columns).to_pylist())
        assert found == bag(frame), view
        assert found


@pytest.mark.parametrize("view", ["joined", "averages", "cube", "viewcache"])
def test_spark_reads_by_the_format_what_the_warehouse_reads(retail: Warehouse, view: str) -> None:
    frame = load(retail, view)
    assert frame.schema == retail.read(view).schema
    assert bag(frame) == bag(retail.read(view))
    first = retail.states(view)[0].state
    assert bag(load(retail, view, state=first)) == bag(retail.read(view, first)) != bag(frame)


def test_changes_by_the_format(retail: Warehouse) -> None:
    for view in ("averages", "viewcache"):
        first, *_, last = (one.state for one in retail.states(view))
        frame = load(retail, view, changes="true", startingState=first + 1, endingState=last)
        assert bag(frame) == bag(retail.changes(view, first, last))
        assert frame.columns == retail.changes(view, first, last).columns


def test_what_is_not_there_is_named_to_the_user(retail: Warehouse, tmp_path: Path) -> None:
    read = retail.spark.read.format("viewkeeper")
    for reader, view, told in (
        (read.option("warehouse", str(retail.path)), "sales", "the warehouse has no view 'sales'"),
        (read.option("warehouse", str(tmp_path)), "joined", "is not a warehouse"),
        (read.option("warehouse", str(retail.path)).option("state", 99), "joined", "there is no state 99 of joined"),
    ):
        with pytest.raises(PySparkException, match=told):
            reader.load(view).collect()


# --- one commit, several files, executors ---

COLUMNS = {"id": "BIGINT", "name": "STRING"}


def delta(*rows: Row, minus: tuple[Row, ...] = ()) -> MemoryZSet:
    return MemoryZSet(tuple(COLUMNS), [(row, 1) for row in rows] + [(row, -1) for row in minus])


def change(warehouse: Warehouse, number: int, signed: MemoryZSet) -> None:
    with warehouse.commit() as commit:
        commit.state("main", {"s": position(number)}, {"v": signed, "w": signed})


@pytest.fixture
def lake(tmp_path: Path, spark: "SparkSession") -> Iterator[Warehouse]:
    """A view of each layout, written by several tasks."""
    with Warehouse.open(tmp_path / "lake", spark, compaction=None) as warehouse:
        rows = [(number % 40, f"n{number % 3}") for number in range(100)]
        frame = spark.createDataFrame(rows, "id BIGINT, name STRING").repartition(3)
        with warehouse.commit() as commit:
            commit.create("v", COLUMNS, rows=frame, vector={"s": position(0)})
            commit.create("w", COLUMNS, rows=frame, layout="rewritten")
        yield warehouse


@pytest.mark.cluster
def test_tasks_read_the_files_wherever_they_run(lake: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    change(lake, 1, delta((7, "new"), (7, "new"), minus=((0, "n0"), (0, "n0"), (39, "n0"))))
    for view in ("v", "w"):
        assert bag(load(lake, view)) == bag(lake.read(view)) != bag(lake.read(view, 0))
        assert bag(load(lake, view, state=0)) == bag(lake.read(view, 0))
        assert bag(load(lake, view, changes="true", startingState=1)) == bag(lake.changes(view, 0))


def test_a_load_reads_one_commit_whatever_happens_after_it(lake: Warehouse) -> None:
    frame, before = load(lake, "v"), bag(lake.read("v"))
    change(lake, 1, delta((100, "later"), minus=((1, "n1"),)))
    lake.compact()
    assert bag(frame) == before
    assert frame.count() == before.total()
    assert bag(load(lake, "v")) == bag(lake.read("v")) != before
    lake.vacuum(0, grace=0)
    with pytest.raises(PySparkException, match="vacuumed meanwhile"):
        frame.select("id").collect()


def test_the_columns_of_a_schema_are_read_alone(lake: Warehouse) -> None:
    reader = lake.spark.read.format("viewkeeper").option("warehouse", str(lake.path))
    narrow = reader.schema("name STRING").load("w")
    assert bag(narrow) == bag(lake.read("w").select("name"))
    with pytest.raises(PySparkException, match="asks for id as string, and w has no such column"):
        reader.schema("id STRING").load("w").collect()


def test_it_may_be_registered_too(lake: Warehouse) -> None:
    lake.spark.dataSource.register(ViewkeeperDataSource)
    assert load(lake, "w", changes="true", startingState=0).count() == lake.read("w", weights=True).count()


# --- streams ---


class Delivered:
    """A stream into Parquet files, run until it has what is there."""

    def __init__(self, warehouse: Warehouse, folder: Path, view: str = "v", **options: Any) -> None:
        self._spark, self._folder = warehouse.spark, folder
        reader = warehouse.spark.readStream.format("viewkeeper").option("warehouse", str(warehouse.path))
        self._stream = reader.options(**options).load(view)

    def run(self) -> int:
        """The number of batches that it took."""
        writing = self._stream.writeStream.format("parquet").option("path", str(self._folder / "rows"))
        writing = writing.option("checkpointLocation", str(self._folder / "checkpoint"))
        query = writing.trigger(availableNow=True).start()
        query.awaitTermination()
        return len(query.recentProgress)

    def rows(self) -> list[Row]:
        return [tuple(row) for row in self._spark.read.parquet(str(self._folder / "rows")).collect()]

    def up_to(self, state: int) -> Counter[Row]:
        total: Counter[Row] = Counter()
        for *row, weight, at in self.rows():
            if at <= state:
                total[tuple(row)] += weight
        return Counter({row: weight for row, weight in total.items() if weight})


@pytest.mark.cluster
def test_a_stream_has_first_the_rows_then_the_changes_and_goes_on_after_a_restart(
    lake: Warehouse, tmp_path: Path
) -> None:
    contents = [bag(lake.read("v"))]
    options = {"changes": "true", "maxStatesPerTrigger": 2}
    assert Delivered(lake, tmp_path / "out", **options).run() == 1
    for number in range(1, 6):
        change(lake, number, delta((number, "new"), (number, "new"), minus=((number, f"n{number % 3}"),)))
        contents.append(bag(lake.read("v")))
    lake.compact()
    stream = Delivered(lake, tmp_path / "out", **options)
    assert stream.run() == 3, "five states, two at a time"
    assert [stream.up_to(state) for state in range(6)] == contents
    before = stream.rows()
    stream.run()
    assert sorted(stream.rows()) == sorted(before), "what was delivered is not delivered again"


def test_a_stream_may_begin_later_or_at_the_very_first_state(lake: Warehouse, tmp_path: Path) -> None:
    for number in (1, 2):
        change(lake, number, delta((number, "new")))
    later = Delivered(lake, tmp_path / "later", changes="true", startingState=2)
    later.run()
    assert later.rows() == [(2, "new", 1, 2)]
    first = Delivered(lake, tmp_path / "first", "w", changes="true", startingState=0)
    first.run()
    assert [first.up_to(state) for state in range(3)] == [bag(lake.read("w", state)) for state in range(3)]
    latest = Delivered(lake, tmp_path / "latest", changes="true", startingState="latest")
    latest.run()
    change(lake, 3, delta((3, "new")))
    latest.run()
    assert latest.rows() == [(3, "new", 1, 3)]


def test_a_stream_without_signs_can_only_grow(lake: Warehouse, tmp_path: Path) -> None:
    stream = Delivered(lake, tmp_path / "plain")
    stream.run()
    change(lake, 1, delta((100, "new"), (100, "new")))
    stream.run()
    assert Counter(stream.rows()) == bag(lake.read("v"))
    change(lake, 2, delta(minus=((100, "new"),)))
    with pytest.raises(PySparkException, match="state 2 of v deletes or updates a row"):
        stream.run()


def test_a_stream_of_a_view_that_was_made_anew_is_refused(lake: Warehouse, tmp_path: Path) -> None:
    stream = Delivered(lake, tmp_path / "out", changes="true")
    stream.run()
    with lake.commit() as commit:
        commit.drop("v")
    with lake.commit() as commit:
        commit.create("v", COLUMNS, rows=delta((1, "other")), vector={"s": position(1)})
    with pytest.raises(PySparkException, match="was dropped and created again"):
        stream.run()


# --- options ---


def test_options_may_be_written_in_any_case() -> None:
    told = {"Warehouse": "lake", "path": "v", "CHANGES": "True", "startingstate": "Latest", "maxStatesPerTrigger": "7"}
    assert read_options(told) == Asked("lake", "v", changes=True, starting_state=LATEST, most_states=7)


def test_the_environment_names_a_warehouse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIEWKEEPER_WAREHOUSE", "lake")
    assert read_options({"view": "v"}) == Asked("lake", "v")
    assert read_options({"view": "v", "warehouse": "other"}).warehouse == "other"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"path": "v"}, "no warehouse is named"),
        ({"warehouse": "lake"}, "no view is named"),
        ({"warehouse": "lake", "path": "v", "view": "w"}, "two views are named"),
        ({"warehouse": "lake", "path": "v", "version": "3"}, "no option 'version'"),
        ({"warehouse": "lake", "path": "v", "state": "last"}, "state is 'last'"),
        ({"warehouse": "lake", "path": "v", "startingState": "-1"}, "startingState is '-1'"),
        ({"warehouse": "lake", "path": "v", "changes": "yes"}, "changes is 'yes'"),
        ({"warehouse": "lake", "path": "v", "state": "1", "changes": "true"}, "'state' asks for the rows of one state"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    options: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VIEWKEEPER_WAREHOUSE", raising=False)
    with pytest.raises(UsageError, match=told) as error:
        read_options(options)
    assert error.value.hint
