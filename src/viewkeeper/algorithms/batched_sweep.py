"""Batched SWEEP: many updates in one sweep, each with a state of its own.

Source     viewkeeper; argued in docs/algorithms/batched-sweep.md
Assumes    as sweep
Reaches    complete, for single updates, source-local and global transactions
Costs      at most n(n - 1) queries per batch of any size: per update they fall as the load rises

    every row carries the tag of its update u           ΔV  =  Σ over u, o of  ΔV tagged (u, o)
    error at hop j for a row tagged u, swept from o:    Σ  ΔR_w ⋈ temp_u   over w with (w, j) > (u, o)

With one update in the batch this is sweep: there u is fixed and the sum over w is taken first. Here the condition is
part of one join, so that a single query and a single compensation serve every update of the batch. What the updates of
the batch do to each other is settled by the same condition as what comes after it: w may lie in the batch or after it.

u, w       ranks in the serial schedule           o, j     operands: the one swept from, the one joined
TAG_U      the rank of the row's own update       TAG_W    the rank of the update that may interfere
"""

from typing import Any

from viewkeeper.algebra.joins import TAG, JoinPlan
from viewkeeper.algorithms.effects import Install, Join, NextBatch, Process, Spawn
from viewkeeper.algorithms.update_queue import Update, UpdateQueue
from viewkeeper.messages import HopQuery, ViewDelta
from viewkeeper.sql.expressions import Expression

TAG_U = f"{TAG}u"
TAG_W = f"{TAG}w"
BEHIND = Expression.greater(TAG_W, TAG_U)
BEHIND_OR_SAME = Expression.greater(TAG_W, TAG_U, or_equal=True)


def batched_sweep(plan: JoinPlan, queue: UpdateQueue, *, batch: int = 64) -> Process:
    """Take what waits, up to `batch` updates; sweep them together; install their states in order, in one commit."""
    while True:
        updates = yield NextBatch(batch)
        sweeps = []
        for o in sorted({operand for u in updates for operand in u.deltas}):
            sweeps.append((yield Spawn(_operand_change(plan, queue, updates, o))))
        delta = plan.no_change(queue.make_zset)
        tagged = delta.like((TAG_U, *delta.columns), ())
        for swept in (yield Join(*sweeps)):
            tagged += swept
        change_of = tagged.split()
        yield Install(*(ViewDelta(change_of.get(u.rank, delta), u.transactions) for u in updates))
        queue.forget(updates[-1].rank)


def _operand_change(plan: JoinPlan, queue: UpdateQueue, updates: list[Update], o: int) -> Process:
    """Sweep all changes of operand o outwards, tagged."""
    delta = plan.start(o, _tagged_changes(plan, queue, updates, o))
    for hop in plan.path(frozenset({o})):
        j = hop.operand
        temp = delta
        answer = yield HopQuery(hop, temp)
        logged = queue.tagged(hop, temp, answer, TAG_W)
        interferes = BEHIND_OR_SAME if j.index > o else BEHIND
        delta = answer.rows - hop.join(temp, logged, extra=(interferes,))
    return plan.finish(delta)


def _tagged_changes(plan: JoinPlan, queue: UpdateQueue, updates: list[Update], o: int) -> Any:
    ranked = ((u.rank, u.deltas[o]) for u in updates if o in u.deltas)
    return queue.tagged_sum(TAG_U, plan.operands[o], ranked)
