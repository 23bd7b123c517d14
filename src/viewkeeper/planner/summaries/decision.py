"""Incremental, or recomputed: whichever is expected to cost less.

    incremental    what past refreshes took, for as many changes as there are now
    recomputed     what computing the tables from the stored core took last time; else a guess by the numbers of rows

Without a stored core there is nothing to recompute from, and few changes are not worth a job of Spark: the refresh is
then incremental.
"""

from dataclasses import dataclass
from typing import Any

from viewkeeper.planner.summaries.learned import Learned

WORTH_RECOMPUTING = 0.5
"""changes for each row of the fact beyond which recomputing is tried, before anything was learned"""
TOO_FEW = 1000
"""changes that are no reason to try it, however small the fact"""


@dataclass(frozen=True)
class Decision:
    """What was decided, and on what grounds."""

    recompute: bool
    reason: str
    incremental: float | None = None
    """expected seconds"""
    recomputed: float | None = None

    def told(self) -> dict[str, Any]:
        return {
            "decision": "recompute" if self.recompute else "incremental",
            "reason": self.reason,
            "expected_incremental_seconds": self.incremental,
            "expected_recompute_seconds": self.recomputed,
        }


def decide(learned: Learned, changes: int, fact_rows: int | None) -> Decision:
    """Whether to recompute; `fact_rows` is None if the fact is not stored."""
    if fact_rows is None:
        return Decision(False, "the core is not stored", learned.incremental(changes))
    share = changes / max(fact_rows, 1)
    incremental, recomputed = learned.incremental(changes), learned.recompute
    if changes > TOO_FEW and incremental is not None and recomputed is not None:
        reason = f"{incremental:.3g} s expected for {changes:,} changes, {recomputed:.3g} s to recompute"
        return Decision(incremental > recomputed, reason, incremental, recomputed)
    reason = f"{changes:,} changes of {fact_rows:,} facts"
    return Decision(share > WORTH_RECOMPUTING and changes > TOO_FEW, reason, incremental, recomputed)
