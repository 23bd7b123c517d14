"""What the stream passed lately, and whether it touches what a reading asks for.

    reading exact at upper   ⇐   no transaction in (lower, upper] touches it

A fetch is touched by a change of one of its relations, unless its keys tell that the changed row has no part in it: a
column that is matched against keys, or is equal to one that is, holds none of them.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

from viewkeeper.messages import Change, Fetch, Position
from viewkeeper.sql.view import Operand

KEEP = 1_000
"""Transactions that are kept though nobody reads: more than can be on their way to a commit at one time."""

KEEP_CHANGES = 100_000


@dataclass(frozen=True)
class Passed:
    """A transaction of the stream; `gtid` where the server tells what it has committed by such names, `xa` if it was
    prepared under such a name."""

    position: Position
    changes: Sequence[Change]
    gtid: str | None = None
    xa: str | None = None


class History:
    """The transactions after the horizon, as long as a reading may need them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._passed: deque[Passed] = deque()
        self._changes = 0
        self._horizon: Position | None = None
        self._needed: list[Position] = []

    def begin(self, horizon: Position) -> None:
        """A new stream: it tells everything after the horizon."""
        with self._lock:
            self._passed.clear()
            self._changes, self._horizon = 0, horizon

    def add(self, passed: Sequence[Passed]) -> None:
        with self._lock:
            self._passed.extend(passed)
            self._changes += sum(len(one.changes) for one in passed)
            oldest = min(self._needed, default=None)
            while self._passed and (len(self._passed) > KEEP or self._changes > KEEP_CHANGES):
                first = self._passed[0]
                if oldest is not None and first.position > oldest:
                    break
                self._passed.popleft()
                self._changes -= len(first.changes)
                self._horizon = first.position

    @contextmanager
    def needed(self, behind: Position) -> Iterator[None]:
        """Keep what is behind a place, while somebody reads."""
        with self._lock:
            self._needed.append(behind)
        try:
            yield
        finally:
            with self._lock:
                self._needed.remove(behind)

    def between(self, lower: Position | None, upper: Position) -> list[Passed] | None:
        """The transactions in (lower, upper], or all that are kept up to upper; None if some are no longer known."""
        with self._lock:
            if self._horizon is None or (lower is not None and lower < self._horizon):
                return None
            return [
                passed
                for passed in self._passed
                if (lower is None or passed.position > lower) and passed.position <= upper
            ]

    def prepared(self, names: set[str], upto: Position) -> list[Passed]:
        """The XA transactions of these names, as far as they are kept."""
        if not names:
            return []
        with self._lock:
            return [passed for passed in self._passed if passed.xa in names and passed.position <= upto]


class Touch:
    """Whether changes touch what is requested."""

    def __init__(self, fetches: Sequence[Fetch]) -> None:
        self._tests: dict[str, list[tuple[tuple[int, ...], frozenset[Any]] | None]] = {}
        for fetch in fetches:
            for part in fetch.parts:
                for operand in part.operands:
                    self._tests.setdefault(operand.relation.name, []).append(_test(part, operand))

    def by(self, passed: Passed) -> bool:
        return any(self._touched(change) for change in passed.changes)

    def _touched(self, change: Change) -> bool:
        for test in self._tests.get(change.relation, ()):
            if test is None:
                return True
            places, keys = test
            if tuple(change.row[place] for place in places) in keys:
                return True
        return False


def _test(fetch: Fetch, operand: Operand) -> tuple[tuple[int, ...], frozenset[Any]] | None:
    """The columns of an operand that hold keys, and those keys; None if every row may have a part in the fetch."""
    if fetch.keys is None:
        return None
    places: list[tuple[int, int]] = []
    for number, matched in enumerate(fetch.matched):
        for alike in sorted(_equal_to(fetch, matched)):
            if alike in operand.columns:
                places.append((operand.columns.index(alike), number))
                break
    if not places:
        return None
    keys = frozenset(tuple(key[number] for _, number in places) for key in fetch.keys)
    return tuple(place for place, _ in places), keys


def _equal_to(fetch: Fetch, column: str) -> set[str]:
    """The columns that must equal a column, through equalities between columns of one type."""
    types = {
        name: type
        for operand in fetch.operands
        for name, type in zip(operand.columns, operand.relation.types, strict=True)
    }
    alike = {column}
    while True:
        more = {
            other
            for pair in fetch.equal
            for one, other in (pair, pair[::-1])
            if one in alike and other not in alike and types[one] == types[other]
        }
        if not more:
            return alike
        alike |= more
