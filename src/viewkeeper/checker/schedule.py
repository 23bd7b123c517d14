"""The serial schedules that the sources allow, and the source states along them.

    cut        how many transactions of each source are included: a source state
    unit       what every serial schedule does at once: a transaction, or all parts of a global one
    closed     a cut that holds each unit whole or not at all: a source state of some serial schedule

Only each source's own order counts, not the delivery order: any way to add the units one by one that keeps it is a
serial schedule equivalent to what happened, and any chain of closed cuts c₀ ≤ c₁ ≤ ... lies on one of them.

Two exceptions to "a global transaction is a unit":

- Parts may cross (x has T before U, y has U before T). No serial schedule holds them apart, so everything on the cycle,
  with the local transactions caught in between, is merged into one unit.
- A part may be missing: a participant that serves this history has delivered none. The sources' schedule holds whole
  transactions only, so the unit and all that follows it has not happened yet: closed cuts end before it, at `settled`.
  (A participant that no relation of this history belongs to has no part to deliver, and is not missed.)
"""

import heapq
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from operator import le

from viewkeeper.checker.history import History
from viewkeeper.messages import Position, Transaction, Vector, position

Cut = tuple[int, ...]
Precedence = dict[Hashable, set[Hashable]]


def within(cut: Cut, other: Cut) -> bool:
    """cut ≤ other: every source is at most as far."""
    return all(map(le, cut, other))


@dataclass(frozen=True)
class Unit:
    """Transactions that every serial schedule does at once, in delivery order.

    `spans` has, per source (by its number), the count of transactions before it and after it. `absent` are the sources
    whose part never arrived.
    """

    members: tuple[Transaction, ...]
    spans: Mapping[int, tuple[int, int]]
    absent: tuple[str, ...]

    @property
    def merged(self) -> bool:
        """Whether this is more than one transaction, merged because no serial schedule holds them apart."""
        return len({_group(index, member) for index, member in enumerate(self.members)}) > 1


class Schedule:
    """All serial schedules of a history at once."""

    def __init__(self, history: History) -> None:
        self.sources = tuple(dict.fromkeys(held.relation.source for held in history.relations.values()))
        self.number = {source: index for index, source in enumerate(self.sources)}
        self.transactions: tuple[tuple[Transaction, ...], ...] = tuple(
            tuple(transaction for transaction in history.deliveries if transaction.source == source)
            for source in self.sources
        )
        self._counts = tuple(
            {member.position: count for count, member in enumerate(own, 1)} for own in self.transactions
        )
        self.nothing: Cut = (0,) * len(self.sources)
        self.everything: Cut = tuple(len(own) for own in self.transactions)
        groups = [_group(index, transaction) for index, transaction in enumerate(history.deliveries)]
        self.units = tuple(
            self._unit([history.deliveries[place] for place in places])
            for places in _serial(self._precedence(groups, history.deliveries), groups)
        )
        """In a serial order: the delivery order, with each unit in the place of its last part."""
        self._wide = tuple(unit for unit in self.units if len(unit.members) > 1)
        self._at = tuple(dict[int, Unit]() for _ in self.sources)
        for unit in self.units:
            for source, (before, after) in unit.spans.items():
                self._at[source].update(dict.fromkeys(range(before, after), unit))
        self.settled = self._before_absent_parts()
        self.happened = sum(self.includes(self.settled, unit) for unit in self.units)
        """How many units the sources' schedule has."""

    def transactions_of(self, source: str) -> tuple[Transaction, ...]:
        """What one source did, in commit order."""
        return self.transactions[self.number[source]]

    # --- cuts ---

    def includes(self, cut: Cut, unit: Unit) -> bool:
        """Whether the whole unit is in the cut."""
        return all(cut[source] >= after for source, (_, after) in unit.spans.items())

    def split_by(self, cut: Cut) -> Unit | None:
        """The first unit that the cut holds a part of."""
        for unit in self._wide:
            if not self.includes(cut, unit) and any(cut[source] > before for source, (before, _) in unit.spans.items()):
                return unit
        return None

    def pending_in(self, cut: Cut) -> Unit | None:
        """The first unit in the cut of which a part never arrived."""
        return next((unit for unit in self.units if unit.absent and self.includes(cut, unit)), None)

    def is_closed(self, cut: Cut) -> bool:
        """Whether some serial schedule has this source state."""
        return within(cut, self.settled) and self.split_by(cut) is None

    def successors(self, cut: Cut) -> Iterator[Cut]:
        """The closed cuts with exactly one unit more than a closed one."""
        for source, count in enumerate(cut):
            if count == self.settled[source]:
                continue
            spans = self._at[source][count].spans
            if source == min(spans) and all(cut[other] == before for other, (before, _) in spans.items()):
                yield tuple([spans[other][1] if other in spans else included for other, included in enumerate(cut)])

    def between(self, lower: Cut, upper: Cut) -> list[Unit]:
        """The units in `upper` that are not in `lower`, in serial order."""
        return [unit for unit in self.units if self.includes(upper, unit) and not self.includes(lower, unit)]

    # --- the serial order ---

    def serial_order(self) -> list[int]:
        """The sources (by their numbers) in the order of their transactions: those of a unit follow each other."""
        return [self.number[member.source] for unit in self.units for member in unit.members]

    # --- vectors ---

    def unknown_in(self, vector: Vector) -> tuple[str, Position] | None:
        """The first source with a position that is neither one of its transactions nor before all of them."""
        for source, own, counts in zip(self.sources, self.transactions, self._counts, strict=True):
            claimed = vector.get(source)
            if claimed is not None and own and claimed >= own[0].position and claimed not in counts:
                return source, claimed
        return None

    def cut_of(self, vector: Vector) -> Cut:
        """The cut that a vector with known positions means."""
        return tuple(
            counts.get(vector.get(source, ""), 0) for source, counts in zip(self.sources, self._counts, strict=True)
        )

    def vector_of(self, cut: Cut) -> dict[str, Position]:
        """The vector of a cut; a source that has done nothing is at zero."""
        vector = {}
        for source, own, count in zip(self.sources, self.transactions, cut, strict=True):
            zero = "0" * len(own[0].position) if own else position(0)
            vector[source] = own[count - 1].position if count else zero
        return vector

    # --- making units ---

    def _precedence(self, groups: Sequence[Hashable], deliveries: Sequence[Transaction]) -> Precedence:
        """Each group of transactions with those that stand directly before it at some source."""
        before: Precedence = {group: set() for group in groups}
        for source in self.sources:
            own = [group for group, member in zip(groups, deliveries, strict=True) if member.source == source]
            for earlier, later in pairwise(own):
                before[later].add(earlier)
        return before

    def _unit(self, members: Sequence[Transaction]) -> Unit:
        spans: dict[int, tuple[int, int]] = {}
        for member in members:
            source = self.number[member.source]
            count = self._counts[source][member.position]
            before, after = spans.get(source, (count, count))
            spans[source] = (min(before, count - 1), max(after, count))
        return Unit(tuple(members), spans, self._absent(members))

    def _absent(self, members: Sequence[Transaction]) -> tuple[str, ...]:
        arrived = {(member.global_id, member.source) for member in members}
        return tuple(
            dict.fromkeys(
                source
                for member in members
                for source in member.participants
                if source in self.number and member.global_id and (member.global_id, source) not in arrived
            )
        )

    def _before_absent_parts(self) -> Cut:
        settled = list(self.everything)
        for unit in self.units:
            if unit.absent or any(settled[source] < after for source, (_, after) in unit.spans.items()):
                for source, (before, _) in unit.spans.items():
                    settled[source] = min(settled[source], before)
        return tuple(settled)


def _group(index: int, transaction: Transaction) -> Hashable:
    """What identifies a transaction: its global id, or its place among the deliveries."""
    return index if transaction.global_id is None else transaction.global_id


def _serial(before: Precedence, groups: Sequence[Hashable]) -> Iterator[list[int]]:
    """The groups in a serial order, those on a cycle as one, each by the places of its members among the deliveries."""
    merged, sorter = _without_cycles(before)
    members: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(merged[group], []).append(place)
    ready: list[tuple[int, Hashable]] = []
    while sorter.is_active():
        for group in sorter.get_ready():
            heapq.heappush(ready, (members[group][-1], group))
        _, group = heapq.heappop(ready)
        yield members[group]
        sorter.done(group)


def _without_cycles(before: Precedence) -> tuple[dict[Hashable, Hashable], TopologicalSorter[Hashable]]:
    """Each group with the one that it is merged into, and the order of those."""
    merged = {group: group for group in before}
    while True:
        graph: dict[Hashable, set[Hashable]] = {group: set() for group in merged.values()}
        for group, earlier in before.items():
            graph[merged[group]] |= {merged[other] for other in earlier} - {merged[group]}
        sorter = TopologicalSorter(graph)
        try:
            sorter.prepare()
        except CycleError as error:
            first, *cycle = error.args[1]
            merged = {group: first if into in cycle else into for group, into in merged.items()}
        else:
            return merged, sorter
