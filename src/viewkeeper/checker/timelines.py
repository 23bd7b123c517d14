"""Rows over time: how often each row of a relation is there after k transactions of its source."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.messages import Transaction
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import Operand, View


class Timeline:
    """The rows that a relation ever holds, each with the moments at which its count changes."""

    def __init__(self, relation: Relation, initial: MemoryZSet, transactions: Sequence[Transaction]) -> None:
        self._moments: dict[Row, list[int]] = {}
        self._counts: dict[Row, list[int]] = {}
        for row, count in initial.weights():
            self._moments[row], self._counts[row] = [0], [count]
        self.deltas = [
            MemoryZSet(
                relation.columns,
                ((change.row, change.count) for change in transaction.changes if change.relation == relation.name),
            )
            for transaction in transactions
        ]
        for moment, delta in enumerate(self.deltas, 1):
            for row, change in delta.weights():
                counts = self._counts.setdefault(row, [0])
                self._moments.setdefault(row, [0]).append(moment)
                counts.append(counts[-1] + change)

    def rows(self) -> Iterable[Row]:
        """Every row that is there at some time."""
        return self._counts

    def count(self, row: Row, moment: int) -> int:
        """How often the row is there after so many transactions."""
        return self._counts[row][bisect_right(self._moments[row], moment) - 1]

    def moments(self, row: Row) -> list[int]:
        """When the count of the row changes."""
        return self._moments[row][1:]


class OperandRows:
    """The rows over time of one operand, as far as they pass the conditions over this operand alone."""

    def __init__(self, view: View, operand: Operand, timeline: Timeline) -> None:
        self.operand = operand
        self.timeline = timeline
        own = tuple(condition for condition in view.conditions if view.mentions(condition) <= {operand.index})
        passing = MemoryZSet.of(operand.columns, *timeline.rows()).select(own)
        self._rows = [row for row, _ in passing.weights()]
        self._indexes: dict[tuple[int, ...], dict[Row, list[Row]]] = {}

    def matching(self, places: tuple[int, ...], keys: set[Row]) -> list[Row]:
        """The rows, at any time, that have one of the keys in these columns; all of them if there are no columns."""
        if not places:
            return self._rows
        index = self._indexes.get(places)
        if index is None:
            index = self._indexes[places] = {}
            for row in self._rows:
                index.setdefault(tuple([row[place] for place in places]), []).append(row)
        return [row for key in keys for row in index.get(key, ())]

    def at(self, rows: Iterable[Row], moment: int) -> MemoryZSet:
        """Those of the rows that are there after so many transactions."""
        count = self.timeline.count
        return MemoryZSet(self.operand.relation.columns, [(row, count(row, moment)) for row in rows])
