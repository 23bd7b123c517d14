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
from viewkeeper.algorithms.global_parts import GlobalParts, GlobalTransaction
from viewkeeper.algorithms.t_strobe import StrobeWarehouse
from viewkeeper.algorithms.update_queue import Update, UpdateQueue


def g_strobe(plan: JoinPlan, queue: UpdateQueue) -> Process:
    """As T-Strobe, part by part."""
    yield from _GlobalStrobeWarehouse(plan, queue).take_transactions()


class _GlobalStrobeWarehouse(StrobeWarehouse):
    def __init__(self, plan: JoinPlan, queue: UpdateQueue) -> None:
        super().__init__(plan, queue)
        # All that deliver to this queue, not only those of the view: each part is delivered once and counted once.
        self._parts = GlobalParts(queue.sources)
        self._incomplete: set[GlobalTransaction] = set()

    def reflects(self, update: Update) -> None:
        super().reflects(update)
        for transaction in update.transactions:
            for one in self._parts.add(transaction):
                self._incomplete.add(one)
                if one.is_whole:
                    self._incomplete.discard(one)
                    self._parts.close(one)

    def may_install(self) -> bool:
        return super().may_install() and not self._incomplete
