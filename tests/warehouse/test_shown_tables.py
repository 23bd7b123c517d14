"""What readers see of a table that stores something else: expressions for columns, not all rows, several tables as one.

V(until) = V(since) + changes(since, until), and V is what is shown of what is stored.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.clock import seeded
from viewkeeper.errors import DefinitionError, StateGone, UnknownName, UnknownView
from viewkeeper.lake.views.stored_views import with_hidden
from viewkeeper.messages import position
from viewkeeper.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LAYOUTS = ["appended", "rewritten"]

# COUNT(*) as n and AVG(e) as mean by city, of groups with more than one row; the average is stored as SUM and COUNT.
STORED = ("city", "n", "_vk_sum", "_vk_number")
AVERAGE = {
    "shown": [
        ["mean", "CAST(`_vk_sum` AS DOUBLE) / NULLIF(`_vk_number`, 0)", "DOUBLE"],
        ["city", "`city`", "STRING"],
        ["n", "`n`", "BIGINT"],
    ],
    "having": "`n` > 1",
}

Row = tuple[Any, ...]


def stored(*rows: Row, minus: tuple[Row, ...] = ()) -> MemoryZSet:
    return MemoryZSet(STORED, [(row, 1) for row in rows] + [(row, -1) for row in minus])


def bag(frame: "DataFrame") -> Counter[Row]:
    return Counter(tuple(row) for row in frame.collect())


def weighted(frame: "DataFrame") -> Counter[Row]:
    """Rows that are there once each, with their weights."""
    rows = [(tuple(row)[:-1], row._vk_weight) for row in frame.collect()]
    assert len({row for row, _ in rows}) == len(rows), "a row is there twice"
    return Counter(dict(rows))


def changes(frame: "DataFrame") -> dict[int, dict[Row, int]]:
    """Signed rows by state; each row is there once in a state."""
    found: dict[int, dict[Row, int]] = {}
    for row in frame.collect():
        of_state = found.setdefault(row._vk_state, {})
        assert tuple(row)[:-2] not in of_state
        of_state[tuple(row)[:-2]] = row._vk_weight
    return found


def create_averages(wh: Warehouse, layout: str) -> None:
    with wh.commit() as commit:
        commit.create(
            "averages",
            {"city": "STRING", "n": "BIGINT"},
            hidden={"_vk_sum": "BIGINT", "_vk_number": "BIGINT"},
            rows=stored(("Ulm", 3, 12, 3), ("Bonn", 1, 5, 1), (None, 2, None, 0)),
            layout=layout,
            vector={"shop": position(0)},
            properties=AVERAGE,
        )
    steps = [
        # Only what is hidden changes: the average is the same.
        stored(("Ulm", 3, 8, 2), minus=(("Ulm", 3, 12, 3),)),
        # One group comes into sight, another goes out of it.
        stored(("Bonn", 2, 9, 2), ("Ulm", 1, 8, 2), minus=(("Bonn", 1, 5, 1), ("Ulm", 3, 8, 2))),
        stored(minus=((None, 2, None, 0),)),
    ]
    for number, step in enumerate(steps, start=1):
        with wh.commit() as commit:
            commit.state("main", {"shop": position(number)}, {"averages": step})


FIRST = {(4.0, "Ulm", 3): 1, (None, None, 2): 1}
BY_STATE = [FIRST, FIRST, {(4.5, "Bonn", 2): 1, (None, None, 2): 1}, {(4.5, "Bonn", 2): 1}]


@pytest.fixture(scope="module", params=LAYOUTS)
def averages(request: pytest.FixtureRequest, place: Path, spark: "SparkSession") -> Iterator[Warehouse]:
    with Warehouse.open(place / f"averages {request.param}", spark, compaction=None) as wh:
        create_averages(wh, request.param)
        yield wh


# --- columns that are expressions, and rows that are not seen ---


@pytest.mark.parametrize("state", range(4))
def test_every_state_is_read_as_it_is_shown(averages: Warehouse, state: int) -> None:
    frame = averages.read("averages", state)
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        ("mean", "double"),
        ("city", "string"),
        ("n", "bigint"),
    ]
    assert bag(frame) == BY_STATE[state]
    assert weighted(averages.read("averages", state, weights=True)) == BY_STATE[state]


def test_what_is_stored_is_there_too(averages: Warehouse) -> None:
    with averages.snapshot() as snapshot:
        assert bag(with_hidden(snapshot, "averages").bag()) == {("Bonn", 2, 9, 2): 1, ("Ulm", 1, 8, 2): 1}


def test_changes_are_those_that_readers_see(averages: Warehouse) -> None:
    frame = averages.changes("averages", 0)
    assert frame.columns == ["mean", "city", "n", "_vk_weight", "_vk_state"]
    assert changes(frame) == {
        2: {(4.0, "Ulm", 3): -1, (4.5, "Bonn", 2): 1},
        3: {(None, None, 2): -1},
    }
    assert changes(averages.changes("averages", 0, 1)) == {}


def test_linear_queries_go_by_what_is_shown(averages: Warehouse) -> None:
    assert averages.sql("SELECT COUNT(*), COUNT(mean), SUM(n), COUNT(city) FROM averages").first() == (1, 1, 2, 1)
    by_city = averages.sql("SELECT city, SUM(n) AS n FROM averages a WHERE a.mean > 4 GROUP BY city")
    assert bag(by_city) == {("Bonn", 2): 1}
    assert bag(averages.sql("SELECT city, COUNT(*) FROM averages WHERE n = 1 GROUP BY city")) == {}


def test_other_queries_go_by_what_is_shown(averages: Warehouse) -> None:
    assert bag(averages.sql("SELECT * FROM averages")) == BY_STATE[3]
    assert averages.sql("SELECT SUM(mean), MAX(n) FROM averages").first() == (4.5, 2)
    both = averages.sql("SELECT a.city, b.n FROM averages a JOIN averages b USING (city)")
    assert bag(both) == {("Bonn", 2): 1}


@pytest.mark.parametrize("column", ["_vk_sum", "averages._vk_number"])
def test_hidden_columns_are_unknown_to_queries(averages: Warehouse, column: str) -> None:
    with pytest.raises(UnknownName):
        averages.sql(f"SELECT SUM({column}) FROM averages")


@pytest.mark.parametrize("state", [0, None])
def test_a_published_table_holds_what_is_shown(averages: Warehouse, tmp_path: Path, state: int | None) -> None:
    table = DeltaTable(str(averages.publish("averages", tmp_path / "copy", state)))
    assert [(field.name, field.type.type) for field in table.schema().fields] == [
        ("mean", "double"),
        ("city", "string"),
        ("n", "long"),
    ]
    rows = [row for uri in table.file_uris() for row in pq.ParquetFile(uri).read().to_pylist()]
    assert Counter(tuple(row.values()) for row in rows) == BY_STATE[3 if state is None else state]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_that_are_the_same_to_readers_are_one(tmp_path: Path, spark: "SparkSession", layout: str) -> None:
    rows = MemoryZSet(STORED, [(("Ulm", 1, 1, 1), 2), (("Bonn", 2, 3, 1), 1), (("Rom", 3, None, 0), 1)])
    with Warehouse.open(tmp_path / "lake", spark, compaction=None) as wh:
        with wh.commit() as commit:
            commit.create(
                "parity",
                [],
                hidden={f"_vk_{name}": "STRING" if name == "city" else "BIGINT" for name in ("city", "n", "a", "b")},
                rows=MemoryZSet(("_vk_city", "_vk_n", "_vk_a", "_vk_b"), list(rows.weights())),
                layout=layout,
                properties={"shown": [["odd", "`_vk_n` % 2 = 1", "BOOLEAN"]]},
            )
        assert bag(wh.read("parity")) == {(True,): 3, (False,): 1}
        assert weighted(wh.read("parity", weights=True)) == {(True,): 3, (False,): 1}
        assert bag(wh.sql("SELECT odd, COUNT(*) FROM parity GROUP BY odd")) == {(True, 3): 1, (False, 1): 1}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_changes_of_what_is_stored(tmp_path: Path, spark: "SparkSession", layout: str) -> None:
    """Against a model, with compaction on the way: v % 3 is shown of the rows whose hidden flag is set."""
    random = seeded(11)
    names = ("v", "_vk_flag")
    content: Counter[Row] = Counter({(v, flag): 1 for v in range(6) for flag in (True, False)})
    seen: list[Counter[Row]] = []
    with Warehouse.open(tmp_path / "lake", spark, compaction=None) as wh:
        with wh.commit() as commit:
            commit.create(
                "some",
                {"v": "BIGINT"},
                hidden={"_vk_flag": "BOOLEAN"},
                rows=MemoryZSet(names, list(content.items())),
                layout=layout,
                properties={"shown": [["rest", "`v` % 3", "INT"]], "having": "`_vk_flag`"},
            )
        seen.append(_model(content))
        for number in range(1, 7):
            gone = random.sample(list(content.elements()), 4)
            new = [(random.randrange(9), random.choice((True, False, None))) for _ in range(4)]
            content = content - Counter(gone) + Counter(new)
            with wh.commit() as commit:
                commit.state("main", {}, {"some": MemoryZSet(names, [(r, -1) for r in gone] + [(r, 1) for r in new])})
            seen.append(_model(content))
            if number == 3:
                wh.compact()
        for state, expected in enumerate(seen):
            assert bag(wh.read("some", state)) == expected
        for since in (0, 2, 4):
            total = Counter(seen[since])
            by_state = changes(wh.changes("some", since))
            for state in range(since + 1, 7):
                total.update(by_state.get(state, {}))
                assert {row: count for row, count in total.items() if count} == seen[state]
        assert wh.sql("SELECT COUNT(*), SUM(rest) FROM some").first() == (
            seen[-1].total(),
            sum(rest * count for (rest,), count in seen[-1].items()),
        )


def _model(content: Counter[Row]) -> Counter[Row]:
    shown: Counter[Row] = Counter()
    for (v, flag), count in content.items():
        if flag:
            shown[(v % 3,)] += count
    return shown


# --- names of columns ---


@pytest.mark.parametrize(
    "name", ["n2", "_vk", "_vk_weight", "_VK_weight", "_vk_State", "_vk_hash", "_vk_net", "_vk_side_", "_vk_side_n"]
)
def test_a_hidden_column_cannot_have_any_name(tmp_path: Path, name: str) -> None:
    with Warehouse.open(tmp_path / "lake") as wh, wh.commit() as commit:
        with pytest.raises(DefinitionError, match="a hidden column cannot be named"):
            commit.create("v", {"n": "BIGINT"}, hidden={name: "BIGINT"})
        with pytest.raises(DefinitionError, match="one name to Spark"):
            commit.create("v", {"n": "BIGINT"}, hidden={"_vk_a": "BIGINT", "_vk_A": "BIGINT"})
        with pytest.raises(DefinitionError, match="has no columns"):
            commit.create("v", {}, hidden={})


# --- tables that are hidden ---


@pytest.fixture(scope="module")
def hidden(place: Path, spark: "SparkSession") -> Iterator[Warehouse]:
    with Warehouse.open(place / "hidden", spark, compaction=None) as wh:
        with wh.commit() as commit:
            commit.create("seen", {"n": "BIGINT"}, rows=MemoryZSet.of(("n",), (1,)))
            commit.create("_vk_node", {"n": "BIGINT"}, rows=MemoryZSet.of(("n",), (7,)))
        yield wh


def test_hidden_tables_are_not_listed_or_offered(hidden: Warehouse) -> None:
    assert hidden.views == ("seen",)
    with pytest.raises(UnknownView) as unknown:
        hidden.read("sean")
    assert unknown.value.hint == "did you mean seen? it has: seen"


@pytest.mark.parametrize("name", ["_vk_node", "`_vk_node`", "_VK_NODE"])
def test_hidden_tables_are_unknown_to_queries(hidden: Warehouse, name: str) -> None:
    with pytest.raises(UnknownName) as unknown:
        hidden.sql(f"SELECT * FROM seen, {name}")
    assert unknown.value.hint == "views of this warehouse: seen"


def test_hidden_tables_are_read_by_their_exact_names(hidden: Warehouse) -> None:
    assert bag(hidden.read("_vk_node")) == {(7,): 1}
    assert [state.rows for state in hidden.states("_vk_node")] == [1]


def test_the_size_of_hidden_tables_is_told(hidden: Warehouse) -> None:
    status = hidden.status()
    assert [view.view for view in status.views] == ["seen"]
    (told,) = status.hidden
    assert (told.view, told.rows, told.files, told.family) == ("_vk_node", 1, 1, None)
    assert told.bytes > 0


# --- families: GROUP BY GROUPING SETS ((), (city), (city, item)), as sales ---

TOTAL = {
    "shown": [["n", "`n`", "INT"]],
    "family": "sales",
    "padded": [["city", "NULL"], ["item", "NULL"], ["n", "`n`"]],
}
BY_CITY = {"family": "sales", "padded": [["city", "`city`"], ["item", "CAST(NULL AS BIGINT)"], ["n", "`n`"]]}
BY_ITEM = {
    "shown": [["item", "`item`", "INT"], ["city", "`city`", "STRING"], ["n", "`_vk_n`", "BIGINT"]],
    "having": "`_vk_n` < 100",
    "family": "sales",
    "padded": [["c", "`city`"], ["i", "`item`"], ["x", "`n`"]],
}


def create_sales(wh: Warehouse) -> None:
    """One member is hidden, one has hidden columns, one is as it is stored; all change at once."""

    def total(*rows: tuple[Row, int]) -> MemoryZSet:
        return MemoryZSet(("n",), list(rows))

    def city(*rows: tuple[Row, int]) -> MemoryZSet:
        return MemoryZSet(("city", "n"), list(rows))

    def item(*rows: tuple[Row, int]) -> MemoryZSet:
        return MemoryZSet(("city", "item", "_vk_n"), list(rows))

    with wh.commit() as commit:
        at = {"shop": position(0)}
        rows = total(((5,), 1))
        commit.create("_vk_sales_all", {"n": "INT"}, rows=rows, layout="rewritten", vector=at, properties=TOTAL)
        rows = city((("Ulm", 3), 1), ((None, 2), 1))
        commit.create("sales_city", {"city": "STRING", "n": "BIGINT"}, rows=rows, properties=BY_CITY)
        rows = item((("Ulm", 1, 3), 1), ((None, None, 2), 1), (("Rom", 9, 100), 1))
        commit.create(
            "sales_item",
            {"city": "STRING", "item": "INT"},
            hidden={"_vk_n": "BIGINT"},
            rows=rows,
            layout="rewritten",
            properties=BY_ITEM,
        )
        commit.create("prices", {"item": "BIGINT", "price": "BIGINT"}, rows=MemoryZSet.of(("item", "price"), (1, 10)))
    with wh.commit() as commit:
        # The total goes from 5 to 6, and the city NULL from 2 to 5: as rows of the family, (NULL, NULL, 5) stays.
        changed = {
            "_vk_sales_all": total(((5,), -1), ((6,), 1)),
            "sales_city": city(((None, 2), -1), ((None, 5), 1)),
            "sales_item": item(((None, None, 2), -1), ((None, None, 5), 1)),
        }
        commit.state("main", {"shop": position(1)}, changed)


SALES = [
    {(None, None, 5): 1, ("Ulm", None, 3): 1, (None, None, 2): 2, ("Ulm", 1, 3): 1},
    {(None, None, 6): 1, ("Ulm", None, 3): 1, (None, None, 5): 2, ("Ulm", 1, 3): 1},
]


@pytest.fixture(scope="module")
def sales(place: Path, spark: "SparkSession") -> Iterator[Warehouse]:
    with Warehouse.open(place / "sales", spark, compaction=None) as wh:
        create_sales(wh)
        yield wh


@pytest.mark.parametrize("state", [0, 1])
def test_a_family_is_read_as_one(sales: Warehouse, state: int) -> None:
    frame = sales.read("sales", state)
    # Names are those of the first member, types those of the first that has any.
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        ("city", "string"),
        ("item", "bigint"),
        ("n", "int"),
    ]
    assert bag(frame) == SALES[state]
    assert weighted(sales.read("sales", state, weights=True)) == SALES[state]


def test_queries_over_a_family(sales: Warehouse) -> None:
    assert bag(sales.sql("SELECT * FROM sales")) == SALES[1]
    assert bag(sales.sql("SELECT s.city, n * price FROM Sales s JOIN prices USING (item)")) == {("Ulm", 30): 1}
    # Linear in signed rows, and at one commit with its own members.
    assert sales.sql("SELECT COUNT(*), COUNT(sales.item), SUM(n) FROM sales").first() == (5, 1, 22)
    assert bag(sales.sql("SELECT city, SUM(n) FROM sales GROUP BY city")) == {("Ulm", 6): 1, (None, 16): 1}
    assert sales.sql("SELECT COUNT(*) FROM sales, sales_city").first() == (10,)


def test_the_changes_of_a_family(sales: Warehouse) -> None:
    frame = sales.changes("sales", 0)
    assert frame.columns == ["city", "item", "n", "_vk_weight", "_vk_state"]
    assert changes(frame) == {1: {(None, None, 6): 1, (None, None, 5): 1, (None, None, 2): -2}}
    assert changes(sales.changes("sales", 1)) == {}


def test_what_is_known_of_a_family(sales: Warehouse) -> None:
    assert sales.views == ("prices", "sales", "sales_city", "sales_item")
    with sales.snapshot() as snapshot:
        assert snapshot.state("sales") == 1
        assert snapshot.vector("sales") == {"shop": position(1)}
    assert [(state.state, state.vector, state.rows, state.commit) for state in sales.states("sales")] == [
        (0, {"shop": position(0)}, 6, 1),
        (1, {"shop": position(1)}, 6, 2),
    ]
    status = sales.status()
    assert {view.view: view.family for view in (*status.views, *status.hidden)} == {
        "_vk_sales_all": "sales",
        "prices": None,
        "sales_city": "sales",
        "sales_item": "sales",
    }


def test_errors_name_the_family(sales: Warehouse) -> None:
    for failing in (lambda: sales.read("sales", 2), lambda: sales.changes("sales", -1)):
        with pytest.raises(StateGone, match=r"of sales\n"):
            failing()
    with pytest.raises(StateGone, match="state 0 of sales is before state 1"):
        sales.changes("sales", 1, 0)
    with pytest.raises(UnknownView) as several:
        sales.compact("sales")
    assert several.value.hint == "name one of them: sales_city, sales_item"
    with pytest.raises(UnknownView, match="no view 'sale'") as unknown:
        sales.states("sale")
    assert unknown.value.hint == "did you mean sales? it has: prices, sales, sales_city, sales_item"


def test_a_new_view_cannot_have_the_name_of_a_family(sales: Warehouse) -> None:
    with sales.commit() as commit, pytest.raises(DefinitionError, match="there is a view 'sales' already"):
        commit.create("SALES", {"n": "BIGINT"})


def test_a_member_that_came_later_is_read_since_then(tmp_path: Path, spark: "SparkSession") -> None:
    with Warehouse.open(tmp_path / "lake", spark, compaction=None) as wh:
        create_sales(wh)
        with wh.commit() as commit:
            padded = [["city", "NULL"], ["item", "`item`"], ["n", "9"]]
            rows = MemoryZSet.of(("item",), (4,))
            commit.create(
                "sales_one", {"item": "INT"}, rows=rows, properties={"family": "sales", "padded": padded}, group="main"
            )
        assert [(state.state, state.rows, state.commit) for state in wh.states("sales")] == [(1, 7, 3)]
        assert bag(wh.read("sales")) == {**SALES[1], (None, 4, 9): 1}
        with pytest.raises(StateGone, match=r"there is no state 0 of sales\n"):
            wh.read("sales", 0)
        assert [state.state for state in wh.states("sales_city")] == [0, 1]
