"""Differences between two bags of rows that the rounding of DOUBLE does not explain.

    wrong  =  expected - stored        +n: missing, -n: too many
    pair   =  a missing row and one too many that are equal, but for each DOUBLE up to SAME of its size

Rows that are equal in everything else are compared in the order of one of their DOUBLE columns: that takes n log n
steps, and not one for each two rows.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from math import isclose, isfinite
from typing import Any

Row = tuple[Any, ...]
Weighted = tuple[Row, int]
SAME = 1e-9
"""How far two DOUBLE may be apart, of their size: sums are rounded in the order in which they are added up."""


def beyond_rounding(wrong: Iterable[Weighted]) -> list[Weighted]:
    """The differences without all pairs: missing rows first."""
    alike: dict[Row, tuple[list[Weighted], list[Weighted]]] = {}
    for row, weight in wrong:
        missing, extra = alike.setdefault(_exact_part(row), ([], []))
        (missing if weight > 0 else extra).append((row, weight))
    left = [_unpaired(missing, extra) for missing, extra in alike.values()]
    return [entry for missing, _ in left for entry in missing] + [entry for _, extra in left for entry in extra]


def confirmed(wrong: Sequence[Weighted], again: Sequence[Weighted], places: Collection[int]) -> list[Weighted]:
    """Of the differences that one comparison found, those that are not in some columns alone, which are given by their
    places; and of those that are, what another comparison found too, which is better at these columns."""

    def other_columns(row: Row) -> Row:
        return tuple(None if place in places else value for place, value in enumerate(row))

    beside = beyond_rounding([(other_columns(row), weight) for row, weight in wrong])
    different = {repr(row) for row, _ in beside} | {repr(other_columns(row)) for row, _ in again}
    return [entry for entry in wrong if repr(other_columns(entry[0])) in different]


def _exact_part(row: Row) -> Row:
    """What has to be equal. NaN is not equal to itself, and 1 is equal to TRUE."""
    return tuple(
        (float, "finite" if isfinite(value) else str(value)) if isinstance(value, float) else (type(value), value)
        for value in row
    )


def _unpaired(missing: Sequence[Weighted], extra: Sequence[Weighted]) -> tuple[list[Weighted], list[Weighted]]:
    """Of rows that agree in all that is exact, those that have no partner."""
    if not missing or not extra:
        return list(missing), list(extra)
    doubles = [place for place, value in enumerate(missing[0][0]) if isinstance(value, float) and isfinite(value)]
    if not doubles:
        # All of them are the same row.
        net = sum(weight for _, weight in (*missing, *extra))
        return [(missing[0][0], net)] if net > 0 else [], [(extra[0][0], net)] if net < 0 else []
    by = max(doubles, key=lambda place: len({row[place] for row, _ in extra}))
    ordered = sorted(extra, key=lambda entry: entry[0][by])
    values, free = [row[by] for row, _ in ordered], [-weight for _, weight in ordered]
    left = []
    for row, weight in missing:
        # Twice the tolerance: it is of the larger of the two.
        room = 2 * SAME * max(1.0, abs(row[by]))
        place = bisect_left(values, row[by] - room)
        while weight and place < len(ordered) and values[place] <= row[by] + room:
            if free[place] and all(_close(row[one], ordered[place][0][one]) for one in doubles):
                paired = min(weight, free[place])
                weight, free[place] = weight - paired, free[place] - paired
            place += 1
        if weight:
            left.append((row, weight))
    return left, [(row, -count) for (row, _), count in zip(ordered, free, strict=True) if count]


def _close(a: float, b: float) -> bool:
    return isclose(a, b, rel_tol=SAME, abs_tol=SAME)
