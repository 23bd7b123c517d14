"""Which transactions a snapshot shows, and the streamed ones for which that may still matter.

    visible(x)  =  x < xmin  or  (x < xmax and x not in xip)

A commit record is written, and may be streamed, before its transaction becomes visible: while its disk is synced, or
for as long as a standby keeps it waiting. So a reading asks by xid which transactions before its place it does not
show. Snapshots of one server form a chain: a later one shows all that an earlier one shows.
"""

import threading
from collections.abc import Collection
from dataclasses import dataclass, field

from viewkeeper.messages import Position, Transaction

_EPOCH = 1 << 32


def position_of(lsn: int) -> Position:
    """An LSN as a position: 16 hexadecimal digits."""
    return f"{lsn:016X}"


def lsn_of(position: Position) -> int:
    return int(position or "0", 16)


def parse_lsn(text: str) -> int:
    """The number of an LSN that is written as `16/B374D848`."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def widened(xid: int, near: int) -> int:
    """The 64-bit transaction id with these low 32 bits that is nearest to another one.

    The stream has 32 bits, a snapshot 64. Ids in use at one time lie within 2^31 of each other.
    """
    wide = near - near % _EPOCH + xid
    if wide - near > _EPOCH // 2:
        return wide - _EPOCH
    if near - wide > _EPOCH // 2:
        return wide + _EPOCH
    return wide


@dataclass(frozen=True)
class Snapshot:
    """What `pg_current_snapshot()` says."""

    xmin: int
    xmax: int
    running: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> "Snapshot":
        xmin, xmax, running = text.split(":")
        return cls(int(xmin), int(xmax), frozenset(int(xid) for xid in running.split(",") if xid))

    def shows(self, xid: int) -> bool:
        """Whether a transaction of the stream, which has committed, is visible."""
        wide = widened(xid, self.xmax)
        return wide < self.xmin or (wide < self.xmax and wide not in self.running)

    def is_before(self, other: "Snapshot") -> bool:
        return (self.xmax, -len(self.running)) < (other.xmax, -len(other.running))


@dataclass(frozen=True)
class Streamed:
    """A transaction of the stream with its xid; `start` and `end` are the LSNs of its commit record."""

    xid: int
    start: int
    end: int
    transaction: Transaction
    relations: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True)
class _Open:
    """A reading whose snapshot is at least as late as `floor`, and which began when the stream had passed a place."""

    floor: Snapshot | None
    passed: int


class Retained:
    """The streamed transactions that some snapshot, open or future, may not show.

    A transaction is let go when the newest snapshot shows it and so does the earliest snapshot that an open reading
    can have. Until then the slot may not forget it either: after a restart it must come again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_end: dict[int, Streamed] = {}
        self._open: dict[int, _Open] = {}
        self._next = 0
        self._newest: Snapshot | None = None

    def __len__(self) -> int:
        return len(self._by_end)

    def add(self, streamed: Collection[Streamed]) -> None:
        with self._lock:
            self._by_end.update((one.end, one) for one in streamed)

    def open(self, passed: int) -> int:
        """A reading is about to take its snapshot; the number to `close` it with."""
        with self._lock:
            self._next += 1
            self._open[self._next] = _Open(self._newest, passed)
            return self._next

    def close(self, number: int) -> None:
        with self._lock:
            del self._open[number]

    def observe(self, snapshot: Snapshot) -> None:
        """A snapshot was taken: what it and every open reading shows need not be kept."""
        with self._lock:
            if self._newest is None or self._newest.is_before(snapshot):
                self._newest = snapshot
            oldest = next(iter(self._open.values()), None)
            floor = oldest.floor if oldest else self._newest
            if floor is None:
                return
            passed = min((one.passed for one in self._open.values()), default=None)
            self._by_end = {
                end: one
                for end, one in self._by_end.items()
                if not floor.shows(one.xid) or (passed is not None and end > passed)
            }

    def touching(self, relations: Collection[str]) -> list[Streamed]:
        """The retained transactions that changed one of these relations, in commit order."""
        wanted = frozenset(relations)
        with self._lock:
            found = [one for one in self._by_end.values() if not wanted.isdisjoint(one.relations)]
        return sorted(found, key=lambda one: one.end)

    def first_start(self) -> int | None:
        """Where the earliest retained commit record begins."""
        with self._lock:
            return min((one.start for one in self._by_end.values()), default=None)
