"""Views read with Arrow alone: every state and every change of every kind, with no Spark anywhere."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from math import nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from test_computed_views import HISTORY, ROWS, TENTHS, VIEWS, Stored, add_states, create_joined, differences, whole

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.clock import seeded
from viewkeeper.errors import ExpressionError, StateGone, UnknownView, UsageError
from viewkeeper.lake.compaction import merge_deltas
from viewkeeper.lake.tables import arrow_tables as stored_tables
from viewkeeper.lake.tables.arrow_tables import StoredTable
from viewkeeper.lake.tables.delta_table import DataFile
from viewkeeper.lake.views.arrow_changes import changes_of, read_changed
from viewkeeper.lake.views.arrow_parts import parts_of, read_part, repeated
from viewkeeper.messages import position
from viewkeeper.sql.one_nan import one_nan
from viewkeeper.warehouse import Warehouse

Row = tuple[Any, ...]


def no_spark() -> Any:
    raise AssertionError("Spark is requested")


def rows(table: pa.Table) -> list[Row]:
    return [one_nan(tuple(row.values())) for row in table.to_pylist()]


def bag(table: pa.Table) -> Counter[Row]:
    return Counter(rows(table))


def by_state(warehouse: Warehouse, view: str, since: int, until: int) -> dict[int, dict[Row, int]]:
    """The signed rows of a range, each once in its state."""
    found: dict[int, dict[Row, int]] = {}
    part = changes_of(warehouse._latest(), view, since, until)
    for *row, state, weight in rows(read_changed(warehouse._files.store, part).table):
        assert tuple(row) not in found.setdefault(state, {})
        found[state][tuple(row)] = weight
    return found


# --- computed from pairs of ids and copies ---


@pytest.fixture(scope="module")
def joined(place: Path) -> Iterator[Warehouse]:
    with Warehouse.open(place / "joined in arrow", no_spark, compaction=None) as warehouse:
        create_joined(warehouse, HISTORY[0])
        add_states(warehouse, HISTORY[0], HISTORY[1:4])
        add_states(warehouse, HISTORY[3], HISTORY[4:], first=4)
        yield warehouse


@pytest.mark.parametrize("state", [*range(5), None])
def test_every_state_of_a_computed_view(joined: Warehouse, state: int | None) -> None:
    table = joined.arrow("joined", state)
    assert table.schema == pa.schema([("a", pa.string()), ("twice", pa.int32()), ("wide", pa.string())])
    assert bag(table) == VIEWS[4 if state is None else state]


def test_every_change_of_a_computed_view(joined: Warehouse) -> None:
    for since in range(5):
        for until in range(since, 5):
            assert by_state(joined, "joined", since, until) == differences(VIEWS, since, until)


@pytest.mark.parametrize("seed", range(5))
def test_changes_of_a_computed_view_with_a_random_life(place: Path, seed: int) -> None:
    random = seeded(seed)

    def random_content() -> Stored:
        orders = {n: (random.choice(["pen", None]), f"w{n}") for n in range(5) if random.random() < 0.7}
        keys = [(n, t) for n in range(3) for t in "ub"]
        customers = {key: random.choice([1, 2, -1, None]) for key in keys if random.random() < 0.7}
        pairs = {(o, c) for o in orders for c in customers if random.random() < 0.4}
        return Stored(orders, customers, frozenset(pairs))

    history = [random_content() for _ in range(7)]
    views = [one.view() for one in history]
    with Warehouse.open(place / f"random {seed}", no_spark, compaction=None) as warehouse:
        create_joined(warehouse, history[0])
        add_states(warehouse, history[0], history[1:4])
        add_states(warehouse, history[3], history[4:], first=4)
        assert [bag(warehouse.arrow("joined", state)) for state in range(7)] == views
        for since, until in ((0, 6), (0, 1), (2, 5), (3, 3)):
            assert by_state(warehouse, "joined", since, until) == differences(views, since, until)


def test_what_spark_alone_evaluates_is_left_to_spark(place: Path) -> None:
    with Warehouse.open(place / "divided", no_spark) as warehouse:
        with warehouse.commit() as commit:
            commit.create("_vk_whole", ROWS, rows=whole((1, 1, 5)), vector={"shop": position(0)})
            commit.create("tenths", {"id": "BIGINT", "tenth": "BIGINT"}, properties=TENTHS)
        with pytest.raises(
            ExpressionError, match="view tenths is computed when it is read, and Spark alone can"
        ) as error:
            parts_of(warehouse._latest(), "tenths")
        assert "publish" in error.value.hint
        with pytest.raises(AssertionError, match="Spark is requested"):
            warehouse.arrow("tenths")


# --- stored views of both layouts ---

TYPES = {
    "id": "INT",
    "name": "STRING",
    "price": "DECIMAL(10, 2)",
    "ratio": "DOUBLE",
    "seen": "TIMESTAMP",
    "local": "TIMESTAMP_NTZ",
    "day": "DATE",
    "raw": "BINARY",
}
VALUES: list[Sequence[Any]] = [
    (0, 1, None),
    ("a", "A", "", None),
    (Decimal("1.10"), None),
    (0.0, -0.0, nan, 1.5, None),
    (datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), None),
    (datetime(2024, 3, 31, 2, 30), None),
    (date(2024, 2, 29), None),
    (b"", b"\x00", None),
]


def test_both_layouts_over_a_random_life(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows come often and go, with every kind of odd value; deltas are merged; each file is a part of its own."""
    random, names = seeded(11), tuple(TYPES)
    monkeypatch.setattr(stored_tables, "ROWS_TOGETHER", 1)
    content: Counter[Row] = Counter()
    contents = [Counter(content)]

    def random_delta() -> MemoryZSet:
        born = [tuple(random.choice(values) for values in VALUES) for _ in range(6)]
        gone = [row for row in content.elements() if random.random() < 0.4]
        delta = MemoryZSet(names, [(row, 1) for row in born] + [(row, -1) for row in gone])
        for row, weight in delta.weights():
            content[row] += weight
        contents.append(+Counter(content))
        return delta

    with Warehouse.open(place / "layouts", no_spark, compaction=None) as warehouse:
        with warehouse.commit() as commit:
            first = random_delta()
            contents[:] = contents[1:]
            for layout in ("appended", "rewritten"):
                commit.create(layout, TYPES, rows=first, layout=layout, vector={"s": position(0)})
        for number in range(1, 5):
            with warehouse.commit() as commit:
                for step in range(2):
                    delta = random_delta()
                    changed = {"appended": delta, "rewritten": delta}
                    commit.state("main", {"s": position(2 * number + step)}, changed)
            if number == 2:
                assert merge_deltas(warehouse._writing(), warehouse._latest().catalog["appended"])
        for view in ("appended", "rewritten"):
            assert [canonical(bag(warehouse.arrow(view, state))) for state in range(9)] == list(
                map(canonical, contents)
            )
            for since, until in ((0, 8), (1, 2), (3, 6), (5, 5)):
                found = by_state(warehouse, view, since, until)
                expected = differences(list(map(canonical, contents)), since, until)
                assert {state: canonical(Counter(net)) for state, net in found.items()} == expected
            snapshot = warehouse._latest()
            parts = parts_of(snapshot, view)
            some = [repeated(read_part(snapshot.files.store, part, ("price", "id"))) for part in parts]
            expected_some = Counter((row[2], row[0]) for row in contents[8].elements())
            assert bag(pa.concat_tables(some)) == expected_some


def canonical(rows: Counter[Row]) -> Counter[Row]:
    """A zero is a zero, and one NaN is like another."""
    found: Counter[Row] = Counter()
    for row, weight in rows.items():
        found[one_nan(tuple(value + 0.0 if isinstance(value, float) else value for value in row))] += weight
    return found


def test_files_are_read_together_up_to_a_number_of_rows(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_tables, "ROWS_TOGETHER", 2)
    with Warehouse.open(place / "shares", no_spark) as warehouse:
        with warehouse.commit() as commit:
            commit.create("v", {"n": "BIGINT"}, vector={"s": position(0)})
        view = warehouse._latest().catalog["v"]
    files = tuple(DataFile(f"base-{number}", size=1, rows=1) for number in range(5))
    shares = StoredTable(view, 0, files, ()).shares()
    assert [len(share.base) for share in shares] == [2, 2, 1]
    assert [share.rest for share in shares] == [False, False, True]


def test_a_view_without_rows_has_its_columns(place: Path) -> None:
    with Warehouse.open(place / "empty", no_spark) as warehouse:
        with warehouse.commit() as commit:
            commit.create("nothing", {"a.b_c": "STRING", "n": "DECIMAL(5, 1)"})
        assert warehouse.arrow("nothing").schema.names == ["a.b_c", "n"]
        assert warehouse.arrow("nothing").num_rows == 0


def test_what_is_not_there_is_named(joined: Warehouse) -> None:
    with pytest.raises(UnknownView, match="no view 'orders'"):
        joined.arrow("orders")
    with pytest.raises(StateGone, match="state 9 of joined"):
        joined.arrow("joined", 9)


def test_pandas_is_asked_for_by_its_name(joined: Warehouse) -> None:
    try:
        import pandas
    except ImportError:
        with pytest.raises(UsageError, match="pandas is not installed") as error:
            joined.pandas("joined")
        assert "pip install pandas" in error.value.hint
    else:
        frame = joined.pandas("joined")
        assert isinstance(frame, pandas.DataFrame)
        assert len(frame) == VIEWS[4].total()
