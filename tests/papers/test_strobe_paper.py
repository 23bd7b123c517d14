"""The examples of the Strobe paper, step by step. (1, 2, 3, 4) is the row of A, B, C, D."""

from recording import natural, play, states

ABC = ("r1.a", "r1.b", "r2.c")
ABCD = (*ABC, "r3.d")


def test_example_1_conventional_keeps_a_deleted_row():
    recording, report = play("strobe-1")
    assert recording.said == ["y@1", "Q1", "A1", "Q2", "x@1", "state 1", "A2", "state 2"]
    assert natural(recording.answers[0], *ABC) == {(1, 2, 3): 1}
    assert natural(recording.answers[1], *ABCD) == {(1, 2, 3, 4): 1}
    assert states(report) == [[], [(1, 2, 3, 4)]], "the final view is incorrect: the sources give nothing"


def test_example_1_the_same_timing_under_sweep():
    recording, report = play("strobe-1-sweep")
    assert recording.said[:6] == ["y@1", "Q1", "A1", "Q2", "x@1", "A2"]
    assert states(report) == [[(1, 2, 3, 4)], []]


def test_example_2_next_source():
    recording, _ = play("strobe-2")
    assert recording.queries[0] == "x: {[2, 3]} ⋈ r1"
    assert recording.targets() == ["x", "z"]
    assert natural(recording.answers[1], *ABCD) == {(1, 2, 3, 4): 1}


def test_example_3_strobe_applies_the_pending_deletion_to_the_answer():
    recording, report = play("strobe-3")
    assert recording.said == ["y@1", "Q1", "A1", "Q2", "x@1", "A2", "state 1"]
    assert natural(recording.answers[1], *ABCD) == {(1, 2, 3, 4): 1}, "the answer shows the deleted row"
    assert states(report) == [[]], "key_delete took it out again"


def test_example_4_strobe_shows_the_middle_of_a_transaction():
    _, report = play("strobe-4")
    assert states(report) == [[], [(3, 4)]]
    violation = report.claimed.violation
    assert violation is not None
    assert violation.state == 1


def test_example_4_t_strobe_does_not():
    _, report = play("strobe-4-t-strobe")
    assert states(report) == [[(3, 4)]]


def test_example_5_t_strobe_under_a_global_transaction():
    recording, report = play("strobe-5")
    assert natural(recording.answers[0], "r1.a", "r1.b", "r2.c") == {(1, 3, 5): 1}, "evaluated after U2"
    assert states(report) == [[(1, 3, 5)], [(1, 3, 5), (2, 3, 5)]]
    assert report.blind.violation is not None, "no mapping saves it: the first state has half of T2"


def test_example_5_g_strobe_waits_for_the_whole_of_it():
    recording, report = play("strobe-5-g-strobe")
    assert states(report) == [[(1, 3, 5), (2, 3, 5)]]
    assert recording.said[-1] == "state 1"


def test_example_6_c_strobe_with_the_deletion_behind_the_answer():
    recording, report = play("strobe-6")
    # Q_{1,1,0} at x and at z, then Q_{1,2,1} = [1, 2] ⋈ [2, 3] ⋈ r3 at z, whose answer is a duplicate.
    assert recording.targets() == ["x", "z", "z"]
    assert [natural(answer, *ABCD) for answer in recording.answers[1:]] == [{(1, 2, 3, 4): 1}] * 2
    assert states(report) == [[(1, 2, 3, 4)], []]


def test_example_7_c_strobe_with_the_deletion_before_the_answer():
    recording, report = play("strobe-7")
    # A^1 is empty, so z is not asked; the compensating query asks it.
    assert recording.targets() == ["x", "z"]
    assert recording.answers[0].is_empty()
    assert natural(recording.answers[1], *ABCD) == {(1, 2, 3, 4): 1}
    assert states(report) == [[(1, 2, 3, 4)], []]
