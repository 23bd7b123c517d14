"""The immutable copies of a folder, numbered.

    copies/00000000000000000007.json      what copy 7 holds: its tables, their files, where the rows of each are
    data/<digest>.parquet                 the rows of one file, by what was in it
    tables.json                           the tables with their columns, fixed when they were first seen

A copy is there when its JSON is; numbers go up by one and never come again. Files that did not change are shared, so a
copy costs what has changed. A crash leaves temporary files and data that no copy names: both are swept.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from viewkeeper.sources.files.folder import Stamp
from viewkeeper.sources.lake import durable

_COPIES, _DATA, _TABLES = "copies", "data", "tables.json"


@dataclass(frozen=True)
class FileCopy:
    """One file of a table: how it looked, a digest of its bytes, and where its rows are (nowhere if they misfit)."""

    name: str
    stamp: Stamp
    digest: str
    rows: int
    data: str | None
    lacks: Mapping[str, str] = field(default_factory=dict)
    """the columns that are NULL in all of its rows, because it does not have them, or not so that they fit; and why"""
    widened: bool = False
    """whether all of these are there, with values of a wider type"""


@dataclass(frozen=True)
class TableCopy:
    """The files of a table; or why it cannot be read."""

    files: tuple[FileCopy, ...]
    broken: str | None = None

    @property
    def lacks(self) -> dict[str, str]:
        """The columns that some file does not have."""
        return {column: reason for file in self.files for column, reason in file.lacks.items()}

    def same_rows(self, other: "TableCopy") -> bool:
        """Whether the same bytes are there, under whatever names."""
        mine, its = (sorted(file.digest for file in copy.files) for copy in (self, other))
        return mine == its and self.broken == other.broken


@dataclass(frozen=True)
class Copy:
    """One copy of the whole folder."""

    number: int
    tables: Mapping[str, TableCopy]

    def same_rows(self, other: "Copy") -> bool:
        if self.tables.keys() != other.tables.keys():
            return False
        return all(table.same_rows(other.tables[name]) for name, table in self.tables.items())


class Copies:
    """The copies in one workspace."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self._data = workspace / _DATA
        self._known: dict[int, Copy] = {}

    def numbers(self) -> list[int]:
        """The numbers of the copies that are there."""
        folder = self.workspace / _COPIES
        with durable.explained(folder):
            names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return sorted(int(name.removesuffix(".json")) for name in names if not name.startswith(durable.TEMPORARY))

    def newest(self) -> Copy | None:
        """The newest copy."""
        numbers = self.numbers()
        return self.copy(numbers[-1]) if numbers else None

    def copy(self, number: int) -> Copy | None:
        """A copy by its number; None if it is not there."""
        if number not in self._known:
            told = durable.read_json(self._path(number))
            if told is None:
                return None
            self._known[number] = _decoded(told)
        return self._known[number]

    def add(self, copy: Copy) -> bool:
        """Make a copy there; False if another process has taken its number."""
        content = {"number": copy.number, "tables": {name: asdict(table) for name, table in copy.tables.items()}}
        if not durable.create_exclusive(self._path(copy.number), content):
            return False
        self._known[copy.number] = copy
        return True

    def data_path(self, name: str) -> Path:
        """Where the rows of a file are."""
        return self._data / name

    def temporary(self) -> Path:
        """Where rows are written before they are complete."""
        durable.make_folder(self._data)
        return durable.temporary_name(self._data)

    def remove_before(self, number: int, keep: Collection[int]) -> None:
        """Forget the copies before one, but for those that somebody reads; the newest stays in any case."""
        numbers = self.numbers()
        for old in numbers[:-1]:
            if old < number and old not in keep:
                with durable.explained(self.workspace):
                    self._path(old).unlink(missing_ok=True)
                self._known.pop(old, None)

    def sweep(self) -> None:
        """Delete what no copy names; only while the lock is held."""
        durable.sweep_temporaries(self._data)
        durable.sweep_temporaries(self.workspace / _COPIES)
        copies = [copy for number in self.numbers() if (copy := self.copy(number)) is not None]
        used = {file.data for copy in copies for table in copy.tables.values() for file in table.files}
        with durable.explained(self._data):
            for path in self._data.iterdir() if self._data.is_dir() else ():
                if path.name not in used:
                    path.unlink(missing_ok=True)

    def registered(self) -> dict[str, Any]:
        """The tables as they were first seen."""
        told = durable.read_json(self.workspace / _TABLES)
        return dict(told["tables"]) if told else {}

    def register(self, tables: dict[str, Any]) -> None:
        """Fix the columns of the tables."""
        if self.registered() != tables:
            durable.replace(self.workspace / _TABLES, {"tables": tables})

    def size(self) -> int:
        """The bytes that the copies take."""
        with durable.explained(self._data):
            return sum(path.stat().st_size for path in self._data.iterdir()) if self._data.is_dir() else 0

    def _path(self, number: int) -> Path:
        return self.workspace / _COPIES / f"{number:020d}.json"


def _decoded(told: dict[str, Any]) -> Copy:
    tables = {}
    for name, table in told["tables"].items():
        files = tuple(FileCopy(**{**file, "stamp": Stamp(**file["stamp"])}) for file in table["files"])
        tables[name] = TableCopy(files, table["broken"])
    return Copy(told["number"], tables)
