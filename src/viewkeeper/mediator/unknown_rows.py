"""What of a question is sent: only that of which nothing is known yet.

    keys asked for  =  keys that are known  +  keys that are missing            by key, for each relation

A fetch whose keys are the rows of another one, all of them known, has keys that are known too. Its parent may change
before the answer is due, and then have rows that were not asked for: in that case the fetch brings nothing, and whoever
asked asks again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from viewkeeper.algebra.zset import Row
from viewkeeper.algorithms.update_queue import MakeZSet
from viewkeeper.mediator.known_rows import KnownRows, KnownTable
from viewkeeper.messages import Fetch, values_of


@dataclass
class _Part:
    """One fetch of a question."""

    fetch: Fetch
    parent: int | None = None
    """the fetch whose rows are its keys, if there is one"""
    columns: tuple[str, ...] = ()
    """the columns of the parent that are the keys"""
    table: KnownTable | None = None
    missing: tuple[Row, ...] = ()

    @property
    def read_there(self) -> bool:
        """Whether the source itself reads the keys."""
        return self.fetch.among is not None

    @property
    def asked(self) -> Fetch | None:
        if self.table is None:
            return self.fetch if self.fetch.keys != () else None
        return replace(self.fetch, keys=self.missing) if self.missing else None


class Unknown:
    """A question without what is known. What is known is looked up when the answer is due, for by then more may have
    been delivered."""

    def __init__(self, known: KnownRows, fetches: Sequence[Fetch], make_zset: MakeZSet) -> None:
        self._known, self._make_zset = known, make_zset
        self._parts: list[_Part] = []
        for fetch in fetches:
            self._parts.append(self._part(fetch))
        self.asked = tuple(asked for part in self._parts if (asked := part.asked) is not None)

    def _part(self, fetch: Fetch) -> _Part:
        part = _Part(fetch)
        if fetch.among is not None:
            number = next(n for n, one in enumerate(self._parts) if one.fetch.operands == fetch.among.operands)
            above = self._parts[number]
            if above.asked is not None:
                return _Part(fetch, number, fetch.among.columns)
            keys = values_of(self._make_zset(above.fetch.columns, self._looked_up(above)), fetch.among.columns)
            part = _Part(replace(fetch, keys=keys, among=None), number, fetch.among.columns)
        part.table = self._known.table(part.fetch)
        if part.table is not None:
            part.missing = part.table.missing(part.fetch.keys or ())
        return part

    def _looked_up(self, part: _Part) -> list[tuple[Row, int]]:
        """The rows of the keys that are known."""
        if part.table is None:
            return []
        missing = set(part.missing)
        return part.table.of(key for key in part.fetch.keys or () if key not in missing)

    def completed(self, fetched: Sequence[Any]) -> list[Any]:
        """The Z-set of each fetch, with what is known; None if its keys have become others."""
        come = iter(fetched)
        whole: list[Any] = []
        for part in self._parts:
            zset = next(come) if part.asked is not None else None
            if part.read_there:
                self._learn_keys(part, whole)
            if part.table is not None or zset is None:
                rows = self._looked_up(part)
                if zset is not None and part.table is not None:
                    rows += part.table.answered(part.missing, zset.weights(), remember=not self._known.full)
                zset = self._make_zset(part.fetch.columns, rows)
            whole.append(zset if self._has_its_keys(part, whole) else None)
        return whole

    def _learn_keys(self, part: _Part, before: Sequence[Any]) -> None:
        """Which keys the source read: those of the parent's rows, if none but its own have come."""
        assert part.parent is not None
        if self._parts[part.parent].table is not None and before[part.parent] is not None:
            keys = values_of(before[part.parent], part.columns)
            part.table = self._known.table(replace(part.fetch, keys=keys, among=None))
            part.missing = keys

    def _has_its_keys(self, part: _Part, before: Sequence[Any]) -> bool:
        if part.parent is None or part.read_there:
            return True
        parent = before[part.parent]
        return parent is not None and set(values_of(parent, part.columns)) <= set(part.fetch.keys or ())
