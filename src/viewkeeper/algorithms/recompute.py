"""Recompute: ask for everything again, source by source.

Source     section 1 of Zhuge et al. (1996): what several commercial systems did
Assumes    nothing
Reaches    convergent: answers belong to different moments, so a source that is asked twice (a self-join, several
           relations) may be seen half changed, and a global transaction in parts. Where each source is asked once, as
           behind the multi-relation wrapper, a state is made of one state of each source: then it is strong
Costs      n queries per round, with whole relations as answers; a round serves all updates that wait

    MV = R_1 ⋈ R_2 ⋈ ... ⋈ R_n, each R_j as it is when it is asked
"""

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algorithms.effects import Install, NextBatch, Process, ReadView
from viewkeeper.algorithms.update_queue import UpdateQueue
from viewkeeper.messages import HopQuery, ViewDelta

AS_MANY_AS_THERE_ARE = 1_000_000


def recompute(plan: JoinPlan, queue: UpdateQueue) -> Process:
    """One recomputation per round; its last one starts after the last update, so the view converges."""
    while True:
        updates = yield NextBatch(AS_MANY_AS_THERE_ARE)
        rows = queue.make_zset((), [((), 1)])
        answered: dict[str, int] = {}
        for hop in plan.path(frozenset()):
            answer = yield HopQuery(hop, rows)
            rows = answer.rows
            answered[hop.operand.source] = min(answered.get(hop.operand.source, answer.seq), answer.seq)
        # The answers show what was delivered before them, also what the round did not start with. That stays in the
        # queue all the same: the last round then starts after the last update, whatever the order of messages was.
        updates += queue.shown(answered)
        mv = yield ReadView()
        yield Install(ViewDelta(plan.finish(rows) - mv, tuple(t for u in updates for t in u.transactions)))
        queue.forget(updates[-1].rank)
