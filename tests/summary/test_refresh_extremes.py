"""MIN, MAX and COUNT(DISTINCT e): from a hidden node, and recomputed as in the paper."""

import struct
from collections.abc import Mapping
from datetime import date
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from viewkeeper.summary.content import ArrowContent, Found
from viewkeeper.summary.node_shape import FromNode, Linear, NodeShape, Recomputed
from viewkeeper.summary.refresh import Refreshed, refresh

Row = tuple[Any, ...]


def table(types: dict[str, pa.DataType], rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(types, row, strict=True)) for row in rows], pa.schema(list(types.items())))


def rows(of: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in of.to_pylist()]


class Counted:
    """Content that remembers how many groups were looked up each time, and knows of no ranges that spare a lookup."""

    def __init__(self, of: pa.Table) -> None:
        self._content = ArrowContent(of)
        self.asked: list[int] = []

    @property
    def rows(self) -> int:
        return self._content.rows

    def find(self, columns: tuple[str, ...], values: pa.Table) -> Found:
        self.asked.append(values.num_rows)
        return self._content.find(columns, values)

    def best(self, columns: tuple[str, ...], values: pa.Table, *_: object) -> Found:
        return self.find(columns, values)


# From a hidden node.

KEPT = NodeShape(
    "kept",
    ("store",),
    "n",
    (),
    tuple(
        FromNode(column, function, "values", ("shop",), "value")
        for column, function in (("least", "min"), ("most", "max"), ("kinds", "distinct"))
    ),
)
VALUES = NodeShape("values", ("shop", "value"), "n", ())
KEPT_TYPES = {name: pa.int64() for name in ("store", "n", "least", "most", "kinds")}
VALUE_TYPES = {name: pa.int64() for name in ("shop", "value", "n")}


class Node:
    """A table and its hidden node; store 1 has the values 3, 5, 5 and NULL, store 2 has 7."""

    def __init__(self) -> None:
        self.values = Counted(table(VALUE_TYPES, [(1, 3, 1), (1, 5, 2), (1, None, 1), (2, 7, 1)]))
        self.kept = Counted(table(KEPT_TYPES, [(1, 4, 3, 5, 2), (2, 1, 7, 7, 1)]))

    def refresh(self, delta: list[Row], values: list[Row]) -> Refreshed:
        types = {name: pa.int64() for name in ("store", "n")}
        return refresh(
            [KEPT, VALUES],
            {"kept": self.kept, "values": self.values},
            {"kept": table(types, delta), "values": table(VALUE_TYPES, values)},
        )["kept"]


def test_a_new_value_that_is_no_extreme_changes_the_distinct_count_alone() -> None:
    assert rows(Node().refresh([(1, 1)], [(1, 4, 1)]).after) == [(1, 5, 3, 5, 3)]


def test_a_value_that_is_there_already_changes_no_distinct_count() -> None:
    assert rows(Node().refresh([(1, 1)], [(1, 5, 1)]).after) == [(1, 5, 3, 5, 2)]


def test_new_extremes_are_taken_without_a_lookup() -> None:
    node = Node()
    answer = node.refresh([(1, 2)], [(1, 1, 1), (1, 9, 1)])
    assert rows(answer.after) == [(1, 6, 1, 9, 4)]
    assert node.values.asked == [2]
    assert answer.optimizations == ("insert-only",)
    assert answer.figures.recomputed == 0


def test_a_deleted_extreme_is_found_in_the_hidden_node() -> None:
    node = Node()
    answer = node.refresh([(1, -1)], [(1, 3, -1)])
    assert rows(answer.after) == [(1, 3, 5, 5, 1)]
    assert answer.figures.recomputed == 1
    # One lookup for the node's own refresh, one for the group that lost its minimum.
    assert node.values.asked == [1, 1]


def test_an_extreme_that_is_deleted_once_and_there_twice_stays() -> None:
    node = Node()
    answer = node.refresh([(1, -1)], [(1, 5, -1)])
    assert rows(answer.after) == [(1, 3, 3, 5, 2)]
    assert node.values.asked == [1]


def test_a_deleted_extreme_that_is_undercut_needs_no_lookup() -> None:
    node = Node()
    answer = node.refresh([(1, 0)], [(1, 3, -1), (1, 2, 1)])
    assert rows(answer.after) == [(1, 4, 2, 5, 2)]
    assert node.values.asked == [2]


def test_a_deleted_extreme_with_a_lesser_insertion_is_looked_up_with_the_changes() -> None:
    assert rows(Node().refresh([(1, 0)], [(1, 3, -1), (1, 4, 1)]).after) == [(1, 4, 4, 5, 2)]
    assert rows(Node().refresh([(1, -2)], [(1, 3, -1), (1, 5, -2), (1, 4, 1)]).after) == [(1, 2, 4, 4, 1)]


def test_a_hidden_node_that_changes_alone_changes_the_table() -> None:
    """An update of e from 3 to 4: the table's own counts change by 0, or it has no delta row at all."""
    for delta in ([(1, 0)], []):
        answer = Node().refresh(delta, [(1, 3, -1), (1, 4, 1)])
        assert rows(answer.before) == [(1, 4, 3, 5, 2)]
        assert rows(answer.after) == [(1, 4, 4, 5, 2)]


def test_a_hidden_node_may_change_without_a_delta_of_the_table() -> None:
    node = Node()
    deltas = {"values": table(VALUE_TYPES, [(1, 3, -1), (1, 4, 1)])}
    answer = refresh([KEPT, VALUES], {"kept": node.kept, "values": node.values}, deltas)
    assert rows(answer["kept"].after) == [(1, 4, 4, 5, 2)]


def test_nor_without_a_delta_of_a_table_that_is_recomputed_too() -> None:
    both = NodeShape(
        "both",
        ("store",),
        "n",
        (Linear("n_e", "count"), Linear("sum", "float_sum", "n_e", "rest")),
        (FromNode("least", "min", "values", ("shop",), "value"),),
        (Recomputed("last", "max", "n_e", "inserted", "deleted"),),
    )
    numbers = {"n": [4], "n_e": [4], "sum": [1.5], "rest": [0.0], "least": [3]}
    content = ArrowContent(pa.table({"store": [1], **numbers, "last": pa.array([date(2024, 2, 29)])}))
    deltas = {"values": table(VALUE_TYPES, [(1, 3, -1), (1, 4, 1)])}
    answer = refresh([both, VALUES], {"both": content, "values": Node().values}, deltas)["both"]
    assert rows(answer.after) == [(1, 4, 4, 1.5, 0.0, 4, date(2024, 2, 29))]


def test_a_group_that_only_the_hidden_node_knows_is_not_inserted() -> None:
    answer = Node().refresh([(1, 1)], [(1, 5, 1), (9, 5, 1)])
    assert rows(answer.after) == [(1, 5, 3, 5, 2)]
    assert answer.figures.unchanged == 1


def test_nulls_count_in_nothing() -> None:
    assert rows(Node().refresh([(1, 1)], [(1, None, 1)]).after) == [(1, 5, 3, 5, 2)]
    assert rows(Node().refresh([(1, -1)], [(1, None, -1)]).after) == [(1, 3, 3, 5, 2)]
    assert rows(Node().refresh([(3, 1)], [(3, None, 1)]).after) == [(3, 1, None, None, 0)]


def test_without_values_the_extremes_are_null_and_the_distinct_count_is_0() -> None:
    assert rows(Node().refresh([(1, -3)], [(1, 3, -1), (1, 5, -2)]).after) == [(1, 1, None, None, 0)]


def test_the_extremes_of_a_new_group() -> None:
    answer = Node().refresh([(3, 3)], [(3, 8, 2), (3, 6, 1)])
    assert rows(answer.after) == [(3, 3, 6, 8, 2)]


def test_a_group_that_goes_is_not_looked_up() -> None:
    node = Node()
    answer = node.refresh([(2, -1)], [(2, 7, -1)])
    assert (rows(answer.before), rows(answer.after)) == ([(2, 1, 7, 7, 1)], [])
    assert node.values.asked == [1]


def test_all_groups_that_lost_an_extreme_are_looked_up_at_once() -> None:
    node = Node()
    node.refresh([(1, -1), (2, 0)], [(1, 3, -1), (2, 7, -1), (2, None, 1)])
    assert node.values.asked == [3, 2]


def test_a_hidden_node_without_a_delta_leaves_what_is_derived_from_it() -> None:
    node = Node()
    deltas = {"kept": pa.table({"store": [1, 4], "n": [1, 1]})}
    for shapes in ([KEPT, VALUES], [KEPT]):
        answer = refresh(shapes, {"kept": node.kept, "values": node.values}, deltas)
        assert rows(answer["kept"].after) == [(1, 5, 3, 5, 2), (4, 1, None, None, 0)]
        assert list(answer) == ["kept"]


def test_a_hidden_node_that_is_grouped_by_more_columns() -> None:
    """A value that appears in one city, and is in another already, is not new to the store; nor gone with the first."""
    finer = NodeShape("values", ("shop", "city", "value"), "n", ())
    types = {name: pa.int64() for name in ("shop", "city", "value", "n")}

    def refreshed(*changes: Row) -> list[Row]:
        stored = table(types, [(1, 10, 3, 1), (1, 20, 3, 1), (1, 20, 5, 1)])
        contents = {"kept": ArrowContent(table(KEPT_TYPES, [(1, 3, 3, 5, 2)])), "values": ArrowContent(stored)}
        count = sum(change[-1] for change in changes)
        deltas = {"kept": pa.table({"store": [1], "n": [count]}), "values": table(types, list(changes))}
        return rows(refresh([KEPT, finer], contents, deltas)["kept"].after)

    assert refreshed((1, 10, 5, 1)) == [(1, 4, 3, 5, 2)]
    assert refreshed((1, 10, 3, -1)) == [(1, 2, 3, 5, 2)]
    assert refreshed((1, 10, 3, -1), (1, 20, 3, -1)) == [(1, 1, 5, 5, 1)]
    assert refreshed((1, 10, 3, -1), (1, 20, 5, -1)) == [(1, 1, 3, 3, 1)]
    assert refreshed((1, 10, 9, 1), (1, 20, 9, 1)) == [(1, 5, 3, 9, 3)]
    assert refreshed((1, 10, 5, 1), (1, 20, 5, -1), (1, 30, 1, 1)) == [(1, 4, 1, 5, 3)]


def test_nan_is_one_value_whatever_its_bits() -> None:
    nans = [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8000000000000, 0xFFF8000000000001)]
    kept = {"store": pa.int64(), "n": pa.int64(), "least": pa.float64(), "most": pa.float64(), "kinds": pa.int64()}
    values = {"shop": pa.int64(), "value": pa.float64(), "n": pa.int64()}
    for stored, deleted in ((0, 0), (0, 1), (1, 0), (1, 1)):
        contents = {
            "kept": ArrowContent(table(kept, [(1, 2, 3.0, nans[0], 2)])),
            "values": ArrowContent(table(values, [(1, 3.0, 1), (1, nans[stored], 1)])),
        }
        deltas = {"kept": pa.table({"store": [1], "n": [-1]}), "values": table(values, [(1, nans[deleted], -1)])}
        assert rows(refresh([KEPT, VALUES], contents, deltas)["kept"].after) == [(1, 1, 3.0, 3.0, 1)]


# Recomputed.

LOWEST = NodeShape(
    "lowest",
    ("store",),
    "n",
    (Linear("n_e", "count"),),
    recomputed=(
        Recomputed("low", "min", "n_e", "low_in", "low_out"),
        Recomputed("high", "max", "n_e", "high_in", "high_out"),
    ),
)
LOWEST_TYPES = {name: pa.int64() for name in ("store", "n", "n_e", "low", "high")}
LOWEST_DELTA = {name: pa.int64() for name in ("store", "n", "n_e", "low_in", "low_out", "high_in", "high_out")}


class Asked:
    """Recomputation from a given answer, which remembers what it was asked."""

    def __init__(self, *answer: Row) -> None:
        self.answer = answer
        self.calls: list[Mapping[str, pa.Table]] = []

    def __call__(self, groups: Mapping[str, pa.Table]) -> Mapping[str, pa.Table]:
        self.calls.append(groups)
        types = {name: pa.int64() for name in ("store", "low", "high")}
        return {
            name: table(types, [row for row in self.answer if (row[0],) in rows(keys)]) for name, keys in groups.items()
        }

    @property
    def groups(self) -> list[Row]:
        return [row for call in self.calls for keys in call.values() for row in rows(keys)]


def recomputed(stored: list[Row], delta: list[Row], asked: Asked) -> Refreshed:
    contents = {"lowest": ArrowContent(table(LOWEST_TYPES, stored))}
    return refresh([LOWEST], contents, {"lowest": table(LOWEST_DELTA, delta)}, recompute=asked)["lowest"]


STORED = [(1, 4, 3, 10, 20)]


@pytest.mark.parametrize(
    ("change", "after"),
    [
        # n, n_e, then what was inserted and deleted: for MIN, for MAX
        pytest.param((1, 1, 5, None, 5, None), (1, 5, 4, 5, 20), id="a lower value is inserted"),
        pytest.param((1, 1, 25, None, 25, None), (1, 5, 4, 10, 25), id="a higher value is inserted"),
        pytest.param((1, 0, None, None, None, None), (1, 5, 3, 10, 20), id="a NULL is inserted"),
        pytest.param((-1, -1, None, 15, None, 15), (1, 3, 2, 10, 20), id="a value in between is deleted"),
        pytest.param((0, 0, 9, 10, 9, 10), (1, 4, 3, 9, 20), id="the minimum is deleted and undercut"),
        pytest.param((0, 0, 21, 20, 21, 20), (1, 4, 3, 10, 21), id="the maximum is deleted and outdone"),
        pytest.param((-1, 0, 10, 10, 10, 10), (1, 3, 3, 10, 20), id="the minimum is deleted and inserted again"),
        pytest.param((-3, -3, None, 10, None, 20), (1, 1, 0, None, None), id="if COUNT(e) becomes 0 it is NULL"),
    ],
)
def test_extremes_that_are_known(change: Row, after: Row) -> None:
    asked = Asked()
    assert rows(recomputed(STORED, [(1, *change)], asked).after) == [after]
    assert asked.calls == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param((-1, -1, None, 10, None, 10), id="the minimum is deleted"),
        pytest.param((-1, -1, None, 20, None, 20), id="the maximum is deleted"),
        pytest.param((0, 0, 12, 10, 12, 10), id="the minimum is deleted, and a greater value inserted"),
        pytest.param((0, 0, 9, 10, 9, 20), id="the maximum is deleted, and a lesser value inserted"),
    ],
)
def test_extremes_that_are_recomputed(change: Row) -> None:
    asked = Asked((1, 11, 19))
    answer = recomputed(STORED, [(1, *change)], asked)
    assert rows(answer.after) == [(1, 4 + change[0], 3 + change[1], 11, 19)]
    assert asked.groups == [(1,)]
    assert answer.figures.recomputed == 1
    assert answer.optimizations == ("weakly minimal",)


def test_an_update_that_inserts_no_new_number_may_still_delete_the_extreme() -> None:
    """Counts and sums of 0 are no reason to drop a delta row."""
    asked = Asked((1, 12, 20))
    assert rows(recomputed(STORED, [(1, 0, 0, 12, 10, 12, 10)], asked).after) == [(1, 4, 3, 12, 20)]


def test_a_group_that_goes_is_not_recomputed() -> None:
    asked = Asked()
    answer = recomputed(STORED, [(1, -4, -3, None, 10, None, 20)], asked)
    assert (answer.figures.deleted, asked.calls) == (1, [])


def test_insertions_alone_never_recompute() -> None:
    asked = Asked()
    answer = recomputed(STORED, [(1, 1, 1, 3, None, 3, None), (2, 1, 1, 8, None, 8, None)], asked)
    assert rows(answer.after) == [(1, 5, 4, 3, 20), (2, 1, 1, 8, 8)]
    assert answer.optimizations == ("insert-only",)
    assert asked.calls == []


def test_an_update_is_no_insertion() -> None:
    """No number of the delta is negative, and yet the minimum is gone."""
    asked = Asked((1, 11, 25))
    answer = recomputed(STORED, [(1, 1, 1, 25, 10, 25, 10)], asked)
    assert rows(answer.after) == [(1, 5, 4, 11, 25)]
    assert "insert-only" not in answer.optimizations


def test_a_group_that_is_new_to_the_table_and_has_deletions_is_recomputed() -> None:
    """Not weakly minimal: the row with the least value was inserted and deleted again."""
    asked = Asked((2, 8, 9))
    answer = recomputed(STORED, [(2, 1, 1, 5, 5, 9, 5)], asked)
    assert rows(answer.after) == [(2, 1, 1, 8, 9)]
    assert asked.groups == [(2,)]
    assert "weakly minimal" not in answer.optimizations


def test_a_group_that_is_new_to_the_table_and_undercuts_its_deletions_is_not() -> None:
    asked = Asked()
    assert rows(recomputed(STORED, [(2, 1, 1, 4, 5, 9, 5)], asked).after) == [(2, 1, 1, 4, 9)]
    assert asked.calls == []


def test_deletions_below_the_minimum_make_the_general_test() -> None:
    """A value of 5 came and went in one batch: that 5 was inserted does not mean that it is there."""
    asked = Asked((1, 10, 20))
    answer = recomputed(STORED, [(1, 0, 0, 5, 5, 5, 5)], asked)
    assert answer.after.num_rows == 0
    assert asked.groups == [(1,)]
    assert answer.optimizations == ()


def test_several_delta_rows_give_one_extreme() -> None:
    asked = Asked()
    delta = [(1, 1, 1, 8, None, 8, None), (1, 1, 1, 30, None, 30, None), (1, -1, -1, None, 15, None, 15)]
    assert rows(recomputed(STORED, delta, asked).after) == [(1, 5, 4, 8, 30)]
    assert asked.calls == []


def test_all_groups_of_all_tables_are_recomputed_in_one_call() -> None:
    other = NodeShape("other", LOWEST.keys, LOWEST.count, LOWEST.linear, (), LOWEST.recomputed)
    stored = table(LOWEST_TYPES, [*STORED, (2, 2, 2, 1, 2), (3, 2, 2, 1, 9)])
    gone = [(1, -1, -1, None, 10, None, 10), (2, -1, -1, None, 1, None, 1), (3, -1, -1, None, 5, None, 5)]
    asked = Asked((1, 11, 20), (2, 2, 2))
    deltas = {"lowest": table(LOWEST_DELTA, gone), "other": table(LOWEST_DELTA, gone[1:])}
    contents = {"lowest": ArrowContent(stored), "other": ArrowContent(stored)}
    answer = refresh([LOWEST, other], contents, deltas, recompute=asked)
    assert [{name: rows(keys) for name, keys in call.items()} for call in asked.calls] == [
        {"lowest": [(1,), (2,)], "other": [(2,)]}
    ]
    assert rows(answer["lowest"].after) == [(1, 3, 2, 11, 20), (2, 1, 1, 2, 2), (3, 1, 1, 1, 9)]
    assert rows(answer["other"].after) == [(2, 1, 1, 2, 2), (3, 1, 1, 1, 9)]


def test_the_order_is_that_of_spark() -> None:
    """NaN is greater than infinity; a string is what its UTF-8 bytes are, not its UTF-16 units; false < true."""
    nan = float("nan")
    orders: list[tuple[pa.DataType, list[Any]]] = [
        (pa.float64(), [float("-inf"), -1.0, 0.0, float("inf"), nan]),
        (pa.string(), ["", "Z", "a", "é", "\uffff", "\U0001f600"]),
        (pa.bool_(), [False, True]),
        (pa.binary(), [b"", b"\x00", b"\x7f", b"\x80"]),
    ]
    shape = NodeShape("lowest", (), "n", (Linear("n_e", "count"),), (), LOWEST.recomputed)
    for type, ascending in orders:
        for less, more in pairwise(ascending):
            for old, new in ((less, more), (more, less)):
                ends = {name: pa.array([old], type) for name in ("low", "high")}
                gained = {name: pa.array([new], type) for name in ("low_in", "high_in")}
                gained |= {name: pa.array([None], type) for name in ("low_out", "high_out")}
                content = ArrowContent(pa.table({"n": [1], "n_e": [1]} | ends))
                answer = refresh([shape], {"lowest": content}, {"lowest": pa.table({"n": [1], "n_e": [1]} | gained)})
                after = answer["lowest"].after.select(["low", "high"])
                assert repr(rows(after)) == repr([(less, more)])
