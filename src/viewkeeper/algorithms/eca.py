"""ECA: one source with several relations; each query also asks for what corrects the ones before it.

Source     Zhuge, Garcia-Molina, Hammer, Widom: View Maintenance in a Warehousing Environment (1995),
           as retold in section 3 of Agrawal et al. (1997)
Assumes    one source that holds every relation of the view and answers a query over several of them atomically; no keys
Reaches    strong, for single updates and source-local transactions; installs only when no query is out
Costs      1 query per update; its terms grow with the number of interfering updates, to the power n - 2 (the SWEEP
           paper says quadratic); with `share` the updates that come while a query is out go as one

    Q_i = V⟨U_i⟩ - Σ Q_j⟨U_i⟩ over the unanswered Q_j          COLLECT = Σ A_i          UQS = ∅:  MV = MV + COLLECT

A query is a sum of terms, each the view with some operands bound to deltas. Q⟨U⟩ is what U adds to the value of Q:

    Q(R + Δ) - Q(R) = Σ (-1)^(|S|+1) Q[S → Δ] evaluated over R + Δ, over the non-empty sets S of operands that U touches
"""

from itertools import combinations

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algorithms.effects import Install, Next, Process, Spawn
from viewkeeper.algorithms.update_queue import Update, UpdateQueue
from viewkeeper.messages import Term, TermsQuery, Transaction, ViewDelta

Terms = tuple[Term, ...]


def eca(plan: JoinPlan, queue: UpdateQueue, *, share: bool = False) -> Process:
    """Upon receipt of U_i: form Q_i against the queries that are out, and send it."""
    warehouse = _EcaWarehouse(plan, queue, share)
    while True:
        u = yield Next()
        yield from warehouse.receive(u)


def effect_of(update: Update, terms: Terms) -> Terms:
    """Q⟨U⟩ term by term; a term in which every operand that U touches is bound already contributes nothing."""
    return tuple(
        Term(term.sign * (-1) ** (len(chosen) + 1), {**term.bound, **{i: update.deltas[i] for i in chosen}})
        for term in terms
        for free in [[i for i in update.operands if i not in term.bound]]
        for count in range(1, len(free) + 1)
        for chosen in combinations(free, count)
    )


def negated(terms: Terms) -> Terms:
    return tuple(Term(-term.sign, term.bound) for term in terms)


class _EcaWarehouse:
    """UQS and COLLECT; with `share`, also the queries that wait to be sent together."""

    def __init__(self, plan: JoinPlan, queue: UpdateQueue, share: bool) -> None:
        self._plan = plan
        self._queue = queue
        self._view: Terms = (Term(+1),)
        self._uqs: list[Terms] = []
        self._share = share
        self._held: list[Terms] = []
        self._collect = plan.no_change(queue.make_zset)
        self._reflected: list[Transaction] = []

    def receive(self, u: Update) -> Process:
        """Q_i = V⟨U_i⟩ - Σ Q_j⟨U_i⟩; what has every operand bound is computed here, the rest is one query."""
        query = effect_of(u, self._view)
        for unanswered in self._uqs:
            query += negated(effect_of(u, unanswered))
        self._reflected += u.transactions
        here = tuple(term for term in query if len(term.bound) == len(self._plan.operands))
        if here:
            self._collect += TermsQuery("", self._plan, here).evaluate({})
        asked = tuple(term for term in query if len(term.bound) < len(self._plan.operands))
        if asked:
            self._uqs.append(asked)
            if self._share and len(self._uqs) > 1:
                self._held.append(asked)
            else:
                yield Spawn(self._ask([asked]))
        yield from self._install_if_quiet()
        self._queue.forget(u.rank)

    def _ask(self, queries: list[Terms]) -> Process:
        """Send queries as one message. One that is held counts as unanswered, so what comes meanwhile corrects it."""
        terms = tuple(term for query in queries for term in query)
        answer = yield TermsQuery(self._plan.view.sources[0], self._plan, terms)
        self._uqs = [other for other in self._uqs if not any(other is query for query in queries)]
        self._collect += answer.rows
        if self._held:
            held, self._held = self._held, []
            yield Spawn(self._ask(held))
        yield from self._install_if_quiet()

    def _install_if_quiet(self) -> Process:
        if self._uqs or not self._reflected:
            return
        delta, self._collect = self._collect, self._plan.no_change(self._queue.make_zset)
        reflected, self._reflected = tuple(self._reflected), []
        yield Install(ViewDelta(delta, reflected))
