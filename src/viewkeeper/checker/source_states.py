"""V(cut): the view over a source state, without computing it from scratch.

    V(c + t) = V(c) + ΔV,    ΔV = Σ over the operands i of t's source:  R₀' ⋈ ... ⋈ ΔR_i ⋈ ... ⋈ R_n-1

with every relation as it is at c, and the operands of t's own source before i already as they are after t.

ΔV is the same at every cut that does not change what t joins with. So for each transaction the rows that it can ever
reach along the joins are found once, and with them the moments at which something reachable changes; between those
moments ΔV is looked up. Most transactions meet few others: thousands of cuts share a handful of joins.

Contents are compared by fingerprint: each row has a number of 128 bits, a content is the sum of count · number. Equal
contents have equal fingerprints; that two different ones do is out of the question (one in 2¹²⁸). A fingerprint moves
along with ΔV.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from viewkeeper.algebra.joins import Hop, JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.checker.history import History
from viewkeeper.checker.schedule import Cut, Schedule
from viewkeeper.checker.timelines import OperandRows, Timeline

Fingerprint = int


@dataclass(frozen=True)
class Step:
    """What one transaction does to the view."""

    delta: MemoryZSet
    fingerprint: Fingerprint


@dataclass(frozen=True)
class _Sweep:
    """ΔR_i and the hops from it, each with the rows of its operand that can match at any time."""

    start: int
    delta: MemoryZSet
    hops: tuple[tuple[Hop, list[Row]], ...]


@dataclass(frozen=True)
class _Reach:
    """All sweeps of a transaction, and per other source the moments at which something that they reach changes."""

    sweeps: tuple[_Sweep, ...]
    moments: tuple[tuple[int, list[int]], ...]
    steps: dict[tuple[int, ...], Step] = field(default_factory=dict)


class SourceStates:
    """The view over every source state of a history."""

    def __init__(self, history: History, schedule: Schedule) -> None:
        view = history.definition
        self._plan = JoinPlan(view)
        self._source = {operand.index: schedule.number[operand.source] for operand in view.operands}
        timelines = {
            name: Timeline(relation, history.relations[name].rows, schedule.transactions_of(relation.source))
            for name, relation in view.relations.items()
        }
        self._operands = [OperandRows(view, operand, timelines[operand.relation.name]) for operand in view.operands]
        self._place = {
            column: (operand.index, place) for operand in view.operands for place, column in enumerate(operand.columns)
        }
        self._numbers: dict[Row, int] = {}
        self._reached: dict[tuple[int, int], _Reach] = {}
        self._schedule = schedule
        self.initial = self._plan.evaluate({name: history.relations[name].rows for name in view.relations})
        self._here = (schedule.nothing, self.fingerprint(self.initial))

    # --- contents ---

    def fingerprint(self, rows: MemoryZSet) -> Fingerprint:
        """Σ count · number over the rows."""
        numbers = self._numbers
        total = 0
        for row, count in rows.weights():
            number = numbers.get(row)
            if number is None:
                seed = len(numbers).to_bytes(8, "big")
                number = numbers[row] = int.from_bytes(blake2b(seed, digest_size=16).digest(), "big")
            total += count * number
        return total

    def step(self, cut: Cut, source: int) -> Step:
        """What the next transaction of a source does to the view at a cut."""
        reach = self._reached.get((source, cut[source]))
        if reach is None:
            reach = self._reached[source, cut[source]] = self._reach(source, cut[source])
        key = tuple([bisect_right(moments, cut[other]) for other, moments in reach.moments])
        step = reach.steps.get(key)
        if step is None:
            delta = self._delta(reach, cut, source)
            step = reach.steps[key] = Step(delta, self.fingerprint(delta))
        return step

    def at(self, cut: Cut) -> Fingerprint:
        """The fingerprint of V(cut). It walks there from the cut that it was last asked for."""
        here, fingerprint = self._here
        for source, count in enumerate(cut):
            while here[source] > count:
                here = _moved(here, source, -1)
                fingerprint -= self.step(here, source).fingerprint
        for source, count in enumerate(cut):
            while here[source] < count:
                fingerprint += self.step(here, source).fingerprint
                here = _moved(here, source, 1)
        self._here = here, fingerprint
        return fingerprint

    def along_serial_order(self, end: Cut) -> Iterator[tuple[Cut, MemoryZSet]]:
        """The cuts from nothing to `end` in serial order, with the change of the view that leads to each."""
        cut = self._schedule.nothing
        for source in self._schedule.serial_order():
            if cut[source] < end[source]:
                delta = self.step(cut, source).delta
                cut = _moved(cut, source, 1)
                yield cut, delta

    def rows(self, cut: Cut) -> MemoryZSet:
        """V(cut)."""
        deltas = (change for _, delta in self.along_serial_order(cut) for change in delta.weights())
        return MemoryZSet(self.initial.columns, [*self.initial.weights(), *deltas])

    # --- the delta rule ---

    def _reach(self, source: int, moment: int) -> _Reach:
        sweeps: list[_Sweep] = []
        moments: dict[int, set[int]] = {}
        for operand in self._operands:
            index = operand.operand.index
            if self._source[index] != source:
                continue
            delta = operand.timeline.deltas[moment]
            started = self._plan.start(index, delta)
            if started.is_empty():
                continue
            hops, reached = [], {index: [row for row, _ in delta.weights()]}
            for hop in self._plan.path(frozenset({index})):
                rows = self._matching(hop, reached)
                reached[hop.operand.index] = rows
                hops.append((hop, rows))
            sweeps.append(_Sweep(index, started, tuple(hops)))
            for other, rows in reached.items():
                if self._source[other] != source:
                    timeline = self._operands[other].timeline
                    moments.setdefault(self._source[other], set()).update(*(timeline.moments(row) for row in rows))
        return _Reach(tuple(sweeps), tuple((other, sorted(found)) for other, found in moments.items() if found))

    def _matching(self, hop: Hop, reached: dict[int, list[Row]]) -> list[Row]:
        """The rows of the hop's operand, at any time, that have a match in each operand that it is joined to."""
        operand = self._operands[hop.operand.index]
        pairs: dict[int, list[tuple[int, int]]] = {}
        for left, right in hop.on:
            other, place = self._place[left]
            pairs.setdefault(other, []).append((place, self._place[right][1]))
        if not pairs:
            return operand.matching((), set())
        matches = []
        for other, places in pairs.items():
            keys = {tuple([row[theirs] for theirs, _ in places]) for row in reached[other]}
            matches.append(operand.matching(tuple(mine for _, mine in places), keys))
        first, *more = matches
        return [row for row in first if all(row in rows for rows in map(frozenset, more))] if more else first

    def _delta(self, reach: _Reach, cut: Cut, source: int) -> MemoryZSet:
        total = MemoryZSet(self.initial.columns)
        for sweep in reach.sweeps:
            delta = sweep.delta
            for hop, rows in sweep.hops:
                index = hop.operand.index
                own = self._source[index]
                after = own == source and index < sweep.start
                delta = hop.join(delta, self._operands[index].at(rows, cut[own] + after))
                if delta.is_empty():
                    break
            else:
                total += self._plan.finish(delta)
        return total


def _moved(cut: Cut, source: int, by: int) -> Cut:
    return (*cut[:source], cut[source] + by, *cut[source + 1 :])
