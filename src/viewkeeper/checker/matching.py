"""The cuts at which the view is what some state shows, found in the order of how far they stray.

    detour(c) = (the place in the serial order of the last transaction in c) - (how many transactions c holds)

A cut of detour 0 is a prefix of the serial order that the deliveries suggest; most states of most runs are there.
Others lack some of the transactions before their last one, and the detour counts those. Adding the transactions of a
cut in serial order never lowers it, so all cuts are reached from `nothing`, each once, by growing detour: the search
can stop as soon as it has found enough, and must have seen every cut only to say that there is no match.
"""

from collections.abc import Iterator

from viewkeeper.checker.case import Case
from viewkeeper.checker.schedule import Cut, moved
from viewkeeper.checker.source_states import Fingerprint


class Matches:
    """For what each state shows: the cuts that give it, and the closed ones among them."""

    def __init__(self, case: Case, budget: int) -> None:
        self._schedule = case.schedule
        self._walk = _cuts(case)
        self._next = next(self._walk, None)
        self.cuts: dict[Fingerprint, list[Cut]] = {shown: [] for shown in case.shown}
        self.closed: dict[Fingerprint, dict[Cut, None]] = {shown: {} for shown in case.shown}
        self.budget = budget
        self.seen = 0

    def explore(self, detour: int) -> None:
        """Look at all cuts of no more than this detour, or as many as the budget allows."""
        while self._next is not None and self._next[0] <= detour and self.seen < self.budget:
            _, cut, fingerprint = self._next
            self.seen += 1
            found = self.cuts.get(fingerprint)
            if found is not None:
                found.append(cut)
                if self._schedule.is_closed(cut):
                    self.closed[fingerprint][cut] = None
            self._next = next(self._walk, None)

    @property
    def exhausted(self) -> bool:
        """Whether every cut has been looked at."""
        return self._next is None

    @property
    def done(self) -> bool:
        """Whether exploring further would find nothing, or is not allowed."""
        return self.exhausted or self.seen >= self.budget


def _cuts(case: Case) -> Iterator[tuple[int, Cut, Fingerprint]]:
    """Every cut with its detour and what the view is there, by growing detour."""
    step = case.source_states.step
    order = case.schedule.order
    places = [(*own, -1) for own in case.schedule.places]  # nothing follows the last transaction of a source
    waiting: list[list[tuple[Cut, int, Fingerprint]]] = [[] for _ in range(len(order) + 1)]

    def next_steps(cut: Cut, reached: int, fingerprint: Fingerprint) -> None:
        size = sum(cut)
        for source, count in enumerate(cut):
            place = places[source][count]
            if place >= reached:
                waiting[place - size].append((cut, place, fingerprint))

    nothing = case.schedule.nothing
    initial = case.source_states.fingerprint(case.source_states.initial.weights())
    yield 0, nothing, initial
    next_steps(nothing, 0, initial)
    for detour, bucket in enumerate(waiting):
        while bucket:
            before, place, fingerprint = bucket.pop()
            source = order[place]
            fingerprint += step(before, source)
            cut = moved(before, source, 1)
            yield detour, cut, fingerprint
            next_steps(cut, place + 1, fingerprint)
