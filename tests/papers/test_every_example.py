"""Every worked example goes through the states that its paper gives, and reaches the level that it should."""

import pytest
from recording import play, states

from viewkeeper.levels import Level
from viewkeeper.sim.examples import EXAMPLES

REACHED = {
    "strobe-1": Level.NONE,
    "strobe-3": Level.STRONG,
    "strobe-4": Level.CONVERGENT,
    "strobe-5": Level.WEAK,
    "strobe-5-g-strobe": Level.STRONG,
    "sweep-eca": Level.STRONG,
    "sweep-eca-key": Level.NONE,
    "sweep-strobe": Level.STRONG,
    "sweep-figure-5-nested": Level.STRONG,
    "sweep-recompute": Level.STRONG,
    "periodic-c-strobe": Level.STRONG,
    "wrapper-1-without": Level.NONE,
}
"""all others are complete"""


@pytest.mark.parametrize("name", EXAMPLES)
def test_states_and_level(name):
    _, report = play(name)
    assert states(report) == EXAMPLES[name].expected_states()
    assert report.level is REACHED.get(name, Level.COMPLETE)
    assert report.kept_promise


def test_recompute_mixes_moments():
    """r1 was asked before U3 came and r3 after U2: one state of each source, so a serial schedule has it."""
    _, report = play("sweep-recompute")
    assert {source: int(at) for source, at in report.history.states[1].vector.items()} == {"s1": 0, "s2": 1, "s3": 1}
