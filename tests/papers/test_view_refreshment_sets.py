"""The sets that the refreshment algorithms establish on the way, seen in what the refresh of 11.17.95 changes.

JP     pairs that join from now on            inserted into V
NRI    rows of R_I that join with nothing     inserted into R0      (NSI of S_I, where the paper's text has R_I again)
JR0    rows of R0 that join from now on       deleted from R0       (JS0 of S0)
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from refreshment_history import HISTORY, NOV_15, NOV_17
from refreshment_paper import STRUCTURES, Example, Row

from viewkeeper.algebra.memory import MemoryZSet

PAIR = ("r.tid", "s.tid")
WITH_PARTS = ["matview", "outerjoin", "partial-join"]


@dataclass(frozen=True)
class Sets:
    """Ids that come and go in V, R0 and S0."""

    joined: Mapping[Row, int]
    r0: Mapping[Row, int]
    s0: Mapping[Row, int]


def sets_of(example: Example) -> Sets:
    """What the last refresh did to V, R0 and S0; a modification that leaves a row where it is does nothing to it."""
    changed = example.changed
    if example.name == "outerjoin":
        outer = changed["outer 1"].keep(PAIR)
        ids = dict(outer.weights())
        return Sets(
            {pair: n for pair, n in ids.items() if None not in pair},
            {pair[:1]: n for pair, n in ids.items() if pair[1] is None},
            {pair[1:]: n for pair, n in ids.items() if pair[0] is None},
        )
    return Sets(
        by_ids(changed["joined 1"], *PAIR), by_ids(changed["left 1"], "r.tid"), by_ids(changed["right 1"], "s.tid")
    )


def by_ids(change: MemoryZSet, *ids: str) -> dict[Row, int]:
    return dict(change.keep(ids).weights())


def signed(come: set[Row], gone: set[Row]) -> dict[Row, int]:
    return dict.fromkeys(come, 1) | dict.fromkeys(gone, -1)


JP = {("r3", "s5"), ("r5", "s3")}
NRI, NSI, JR0, JS0 = {("r6",)}, {("s6",)}, {("r3",)}, {("s3",)}


@pytest.mark.parametrize("storage", WITH_PARTS)
def test_jp_nri_nsi_jr0_and_js0_of_the_example(storage: str) -> None:
    sets = sets_of(Example(storage).go_to(NOV_15).go_to(NOV_17))
    assert sets == Sets(signed(JP, set()), signed(NRI, JR0), signed(NSI, JS0))


@pytest.mark.parametrize("storage", ["viewcache", "partial-operand"])
def test_the_joining_pairs_of_steps_1_and_2_are_inserted_once(storage: str) -> None:
    example = Example(storage).go_to(NOV_15).go_to(NOV_17)
    assert by_ids(example.changed["pairs 1"], *PAIR) == signed(JP, set())


@pytest.mark.parametrize("storage", ["viewcache", "partial-operand"])
def test_a_pair_that_both_steps_find_is_inserted_once(storage: str) -> None:
    """R_I ⋈ S_new and R_new ⋈ S_I both have (r9, s9): "Avoid duplicates"."""
    example = Example(storage).go_to(HISTORY[-2]).go_to(HISTORY[-1])
    assert by_ids(example.changed["pairs 1"], *PAIR) == signed({("r1", "s3"), ("r9", "s9")}, set())


BEYOND = {
    2: Sets(signed(set(), {("r1", "s1")}), {}, signed({("s1",)}, set())),
    3: Sets(signed(set(), {("r3", "s5")}), signed({("r3",)}, set()), {}),
    4: Sets(signed({("r4", "s4")}, set()), signed(set(), {("r4",)}), signed(set(), {("s4",)})),
    5: Sets({}, {}, {}),
    6: Sets(
        signed({("r7", "s6")}, {("r2", "s2")}),
        signed({("r2",), ("r8",)}, set()),
        signed(set(), {("s6",)}),
    ),
    7: Sets(signed({("r5", "s1")}, {("r5", "s3")}), {}, signed({("s3",)}, {("s1",)})),
    8: Sets(signed({("r1", "s3"), ("r9", "s9")}, set()), {}, signed(set(), {("s3",)})),
}


@pytest.mark.parametrize("storage", WITH_PARTS)
@pytest.mark.parametrize("number", BEYOND)
def test_who_comes_and_goes_in_v_r0_and_s0_beyond_the_paper(number: int, storage: str) -> None:
    example = Example(storage).go_to(HISTORY[number - 1]).go_to(HISTORY[number])
    assert sets_of(example) == BEYOND[number], HISTORY[number].what


@pytest.mark.parametrize("storage", STRUCTURES)
def test_a_column_that_nothing_compares_changes_no_pointer(storage: str) -> None:
    """r2.c is in the copies and in materialized rows: nowhere else does its update write anything."""
    example = Example(storage).go_to(HISTORY[4]).go_to(HISTORY[5])
    written = {name for name, change in example.changed.items() if not change.is_empty()}
    assert written == ({"joined 1"} if storage == "matview" else {"outer 1"} if storage == "outerjoin" else {"copy 0"})
