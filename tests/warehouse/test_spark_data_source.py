"""`spark.read` and `spark.readStream` of the format `viewkeeper`, which Spark finds by itself, beside `Warehouse.read`.

load(v) = Warehouse.read(v)         Σ of what a stream has delivered up to state s = V(s)
"""

import json
import pickle
import shutil
from collections import Counter
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.cloudpickle import dumps
from pyspark.errors import PySparkException
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles
from pyspark.sql.types import LongType, StringType, StructField, StructType
from retail_shop import BOTH, HIERARCHIES, STORES, RetailShop, random_rows

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.errors import StateGone, UsageError
from viewkeeper.lake.views.arrow_changes import changes_of, read_changed
from viewkeeper.messages import position
from viewkeeper.serving.data_source.options import LATEST, Asked, read_options
from viewkeeper.serving.data_source.source import ViewkeeperDataSource
from viewkeeper.serving.data_source.stream import ViewStreamReader
from viewkeeper.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = tuple[Any, ...]

READ_ONE = ReadMaxFiles(1)
"""what Spark passes on if there is a limit: the stream's own is meant"""


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
STORED_AS = ("viewcache", "partial-join")
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
            "DELETE FROM pos WHERE id < 10; UPDATE stores SET region = 'north' WHERE city = 'Bern'",
            "UPDATE pos SET price = '99.99' WHERE id = 20; INSERT INTO pos VALUES (999, 1, 1, NULL, 3, '0.33', 0.1)",
        ):
            shop.write(script)
            warehouse.catch_up()
        yield warehouse


@pytest.mark.parametrize("view", [*KINDS, *(storage.replace("-", "_") for storage in STORED_AS)])
def test_arrow_reads_every_kind_as_spark_does(retail: Warehouse, view: str) -> None:
    first, *_, last = (one.state for one in retail.states(view))
    frame, table = retail.read(view), retail.arrow(view)
    assert Counter(comparable(row.values()) for row in table.to_pylist()) == bag(frame)
    assert table.schema.names == frame.columns
    assert table.schema.types == to_arrow_schema(frame.schema, timezone="UTC").types
    changed = read_changed(retail._files.store, changes_of(retail._latest(), view, first, last)).table
    frame = retail.changes(view, first, last)
    found = Counter(comparable(row.values()) for row in changed.select(frame.columns).to_pylist())
    assert found == bag(frame)
    assert found


@pytest.mark.parametrize("view", ["joined", "averages", "cube", "viewcache"])
def test_spark_reads_by_the_format_what_the_warehouse_reads(retail: Warehouse, view: str) -> None:
    frame = load(retail, view)
    assert [(one.name, one.dataType) for one in frame.schema] == [
        (one.name, one.dataType) for one in retail.read(view).schema
    ]
    assert bag(frame) == bag(retail.read(view))


def test_earlier_states_and_changes_by_the_format(retail: Warehouse) -> None:
    first, *_, last = (one.state for one in retail.states("averages"))
    assert bag(load(retail, "averages", state=first)) == bag(retail.read("averages", first))
    frame = load(retail, "averages", changes="true", startingState=first + 1, endingState=last)
    assert bag(frame) == bag(retail.changes("averages", first, last))
    assert frame.columns == retail.changes("averages", first, last).columns


def test_what_is_not_there_is_named_to_the_user(retail: Warehouse, tmp_path: Path) -> None:
    for folder, options, view, told in (
        (retail.path, {}, "sales", "the warehouse has no view 'sales'"),
        (tmp_path, {}, "joined", "is not a warehouse"),
        (retail.path, {"state": 99}, "joined", "there is no state 99 of joined"),
    ):
        reader = retail.spark.read.format("viewkeeper").option("warehouse", str(folder)).options(**options)
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
        rows = [(number % 40, f"n{number % 3}") for number in range(240)]
        frame = spark.createDataFrame(rows, "id BIGINT, name STRING").repartition(3)
        with warehouse.commit() as commit:
            commit.create("v", COLUMNS, rows=frame, vector={"s": position(0)})
            commit.create("w", COLUMNS, rows=frame, layout="rewritten")
        yield warehouse


@pytest.mark.cluster
def test_tasks_read_the_files_wherever_they_run(lake: Warehouse) -> None:
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


def test_it_may_be_registered_too_and_the_columns_of_a_schema_are_read_alone(lake: Warehouse) -> None:
    lake.spark.dataSource.register(ViewkeeperDataSource)
    reader = lake.spark.read.format("viewkeeper").option("warehouse", str(lake.path))
    narrow = reader.schema("name STRING").load("w")
    assert bag(narrow) == bag(lake.read("w").select("name"))
    with pytest.raises(PySparkException, match="asks for id as string, and w has no such column"):
        reader.schema("id STRING").load("w").collect()


# --- streams ---


class Delivered:
    """A stream into Parquet files, run until it has what is there."""

    def __init__(self, warehouse: Warehouse, folder: Path, view: str = "v", **options: Any) -> None:
        self._spark, self._folder = warehouse.spark, folder
        reader = warehouse.spark.readStream.format("viewkeeper").option("warehouse", str(warehouse.path))
        self._stream = reader.options(**options).load(view)

    def run(self) -> None:
        writing = self._stream.writeStream.format("parquet").option("path", str(self._folder / "rows"))
        writing = writing.option("checkpointLocation", str(self._folder / "checkpoint"))
        writing.trigger(availableNow=True).start().awaitTermination()

    def batches(self) -> list[int]:
        """The state that each batch ended with."""
        offsets = [path for path in (self._folder / "checkpoint" / "offsets").iterdir() if path.name.isdecimal()]
        told = [path.read_text().splitlines()[2] for path in sorted(offsets, key=lambda path: int(path.name))]
        return [json.loads(offset)["state"] for offset in told]

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
    Delivered(lake, tmp_path / "out", **options).run()
    for number in range(1, 4):
        change(lake, number, delta((number, "new"), (number, "new"), minus=((number, f"n{number % 3}"),)))
        contents.append(bag(lake.read("v")))
    lake.compact()
    stream = Delivered(lake, tmp_path / "out", **options)
    stream.run()
    assert stream.batches() == [0, 2, 3]
    assert [stream.up_to(state) for state in range(4)] == contents


# --- the readers, as Spark's workers call them; no Spark is needed for that ---

SCHEMA = StructType([StructField("id", LongType()), StructField("name", StringType())])
SIGNED = StructType([*SCHEMA.fields, StructField("_vk_weight", LongType()), StructField("_vk_state", LongType())])


def no_spark() -> Any:
    raise AssertionError("Spark is requested")


@pytest.fixture
def small(place: Path, request: pytest.FixtureRequest) -> Iterator[Warehouse]:
    """The states 0 to 2: a row, two more, and one of these is deleted."""
    with Warehouse.open(place / request.node.name, no_spark, compaction=None) as warehouse:
        with warehouse.commit() as commit:
            commit.create("v", COLUMNS, rows=delta((1, "a")), vector={"s": position(0)})
            commit.create("w", COLUMNS, layout="rewritten")
        change(warehouse, 1, delta((2, "b"), (2, "b")))
        change(warehouse, 2, delta(minus=((2, "b"),)))
        yield warehouse


def source(warehouse: Warehouse, view: str = "v", **options: Any) -> ViewkeeperDataSource:
    told = {"warehouse": str(warehouse.path), "path": view, **options}
    return ViewkeeperDataSource(CaseInsensitiveDict({name: str(value) for name, value in told.items()}))


def batches(reader: ViewStreamReader, limit: ReadLimit = READ_ONE) -> Iterator[list[Row]]:
    """Batch after batch; partitions and reader travel as they do to executors."""
    start = reader.initialOffset()
    while (end := reader.latestOffset(start, limit)) != start:
        parts = pickle.loads(dumps([reader, list(reader.partitions(start, end))]))
        yield [tuple(row.values()) for part in parts[1] for rows in parts[0].read(part) for row in rows.to_pylist()]
        start = end


def test_a_stream_begins_with_the_rows_of_the_last_state(small: Warehouse) -> None:
    (rows,) = batches(source(small, changes="true").streamReader(SIGNED))
    assert sorted(rows) == [(1, "a", 1, 2), (2, "b", 1, 2)]


def test_a_stream_may_begin_with_the_changes_of_a_state(small: Warehouse) -> None:
    later = source(small, changes="true", startingState=2).streamReader(SIGNED)
    assert list(batches(later)) == [[(2, "b", -1, 2)]]
    one_by_one = source(small, changes="true", startingState=0, maxStatesPerTrigger=1).streamReader(SIGNED)
    assert list(batches(one_by_one)) == [[(1, "a", 1, 0)], [(2, "b", 2, 1)], [(2, "b", -1, 2)]]
    all_at_once = source(small, changes="true", startingState=1, maxStatesPerTrigger=1).streamReader(SIGNED)
    assert list(batches(all_at_once, ReadAllAvailable())) == [[(2, "b", 2, 1), (2, "b", -1, 2)]]
    with pytest.raises(StateGone, match="no changes of state 3 of v"):
        source(small, changes="true", startingState=3).streamReader(SIGNED).initialOffset()


def test_a_stream_may_begin_with_what_is_yet_to_come(small: Warehouse) -> None:
    reader = source(small, "w", changes="true", startingState="latest").streamReader(SIGNED)
    start = reader.initialOffset()
    assert reader.latestOffset(start, READ_ONE) == start
    reader.prepareForTriggerAvailableNow()
    change(small, 3, delta((3, "c")))
    assert reader.latestOffset(start, READ_ONE) == start, "it came after the trigger"
    again = source(small, "w", changes="true", startingState="latest").streamReader(SIGNED)
    (part,) = again.partitions(start, again.latestOffset(start, READ_ONE))
    assert [tuple(row.values()) for rows in again.read(part) for row in rows.to_pylist()] == [(3, "c", 1, 3)]


def test_a_stream_without_signs_can_only_grow(small: Warehouse) -> None:
    found = batches(source(small, startingState=0, maxStatesPerTrigger=1).streamReader(SCHEMA))
    assert [next(found), next(found)] == [[(1, "a")], [(2, "b"), (2, "b")]]
    with pytest.raises(UsageError, match="state 2 of v deletes or updates a row") as error:
        next(found)
    assert "'changes', 'true'" in error.value.hint


def test_a_stream_of_a_view_that_was_made_anew_is_refused(small: Warehouse) -> None:
    reader = source(small, changes="true").streamReader(SIGNED)
    start = reader.initialOffset()
    with small.commit() as commit:
        commit.drop("v")
    with small.commit() as commit:
        commit.create("v", COLUMNS, rows=delta((1, "other")))
    with pytest.raises(UsageError, match="was dropped and created again"):
        reader.latestOffset(start, READ_ONE)


def test_a_stream_is_not_taken_up_in_an_older_copy(small: Warehouse, tmp_path: Path) -> None:
    shutil.copytree(small.path, tmp_path / "older")
    reader = source(small, changes="true", maxStatesPerTrigger=1).streamReader(SIGNED)
    seen = reader.latestOffset(reader.initialOffset(), READ_ONE)
    change(small, 3, delta((3, "c")))
    change(small, 4, delta((4, "d")))
    start = reader.latestOffset(seen, READ_ONE)
    assert reader.latestOffset(start, READ_ONE) != start
    with Warehouse.open(tmp_path / "older", no_spark, compaction=None) as older:
        again = source(older, changes="true").streamReader(SIGNED)
        assert again.latestOffset(seen, READ_ONE) == seen
        for number in (3, 4, 5):
            with pytest.raises(UsageError, match="put back from an older copy"):
                again.latestOffset(start, READ_ONE)
            change(older, number, delta((number, "other")))


def test_changes_whose_beginning_was_vacuumed_are_gone(small: Warehouse) -> None:
    small.vacuum(0, grace=0)
    with pytest.raises(StateGone, match="no changes of state 2 of v"):
        source(small, changes="true", startingState=2).reader(SIGNED).partitions()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"changes": "true"}, "changes need a state to start from"),
        ({"changes": "true", "startingState": 2, "endingState": 1}, "before startingState 2"),
        ({"endingState": 1}, "ask for changes"),
    ],
)
def test_loads_that_mean_nothing_are_refused(small: Warehouse, options: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        source(small, **options).reader(SIGNED if "changes" in options else SCHEMA).partitions()


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
