"""Rows over time: how often each row of a relation is there after k transactions of its source."""

from bisect import bisect_right
from collections.abc import Sequence

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.messages import Transaction
from viewkeeper.sql.relation import Relation

Weights = list[tuple[Row, int]]

_REMEMBERED = 1_000_000
"""Rows that a group keeps ready; only a join without an equality makes groups that need the bound."""


class Group:
    """The rows of a relation that agree in some columns, over time."""

    def __init__(self) -> None:
        self._events: list[tuple[int, Row, int]] = []
        self._moments: list[int] = []
        self._present: dict[int, Weights] = {}

    def add(self, moment: int, row: Row, change: int) -> None:
        """From this moment on, no earlier than any before, the row is there so many times more."""
        self._events.append((moment, row, change))
        self._moments.append(moment)

    def at(self, moment: int) -> Weights:
        """The rows that are there after so many transactions, with their counts."""
        happened = bisect_right(self._moments, moment)
        present = self._present.get(happened)
        if present is None:
            if len(self._present) * len(self._events) > _REMEMBERED:
                self._present.clear()
            counts: dict[Row, int] = {}
            for _, row, change in self._events[:happened]:
                counts[row] = counts.get(row, 0) + change
            present = self._present[happened] = [(row, count) for row, count in counts.items() if count]
        return present


class Timeline:
    """A relation over time; `deltas` has what each transaction of its source changes."""

    def __init__(self, relation: Relation, initial: MemoryZSet, transactions: Sequence[Transaction]) -> None:
        self._initial = initial
        self.deltas = [
            MemoryZSet(
                relation.columns,
                [(change.row, change.count) for change in transaction.changes if change.relation == relation.name],
            )
            for transaction in transactions
        ]
        self._groups: dict[tuple[int, ...], dict[Row, Group]] = {}

    def groups(self, places: tuple[int, ...]) -> dict[Row, Group]:
        """The rows grouped by their values in these columns."""
        groups = self._groups.get(places)
        if groups is None:
            groups = self._groups[places] = {}
            for moment, delta in enumerate((self._initial, *self.deltas)):
                for row, change in delta.weights():
                    key = tuple([row[place] for place in places])
                    groups.setdefault(key, Group()).add(moment, row, change)
        return groups
