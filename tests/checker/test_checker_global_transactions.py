"""Global transactions: atomic for strong and complete, crossing ones merged, incomplete ones not yet there."""

import pytest
from history_notation import written

from viewkeeper.checker.judge import check
from viewkeeper.checker.judgement import Judgement, Reason
from viewkeeper.levels import Level

PAIR = """
    SELECT r1.a, r2.b FROM x.r1 CROSS JOIN y.r2
    x.r1(a): 0
    y.r2(b): 0
"""


def judged(text: str, *, blind: bool) -> Judgement:
    return check(written(text), blind=blind)


both_modes = pytest.mark.parametrize("blind", [False, True])


@both_modes
def test_all_parts_at_once_are_one_step(blind: bool) -> None:
    history = f"""{PAIR}
        x T: -r1 0, +r1 1
        y: -r2 0, +r2 2
        y T: -r2 2, +r2 3

        0 0 @ x0 y0
        0 2 @ x0 y1
        1 3 @ x1 y2
    """
    assert judged(history, blind=blind).level is Level.COMPLETE


@both_modes
def test_what_stands_behind_a_part_waits_for_the_others(blind: bool) -> None:
    """y's second transaction is shown before T: no serial schedule does that."""
    history = f"""{PAIR}
        y T: -r2 0, +r2 1
        y: -r2 1, +r2 2
        x T: -r1 0, +r1 1

        0 0 @ x0 y0
        0 2 @ x0 y2
        1 2 @ x1 y2
    """
    judgement = judged(history, blind=blind)
    assert judgement.level is Level.WEAK
    assert judgement.violation is not None
    assert judgement.violation.reason is Reason.SPLIT_GLOBAL_TRANSACTION
    assert {part.global_ids for part in judgement.violation.transactions} == {("T",)}


CROSSING = f"""{PAIR}
    x T2: -r1 0, +r1 2
    y T4: -r2 0, +r2 4
    x: -r1 2, +r1 3
    x T4: -r1 3, +r1 4
    y T2: -r2 4, +r2 2
    y: -r2 2, +r2 9
"""


@both_modes
def test_crossing_transactions_are_one_unit(blind: bool) -> None:
    """x has T2 before T4, y has T4 before T2, and x's local transaction is caught in between."""
    judgement = judged(f"{CROSSING} 0 0 @ x0 y0\n 4 2 @ x3 y2\n 4 9 @ x3 y3", blind=blind)
    assert judgement.level is Level.COMPLETE
    (merged,) = judgement.merged_units
    assert [(member.source, *member.global_ids) for member in merged] == [
        ("x", "T2"),
        ("y", "T4"),
        ("x",),
        ("x", "T4"),
        ("y", "T2"),
    ]
    assert len(judgement.to_json()["merged_units"][0]) == 5


@both_modes
def test_nothing_within_a_merged_unit_is_strong(blind: bool) -> None:
    judgement = judged(f"{CROSSING} 0 0 @ x0 y0\n 3 4 @ x2 y1\n 4 9 @ x3 y3", blind=blind)
    assert judgement.level is Level.WEAK
    assert judgement.violation is not None
    assert judgement.violation.message.endswith("that splits the global transactions T2 and T4, which cross")


@both_modes
def test_a_merged_unit_that_is_skipped_is_named(blind: bool) -> None:
    judgement = judged(f"{CROSSING} 0 0 @ x0 y0\n 4 9 @ x3 y3", blind=blind)
    assert judgement.level is Level.STRONG
    assert judgement.violation is not None
    assert judgement.violation.message.startswith(
        "the source state after the global transactions T2 and T4, which cross "
        "(x at 3 and y at 2) has no state of its own"
    )


INCOMPLETE = f"""{PAIR}
    x: -r1 0, +r1 1
    x T(x y): -r1 1, +r1 2
    x: -r1 2, +r1 3
    y: -r2 0, +r2 1
"""


@both_modes
def test_an_incomplete_transaction_has_not_happened(blind: bool) -> None:
    """y's part of T never arrives: T and what follows it at x are held back, and the rest can be complete."""
    judgement = judged(f"{INCOMPLETE} 0 0 @ x0 y0\n 1 0 @ x1 y0\n 1 1 @ x1 y1", blind=blind)
    assert judgement.level is Level.COMPLETE


@both_modes
def test_an_incomplete_transaction_that_is_shown_is_weak(blind: bool) -> None:
    judgement = judged(f"{INCOMPLETE} 0 0 @ x0 y0\n 2 0 @ x2 y0\n 3 1 @ x3 y1", blind=blind)
    assert judgement.level is Level.WEAK
    assert judgement.violation is not None
    assert judgement.violation.reason is Reason.INCOMPLETE_GLOBAL_TRANSACTION
    assert judgement.violation.state == 1
    assert judgement.violation.message.endswith("that shows global transaction T, whose part from y never arrived")


@both_modes
def test_a_participant_outside_the_history_is_not_missed(blind: bool) -> None:
    history = f"""{PAIR}
        x T(x elsewhere): -r1 0, +r1 1

        0 0 @ x0 y0
        1 0 @ x1 y0
    """
    assert judged(history, blind=blind).level is Level.COMPLETE


TOGETHER = f"""{PAIR}
    x T(x y)&U(x y): -r1 0, +r1 2
    y T(x y): -r2 0, +r2 1
    y: -r2 1, +r2 5
    y U(x y): -r2 5, +r2 2
"""


@both_modes
def test_what_was_captured_together_is_one_unit(blind: bool) -> None:
    """x delivers its parts of T and U as one transaction, and y has a local one between its parts."""
    judgement = judged(f"{TOGETHER} 0 0 @ x0 y0\n 2 2 @ x1 y3", blind=blind)
    assert judgement.level is Level.COMPLETE
    (merged,) = judgement.merged_units
    assert [(one.source, *one.global_ids) for one in merged] == [("x", "T", "U"), ("y", "T"), ("y",), ("y", "U")]


@both_modes
def test_a_split_of_what_was_captured_together_is_weak(blind: bool) -> None:
    judgement = judged(f"{TOGETHER} 0 0 @ x0 y0\n 2 1 @ x1 y1\n 2 2 @ x1 y3", blind=blind)
    assert judgement.level is Level.WEAK
    assert judgement.violation is not None
    assert judgement.violation.message.endswith(
        "that splits the global transactions T and U, which were captured together"
    )


@both_modes
@pytest.mark.parametrize("order", ["yyyx", "yyxy", "yxyy", "xyyy"])
def test_many_that_were_captured_together_are_one_unit_in_any_order_of_delivery(blind: bool, order: str) -> None:
    own = {
        "x": iter(["x T(x y)&U(x y)&W(x y): -r1 0, +r1 3"]),
        "y": iter(f"y {id}(x y): -r2 {n}, +r2 {n + 1}" for n, id in enumerate("TUW")),
    }
    delivered = "\n".join(next(own[source]) for source in order)
    judgement = judged(f"{PAIR}\n{delivered}\n 0 0 @ x0 y0\n 3 3 @ x1 y3", blind=blind)
    assert judgement.level is Level.COMPLETE, judgement.violations


@both_modes
def test_an_id_that_is_used_again_is_another_transaction(blind: bool) -> None:
    history = f"""{PAIR}
        x T(x y): -r1 0, +r1 1
        x T(x y): -r1 1, +r1 2
        y T(x y): -r2 0, +r2 1
        y T(x y): -r2 1, +r2 2

        0 0 @ x0 y0
        1 1 @ x1 y1
        2 2 @ x2 y2
    """
    assert judged(history, blind=blind).level is Level.COMPLETE


@both_modes
def test_a_source_that_is_listed_twice_has_two_parts(blind: bool) -> None:
    history = f"""{PAIR}
        x T(x x y): -r1 0, +r1 1
        y T(x x y): -r2 0, +r2 1
        x T(x x y): -r1 1, +r1 2

        0 0 @ x0 y0
    """
    assert judged(history + "2 1 @ x2 y1", blind=blind).level is Level.COMPLETE
    assert judged(history + "1 1 @ x1 y1\n 2 1 @ x2 y1", blind=blind).level is Level.WEAK
