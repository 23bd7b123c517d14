"""Whether a Delta table is still the one whose versions were counted.

    mark  =  a version, and what its commit in the log looks like

A commit never changes. So a table that was deleted and recreated, or was put back from a backup and written to since,
has another commit under the same number, or has not come so far again: its numbers mean other changes than those that
were told.
"""

import hashlib
import threading
from collections.abc import Mapping
from pathlib import Path

from viewkeeper.sources.delta.commits import commit_path
from viewkeeper.sources.delta.table import LakeTable
from viewkeeper.sources.lake import durable

_LOOKED_AT = 1 << 16
"""Bytes of a commit: its time and the random names of its files are among the first."""


class Marks:
    """A mark for each table, kept in a file of the warehouse."""

    def __init__(self, tables: Mapping[str, LakeTable], workspace: Path) -> None:
        self._tables = tables
        self._path = workspace / "marks.json"
        self._lock = threading.Lock()
        self._marks: dict[str, tuple[int, str]] | None = None

    def made_anew(self) -> str | None:
        """The name of a table that is not what it was. One whose log no longer goes back so far cannot be told."""
        with self._lock:
            for name, (version, look) in self._known().items():
                if name in self._tables and self._is_other(self._tables[name], version, look):
                    return name
        return None

    def _is_other(self, table: LakeTable, version: int, look: str) -> bool:
        now = _look(table.path, version)
        return table.newest() < version if now is None else now != look

    def begin_once(self, versions: Mapping[str, int]) -> None:
        """The first that anybody has seen of the tables."""
        with self._lock:
            known = bool(self._known())
        if not known:
            self.begin(versions)

    def note(self, versions: Mapping[str, int]) -> None:
        """What was told up to here is stored elsewhere: from now on these versions are looked at."""
        if self.made_anew() is None:
            self.begin(versions)

    def begin(self, versions: Mapping[str, int]) -> None:
        """Take the tables for what they are now."""
        looks = {name: (version, _look(self._tables[name].path, version)) for name, version in versions.items()}
        marks = {name: (version, look) for name, (version, look) in looks.items() if look is not None}
        with self._lock:
            if marks != self._known():
                durable.replace(self._path, {name: list(mark) for name, mark in marks.items()})
                self._marks = marks

    def _known(self) -> dict[str, tuple[int, str]]:
        if self._marks is None:
            told = durable.read_json(self._path) or {}
            self._marks = {name: (int(version), str(look)) for name, (version, look) in told.items()}
        return self._marks


def _look(table: Path, version: int) -> str | None:
    """Of a commit; None if the log does not have it."""
    try:
        with open(commit_path(table, version), "rb") as file:
            return hashlib.sha256(file.read(_LOOKED_AT)).hexdigest()
    except OSError:
        return None
