"""C-T-Strobe: C-Strobe for source-local transactions.

Source     Zhuge et al. (1996), section 6, names it; derived here from the version rule of `c_strobe.py`
Assumes    keys; a FIFO channel per source
Reaches    complete, for single updates and source-local transactions
Costs      as c-strobe, per relation that the transaction inserts into

    Δ = ∪ V⟨insertions of T into r⟩ over the relations r, as of just after T
    MV = key_delete(MV, deletions of T) + Δ

The window in which events are taken back starts behind the whole transaction: what T itself deleted stays deleted,
and the relations that it inserted into see each other's new rows.
"""

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algorithms.c_strobe import CompleteAnswers, install_complete
from viewkeeper.algorithms.effects import Next, Process
from viewkeeper.algorithms.keyed import split_actions
from viewkeeper.algorithms.update_queue import UpdateQueue


def c_t_strobe(plan: JoinPlan, queue: UpdateQueue, *, grouped: bool = True) -> Process:
    """Process each transaction in order of arrival."""
    complete = CompleteAnswers(plan, queue, grouped)
    while True:
        u = yield Next()
        actions = split_actions(u.changes, plan.view, queue.make_zset)
        yield from install_complete(plan, complete, actions, u.end, u.transactions)
        queue.forget(u.rank)
