"""Units: what every serial schedule of the sources does at once.

A local transaction is a unit of its own, and so are all parts of a global one together. The n-th part of a source with
some id belongs to the n-th transaction with that id, if the source is among its participants once. Three exceptions:

- Parts may cross (x has T before U, y has U before T). No serial schedule holds them apart, so everything on such a
  cycle, with the local transactions caught in between, is merged into one unit.
- A capture may have delivered several transactions of a source as one. It is one step of that source, so all global
  transactions that it holds parts of are one unit.
- A part may be missing: a participant that serves this history has delivered none. The sources' schedule holds whole
  transactions only, so the unit, and all that follows it, has not happened yet (`Schedule.settled`). A participant
  that no relation of this history belongs to has no part to deliver here, and is not missed.
"""

import heapq
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from viewkeeper.messages import Transaction

Span = tuple[int, int]
"""How many transactions of a source stand before, and how many with and before."""

_Precedence = dict[Hashable, set[Hashable]]
"""Each group of transactions with those that stand directly before it at some source."""


@dataclass(frozen=True)
class Unit:
    """Transactions that belong together, in delivery order.

    `spans` says where they stand at each source (by its number), without a gap: what lies between two members at one
    source is on their cycle, and so a member too. `absent` are the sources whose part never arrived.
    """

    members: tuple[Transaction, ...]
    spans: Mapping[int, Span]
    absent: tuple[str, ...]
    transactions: int = 1
    """how many they are, each global one counted once"""

    @property
    def merged(self) -> bool:
        """Whether these are several transactions, merged because no serial schedule holds them apart."""
        return self.transactions > 1

    @property
    def captured_together(self) -> bool:
        """Whether a capture holds parts of several global transactions."""
        return any(sum(part.count for part in member.parts) > 1 for member in self.members)


def units_in_serial_order(deliveries: Sequence[Transaction], number: Mapping[str, int]) -> tuple[Unit, ...]:
    """The units in the delivery order, each in the place of its last part; `number` has the number of each source."""
    uses = _uses(deliveries)
    groups = _groups(uses)
    before: _Precedence = {group: set() for group in groups}
    latest: dict[str, Hashable] = {}
    counts: list[int] = []
    seen = dict.fromkeys(number, 0)
    for group, transaction in zip(groups, deliveries, strict=True):
        source = transaction.source
        seen[source] += 1
        counts.append(seen[source])
        if source in latest:
            before[group].add(latest[source])
        latest[source] = group
    return tuple(_unit(places, deliveries, uses, counts, number) for places in _serial(before, groups))


@dataclass(eq=False)
class _Use:
    """One global transaction: the sources that take part, each as often as it has parts, and the parts that arrived."""

    participants: Counter[str] = field(default_factory=Counter)
    arrived: Counter[str] = field(default_factory=Counter)


def _uses(deliveries: Sequence[Transaction]) -> list[list[_Use]]:
    """For each delivery the global transactions that it has parts of."""
    by_id: dict[str, list[_Use]] = {}
    found: list[list[_Use]] = []
    for transaction in deliveries:
        of_one: list[_Use] = []
        for part in transaction.parts:
            for _ in range(part.count):
                uses = by_id.setdefault(part.id, [])
                source = transaction.source
                if not uses or all(use.arrived[source] >= max(use.participants[source], 1) for use in uses):
                    uses.append(_Use())
                use = next(use for use in uses if use.arrived[source] < max(use.participants[source], 1))
                use.participants |= Counter(part.participants)
                use.arrived[source] += 1
                of_one.append(use)
        found.append(of_one)
    return found


def _groups(uses: Sequence[Sequence[_Use]]) -> list[Hashable]:
    """For each delivery what it is one unit with: the same for two that share a global transaction, directly or not."""
    first: dict[_Use, int] = {}
    into = list(range(len(uses)))

    def root(place: int) -> int:
        while into[place] != place:
            into[place] = into[into[place]]
            place = into[place]
        return place

    for place, of_one in enumerate(uses):
        for use in of_one:
            into[root(place)] = root(first.setdefault(use, place))
    return [root(place) for place in range(len(uses))]


def _unit(
    places: Sequence[int],
    deliveries: Sequence[Transaction],
    uses: Sequence[Sequence[_Use]],
    counts: Sequence[int],
    number: Mapping[str, int],
) -> Unit:
    members = tuple(deliveries[place] for place in places)
    spans: dict[int, Span] = {}
    for place, member in zip(places, members, strict=True):
        before, _ = spans.get(number[member.source], (counts[place] - 1, 0))
        spans[number[member.source]] = (before, counts[place])
    together = dict.fromkeys(use for place in places for use in uses[place])
    absent = [source for use in together for source in use.participants - use.arrived if source in number]
    local = sum(not uses[place] for place in places)
    return Unit(members, spans, tuple(dict.fromkeys(absent)), len(together) + local)


def _serial(before: _Precedence, groups: Sequence[Hashable]) -> Iterator[list[int]]:
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


def _without_cycles(before: _Precedence) -> tuple[dict[Hashable, Hashable], TopologicalSorter[Hashable]]:
    """Each group with the one that it is merged into, and the order of those."""
    merged = {group: group for group in before}
    while True:
        graph: _Precedence = {group: set() for group in merged.values()}
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
