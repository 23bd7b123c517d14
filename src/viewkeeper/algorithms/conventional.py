"""Conventional incremental maintenance, as if the sources stood still: the baseline that shows the anomalies.

Source     Blakeley, Larson, Tompa (1986), as example 1 of Zhuge et al. (1996) applies it to a warehouse
Assumes    keys; and, wrongly, that no source changes while a query is out
Reaches    no level under concurrency; complete when every update is over before the next one begins
Costs      n - 1 queries per insertion, none per deletion

    deletion U:     MV = key_delete(MV, U), at once
    insertion U:    MV = MV + source_evaluate(V⟨U⟩), when it is there
"""

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algorithms.effects import Install, Join, Next, Process, ReadView, Spawn
from viewkeeper.algorithms.keyed import Actions, key_delete, source_evaluate, split_actions
from viewkeeper.algorithms.update_queue import UpdateQueue
from viewkeeper.messages import Transaction, ViewDelta


def conventional(plan: JoinPlan, queue: UpdateQueue) -> Process:
    """Every update as soon as it comes, with no regard for what else is going on."""
    while True:
        u = yield Next()
        yield Spawn(_maintain(plan, queue, u.transactions, split_actions(u.changes, plan.view, queue.make_zset)))
        queue.forget(u.rank)


def _maintain(plan: JoinPlan, queue: UpdateQueue, transactions: tuple[Transaction, ...], actions: Actions) -> Process:
    answer = plan.no_change(queue.make_zset)
    queries = []
    for bound in actions.bindings(plan.view):
        queries.append((yield Spawn(source_evaluate(plan, bound))))
    for rows, _ in (yield Join(*queries)):
        answer += rows
    mv = yield ReadView()
    remaining = mv
    for deletion in actions.key_deletes():
        remaining = key_delete(remaining, plan.view, deletion)
    yield Install(ViewDelta(remaining - mv + answer.distinct(), transactions))
