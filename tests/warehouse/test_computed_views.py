"""Views whose rows are computed from hidden tables when they are read: pairs of ids with copies of the operands, or
whole rows.

    V = π shown ( σ having ( rows ⋈ copy_0 ⋈ copy_1 ))
    V(until) = V(since) + changes(since, until)
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.errors import ArithmeticException

from run_size import some
from viewkeeper.algebra.adaptive import Engines
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.clock import seeded
from viewkeeper.errors import StateGone, UnknownName
from viewkeeper.lake.views import computed_changes
from viewkeeper.messages import position
from viewkeeper.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = tuple[Any, ...]

# Orders x0 (id, a), customers x1 (id and t are the key, b). Pairs also have a column of orders, as if it was compared.
PAIRS = {"x0.id": "BIGINT", "x1.id": "BIGINT", "x1.t": "STRING", "x0.a": "STRING"}
ORDERS = {"x0.id": "BIGINT", "x0.a": "STRING", "x0.wide": "STRING"}
CUSTOMERS = {"x1.id": "BIGINT", "x1.t": "STRING", "x1.b": "INT"}
JOINED = {
    "shown": [["a", "`x0.a`", "STRING"], ["twice", "`x1.b` * 2", "INT"], ["wide", "`x0.wide`", "STRING"]],
    "having": "`x1.b` > 0 OR `x0.a` IS NULL",
    "computed": {
        "rows": "_vk_joined_pairs",
        "copies": [["_vk_joined_0", ["x0.id"]], ["_vk_joined_1", ["x1.id", "x1.t"]]],
    },
}
SHOWN = {"a": "STRING", "twice": "INT", "wide": "STRING"}


@dataclass(frozen=True)
class Stored:
    """What the hidden tables hold at one state: operands by id, and pairs of ids."""

    orders: Mapping[int, tuple[str | None, str]]
    customers: Mapping[tuple[int, str], int | None]
    pairs: frozenset[tuple[int, tuple[int, str]]]

    def rows(self) -> dict[str, set[Row]]:
        return {
            "_vk_joined_pairs": {(order, *customer, self.orders[order][0]) for order, customer in self.pairs},
            "_vk_joined_0": {(number, *order) for number, order in self.orders.items()},
            "_vk_joined_1": {(*key, b) for key, b in self.customers.items()},
        }

    def view(self) -> Counter[Row]:
        seen: Counter[Row] = Counter()
        for order, customer in self.pairs:
            (a, wide), b = self.orders[order], self.customers[customer]
            if (b is not None and b > 0) or a is None:
                seen[(a, None if b is None else b * 2, wide)] += 1
        return seen


COLUMNS = {"_vk_joined_pairs": PAIRS, "_vk_joined_0": ORDERS, "_vk_joined_1": CUSTOMERS}
ULM, ROM, BONN = (1, "u"), (1, "r"), (2, "b")
HISTORY = [
    Stored(
        {1: ("pen", "w1"), 2: ("ink", "w2"), 3: (None, "w3"), 4: ("pen", "w1")},
        {ULM: 5, ROM: 7, BONN: -1},
        frozenset({(1, ULM), (2, ROM), (3, BONN), (4, ULM)}),
    ),
    # A copy is modified, and with it two rows of the view.
    Stored(
        {1: ("pen", "w1"), 2: ("ink", "w2"), 3: (None, "w3"), 4: ("pen", "w1")},
        {ULM: 6, ROM: 7, BONN: -1},
        frozenset({(1, ULM), (2, ROM), (3, BONN), (4, ULM)}),
    ),
    # Everything at once: both rows of a pair are modified, one pair comes, one goes with its order.
    Stored(
        {1: ("cap", "w1"), 3: (None, "w3"), 4: ("pen", "w1"), 5: ("ink", "w5")},
        {ULM: 4, ROM: 7, BONN: 3},
        frozenset({(1, ULM), (3, BONN), (4, ULM), (4, BONN), (5, ROM)}),
    ),
    # Only what readers do not see changes: no row of the view does.
    Stored(
        {1: ("cap", "w1"), 3: (None, "w3"), 4: ("pen", "w1"), 5: ("ink", "w5"), 6: ("hat", "w6")},
        {ULM: 4, ROM: 7, BONN: 3},
        frozenset({(1, ULM), (3, BONN), (4, ULM), (4, BONN), (5, ROM)}),
    ),
    # Rows come back as they were; the key of a customer without orders goes.
    Stored(
        {1: ("pen", "w1"), 2: ("ink", "w2"), 3: (None, "w3"), 4: ("pen", "w1")},
        {ULM: 5, BONN: None},
        frozenset({(1, ULM), (3, BONN), (4, ULM)}),
    ),
]


def create_joined(wh: Warehouse, first: Stored, **options: Any) -> None:
    with wh.commit() as commit:
        for name, columns in COLUMNS.items():
            layout = "rewritten" if name == "_vk_joined_1" else "appended"
            rows = MemoryZSet.of(tuple(columns), *first.rows()[name])
            commit.create(name, columns, rows=rows, layout=layout, vector={"shop": position(0)})
        commit.create("joined", SHOWN, properties=JOINED, **options)


def delta(name: str, before: Stored, after: Stored) -> MemoryZSet:
    old, new = before.rows()[name], after.rows()[name]
    return MemoryZSet(tuple(COLUMNS[name]), [(row, 1) for row in new - old] + [(row, -1) for row in old - new])


def add_states(wh: Warehouse, before: Stored, states: Iterable[Stored], first: int = 1) -> None:
    """Several states in one commit."""
    with wh.commit() as commit:
        for number, after in enumerate(states, start=first):
            changed = {name: delta(name, before, after) for name in COLUMNS}
            commit.state("main", {"shop": position(number)}, changed)
            before = after


def bag(frame: "DataFrame") -> Counter[Row]:
    return Counter(tuple(row) for row in frame.collect())


def weighted(frame: "DataFrame") -> dict[Row, int]:
    rows = [(tuple(row)[:-1], row._vk_weight) for row in frame.collect()]
    assert len({row for row, _ in rows}) == len(rows), "a row is there twice"
    return dict(rows)


def by_state(frame: "DataFrame") -> dict[int, dict[Row, int]]:
    """Signed rows by state; each row is there once in a state."""
    found: dict[int, dict[Row, int]] = {}
    for row in frame.collect():
        of_state = found.setdefault(row._vk_state, {})
        assert tuple(row)[:-2] not in of_state
        of_state[tuple(row)[:-2]] = row._vk_weight
    return found


def differences(contents: Sequence[Counter[Row]], since: int, until: int) -> dict[int, dict[Row, int]]:
    """V(s) - V(s-1) of the states that differ."""
    found = {}
    for state in range(since + 1, until + 1):
        net = Counter(contents[state])
        net.subtract(contents[state - 1])
        if changed := {row: weight for row, weight in net.items() if weight}:
            found[state] = changed
    return found


VIEWS = [stored.view() for stored in HISTORY]


@pytest.fixture(scope="module")
def joined(place: Path, spark: "SparkSession") -> Iterator[Warehouse]:
    with Warehouse.open(place / "joined", spark, compaction=None) as wh:
        create_joined(wh, HISTORY[0])
        add_states(wh, HISTORY[0], HISTORY[1:4])
        add_states(wh, HISTORY[3], HISTORY[4:], first=4)
        yield wh


# --- pairs of ids, and copies ---


def test_the_history_has_what_it_is_meant_to_have() -> None:
    assert VIEWS[0] == {("pen", 10, "w1"): 2, ("ink", 14, "w2"): 1, (None, -2, "w3"): 1}
    assert VIEWS[2] == VIEWS[3]
    assert len({frozenset(view.items()) for view in VIEWS}) == 4


@pytest.mark.parametrize("state", some([0, 2, 4, 1, 3], 3))
def test_every_state_is_read(joined: Warehouse, state: int) -> None:
    frame = joined.read("joined", state)
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        ("a", "string"),
        ("twice", "int"),
        ("wide", "string"),
    ]
    assert bag(frame) == VIEWS[state]
    assert weighted(joined.read("joined", state, weights=True)) == VIEWS[state]


@pytest.mark.parametrize("since", [1, *(pytest.param(state, marks=pytest.mark.soak) for state in (0, 3))])
def test_changes_are_those_of_the_view(joined: Warehouse, since: int) -> None:
    for until in range(since, 5):
        frame = joined.changes("joined", since, until)
        assert frame.columns == ["a", "twice", "wide", "_vk_weight", "_vk_state"]
        assert by_state(frame) == differences(VIEWS, since, until)


@pytest.mark.parametrize(("since", "until", "few"), [(1, 4, 100), (1, 4, 2), (2, 3, 2)])
def test_of_large_tables_only_what_changed_is_looked_at(
    joined: Warehouse, monkeypatch: pytest.MonkeyPatch, since: int, until: int, few: int
) -> None:
    """That the pairs concerned are few is known, or counted: they are not; they are."""
    monkeypatch.setattr(computed_changes, "SORTED_ROWS", 0)
    monkeypatch.setattr(computed_changes, "BROADCAST_ROWS", few)
    assert by_state(joined.changes("joined", since, until)) == differences(VIEWS, since, until)


def test_states_that_are_not_there_are_told_by_the_name_of_the_view(joined: Warehouse) -> None:
    for ask in (lambda: joined.read("joined", 9), lambda: joined.changes("joined", 0, 9)):
        with pytest.raises(StateGone, match="joined") as gone:
            ask()
        assert "_vk_" not in str(gone.value)
    with pytest.raises(StateGone, match="state 1 of joined is before state 2"):
        joined.changes("joined", 2, 1)


def test_queries_go_by_the_computed_rows(joined: Warehouse) -> None:
    assert joined.sql("SELECT COUNT(*), SUM(twice), COUNT(twice) FROM joined").first() == (3, 20, 2)
    assert bag(joined.sql("SELECT a, COUNT(*) FROM joined WHERE wide = 'w1' GROUP BY a")) == {("pen", 2): 1}
    assert bag(joined.sql("SELECT l.a, r.wide FROM joined l JOIN joined r USING (twice)")) == {("pen", "w1"): 4}
    with pytest.raises(UnknownName):
        joined.sql("SELECT `x0.a` FROM joined")
    with pytest.raises(UnknownName):
        joined.sql("SELECT * FROM _vk_joined_pairs")


def test_columns_that_a_query_does_not_need_are_not_read(joined: Warehouse) -> None:
    def plan(frame: "DataFrame") -> str:
        return str(frame._jdf.queryExecution().executedPlan().toString())  # type: ignore[operator]

    assert "x0.wide" in plan(joined.read("joined", 0))
    narrow = plan(joined.read("joined", 0).select("twice"))
    assert "x1.b" in narrow
    assert "x0.wide" not in narrow


def test_what_is_hidden_is_there_by_its_name(joined: Warehouse) -> None:
    assert joined.views == ("joined",)
    assert bag(joined.read("_vk_joined_1", 0)) == {(1, "u", 5): 1, (1, "r", 7): 1, (2, "b", -1): 1}


def test_states_count_the_pairs(joined: Warehouse) -> None:
    states = joined.states("joined")
    assert [(state.state, state.rows) for state in states] == [(0, 4), (1, 4), (2, 5), (3, 5), (4, 3)]
    assert [state.vector for state in states] == [{"shop": position(number)} for number in range(5)]


def test_the_status_tells_what_all_its_tables_take(joined: Warehouse) -> None:
    status = joined.status()
    (told,) = status.views
    assert (told.view, told.state, told.oldest, told.rows) == ("joined", 4, 0, 3)
    assert told.files == sum(table.files for table in status.hidden) == 7
    assert told.bytes == sum(table.bytes for table in status.hidden) > 0
    assert told.pending_files == 4
    assert told.pending_rows == sum(table.pending_rows for table in status.hidden) > 0


@pytest.mark.parametrize("state", [2, None])
def test_a_published_table_holds_the_computed_rows(joined: Warehouse, tmp_path: Path, state: int | None) -> None:
    table = DeltaTable(str(joined.publish("joined", tmp_path / "copy", state)))
    rows = [row for uri in table.file_uris() for row in pq.ParquetFile(uri).read().to_pylist()]
    assert Counter(tuple(row.values()) for row in rows) == VIEWS[4 if state is None else state]


@pytest.mark.parametrize("most_rows", [100_000, 2])
def test_the_mediator_gets_the_computed_rows(
    joined: Warehouse, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, most_rows: int
) -> None:
    """On the driver if the tables are small, and by Spark."""
    monkeypatch.setattr(joined._keeper, "engines", Engines(lambda: spark, most_rows))
    read = joined._keeper.stored("joined")
    assert read.in_memory == (most_rows > 2)
    assert read.columns == ("a", "twice", "wide")
    assert dict(read.weights()) == VIEWS[4]


# --- whole rows: no copies ---

ROWS = {"x0.id": "BIGINT", "x0._vk_id": "BIGINT", "x1.b": "BIGINT"}
TENTHS = {
    "shown": [["id", "`x0.id`", "BIGINT"], ["tenth", "10 DIV `x1.b`", "BIGINT"]],
    "having": "100 DIV `x1.b` > 1",
    "computed": {"rows": "_vk_whole", "copies": []},
}
PLAIN = {
    "shown": [["b", "`x1.b`", "BIGINT"], ["id", "`x0.id`", "BIGINT"]],
    "having": "`x0.id` IS NOT NULL",
    "computed": {"rows": "_vk_whole", "copies": []},
}


def whole(*rows: Row, minus: tuple[Row, ...] = ()) -> MemoryZSet:
    return MemoryZSet(tuple(ROWS), [(row, 1) for row in rows] + [(row, -1) for row in minus])


@pytest.fixture(scope="module")
def materialized(place: Path, spark: "SparkSession") -> Iterator[Warehouse]:
    """Two views over the same rows. Nothing can be divided by what the first state has, and the second has no more."""
    with Warehouse.open(place / "materialized", spark, compaction=None) as wh:
        with wh.commit() as commit:
            rows = whole((1, 1, 0), (1, 2, 5), (None, 3, 2))
            commit.create("_vk_whole", ROWS, rows=rows, vector={"shop": position(0)})
            commit.create("tenths", {"id": "BIGINT", "tenth": "BIGINT"}, properties=TENTHS)
            commit.create("plain", {"b": "BIGINT", "id": "BIGINT"}, properties=PLAIN)
        steps = [
            [whole((7, 5, 200), minus=((1, 1, 0),))],
            # Two rows that are one to readers, one after the other; and one that is there for no state.
            [whole((1, 4, 5), (8, 6, 0), minus=((None, 3, 2), (1, 2, 5))), whole(minus=((8, 6, 0),))],
        ]
        for number, deltas in enumerate(steps, start=1):
            with wh.commit() as commit:
                commit.states("main", [({"shop": position(number)}, {"_vk_whole": deltas})])
        yield wh


def test_whole_rows_are_filtered_and_projected(materialized: Warehouse) -> None:
    assert [bag(materialized.read("plain", state)) for state in range(3)] == [
        {(0, 1): 1, (5, 1): 1},
        {(5, 1): 1, (200, 7): 1},
        {(5, 1): 1, (200, 7): 1},
    ]
    assert by_state(materialized.changes("plain", 0)) == {1: {(0, 1): -1, (200, 7): 1}}
    assert weighted(materialized.read("plain", weights=True)) == {(5, 1): 1, (200, 7): 1}
    assert materialized.sql("SELECT COUNT(*), SUM(b) FROM plain").first() == (2, 205)
    assert [state.rows for state in materialized.states("plain")] == [3, 3, 2]


def test_an_expression_sees_only_rows_that_are_there(materialized: Warehouse) -> None:
    """10 DIV 0 is an error, and the row with the 0 is deleted."""
    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        materialized.read("tenths", 0).collect()
    assert bag(materialized.read("tenths", 1)) == {(1, 2): 1, (None, 5): 1}
    assert bag(materialized.read("tenths").filter("tenth > 1")) == {(1, 2): 1}
    assert weighted(materialized.read("tenths", weights=True)) == {(1, 2): 1}
    assert materialized.sql("SELECT SUM(tenth) FROM tenths WHERE tenth < 9").first() == (2,)
    assert by_state(materialized.changes("tenths", 1)) == {2: {(None, 5): -1}}
    assert dict(materialized._keeper.stored("tenths").weights()) == {(1, 2): 1}


def test_an_expression_sees_only_rows_that_are_joined(tmp_path: Path, spark: "SparkSession") -> None:
    """A customer nobody points to, one that was deleted, and one that was paired with another order before."""
    tables = {
        "_vk_p": ({"x0.id": "BIGINT", "x1.id": "BIGINT"}, [(1, 1), (2, 2)]),
        "_vk_c0": ({"x0.id": "BIGINT", "x0.a": "BIGINT"}, [(1, 1), (2, 2)]),
        "_vk_c1": ({"x1.id": "BIGINT", "x1.b": "BIGINT"}, [(1, 5), (2, 2), (3, 0)]),
    }
    properties = {
        "shown": [["tenth", "10 DIV (`x1.b` - `x0.a`)", "BIGINT"]],
        "having": "100 DIV `x1.b` > 1",
        "computed": {"rows": "_vk_p", "copies": [["_vk_c0", ["x0.id"]], ["_vk_c1", ["x1.id"]]]},
    }
    with Warehouse.open(tmp_path / "lake", spark, compaction=None) as wh:
        with wh.commit() as commit:
            for name, (columns, rows) in tables.items():
                commit.create(name, columns, rows=MemoryZSet.of(tuple(columns), *rows))
            commit.create("tenths", {"tenth": "BIGINT"}, properties=properties)
        with wh.commit() as commit:
            commit.state("main", {}, {"_vk_p": MemoryZSet(("x0.id", "x1.id"), [((2, 2), -1), ((2, 1), 1)])})
        with wh.commit() as commit:
            commit.state("main", {}, {"_vk_c0": MemoryZSet(("x0.id", "x0.a"), [((1, 1), -1), ((1, 4), 1)])})
        assert bag(wh.read("tenths")) == {(10,): 1, (3,): 1}
        assert bag(wh.read("tenths").filter("tenth > 5")) == {(10,): 1}
        assert by_state(wh.changes("tenths", 1)) == {2: {(2,): -1, (10,): 1}}


# --- read often ---


def test_the_third_read_of_a_state_is_kept_until_there_is_a_later_one(tmp_path: Path, spark: "SparkSession") -> None:
    with Warehouse.open(tmp_path / "lake", spark, compaction=None) as wh:
        create_joined(wh, HISTORY[0])
        first, second, third, fourth = (wh.read("joined") for _ in range(4))
        assert [frame.is_cached for frame in (first, second, third)] == [False, False, True]
        assert fourth is third
        assert (third.storageLevel.useMemory, third.storageLevel.useDisk) == (True, True)
        assert bag(third) == VIEWS[0]
        assert weighted(wh.read("joined", weights=True)) == VIEWS[0]
        with wh.snapshot() as old:
            add_states(wh, HISTORY[0], HISTORY[2:3])
            assert not _is_kept(third)
            assert bag(third) == VIEWS[0]
            newer = [wh.read("joined") for _ in range(3)][-1]
            # One who still reads the state before neither takes what is kept of the later one, nor lets go of it.
            assert [bag(old.read("joined")) for _ in range(3)] == [VIEWS[0]] * 3
            assert bag(newer) == VIEWS[2]
            assert _is_kept(newer)
        assert not any(_is_kept(wh.read("joined", 0)) for _ in range(4))
        wh.compact()
        assert not _is_kept(wh.read("joined"))
        assert bag(wh.read("joined")) == VIEWS[2]
        last = wh.read("joined")
        assert _is_kept(last)
    assert not _is_kept(last)
    assert not _is_kept([wh.read("joined") for _ in range(4)][-1])


def _is_kept(frame: "DataFrame") -> bool:
    return bool(frame.storageLevel.useMemory)


# --- files ---


def test_what_a_pinned_reader_needs_stays(tmp_path: Path, spark: "SparkSession") -> None:
    with Warehouse.open(tmp_path / "lake", spark, compaction=None) as wh:
        create_joined(wh, HISTORY[0])
        add_states(wh, HISTORY[0], HISTORY[1:2])
        with wh.snapshot() as pinned:
            add_states(wh, HISTORY[1], HISTORY[2:3], first=2)
            assert wh.compact("joined") == ["_vk_joined_pairs", "_vk_joined_0"]
            assert wh.compact("joined") == []
            assert [wh.status().views[0].pending_files, wh.status().views[0].pending_rows] == [0, 0]
            wh.vacuum(0, grace=0)
            assert bag(pinned.read("joined")) == VIEWS[1]
            assert [bag(wh.read("joined", state)) for state in (1, 2)] == VIEWS[1:3]
            assert by_state(wh.changes("joined", 1)) == differences(VIEWS, 1, 2)
        done = wh.vacuum(0, grace=0)
        assert done.oldest == dict.fromkeys(("joined", *COLUMNS), 2)
        assert [state.state for state in wh.states("joined")] == [2]
        with pytest.raises(StateGone):
            wh.read("joined", 1)
        assert bag(wh.read("joined")) == VIEWS[2]


def test_its_tables_are_kept_as_long_as_the_view(tmp_path: Path, spark: "SparkSession") -> None:
    with Warehouse.open(tmp_path / "lake", spark, compaction=None) as wh:
        create_joined(wh, HISTORY[0], retention="1 day")
        add_states(wh, HISTORY[0], HISTORY[1:2])
        wh.vacuum(0, grace=0)
        assert [state.state for state in wh.states("joined")] == [0, 1]
        assert bag(wh.read("joined", 0)) == VIEWS[0]


def test_states_that_one_table_has_lost_cannot_be_read(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path / "lake", compaction=None) as wh:
        create_joined(wh, HISTORY[0])
        add_states(wh, HISTORY[0], HISTORY[1:2])
        add_states(wh, HISTORY[1], HISTORY[2:3], first=2)
        names = ("joined", *COLUMNS)
        oldest = {name: int(name == "_vk_joined_1") for name in names}
        wh._writing().announce(wh._writing().catalog, oldest, dict.fromkeys(names, 1))
        assert [(state.state, state.rows) for state in wh.states("joined")] == [(1, 4), (2, 5)]
        assert wh.status().views[0].oldest == 1
        with pytest.raises(StateGone, match="joined"):
            wh.read("joined", 0)
        with pytest.raises(StateGone, match="joined"):
            wh.changes("joined", 0)


# --- any history ---


@pytest.mark.parametrize("seed", [1])
def test_any_history(tmp_path: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Against a model, several states to a commit, with compaction on the way."""
    random = seeded(seed)

    def order() -> tuple[str | None, str]:
        return random.choice(("pen", "ink", None)), random.choice("vw")

    def customer() -> int | None:
        return random.choice((-1, 1, 2, None))

    keys = [ULM, ROM, BONN, (3, "b")]
    history = [Stored({number: order() for number in range(4)}, {key: customer() for key in keys[:2]}, frozenset())]
    for _ in range(6):
        before = history[-1]
        orders, customers = dict(before.orders), dict(before.customers)
        for number in random.sample(range(6), 2):
            orders.pop(number, None)
            if random.random() < 0.7:
                orders[number] = order()
        for key in random.sample(keys, 2):
            customers.pop(key, None)
            if random.random() < 0.8:
                customers[key] = customer()
        pairs = {pair for pair in before.pairs if random.random() < 0.7}
        pairs |= {(random.choice(range(6)), random.choice(keys)) for _ in range(3)}
        there = frozenset((number, key) for number, key in pairs if number in orders and key in customers)
        history.append(Stored(orders, customers, there))
    seen = [stored.view() for stored in history]
    assert any(seen)
    with Warehouse.open(tmp_path / "lake", spark, compaction=None) as wh:
        create_joined(wh, history[0])
        add_states(wh, history[0], history[1:3])
        add_states(wh, history[2], history[3:4], first=3)
        wh.compact(random.choice(["_vk_joined_pairs", "_vk_joined_0"]))
        add_states(wh, history[3], history[4:7], first=4)
        assert [bag(wh.read("joined", state)) for state in range(7)] == seen
        monkeypatch.setattr(computed_changes, "SORTED_ROWS", random.choice((2, 100)))
        for since, until in [(0, 6), (1, 4), (5, 6)]:
            assert by_state(wh.changes("joined", since, until)) == differences(seen, since, until)
        assert dict(wh._keeper.stored("joined").weights()) == seen[-1]
