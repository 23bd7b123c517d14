"""The papers' legacy source: a folder in which somebody replaces and adds files, and nobody tells us.

Source     Zhuge, Garcia-Molina, Wiener: The Strobe Algorithms for Multi-Source Warehouse Consistency (1996): "a monitor
           for a legacy source may need to compute the difference between successive snapshots of the source data"
Position   the number of an immutable copy of the folder
Reading    the rows of the newest copy: exact at its number by construction

    transaction n = copy n - copy n-1          over all tables, as signed bags

What happened between two looks at the folder is one transaction. Its changes are held in memory: some 100,000 are
nothing, millions take a gigabyte or two.
"""

import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from viewkeeper.algebra.zset import Row
from viewkeeper.clock import monotonic
from viewkeeper.errors import PositionLost, SourceUnavailable, SourceUnfit
from viewkeeper.messages import Fetch, Position, Transaction, position
from viewkeeper.sources.base import GLOBAL_TX, Batch, Disruption, Finding, Reading, Request, Source, as_transaction
from viewkeeper.sources.files.copies import Copies, Copy
from viewkeeper.sources.files.folder import Folder
from viewkeeper.sources.files.snapshots import Snapshots, lacking
from viewkeeper.sources.files.tables import Settings, found_relation, tables_of
from viewkeeper.sources.lake.column_types import Misfit
from viewkeeper.sources.lake.content import Content, FileGone
from viewkeeper.sources.lake.durable import explained
from viewkeeper.sources.lake.fetching import answer
from viewkeeper.sources.lake.workshop import SMALL, Workshop
from viewkeeper.sql.relation import Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DAMAGED = "remove the source and add it again"

_GLANCE = 0.02
"""Seconds between two looks at whether another thread has taken a copy."""


class FilesSource(Source):
    """A folder of files; `workspace` is a folder of the warehouse for the copies, `spark` is asked for large ones."""

    def __init__(
        self, request: Request, spark: "Callable[[], SparkSession]", workspace: Path, *, small: int = SMALL
    ) -> None:
        super().__init__()
        self.name = request.name
        self._settings = Settings.of(request.url)
        self._copies = Copies(workspace)
        self._folder = Folder(self._settings.root, self._settings.format)
        registered = self._copies.registered()
        if not registered and not self._settings.root.is_dir():
            raise SourceUnfit(f"there is no folder {self._settings.root}", "correct the URL of the source")
        self._tables = tables_of(request, self._settings, registered)
        self.relations = {
            table.relation.name: table.relation for name, table in self._tables.items() if name != GLOBAL_TX
        }
        self.global_transactions = GLOBAL_TX in self._tables
        self._workshop = Workshop(spark, workspace / "scratch", small)
        self._snapshots = Snapshots(self._folder, self._tables, self._copies, self._workshop, self._settings.quiet)

    @property
    def found(self) -> Mapping[str, Relation]:
        newest = self._copies.newest()
        found = {}
        for name, table in self._tables.items():
            copy = newest.tables.get(name) if newest else None
            lost = (
                {column for one in lacking(copy) if not one.recomputable for column in one.columns} if copy else set()
            )
            if name != GLOBAL_TX:
                found[table.relation.name] = found_relation(table, self._folder, lost)
        return found

    # --- set-up ---

    def doctor(self) -> list[Finding]:
        """What cannot be read, what is not taken for a table, types that are guesses."""
        findings = []
        try:
            found = self._folder.find()
            listing = self._folder.look({name: table.place for name, table in self._tables.items()})
        except SourceUnavailable as error:
            return [Finding(error.detail, error.hint)]
        for name, table in self._tables.items():
            if name not in listing:
                findings.append(Finding(f"{table.place.entry} is gone", "put it back, or remove the source"))
        for file in (file for files in listing.values() for file in files):
            if not os.access(self._folder.path(file), os.R_OK):
                findings.append(Finding(f"{self._folder.path(file)} may not be read", f"chmod +r '{file}'"))
        newest = self._copies.newest()
        for name, copy in newest.tables.items() if newest else ():
            if copy.broken and name in listing:
                findings.append(Finding(f"{self.name}.{name} cannot be read: {copy.broken}", "fix the file"))
        for told in found.ignored:
            fix = "rename it, or move it elsewhere; names that begin with a dot are left alone"
            findings.append(Finding(f"{told}, it is ignored", fix, fatal=False))
        for name, table in self._tables.items():
            if table.guessed and table.place.format != "parquet" and name not in self._copies.registered():
                pairs = zip(table.relation.columns, table.relation.types, strict=True)
                columns = ", ".join(f"{column} {type}" for column, type in pairs)
                what = f"the types of {self.name}.{name} are what its files look like now"
                findings.append(Finding(what, f"add schema.{name}={columns} to the URL", fatal=False))
        return findings

    def install(self) -> None:
        """Take the first copy; nothing is changed in the folder itself."""
        self._snapshots.newest()

    def remove(self) -> list[str]:
        """Delete the copies."""
        with explained(self._copies.workspace):
            if self._copies.workspace.exists():
                shutil.rmtree(self._copies.workspace)
        return []

    # --- the stream ---

    def reach(self) -> None:
        self._folder.find()

    def end(self) -> Position:
        """The number of a copy that holds what is there now."""
        return position(self._snapshots.newest().number)

    def transactions(self, after: Position | None, stop: threading.Event) -> Iterator[Batch]:
        """The differences of successive copies; a new copy is taken when the folder has changed and is quiet."""
        self.stream_starts(after)
        last = self._copy_at(after, stop)
        yield self._passing(Batch((), position(last.number)))
        while not stop.is_set():
            newest = self._snapshots.newest(stop)
            while last.number < newest.number and not stop.is_set():
                following = self._copy(last.number + 1)
                batch = self._step(last, following)
                last = following
                yield self._passing(batch)
            self._wait(last.number, stop)

    def _copy_at(self, after: Position | None, stop: threading.Event) -> Copy:
        if after is None:
            self._snapshots.newest(stop)
            return self._copy(1)
        return self._copy(int(after))

    def _copy(self, number: int) -> Copy:
        copy = self._copies.copy(number)
        if copy is None:
            raise PositionLost(
                f"{self.name} has no copy {number} of {self._settings.root} any more",
                "reload the views over this source",
            )
        return copy

    def _step(self, old: Copy, new: Copy) -> Batch:
        place = position(new.number)
        try:
            changes, breaks = self._snapshots.step(old, new)
        except (FileGone, Misfit) as error:
            raise PositionLost(f"the copies of {self.name} are damaged: {error}", _DAMAGED) from error
        events: list[Transaction | Disruption] = [Disruption.of(relation, place, one) for relation, one in breaks]
        if changes:
            events.append(as_transaction(self.name, place, changes, looks=True))
        return Batch(events, place)

    def _passing(self, batch: Batch) -> Batch:
        self.passed(batch.upto)
        return batch

    def _wait(self, number: int, stop: threading.Event) -> None:
        deadline = monotonic() + self._settings.poll
        while self._snapshots.latest <= number and monotonic() < deadline:
            if stop.wait(min(_GLANCE, self._settings.poll)):
                return

    # --- readings ---

    @contextmanager
    def reading(self, fetches: Sequence[Fetch]) -> Iterator[Reading]:
        """Read the newest copy, which stays there until the reading is done."""
        with self._snapshots.pinned() as copy:
            asked = {operand.relation.name for fetch in fetches for operand in fetch.reads}
            contents = {name: self._content(name, copy) for name in asked}
            rows = tuple(_told(answer(fetch, contents, self._workshop)) for fetch in fetches)
            yield Reading(position(copy.number), rows, ((),) * len(fetches))

    def _content(self, relation: str, copy: Copy) -> Content:
        table = self._tables[relation.removeprefix(f"{self.name}.")]
        copied = copy.tables[table.place.table]
        if copied.broken:
            raise SourceUnfit(
                f"{relation} cannot be read: {copied.broken}", "fix the file; it is looked at again when it changes"
            )
        return self._snapshots.content(table, copied)

    # --- upkeep ---

    def acknowledge(self, position: Position) -> None:
        """Delete the copies from before a position: the next difference begins at it."""
        self._snapshots.forget_before(int(position))

    def retained(self) -> int:
        """The bytes of the copies."""
        return self._copies.size()

    def close(self) -> None:
        """There is nothing to let go of."""


def _told(batches: Iterator[Sequence[Row]]) -> Iterator[Sequence[Row]]:
    try:
        yield from batches
    except (FileGone, Misfit) as error:
        raise SourceUnfit(f"a copy is damaged: {error}", _DAMAGED) from error
