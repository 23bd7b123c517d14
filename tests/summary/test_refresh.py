"""Figure 8 line by line, and what algorithms for summary tables get wrong: counts, sums, NULLs, vanishing groups."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from viewkeeper.clock import seeded
from viewkeeper.summary.content import ArrowContent, Found
from viewkeeper.summary.node_shape import FromNode, Linear, NodeShape, Recomputed
from viewkeeper.summary.refresh import Figures, Refreshed, refresh

SALES = NodeShape("sales", ("store",), "n", (Linear("n_qty", "count"), Linear("qty", "sum", "n_qty")))
TYPES = {"store": pa.string(), "n": pa.int64(), "n_qty": pa.int64(), "qty": pa.int64()}
Row = tuple[Any, ...]


def table(*rows: Row, types: dict[str, pa.DataType] = TYPES) -> pa.Table:
    """Rows in the order of the columns."""
    return pa.Table.from_pylist([dict(zip(types, row, strict=True)) for row in rows], pa.schema(list(types.items())))


def rows(of: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in of.to_pylist()]


def refreshed(stored: list[Row], delta: list[Row], **options: Any) -> Refreshed:
    return refresh([SALES], {"sales": ArrowContent(table(*stored))}, {"sales": table(*delta)}, **options)["sales"]


def changed(answer: Refreshed) -> tuple[list[Row], list[Row]]:
    return rows(answer.before), rows(answer.after)


# Figure 8.


def test_if_t_is_not_found_insert() -> None:
    answer = refreshed([("a", 1, 1, 5)], [("b", 2, 1, 7)])
    assert changed(answer) == ([], [("b", 2, 1, 7)])
    assert answer.figures == Figures(inserted=1, updated=0, deleted=0, unchanged=0, recomputed=0)


def test_if_the_counts_add_up_to_0_delete_t() -> None:
    answer = refreshed([("a", 2, 1, 5), ("b", 1, 1, 1)], [("a", -2, -1, -5)])
    assert changed(answer) == ([("a", 2, 1, 5)], [])
    assert answer.figures == Figures(inserted=0, updated=0, deleted=1, unchanged=0, recomputed=0)


def test_otherwise_counts_and_sums_are_added() -> None:
    answer = refreshed([("a", 2, 1, 5), ("b", 1, 1, 1)], [("a", 1, 1, -3)])
    assert changed(answer) == ([("a", 2, 1, 5)], [("a", 3, 2, 2)])
    assert answer.figures == Figures(inserted=0, updated=1, deleted=0, unchanged=0, recomputed=0)


def test_if_the_counts_of_e_add_up_to_0_the_sum_is_null_and_the_count_is_not() -> None:
    assert changed(refreshed([("a", 2, 1, 5)], [("a", -1, -1, -5)])) == ([("a", 2, 1, 5)], [("a", 1, 0, None)])


# What else can go wrong.


def test_null_plus_x_is_x() -> None:
    assert changed(refreshed([("a", 1, 0, None)], [("a", 1, 1, 4)]))[1] == [("a", 2, 1, 4)]
    assert changed(refreshed([("a", 1, 1, 4)], [("a", 1, 0, None)]))[1] == [("a", 2, 1, 4)]
    assert changed(refreshed([("a", 1, 0, None)], [("a", 1, 0, None)]))[1] == [("a", 2, 0, None)]


def test_a_group_with_sums_of_0_stays() -> None:
    assert changed(refreshed([("a", 1, 1, 5)], [("a", 1, 1, -5)]))[1] == [("a", 2, 2, 0)]


def test_a_delta_row_for_an_absent_group_that_counts_nothing_is_not_inserted() -> None:
    for nothing in (("b", 0, 0, 0), ("b", 0, 0, None)):
        answer = refreshed([("a", 1, 1, 5)], [nothing])
        assert changed(answer) == ([], [])
        assert answer.figures.unchanged == 1


def test_a_row_that_is_what_it_was_is_left_out() -> None:
    answer = refreshed([("a", 1, 1, 5), ("b", 1, 0, None)], [("a", 0, 0, 0), ("b", 0, 0, None)])
    assert changed(answer) == ([], [])
    assert answer.figures == Figures(inserted=0, updated=0, deleted=0, unchanged=2, recomputed=0)


def test_an_update_that_changes_no_count_changes_the_sum() -> None:
    assert changed(refreshed([("a", 1, 1, 5)], [("a", 0, 0, 2)]))[1] == [("a", 1, 1, 7)]


def test_several_delta_rows_of_a_group_are_added_up_first() -> None:
    delta = [("a", -2, -2, -9), ("b", 1, 1, 1), ("a", 2, 1, 4), ("b", -1, -1, -1), ("c", 1, 1, 1), ("c", 1, 0, None)]
    answer = refreshed([("a", 2, 2, 9)], delta)
    assert changed(answer) == ([("a", 2, 2, 9)], [("a", 2, 1, 4), ("c", 2, 1, 1)])


def test_null_is_a_group_like_any_other() -> None:
    stored = [(None, 1, 1, 5), ("", 1, 1, 6)]
    assert changed(refreshed(stored, [(None, 1, 1, 1)])) == ([(None, 1, 1, 5)], [(None, 2, 2, 6)])
    assert changed(refreshed(stored, [(None, -1, -1, -5)])) == ([(None, 1, 1, 5)], [])
    assert changed(refreshed(stored[1:], [(None, 1, 1, 1)])) == ([], [(None, 1, 1, 1)])


def test_an_empty_delta_changes_nothing() -> None:
    answer = refreshed([("a", 1, 1, 5)], [])
    assert changed(answer) == ([], [])
    assert answer.before.schema == answer.after.schema == table().schema
    assert answer.optimizations == ()


def test_a_table_without_a_delta_is_left_out() -> None:
    assert refresh([SALES], {"sales": ArrowContent(table())}, {}) == {}


def test_the_first_rows_of_a_table() -> None:
    assert changed(refreshed([], [("a", 1, 1, 5)])) == ([], [("a", 1, 1, 5)])


# Without GROUP BY.

OF_ALL = NodeShape(
    "of_all",
    (),
    "n",
    (Linear("n_qty", "count"), Linear("qty", "sum", "n_qty")),
    (FromNode("kinds", "distinct", "values", (), "value"), FromNode("least", "min", "values", (), "value")),
    (Recomputed("most", "max", "n_qty", "inserted", "deleted"),),
)
VALUES = NodeShape("values", ("value",), "n", ())
ALL_TYPES = {name: pa.int64() for name in ("n", "n_qty", "qty", "kinds", "least", "most")}
ALL_DELTA = {name: pa.int64() for name in ("n", "n_qty", "qty", "inserted", "deleted")}
VALUE_TYPES = {name: pa.int64() for name in ("value", "n")}


def of_all(stored: list[Row], values: list[Row], delta: list[Row], value_delta: list[Row]) -> Refreshed:
    contents = {
        "of_all": ArrowContent(table(*stored, types=ALL_TYPES)),
        "values": ArrowContent(table(*values, types=VALUE_TYPES)),
    }
    deltas = {"of_all": table(*delta, types=ALL_DELTA), "values": table(*value_delta, types=VALUE_TYPES)}
    return refresh([OF_ALL, VALUES], contents, deltas)["of_all"]


def test_without_keys_the_only_row_outlives_its_rows() -> None:
    answer = of_all([(1, 1, 5, 1, 5, 5)], [(5, 1)], [(-1, -1, -5, None, 5)], [(5, -1)])
    assert changed(answer) == ([(1, 1, 5, 1, 5, 5)], [(0, 0, None, 0, None, None)])
    assert answer.figures == Figures(inserted=0, updated=1, deleted=0, unchanged=0, recomputed=1)


def test_without_keys_the_only_row_comes_back_to_life() -> None:
    answer = of_all([(0, 0, None, 0, None, None)], [], [(2, 1, 5, 5, None)], [(5, 1), (None, 1)])
    assert changed(answer) == ([(0, 0, None, 0, None, None)], [(2, 1, 5, 1, 5, 5)])


def test_without_keys_an_empty_table_gets_its_row() -> None:
    assert changed(of_all([], [], [], [])) == ([], [(0, 0, None, 0, None, None)])


# Exact numbers, and others.


def test_integers_are_exact_to_the_ends_of_their_range() -> None:
    top = 2**63 - 1
    assert changed(refreshed([("a", 1, 1, top - 1)], [("a", 1, 1, 1)]))[1] == [("a", 2, 2, top)]
    # On the way out of the range and back again.
    delta = [("a", 1, 1, top), ("a", 1, 1, top), ("a", -2, -2, -top)]
    assert changed(refreshed([("a", 3, 3, -top)], delta))[1] == [("a", 3, 3, 0)]


@pytest.mark.parametrize("digits", [38, 20])
def test_decimals_lose_no_digit(digits: int) -> None:
    shape = NodeShape("sales", ("store",), "n", (Linear("price", "sum"),))
    types = {"store": pa.string(), "n": pa.int64(), "price": pa.decimal128(digits, 2)}
    most, least = (Decimal(sign + "9" * (digits - 2) + ".99") for sign in "+-")
    # The sum of the delta alone is beyond what the type can hold.
    delta = table(("a", 1, most), ("a", 1, most), ("a", -1, least), ("a", 1, Decimal("0.01")), types=types)
    contents = {"sales": ArrowContent(table(("a", 1, least), types=types))}
    answer = refresh([shape], contents, {"sales": delta})["sales"]
    assert rows(answer.after) == [("a", 3, Decimal("0.01"))]
    assert answer.after.schema == answer.before.schema == table(types=types).schema


def test_a_delta_of_wider_types_becomes_the_tables() -> None:
    shape = NodeShape("sales", ("store",), "n", (Linear("price", "sum"), Linear("qty", "sum")))
    types = {"store": pa.string(), "n": pa.int32(), "price": pa.decimal128(10, 2), "qty": pa.decimal128(20, 0)}
    wider = {"store": pa.large_string(), "n": pa.int64(), "price": pa.decimal128(38, 4), "qty": pa.int64()}
    contents = {"sales": ArrowContent(table(("a", 1, Decimal("1.25"), Decimal(3)), types=types))}
    delta = table(("a", 1, Decimal("0.5000"), 4), ("b", 1, None, 1), types=wider)
    answer = refresh([shape], contents, {"sales": delta})["sales"]
    assert rows(answer.after) == [("a", 2, Decimal("1.75"), Decimal(7)), ("b", 1, Decimal("0.00"), Decimal(1))]
    assert answer.after.schema == table(types=types).schema


WEIGHTS = NodeShape(
    "weights", ("store",), "n", (Linear("n_weight", "count"), Linear("weight", "float_sum", "n_weight", "rest"))
)
WEIGHT_TYPES = {
    "store": pa.string(),
    "n": pa.int64(),
    "n_weight": pa.int64(),
    "weight": pa.float64(),
    "rest": pa.float64(),
}
WEIGHT_DELTA = {name: type for name, type in WEIGHT_TYPES.items() if name != "rest"}


def weighed(content: ArrowContent, *delta: Row) -> ArrowContent:
    answer = refresh([WEIGHTS], {"weights": content}, {"weights": table(*delta, types=WEIGHT_DELTA)})["weights"]
    return content.replaced(answer.before, answer.after, ("store",))


def test_floating_sums_keep_what_rounding_takes() -> None:
    content = ArrowContent(table(("a", 1, 1, 1e16, 0.0), types=WEIGHT_TYPES))
    for _ in range(10):
        content = weighed(content, ("a", 1, 1, 1.0))
    assert rows(content.table) == [("a", 11, 11, 1e16 + 10, 0.0)]
    content = weighed(content, ("a", 1, 1, 0.25))
    assert rows(content.table) == [("a", 12, 12, 1e16 + 10, 0.25)]
    content = weighed(content, ("a", -1, -1, -1e16))
    assert rows(content.table) == [("a", 11, 11, 10.25, 0.0)]


def test_floating_sums_do_not_drift() -> None:
    rng = seeded(7)
    content = ArrowContent(table(("a", 1, 1, 0.1, 0.0), types=WEIGHT_TYPES))
    for _ in range(60):
        value = rng.uniform(-1, 1) * 10.0 ** rng.randrange(-8, 12)
        content = weighed(content, ("a", 1, 1, value))
        content = weighed(content, ("a", -1, -1, -value))
    assert rows(content.table)[0][3] == pytest.approx(0.1, abs=1e-16)


def test_a_floating_sum_of_nothing_is_null_and_forgets_its_rest() -> None:
    content = ArrowContent(table(("a", 2, 1, 0.3, 1e-17), types=WEIGHT_TYPES))
    content = weighed(content, ("a", -1, -1, -0.1))
    assert rows(content.table) == [("a", 1, 0, None, None)]
    assert rows(weighed(content, ("a", 1, 1, 0.5)).table) == [("a", 2, 1, 0.5, 0.0)]
    assert weighed(content, ("a", -1, 0, None)).rows == 0


def test_an_infinite_sum_is_infinite() -> None:
    content = weighed(ArrowContent(table(("a", 1, 1, 1.5, 0.0), types=WEIGHT_TYPES)), ("a", 1, 1, float("inf")))
    assert rows(content.table) == [("a", 2, 2, float("inf"), 0.0)]
    assert rows(weighed(content, ("a", 1, 1, 2.0)).table) == [("a", 3, 3, float("inf"), 0.0)]


def test_a_sum_that_was_loaded_without_a_rest_is_unchanged_by_nothing() -> None:
    content = ArrowContent(table(("a", 1, 1, 1.5, None), types=WEIGHT_TYPES))
    delta = table(("a", 0, 0, 0.0), types=WEIGHT_DELTA)
    assert changed(refresh([WEIGHTS], {"weights": content}, {"weights": delta})["weights"]) == ([], [])


# Section 4.3.


def test_insert_only() -> None:
    assert refreshed([("a", 1, 1, 5)], [("a", 1, 0, None)]).optimizations == ("insert-only",)
    assert refreshed([("a", 3, 2, 5)], [("a", -1, -1, -1)]).optimizations == ()
    assert refreshed([("a", 3, 2, 5)], [("a", 1, 0, None), ("a", -1, 0, None)]).optimizations == ()
    # What an update deletes and what it inserts cancel out in the counts.
    assert refreshed([("a", 3, 2, 5)], [("a", 0, 0, 3)]).optimizations == ()


def test_new_groups_only() -> None:
    answer = refreshed([("a", 1, 1, 5), ("c", 1, 1, 5)], [("d", 1, 1, 1), (None, 1, 1, 1)])
    assert answer.optimizations == ("insert-only", "new groups only")
    assert [row[0] for row in rows(answer.after)] == ["d", None]


def test_usually_new_groups() -> None:
    answer = refreshed([("a", 1, 1, 5), ("c", 1, 1, 5)], [("c", -1, -1, -5), ("d", 1, 1, 1), ("e", 1, 1, 1)])
    assert answer.optimizations == ("usually new groups",)
    assert [row[0] for row in rows(answer.after)] == ["d", "e"]
    assert answer.figures.deleted == 1


class Unranged:
    """Content that knows nothing but its rows."""

    def __init__(self, of: pa.Table) -> None:
        self._content = ArrowContent(of)
        self.asked: list[int] = []

    @property
    def rows(self) -> int:
        return self._content.rows

    def find(self, columns: tuple[str, ...], values: pa.Table) -> Found:
        self.asked.append(values.num_rows)
        return self._content.find(columns, values)


def test_content_without_ranges_is_asked_for_every_group_once() -> None:
    content = Unranged(table(("a", 1, 1, 5)))
    delta = table(("a", 1, 1, 1), ("z", 1, 1, 1), ("a", 1, 1, 1))
    answer = refresh([SALES], {"sales": content}, {"sales": delta})["sales"]
    assert rows(answer.after) == [("a", 3, 3, 7), ("z", 1, 1, 1)]
    assert content.asked == [2]
    assert answer.optimizations == ("insert-only",)


# Many tables, many groups.


def test_answers_are_in_the_order_of_the_shapes() -> None:
    deltas = {"values": table((1, 1), types=VALUE_TYPES), "of_all": table((1, 1, 1, 1, None), types=ALL_DELTA)}
    contents = {"values": ArrowContent(table(types=VALUE_TYPES)), "of_all": ArrowContent(table(types=ALL_TYPES))}
    assert list(refresh([OF_ALL, VALUES], contents, deltas)) == ["of_all", "values"]


def test_groups_by_the_thousand_keep_their_own_numbers() -> None:
    """Arrow hands out groups in an order of its own once there are many."""
    shape = NodeShape("sales", ("day", "store"), "n", (Linear("qty", "sum"),))
    types = {"day": pa.int32(), "store": pa.string(), "n": pa.int64(), "qty": pa.int64()}
    groups = [(day, f"store {number % 61}{chr(0) * (number % 3)}") for day in range(50) for number in range(183)]
    groups = sorted(set(groups))
    seeded(3).shuffle(groups)
    stored = [(*group, 1, place) for place, group in enumerate(groups)]
    touched = stored[::2]
    delta = [(day, store, 1, 7) for day, store, _, _ in reversed(touched)]
    contents = {"sales": ArrowContent(table(*stored, types=types))}
    answer = refresh([shape], contents, {"sales": table(*delta, types=types)})["sales"]
    assert sorted(rows(answer.before)) == sorted(touched)
    assert sorted(rows(answer.after)) == sorted((day, store, 2, qty + 7) for day, store, _, qty in touched)
