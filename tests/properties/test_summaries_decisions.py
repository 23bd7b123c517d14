"""Whether a refresh is incremental or recomputes, by what was learned."""

import pytest

from viewkeeper.planner.summaries.decision import TOO_FEW, decide
from viewkeeper.planner.summaries.learned import Learned


def learned(incremental: float, recompute: float | None, changes: int = 10_000) -> Learned:
    """Refreshes of so many changes took so many seconds."""
    known = Learned().after(changes, {}, incremental, 0.0)
    return known if recompute is None else known.recomputed(recompute)


@pytest.mark.parametrize("changes", [1, TOO_FEW])
def test_few_changes_are_never_a_reason_to_recompute(changes):
    """What recomputing took was measured on the driver, perhaps, when the tables were small."""
    assert not decide(learned(9.0, 0.01), changes, 50).recompute


def test_many_changes_are_handled_the_cheaper_way():
    assert decide(learned(9.0, 1.0), 10_000, 50_000).recompute
    assert not decide(learned(1.0, 9.0), 10_000, 50_000).recompute
    # Ten times the usual changes are expected to take ten times as long.
    assert decide(learned(1.0, 9.0), 100_000, 50_000).recompute


def test_before_anything_is_learned_the_share_of_the_fact_decides():
    assert decide(Learned(), 60_000, 100_000).recompute
    assert not decide(Learned(), 40_000, 100_000).recompute


def test_without_a_stored_core_there_is_nothing_to_recompute_from():
    assert not decide(learned(9.0, 0.01), 10_000_000, None).recompute
