"""Differences between two bags of rows that the rounding of DOUBLE does not explain.

    wrong  =  expected - stored        +n: missing, -n: too many
    pair   =  a missing row and one too many that are equal, but for each DOUBLE up to SAME of its size

Rows that are equal in everything else are sorted by one DOUBLE column after the other, and split where there is a gap:
few are left to compare with each other.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
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


def confirmed(
    wrong: Sequence[Weighted], again: Iterable[tuple[Row, Sequence[float]]], places: Collection[int]
) -> list[Weighted]:
    """Of the differences that one comparison found, those that another one confirms: it computes some columns, given by
    their places, better, and says of each how far it may be off."""

    def key(row: Row) -> str:
        return repr(_exact_part(tuple(None if place in places else value for place, value in enumerate(row))))

    found: dict[str, list[Weighted]] = {}
    for row, weight in wrong:
        found.setdefault(key(row), []).append((row, weight))
    better: dict[str, list[tuple[Row, Sequence[float]]]] = {}
    for row, tolerances in again:
        if (of_key := key(row)) in found:
            better.setdefault(of_key, []).append((row, tolerances))
    explained = {
        of_key
        for of_key, entries in found.items()
        if not sum(weight for _, weight in entries)
        and all(
            any(_within(row, other, tolerances, places) for other, tolerances in better.get(of_key, ()))
            for row, weight in entries
            if weight < 0
        )
    }
    return [entry for entry in wrong if key(entry[0]) not in explained]


def _within(row: Row, other: Row, tolerances: Sequence[float], places: Collection[int]) -> bool:
    return all(
        isclose(row[place], other[place], rel_tol=SAME, abs_tol=tolerance)
        if isinstance(row[place], float) and isinstance(other[place], float) and isfinite(row[place])
        else repr(row[place]) == repr(other[place])
        for place, tolerance in zip(places, tolerances, strict=True)
    )


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
    left: list[Weighted] = []
    too_many: list[Weighted] = []
    for cluster in _clusters([*missing, *extra], doubles):
        unpaired = _unpaired_of_cluster(
            [entry for entry in cluster if entry[1] > 0], [entry for entry in cluster if entry[1] < 0], doubles
        )
        left += unpaired[0]
        too_many += unpaired[1]
    return left, too_many


def _clusters(entries: list[Weighted], doubles: Sequence[int]) -> Iterator[list[Weighted]]:
    """Entries that may be close: in no DOUBLE is there a gap between those of two clusters that is not too wide."""
    waiting = [entries]
    while waiting:
        cluster = waiting.pop()
        for place in doubles if len(cluster) > 1 else ():
            ordered = sorted(cluster, key=lambda entry: entry[0][place])
            values = [row[place] for row, _ in ordered]
            cuts = [n for n in range(1, len(values)) if values[n] - values[n - 1] > _room(values[n - 1], values[n])]
            if cuts:
                ends = zip([0, *cuts], [*cuts, len(values)], strict=True)
                waiting += [ordered[first:last] for first, last in ends]
                break
        else:
            yield cluster


def _unpaired_of_cluster(
    missing: Sequence[Weighted], extra: Sequence[Weighted], doubles: Sequence[int]
) -> tuple[list[Weighted], list[Weighted]]:
    by = max(doubles, key=lambda place: len({row[place] for row, _ in extra}))
    ordered = sorted(extra, key=lambda entry: entry[0][by])
    values, free = [row[by] for row, _ in ordered], [-weight for _, weight in ordered]
    # From each place the next one that has a partner left, or one on the way there.
    following = list(range(len(ordered) + 1))

    def next_free(place: int) -> int:
        while following[place] != place:
            following[place] = following[following[place]]
            place = following[place]
        return place

    left = []
    for row, weight in missing:
        room = _room(row[by], row[by])
        place = next_free(bisect_left(values, row[by] - room))
        while weight and place < len(ordered) and values[place] <= row[by] + room:
            if all(_close(row[one], ordered[place][0][one]) for one in doubles):
                paired = min(weight, free[place])
                weight, free[place] = weight - paired, free[place] - paired
                if not free[place]:
                    following[place] = place + 1
            place = next_free(place + 1)
        if weight:
            left.append((row, weight))
    return left, [(row, -count) for (row, _), count in zip(ordered, free, strict=True) if count]


def _room(a: float, b: float) -> float:
    # Twice the tolerance: it is of the larger of the two.
    return 2 * SAME * max(abs(a), abs(b))


def _close(a: float, b: float) -> bool:
    return isclose(a, b, rel_tol=SAME)
