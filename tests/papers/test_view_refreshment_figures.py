"""Figures 1 to 7 of the view refreshment paper, before and after the refresh of 11.17.95, in the storages they show.

The views of figures 2 and 3 are drawn without tuple identifiers; what is stored has them, as the paper says it must.
"""

from collections import Counter
from collections.abc import Iterator

import pytest
from refreshment_figures import (
    FIGURE_1_R,
    FIGURE_1_S,
    FIGURE_2_JOIN,
    FIGURE_2_OUTER_JOIN,
    FIGURE_3_R0,
    FIGURE_3_S0,
    FIGURE_4,
    FIGURE_5_R0,
    FIGURE_5_S0,
    FIGURE_6,
    FIGURE_7_R,
    FIGURE_7_S,
)
from refreshment_history import NOV_15, NOV_17, R_I, S_I
from refreshment_paper import STRUCTURES, Example, R, Row, S

from viewkeeper.algebra.memory import MemoryZSet

STORAGES = list(STRUCTURES)
COPYING = ["viewcache", "partial-join", "partial-operand"]
BOTH_DAYS = [(NOV_15, 0), (NOV_17, 1)]

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
