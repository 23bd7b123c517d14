"""Judging by the vectors that the states claim: each is a cut, and must do what its level asks.

weak          the state shows V(its cut)
strong        and its cut is closed, and not before that of the state before it
complete      and the cuts go from nothing to everything, one unit at a time
"""

from itertools import pairwise

from viewkeeper.checker import explain
from viewkeeper.checker.case import Case, Finding
from viewkeeper.checker.judgement import Violation
from viewkeeper.checker.schedule import Cut, within
from viewkeeper.errors import HistoryError
from viewkeeper.messages import Vector


def judge_claimed(case: Case) -> tuple[Finding, Finding, Finding]:
    """The findings for weak, strong and complete."""
    vectors = [_claim(case, state) for state in range(len(case.shown))]
    cuts: list[Cut] = []
    misplaced: Violation | None = None
    for state, vector in enumerate(vectors):
        if wrong := _wrong_content(case, state, vector):
            return Finding(False, violation=wrong), Finding(False, violation=misplaced), Finding(None)
        cuts.append(case.schedule.cut_of(vector))
        misplaced = misplaced or _misplaced(case, state, cuts)
    weak = Finding(True, tuple(cuts))
    if misplaced:
        return weak, Finding(False, violation=misplaced), Finding(None)
    strong = Finding(True, tuple(cuts))
    if _steps_one_by_one(case, cuts):
        return weak, strong, strong
    return weak, strong, Finding(False, violation=explain.passed_over(case, cuts))


def _claim(case: Case, state: int) -> Vector:
    vector = case.history.states[state].vector
    if vector is None:
        raise HistoryError(
            f"states[{state}].vector: expected the position of each source, found none",
            "a history without vectors can only be judged blindly (--blind)",
        )
    return vector


def _wrong_content(case: Case, state: int, vector: Vector) -> Violation | None:
    if unknown := case.schedule.unknown_in(vector):
        return explain.unknown_position(case, state, *unknown)
    cut = case.schedule.cut_of(vector)
    return None if case.source_states.at(cut) == case.shown[state] else explain.wrong_claim(case, state, cut)


def _misplaced(case: Case, state: int, cuts: list[Cut]) -> Violation | None:
    """Whether the last of the cuts, that of `state`, lies on no serial schedule with the one before."""
    cut = cuts[-1]
    if not case.schedule.is_closed(cut):
        return explain.not_closed(case, state, cut, claimed=True)
    if state and not within(cuts[-2], cut):
        return explain.out_of_order(case, state, cut, cuts[-2], claimed=True)
    return None


def _steps_one_by_one(case: Case, cuts: list[Cut]) -> bool:
    schedule = case.schedule
    return (
        cuts[0] == schedule.nothing
        and cuts[-1] == schedule.settled
        and all(later == earlier or later in schedule.successors(earlier) for earlier, later in pairwise(cuts))
    )
