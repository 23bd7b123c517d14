"""Ends of transactions that are known because a reading was made there.

What is read lies between two commits. So where the commits themselves cannot be distinguished, what is merged must at
least not reach across a reading: the reading would show a part of it.
"""

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Piece:
    """The changes behind `start` up to `end`: one transaction if exact, else maybe several."""

    start: int
    end: int
    exact: bool


class KnownEnds:
    """The ends that readings have shown. Whoever looks at a state of the database does so inside `looking`: then each
    end before the one that it finds has been noted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: list[int] = []

    @contextmanager
    def looking(self) -> Iterator[None]:
        with self._lock:
            yield

    def note(self, end: int) -> None:
        """Inside `looking`, by whoever goes on to read."""
        place = bisect_left(self._ends, end)
        if place == len(self._ends) or self._ends[place] != end:
            insort(self._ends, end)

    def forget(self, last: int) -> None:
        """Nothing up to here will be cut again."""
        with self._lock:
            del self._ends[: bisect_left(self._ends, last)]

    def cut(self, pieces: list[Piece]) -> list[Piece]:
        with self._lock:
            return [part for piece in pieces for part in self._parts(piece)]

    def _parts(self, piece: Piece) -> list[Piece]:
        if piece.exact:
            return [piece]
        inside = self._ends[bisect_right(self._ends, piece.start) : bisect_left(self._ends, piece.end)]
        starts, ends = [piece.start, *inside], [*inside, piece.end]
        return [Piece(start, end, exact=False) for start, end in zip(starts, ends, strict=True)]
