"""Rows that are equal, found by Arrow's hash tables and given by their places.

    many_pairs(A, B) = | pairs(A, B) |
    pairs(A, B)     = { (i, j) : A[i] = B[j] }             an equality over a NULL is not true
    found(A, B)     = { i : A[i] is some B[j] }            NULL is NULL
    added_up(A, w)  = { (min i, Σ w[i]) : A[i] the same }  NULL is NULL; sums of 0 are left out

Only keys and places go through a hash table, whatever else the rows have: Arrow joins no columns of some types, and
`take` copies the rest once. The tables tell apart what is equal in SQL, so columns are made `_plain` first: one NaN,
one zero, numbers for arrays. Where NULL is a value and both sides have some, they are filled, and a flag tells them
from what they were filled with.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.arrow_rows import python_values

Keys = Sequence[tuple[str, pa.ChunkedArray]]
"""Columns with their names; where two sides are compared, each has the type of its partner."""

MANY_ROWS = 10_000
"""With fewer than these, a second look costs more than it saves."""

# Whenever Arrow is given a value of Python, it tries to import a package that nobody installs: once is enough.
_TRUE, _FALSE, _ZERO = pa.scalar(True), pa.scalar(False), pa.scalar(0, pa.int64())
_NAN, _ZERO_POINT = pa.scalar(float("nan")), pa.scalar(0.0)
_HERE, _THERE, _WEIGHT = "here", "there", "weight"
_NOWHERE = pa.array([], pa.int64())


def pairs(left: Keys, right: Keys) -> tuple[pa.Array, pa.Array]:
    """The places of rows of both sides with equal keys, of which there is one at least."""
    empty = not len(left[0][1]) or not len(right[0][1])
    if empty or any(pa.types.is_null(column.type) for _, column in left):
        return _NOWHERE, _NOWHERE
    both = [_plain(one, other) for one, other in zip(left, right, strict=True)]
    here, there = _placed([one for one, _ in both], _HERE), _placed([other for _, other in both], _THERE)
    # Arrow makes its hash table of the second operand: let that be the smaller one.
    first, second = (here, there) if here.num_rows >= there.num_rows else (there, here)
    joined = first.join(second, keys=_names(len(both)), join_type="inner")
    return joined[_HERE].combine_chunks(), joined[_THERE].combine_chunks()


def many_pairs(left: Keys, right: Keys) -> int:
    """How many pairs of rows have equal keys, without making them."""
    empty = not len(left[0][1]) or not len(right[0][1])
    if empty or any(pa.types.is_null(column.type) for _, column in left):
        return 0
    both = [_plain(one, other) for one, other in zip(left, right, strict=True)]
    names = _names(len(both))
    here, there = (
        _placed([pair[side] for pair in both], place).group_by(names).aggregate([(place, "count")])
        for side, place in enumerate((_HERE, _THERE))
    )
    joined = here.join(there, keys=names, join_type="inner")
    return int(pc.sum(pc.multiply(joined[f"{_HERE}_count"], joined[f"{_THERE}_count"]), min_count=0).as_py())


def found(rows: Keys, keys: Keys, *, matching: bool) -> pa.Array:
    """The places of the rows that occur among the keys, or of those that do not; there is one column at least."""
    if not len(rows[0][1]) or not len(keys[0][1]):
        return _NOWHERE if matching else pa.arange(0, len(rows[0][1]))
    mine, theirs = [], []
    for row, key in zip(rows, keys, strict=True):
        one, other = _plain(row, key)
        if one.null_count and other.null_count:
            mine.append(pc.is_null(one))
            theirs.append(pc.is_null(other))
            if (filler := _some_value(one, other)) is None:
                continue  # NULLs only: the flag says it all
            one, other = pc.fill_null(one, filler), pc.fill_null(other, filler)
        mine.append(one)
        theirs.append(other)
    here, there = _placed(mine, _HERE), _placed(theirs, _THERE)
    how, names = "semi" if matching else "anti", _names(len(mine))
    if here.num_rows >= there.num_rows:
        joined = here.join(there, keys=names, join_type=f"left {how}")
    else:
        joined = there.join(here, keys=names, join_type=f"right {how}")
    return joined[_HERE].combine_chunks()


def added_up(rows: Keys, weights: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """One place of each row whose weights do not add up to 0, and their sums."""
    if not rows:
        total = pc.sum(weights, min_count=0)
        present = int(total.as_py() != 0)
        return pa.arange(0, present), pa.repeat(total, present)
    keys = _placed([_plain(row)[0] for row in rows], _HERE).append_column(_WEIGHT, weights)
    sums = []
    while len(rows) > 1 and (count := keys.num_rows) >= MANY_ROWS:
        told, keys = _told_by_first(keys)
        sums.append(told)
        if 2 * keys.num_rows >= count:
            break
    summed = keys.group_by(_names(len(rows))).aggregate([(_WEIGHT, "sum"), (_HERE, "min")])
    sums.append(summed.select([f"{_HERE}_min", f"{_WEIGHT}_sum"]).rename_columns([_HERE, _WEIGHT]))
    there = pa.concat_tables(sums)
    there = there.filter(pc.not_equal(there[_WEIGHT], _ZERO))
    return there[_HERE].combine_chunks(), there[_WEIGHT].combine_chunks()


def _told_by_first(keys: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The places and weights of the rows that are the same as the first one with their first key; the other rows.

    Nothing among the others is the same as any of these. A column that comes first is often a key or nearly one, and
    to group by it and compare the rest takes a fraction of what grouping by all columns takes.
    """
    codes = keys.column(0).combine_chunks().dictionary_encode(null_encoding="encode").indices
    placed = pa.table([codes, pa.arange(0, len(codes))], names=["code", "row"])
    firsts = placed.group_by("code", use_threads=False).aggregate([("row", "min")])
    first = pc.scatter(firsts["row_min"].combine_chunks(), firsts["code"].combine_chunks()).take(codes)
    same = None
    for column in keys.columns[1:-2]:
        alike = _alike(column, column.take(first))
        same = alike if same is None else pc.and_(same, alike)
    told = keys.select([_HERE, _WEIGHT]).append_column("code", codes).filter(same)
    summed = told.group_by("code", use_threads=False).aggregate([(_HERE, "min"), (_WEIGHT, "sum")])
    others = keys.filter(pc.invert(same))
    return summed.select([f"{_HERE}_min", f"{_WEIGHT}_sum"]).rename_columns([_HERE, _WEIGHT]), others


def _alike(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether values are equal or both NULL."""
    missing = pc.and_(pc.is_null(one), pc.is_null(other))
    return missing if pa.types.is_null(one.type) else pc.or_(missing, pc.fill_null(pc.equal(one, other), _FALSE))


def _names(count: int) -> list[str]:
    """Names for keys: those of the columns may have dots, which Arrow would read."""
    return [f"key {place}" for place in range(count)]


def _placed(keys: Sequence[pa.ChunkedArray], place: str) -> pa.Table:
    """Keys, and the place of each row."""
    return pa.table([*keys, pa.arange(0, len(keys[0]))], names=[*_names(len(keys)), place])


def _plain(*columns: tuple[str, pa.ChunkedArray]) -> list[pa.ChunkedArray]:
    """Columns of one type so that Arrow's hash tables find equal what is equal in SQL."""
    kind = columns[0][1].type
    if pa.types.is_floating(kind):
        # NaN has many bit patterns, and -0.0 + 0.0 is 0.0.
        nan, zero = _NAN.cast(kind), _ZERO_POINT.cast(kind)
        return [pc.if_else(pc.is_nan(column), nan, pc.add(column, zero)) for _, column in columns]
    if pa.types.is_nested(kind):
        numbers: dict[Any, int] = {}
        return [_numbered(numbers, python_values(name, column)) for name, column in columns]
    return [column for _, column in columns]


def _numbered(numbers: dict[Any, int], values: list[Any]) -> pa.ChunkedArray:
    """Each value by its number, which it gets where it is first seen; NULL stays NULL."""
    found = [None if value is None else numbers.setdefault(value, len(numbers)) for value in values]
    return pa.chunked_array([pa.array(found, pa.int64())])


def _some_value(*columns: pa.ChunkedArray) -> pa.Scalar | None:
    """Any value that is not NULL, if there is one."""
    for column in columns:
        if column.null_count < len(column):
            return column[pc.index(pc.is_valid(column), _TRUE).as_py()]
    return None
