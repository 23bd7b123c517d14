"""UpdateMessageQueue: what was delivered, what waits, and what interferes with a query.

Every delivered transaction gets the next `seq`. An `Update` is what an algorithm takes from the queue at once: one
transaction, or with `whole_global_transactions` a global one in full. Its `rank` is its place in the serial schedule
that the view follows.

    interferes with (u, o) at hop j:   w of relation j,   (w.rank, j) > (u.rank, o),   delivered before the answer

whether w still waits, is being computed or is done: an update is kept until no older one is in progress. The occurrence
in the pair is for self-joins and for transactions over several relations: such an update is swept once per operand it
touches, the operands before that one new, those behind it old.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.algorithms.global_order import GlobalOrder
from viewkeeper.messages import Answer, Change, Transaction
from viewkeeper.sql.view import Operand, View

Point = tuple[int, int]
"""A place in the delivery order: a delivered transaction, and an action within it."""

MakeZSet = Callable[[tuple[str, ...], Iterable[tuple[Row, int]]], Any]


@dataclass(eq=False)
class Update:
    """One unit of maintenance: the transactions in it, their changes, and its place in the serial schedule."""

    transactions: tuple[Transaction, ...]
    rank: int
    seq: int
    deltas: dict[int, Any] = field(default_factory=dict)
    """operand index -> ΔR, under the relation's own column names"""

    @property
    def operands(self) -> list[int]:
        """The operands that the update touches, in order."""
        return sorted(self.deltas)

    @property
    def end(self) -> Point:
        """The point behind the last of its actions."""
        return (self.seq, len(self.changes))

    @property
    def changes(self) -> list[Change]:
        return [change for transaction in self.transactions for change in transaction.changes]


@dataclass(eq=False)
class _Delivery:
    """A delivered transaction; it has a rank once it is part of an update that can be taken."""

    seq: int
    transaction: Transaction
    deltas: dict[int, Any]
    rank: int | None = None


class UpdateQueue:
    """The queue of one view. The driver appends; algorithms take, and ask what interferes."""

    def __init__(
        self, view: View, *, whole_global_transactions: bool = False, make_zset: MakeZSet = MemoryZSet
    ) -> None:
        self.view = view
        self.waiting: deque[Update] = deque()
        self._log: list[_Delivery] = []
        self._unranked: dict[int, _Delivery] = {}
        self._delivered = 0
        self._ranked = 0
        self.make_zset = make_zset
        self._order = GlobalOrder(view.sources) if whole_global_transactions else None

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
        delivery = _Delivery(self._delivered, transaction, self._deltas_of(transaction))
        self._log.append(delivery)
        self._unranked[id(transaction)] = delivery
        for unit in self._order.arrive(transaction) if self._order else [(transaction,)]:
            self._rank(unit)

    def take(self) -> Update:
        return self.waiting.popleft()

    def interfering(self, operand: Operand, update: Update, occurrence: int, answer: Answer) -> Any:
        """Σ ΔR_j over what the answer of operand j shows and `update`, swept from `occurrence`, must not see."""
        place = (update.rank, occurrence)
        return self._sum(
            operand,
            (
                delivery.deltas[operand.index]
                for delivery in self._log
                if operand.index in delivery.deltas
                and delivery.seq <= answer.seq
                and (delivery.rank is None or (delivery.rank, operand.index) > place)
            ),
        )

    def tagged(self, operand: Operand, answer: Answer, tag: str) -> Any:
        """All that was logged of operand j before the answer, each row tagged with the rank of its update.

        What is not ranked yet comes after everything that is: it gets the next rank.
        """
        weights = (
            ((self._ranked + 1 if delivery.rank is None else delivery.rank, *row), weight)
            for delivery in self._log
            if operand.index in delivery.deltas and delivery.seq <= answer.seq
            for row, weight in delivery.deltas[operand.index].weights()
        )
        return self.make_zset((tag, *operand.relation.columns), weights)

    def waiting_for(self, operand: Operand, answer: Answer) -> list[Update]:
        """The updates of operand j that still wait and that an answer shows, in order."""
        return [u for u in self.waiting if operand.index in u.deltas and u.seq <= answer.seq]

    def shown(self, answered: Mapping[str, int]) -> list[Update]:
        """The waiting updates that answers show already; `answered` has, per source, what came before its answer."""
        return [u for u in self.waiting if all(u.seq <= answered.get(t.source, 0) for t in u.transactions)]

    def events_after(self, point: Point, until: int) -> list[Change]:
        """The tuple actions behind a point of the delivery order, in what was delivered as number `until` or before."""
        seq, index = point
        return [
            change
            for delivery in self._log
            if seq <= delivery.seq <= until
            for place, change in enumerate(delivery.transaction.changes)
            if (delivery.seq, place) > (seq, index)
        ]

    def forget(self, rank: int) -> None:
        """Every update up to this rank is done: nothing can ask for it any more."""
        self._log = [delivery for delivery in self._log if delivery.rank is None or delivery.rank > rank]

    def _rank(self, unit: tuple[Transaction, ...]) -> None:
        self._ranked += 1
        members = [self._unranked.pop(id(transaction)) for transaction in unit]
        update = Update(unit, self._ranked, max(delivery.seq for delivery in members))
        for delivery in members:
            delivery.rank = self._ranked
        for index in sorted({index for delivery in members for index in delivery.deltas}):
            operand = self.view.operands[index]
            total = self._sum(operand, (d.deltas[index] for d in members if index in d.deltas))
            if not total.is_empty():
                update.deltas[index] = total
        self.waiting.append(update)

    def _deltas_of(self, transaction: Transaction) -> dict[int, Any]:
        weights: dict[str, list[tuple[Row, int]]] = {}
        for change in transaction.changes:
            weights.setdefault(change.relation, []).append((change.row, change.count))
        deltas = {}
        for relation, rows in weights.items():
            for operand in self.view.operands_of(relation):
                deltas[operand.index] = self.make_zset(operand.relation.columns, rows)
        return deltas

    def _sum(self, operand: Operand, deltas: Iterable[Any]) -> Any:
        total = self.make_zset(operand.relation.columns, ())
        for delta in deltas:
            total = total + delta
        return total
