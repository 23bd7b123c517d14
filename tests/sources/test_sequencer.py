"""The sequencer releases the messages of a source in their order, whatever order they come in."""

from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.sources.sequencer import Sequencer


@given(st.permutations(range(1, 8)))
def test_any_order_comes_out_in_order(numbers):
    sequencer = Sequencer()
    released = [message for number in numbers for message in sequencer.receive("x", number, number)]
    assert released == list(range(1, 8))
    assert sequencer.waiting == 0


def test_a_gap_holds_back_its_own_source_only():
    sequencer = Sequencer()
    assert list(sequencer.receive("y", 2, "y2")) == []
    assert list(sequencer.receive("x", 1, "x1")) == ["x1"]
    assert sequencer.waiting == 1
    assert list(sequencer.receive("y", 1, "y1")) == ["y1", "y2"]
