"""Strobe: every tuple action on its own; the view is updated when no query is out.

Source     Zhuge et al. (1996), section 5.2
Assumes    keys; a FIFO channel per source
Reaches    strong, for single updates; it knows nothing of transactions and may show one in parts: then convergent
Costs      n - 1 queries per insertion, none per deletion

    U deletion:    add key_delete(MV, U) to AL and U to every pending(Q)
    U insertion:   Q = V⟨U⟩;  A = source_evaluate(Q) less pending(Q);  add insert(MV, A) to AL
    UQS = ∅:       apply AL to MV, without adding duplicates

key_delete on an answer may also remove the new version of a row whose key was deleted and inserted again meanwhile.
That is right: the second insertion has a query of its own, which brings that version.
"""

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algorithms.effects import Next, Process
from viewkeeper.algorithms.keyed import single_actions, split_actions
from viewkeeper.algorithms.t_strobe import StrobeWarehouse
from viewkeeper.algorithms.update_queue import UpdateQueue


def strobe(plan: JoinPlan, queue: UpdateQueue, *, apart: bool = False) -> Process:
    """Upon receipt of update U; `apart` takes transactions apart into their actions."""
    warehouse = StrobeWarehouse(plan, queue)
    while True:
        u = yield Next()
        changes = u.changes
        for place, piece in single_actions(changes, apart=apart):
            if place == len(changes) - 1:
                warehouse.reflects(u)
            yield from warehouse.process(split_actions(piece, plan.view, queue.make_zset))
            yield from warehouse.install_if_quiet()
