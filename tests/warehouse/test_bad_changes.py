"""Changes that do not fit: refused with the name of the view, the column or the row, and the last state stays."""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from images import copy, image
from lakes import ORDER_TYPES, make_small_commit, orders, totals
from stored_content import Stored, checksums

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.errors import BadDelta, DefinitionError, StateGone, UnknownView, UsageError, ViewkeeperError
from viewkeeper.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {
    "small": "TINYINT",
    "whole": "INT",
    "price": "DECIMAL(10, 2)",
    "ratio": "DOUBLE",
    "name": "STRING",
    "raw": "BINARY",
    "day": "DATE",
    "moment": "TIMESTAMP",
    "local": "TIMESTAMP_NTZ",
    "flag": "BOOLEAN",
}
FITTING: dict[str, Any] = {
    "small": 1,
    "whole": 2,
    "price": Decimal("3.40"),
    "ratio": 0.5,
    "name": "pen",
    "raw": b"\x01",
    "day": date(2024, 2, 29),
    "moment": datetime.fromisoformat("2024-02-29T12:00:00+00:00"),
    "local": datetime.fromisoformat("2024-02-29T12:00:00"),
    "flag": True,
}


@pytest.fixture(scope="module")
def typed(place: Path) -> Path:
    """A warehouse with a view of every type, in both layouts."""
    with Warehouse.open(place / "typed", compaction=None) as wh, wh.commit() as commit:
        for layout in ("appended", "rewritten"):
            commit.create(layout, TYPES, rows=MemoryZSet.of(tuple(TYPES), tuple(FITTING.values())), layout=layout)
    return place / "typed"


def refused(wh: Warehouse, kind: type[ViewkeeperError], view: str, delta: Any, group: str = "main") -> ViewkeeperError:
    """A change is refused, with a hint, and leaves everything as it was."""
    before = checksums(wh.path)
    with pytest.raises(kind) as told, wh.commit() as commit:
        commit.state(group, {"shop": "1"}, {view: delta})
    assert type(told.value) is kind
    assert told.value.hint
    assert checksums(wh.path) == before
    return told.value


UNFIT: list[tuple[str, Any]] = [
    ("small", 128),
    ("whole", 2**31),
    ("whole", 1.5),
    ("whole", "1"),
    ("whole", True),
    ("price", Decimal("123456789.00")),
    ("price", Decimal("1.001")),
    ("price", Decimal("NaN")),
    ("price", 1.5),
    ("price", "1.50"),
    ("ratio", "0.5"),
    ("ratio", Decimal("0.25")),
    ("ratio", 2**60 + 1),
    ("name", 5),
    ("name", b"pen"),
    ("raw", "pen"),
    ("day", 5),
    ("day", "2024-02-29"),
    ("day", datetime.fromisoformat("2024-02-29T12:00:00")),
    ("moment", 5),
    ("moment", "2024-02-29"),
    ("local", 5),
    ("flag", 0),
    ("flag", "true"),
]


@pytest.mark.parametrize(("column", "value"), UNFIT)
@pytest.mark.parametrize("view", ["appended", "rewritten"])
def test_a_value_that_does_not_fit_its_column_is_refused(typed: Path, view: str, column: str, value: Any) -> None:
    row = tuple({**FITTING, column: value}.values())
    with Warehouse.open(copy(typed), compaction=None) as wh:
        for rows in ([(row, 1)], [(tuple(FITTING.values()), 1), (row, 1)]):
            error = refused(wh, BadDelta, view, MemoryZSet(tuple(TYPES), rows))
            assert view in error.detail
            assert f"column {column}" in error.detail


UNFIT_ARROW: list[tuple[str, pa.Array]] = [
    ("small", pa.array([128])),
    ("whole", pa.array([2**31])),
    ("whole", pa.array([1.0])),
    ("whole", pa.array(["1"])),
    ("whole", pa.array([True])),
    ("price", pa.array([Decimal("123456789.00")])),
    ("price", pa.array([Decimal("1.001")])),
    ("price", pa.array([100_000_000])),
    ("price", pa.array([1.5])),
    ("ratio", pa.array(["0.5"])),
    ("ratio", pa.array([2**60 + 1])),
    ("name", pa.array([5])),
    ("name", pa.array([b"\xff"])),
    ("raw", pa.array(["pen"])),
    ("day", pa.array([5])),
    ("day", pa.array([datetime.fromisoformat("2024-02-29T12:00:00")])),
    ("moment", pa.array([datetime.fromisoformat("2024-02-29T12:00:00")])),
    ("local", pa.array([FITTING["moment"]])),
    ("local", pa.array([1], pa.timestamp("ns"))),
    ("flag", pa.array([1])),
]


@pytest.mark.parametrize(("column", "values"), UNFIT_ARROW)
def test_an_arrow_column_that_does_not_fit_is_refused(typed: Path, column: str, values: pa.Array) -> None:
    with Warehouse.open(copy(typed), compaction=None) as wh:
        error = refused(wh, BadDelta, "appended", arrow_rows(**{column: values}))
        assert f"column {column}" in error.detail


def arrow_rows(**columns: pa.Array) -> pa.Table:
    schema = pa.schema(
        [
            ("small", pa.int8()),
            ("whole", pa.int32()),
            ("price", pa.decimal128(10, 2)),
            ("ratio", pa.float64()),
            ("name", pa.string()),
            ("raw", pa.binary()),
            ("day", pa.date32()),
            ("moment", pa.timestamp("us", "UTC")),
            ("local", pa.timestamp("us")),
            ("flag", pa.bool_()),
        ]
    )
    table = pa.table({name: [value] for name, value in FITTING.items()}, schema=schema)
    for name, values in columns.items():
        table = table.set_column(table.schema.get_field_index(name), name, values)
    return table.append_column("_vk_weight", pa.array([1]))


def test_arrow_columns_of_kindred_types_are_taken(typed: Path) -> None:
    kindred = {
        "small": pa.array([7], pa.int64()),
        "whole": pa.array([Decimal(8)]),
        "price": pa.array([9]),
        "ratio": pa.array([1.5], pa.float32()),
        "name": pa.array(["cap"]).dictionary_encode(),
        "raw": pa.array([b"\x02"], pa.large_binary()),
        "day": pa.array([date(2024, 3, 1)], pa.date64()),
        "moment": pa.array([FITTING["moment"]], pa.timestamp("ms", "Europe/Paris")),
        "local": pa.array([FITTING["local"]], pa.timestamp("s")),
        "flag": pa.nulls(1),
    }
    root = copy(typed)
    with Warehouse.open(root, compaction=None) as wh, wh.commit() as commit:
        commit.state("main", {}, {"appended": arrow_rows(**kindred), "rewritten": arrow_rows(**kindred)})
    row = (7, 8, Decimal("9.00"), 1.5, "cap", b"\x02", date(2024, 3, 1), FITTING["moment"], FITTING["local"], None)
    for view in ("appended", "rewritten"):
        assert Stored(root).states(view)[1] == {row: 1, tuple(FITTING.values()): 1}


@pytest.mark.parametrize(
    ("expression", "column"),
    [
        ("CAST(128 AS INT)", "small"),
        ("CAST(2147483648 AS BIGINT)", "whole"),
        ("CAST(1.5 AS DOUBLE)", "whole"),
        ("'1'", "whole"),
        ("CAST(123456789 AS BIGINT)", "price"),
        ("CAST(1.001 AS DECIMAL(10, 3))", "price"),
        ("5", "name"),
        ("'2024-02-29'", "day"),
    ],
)
def test_a_column_of_spark_that_does_not_fit_is_refused(
    typed: Path, spark: "SparkSession", expression: str, column: str
) -> None:
    with Warehouse.open(copy(typed), spark, compaction=None) as wh:
        rows = wh.read("appended", weights=True).selectExpr(
            *(f"{expression} AS {name}" if name == column else name for name in TYPES), "_vk_weight"
        )
        error = refused(wh, BadDelta, "appended", rows)
        assert str(wh.path / "views" / "appended") in error.detail or "appended" in error.detail


def test_other_columns_are_refused(prepared: Path) -> None:
    row = ("id", "item")
    wrong = [("id",), ("id", "item", "more"), ("item", "id"), ("ID", "item"), ("id", "name")]
    with Warehouse.open(copy(prepared), compaction=None) as wh:
        for columns in wrong:
            error = refused(wh, BadDelta, "orders", MemoryZSet(columns, [((1,) * len(columns), 1)]), "shop")
            assert "the view has id, item" in error.hint
            refused(wh, BadDelta, "orders", pa.table({name: [1] for name in (*columns, "_vk_weight")}), "shop")
        for weightless in ({"id": [1], "item": ["a"]}, {"id": [1], "item": ["a"], "_vk_weight": pa.nulls(1)}):
            refused(wh, BadDelta, "orders", pa.table(weightless), "shop")
        refused(wh, BadDelta, "orders", pa.table({"id": [1], "item": ["a"], "_vk_weight": [0.5]}), "shop")
        assert row == tuple(ORDER_TYPES)


def test_unknown_views_and_groups_are_refused(prepared: Path) -> None:
    with Warehouse.open(copy(prepared), compaction=None) as wh:
        assert "orders" in refused(wh, UnknownView, "order", orders((1, "a")), "shop").hint
        assert "crm, shop" in refused(wh, UnknownView, "orders", orders((1, "a")), "shops").hint
        assert "group shop, not crm" in refused(wh, BadDelta, "orders", orders((1, "a")), "crm").detail
        for use in (wh.read, wh.states, lambda view: wh.changes(view, 0), lambda view: wh.compact(view)):
            with pytest.raises(UnknownView) as told:
                use("order")
            assert "orders" in told.value.hint


def test_a_row_that_is_not_there_cannot_be_deleted_from_a_rewritten_view(prepared: Path) -> None:
    with Warehouse.open(copy(prepared), compaction=None) as wh:
        before = image(wh.path)
        error = refused(wh, BadDelta, "totals", totals(minus=(("hat", 7),)), "shop")
        assert "'item': 'hat'" in error.detail
        assert "'total': 7" in error.detail
        assert "reload" in error.hint
        # Nor more often than it is there.
        refused(wh, BadDelta, "totals", MemoryZSet(("item", "total"), [(("ink", 1), -2)]), "shop")
        assert image(wh.path) == before
        make_small_commit(wh)


def test_a_load_with_a_negative_count_is_refused(prepared: Path) -> None:
    with Warehouse.open(copy(prepared), compaction=None) as wh:
        before = checksums(wh.path)
        for layout in ("appended", "rewritten"):
            with pytest.raises(BadDelta, match="negative count"), wh.commit() as commit:
                commit.create("new", ORDER_TYPES, rows=orders(minus=((1, "a"),)), group="shop", layout=layout)
            assert checksums(wh.path) == before


def test_a_refused_change_takes_nothing_of_its_state_with_it(prepared: Path) -> None:
    """A caller that goes on after the error has a commit without that state, not one with half of it."""
    with Warehouse.open(copy(prepared), compaction=None) as wh:
        before = image(wh.path)
        with wh.commit() as commit:
            with pytest.raises(BadDelta):
                commit.state("shop", {"shop": "9"}, {"orders": orders((1, "a")), "totals": orders((1, "b"))})
            with pytest.raises(UnknownView):
                commit.state("shop", {"shop": "9"}, {"orders": orders((1, "a")), "order": orders((1, "b"))})
        assert image(wh.path) == before


def test_an_error_in_the_block_drops_the_commit(prepared: Path) -> None:
    def fail_halfway(wh: Warehouse) -> None:
        with wh.commit() as commit:
            commit.drop("orders")
            commit.create("new", ORDER_TYPES, rows=orders((1, "a")), group="shop")
            commit.state("shop", {}, {"totals": totals(("hat", 1))})
            raise ZeroDivisionError

    with Warehouse.open(copy(prepared), compaction=None) as wh:
        before = checksums(wh.path)
        with pytest.raises(ZeroDivisionError):
            fail_halfway(wh)
        assert checksums(wh.path) == before


# --- names and types of views ---


def test_names_that_only_differ_by_case_are_one_name(prepared: Path) -> None:
    with Warehouse.open(copy(prepared), compaction=None) as wh:
        check_not_created(wh, "Orders", ORDER_TYPES, "'orders'")
        check_not_created(wh, "new", {"a": "INT", "A": "INT"}, "'a' and 'A'")
        with wh.commit() as commit:
            commit.drop("orders")
            commit.create("Orders", ORDER_TYPES, rows=orders((1, "a")), group="shop")
        assert "Orders" in wh.views
        assert "orders" not in wh.views


@pytest.mark.parametrize(
    "name",
    [
        "_vk_weight",
        "_vk_state",
        "_VK_Weight",
        "_vk_side_a",
        "",
        "a b",
        "a,b",
        "a;b",
        "a{b",
        "a(b",
        "a=b",
        "a\tb",
        "a\nb",
    ],
)
def test_reserved_and_impossible_names_of_columns_are_refused(prepared: Path, name: str) -> None:
    with Warehouse.open(copy(prepared), compaction=None) as wh:
        check_not_created(wh, "new", {name: "INT"}, repr(name))


@pytest.mark.parametrize(
    "type", ["ARRAY<INT>", "MAP<STRING, INT>", "STRUCT<a: INT>", "INTERVAL", "VARIANT", "VOID", "", "?"]
)
def test_types_that_cannot_be_stored_are_refused(prepared: Path, type: str) -> None:
    with Warehouse.open(copy(prepared), compaction=None) as wh:
        check_not_created(wh, "new", {"a": type}, "column a")


def check_not_created(wh: Warehouse, view: str, columns: dict[str, str], told: str) -> None:
    before = checksums(wh.path)
    with pytest.raises(DefinitionError) as refusal, wh.commit() as commit:
        commit.create(view, columns, group="shop")
    assert told in refusal.value.detail
    assert refusal.value.hint
    assert checksums(wh.path) == before


def test_other_mistakes_in_creating_a_view_are_refused(prepared: Path) -> None:
    attempts: list[tuple[type[ViewkeeperError], Callable[[Any], Any]]] = [
        (DefinitionError, lambda commit: commit.create("", ORDER_TYPES)),
        (DefinitionError, lambda commit: commit.create("new", {})),
        (DefinitionError, lambda commit: commit.create("new")),
        (DefinitionError, lambda commit: commit.create("new", ORDER_TYPES, layout="sideways")),
        (UsageError, lambda commit: commit.create("new", ORDER_TYPES, retention="a while")),
        (BadDelta, lambda commit: commit.create("new", ORDER_TYPES, group="shop", vector={"shop": "elsewhere"})),
        (UnknownView, lambda commit: commit.drop("new")),
    ]
    with Warehouse.open(copy(prepared), compaction=None) as wh:
        before = checksums(wh.path)
        for kind, attempt in attempts:
            with pytest.raises(kind) as told, wh.commit() as commit:
                attempt(commit)
            assert told.value.hint
            assert checksums(wh.path) == before


# --- states ---


def test_states_that_are_not_there_are_refused(prepared: Path, spark: "SparkSession") -> None:
    with Warehouse.open(copy(prepared), spark, compaction=None) as wh:
        for view in ("orders", "totals"):
            for ask in (
                lambda view: wh.read(view, 3),
                lambda view: wh.read(view, -1),
                lambda view: wh.changes(view, 3),
                lambda view: wh.changes(view, -1),
                lambda view: wh.changes(view, 0, 3),
                lambda view: wh.changes(view, 2, 1),
            ):
                with pytest.raises(StateGone) as told:
                    ask(view)
                assert view in told.value.detail
                assert told.value.hint
            assert wh.changes(view, 2).count() == 0
            assert wh.changes(view, 1, 1).count() == 0
