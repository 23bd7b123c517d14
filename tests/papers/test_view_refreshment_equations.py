"""Equations (1) to (6) of the view refreshment paper, on random relations and random insertion and deletion sets.

    (1)  V_new = (V_old - V_D) ∪ V_I                    (4)  R_new = ((R0 ∪ R1) - R_D) ∪ R_I
    (2)  V_D = R1 ⋈ S_D ∪ R_D ⋈ S1                      (5)  S_new = ((S0 ∪ S1) - S_D) ∪ S_I
    (3)  V_I = R_new ⋈ S_I ∪ R_I ⋈ S_new                (6)  V_I = five joins of parts

Sets of pairs, by nested loops: nothing of the product but `refresh` in the last test. Tuples have identifiers, so sets
are enough; an update is a deletion and an insertion of the same identifier, and the two are different tuples.
"""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refreshment_paper import STRUCTURES, Example, Moment

from run_size import examples

Tuple = tuple[str, int, int, int]
Relation = frozenset[Tuple]
Pairs = frozenset[tuple[Tuple, Tuple]]


def join(left: Relation, right: Relation) -> Pairs:
    return frozenset((r, s) for r in left for s in right if r[1] == s[1])


@st.composite
def changed_relations(draw: st.DrawFn, name: str) -> tuple[Relation, Relation, Relation]:
    """(old, inserted, deleted): minimal, as the paper wants it, and few values of a, so that much joins."""

    def rows() -> Relation:
        values = st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 1))
        drawn = draw(st.dictionaries(st.integers(0, 7), values, max_size=8))
        return frozenset((f"{name}{number}", *row) for number, row in drawn.items())

    old, new = rows(), rows()
    return old, new - old, old - new


any_r, any_s = changed_relations("r"), changed_relations("s")
Changed = tuple[Relation, Relation, Relation]


class Both:
    """Both relations, their joining and non-joining tuples, and their joins before and after."""

    def __init__(self, r: Changed, s: Changed) -> None:
        self.r, self.r_i, self.r_d = r
        self.s, self.s_i, self.s_d = s
        self.r_new, self.s_new = (self.r - self.r_d) | self.r_i, (self.s - self.s_d) | self.s_i
        self.v_old, self.v_new = join(self.r, self.s), join(self.r_new, self.s_new)
        self.r1, self.s1 = frozenset(r for r, _ in self.v_old), frozenset(s for _, s in self.v_old)
        self.r0, self.s0 = self.r - self.r1, self.s - self.s1

    def five_joins(self) -> list[Pairs]:
        """Equation (6)."""
        return [
            join(self.r_i, self.s0 - self.s_d),
            join(self.r_i, self.s1 - self.s_d),
            join(self.r0 - self.r_d, self.s_i),
            join(self.r1 - self.r_d, self.s_i),
            join(self.r_i, self.s_i),
        ]


@given(any_r, any_s)
def test_equation_1_the_new_join_is_the_old_one_with_its_changes(r: Changed, s: Changed) -> None:
    both = Both(r, s)
    deleted = join(both.r1, both.s_d) | join(both.r_d, both.s1)
    inserted = join(both.r_new, both.s_i) | join(both.r_i, both.s_new)
    assert (both.v_old - deleted) | inserted == both.v_new


@given(any_r, any_s)
def test_equation_2_deletions_need_nothing_outside_the_view(r: Changed, s: Changed) -> None:
    both = Both(r, s)
    assert join(both.r1, both.s_d) | join(both.r_d, both.s1) == both.v_old - both.v_new


@given(any_r, any_s)
def test_equation_3_insertions_need_both_new_relations(r: Changed, s: Changed) -> None:
    both = Both(r, s)
    assert join(both.r_new, both.s_i) | join(both.r_i, both.s_new) == both.v_new - both.v_old


@given(any_r, any_s)
def test_equations_4_and_5_both_relations_are_got_from_their_parts(r: Changed, s: Changed) -> None:
    both = Both(r, s)
    assert ((both.r0 | both.r1) - both.r_d) | both.r_i == both.r_new
    assert ((both.s0 | both.s1) - both.s_d) | both.s_i == both.s_new


@given(any_r, any_s)
def test_equation_6_five_joins_are_equation_3(r: Changed, s: Changed) -> None:
    both = Both(r, s)
    found = frozenset[tuple[Tuple, Tuple]]().union(*both.five_joins())
    assert found == join(both.r_new, both.s_i) | join(both.r_i, both.s_new)


@given(any_r, any_s)
def test_equation_6_no_pair_is_in_two_of_the_five_joins(r: Changed, s: Changed) -> None:
    """By the identifiers alone, which is how pairs are distinguished where they are stored."""
    by_ids = [{(r[0], s[0]) for r, s in pairs} for pairs in Both(r, s).five_joins()]
    assert all(one.isdisjoint(other) for one, other in combinations(by_ids, 2))


def test_equation_6_needs_the_deletions_first() -> None:
    """An updated tuple is in R_D and in R_I: were it not taken from R0, a pair of identifiers would be found twice."""
    r, r_updated, s_new = ("r1", 1, 0, 0), ("r1", 1, 0, 9), ("s1", 1, 0, 0)
    nothing: Relation = frozenset()
    both = Both((frozenset({r}), frozenset({r_updated}), frozenset({r})), (nothing, frozenset({s_new}), nothing))
    assert [len(pairs) for pairs in both.five_joins()] == [0, 0, 0, 0, 1]
    assert join(both.r0, both.s_i) == {(r, s_new)}


def test_equation_3_finds_a_pair_of_new_tuples_twice() -> None:
    """Which is why the ViewCache has to avoid duplicates, and MatView has not."""
    nothing: Relation = frozenset()
    r_i, s_i = frozenset({("r1", 1, 0, 0)}), frozenset({("s1", 1, 0, 0)})
    both = Both((nothing, r_i, nothing), (nothing, s_i, nothing))
    assert join(both.r_new, both.s_i) & join(both.r_i, both.s_new) == both.v_new


@pytest.mark.parametrize("storage", STRUCTURES)
@settings(max_examples=examples(50))
@given(r=any_r, s=any_s)
def test_what_is_stored_follows_from_the_equations(storage: str, r: Changed, s: Changed) -> None:
    both = Both(r, s)
    example = Example(storage).go_to(moment_of(both.r, both.s))
    after = moment_of(both.r_new, both.s_new)
    example.go_to(after)
    assert example.view == after.shown()
    assert example.stored() == after.stored(storage)


def moment_of(r: Relation, s: Relation) -> Moment:
    return Moment.of("random", {row[0]: row[1:] for row in r}, {row[0]: row[1:] for row in s})
