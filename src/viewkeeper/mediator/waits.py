"""Global transactions of which parts are missing: what a group waits for, and what it has given up waiting for.

    wait        parts of T are here, and one from y is not: T, and what the sources committed after their parts of T, is
                in no state yet
    given up    the parts of T that are here are taken as if T had no others; one that comes later is taken by itself

A view that shows a transaction which was given up is weakly consistent until the late part has come: each of its states
is one that every source had, but it shows T half. Nothing else is different, and the history of such a run says so.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from viewkeeper.algorithms.global_parts import GlobalParts
from viewkeeper.clock import now, unique_id
from viewkeeper.mediator.alignment import Place
from viewkeeper.messages import GlobalPart, Transaction

ASKED, TIMEOUT = "asked", "timeout"
"""Why a wait was given up."""


@dataclass(frozen=True)
class Wait:
    """A global transaction with missing parts."""

    id: str
    missing: tuple[str, ...]
    """the sources that they come from, each as often as it has some"""
    arrived: tuple[Place, ...]
    """source and position of the parts that are here"""
    since: str
    """when the first of these was delivered for the first time"""

    def seconds(self) -> float:
        """For how long it has lasted."""
        return (now() - datetime.fromisoformat(self.since)).total_seconds()


@dataclass(frozen=True)
class GivenUp:
    """A wait that was given up, when and why; `late` are the missing parts that have come since."""

    key: str
    id: str
    missing: tuple[str, ...]
    arrived: tuple[Place, ...]
    since: str
    time: str
    why: str
    late: tuple[Place, ...] = ()

    @property
    def outstanding(self) -> tuple[str, ...]:
        """The sources with parts that have still not come."""
        return without(self.missing, [source for source, _ in self.late])


def given_up(wait: Wait, why: str) -> GivenUp:
    """A wait that is given up now."""
    return GivenUp(unique_id(), wait.id, wait.missing, wait.arrived, wait.since, now().isoformat(), why)


def is_among(wait: Wait, others: Iterable[Wait]) -> bool:
    """Whether it is one of these; more of its parts may have come since they were seen."""
    return any(one.id == wait.id and set(one.arrived) & set(wait.arrived) for one in others)


class WaitStore(Protocol):
    """Where waits are remembered between runs, and where another process asks that one be given up."""

    def waits(self, group: str) -> Collection[Wait]: ...

    def note_waits(self, group: str, waits: Collection[Wait]) -> None:
        """From now on these, and no others."""
        ...

    def asked(self, group: str) -> Collection[Wait]:
        """Those that are to be given up."""
        ...

    def forget_asked(self, group: str) -> None: ...

    def given_up(self, group: str) -> Collection[GivenUp]: ...

    def note_given_up(self, group: str, given: GivenUp) -> None:
        """Add it, or put it in place of what was noted under its key."""
        ...

    def forget_given_up(self, group: str, given: GivenUp) -> None: ...


class Incomplete:
    """The delivered parts of one group's global transactions that are in no committed state yet."""

    def __init__(self, waits: Iterable[Wait] = (), given: Iterable[GivenUp] = ()) -> None:
        self.given = list(given)
        self._waits: tuple[Wait, ...] | None = ()
        """what was found last; None: something has changed since"""
        self._since = {place: wait.since for wait in waits for place in wait.arrived}
        self._parts: dict[Place, Transaction] = {}
        """as they were delivered, in that order"""

    def delivered(self, transaction: Transaction) -> list[GivenUp]:
        """A transaction with parts was delivered; those that were given up and that it is a late part of."""
        place = (transaction.source, transaction.position)
        self._parts[place], self._waits = transaction, None
        self._since.setdefault(place, now().isoformat())
        late: list[GivenUp] = []
        for part in transaction.parts:
            left = part.count - sum(one.late.count(place) for one in self.given if one.id == part.id)
            for number, one in enumerate(self.given):
                if one.id == part.id and place not in (*one.arrived, *one.late):
                    these = min(left, one.outstanding.count(transaction.source))
                    if these:
                        self.given[number] = replace(one, late=(*one.late, *(place,) * these))
                        late.append(self.given[number])
                        left -= these
        return late

    def done(self, place: Place) -> None:
        """It is part of a committed state."""
        if self._parts.pop(place, None) is not None:
            self._since.pop(place, None)
            self._waits = None

    def taken(self, transaction: Transaction) -> Transaction:
        """What a delivered transaction is to the views: without the parts that nobody waits for any more."""
        place = (transaction.source, transaction.position)
        parts = tuple(filter(None, (self._taken(part, place) for part in transaction.parts)))
        return transaction if parts == transaction.parts else replace(transaction, parts=parts)

    def _taken(self, part: GlobalPart, place: Place) -> GlobalPart | None:
        count, participants = part.count, part.participants
        for one in self.given:
            if one.id == part.id:
                count -= one.late.count(place)
                if place in one.arrived:
                    participants = without(participants, one.missing)
        return replace(part, participants=participants, count=count) if count > 0 else None

    def part_at(self, place: Place) -> Transaction:
        """A delivered part as it is to the views."""
        return self.taken(self._parts[place])

    def waits(self, sources: Iterable[str]) -> tuple[Wait, ...]:
        """What is missing, if these sources deliver."""
        if self._waits is None:
            self._waits = self._missing(sources)
        return self._waits

    def _missing(self, sources: Iterable[str]) -> tuple[Wait, ...]:
        parts = GlobalParts(sources)
        for transaction in self._parts.values():
            for whole in parts.add(self.taken(transaction)):
                if whole.is_whole:
                    parts.close(whole)
        found = []
        for one in parts.incomplete():
            arrived = tuple((member.source, member.position) for member in one.members)
            found.append(Wait(one.id, one.missing, arrived, min(self._since[place] for place in arrived)))
        return tuple(sorted(found, key=lambda wait: wait.since))

    def give_up(self, given: GivenUp) -> None:
        self.given.append(given)
        self._waits = None

    def settled(self, in_progress: Mapping[Place, Transaction]) -> list[GivenUp]:
        """Those of which every part has come and is part of a committed state: they are whole again."""
        whole = [
            one
            for one in self.given
            if not one.outstanding and not any(place in in_progress for place in (*one.arrived, *one.late))
        ]
        self.given = [one for one in self.given if one not in whole]
        return whole


def without(names: Iterable[str], some: Iterable[str]) -> tuple[str, ...]:
    """Names in their order, each of `some` taken away once."""
    left = list(names)
    for name in some:
        if name in left:
            left.remove(name)
    return tuple(left)
