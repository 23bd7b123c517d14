"""Each level, and each way to miss it, in both modes."""

import re

import pytest
from history_notation import written

from viewkeeper.checker.judge import check
from viewkeeper.checker.judgement import Judgement, Mode, Reason
from viewkeeper.errors import HistoryError
from viewkeeper.levels import Level
from viewkeeper.messages import position

JOIN = """
    SELECT r1.a, r2.c FROM x.r1 JOIN y.r2 ON r1.b = r2.b
    x.r1(a, b): 1 1
    y.r2(b, c): 1 1

    x: +r1 2 1
    y: +r2 1 2
    x: -r1 1 1
"""

# V(x, y):  (0,0) 11   (1,0) 11 21   (2,0) 21   (0,1) 11 12   (1,1) 11 12 21 22   (2,1) 21 22

COMPLETE = """
    1 1 @ x0 y0
    1 1, 2 1 @ x1 y0
    1 1, 1 2, 2 1, 2 2 @ x1 y1
    2 1, 2 2 @ x2 y1
"""

COMPLETE_IN_ANOTHER_ORDER = """
    1 1 @ x0 y0
    1 1, 1 2 @ x0 y1
    1 1, 1 2, 2 1, 2 2 @ x1 y1
    2 1, 2 2 @ x2 y1
"""

STRONG = """
    1 1 @ x0 y0
    1 1, 1 2, 2 1, 2 2 @ x1 y1
    2 1, 2 2 @ x2 y1
"""

WEAK = """
    1 1 @ x0 y0
    1 1, 2 1 @ x1 y0
    1 1, 1 2 @ x0 y1
    2 1, 2 2 @ x2 y1
"""

CONVERGENT = """
    1 1 @ x0 y0
    7 7 @ x1 y0
    2 1, 2 2 @ x2 y1
"""

NONE = """
    1 1 @ x0 y0
    1 1, 2 1 @ x1 y0
"""


def judged(text: str, *, blind: bool = False) -> Judgement:
    return check(written(text), blind=blind)


@pytest.mark.parametrize("blind", [False, True])
@pytest.mark.parametrize(
    ("states", "level"),
    [
        (COMPLETE, Level.COMPLETE),
        (COMPLETE_IN_ANOTHER_ORDER, Level.COMPLETE),
        (STRONG, Level.STRONG),
        (WEAK, Level.WEAK),
        (CONVERGENT, Level.CONVERGENT),
        (NONE, Level.NONE),
    ],
)
def test_levels_nest(states: str, level: Level, blind: bool) -> None:
    judgement = judged(JOIN + states, blind=blind)
    assert judgement.level is level
    assert judgement.mode is (Mode.BLIND if blind else Mode.CLAIMED)
    assert judgement.verdict == {each: each <= level for each in Level if each}
    assert [violation.level for violation in judgement.violations] == [each for each in Level if each > level]
    assert judgement.violation is (judgement.violations[0] if judgement.violations else None)


@pytest.mark.parametrize(
    ("states", "blind", "state", "reason", "message"),
    [
        pytest.param(
            STRONG,
            False,
            1,
            Reason.SKIPPED_SOURCE_STATE,
            "the source state after transaction 1 (x at 1) has no state of its own: "
            "state 0 comes before it and state 1 shows more",
            id="skipped",
        ),
        pytest.param(
            STRONG,
            True,
            1,
            Reason.SKIPPED_SOURCE_STATE,
            "the source state after transaction 1 (x at 1) has no state of its own: "
            "state 0 comes before it and state 1 shows more",
            id="skipped, blind",
        ),
        pytest.param(
            WEAK,
            False,
            2,
            Reason.ORDER,
            "state 2 claims x at 0 and y at 1, and state 1 before it already x at 1 and y at 0",
            id="order",
        ),
        pytest.param(
            WEAK,
            True,
            2,
            Reason.ORDER,
            "state 2 shows x at 0 and y at 1, and state 1 before it already x at 1 and y at 0",
            id="order, blind",
        ),
        pytest.param(
            CONVERGENT,
            False,
            1,
            Reason.WRONG_CLAIM,
            "state 1 claims x at 1 and y at 0, but shows [7, 7], and that source state gives [1, 1] and [2, 1]",
            id="wrong claim",
        ),
        pytest.param(
            CONVERGENT,
            True,
            1,
            Reason.NO_SOURCE_STATE,
            "state 1 shows [7, 7], which no combination of source states gives",
            id="no source state",
        ),
        pytest.param(
            NONE,
            False,
            1,
            Reason.NOT_CONVERGED,
            "the last state (1) shows [1, 1] and [2, 1], and the final source state gives [2, 1] and [2, 2]",
            id="not converged",
        ),
    ],
)
def test_the_lowest_failed_level_is_explained(
    states: str, blind: bool, state: int, reason: Reason, message: str
) -> None:
    violation = judged(JOIN + states, blind=blind).violation
    assert violation is not None
    assert (violation.state, violation.reason, violation.message) == (state, reason, message)


def test_rows_of_a_wrong_content() -> None:
    violation = judged(JOIN + CONVERGENT).violation
    assert violation is not None
    assert violation.source_state == {"x": position(1), "y": position(0)}
    assert violation.missing == (((1, 1), 1), ((2, 1), 1))
    assert violation.extra == (((7, 7), 1),)


def test_a_large_state_is_explained_by_its_difference() -> None:
    rows = ", ".join(f"{n} 0" for n in range(9))
    text = f"""
        SELECT a, b FROM x.r1
        x.r1(a, b): {rows}

        x: +r1 9 0

        {rows} @ x0
        {rows.replace("3 0, ", "")}, 9 0, 9 9, 9 9 @ x1
    """
    assert [violation.message for violation in judged(text).violations][:2] == [
        "the last state (1) differs from the final source state: it lacks [3, 0] and has 2 × [9, 9] too much",
        "state 1 claims x at 1, but differs from that source state: it lacks [3, 0] and has 2 × [9, 9] too much",
    ]
    blind = judged(text, blind=True).violations[1]
    assert blind.message == (
        "no combination of source states gives state 1: next to x at 1 it lacks [3, 0] and has 2 × [9, 9] too much"
    )


def test_levels_above_a_failed_one_keep_their_own_violation() -> None:
    """Not convergent, but the trouble began earlier: the first state that breaks weak is worth more than the last."""
    judgement = judged(JOIN + "1 1 @ x0 y0\n 7 7 @ x1 y0\n 1 1 @ x2 y1")
    assert [(v.level, v.state, v.reason) for v in judgement.violations] == [
        (Level.CONVERGENT, 2, Reason.NOT_CONVERGED),
        (Level.WEAK, 1, Reason.WRONG_CLAIM),
        (Level.STRONG, 1, Reason.WRONG_CLAIM),
        (Level.COMPLETE, 1, Reason.WRONG_CLAIM),
    ]


def test_levels_compare_by_strength_and_print_as_words() -> None:
    assert [str(level) for level in sorted(Level)] == ["none", "convergent", "weak", "strong", "complete"]


# --- what a state is ---

SELECTION = """
    SELECT a FROM x.r1 WHERE b > 0
    x.r1(a, b): 1 1

    x: +r1 2 0
    x: +r1 3 1
"""


@pytest.mark.parametrize("blind", [False, True])
def test_an_update_that_does_not_change_the_view_needs_its_state(blind: bool) -> None:
    without = judged(SELECTION + "1 @ x0\n 1, 3 @ x2", blind=blind)
    assert without.level is Level.STRONG
    assert without.violation is not None
    assert "after transaction 1 (x at 1)" in without.violation.message
    assert judged(SELECTION + "1 @ x0\n 1 @ x1\n 1, 3 @ x2", blind=blind).level is Level.COMPLETE


@pytest.mark.parametrize("blind", [False, True])
def test_the_last_update_needs_its_state_too(blind: bool) -> None:
    history = """
        SELECT a FROM x.r1 WHERE b > 0
        x.r1(a, b): 1 1

        x: +r1 3 1
        x: +r1 2 0

        1 @ x0
        1, 3 @ x1
    """
    judgement = judged(history, blind=blind)
    assert judgement.level is Level.STRONG
    assert judgement.violation is not None
    assert judgement.violation.message == (
        "the source state after transaction 2 (x at 2) has no state of its own: the states end before it, with state 1"
    )


@pytest.mark.parametrize("blind", [False, True])
def test_states_may_stutter(blind: bool) -> None:
    states = "1 @ x0\n 1 @ x0\n 1 @ x1\n 1, 3 @ x2\n 1, 3 @ x2"
    assert judged(SELECTION + states, blind=blind).level is Level.COMPLETE


@pytest.mark.parametrize("blind", [False, True])
def test_the_initial_source_state_needs_a_state(blind: bool) -> None:
    states = "1, 3 @ x2"
    judgement = judged(SELECTION + states, blind=blind)
    assert judgement.level is Level.STRONG
    assert judgement.violation is not None
    assert judgement.violation.message == (
        "the initial source state has no state of its own: state 0 shows a later one"
    )


def test_a_run_without_transactions_is_complete() -> None:
    history = """
        SELECT a FROM x.r1
        x.r1(a): 1

        1 @ x0
    """
    for blind in (False, True):
        assert judged(history, blind=blind).level is Level.COMPLETE


@pytest.mark.parametrize("blind", [False, True])
def test_counts_matter(blind: bool) -> None:
    history = """
        SELECT a FROM x.r1
        x.r1(a, b): 1 1, 1 2

        x: -r1 1 1

        2*1 @ x0
        {} @ x1
    """
    assert judged(history.format("1"), blind=blind).level is Level.COMPLETE
    assert judged(history.format("2*1"), blind=blind).level is Level.NONE


@pytest.mark.parametrize("blind", [False, True])
def test_a_negative_count_is_a_wrong_result(blind: bool) -> None:
    judgement = judged(SELECTION + "1 @ x0\n -1*1 @ x1\n 1, 3 @ x2", blind=blind)
    assert judgement.level is Level.CONVERGENT
    assert judgement.violation is not None
    assert "state 1" in judgement.violation.message
    assert "-1 × [1]" in judgement.violation.message


# --- claims ---


def test_an_unknown_position_is_a_violation() -> None:
    judgement = judged(JOIN + "1 1 @ x0 y0\n 1 1, 2 1 @ x7 y0\n 2 1, 2 2 @ x2 y1")
    assert judgement.level is Level.CONVERGENT
    assert judgement.violation is not None
    assert judgement.violation.reason is Reason.UNKNOWN_POSITION
    assert judgement.violation.message == "state 1 claims x at 7, where x has no transaction"


def test_a_missing_source_means_nothing_yet() -> None:
    assert judged(JOIN + COMPLETE.replace(" y0", "")).level is Level.COMPLETE


def test_a_source_that_is_none_is_refused() -> None:
    with pytest.raises(HistoryError, match=r'states\[0\]\.vector\["z"\]: z is none of the sources'):
        judged(JOIN + COMPLETE.replace("@ x0 y0\n", "@ z5\n"))


def test_a_claim_can_be_worse_than_the_states() -> None:
    """The content is complete, but the vectors go back and forth."""
    states = COMPLETE.replace("x1 y0", "x2 y0")
    assert judged(JOIN + states).level is Level.CONVERGENT
    assert judged(JOIN + states, blind=True).level is Level.COMPLETE


def test_without_vectors_only_the_blind_mode_works() -> None:
    history = JOIN + COMPLETE.replace("@ x1 y1", "")
    assert judged(history, blind=True).level is Level.COMPLETE
    with pytest.raises(HistoryError, match=r"states\[2\]\.vector: expected the position of each source") as raised:
        judged(history)
    assert "--blind" in raised.value.hint


def test_the_mapping_is_that_of_the_reached_level() -> None:
    first, last = {"x": position(0), "y": position(0)}, {"x": position(2), "y": position(1)}
    middle = {"x": position(1), "y": position(1)}
    for blind in (False, True):
        assert judged(JOIN + STRONG, blind=blind).mapping == (first, middle, last)
        assert judged(JOIN + CONVERGENT, blind=blind).mapping == (None, None, last)
        assert judged(JOIN + NONE, blind=blind).mapping == (None, None)


def test_the_blind_mode_finds_schedules_other_than_the_delivery_order() -> None:
    y_first = {"x": position(0), "y": position(1)}
    without_vectors = re.sub("@.*", "", COMPLETE_IN_ANOTHER_ORDER)
    assert judged(JOIN + without_vectors, blind=True).mapping[1] == y_first
