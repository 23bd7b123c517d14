"""Global transactions of which parts are missing: what a group waits for, and what it has given up waiting for.

    wait        parts of T are here, and one from y is not: T, and what the sources committed after their parts of T, is
                in no state yet
    given up    the parts of T that are here are taken as if T had no others; one that comes later is taken by itself

A view that shows a transaction which was given up is weakly consistent until the late part has come: each of its states
is one that every source had, but it shows T half. Nothing else is different, and the history of such a run says so.

A capture that merges commits may merge them differently after a restart, so a remembered place (x, p) means

    the first delivered transaction of x at a position ≥ p that has a part of T, while p is after the committed vector
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from viewkeeper.algorithms.global_parts import GlobalParts
from viewkeeper.clock import now, unique_id
from viewkeeper.mediator.alignment import Place
from viewkeeper.messages import GlobalPart, Position, Transaction, Vector

OVERDUE = 1.0
"""seconds after which a part of a global transaction that has not come is missing, and no longer on its way"""
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

    @property
    def overdue(self) -> bool:
        return self.seconds() >= OVERDUE


@dataclass(frozen=True)
class GivenUp:
    """A wait that was given up, when and why; `late` are the missing parts that have come since. It is closed when its
    id begins another transaction: then the parts that have not come are lost."""

    key: str
    id: str
    missing: tuple[str, ...]
    arrived: tuple[Place, ...]
    since: str
    time: str
    why: str
    late: tuple[Place, ...] = ()
    closed: bool = False

    @property
    def outstanding(self) -> tuple[str, ...]:
        """The sources with parts that have still not come, and may."""
        return () if self.closed else without(self.missing, [source for source, _ in self.late])


def given_up(wait: Wait, why: str) -> GivenUp:
    """A wait that is given up now."""
    return GivenUp(unique_id(), wait.id, wait.missing, wait.arrived, wait.since, now().isoformat(), why)


class WaitStore(Protocol):
    """Where waits are remembered between runs, and where another process asks that one be given up."""

    def waits(self, group: str) -> Collection[Wait]: ...

    def note_waits(self, group: str, waits: Collection[Wait]) -> None:
        """From now on these, and no others."""
        ...

    def asked(self, group: str) -> Collection[Wait]:
        """Those that are to be given up."""
        ...

    def forget_asked(self, group: str, waits: Collection[Wait]) -> None:
        """These are done; others may have been asked for meanwhile."""
        ...

    def given_up(self, group: str) -> Collection[GivenUp]: ...

    def note_given_up(self, group: str, given: GivenUp) -> None:
        """Add it, or put it in place of what was noted under its key."""
        ...

    def forget_given_up(self, group: str, given: GivenUp) -> None: ...


class Incomplete:
    """The delivered parts of one group's global transactions that are in no committed state yet.

    `vector` is that of the group, as it advances; `waits` and `given` are what an earlier run has noted.
    """

    def __init__(self, vector: Vector, waits: Iterable[Wait] = (), given: Iterable[GivenUp] = ()) -> None:
        self._vector = vector
        self._given: dict[str, GivenUp] = {}
        self._keys: dict[str, list[str]] = {}
        """of what was given up, by id"""
        self._ending: set[str] = set()
        """the keys of those that no part can come for any more"""
        for one in given:
            self._put(one)
        self._waits: tuple[frozenset[str], tuple[Wait, ...]] | None = None
        """what was found last, and for which sources; None: something has changed since"""
        self._noted: dict[str, list[Wait]] = {}
        for wait in waits:
            self._noted.setdefault(wait.id, []).append(wait)
        self._since: dict[tuple[str, Place], str] = {}
        self._parts: dict[Place, Transaction] = {}
        """as they were delivered, in that order"""
        self._positions: dict[tuple[str, str], list[Position]] = {}
        """where a source has parts with an id, in their order"""

    @property
    def given(self) -> tuple[GivenUp, ...]:
        return tuple(self._given.values())

    def _put(self, given: GivenUp) -> None:
        if given.key not in self._given:
            self._keys.setdefault(given.id, []).append(given.key)
        self._given[given.key] = given
        if not given.outstanding:
            self._ending.add(given.key)

    def _given_with(self, id: str) -> list[GivenUp]:
        return [self._given[key] for key in self._keys.get(id, ())]

    # --- places ---

    def delivered_at(self, id: str, place: Place) -> Place | None:
        """Where the part is now that was at this place when it was noted; None if it is committed, or has not come."""
        source, noted = place
        positions = self._positions.get((id, source), [])
        number = bisect_left(positions, noted)
        if noted <= self._vector.get(source, "") or number == len(positions):
            return None
        return source, positions[number]

    def is_committed(self, place: Place) -> bool:
        source, position = place
        return position <= self._vector.get(source, "")

    def same(self, noted: Wait) -> Wait | None:
        """What is waited for now of what was noted, maybe by an earlier run; more of its parts may have come since."""
        places = {self.delivered_at(noted.id, place) for place in noted.arrived}
        found = self._waits[1] if self._waits is not None else ()
        return next((wait for wait in found if wait.id == noted.id and places & set(wait.arrived)), None)

    # --- parts ---

    def delivered(self, transaction: Transaction) -> list[GivenUp]:
        """A transaction with parts was delivered; what that changes of what was given up."""
        source, position = place = transaction.source, transaction.position
        self._parts[place], self._waits = transaction, None
        for id in dict.fromkeys(part.id for part in transaction.parts):
            self._positions.setdefault((id, source), []).append(position)
            self._since[id, place] = min(
                (
                    wait.since
                    for wait in self._noted.get(id, ())
                    if any(self.delivered_at(id, one) == place for one in wait.arrived)
                ),
                default=now().isoformat(),
            )
        changed = []
        for part in self.taken(transaction).parts:
            left = part.count
            for one in self._given_with(part.id):
                if these := min(left, one.outstanding.count(source)):
                    changed.append(replace(one, late=(*one.late, *(place,) * these)))
                    left -= these
            if left:
                changed += [
                    replace(one, closed=True)
                    for one in self._given_with(part.id)
                    if one.outstanding and any(name == source and at <= position for name, at in one.arrived)
                ]
            for one in changed:
                self._put(one)
        return changed

    def done(self, place: Place) -> bool:
        """It is part of a committed state; whether it has parts."""
        transaction = self._parts.pop(place, None)
        if transaction is None:
            return False
        self._waits = None
        source, position = place
        for id in dict.fromkeys(part.id for part in transaction.parts):
            self._since.pop((id, place), None)
            positions = self._positions[id, source]
            positions.remove(position)
            if not positions:
                del self._positions[id, source]
        return True

    def taken(self, transaction: Transaction) -> Transaction:
        """What a delivered transaction is to the views: a late part is none, and those that were given up together
        have an id of their own, so that a later transaction with their id is another one."""
        place = (transaction.source, transaction.position)
        late: dict[str, int] = {}
        halves: dict[str, list[GivenUp]] = {}
        for id in dict.fromkeys(part.id for part in transaction.parts):
            given = self._given_with(id)
            late[id] = sum(self.delivered_at(id, at) == place for one in given for at in one.late)
            halves[id] = [one for one in given if any(self.delivered_at(id, at) == place for at in one.arrived)]
        parts: list[GlobalPart] = []
        for part in transaction.parts:
            left = part.count
            for one in halves[part.id]:
                if here := min(left, _here(one, transaction.source, part)):
                    participants = without(part.participants, one.missing)
                    parts.append(replace(part, id=one.key, participants=participants, count=here))
                    left -= here
            alone = min(left, late[part.id])
            late[part.id] -= alone
            if left > alone:
                parts.append(replace(part, count=left - alone))
        return transaction if tuple(parts) == transaction.parts else replace(transaction, parts=tuple(parts))

    def part_at(self, place: Place) -> Transaction:
        """A delivered part as it is to the views."""
        return self.taken(self._parts[place])

    # --- waits ---

    def waits(self, sources: Iterable[str]) -> tuple[Wait, ...]:
        """What is missing, if these sources deliver."""
        delivering = frozenset(sources)
        if self._waits is None or self._waits[0] != delivering:
            self._waits = delivering, self._missing(delivering)
        return self._waits[1]

    def _missing(self, sources: Iterable[str]) -> tuple[Wait, ...]:
        parts = GlobalParts(sources)
        for transaction in self._parts.values():
            for whole in parts.add(self.taken(transaction)):
                if whole.is_whole:
                    parts.close(whole)
        found = []
        for one in parts.incomplete():
            if one.id in self._given:
                # After a restart: the rest of what was given up together is delivered again.
                continue
            arrived = tuple((member.source, member.position) for member in one.members)
            found.append(Wait(one.id, one.missing, arrived, min(self._since[one.id, place] for place in arrived)))
        return tuple(sorted(found, key=lambda wait: wait.since))

    def give_up(self, given: GivenUp) -> None:
        self._put(given)
        self._waits = None

    def settled(self) -> list[GivenUp]:
        """Those of which every part that can come is part of a committed state: they are over."""
        over = [
            one
            for one in (self._given[key] for key in self._ending)
            if all(self.is_committed(place) for place in (*one.arrived, *one.late))
        ]
        for one in over:
            del self._given[one.key]
            self._ending.discard(one.key)
            self._keys[one.id].remove(one.key)
            if not self._keys[one.id]:
                del self._keys[one.id]
        return over


def _here(given: GivenUp, source: str, part: GlobalPart) -> int:
    """How many parts of what was given up a transaction has: if the source has several, the others have one each."""
    places = sum(name == source for name, _ in given.arrived)
    return max(part.participants.count(source) - given.missing.count(source) - (places - 1), 1)


def without(names: Iterable[str], some: Iterable[str]) -> tuple[str, ...]:
    """Names in their order, each of `some` taken away once."""
    left = list(names)
    for name in some:
        if name in left:
            left.remove(name)
    return tuple(left)
