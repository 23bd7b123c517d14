"""G-Strobe: T-Strobe that shows no global transaction in parts.

Source     Zhuge et al. (1996), section 5.4
Assumes    keys; parts of a global transaction carry its id and its participants; per source they come in commit order
Reaches    strong, for single updates, source-local and global transactions; installs only when quiet
Costs      as t-strobe; waits for whole transactions

    apply AL when    1. UQS = ∅
                     2. whatever a received transaction depends on has been received too
                     3. every received transaction has been received in full

Condition 2 holds by itself where each source reports its own parts in commit order: the part of an older transaction
at the shared source comes first. Where one site reports a transaction whole, the sequence numbers of its parts
restore that order before the algorithm sees them (`sources/sequencer.py`).
"""

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algorithms.effects import Process
from viewkeeper.algorithms.t_strobe import StrobeWarehouse
from viewkeeper.algorithms.update_queue import Update, UpdateQueue


def g_strobe(plan: JoinPlan, queue: UpdateQueue) -> Process:
    """As T-Strobe, part by part."""
    yield from _GlobalStrobeWarehouse(plan, queue).take_transactions()


class _GlobalStrobeWarehouse(StrobeWarehouse):
    def __init__(self, plan: JoinPlan, queue: UpdateQueue) -> None:
        super().__init__(plan, queue)
        self._sources = frozenset(plan.view.sources)
        self._missing: dict[str, frozenset[str]] = {}

    def reflects(self, update: Update) -> None:
        super().reflects(update)
        for part in update.transactions:
            if part.global_id is not None:
                # A participant that has nothing to do with the view does not report, and is not waited for.
                missing = self._missing.setdefault(part.global_id, self._sources.intersection(part.participants))
                self._missing[part.global_id] = missing - {part.source}
                if not self._missing[part.global_id]:
                    del self._missing[part.global_id]

    def may_install(self) -> bool:
        return super().may_install() and not self._missing
