"""The examples of the SWEEP paper with its numbers: figure 5, section 5.2, and the illustrations of section 3."""

import pytest
from recording import natural, play, states

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.sweep import sweep
from viewkeeper.algorithms.update_queue import UpdateQueue
from viewkeeper.messages import Answer, Change, Transaction, position
from viewkeeper.sim.examples import EXAMPLES
from viewkeeper.sim.script import parse_relation
from viewkeeper.sql.parse import parse_view

FIGURE_5 = [[(5, 6), (5, 6), (7, 8), (7, 8)], [(5, 6), (5, 6)], [(5, 6)]]


@pytest.mark.parametrize("timing", ["sweep-figure-5", "sweep-figure-5-concurrent"])
def test_figure_5(timing):
    recording, report = play(timing)
    assert dict(report.history.states[0].rows.weights()) == {(7, 8): 2}
    assert states(report) == FIGURE_5
    assert recording.targets() == ["s1", "s3", "s2", "s1", "s2", "s3"], "left sweep first, n - 1 queries each"


@pytest.mark.parametrize("algorithm", ["parallel", "pipelined", "parallel-pipelined", "batched"])
def test_figure_5_by_the_other_complete_sweeps(algorithm):
    _, report = play(f"sweep-figure-5-{algorithm}")
    assert states(report) == FIGURE_5


def test_section_5_2_every_partial_result():
    """ViewChange by hand, over all columns as the paper writes them: (A, B = C, D = E, F)."""
    parsed = [parse_relation(text) for text in EXAMPLES["sweep-figure-5"].relations]
    view = parse_view(EXAMPLES["sweep-figure-5"].view, {relation.name: relation for relation, _ in parsed})
    plan = JoinPlan(view.with_all_columns)
    queue = UpdateQueue(plan.view)
    process = sweep(plan, queue)
    next(process)
    for source, relation, row, count in (
        ("s2", "s2.r2", (3, 5), 1),
        ("s3", "s3.r3", (7, 8), -1),
        ("s1", "s1.r1", (2, 3), -1),
    ):
        queue.append(Transaction(source, position(1), (Change(relation, row, count),)))

    query = process.send(queue.take())
    assert natural(query.delta, "r2.c", "r2.d") == {(3, 5): 1}
    r1_now = MemoryZSet.of(("a", "b"), (1, 3))
    answer = query.hop.join(query.delta, r1_now)
    assert natural(answer, "r1.a", "r2.c", "r2.d") == {(1, 3, 5): 1}, "the answer shows the deletion of (2, 3)"

    query = process.send(Answer(answer, queue.delivered))
    assert natural(query.delta, "r1.a", "r2.c", "r2.d") == {(1, 3, 5): 1, (2, 3, 5): 1}, "compensated by (2, 3, 5)"
    answer = query.hop.join(query.delta, MemoryZSet.of(("e", "f"), (5, 6)))
    assert natural(answer, "r1.a", "r2.c", "r2.d", "r3.f") == {(1, 3, 5, 6): 1, (2, 3, 5, 6): 1}

    install = process.send(Answer(answer, queue.delivered))
    assert natural(install.deltas[0].delta, "r2.d", "r3.f") == {(5, 6): 2}
    next(process)

    query = process.send(queue.take())
    answer = query.hop.join(query.delta, MemoryZSet.of(("c", "d"), (3, 7), (3, 5)))
    assert natural(answer, "r2.c", "r2.d", "r3.f") == {(3, 7, 8): -1}
    query = process.send(Answer(answer, queue.delivered))
    answer = query.hop.join(query.delta, r1_now)
    assert natural(answer, "r1.a", "r2.c", "r2.d", "r3.f") == {(1, 3, 7, 8): -1}
    install = process.send(Answer(answer, queue.delivered))
    assert natural(install.deltas[0].delta, "r1.a", "r2.c", "r2.d", "r3.f") == {(1, 3, 7, 8): -1, (2, 3, 7, 8): -1}


def test_section_3_eca_offsets_the_error_term():
    recording, report = play("sweep-eca")
    assert recording.queries == [
        "s: {[1, 2]} ⋈ r2 ⋈ r3",
        "s: r1 ⋈ {[2, 3]} ⋈ r3 - {[1, 2]} ⋈ {[2, 3]} ⋈ r3",
    ]
    assert dict(recording.answers[0].weights()) == {(1, 2, 3, 4): 1}, "A1 has the error term ΔR1 ⋈ ΔR2 ⋈ R3"
    assert dict(recording.answers[1].weights()) == {(9, 2, 3, 4): 1}
    assert states(report) == [[(1, 2, 3, 4), (9, 2, 3, 4)]]


def test_section_3_strobe_suppresses_the_duplicate():
    recording, report = play("sweep-strobe")
    finals = [natural(answer, "r1.a", "r2.b", "r2.c", "r3.d") for answer in recording.answers[2:]]
    assert finals == [{(1, 2, 3, 4): 1}, {(1, 2, 3, 4): 1, (9, 2, 3, 4): 1}], "ΔR1 ⋈ ΔR2 ⋈ R3 is in both answers"
    assert states(report) == [[(1, 2, 3, 4), (9, 2, 3, 4)]]


def test_section_3_c_strobe_compensates_the_compensation():
    recording, report = play("sweep-c-strobe")
    assert recording.targets() == ["y", "z"], "V⟨U1⟩ at y; ΔR1 ⋈ ΔR2 at z; ΔR1 ⋈ ΔR2 ⋈ ΔR3 needs no source"
    assert all(answer.is_empty() for answer in recording.answers)
    assert states(report)[0] == [(1, 2, 3, 4)]


def test_section_5_2_of_strobe_eca_key_loses_a_deletion():
    _, report = play("sweep-eca-key")
    assert states(report) == [[(1, 2, 3, 4)]], "r1 is empty by now"


def test_figure_6_nested_sweep_folds_concurrent_updates():
    recording, report = play("sweep-figure-5-nested")
    assert states(report) == [[(5, 6)]], "one state for all three"
    # ΔR2 at s1 meets ΔR1, whose missing part is asked at s2; both go on to s3 and meet ΔR3, asked at s2 and s1.
    assert recording.targets() == ["s1", "s2", "s3", "s2", "s1"]
