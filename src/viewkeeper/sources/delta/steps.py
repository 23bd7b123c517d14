"""Positions of Delta tables.

    one table         its version, after all that an earlier table in its place had
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
VERSIONS = 10**12
"""More than a table will ever have."""


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

    def begin_anew(self) -> None:
        """The tables are others than those whose versions were counted: no number means what it meant before."""
        ...


class VersionSteps:
    """The positions of a single table."""

    def __init__(self, table: LakeTable, workspace: Path) -> None:
        self._table = table
        self._path = workspace / "began.json"
        self._first: int | None = None

    def observe(self) -> int:
        newest = self._table.newest()
        if not self._path.exists():
            durable.create_exclusive(self._path, {"version": newest})
        return self._behind + newest

    @property
    def _behind(self) -> int:
        """The number of version 0."""
        if self._first is None:
            self._first = int(durable.read_json(self._path).get("behind", 0))
        return self._first

    def began(self) -> int:
        self.observe()
        return self._behind + int(durable.read_json(self._path)["version"])

    def versions(self, number: int) -> Versions:
        version = number - self._behind
        if not 0 <= version <= self._table.newest():
            raise _lost(number)
        return {self._table.name: version}

    def step(self, number: int) -> tuple[str, int]:
        return self._table.name, number - self._behind

    def begin_anew(self) -> None:
        self.observe()
        self._first = (self._behind // VERSIONS + 1) * VERSIONS
        durable.replace(self._path, {"version": self._table.newest(), "behind": self._first})

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
            self._forget([last for last in list(self._entries)[:-1] if last < number])

    def _forget(self, entries: list[int]) -> None:
        for last in entries:
            with durable.explained(self._folder):
                self._path(last).unlink(missing_ok=True)
            del self._entries[last]

    def begin_anew(self) -> None:
        newest = {name: table.newest() for name, table in self._tables.items()}
        with self._lock, durable.locked(self._workspace):
            self._read()
            number = self._end()[0] + 1 if self._entries else 0
            self._add({"number": number, "versions": newest, "steps": []})
            self._forget([last for last in self._entries if last < number])

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
                raise made_anew(name)
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


def made_anew(table: str) -> PositionLost:
    return PositionLost(
        f"the Delta table {table} was recreated, or put back from a backup: its versions are others than those that "
        "were followed",
        "reload the views over this source, and audit them",
    )


def _lost(number: int) -> PositionLost:
    return PositionLost(f"there is no position {number} of these Delta tables any more", "reload the views over them")
