"""SWEEP: one update at a time, compensated locally as each answer comes in.

Source     Agrawal, El Abbadi, Singh, Yurek: Efficient View Maintenance at Data Warehouses (1997), figure 4
Assumes    a FIFO channel per source; an answer reflects exactly the updates delivered before it; no keys
Reaches    complete, for single updates and source-local transactions
Costs      n - 1 queries per update (per operand that the update touches)

    ΔV = R_1 ⋈ ... ⋈ ΔR_i ⋈ ... ⋈ R_n          every R_j as it was just before the update

u          the update being worked on             ΔV, temp   the partial view change, after and before a hop
i          the operand that it changes            error      what the answer shows of updates after u
hop        the join with the next operand j       answer     R_j ⋈ temp as source j sees it
"""

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algorithms.effects import Install, Next, Process
from viewkeeper.algorithms.update_queue import Update, UpdateQueue
from viewkeeper.messages import HopQuery, ViewDelta


def sweep(plan: JoinPlan, queue: UpdateQueue) -> Process:
    """UpdateView: take the updates in delivery order, install each one's view change."""
    while True:
        u = yield Next()
        delta = yield from view_change(plan, queue, u)
        yield Install(ViewDelta(delta, u.transactions))
        queue.forget(u.rank)


def view_change(plan: JoinPlan, queue: UpdateQueue, u: Update) -> Process:
    """ViewChange of a whole update: the sum over the operands that it touches."""
    delta = plan.no_change(queue.make_zset)
    for i in u.operands:
        delta += yield from operand_change(plan, queue, u, i)
    return delta


def operand_change(plan: JoinPlan, queue: UpdateQueue, u: Update, i: int) -> Process:
    """ViewChange(ΔR_i, i): sweep outwards from operand i, removing the error from each answer."""
    delta = plan.start(i, u.deltas[i])
    for hop in plan.path(frozenset({i})):
        temp = delta
        answer = yield HopQuery(hop, temp)
        error = queue.interfering(hop.operand, u, i, answer)
        delta = answer.rows - hop.join(temp, error)
    return plan.finish(delta)
