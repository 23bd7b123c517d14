"""Recompute: ask for everything again, source by source.

Source     section 1 of Zhuge et al. (1996): what several commercial systems did
Assumes    nothing
Reaches    convergent: the answers of different sources belong to different moments. Where one source holds all
           relations behind the multi-relation wrapper the answer is atomic, and every state is right
Costs      n queries per round, with whole relations as answers; a round serves all updates that wait

    MV = R_1 ⋈ R_2 ⋈ ... ⋈ R_n, each R_j as it is when it is asked
"""

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algorithms.effects import Install, NextBatch, Process, ReadView
from viewkeeper.algorithms.update_queue import UpdateQueue
from viewkeeper.messages import HopQuery, ViewDelta

AS_MANY_AS_THERE_ARE = 1_000_000


def recompute(plan: JoinPlan, queue: UpdateQueue) -> Process:
    """One recomputation per round; its last one starts behind the last update, so the view converges."""
    while True:
        updates = yield NextBatch(AS_MANY_AS_THERE_ARE)
        rows = queue.make_zset((), [((), 1)])
        for hop in plan.path(frozenset()):
            rows = (yield HopQuery(hop, rows)).rows
        mv = yield ReadView()
        yield Install(ViewDelta(plan.finish(rows) - mv, tuple(t for u in updates for t in u.transactions)))
        queue.forget(updates[-1].rank)
