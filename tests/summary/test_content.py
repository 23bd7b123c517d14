"""Rows in memory: looked up by group, null-safely and for every type of key, and replaced by group."""

import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from viewkeeper.clock import seeded
from viewkeeper.summary.content import MOST_CHUNKS, ArrowContent
from waiting import until

NAN = float("nan")
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tinyint": (pa.int8(), [-128, 0, 1, 127]),
    "bigint": (pa.int64(), [-(2**63), 0, 5, 2**63 - 1]),
    "boolean": (pa.bool_(), [False, True]),
    "string": (pa.string(), ["", "a", "b", "é", "\U0001f600"]),
    "large string": (pa.large_string(), ["", "a", "é"]),
    "binary": (pa.binary(), [b"", b"\x00", b"\xff"]),
    "decimal": (pa.decimal128(38, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("9" * 36 + ".99")]),
    "wide decimal": (pa.decimal256(50, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("9" * 48 + ".99")]),
    "double": (pa.float64(), [NAN, float("-inf"), -1.5, 0.0, float("inf")]),
    "float": (pa.float32(), [NAN, -1.5, 0.0]),
    "date": (pa.date32(), [date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31)]),
    "timestamp": (pa.timestamp("us", "UTC"), [datetime(1970, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 12, tzinfo=UTC)]),
    "timestamp_ntz": (pa.timestamp("us"), [datetime(1970, 1, 1), datetime(2024, 2, 29, 12)]),
}


def plain(row: dict[str, Any], columns: tuple[str, ...]) -> tuple[Any, ...]:
    """The key of a row in Python, where NaN is one value."""
    return tuple("NaN" if isinstance(row[name], float) and row[name] != row[name] else row[name] for name in columns)


def expected(content: pa.Table, columns: tuple[str, ...], values: pa.Table) -> list[int]:
    wanted = {plain(row, columns) for row in values.to_pylist()}
    return [row["n"] for row in content.to_pylist() if plain(row, columns) in wanted]


def inside(content: ArrowContent, columns: tuple[str, ...], values: pa.Table) -> pa.Table:
    return values.filter(content.in_range(columns, values))


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize(
    ("ours", "theirs"),
    list(product(("values", "both", "nulls"), repeat=2)),
)
def test_a_key_of_any_type_is_found_also_where_it_is_null(name: str, ours: str, theirs: str) -> None:
    type, values = KEYS[name]
    known = {"values": values, "both": [*values, None], "nulls": [None]}
    content = pa.table({"k": pa.array(known[ours] * 2, type), "n": range(2 * len(known[ours]))})
    wanted = pa.table({"k": pa.array(known[theirs][::-1], type)})
    found = ArrowContent(content).find(("k",), wanted).rows
    assert found["n"].to_pylist() == expected(content, ("k",), wanted)
    assert found.schema == content.schema


def test_several_keys_match_as_a_whole() -> None:
    rng = seeded(1)

    def rows(count: int) -> pa.Table:
        drawn = {
            (rng.choice([0, 1, 2, None]), rng.choice(["a", "b", None]), rng.choice([NAN, 1.0, None]))
            for _ in range(count)
        }
        ordered = sorted(drawn, key=repr)
        return pa.table(
            {
                "i": pa.array([row[0] for row in ordered], pa.int32()),
                "s": pa.array([row[1] for row in ordered], pa.string()),
                "f": pa.array([row[2] for row in ordered], pa.float64()),
                "n": pa.array(range(len(ordered)), pa.int64()),
            }
        )

    for _ in range(40):
        content, wanted = rows(rng.randrange(20)), rows(rng.randrange(12))
        for columns in (("i", "s", "f"), ("s", "i"), ("f",)):
            values = wanted.group_by(list(columns)).aggregate([])
            found = ArrowContent(content).find(columns, values).rows
            assert found["n"].to_pylist() == expected(content, columns, values)


def test_nan_is_one_value_whatever_its_bits() -> None:
    other = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]
    content = ArrowContent(pa.table({"k": [NAN, 1.0], "n": [0, 1]}))
    assert content.find(("k",), pa.table({"k": [other]})).rows["n"].to_pylist() == [0]


def test_rows_come_in_the_order_of_the_content() -> None:
    """The join looks at a large content in several threads at once."""
    content = ArrowContent(pa.table({"k": pa.arange(0, 1 << 19)}))
    wanted = pa.arange(0, 1 << 19, 7)
    assert content.find(("k",), pa.table({"k": wanted[::-1]})).rows["k"].combine_chunks() == wanted


def test_values_of_a_wider_type_are_looked_up_as_the_contents_type() -> None:
    content = ArrowContent(pa.table({"k": pa.array(["a", None], pa.string()), "n": [0, 1]}))
    assert content.find(("k",), pa.table({"k": pa.array([None, "a"], pa.large_string())})).rows["n"].to_pylist() == [
        0,
        1,
    ]


def test_no_columns_match_every_row_if_there_is_a_value() -> None:
    content = ArrowContent(pa.table({"n": [0, 1]}))
    one = pa.table({"x": [1]}).select([])
    assert content.find((), one).rows["n"].to_pylist() == [0, 1]
    assert content.find((), one.slice(0, 0)).rows.num_rows == 0
    assert content.rows == 2


def test_values_outside_of_the_ranges_are_not_looked_up() -> None:
    content = ArrowContent(pa.table({"i": [3, 5, 7], "s": ["b", "c", "d"], "f": [1.0, NAN, 2.0]}))

    def kept(column: str, *values: Any) -> list[Any]:
        return inside(content, (column,), pa.table({column: list(values)}))[column].to_pylist()

    assert kept("i", 2, 3, 4, 7, 8, None) == [3, 4, 7]
    assert kept("s", "a", "b", "d", "da", None) == ["b", "d"]
    assert [repr(value) for value in kept("f", 0.5, 1.0, NAN, 2.5, None)] == ["1.0", "nan"]
    both = pa.table({"i": [3, 3, 9], "s": ["c", "z", "c"]})
    assert inside(content, ("i", "s"), both).to_pylist() == [{"i": 3, "s": "c"}]


def test_an_empty_content_has_nothing_in_range() -> None:
    content = ArrowContent(pa.table({"i": pa.array([], pa.int64()), "f": pa.array([], pa.float64())}))
    assert inside(content, ("i",), pa.table({"i": [1, None]})).num_rows == 0
    assert content.find(("f",), pa.table({"f": [NAN, 1.0, None]})).rows.num_rows == 0


def test_ranges_are_carried_on_and_only_widen() -> None:
    content = ArrowContent(pa.table({"i": [3, 5], "n": [0, 1]}))
    values = pa.table({"i": [1, 3, 6, 9, None]})
    assert inside(content, ("i",), values)["i"].to_pylist() == [3]
    lower = pa.table({"i": [1, None], "n": [2, 3]})
    wider = content.replaced(lower.slice(0, 0), lower, ("i",))
    assert inside(wider, ("i",), values)["i"].to_pylist() == [1, 3, None]
    narrower = wider.replaced(lower, lower.slice(0, 0), ("i",))
    assert narrower.table["n"].to_pylist() == [0, 1]
    assert inside(narrower, ("i",), values)["i"].to_pylist() == [1, 3, None]
    higher = pa.table({"i": [9], "n": [4]})
    widest = narrower.replaced(higher.slice(0, 0), higher, ("i",))
    assert inside(widest, ("i",), values)["i"].to_pylist() == [1, 3, 6, 9, None]


def test_replaced_takes_groups_out_and_puts_rows_in() -> None:
    content = ArrowContent(pa.table({"k": [1, 2, None, 4], "n": pa.array([10, 20, 30, 40], pa.int32())}))
    before = pa.table({"k": pa.array([2, None, 4], pa.int64()), "n": pa.array([20, 30, 40], pa.int32())})
    after = pa.table({"n": pa.array([31, 41, 50]), "k": pa.array([None, 4, 5], pa.int64())})
    new = content.replaced(before, after, ("k",))
    assert new.table.to_pylist() == [{"k": 1, "n": 10}, {"k": None, "n": 31}, {"k": 4, "n": 41}, {"k": 5, "n": 50}]
    assert new.table.schema == content.table.schema
    assert content.table["n"].to_pylist() == [10, 20, 30, 40]
    assert new.find(("k",), after.select(["k"])).rows["n"].to_pylist() == [31, 41, 50]


def test_replaced_without_keys_replaces_the_only_row() -> None:
    content = ArrowContent(pa.table({"n": [1]}))
    assert content.replaced(pa.table({"n": [1]}), pa.table({"n": [2]}), ()).table["n"].to_pylist() == [2]


def test_chunks_stay_few() -> None:
    start = 1000
    content = ArrowContent(pa.table({"k": range(start)}))
    for number in range(start, start + 5 * MOST_CHUNKS):
        row = pa.table({"k": [number]})
        content = content.replaced(row.slice(0, 0), row, ("k",))
        assert content.table["k"].num_chunks <= MOST_CHUNKS + 1
    assert content.table["k"].to_pylist() == list(range(start + 5 * MOST_CHUNKS))


def test_few_changes_of_a_large_content_copy_little() -> None:
    large = pa.table({"k": pa.arange(0, 100_000), "n": pa.arange(0, 100_000)})
    content = ArrowContent(large)
    old, new = pa.table({"k": [5, 6], "n": [5, 6]}), pa.table({"k": [5], "n": [50]})
    content.find(("k",), old.select(["k"]))
    allocated = pa.total_allocated_bytes()
    after = content.replaced(old, new, ("k",))
    # The join's threads free their memory a moment after its answer.
    until(lambda: pa.total_allocated_bytes() < allocated + large.nbytes / 10, "a copy to be freed")
    assert (content.rows, after.rows) == (100_000, 99_999)
    assert after.nbytes < large.nbytes + 1000
    assert content.find(("k",), old.select(["k"])).rows["n"].to_pylist() == [5, 6]
    assert after.find(("k",), old.select(["k"])).rows["n"].to_pylist() == [50]
    assert after.table.num_rows == 99_999


def test_what_is_found_says_which_value_and_where() -> None:
    content = ArrowContent(pa.table({"k": pa.arange(0, 100), "n": pa.arange(100, 200)}))
    for number in (100, 101):
        content = content.replaced(pa.table({"k": [number - 50]}), pa.table({"k": [number], "n": [0]}), ("k",))
    values = pa.table({"k": [101, -5, 7, 50, 60, 3]})
    found = content.find(("k",), values)
    assert found.rows["k"].to_pylist() == values["k"].take(found.values).to_pylist() == [3, 7, 60, 101]
    assert found.looked_up == 5
    assert found.positions is not None
    without = content.changed(found.positions.slice(1, 3), pa.table({"k": [7], "n": [70]}))
    again = without.find(("k",), values)
    assert again.rows.to_pylist() == [{"k": 3, "n": 103}, {"k": 7, "n": 70}]
    assert content.rows == 100
    assert without.rows == 98


@pytest.mark.parametrize("size", [0, 10, 400])
def test_any_history_of_replacements(size: int) -> None:
    """Rows go, come back and change, beside many that stay or few."""
    rng = seeded(size)
    schema = pa.schema([("a", pa.int64()), ("b", pa.string()), ("n", pa.int64())])

    def table(groups: dict[tuple[Any, ...], int]) -> pa.Table:
        return pa.Table.from_pylist([{"a": a, "b": b, "n": n} for (a, b), n in groups.items()], schema)

    def groups(of: pa.Table) -> dict[tuple[Any, ...], int]:
        found = {(row["a"], row["b"]): row["n"] for row in of.to_pylist()}
        assert len(found) == of.num_rows
        return found

    known: dict[tuple[Any, ...], int] = {(number, "x"): number for number in range(size)}
    content = ArrowContent(table(known))
    for step in range(120):
        drawn = [(rng.choice([None, *range(12)]), rng.choice([None, "x", "y"])) for _ in range(rng.randrange(9))]
        before = {key: known[key] for key in drawn if key in known}
        after = {key: 1000 + step for key in drawn if rng.randrange(3)}
        content = content.replaced(table(before), table(after), ("a", "b"))
        known = {key: n for key, n in known.items() if key not in before} | after
        assert groups(content.table) == known
        assert content.rows == len(known)
        wanted = table(dict.fromkeys(drawn, 0)).select(["a", "b"])
        assert groups(content.find(("a", "b"), wanted).rows) == after
        assert groups(content.find((), wanted).rows) == (known if drawn else {})
