"""Stored sums and counts plus their changes, without loss.

    exact    new = old + Σ changes             with room for every digit, then back to the stored type
    float    (s, r) = s + r + Σ changes        s is the sum rounded once, r what rounding took from it

Integers and decimals never wrap around and lose no digit: what does not fit the stored type is an error. A sum of
DOUBLE keeps its rounding error beside it (Knuth's two-sum), so that a thousand refreshes do not add up their errors.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.summary.grouping import ZERO, ZERO_POINT, by_group

MOST_DIGITS = 76
MOST_INTEGER = 2**63 - 1


def exact_sums(
    groups: int, parts: tuple[tuple[pa.Array, pa.Table], ...], columns: tuple[str, ...]
) -> Mapping[str, pa.Array]:
    """The sum of each column per group over several tables, each with the numbers of its rows' groups; NULL is 0."""
    numbers = pa.concat_arrays([numbers for numbers, _ in parts])
    rows = {name: _wide([table[name].combine_chunks() for _, table in parts]) for name in columns}
    sums = by_group(numbers, groups, rows, "sum")
    return {name: pc.fill_null(total, ZERO.cast(total.type)) for name, total in sums.items()}


def _wide(columns: list[pa.Array]) -> pa.Array:
    """Columns one after the other, in a type whose sums cannot overflow: the narrowest, as wide ones are slow."""
    if all(pa.types.is_integer(column.type) for column in columns):
        wide = pa.int64() if _furthest(columns) <= MOST_INTEGER else pa.decimal128(20, 0)
    else:
        scale = max(column.type.scale if pa.types.is_decimal(column.type) else 0 for column in columns)
        wide = pa.decimal256(MOST_DIGITS, scale)
    return pa.concat_arrays([column.cast(wide) for column in columns])


def _furthest(columns: list[pa.Array]) -> int:
    """No sum of some of these integers is further from 0."""
    ends = [end.as_py() or 0 for column in columns for end in pc.min_max(column).values()]
    return int(sum(map(len, columns)) * max(map(abs, ends)))


def misfit(total: pa.Array, type: pa.DataType) -> int | None:
    """The first group whose sum does not fit the type in which it is stored; None if all do."""
    if _fits(total, type):
        return None
    return next(place for place in range(len(total)) if not _fits(total.slice(place, 1), type))


def _fits(total: pa.Array, type: pa.DataType) -> bool:
    try:
        total.cast(type)
    except pa.ArrowInvalid:
        return False
    return True


def float_sums(old: pa.Array, rest: pa.Array, changes: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The new sums and their rests; what is NULL is 0."""
    old, rest, changes = (pc.fill_null(column.cast(pa.float64()), ZERO_POINT) for column in (old, rest, changes))
    total, lost = _two_sum(old, changes)
    return _two_sum(total, pc.add(rest, lost))


def _two_sum(a: pa.Array, b: pa.Array) -> tuple[pa.Array, pa.Array]:
    """a + b, rounded, and exactly what is missing."""
    total = pc.add(a, b)
    of_b = pc.subtract(total, a)
    of_a = pc.subtract(total, of_b)
    missing = pc.add(pc.subtract(a, of_a), pc.subtract(b, of_b))
    # Nothing is missing from an infinite sum: inf - inf would make it NaN.
    return total, pc.if_else(pc.is_finite(total), missing, ZERO_POINT)
