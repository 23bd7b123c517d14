"""Rounds over retail warehouses of several sizes, all ways in turn: medians that can be divided by each other.

    round    =  for each size: new changes; propagate in all ways, some times; the whole commit; recompute in all ways
    medians  =  of the rounds after the warm-ups, once all results were found to be exact

A machine that is slow for a while is slow for all of them.
"""

import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import pyarrow as pa
from retail_warehouse import RetailWarehouse, same_rows

# On the driver, propagation takes milliseconds: once in a round would be chance.
PASSES = 3
# Counting takes long, and Spark is warm by then.
COUNTING_WARM_UPS, MOST_COUNTINGS = 1, 3

Medians = Mapping[str, float]
T = TypeVar("T")


class Inexact(Exception):
    """A way was measured whose result is wrong."""


def progress(text: str) -> None:
    print(f"{time.strftime('%X')} {text}", file=sys.stderr, flush=True)


def in_turns(
    shops: Sequence[RetailWarehouse],
    kind: str,
    changes: int,
    *,
    warm_ups: int,
    rounds: int,
    counting: bool = False,
    in_spark: bool = True,
) -> dict[int, Medians]:
    """The medians of all ways, in seconds, by the rows of pos; without `in_spark`, of those on the driver alone."""
    taken: dict[int, defaultdict[str, list[float]]] = {shop.retail.rows: defaultdict(list) for shop in shops}
    for number in range(warm_ups + rounds):
        name = f"round {number + 1 - warm_ups}" if number >= warm_ups else f"warm-up {number + 1}"
        progress(f"{changes:,} {kind}-generating changes, {name}")
        for shop in shops:
            for way, seconds in _one_round(shop, kind, changes, in_spark=in_spark).items():
                taken[shop.retail.rows][way].append(seconds)
    medians = {
        rows: {way: statistics.median(seconds[warm_ups:]) for way, seconds in of_size.items()}
        for rows, of_size in taken.items()
    }
    for rows, found in medians.items():
        told = ", ".join(f"{way} {1000 * seconds:.1f} ms" for way, seconds in found.items())
        progress(f"{changes:,} {kind}-generating changes of {rows:,} sales: {told}")
    for shop in shops:
        if counting:
            medians[shop.retail.rows]["counting"] = _counting(shop, kind, changes, rounds)
        if wrong := shop.inexact():
            raise Inexact(f"with {shop.retail.rows:,} sales, pos does not have the rows of {', '.join(wrong)}")
    return medians


def _one_round(shop: RetailWarehouse, kind: str, changes: int, *, in_spark: bool) -> dict[str, float]:
    """The seconds of every way."""
    changed = shop.next_changes(kind, changes)
    ways = shop.propagations(changed, in_spark=in_spark)
    answers: dict[str, Mapping[str, pa.Table]] = {}
    taken: defaultdict[str, list[float]] = defaultdict(list)
    # There and back: one that follows another of its kind is faster, and so each of them does as often as the others.
    for way in [*ways, *reversed(ways)] * PASSES:
        answers[way], seconds = timed(ways[way])
        taken[way].append(seconds)
    _check_summary_deltas(answers)
    maintained = shop.maintain(changed)
    maintained["propagate_and_refresh"] = maintained["propagate"] + maintained["refresh"]
    propagated = {way: statistics.median(seconds) for way, seconds in taken.items()}
    recomputed = {"rematerialize": shop.rematerialize(changed)} | (shop.recompute() if in_spark else {})
    return propagated | maintained | recomputed


def _check_summary_deltas(answers: Mapping[str, Mapping[str, pa.Table]]) -> None:
    """All ways have the same summary-deltas."""
    (first, expected), *others = answers.items()
    for way, found in others:
        for name, delta in expected.items():
            if not same_rows(delta, found[name]):
                raise Inexact(f"{first} and {way} differ in the summary-delta of {name}")


def _counting(shop: RetailWarehouse, kind: str, changes: int, rounds: int) -> float:
    """The median seconds of counting, over and over with the same changes."""
    progress(f"counting {changes:,} {kind}-generating changes of {shop.retail.rows:,} sales")
    changed, before = shop.next_changes(kind, changes), shop.contents()
    shop.maintain(changed)
    # Counting reads pos behind the changes: without deltas to add up, as recomputation does.
    shop.warehouse.compact("pos")
    seconds = []
    for _ in range(COUNTING_WARM_UPS + min(rounds, MOST_COUNTINGS)):
        counted, taken = timed(lambda: shop.count(before, changed))
        seconds.append(taken)
    if wrong := shop.miscounted(counted):
        raise Inexact(f"with {shop.retail.rows:,} sales, counting has other rows in {', '.join(wrong)}")
    return statistics.median(seconds[COUNTING_WARM_UPS:])


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """What the work returns, and the seconds that it takes."""
    start = time.perf_counter()
    done = work()
    return done, time.perf_counter() - start
