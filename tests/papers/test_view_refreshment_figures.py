"""Figures 1 to 7 of the view refreshment paper, before and after the refresh of 11.17.95, in the storages they show.

The views of figures 2 and 3 are drawn without tuple identifiers; what is stored has them, as the paper says it must.
"""

from collections import Counter
from collections.abc import Iterator

import pytest
from refreshment_history import NOV_15, NOV_17, R_I, S_I
from refreshment_paper import STRUCTURES, Example, R, Row, S

from viewkeeper.algebra.memory import MemoryZSet

STORAGES = list(STRUCTURES)
COPYING = ["viewcache", "partial-join", "partial-operand"]
BOTH_DAYS = [(NOV_15, 0), (NOV_17, 1)]

FIGURE_1_R = [
    {("r1", 1, 10, 100), ("r2", 2, 11, 101), ("r3", 3, 12, 102), ("r4", 4, 13, 103)},
    {
        ("r1", 1, 10, 100),
        ("r2", 2, 11, 101),
        ("r3", 3, 12, 102),
        ("r4", 4, 13, 103),
        ("r5", 5, 14, 104),
        ("r6", 7, 15, 105),
    },
]
FIGURE_1_S = [
    {("s1", 1, 20, 200), ("s2", 2, 21, 201), ("s3", 5, 22, 202), ("s4", 6, 23, 203)},
    {
        ("s1", 1, 20, 200),
        ("s2", 2, 21, 201),
        ("s3", 5, 22, 202),
        ("s4", 6, 23, 203),
        ("s5", 3, 24, 204),
        ("s6", 8, 25, 205),
    },
]
FIGURE_2_JOIN = [
    {(1, 10, 100, 1, 20, 200), (2, 11, 101, 2, 21, 201)},
    {
        (1, 10, 100, 1, 20, 200),
        (2, 11, 101, 2, 21, 201),
        (3, 12, 102, 3, 24, 204),
        (5, 14, 104, 5, 22, 202),
    },
]
FIGURE_2_OUTER_JOIN = [
    {
        (1, 10, 100, 1, 20, 200),
        (2, 11, 101, 2, 21, 201),
        (3, 12, 102, None, None, None),
        (4, 13, 103, None, None, None),
        (None, None, None, 5, 22, 202),
        (None, None, None, 6, 23, 203),
    },
    {
        (1, 10, 100, 1, 20, 200),
        (2, 11, 101, 2, 21, 201),
        (3, 12, 102, 3, 24, 204),
        (5, 14, 104, 5, 22, 202),
        (4, 13, 103, None, None, None),
        (7, 15, 105, None, None, None),
        (None, None, None, 6, 23, 203),
        (None, None, None, 8, 25, 205),
    },
]
FIGURE_3_R0 = [{(3, 12, 102), (4, 13, 103)}, {(4, 13, 103), (7, 15, 105)}]
FIGURE_3_S0 = [{(5, 22, 202), (6, 23, 203)}, {(6, 23, 203), (8, 25, 205)}]
FIGURE_4 = [{("r1", "s1"), ("r2", "s2")}, {("r1", "s1"), ("r2", "s2"), ("r3", "s5"), ("r5", "s3")}]
FIGURE_5_R0 = [{("r3", 3), ("r4", 4)}, {("r4", 4), ("r6", 7)}]
FIGURE_5_S0 = [{("s3", 5), ("s4", 6)}, {("s4", 6), ("s6", 8)}]
FIGURE_6 = [
    {("r1", "s1", 1), ("r2", "s2", 2)},
    {("r1", "s1", 1), ("r2", "s2", 2), ("r3", "s5", 3), ("r5", "s3", 5)},
]
FIGURE_7_R = [
    {("r1", 1), ("r2", 2), ("r3", 3), ("r4", 4)},
    {("r1", 1), ("r2", 2), ("r3", 3), ("r4", 4), ("r5", 5), ("r6", 7)},
]
FIGURE_7_S = [
    {("s1", 1), ("s2", 2), ("s3", 5), ("s4", 6)},
    {("s1", 1), ("s2", 2), ("s3", 5), ("s4", 6), ("s5", 3), ("s6", 8)},
]
R_VIEW, S_VIEW = R[1:], S[1:]


def days(storage: str) -> Iterator[tuple[Example, int]]:
    """The example on both days of the paper."""
    example = Example(storage)
    for moment, day in BOTH_DAYS:
        yield example.go_to(moment), day


def rows(example: Example, structure: str, *columns: str) -> Counter[Row]:
    """What a structure holds in these columns."""
    return Counter(dict(example.tables.held[structure].keep(columns).weights()))


# --- figure 1: the base relations ---


def test_figure_1_the_insertion_sets_lead_from_one_day_to_the_other() -> None:
    for inserted, figure in ((R_I, FIGURE_1_R), (S_I, FIGURE_1_S)):
        assert {(tid, *row) for tid, row in inserted.items()} == figure[1] - figure[0]


@pytest.mark.parametrize("storage", COPYING)
def test_figure_1_copies_of_r_and_s(storage: str) -> None:
    for example, day in days(storage):
        assert rows(example, "copy 0", *R) == Counter(FIGURE_1_R[day])
        assert rows(example, "copy 1", *S) == Counter(FIGURE_1_S[day])


@pytest.mark.parametrize("storage", STORAGES)
def test_figure_1_r_and_s_are_found_in_what_is_stored(storage: str) -> None:
    """Equations (4) and (5): R = R0 ∪ R1, whether there is a copy or not."""
    tids = {side: MemoryZSet.of((side,), *((f"{side[0]}{n}",) for n in range(1, 7))) for side in (R[0], S[0])}
    for example, day in days(storage):
        found_r = example.storage.rows_of_leaf(example.tables, 0, R[:1], tids["r.tid"]).keep(R)
        found_s = example.storage.rows_of_leaf(example.tables, 1, S[:1], tids["s.tid"]).keep(S)
        assert Counter(dict(found_r.weights())) == Counter(FIGURE_1_R[day])
        assert Counter(dict(found_s.weights())) == Counter(FIGURE_1_S[day])


# --- figures 2 and 3: fully materialized ---


@pytest.mark.parametrize("storage", STORAGES)
def test_figure_2_v_as_every_storage_shows_it(storage: str) -> None:
    for example, day in days(storage):
        assert example.view == Counter(FIGURE_2_JOIN[day])


def test_figure_2_v_materialized_in_matview() -> None:
    for example, day in days("matview"):
        assert rows(example, "joined 1", *R_VIEW, *S_VIEW) == Counter(FIGURE_2_JOIN[day])
        assert set(rows(example, "joined 1", "r.tid", "s.tid")) == FIGURE_4[day]


def test_figure_2_outer_join_materialized_in_outerjoin() -> None:
    for example, day in days("outerjoin"):
        assert rows(example, "outer 1", *R_VIEW, *S_VIEW) == Counter(FIGURE_2_OUTER_JOIN[day])


def test_figure_3_r0_and_s0_in_matview() -> None:
    for example, day in days("matview"):
        assert rows(example, "left 1", *R_VIEW) == Counter(FIGURE_3_R0[day])
        assert rows(example, "right 1", *S_VIEW) == Counter(FIGURE_3_S0[day])


def test_figure_3_r0_and_s0_are_rows_of_the_outer_join() -> None:
    for example, day in days("outerjoin"):
        stored = list(rows(example, "outer 1", *R_VIEW, *S_VIEW))
        assert {row[:3] for row in stored if row[3] is None} == FIGURE_3_R0[day]
        assert {row[3:] for row in stored if row[0] is None} == FIGURE_3_S0[day]


# --- figures 4 to 7: pointers ---


@pytest.mark.parametrize("storage", ["viewcache", "partial-operand"])
def test_figure_4_pairs_of_tuple_identifiers(storage: str) -> None:
    for example, day in days(storage):
        assert example.tables.held["pairs 1"].columns == ("r.tid", "s.tid")
        assert rows(example, "pairs 1", "r.tid", "s.tid") == Counter(FIGURE_4[day])


def test_figure_5_r0_and_s0_partially_materialized_in_partial_join() -> None:
    for example, day in days("partial-join"):
        assert example.tables.held["left 1"].columns == ("r.tid", "r.a")
        assert example.tables.held["right 1"].columns == ("s.tid", "s.a")
        assert rows(example, "left 1", "r.tid", "r.a") == Counter(FIGURE_5_R0[day])
        assert rows(example, "right 1", "s.tid", "s.a") == Counter(FIGURE_5_S0[day])


def test_figure_6_pairs_with_the_join_attribute_once_in_partial_join() -> None:
    for example, day in days("partial-join"):
        assert sorted(example.tables.held["joined 1"].columns) == ["r.a", "r.tid", "s.tid"]
        assert rows(example, "joined 1", "r.tid", "s.tid", "r.a") == Counter(FIGURE_6[day])


def test_figure_7_r_and_s_partially_materialized_in_partial_operand() -> None:
    for example, day in days("partial-operand"):
        assert example.tables.held["operand 0"].columns == ("r.tid", "r.a")
        assert example.tables.held["operand 1"].columns == ("s.tid", "s.a")
        assert rows(example, "operand 0", "r.tid", "r.a") == Counter(FIGURE_7_R[day])
        assert rows(example, "operand 1", "s.tid", "s.a") == Counter(FIGURE_7_S[day])


@pytest.mark.parametrize("storage", STORAGES)
def test_nothing_but_the_figures_is_stored(storage: str) -> None:
    """Every table of every storage, whole."""
    for example, _ in days(storage):
        assert example.stored() == example.at.stored(storage)
