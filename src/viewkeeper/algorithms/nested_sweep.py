"""Nested SWEEP: concurrent updates are folded into the sweep that meets them.

Source     Agrawal et al. (1997), figure 6
Assumes    as sweep
Reaches    strong, for single updates and source-local transactions: one state for all that was folded together
Costs      at most n - 1 queries per update; what is folded in shares the rest of the way

    meeting ΔR_j at hop j, with S covered:   ΔV = answer - ΔR_j ⋈ temp + ViewChange(ΔR_j over S ∪ {j})

Three things that the figure leaves open. All waiting updates of R_j are folded at once, since the answer shows them
all. An update is folded only if nothing older of its source stays behind and if R_j is all that it touches, so that
no source is seen out of order and no transaction in parts; anything else is compensated as sweep does and stays in
the queue. And recursion ends: past `depth` the algorithm goes on as sweep.

S          the operands joined so far             folded    the updates that this sweep takes along
later      ΔR_k of operands of the same update that are swept after this one: they still count as old
"""

from typing import Any

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algorithms.effects import Install, Next, Process
from viewkeeper.algorithms.update_queue import Update, UpdateQueue
from viewkeeper.messages import Answer, HopQuery, ViewDelta
from viewkeeper.sql.view import Operand

Deltas = dict[int, Any]


def nested_sweep(plan: JoinPlan, queue: UpdateQueue, *, depth: int = 8) -> Process:
    """UpdateView: one composite view change per round, for an update and all that was folded into its sweep."""
    everything = frozenset(range(len(plan.operands)))
    while True:
        u = yield Next()
        folded = [u]
        delta = plan.no_change(queue.make_zset)
        for i in u.operands:
            later = {k: u.deltas[k] for k in u.operands if k > i}
            swept = yield from _view_change(plan, queue, i, u.deltas[i], everything, later, folded, depth)
            delta += plan.finish(swept)
        yield Install(ViewDelta(delta, tuple(t for update in folded for t in update.transactions)))
        queue.forget(queue.waiting[0].rank - 1 if queue.waiting else max(update.rank for update in folded))


def _view_change(
    plan: JoinPlan,
    queue: UpdateQueue,
    i: int,
    change: Any,
    within: frozenset[int],
    later: Deltas,
    folded: list[Update],
    depth: int,
) -> Process:
    """ViewChange(ΔR, Left, i, Right): the change of the join over `within`."""
    delta = plan.start(i, change)
    covered = frozenset({i})
    for hop in plan.path(covered, within):
        j = hop.operand
        temp = delta
        answer = yield HopQuery(hop, temp)
        joining = _foldable(queue, j, answer) if depth > 0 else []
        for update in joining:
            queue.waiting.remove(update)
        met = _total(queue, j, joining)
        left_behind = _total(queue, j, queue.waiting_for(j, answer))
        old = later.get(j.index, met.like(met.columns, ()))
        delta = answer.rows - hop.join(temp, met + left_behind + old)
        covered |= {j.index}
        if joining:
            folded += joining
            delta += yield from _view_change(plan, queue, j.index, met, covered, later, folded, depth - 1)
    return delta


def _foldable(queue: UpdateQueue, operand: Operand, answer: Answer) -> list[Update]:
    """The first waiting updates of a source, as long as each changes this operand alone (or nothing in the view)."""
    first: list[Update] = []
    for update in queue.waiting:
        if update.transactions[0].source == operand.source and update.seq <= answer.seq:
            if not set(update.operands) <= {operand.index}:
                break
            first.append(update)
    return first if any(update.operands for update in first) else []


def _total(queue: UpdateQueue, operand: Operand, updates: list[Update]) -> Any:
    total = queue.make_zset(operand.relation.columns, ())
    for update in updates:
        total += update.deltas.get(operand.index, total.like(total.columns, ()))
    return total
