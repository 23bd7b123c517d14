"""Positions of Delta tables.

    one table         its version
    several tables    the number of a step: each step is one version of one table

Delta knows no order between tables, so whatever is seen at once is put in the order of the commits' times and recorded:
the number of a step never changes its meaning. The record is a list of files, each with the versions at its beginning:

    steps/<number of its last step>.json      {"number": n, "versions": {...}, "steps": [[table, version], ...]}
"""

import threading
from collections.abc import Mapping
from heapq import merge
from pathlib import Path
from typing import Any, Protocol

from viewkeeper.errors import PositionLost
from viewkeeper.sources.delta.table import LakeTable
from viewkeeper.sources.lake import durable

Versions = Mapping[str, int]
"""A version per table."""


class Steps(Protocol):
    """How positions and versions belong together."""

    def observe(self) -> int:
        """The number of the last step there is now."""
        ...

    def began(self) -> int:
        """Where capture began."""
        ...

    def versions(self, number: int) -> Versions:
        """The versions of the tables at a number; PositionLost if that is not known any more."""
        ...

    def step(self, number: int) -> tuple[str, int]:
        """The table and the version that a step is."""
        ...

    def forget_before(self, number: int) -> None:
        """What is before a number is not asked for again."""
        ...


class VersionSteps:
    """The positions of a single table."""

    def __init__(self, table: LakeTable, workspace: Path) -> None:
        self._table = table
        self._path = workspace / "began.json"

    def observe(self) -> int:
        newest = self._table.newest()
        if not self._path.exists():
            durable.create_exclusive(self._path, {"version": newest})
        return newest

    def began(self) -> int:
        self.observe()
        return int(durable.read_json(self._path)["version"])

    def versions(self, number: int) -> Versions:
        if number > self._table.newest():
            raise _lost(number)
        return {self._table.name: number}

    def step(self, number: int) -> tuple[str, int]:
        return self._table.name, number

    def forget_before(self, number: int) -> None:
        """The log of the table is its owner's."""


class RecordedSteps:
    """The positions of several tables."""

    def __init__(self, tables: Mapping[str, LakeTable], workspace: Path) -> None:
        self._tables = tables
        self._folder = workspace / "steps"
        self._workspace = workspace
        self._lock = threading.Lock()
        self._entries: dict[int, dict[str, Any]] = {}
        """by the number of their last step, in order"""

    def observe(self) -> int:
        with self._lock:
            newest = {name: table.newest() for name, table in self._tables.items()}
            if not self._entries or not self._covers(newest):
                with durable.locked(self._workspace):
                    self._read()
                    self._extend(newest)
            return self._end()[0]

    def began(self) -> int:
        self.observe()
        return 0

    def versions(self, number: int) -> Versions:
        with self._lock:
            for last, entry in self._entries.items():
                if entry["number"] <= number <= last:
                    versions = dict(entry["versions"])
                    versions.update(entry["steps"][: number - entry["number"]])
                    return versions
        raise _lost(number)

    def step(self, number: int) -> tuple[str, int]:
        with self._lock:
            for last, entry in reversed(self._entries.items()):
                if entry["number"] < number <= last:
                    table, version = entry["steps"][number - entry["number"] - 1]
                    return table, version
        raise _lost(number)

    def forget_before(self, number: int) -> None:
        with self._lock:
            for last in [last for last in list(self._entries)[:-1] if last < number]:
                with durable.explained(self._folder):
                    self._path(last).unlink(missing_ok=True)
                del self._entries[last]

    def _covers(self, newest: Versions) -> bool:
        _, recorded = self._end()
        return all(recorded.get(name) == version for name, version in newest.items())

    def _extend(self, newest: Versions) -> None:
        if not self._entries:
            self._add({"number": 0, "versions": dict(newest), "steps": []})
        elif not self._covers(newest):
            last, versions = self._end()
            if steps := self._ordered(versions, newest):
                self._add({"number": last, "versions": versions, "steps": steps})

    def _ordered(self, old: Versions, new: Versions) -> list[tuple[str, int]]:
        """The versions between two vectors by the time of their commits, each table's in its own order."""
        queues = []
        for name, version in new.items():
            if name not in old:
                queues.append([(0, name, version)])
            elif version > old[name]:
                queues.append(self._timed(name, old[name] + 1, version))
            elif version < old[name] and self._tables[name].newest() < old[name]:
                raise PositionLost(f"the Delta table {name} was made anew", "reload the views over this source")
        return [(name, version) for _, name, version in merge(*queues)]

    def _timed(self, name: str, first: int, last: int) -> list[tuple[int, str, int]]:
        timed, latest = [], 0
        for version in range(first, last + 1):
            latest = max(latest, self._tables[name].timestamp(version))
            timed.append((latest, name, version))
        return timed

    def _end(self) -> tuple[int, dict[str, int]]:
        last, entry = next(reversed(self._entries.items()))
        return last, {**entry["versions"], **dict(entry["steps"])}

    def _add(self, entry: dict[str, Any]) -> None:
        last = entry["number"] + len(entry["steps"])
        durable.create_exclusive(self._path(last), entry)
        self._entries[last] = entry

    def _read(self) -> None:
        """What is recorded; another process may have added to it."""
        with durable.explained(self._folder):
            paths = sorted(self._folder.iterdir()) if self._folder.is_dir() else []
        entries = {}
        for path in paths:
            if not path.name.startswith(durable.TEMPORARY):
                last = int(path.stem)
                entries[last] = self._entries.get(last) or durable.read_json(path)
        self._entries = entries

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:020d}.json"


def _lost(number: int) -> PositionLost:
    return PositionLost(f"there is no position {number} of these Delta tables any more", "reload the views over them")
