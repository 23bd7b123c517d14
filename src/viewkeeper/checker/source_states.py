"""V(cut): the view over a source state, one transaction at a time.

    V(c + t) = V(c) + ΔV,    ΔV = Σ over the operands i of t's source:  R₀' ⋈ ... ⋈ ΔR_i ⋈ ... ⋈ R_n-1

with every relation as it is at c, and the operands of t's own source before i already as they are after t. The joins
are walks over the derivations of all times (`derivations.py`).

Contents are compared by fingerprint: each row has a number of 128 bits, a content is the sum of count · number. Equal
contents have equal fingerprints; that two different ones do is out of the question (one in 2¹²⁸). A fingerprint moves
along with ΔV.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.checker.derivations import Derivations
from viewkeeper.checker.history import History
from viewkeeper.checker.schedule import Cut, Schedule, moved
from viewkeeper.checker.timelines import Timeline, Weights

Fingerprint = int


class SourceStates:
    """The view over every source state of a history."""

    def __init__(self, history: History, schedule: Schedule) -> None:
        view = history.definition
        plan = JoinPlan(view)
        self._schedule = schedule
        self._numbers: dict[Row, int] = {}
        self._source = [schedule.number[operand.source] for operand in view.operands]
        self._timelines = {
            name: Timeline(
                relation, history.relations[name].rows, schedule.transactions[schedule.number[relation.source]]
            )
            for name, relation in view.relations.items()
        }
        self._derivations = [Derivations(plan, operand.index, self._timelines) for operand in view.operands]
        self._relation = [operand.relation.name for operand in view.operands]
        self._started: dict[tuple[int, int], list[tuple[int, Weights]]] = {}
        self.initial = plan.evaluate({name: history.relations[name].rows for name in view.relations})
        self._here = (schedule.nothing, self.fingerprint(self.initial.weights()))

    # --- fingerprints ---

    def fingerprint(self, weights: Iterable[tuple[Row, int]]) -> Fingerprint:
        """Σ count · number over the rows."""
        numbers = self._numbers
        total = 0
        for row, count in weights:
            number = numbers.get(row)
            if number is None:
                seed = len(numbers).to_bytes(8, "big")
                number = numbers[row] = int.from_bytes(blake2b(seed, digest_size=16).digest(), "big")
            total += count * number
        return total

    def step(self, cut: Cut, source: int) -> Fingerprint:
        """What the next transaction of a source adds to the fingerprint at a cut."""
        return self.fingerprint(self.change(cut, source))

    def at(self, cut: Cut) -> Fingerprint:
        """The fingerprint of V(cut). It walks there, in serial order, from the cut that it was last asked for."""
        here, fingerprint = self._here
        for source in reversed(self._steps(cut, here)):
            here = moved(here, source, -1)
            fingerprint -= self.step(here, source)
        for source in self._steps(here, cut):
            fingerprint += self.step(here, source)
            here = moved(here, source, 1)
        self._here = here, fingerprint
        return fingerprint

    def _steps(self, lower: Cut, upper: Cut) -> list[int]:
        """The sources of the transactions in `upper` that are not in `lower`, in serial order."""
        places = enumerate(self._schedule.places)
        return [source for _, source in sorted((place, n) for n, own in places for place in own[lower[n] : upper[n]])]

    # --- rows ---

    def change(self, cut: Cut, source: int) -> Weights:
        """ΔV of the next transaction of a source at a cut; a row may come several times."""
        total: Weights = []
        for operand, starts in self._starts(source, cut[source]):
            moments = [cut[own] + (own == source and other < operand) for other, own in enumerate(self._source)]
            total += self._derivations[operand].walk(starts, moments)
        return total

    def along_serial_order(self, end: Cut) -> Iterator[tuple[Cut, Weights]]:
        """The cuts from nothing to `end` in serial order, with the change of the view that leads to each."""
        cut = self._schedule.nothing
        for source in self._schedule.order:
            if cut[source] < end[source]:
                change = self.change(cut, source)
                cut = moved(cut, source, 1)
                yield cut, change

    def rows(self, cut: Cut) -> MemoryZSet:
        """V(cut)."""
        changes = (weight for _, change in self.along_serial_order(cut) for weight in change)
        return MemoryZSet(self.initial.columns, [*self.initial.weights(), *changes])

    def _starts(self, source: int, count: int) -> list[tuple[int, Weights]]:
        """The operands that a source's next transaction after so many changes, with the partial rows to walk from."""
        started = self._started.get((source, count))
        if started is None:
            started = self._started[source, count] = [
                (operand, starts)
                for operand, derivations in enumerate(self._derivations)
                if self._source[operand] == source
                and (starts := derivations.starts(self._timelines[self._relation[operand]].deltas[count]))
            ]
        return started
