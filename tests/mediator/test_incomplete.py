"""Which delivered parts are which that were noted, and which ids begin again."""

import pytest

from viewkeeper.mediator.waits import TIMEOUT, GivenUp, Incomplete, Wait
from viewkeeper.messages import GlobalPart, Transaction, position

BOTH = ("x", "y")
SINCE = "2024-05-01T10:00:00+00:00"


def given(id: str = "t", key: str = "k", missing: tuple[str, ...] = ("y",), *at: int) -> GivenUp:
    return GivenUp(key, id, missing, tuple(("x", position(one)) for one in at), SINCE, SINCE, TIMEOUT)


def part(
    source: str, at: int, id: str = "t", participants: tuple[str, ...] = ("x", "y"), count: int = 1
) -> Transaction:
    return Transaction(source, position(at), (), (GlobalPart(id, participants, count),), merged=count > 1)


def test_an_id_that_begins_again_closes_what_was_given_up() -> None:
    """Night after night the same id; the part of y was lost once."""
    vector = {"x": position(1), "y": position(0)}
    incomplete = Incomplete(vector, (), [given("t", "k", ("y",), 1)])
    (closed,) = incomplete.delivered(part("x", 2))
    assert (closed.key, closed.closed, closed.outstanding) == ("k", True, ())
    assert incomplete.settled() == [closed]
    assert incomplete.delivered(part("y", 1)) == []
    assert incomplete.waits(("x", "y")) == ()


def test_a_late_part_before_the_id_begins_again() -> None:
    vector = {"x": position(1), "y": position(0)}
    incomplete = Incomplete(vector, (), [given("t", "k", ("y",), 1)])
    (late,) = incomplete.delivered(part("y", 1))
    assert late.late == (("y", position(1)),)
    assert incomplete.delivered(part("x", 2)) == []
    (wait,) = incomplete.waits(("x", "y"))
    assert wait.arrived == (("x", position(2)),)
    # It is over when the late part is committed.
    assert incomplete.settled() == []
    vector["y"] = position(1)
    assert incomplete.settled() == [late]


def test_a_part_that_was_delivered_before_what_was_given_up_does_not_close_it() -> None:
    """After a restart both are delivered again: the first of them was whole."""
    incomplete = Incomplete({"x": position(0), "y": position(0)}, (), [given("t", "k", ("y",), 5)])
    assert incomplete.delivered(part("x", 3)) == []
    assert incomplete.taken(part("x", 3)).parts[0].id == "t"
    incomplete.delivered(part("x", 5))
    assert incomplete.taken(part("x", 5)).parts == (GlobalPart("k", ("x",)),)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_parts_that_are_merged_with_one_that_was_given_up_are_their_own(count: int) -> None:
    incomplete = Incomplete({"x": position(0), "y": position(0)}, (), [given("t", "k", ("y",), 2)])
    merged = part("x", 9, count=count)
    incomplete.delivered(merged)
    half, *rest = incomplete.taken(merged).parts
    assert half == GlobalPart("k", ("x",))
    assert rest == ([GlobalPart("t", ("x", "y"), count - 1)] if count > 1 else [])
    assert len(incomplete.waits(("x", "y"))) == count - 1


def test_a_source_with_several_parts_that_are_given_up_and_late_in_one_capture() -> None:
    participants = ("x", "x", "y")
    incomplete = Incomplete({"x": position(0), "y": position(0)}, (), [given("t", "k", ("x", "y"), 2)])
    merged = part("x", 9, participants=participants, count=2)
    (late,) = incomplete.delivered(merged)
    assert late.late == (("x", position(9)),)
    assert incomplete.taken(merged).parts == (GlobalPart("k", ("x",)),)


def test_a_request_for_what_is_committed_is_for_nothing() -> None:
    """The id is used again, at a later position."""
    vector = {"x": position(3), "y": position(3)}
    incomplete = Incomplete(vector)
    incomplete.delivered(part("x", 9))
    (wait,) = incomplete.waits(("x", "y"))
    assert incomplete.same(Wait("t", ("y",), (("x", position(3)),), SINCE)) is None
    assert incomplete.same(Wait("t", ("y",), (("x", position(4)),), SINCE)) == wait


def test_many_that_were_given_up_are_not_looked_at_for_other_ids() -> None:
    found = [given(f"t{number}", f"k{number}", ("y",), number + 1) for number in range(3)]
    incomplete = Incomplete({"x": position(0), "y": position(0)}, (), found)
    assert incomplete.given == tuple(found)
    assert [one.key for one in incomplete.delivered(part("y", 1, "t1"))] == ["k1"]
