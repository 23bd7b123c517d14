"""Nested SWEEP: concurrent updates are folded into the sweep that meets them.

Source     Agrawal et al. (1997), figure 6
Assumes    as sweep
Reaches    strong, for single updates and source-local transactions: one state for all that was folded together
Costs      at most n - 1 queries per update; what is folded in shares the rest of the way
Ends       a round holds at most `updates` updates, so it sends at most `updates` · (n - 1) queries per operand touched

    meeting ΔR_j at hop j, with S covered:   ΔV = answer - ΔR_j ⋈ temp + ViewChange(ΔR_j over S ∪ {j})

What the figure leaves open. All waiting updates of R_j are folded at once, since the answer shows them all; those of
the relation that a round begins with are swept with it from the start, for no hop of its own would meet them. An update
is folded only if nothing older of its source stays behind and if R_j is all that it touches, so that no source is seen
out of order and no transaction in parts; anything else is compensated as sweep does and stays in the queue. And a round
ends: when it holds `updates` of them, the rest is compensated and waits for the next round.

A bound on the depth of the calls would not do: the calls of a round grow with its power n - 1. The calls are kept on a
stack of their own, for there may be as many as updates.

S          the operands joined so far             folded    the updates that this round holds
later      ΔR_k of operands of the same update that are swept after this one: they still count as old
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.joins import Hop, JoinPlan
from viewkeeper.algorithms.effects import Install, Next, Process
from viewkeeper.algorithms.update_queue import Update, UpdateQueue
from viewkeeper.messages import HopQuery, ViewDelta
from viewkeeper.sql.view import Operand

MOST_UPDATES = 4_096
"""The largest round that can be asked for. Readers wait for all of it."""

Deltas = dict[int, Any]


def nested_sweep(plan: JoinPlan, queue: UpdateQueue, *, updates: int = 64) -> Process:
    """UpdateView: one composite view change per round, for an update and all that was folded into its sweep."""
    while True:
        u = yield Next()
        folded = [u]
        if len(u.operands) == 1:
            folded += _foldable(queue, plan.operands[u.operands[0]], queue.delivered, updates - 1)
            queue.take_out(folded)
        changes = {i: _total(queue, plan.operands[i], folded) for i in u.operands}
        delta = plan.no_change(queue.make_zset)
        for i, change in changes.items():
            later = {k: changes[k] for k in changes if k > i}
            delta += plan.finish((yield from _view_change(plan, queue, i, change, later, folded, updates)))
        yield Install(ViewDelta(delta, tuple(t for update in folded for t in update.transactions)))
        queue.forget(queue.waiting[0].rank - 1 if queue.waiting else max(update.rank for update in folded))


@dataclass
class _Call:
    """ViewChange(ΔR, Left, i, Right), not yet returned: its ΔV, the operands joined, the hops to come."""

    delta: Any
    covered: frozenset[int]
    hops: Iterator[Hop]


def _call(plan: JoinPlan, i: int, change: Any, within: frozenset[int]) -> _Call:
    own = frozenset({i})
    return _Call(plan.start(i, change), own, iter(plan.path(own, within)))


def _view_change(
    plan: JoinPlan, queue: UpdateQueue, i: int, change: Any, later: Deltas, folded: list[Update], updates: int
) -> Process:
    """The change of the join over all operands; what is folded in on the way is called for on a stack."""
    calls = [_call(plan, i, change, frozenset(range(len(plan.operands))))]
    while True:
        call = calls[-1]
        hop = next(call.hops, None)
        if hop is None:
            calls.pop()
            if not calls:
                return call.delta
            calls[-1].delta += call.delta
            continue
        j = hop.operand
        answer = yield HopQuery(hop, call.delta)
        joining = _foldable(queue, j, answer.seq, updates - len(folded))
        queue.take_out(joining)
        met = _total(queue, j, joining)
        left_behind = _total(queue, j, queue.waiting_for(j, answer))
        old = later.get(j.index, met.like(met.columns, ()))
        call.delta = answer.rows - hop.join(call.delta, met + left_behind + old)
        call.covered |= {j.index}
        if joining:
            folded += joining
            calls.append(_call(plan, j.index, met, call.covered))


def _foldable(queue: UpdateQueue, operand: Operand, seq: int, most: int) -> list[Update]:
    """The first waiting updates of a source, of those delivered up to `seq`, as long as each changes this operand alone
    (or nothing in the view)."""
    first: list[Update] = []
    for update in queue.waiting:
        if len(first) >= most:
            break
        if update.transactions[0].source == operand.source and update.seq <= seq:
            if not set(update.operands) <= {operand.index}:
                break
            first.append(update)
    return first if any(update.operands for update in first) else []


def _total(queue: UpdateQueue, operand: Operand, updates: Iterable[Update]) -> Any:
    """Σ ΔR_j, in one go."""
    changes = (update.deltas[operand.index] for update in updates if operand.index in update.deltas)
    return queue.make_zset(operand.relation.columns, (entry for change in changes for entry in change.weights()))
