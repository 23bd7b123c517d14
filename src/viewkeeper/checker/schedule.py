"""All serial schedules that the sources allow, and the source states along them.

    cut        how many transactions of each source are included: a source state
    closed     a cut that holds each unit (`units.py`) whole or not at all: a source state of some serial schedule

Only each source's own order counts, not the delivery order: any way to add the units one by one that keeps it is a
serial schedule equivalent to what happened, and any chain of closed cuts c₀ ≤ c₁ ≤ ... lies on one of them.
"""

from collections.abc import Iterator
from operator import le

from viewkeeper.checker.history import History
from viewkeeper.checker.units import Unit, units_in_serial_order
from viewkeeper.messages import Position, Transaction, Vector, position

Cut = tuple[int, ...]


def within(cut: Cut, other: Cut) -> bool:
    """cut ≤ other: every source is at most as far."""
    return all(map(le, cut, other))


def moved(cut: Cut, source: int, by: int) -> Cut:
    """The cut with one source further on, or back."""
    return (*cut[:source], cut[source] + by, *cut[source + 1 :])


class Schedule:
    """The units of a history, and the cuts between them; sources go by their numbers.

    nothing, everything    the first and the last cut
    settled                the last closed cut: everything, unless a part of a global transaction never arrived
    order                  the source of each transaction in one serial order, that of `units`
    places                 the places of each source's transactions in that order
    """

    def __init__(self, history: History) -> None:
        self.sources = tuple(dict.fromkeys(held.relation.source for held in history.relations.values()))
        self.number = {source: number for number, source in enumerate(self.sources)}
        by_source: list[list[Transaction]] = [[] for _ in self.sources]
        for transaction in history.deliveries:
            by_source[self.number[transaction.source]].append(transaction)
        self.transactions = tuple(map(tuple, by_source))
        self._counts = tuple({one.position: count for count, one in enumerate(own, 1)} for own in self.transactions)
        self.nothing: Cut = (0,) * len(self.sources)
        self.everything: Cut = tuple(map(len, self.transactions))
        self.units = units_in_serial_order(history.deliveries, self.number)
        self._several = tuple(unit for unit in self.units if len(unit.members) > 1)
        self._next = tuple(
            {unit.spans[number][0]: unit for unit in self.units if number in unit.spans}
            for number in self.number.values()
        )
        self.order = tuple(self.number[member.source] for unit in self.units for member in unit.members)
        self.places = tuple(
            tuple(place for place, owner in enumerate(self.order) if owner == number) for number in self.number.values()
        )
        self.settled = self._before_absent_parts()

    def _before_absent_parts(self) -> Cut:
        settled = list(self.everything)
        for unit in self.units:
            if unit.absent or any(settled[source] < after for source, (_, after) in unit.spans.items()):
                for source, (before, _) in unit.spans.items():
                    settled[source] = min(settled[source], before)
        return tuple(settled)

    # --- cuts ---

    def includes(self, cut: Cut, unit: Unit) -> bool:
        """Whether the whole unit is in the cut."""
        return all(cut[source] >= after for source, (_, after) in unit.spans.items())

    def split_by(self, cut: Cut) -> Unit | None:
        """The first unit that the cut holds a part of."""
        for unit in self._several:
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
            if count < self.settled[source]:
                spans = self._next[source][count].spans
                if source == min(spans) and all(cut[other] == before for other, (before, _) in spans.items()):
                    yield tuple([spans[other][1] if other in spans else done for other, done in enumerate(cut)])

    def between(self, lower: Cut, upper: Cut) -> list[Unit]:
        """The units in `upper` that are not in `lower`, in serial order."""
        return [unit for unit in self.units if self.includes(upper, unit) and not self.includes(lower, unit)]

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
