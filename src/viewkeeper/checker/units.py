"""Units: what every serial schedule of the sources does at once.

A local transaction is a unit of its own, and so are all parts of a global one together. Two exceptions:

- Parts may cross (x has T before U, y has U before T). No serial schedule holds them apart, so everything on such a
  cycle, with the local transactions caught in between, is merged into one unit.
- A part may be missing: a participant that serves this history has delivered none. The sources' schedule holds whole
  transactions only, so the unit, and all that follows it, has not happened yet (`Schedule.settled`). A participant
  that no relation of this history belongs to has no part to deliver here, and is not missed.
"""

import heapq
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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

    @property
    def merged(self) -> bool:
        """Whether these are several transactions, merged because no serial schedule holds them apart."""
        return len({_group(place, member) for place, member in enumerate(self.members)}) > 1


def units_in_serial_order(deliveries: Sequence[Transaction], number: Mapping[str, int]) -> tuple[Unit, ...]:
    """The units in the delivery order, each in the place of its last part; `number` has the number of each source."""
    groups = [_group(place, transaction) for place, transaction in enumerate(deliveries)]
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
    return tuple(_unit(places, deliveries, counts, number) for places in _serial(before, groups))


def _group(place: int, transaction: Transaction) -> Hashable:
    """What identifies a transaction: its global id, or its place among the deliveries."""
    return place if transaction.global_id is None else transaction.global_id


def _unit(
    places: Sequence[int], deliveries: Sequence[Transaction], counts: Sequence[int], number: Mapping[str, int]
) -> Unit:
    members = tuple(deliveries[place] for place in places)
    spans: dict[int, Span] = {}
    for place, member in zip(places, members, strict=True):
        before, _ = spans.get(number[member.source], (counts[place] - 1, 0))
        spans[number[member.source]] = (before, counts[place])
    arrived = {(member.global_id, member.source) for member in members}
    expected = [(member.global_id, source) for member in members for source in member.participants]
    absent = [part[1] for part in expected if part[0] is not None and part[1] in number and part not in arrived]
    return Unit(members, spans, tuple(dict.fromkeys(absent)))


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
