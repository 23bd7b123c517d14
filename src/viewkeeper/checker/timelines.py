"""Rows over time: how often each row of a relation is there after k transactions of its source."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.messages import Transaction
from viewkeeper.sql.relation import Relation


@dataclass(frozen=True)
class Lifetime:
    """The moments at which the count of one row changes, and the count from each of them on."""

    moments: list[int] = field(default_factory=lambda: [0])
    counts: list[int] = field(default_factory=lambda: [0])


class Timeline:
    """Every row that a relation ever holds, with its lifetime; `deltas` has what each transaction changes."""

    def __init__(self, relation: Relation, initial: MemoryZSet, transactions: Sequence[Transaction]) -> None:
        self.lifetimes = {row: Lifetime([0], [count]) for row, count in initial.weights()}
        self.deltas = [
            MemoryZSet(
                relation.columns,
                [(change.row, change.count) for change in transaction.changes if change.relation == relation.name],
            )
            for transaction in transactions
        ]
        for moment, delta in enumerate(self.deltas, 1):
            for row, change in delta.weights():
                lifetime = self.lifetimes.setdefault(row, Lifetime())
                lifetime.moments.append(moment)
                lifetime.counts.append(lifetime.counts[-1] + change)
        self._indexes: dict[tuple[int, ...], dict[Row, list[Row]]] = {}

    def matching(self, places: tuple[int, ...], key: Row) -> Sequence[Row]:
        """The rows, of any time, that have the key in these columns; all of them if there are no columns."""
        index = self._indexes.get(places)
        if index is None:
            index = self._indexes[places] = {}
            for row in self.lifetimes:
                index.setdefault(tuple([row[place] for place in places]), []).append(row)
        return index.get(key, ())
