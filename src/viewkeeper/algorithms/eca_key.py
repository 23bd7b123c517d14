"""ECA-Key: one source, keys; deletions without a query, answers without compensation.

Source     Zhuge et al. (1995), as discussed in sections 1 and 5.2 of Zhuge et al. (1996)
Assumes    one source that holds every relation of the view; keys
Reaches    strong, as long as no tuple is inserted and deleted while its own query is out; then not even convergent
Costs      1 query per insertion, none per deletion

    deletion:    key_delete(COLLECT, U)          insertion:   A = V⟨U⟩;  COLLECT = COLLECT ∪ A, without duplicates
    UQS = ∅:     MV = COLLECT

The flaw is in the paper's algorithm and is kept: the answer to V⟨U⟩ carries U itself, not what the source holds, so
that a deletion of U which came before the answer has nothing to remove and its rows come back. Strobe's pending(Q)
fixes it.
"""

from typing import Any

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algorithms.effects import Install, Next, Process, ReadView, Spawn
from viewkeeper.algorithms.keyed import Action, Actions, Insert, apply_actions, split_actions
from viewkeeper.algorithms.update_queue import UpdateQueue
from viewkeeper.messages import Term, TermsQuery, Transaction, ViewDelta


def eca_key(plan: JoinPlan, queue: UpdateQueue) -> Process:
    """Upon receipt of an update: deletions are collected, insertions queried for."""
    warehouse = _EcaKeyWarehouse(plan, queue)
    while True:
        u = yield Next()
        yield from warehouse.receive(u.transactions, split_actions(u.changes, plan.view, queue.make_zset))
        queue.forget(u.rank)


class _EcaKeyWarehouse:
    """COLLECT, kept as the list of actions that lead from MV to it, and UQS."""

    def __init__(self, plan: JoinPlan, queue: UpdateQueue) -> None:
        self._plan = plan
        self._queue = queue
        self._collect: list[Action] = []
        self._unanswered = 0
        self._reflected: list[Transaction] = []

    def receive(self, transactions: tuple[Transaction, ...], actions: Actions) -> Process:
        self._reflected += transactions
        self._collect += actions.key_deletes()
        if actions.inserts:
            terms = tuple(Term(+1, bound) for bound in actions.bindings(self._plan.view))
            self._unanswered += 1
            yield Spawn(self._ask(terms))
        yield from self._install_if_quiet()

    def _ask(self, terms: tuple[Term, ...]) -> Process:
        query = TermsQuery(self._plan.view.sources[0], self._plan, terms)
        if len(self._plan.operands) == 1:
            rows: Any = query.evaluate({})
        else:
            rows = (yield query).rows
        self._unanswered -= 1
        self._collect.append(Insert(rows.distinct()))
        yield from self._install_if_quiet()

    def _install_if_quiet(self) -> Process:
        if self._unanswered or not self._reflected:
            return
        reflected, self._reflected = tuple(self._reflected), []
        actions, self._collect = self._collect, []
        mv = yield ReadView()
        yield Install(ViewDelta(apply_actions(actions, self._plan.view, mv), reflected))
