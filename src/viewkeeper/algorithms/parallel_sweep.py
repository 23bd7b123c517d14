"""Parallel SWEEP: the left and the right sweep of an update at once.

Source     Agrawal et al. (1997), section 5.3: the two loops of ViewChange are independent
Assumes    as sweep
Reaches    complete, for single updates and source-local transactions
Costs      n - 1 queries per update, in the time of its longer side. Where sweep finds no partner on one side, and then
           has nothing left to ask, the other side is already out

    ΔV = ΔR_i ⋈ left ⋈ right          left = the operands on one side of R_i, right = those on the other

On a join graph the sides are what the graph falls into without R_i: one on a cycle, n - 1 on a star. Every side
starts from ΔR_i. If each carried the weights of ΔR_i they would be multiplied together at the merge, and a deletion
would come out positive. So each side carries the rows of ΔR_i with weight 1 and an id, and the weight comes in once,
at the merge.
"""

from typing import Any

from viewkeeper.algebra.joins import TAG, JoinPlan
from viewkeeper.algorithms.effects import Install, Join, Next, Process, Spawn
from viewkeeper.algorithms.update_queue import Update, UpdateQueue
from viewkeeper.messages import HopQuery, ViewDelta

ID = f"{TAG}id"


def parallel_sweep(plan: JoinPlan, queue: UpdateQueue) -> Process:
    """As sweep, with every update's sides swept at once."""
    while True:
        u = yield Next()
        delta = yield from parallel_view_change(plan, queue, u)
        yield Install(ViewDelta(delta, u.transactions))
        queue.forget(u.rank)


def parallel_view_change(plan: JoinPlan, queue: UpdateQueue, u: Update) -> Process:
    """ViewChange of a whole update: the sum over the operands that it touches."""
    delta = plan.no_change(queue.make_zset)
    for i in u.operands:
        delta += yield from _operand_change(plan, queue, u, i)
    return delta


def _operand_change(plan: JoinPlan, queue: UpdateQueue, u: Update, i: int) -> Process:
    delta = plan.start(i, u.deltas[i])
    numbered = [((number, *row), weight) for number, (row, weight) in enumerate(delta.weights())]
    columns = (ID, *delta.columns)
    ones = delta.like(columns, [(row, 1) for row, _ in numbered])
    sides = []
    for component in plan.components(without=i):
        sides.append((yield Spawn(_side(plan, queue, u, i, ones, component))))
    merged = delta.like(columns, numbered)
    covered = frozenset({i})
    for component, side in zip(plan.components(without=i), (yield Join(*sides)), strict=True):
        covered |= component
        merged = _merge(plan, merged, side, covered)
    return plan.finish(merged.keep(plan.carried(covered)))


def _side(plan: JoinPlan, queue: UpdateQueue, u: Update, i: int, ones: Any, component: frozenset[int]) -> Process:
    delta = ones
    for hop in plan.path(frozenset({i}), within=component):
        temp = delta
        answer = yield HopQuery(hop, temp)
        error = queue.interfering(hop.operand, u, i, answer)
        delta = answer.rows - hop.join(temp, error)
    return delta


def _merge(plan: JoinPlan, merged: Any, side: Any, covered: frozenset[int]) -> Any:
    """Join on the id; what both carry of R_i is the same, so it is taken from the left."""
    new = tuple(column for column in side.columns if column not in merged.columns)
    other = side.keep((ID, *new)).rename((f"{ID}_side", *new))
    return merged.join(other, ((ID, f"{ID}_side"),), (), (ID, *plan.carried(covered)))
