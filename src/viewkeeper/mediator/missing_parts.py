"""What a group does about missing parts of global transactions: it names them, remembers them, and gives them up.

    look    what is waited for?    →    which of that is to be given up?    →    is it certain that it has not come?

A look needs no quiet. Nothing of what an earlier run noted is forgotten before the streams have come past it.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial

from viewkeeper.clock import monotonic
from viewkeeper.errors import ViewkeeperError
from viewkeeper.mediator.alignment import Place
from viewkeeper.mediator.channel import Channel
from viewkeeper.mediator.waits import ASKED, TIMEOUT, GivenUp, Incomplete, Wait, WaitStore, given_up
from viewkeeper.messages import Position, Transaction, Vector

LOOK_EVERY = NOTED_AFTER = 1.0
"""Seconds between two looks while there is other work, and after which a wait is noted for other processes to see."""


class MissingParts:
    """The missing parts of one group. `vector` and `channels` are the group's own, as they change."""

    def __init__(
        self,
        group: str,
        vector: Vector,
        channels: Mapping[str, Channel],
        store: WaitStore | None,
        give_up_after: float | None,
        wake: Callable[[], None],
    ) -> None:
        self.waits: tuple[Wait, ...] = ()
        """what was waited for at the last look"""
        self.unsure = False
        """whether something is to be given up that may be on its way"""
        self._group, self._channels, self._store = group, channels, store
        self._give_up_after = give_up_after
        self._noted: tuple[Wait, ...] = tuple(store.waits(group)) if store else ()
        self._incomplete = Incomplete(vector, self._noted, store.given_up(group) if store else ())
        self._not_passed = [place for wait in self._noted for place in wait.arrived]
        """places from earlier runs that the streams have not come to yet"""
        self._asked: Collection[Wait] = ()
        self._looked_at = self._read_at = float("-inf")
        self._ends = Ends(channels, wake)

    @property
    def given(self) -> tuple[GivenUp, ...]:
        """What was given up and is not whole yet. From any thread."""
        return self._incomplete.given

    @property
    def sources(self) -> frozenset[str]:
        """Those that a part is missing from: all that they have must be taken to find it."""
        return frozenset(source for wait in self.waits for source in wait.missing)

    # --- what the group tells ---

    def delivered(self, transaction: Transaction) -> Transaction:
        """A transaction with parts was delivered; what it is to the views."""
        for changed in self._incomplete.delivered(transaction):
            # Before it can be part of a state: after a restart the same part must be known for the late one.
            if self._store is not None:
                self._store.note_given_up(self._group, changed)
        return self._incomplete.taken(transaction)

    def part_at(self, place: Place) -> Transaction:
        return self._incomplete.part_at(place)

    def done(self, place: Place) -> None:
        """It is part of a committed state."""
        if self._incomplete.done(place) and self.waits:
            self.waits = tuple(wait for wait in self.waits if place not in wait.arrived)

    # --- looking ---

    def look(self, *, idle: bool) -> list[GivenUp]:
        """Find out what is waited for, unless that was done a moment ago; what is given up now."""
        if not idle and monotonic() - self._looked_at < LOOK_EVERY:
            return []
        self._looked_at = monotonic()
        self.waits = self._incomplete.waits(self._channels)
        self._forget_what_is_over()
        self._read_requests()
        asked = {wait for wait in map(self._incomplete.same, self._asked) if wait is not None}
        patience = self._give_up_after
        due = [one for one in self.waits if one in asked or (patience is not None and one.seconds() >= patience)]
        absent = self._ends.passed(due)
        self.unsure = len(absent) < len(due)
        given = [given_up(wait, ASKED if wait in asked else TIMEOUT) for wait in absent]
        for one in given:
            if self._store is not None:
                self._store.note_given_up(self._group, one)
            self._incomplete.give_up(one)
        if given:
            self.waits = self._incomplete.waits(self._channels)
        self._forget_requests()
        self.note(lasting=NOTED_AFTER)
        return given

    def note(self, *, lasting: float = 0.0) -> None:
        """Remember what has been waited for at least that long."""
        if not self._has_passed(self._not_passed):
            return
        self._not_passed = []
        waits = tuple(wait for wait in self.waits if wait.seconds() >= lasting)
        if waits != self._noted and self._store is not None:
            self._store.note_waits(self._group, waits)
            self._noted = waits

    def _has_passed(self, places: Collection[Place]) -> bool:
        """Whether everything up to these places has been delivered; from a source that is lost nothing comes."""
        return all(
            self._channels[source].subscription.position >= position
            for source, position in places
            if source in self._channels
        )

    def _forget_what_is_over(self) -> None:
        for over in self._incomplete.settled():
            if self._store is not None:
                self._store.forget_given_up(self._group, over)

    def _read_requests(self) -> None:
        if self._store is not None and (self.waits or self._noted) and monotonic() - self._read_at >= LOOK_EVERY:
            self._read_at = monotonic()
            self._asked = self._store.asked(self._group)

    def _forget_requests(self) -> None:
        """Those that were read and that nothing is left to do for: given up, or the parts have come."""
        over = [one for one in self._asked if self._has_passed(one.arrived) and self._incomplete.same(one) is None]
        if over and self._store is not None:
            self._store.forget_asked(self._group, over)
            self._asked = [one for one in self._asked if one not in over]


class Ends:
    """How far sources had come when a wait was due to be given up: what they had committed then must be here first."""

    def __init__(self, channels: Mapping[str, Channel], wake: Callable[[], None]) -> None:
        self._channels, self._wake = channels, wake
        self._ends: dict[Wait, dict[str, Position]] = {}
        self._asked: dict[str, list[Wait]] = {}
        """for which waits a source is being asked"""
        self._asked_at: dict[str, float] = {}
        self._answers: dict[str, Position | ViewkeeperError] = {}

    def passed(self, due: Collection[Wait]) -> list[Wait]:
        """Those whose missing parts are certain not to be on their way. It does not wait: sources are queried now, each
        at most once in a while, and their answers count at a later call."""
        self._ends = {wait: self._ends.get(wait, {}) for wait in due}
        self._take_answers()
        lacking = {source for wait in due for source in wait.missing if source not in self._ends[wait]}
        for source in sorted(lacking):
            if source not in self._asked and monotonic() - self._asked_at.get(source, float("-inf")) >= LOOK_EVERY:
                self._asked[source] = [wait for wait in due if source in wait.missing]
                self._asked_at[source] = monotonic()
                self._channels[source].feed.ask_end(partial(self._answered, source))
        self._take_answers()
        return [wait for wait in due if self._is_passed(wait)]

    def _is_passed(self, wait: Wait) -> bool:
        ends = self._ends[wait]
        return all(
            source in ends and self._channels[source].subscription.position >= ends[source] for source in wait.missing
        )

    def _answered(self, source: str, answer: Position | ViewkeeperError) -> None:
        """From any thread."""
        self._answers[source] = answer
        self._wake()

    def _take_answers(self) -> None:
        for source in tuple(self._answers):
            answer, waits = self._answers.pop(source), self._asked.pop(source)
            if isinstance(answer, ViewkeeperError):
                continue
            for wait in waits:
                if wait in self._ends:
                    self._ends[wait].setdefault(source, answer)
