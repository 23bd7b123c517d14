"""Periodic C-Strobe: Strobe that need not wait for quiet.

Source     Zhuge et al. (1996), section 6: stop taking updates after k of them, or when "some long period of time has
           gone by without a natural quiescent point"; compensate what is out, apply AL
Assumes    keys; a FIFO channel per source
Reaches    strong, for single updates and source-local transactions; installs after at most k updates, or in time
Costs      between t-strobe and c-strobe: only what is still out when the k-th update comes is compensated

    U_1 ... U_k     as T-Strobe: queries at once, deletions among them to pending(Q)
    then            every answer as of just behind U_k, as C-Strobe: later updates are taken out of it
"""

from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algorithms.c_strobe import FROM_THE_START, CompleteAnswers
from viewkeeper.algorithms.effects import Install, Join, Next, NextOrForced, Process, ReadView, Spawn
from viewkeeper.algorithms.keyed import (
    Action,
    Bound,
    Insert,
    KeyDelete,
    apply_actions,
    key_delete,
    source_evaluate,
    split_actions,
)
from viewkeeper.algorithms.update_queue import Update, UpdateQueue
from viewkeeper.messages import ViewDelta


def periodic_c_strobe(
    plan: JoinPlan, queue: UpdateQueue, *, period: int = 8, interval: int = 0, grouped: bool = True
) -> Process:
    """Take updates as they come; after `period` of them, or when the driver says that the oldest of them has waited for
    `interval` (0: never), hold the rest back until this period is installed."""
    strobe = _PeriodicStrobe(plan, queue, grouped)
    while True:
        u = yield NextOrForced() if interval else Next()
        if u is not None:
            yield from strobe.process(u)
        if len(strobe.updates) >= period or (u is None and strobe.updates):
            yield from strobe.force()
        else:
            yield from strobe.install_if_quiet()


@dataclass(eq=False)
class _Query:
    """An insertion's query: its answer once it came, and the deletions of the period that were delivered after it."""

    bound: Bound
    pending: list[KeyDelete] = field(default_factory=list)
    answer: tuple[Any, int | None] | None = None


class _PeriodicStrobe:
    """The updates, the queries and the action list of one period."""

    def __init__(self, plan: JoinPlan, queue: UpdateQueue, grouped: bool) -> None:
        self._plan = plan
        self._full = JoinPlan(plan.view.with_all_columns)
        self._queue = queue
        self._complete = CompleteAnswers(plan, queue, grouped)
        self._forced = False
        self._begin()

    def _begin(self) -> None:
        self.updates: list[Update] = []
        self._queries: list[_Query] = []
        self._running: list[Any] = []
        self._al: list[Action] = []

    def process(self, u: Update) -> Process:
        """As T-Strobe: deletions to AL and to every pending(Q), a query for the insertions."""
        self.updates.append(u)
        actions = split_actions(u.changes, self._plan.view, self._queue.make_zset)
        for deletion in actions.key_deletes():
            self._al.append(deletion)
            for query in self._queries:
                query.pending.append(deletion)
        new = [_Query(bound) for bound in actions.bindings(self._plan.view)]
        self._queries += new
        for query in new:
            self._running.append((yield Spawn(self._evaluate(query))))

    def _evaluate(self, query: _Query) -> Process:
        query.answer = yield from source_evaluate(self._full, query.bound)
        yield from self.install_if_quiet()

    def install_if_quiet(self) -> Process:
        """Strobe's moment: everything taken has been answered, so there is nothing to compensate."""
        if self.updates and not self._forced and all(query.answer for query in self._queries):
            yield from self._install([query.answer[0] for query in self._queries if query.answer])

    def force(self) -> Process:
        """C-Strobe's way: wait for what is out, and take out of each answer what came after the last update."""
        self._forced = True
        yield Join(*self._running)
        compensations = []
        for query in self._queries:
            assert query.answer is not None
            rows, seq = query.answer
            end = self.updates[-1].end
            compensated = self._complete.compensated(query.bound, rows, seq, end, FROM_THE_START)
            compensations.append((yield Spawn(compensated)))
        yield from self._install((yield Join(*compensations)))
        self._forced = False

    def _install(self, answers: list[Any]) -> Process:
        last = self.updates[-1]
        for query, rows in zip(self._queries, answers, strict=True):
            answer = self._complete.as_of(rows, last.end)
            for deletion in query.pending:
                answer = key_delete(answer, self._plan.view, deletion)
            self._al.append(Insert(answer))
        mv = yield ReadView()
        delta = apply_actions(self._al, self._plan.view, mv)
        reflected = tuple(transaction for u in self.updates for transaction in u.transactions)
        self._begin()
        yield Install(ViewDelta(delta, reflected))
        self._queue.forget(last.rank)
