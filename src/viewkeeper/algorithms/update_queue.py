"""UpdateMessageQueue: what was delivered, what waits, and what interferes with a query.

Every delivered transaction gets the next `seq`. An `Update` is what an algorithm takes from the queue at once: one
transaction, or with `whole_global_transactions` a global one in full. Its `rank` is its place in the serial schedule
that the view follows.

    interferes with (u, o) at hop j:   w of relation j,   (w.rank, j) > (u.rank, o),   delivered before the answer

whether w still waits, is being computed or is done: an update is kept until no older one is in progress. The occurrence
in the pair is for self-joins and for transactions over several relations: such an update is swept once per operand it
touches, the operands before that one new, those after it old.

A transaction is a Z-set per relation: what it did to a row and undid again is no change, and the order within it means
nothing. `net` puts it so, deletions first.
"""

from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from viewkeeper.algebra.joins import Hop
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.algorithms.global_order import GlobalOrder
from viewkeeper.messages import Answer, Change, MakeZSet, Transaction
from viewkeeper.sql.view import Operand, View

Point = tuple[int, int]
"""A place in the delivery order: a delivered transaction, and an action within it."""

__all__ = ["MakeZSet", "Point", "Update", "UpdateQueue", "net"]

MANY_ROWS = 1_000
"""Z-sets with more rows are added one by one; those with fewer as rows, for each sum copies what it is given."""


@dataclass(eq=False)
class Update:
    """One unit of maintenance: the transactions in it, their net changes, and its place in the serial schedule."""

    transactions: tuple[Transaction, ...]
    rank: int
    seq: int
    relations: Container[str]
    """those of the view"""
    deltas: dict[int, Any] = field(default_factory=dict)
    """operand index -> ΔR, under the relation's own column names"""

    @cached_property
    def changes(self) -> list[Change]:
        """Its net changes of the relations of the view, row by row."""
        return _changes_of(self.transactions, self.relations)

    @property
    def operands(self) -> list[int]:
        """The operands that the update touches, in order."""
        return sorted(self.deltas)

    @property
    def end(self) -> Point:
        """The point after the last of its actions."""
        return (self.seq, len(self.changes))


@dataclass(eq=False)
class _Delivery:
    """A delivered transaction; it has a rank once it is part of an update that can be taken."""

    seq: int
    transaction: Transaction
    relations: Container[str]
    deltas: dict[int, Any]
    rank: int | None = None

    @cached_property
    def changes(self) -> list[Change]:
        """Its net changes of the relations of the view, row by row."""
        return _changes_of((self.transaction,), self.relations)


class UpdateQueue:
    """The queue of one view. The driver appends; algorithms take, and ask what interferes."""

    def __init__(
        self,
        view: View,
        *,
        whole_global_transactions: bool = False,
        make_zset: MakeZSet = MemoryZSet,
        sources: tuple[str, ...] | None = None,
    ) -> None:
        self.view = view
        self.make_zset = make_zset
        self.waiting: deque[Update] = deque()
        self._delivered = 0
        self._ranked = 0
        self.sources = tuple(sources or view.sources)
        """those whose transactions are delivered"""
        self._order = GlobalOrder(self.sources) if whole_global_transactions else None
        self._log: deque[_Delivery] = deque()
        self._log_of: list[deque[_Delivery]] = [deque() for _ in view.operands]
        self._unranked: dict[int, _Delivery] = {}

    @property
    def delivered(self) -> int:
        """How many transactions have been delivered: the `seq` of an answer that comes now."""
        return self._delivered

    @property
    def held(self) -> int:
        """How many delivered transactions wait for the rest of a global transaction."""
        return len(self._unranked)

    def append(self, transaction: Transaction) -> None:
        """LogUpdates: a transaction is delivered."""
        self._delivered += 1
        delivery = _Delivery(self._delivered, transaction, self.view.relations, self._deltas_of(transaction))
        self._log.append(delivery)
        for index in delivery.deltas:
            self._log_of[index].append(delivery)
        if self._order is None:
            self._rank((transaction,), [delivery])
            return
        self._unranked[id(transaction)] = delivery
        for unit in self._order.arrive(transaction):
            self._rank(unit, [self._unranked.pop(id(one)) for one in unit])

    def take(self) -> Update:
        return self.waiting.popleft()

    def take_out(self, updates: list[Update]) -> None:
        """Take these, wherever they stand."""
        if updates:
            taken = set(updates)
            self.waiting = deque(update for update in self.waiting if update not in taken)

    def interfering(self, operand: Operand, update: Update, occurrence: int, answer: Answer) -> Any:
        """Σ ΔR_j over what the answer of operand j shows and `update`, swept from `occurrence`, must not see."""
        place = (update.rank, occurrence)
        behind: list[Any] = []
        for delivery in reversed(self._log_of[operand.index]):
            # Without global transactions held back, ranks follow the delivery order: the rest is older.
            if (delivery.rank or 0, operand.index) <= place:
                break
            if delivery.seq <= answer.seq:
                behind.append(delivery.deltas[operand.index])
        return self._sum(operand, behind)

    def tagged(self, hop: Hop, temp: Any, answer: Answer, tag: str) -> Any:
        """What was logged of operand j before the answer and can join with `temp`, each row tagged with the rank of its
        update.

        What is not ranked yet comes after everything that is: it gets the next rank.
        """
        operand = hop.operand
        logged = [delivery for delivery in self._log_of[operand.index] if delivery.seq <= answer.seq]
        ranked = [
            (self._ranked + 1 if delivery.rank is None else delivery.rank, delivery.deltas[operand.index])
            for delivery in logged
        ]
        return self.tagged_sum(tag, operand, ranked, _joining(hop, temp) if logged else None)

    def tagged_sum(
        self, tag: str, operand: Operand, ranked: Iterable[tuple[int, Any]], only: Callable[[Row], bool] | None = None
    ) -> Any:
        """Σ of changes of an operand, each row tagged with the rank of its update; of small ones those rows `only`."""
        rows: list[tuple[Row, int]] = []
        large = []
        for rank, delta in ranked:
            if delta.size() > MANY_ROWS:
                large.append(delta.tag(tag, rank))
            else:
                rows += (((rank, *row), weight) for row, weight in delta.weights() if only is None or only(row))
        return sum(large, start=self.make_zset((tag, *operand.relation.columns), rows))

    def waiting_for(self, operand: Operand, answer: Answer) -> list[Update]:
        """The updates of operand j that still wait and that an answer shows, in order."""
        return [u for u in self.waiting if operand.index in u.deltas and u.seq <= answer.seq]

    def shown(self, answered: Mapping[str, int]) -> list[Update]:
        """The waiting updates that answers show already; `answered` has, per source, what came before its answer."""
        return [u for u in self.waiting if all(u.seq <= answered.get(t.source, 0) for t in u.transactions)]

    def events_after(self, point: Point, until: int) -> list[Change]:
        """The actions behind a point of the delivery order, in what was delivered as number `until` or before."""
        seq, index = point
        return [
            change
            for delivery in self._log
            if seq <= delivery.seq <= until
            for place, change in enumerate(delivery.changes)
            if (delivery.seq, place) > (seq, index)
        ]

    def forget(self, rank: int) -> None:
        """Every update up to this rank is done: nothing will ask for it any more."""
        for log in (self._log, *self._log_of):
            while log and log[0].rank is not None and log[0].rank <= rank:
                log.popleft()

    def _rank(self, unit: tuple[Transaction, ...], members: list[_Delivery]) -> None:
        self._ranked += 1
        first, deltas = members[0], members[0].deltas
        if len(members) > 1:
            deltas = dict(deltas)
            for delivery in members[1:]:
                for index, delta in delivery.deltas.items():
                    deltas[index] = deltas[index] + delta if index in deltas else delta
            deltas = {index: delta for index, delta in deltas.items() if not delta.is_empty()}
        seq = first.seq if len(members) == 1 else max(delivery.seq for delivery in members)
        for delivery in members:
            delivery.rank = self._ranked
        self.waiting.append(Update(unit, self._ranked, seq, self.view.relations, deltas))

    def _deltas_of(self, transaction: Transaction) -> dict[int, Any]:
        made = {}
        relations = transaction.relations
        for relation in relations if len(relations) == 1 else sorted(relations):
            for operand in self.view.operands_of(relation):
                delta = transaction.delta(relation, operand.relation.columns, self.make_zset)
                if not delta.is_empty():
                    made[operand.index] = delta
        return made

    def _sum(self, operand: Operand, deltas: list[Any]) -> Any:
        if len(deltas) == 1:
            return deltas[0]
        return self.make_zset(operand.relation.columns, (entry for delta in deltas for entry in delta.weights()))


def _joining(hop: Hop, temp: Any) -> Callable[[Row], bool]:
    """Whether a row of the operand meets a row of `temp`. Of a long log few do, and the others need not be joined."""
    if not hop.on:
        return lambda row: True
    theirs = [hop.operand.columns.index(right) for _, right in hop.on]
    keys = set(temp.values(tuple(left for left, _ in hop.on)))
    if len(theirs) == 1:
        (place,) = theirs
        values = {key[0] for key in keys}
        return lambda row: row[place] in values
    return lambda row: tuple(row[place] for place in theirs) in keys


def _changes_of(transactions: Iterable[Transaction], relations: Container[str]) -> list[Change]:
    return net(change for one in transactions for change in one.changes if change.relation in relations)


def net(changes: Iterable[Change]) -> list[Change]:
    """The same changes with the counts of each row added up, what comes to nothing left out, deletions first."""
    changes = list(changes)
    if len(changes) == 1:
        return changes if changes[0].count else []
    counts: dict[tuple[str, Row], int] = {}
    for change in changes:
        counts[change.relation, change.row] = counts.get((change.relation, change.row), 0) + change.count
    made = [Change(relation, row, count) for (relation, row), count in counts.items() if count]
    return sorted(made, key=lambda change: change.count > 0)
