"""Σ (e - mean)²: what is stored for it, and what Arrow computes of values with their counts."""

from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest

from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.summary_view import Aggregate, Function
from viewkeeper.summary.content import ArrowContent
from viewkeeper.summary.measures import is_spread_of_values, needed
from viewkeeper.summary.spread import spreads

NANOSECONDS = 1_700_000_000_000_000_000


def test_values_that_come_and_go_between_two_refreshes() -> None:
    rows = pa.table({"g": [1, 1], "v": [1.0, 3.0], "n": [1, 1]})
    wanted = pa.table({"g": [9, 1]})
    # Filtered, as the refresh makes them: without a row there is no chunk.
    nothing = pa.table({"g": [9], "v": [5.0], "n": [0]}).filter(pa.array([False]))
    for content in (ArrowContent(rows), ArrowContent(rows.slice(0, 0))):
        found = content.spread(("g",), wanted, "v", "n", nothing).to_pylist()
        assert found == [None, 2.0 if content.rows else None]
    assert ArrowContent(rows).spread(("g",), wanted.slice(0, 1), "v", "n", nothing).to_pylist() == [None]


@pytest.mark.parametrize(
    ("type", "summed"),
    [
        ("INT", True),
        ("DECIMAL(14, 2)", True),
        ("DECIMAL(15, 2)", False),
        ("BIGINT", False),
        ("DECIMAL(38, 18)", False),
        ("DOUBLE", False),
    ],
)
def test_squares_are_summed_where_their_sum_has_room(type: str, summed: bool) -> None:
    argument = Expression.column("f.x", type)
    aggregate = Aggregate(Function.STDDEV_SAMP, argument, "DOUBLE")
    assert (needed(aggregate, argument).squares is not None) is summed
    assert is_spread_of_values(aggregate, argument) is not summed


@pytest.mark.parametrize(
    ("type", "values"),
    [
        (pa.int64(), [NANOSECONDS + n for n in range(40)]),
        (pa.int64(), [-(2**63), 2**63 - 1, 0]),
        (pa.int8(), [-128, 127]),
        (pa.decimal128(38, 18), [Decimal(f"{10**19}.00000000000000000{n}") for n in range(9)]),
        (pa.decimal128(38, 0), [Decimal("9" * 38), Decimal("-" + "9" * 38)]),
    ],
)
def test_no_digit_of_exact_numbers_is_lost(type: pa.DataType, values: list[int | Decimal]) -> None:
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    groups = pa.array([0] * len(values) + [1], pa.int64())
    counts = pa.array([1] * len(groups), pa.int64())
    found = spreads(groups, pa.array([*values, values[0]], type), counts, 3).to_pylist()
    assert found[0] == pytest.approx(float(sum((value - mean) ** 2 for value in exact)), rel=1e-13)
    assert found[1:] == [0.0, None]
