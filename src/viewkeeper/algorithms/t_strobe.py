"""T-Strobe: the actions of a source-local transaction are queried for together and shown together.

Source     Zhuge, Garcia-Molina, Wiener: The Strobe Algorithms for Multi-Source Warehouse Consistency (1996),
           section 5.3
Assumes    keys; a FIFO channel per source
Reaches    strong, for single updates and source-local transactions; installs only when no query is out
Costs      n - 1 queries per relation that the transaction inserts into, none for deletions

    Q_i = ∪ V⟨U_j⟩ over the insertions U_j of T_i          A_i = answer, less key_delete(A_i, U) for U ∈ pending(Q_i)

AL             actions to be applied to the view, in order
UQS            the queries that are out, each with its
pending(Q)     deletions delivered since Q was sent: the answer may still show what they removed
"""

from typing import Any

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algorithms.effects import Install, Join, Next, Process, ReadView, Spawn
from viewkeeper.algorithms.keyed import (
    Action,
    Actions,
    Insert,
    KeyDelete,
    apply_actions,
    key_delete,
    source_evaluate,
    split_actions,
)
from viewkeeper.algorithms.update_queue import Update, UpdateQueue
from viewkeeper.messages import Transaction, ViewDelta


def t_strobe(plan: JoinPlan, queue: UpdateQueue) -> Process:
    """Upon receipt of UL(T), whose changes are net: add deletions to AL, query for the insertions."""
    yield from StrobeWarehouse(plan, queue).take_transactions()


class StrobeWarehouse:
    """AL and UQS, and the three steps that Strobe, T-Strobe and G-Strobe are made of."""

    def __init__(self, plan: JoinPlan, queue: UpdateQueue) -> None:
        self._plan = plan
        self._queue = queue
        self._al: list[Action] = []
        self._uqs: list[list[KeyDelete]] = []
        self._reflected: list[Transaction] = []
        self._last: Update | None = None

    def take_transactions(self) -> Process:
        """Every transaction as a whole, as it comes."""
        while True:
            u = yield Next()
            self.reflects(u)
            yield from self.process(split_actions(u.changes, self._plan.view, self._queue.make_zset))
            yield from self.install_if_quiet()

    def reflects(self, update: Update) -> None:
        """From now on AL holds all of this update."""
        self._reflected += update.transactions
        self._last = update

    def process(self, actions: Actions) -> Process:
        """Deletions go to AL and to every pending(Q); insertions become one query."""
        for deletion in actions.key_deletes():
            for pending in self._uqs:
                pending.append(deletion)
            self._al.append(deletion)
        if actions.inserts:
            pending_q: list[KeyDelete] = []
            self._uqs.append(pending_q)
            yield Spawn(self._query(actions, pending_q))

    def _query(self, actions: Actions, pending: list[KeyDelete]) -> Process:
        """A = source_evaluate(Q); apply pending(Q) to it; add insert(MV, A) to AL."""
        parts = []
        for bound in actions.bindings(self._plan.view):
            parts.append((yield Spawn(source_evaluate(self._plan, bound))))
        answer = self._plan.no_change(self._queue.make_zset)
        for rows, _ in (yield Join(*parts)):
            answer += rows
        for deletion in pending:
            answer = key_delete(answer, self._plan.view, deletion)
        self._uqs = [other for other in self._uqs if other is not pending]
        if not answer.is_empty():
            self._al.append(Insert(answer.distinct()))
        yield from self.install_if_quiet()

    def may_install(self) -> bool:
        """UQS = ∅."""
        return not self._uqs

    def install_if_quiet(self) -> Process:
        """When UQS = ∅, apply AL to MV as a single transaction, without adding duplicate tuples."""
        if not (self.may_install() and (self._al or self._reflected)):
            return
        mv: Any = yield ReadView()
        delta = apply_actions(self._al, self._plan.view, mv)
        reflected, self._al, self._reflected = tuple(self._reflected), [], []
        if reflected or not delta.is_empty():
            yield Install(ViewDelta(delta, reflected))
        if self._last is not None:
            self._queue.forget(self._last.rank)
