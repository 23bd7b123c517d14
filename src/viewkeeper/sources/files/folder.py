"""The folder of a source: which tables it holds, and whether something has changed.

    dir/orders.csv          the table orders
    dir/people/*.parquet    the table people, also from folders further down

Names that begin with a dot or an underscore are somebody's own: unfinished files, markers, checksums.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from viewkeeper.errors import SourceUnavailable
from viewkeeper.sources.files.formats import format_of, stem


@dataclass(frozen=True)
class Stamp:
    """What changes with a file, and is cheap to look at."""

    size: int
    modified: int
    changed: int
    """nanoseconds; this one also moves when the time of modification is set back"""


@dataclass(frozen=True)
class Place:
    """Where a table is: a file, or a folder of files, by its name in the source's folder."""

    table: str
    entry: str
    format: str


Listing = Mapping[str, Mapping[str, Stamp]]
"""The files of each table, by name relative to the source's folder; a table that is not there is left out."""


@dataclass(frozen=True)
class Found:
    """What a folder holds."""

    places: Mapping[str, Place]
    ignored: tuple[str, ...]
    """what is no table, and why"""


class Folder:
    """The folder of a source; it is only read."""

    def __init__(self, root: Path, format: str | None) -> None:
        self.root = root
        self._format = format

    def find(self) -> Found:
        """The tables that are there now."""
        places: dict[str, Place] = {}
        ignored: list[str] = []
        for entry in self._entries(self.root):
            if entry.is_dir():
                table, names = entry.name, list(self._files_below(entry.name))
            else:
                table, names = stem(entry.name), [entry.name]
            told = {format for name in names if (format := format_of(name))}
            if self._format:
                told &= {self._format}
            if len(told) != 1 or not table:
                why = "has files of several formats" if len(told) > 1 else "is no table"
                ignored.append(f"{entry.name} {why}")
            elif table in places:
                ignored.append(f"{entry.name} is the table {table} again, beside {places[table].entry}")
            else:
                places[table] = Place(table, entry.name, told.pop())
        return Found(places, tuple(ignored))

    def look(self, places: Mapping[str, Place]) -> Listing:
        """The files of these tables as they are now; SourceUnavailable if the folder is not there, or is empty."""
        listing: dict[str, dict[str, Stamp]] = {}
        for table, place in places.items():
            try:
                if (self.root / place.entry).is_dir():
                    names = [name for name in self._files_below(place.entry) if format_of(name) == place.format]
                else:
                    names = [place.entry]
                listing[table] = {name: self.stamp(name) for name in names}
            except FileNotFoundError:
                continue
        if places and not listing:
            # Rather a disk that is not mounted than every table dropped at once.
            missing = ", ".join(f"{place.entry} (the table {table})" for table, place in places.items())
            what = missing if len(places) == 1 else f"any of its tables: {missing}"
            raise SourceUnavailable(
                f"{self.root} does not have {what}",
                "see whether its disk is mounted; if the file was deleted or renamed, put it back",
            )
        return listing

    def stamp(self, name: str) -> Stamp:
        """What a file looks like from outside; FileNotFoundError."""
        about = self._seen(self.root / name)
        return Stamp(about.st_size, about.st_mtime_ns, about.st_ctime_ns)

    def path(self, name: str) -> Path:
        """Where a file is."""
        return self.root / name

    def _seen(self, path: Path) -> os.stat_result:
        try:
            return path.stat()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise unreadable(path, error) from error

    def _files_below(self, folder: str) -> Iterator[str]:
        for entry in self._entries(self.root / folder):
            name = f"{folder}/{entry.name}"
            if entry.is_dir():
                yield from self._files_below(name)
            else:
                yield name

    def _entries(self, folder: Path) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                shown = [entry for entry in entries if not entry.name.startswith((".", "_"))]
        except FileNotFoundError:
            if folder == self.root:
                raise unreadable(folder, FileNotFoundError(2, "there is no such folder")) from None
            raise
        except OSError as error:
            raise unreadable(folder, error) from error
        return sorted(shown, key=lambda entry: entry.name)


def unreadable(path: Path, error: OSError) -> SourceUnavailable:
    """The error for what cannot be read now."""
    return SourceUnavailable(f"{path}: {error.strerror or error}", "check the path and the rights of this user")
