"""Numbers that cannot be: the refresh stops, names table, group and numbers, and gives no answer for any table."""

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from viewkeeper.errors import CorruptChange, UsageError, ViewkeeperError, WarehouseError
from viewkeeper.summary.content import ArrowContent
from viewkeeper.summary.node_shape import FromNode, Linear, NodeShape, Recomputed
from viewkeeper.summary.refresh import refresh

SALES = NodeShape(
    "sales",
    ("store", "day"),
    "n",
    (Linear("n_qty", "count"), Linear("qty", "sum", "n_qty"), Linear("weight", "float_sum", "n_qty", "rest")),
)
SCHEMA = pa.schema(
    [
        ("store", pa.string()),
        ("day", pa.date32()),
        ("n", pa.int64()),
        ("n_qty", pa.int64()),
        ("qty", pa.int64()),
        ("weight", pa.float64()),
        ("rest", pa.float64()),
    ]
)
DAY = date(2024, 2, 29)


def table(*rows: tuple[Any, ...]) -> pa.Table:
    """Rows of n, n_qty, qty, weight for one group."""
    names = SCHEMA.names
    return pa.Table.from_pylist([dict(zip(names, ("a", DAY, *row, 0.0), strict=True)) for row in rows], SCHEMA)


def refused(stored: pa.Table, delta: pa.Table, kind: type[ViewkeeperError] = CorruptChange) -> ViewkeeperError:
    with pytest.raises(kind) as told:
        refresh([SALES], {"sales": ArrowContent(stored)}, {"sales": delta.drop_columns("rest")})
    assert told.value.hint
    return told.value


@pytest.mark.parametrize(
    ("stored", "change", "told"),
    [
        ([(2, 1, 5, 0.5)], (-3, 0, 0, 0.0), "n would be -1, below 0 (stored 2, changed by -3)"),
        ([], (-1, 0, 0, 0.0), "n would be -1, below 0 (stored 0, changed by -1)"),
        ([(2, 1, 5, 0.5)], (0, -2, 0, 0.0), "n_qty would be -1, below 0 (stored 1, changed by -2)"),
        ([(2, 2, 5, 0.5)], (-1, 0, 0, 0.0), "n_qty would be 2, more than n (stored 2, changed by 0)"),
        ([], (0, 1, 0, 0.0), "n_qty would be 1, more than n (stored 0, changed by 1)"),
        ([(1, 1, 5, 0.5)], (-1, -1, -4, 0.0), "qty would be 1, a sum of no values (stored 5, changed by -4)"),
        ([(2, 1, 5, 0.5)], (-1, -1, -4, 0.0), "qty would be 1, a sum of no values (stored 5, changed by -4)"),
        ([], (0, 0, 3, 0.0), "qty would be 3, a sum of no values (stored 0, changed by 3)"),
    ],
)
def test_corruption_is_named(stored: list[tuple[Any, ...]], change: tuple[Any, ...], told: str) -> None:
    error = refused(table(*stored), table(change))
    assert error.detail == f"summary table sales, group store = 'a', day = 2024-02-29: {told}"
    assert isinstance(error, WarehouseError)
    assert error.code == "corrupt-change"
    assert "nothing was changed" in error.hint


def test_a_floating_sum_of_nothing_is_rounding_and_no_corruption() -> None:
    stored, delta = table((1, 1, 5, 0.3)), table((-1, -1, -5, -0.1))
    answer = refresh([SALES], {"sales": ArrowContent(stored)}, {"sales": delta.drop_columns("rest")})["sales"]
    assert answer.figures.deleted == 1


def test_a_null_group_is_named() -> None:
    delta = pa.Table.from_pylist([{"n": -1}], SCHEMA)
    assert "group store = NULL, day = NULL: n would be -1" in refused(table(), delta).detail


def test_the_group_that_is_wrong_is_named_among_many() -> None:
    rows = [{"store": f"s{number}", "n": 1 - 2 * (number == 700), "n_qty": 0} for number in range(1000)]
    assert "group store = 's700', day = NULL" in refused(table(), pa.Table.from_pylist(rows, SCHEMA)).detail


def test_an_error_in_one_table_leaves_no_answer_for_another() -> None:
    other = NodeShape("other", ("store",), "n", ())
    schema = pa.schema([("store", pa.string()), ("n", pa.int64())])
    good, bad = (pa.Table.from_pylist([{"store": "a", "n": n}], schema) for n in (1, -1))
    contents = {name: ArrowContent(schema.empty_table()) for name in ("sales", "other")}
    shapes = [NodeShape("sales", ("store",), "n", ()), other]
    with pytest.raises(CorruptChange, match="other"):
        refresh(shapes, contents, {"sales": good, "other": bad})


def test_an_integer_sum_that_overflows_is_refused() -> None:
    error = refused(table((1, 1, 2**63 - 1, 0.0)), table((1, 1, 1, 0.0)), ViewkeeperError)
    assert error.code == "overflow"
    assert "group store = 'a', day = 2024-02-29: qty would be 9223372036854775808" in error.detail
    assert "CAST" in error.hint
    assert "DECIMAL" in error.hint


def test_a_decimal_sum_that_overflows_is_refused() -> None:
    shape = NodeShape("sales", ("store",), "n", (Linear("price", "sum"),))
    for digits in (38, 6):
        schema = pa.schema([("store", pa.string()), ("n", pa.int64()), ("price", pa.decimal128(digits, 2))])
        most = Decimal("9" * (digits - 2) + ".99")
        stored, delta = (
            pa.Table.from_pylist([{"store": "a", "n": 1, "price": price}], schema) for price in (most, Decimal("0.01"))
        )
        with pytest.raises(ViewkeeperError, match=r"price would be 10+\.00, which decimal") as told:
            refresh([shape], {"sales": ArrowContent(stored)}, {"sales": delta})
        assert told.value.code == "overflow"


def test_digits_that_the_table_cannot_hold_are_refused() -> None:
    shape = NodeShape("sales", (), "n", (Linear("price", "sum"),))
    stored = pa.table({"n": [1], "price": pa.array([Decimal("1.00")], pa.decimal128(6, 2))})
    delta = pa.table({"n": [1], "price": pa.array([Decimal("0.005")], pa.decimal128(6, 3))})
    with pytest.raises(ViewkeeperError, match=r"summary table sales: price would be 1.005, which decimal128\(6, 2\)"):
        refresh([shape], {"sales": ArrowContent(stored)}, {"sales": delta})


def test_more_distinct_values_that_go_than_there_are() -> None:
    shapes = [
        NodeShape("sales", ("store",), "n", (), (FromNode("kinds", "distinct", "values", ("store",), "value"),)),
        NodeShape("values", ("store", "value"), "n", ()),
    ]
    contents = {
        "sales": ArrowContent(pa.table({"store": ["a"], "n": [2], "kinds": [0]})),
        "values": ArrowContent(pa.table({"store": ["a"], "value": [5], "n": [1]})),
    }
    deltas = {
        "sales": pa.table({"store": ["a"], "n": [-1]}),
        "values": pa.table({"store": ["a"], "value": [5], "n": [-1]}),
    }
    with pytest.raises(CorruptChange, match="kinds would be -1, below 0"):
        refresh(shapes, contents, deltas)


LOWEST = NodeShape(
    "lowest", ("store",), "n", (Linear("n_e", "count"),), (), (Recomputed("low", "min", "n_e", "i", "d"),)
)


def lowest(recompute: Any) -> None:
    stored = pa.table({"store": ["a"], "n": [2], "n_e": [2], "low": [1]})
    delta = pa.table({"store": ["a"], "n": [-1], "n_e": [-1], "i": pa.array([None], pa.int64()), "d": [1]})
    refresh([LOWEST], {"lowest": ArrowContent(stored)}, {"lowest": delta}, recompute=recompute)


def test_nothing_to_recompute_from() -> None:
    with pytest.raises(UsageError, match="deleted from lowest"):
        lowest(None)


def test_a_recomputation_that_finds_no_value_for_what_is_counted() -> None:
    schema = pa.schema([("store", pa.string()), ("low", pa.int64())])
    for found in ([], [{"store": "b", "low": 1}], [{"store": "a", "low": None}]):
        answer = {"lowest": pa.Table.from_pylist(found, schema)}
        with pytest.raises(CorruptChange, match=r"group store = 'a': .* has no value, though n_e is 1"):
            lowest(lambda groups, answer=answer: answer)


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (lambda: Linear("x", "sum", "n", "rest"), "float_sum"),
        (lambda: Linear("x", "float_sum", "n"), "float_sum"),
        (lambda: Linear("x", "count", "n"), "never NULL"),
        (lambda: NodeShape("t", ("k",), "n", (Linear("k", "count"),)), "more than one column is called k"),
        (lambda: NodeShape("t", ("k",), "n", (Linear("x", "sum", "m"),)), "no count is called m"),
        (lambda: NodeShape("t", (), "n", (), (), (Recomputed("x", "min", "m", "i", "d"),)), "no count is called m"),
        (lambda: NodeShape("t", ("k",), "n", (), (FromNode("x", "min", "h", (), "e"),)), "needs a key for each"),
    ],
)
def test_a_shape_that_makes_no_sense(broken: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        broken()
