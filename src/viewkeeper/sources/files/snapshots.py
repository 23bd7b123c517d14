"""Taking a copy of a folder that others write to.

    look, wait, look: nothing changed         it is quiet
    copy what is new, look: nothing changed   the copy is the folder at one moment

Otherwise it is tried again. A file is new if its size or times are; its rows are converted only if its bytes are new.
"""

import hashlib
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from viewkeeper.clock import monotonic
from viewkeeper.errors import SourceUnavailable
from viewkeeper.messages import Change
from viewkeeper.sources.base import PATIENCE
from viewkeeper.sources.files.copies import Copies, Copy, FileCopy, TableCopy
from viewkeeper.sources.files.folder import Folder, Listing, Stamp, unreadable
from viewkeeper.sources.files.formats import Lack, typed_batches
from viewkeeper.sources.files.tables import Table
from viewkeeper.sources.lake import durable
from viewkeeper.sources.lake.column_types import Misfit
from viewkeeper.sources.lake.content import Content, DataFile
from viewkeeper.sources.lake.difference import difference
from viewkeeper.sources.lake.keys import violation
from viewkeeper.sources.lake.workshop import Workshop, write_parquet
from viewkeeper.sources.layout import VIEW, Alteration

_BLOCK = 1 << 20


RELOAD = f"run 'viewkeeper reload {VIEW}'"


@dataclass(frozen=True)
class Lacking(Alteration):
    """A column that a copy says nothing of."""

    columns: frozenset[str] = frozenset()


def lacking(copy: TableCopy) -> list[Lacking]:
    """The columns that a copy says nothing of, and why."""
    return [
        Lacking(
            f"{file.name}: {reason}; {RELOAD}"
            if file.widened
            else f"{file.name}: {reason}; put it back, then {RELOAD}",
            frozenset({column}),
            recomputable=file.widened,
        )
        for file in copy.files
        for column, reason in file.lacks.items()
    ]


class Unsettled(Exception):
    """The folder changed while it was copied."""


class Snapshots:
    """The copies of one folder, and how the next one comes about."""

    def __init__(
        self, folder: Folder, tables: Mapping[str, Table], copies: Copies, workshop: Workshop, quiet: float
    ) -> None:
        self.copies = copies
        self._folder = folder
        self._tables = tables
        self._places = {name: table.place for name, table in tables.items()}
        self._workshop = workshop
        self._quiet = quiet
        self._taking = threading.Lock()
        self._listing: Listing | None = None
        self._seen: dict[tuple[str, str], FileCopy] = {}
        self._swept = False
        self._pinning = threading.Lock()
        self._pins: Counter[int] = Counter()
        noted = copies.registered()
        self._others = frozenset(
            name for name, table in tables.items() if name in noted and noted[name] != table.as_registered()
        )
        """tables that were copied with other columns than they have"""
        newest = copies.newest()
        self.latest = newest.number if newest else 0
        """the number of the newest copy; 0 if there is none"""

    def newest(self, stop: threading.Event | None = None) -> Copy:
        """The newest copy; a new one if the folder has changed and is quiet. SourceUnavailable if it never is."""
        stop = stop or threading.Event()
        deadline = monotonic() + PATIENCE
        while True:
            with self._taking:
                try:
                    newest = self._refreshed(stop)
                    self.latest = newest.number
                    return newest
                except Unsettled:
                    before = self.copies.newest()
            if before is not None and stop.is_set():
                return before
            if monotonic() > deadline or stop.is_set():
                raise SourceUnavailable(
                    f"{self._folder.root} has been changing for {PATIENCE:g} seconds",
                    "write files under another name (one that begins with a dot) and rename them when they are done",
                )

    def _refreshed(self, stop: threading.Event) -> Copy:
        newest = self.copies.newest()
        listing = self._folder.look(self._places)
        known = newest is not None and not self._others and newest.tables.keys() == self._tables.keys()
        if newest is not None and known and listing == self._known(newest):
            return newest
        stop.wait(self._quiet)
        if self._folder.look(self._places) != listing:
            raise Unsettled
        with durable.locked(self.copies.workspace):
            return self._taken(listing, stop)

    def _known(self, newest: Copy) -> Listing:
        """The folder as it was when its content was last compared with the newest copy."""
        if self._listing is None:
            self._seen = {(name, file.name): file for name, table in newest.tables.items() for file in table.files}
            self._listing = {
                name: {file.name: file.stamp for file in table.files}
                for name, table in newest.tables.items()
                if table.files or table.broken is None
            }
        return self._listing

    def _taken(self, listing: Listing, stop: threading.Event) -> Copy:
        if not self._swept:
            self.sweep_now()
        self.copies.register(
            self.copies.registered() | {name: table.as_registered() for name, table in self._tables.items()}
        )
        newest = self.copies.newest()
        if newest is not None:
            self._known(newest)
        tables = {
            name: self._copied(table, listing.get(name), newest.tables.get(name) if newest else None, stop)
            for name, table in self._tables.items()
        }
        if self._folder.look(self._places) != listing:
            raise Unsettled
        self._listing, self._others = listing, frozenset()
        self._seen = {(name, file.name): file for name, table in tables.items() for file in table.files}
        made = Copy(newest.number + 1 if newest else 1, tables)
        if newest is not None and made.same_rows(newest):
            return newest
        if not self.copies.add(made):
            self._listing = None
            raise Unsettled
        return made

    def _copied(
        self, table: Table, files: Mapping[str, Stamp] | None, before: TableCopy | None, stop: threading.Event
    ) -> TableCopy:
        if files is None:
            return TableCopy((), f"{table.place.entry} is gone")
        others = table.place.table in self._others
        if before is not None and not others and files and {file.name: file.stamp for file in before.files} == files:
            return before
        copied = []
        for name, stamp in files.items():
            seen = self._seen.get((table.place.table, name))
            if seen is None or seen.stamp != stamp or seen.data is None or table.place.table in self._others:
                try:
                    seen = self._copied_file(table, name, stamp, stop)
                except Misfit as error:
                    return TableCopy(
                        tuple(FileCopy(name, stamp, "", 0, None) for name, stamp in files.items()), f"{name}: {error}"
                    )
            copied.append(seen)
        made = TableCopy(tuple(copied))
        if before is not None and not others and before.same_rows(made):
            return made
        return TableCopy(made.files, violation(self.content(table, made), self._workshop))

    def _copied_file(self, table: Table, name: str, stamp: Stamp, stop: threading.Event) -> FileCopy:
        digest = self._digest(table, name, stop)
        path = self.copies.data_path(f"{digest}.parquet")
        alike = next((file for file in self._seen.values() if file.digest == digest), None)
        if path.exists() and alike is not None:
            return replace(alike, name=name, stamp=stamp)
        lacks: dict[str, Lack] = {}
        temporary = self.copies.temporary()
        try:
            rows = write_parquet(temporary, table.schema, self._rows(table, name, stop, lacks))
            # Between the digest and here it may have become another file.
            with self._reading(name):
                if self._folder.stamp(name) != stamp:
                    raise Unsettled
            durable.move_into_place(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        widened = bool(lacks) and all(lack.widened for lack in lacks.values())
        reasons = {column: lack.reason for column, lack in lacks.items()}
        return FileCopy(name, stamp, digest, rows, path.name, reasons, widened)

    def _rows(self, table: Table, name: str, stop: threading.Event, lacks: dict[str, Lack]) -> Iterator[pa.RecordBatch]:
        with self._reading(name):
            for batch in typed_batches(self._folder.path(name), table.format, table.schema, lacks):
                if stop.is_set():
                    raise Unsettled
                yield batch

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise Unsettled from error
        except OSError as error:
            raise unreadable(self._folder.path(name), error) from error

    def _digest(self, table: Table, name: str, stop: threading.Event) -> str:
        """Of the bytes of a file, and of how they are read."""
        made = hashlib.sha256(f"{table.format}{table.schema}".encode())
        with self._reading(name), open(self._folder.path(name), "rb") as file:
            while block := file.read(_BLOCK):
                made.update(block)
                if stop.is_set():
                    raise Unsettled
        return made.hexdigest()

    # --- what copies hold ---

    def content(self, table: Table, copy: TableCopy) -> Content:
        """The rows of a table in a copy."""
        files = [
            DataFile(self.copies.data_path(file.data), file.rows, canonical=True)
            for file in copy.files
            if file.data is not None
        ]
        return Content(table.relation, tuple(files))

    def step(self, old: Copy, new: Copy) -> tuple[list[Change], list[tuple[str, Alteration]]]:
        """The changes from one copy to the next, and the relations that break there, or columns of them, and why."""
        changes: list[Change] = []
        breaks: list[tuple[str, Alteration]] = []
        for name, table in self._tables.items():
            before, after = old.tables.get(name), new.tables.get(name)
            # A table that joins: whoever wants its rows reads them.
            if before is None or after is None or before.broken:
                continue
            if after.broken:
                breaks.append((table.relation.name, Alteration(f"{after.broken}; fix the file, then {RELOAD}")))
            else:
                breaks += [
                    (table.relation.name, one) for one in lacking(after) if not one.columns <= before.lacks.keys()
                ]
                changes += difference(self.content(table, before), self.content(table, after), self._workshop)
        return changes, breaks

    def sweep_now(self) -> None:
        """Delete what no copy needs; the caller holds the lock of the workspace."""
        self._workshop.sweep()
        self.copies.sweep()
        self._swept = True

    @contextmanager
    def pinned(self) -> Iterator[Copy]:
        """The newest copy, which stays there meanwhile; one is taken if there is none that has every table."""
        newest = self.copies.copy(self.latest) if self.latest else None
        if newest is None or not newest.tables.keys() >= self._tables.keys():
            self.newest()
        with self._pinning:
            copy = self.copies.copy(self.latest)
            assert copy is not None, "the newest copy is never deleted"
            self._pins[copy.number] += 1
        try:
            yield copy
        finally:
            with self._pinning:
                self._pins[copy.number] -= 1

    def forget_before(self, number: int) -> None:
        """Delete the copies before one, unless somebody reads them or a copy is being taken right now."""
        numbers = self.copies.numbers()
        if not numbers or numbers[0] >= number or not self._taking.acquire(blocking=False):
            return
        try:
            with durable.locked(self.copies.workspace):
                with self._pinning:
                    self.copies.remove_before(number, {copy for copy, readers in self._pins.items() if readers})
                self.copies.sweep()
        finally:
            self._taking.release()
