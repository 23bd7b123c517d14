"""Retention: states past it can no longer be read, and their files are deleted.

    a file is kept while     a retained commit needs it    or    a reader has pinned such a commit
    which is                 listed by the first retained commit of its table, or written by it or a later one

A commit is retained while it was the last one at any moment within the retention. First a record says which states go;
then the files are deleted, then the records that are needed no more. Commits go on meanwhile: what they write has later
numbers. Of the records only those are read that go.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from viewkeeper.clock import now
from viewkeeper.lake.log.catalog import CATALOG, VIEWS, Catalog, Definition, Layout, tables_of
from viewkeeper.lake.log.commit_log import HOME
from viewkeeper.lake.log.pins import pinned_commits
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.log.store import TEMPORARY
from viewkeeper.lake.tables.delta_log import LOG, OLD_LOG
from viewkeeper.lake.tables.parquet_files import commit_of
from viewkeeper.lake.tables.rewritten import CHANGES

if TYPE_CHECKING:
    from viewkeeper.lake.writer import Writer


_PLACES = (VIEWS, f"{HOME}/{CHANGES}")
"""where data files are, in a folder for each table"""


@dataclass(frozen=True)
class Vacuumed:
    """What vacuum did, or would do."""

    files: int
    bytes: int
    commits: int
    oldest: dict[str, int]
    """the oldest state of each view that can still be read"""
    kept_longer: dict[str, float]
    """views whose own retention, in seconds, is longer than the one that was asked for"""


def vacuum(
    writer: "Writer",
    retention: float,
    grace: float,
    *,
    dry_run: bool = False,
    stopped: Callable[[], bool] = lambda: False,
) -> Vacuumed:
    """Delete what is past the retention (seconds, a view's own if it has one) and older than the grace period.

    Once it is announced what goes, it may be `stopped` at any file: the next vacuum deletes the rest.
    """
    with writer.mutex:
        writer.begin()
        # A commit that is under way later makes folders of its own.
        last, places = writer.last, [(place, writer.store.folders(place)) for place in _PLACES]
    keep = _Kept(writer, last, places, retention, grace)
    unneeded, oldest, longer = list(keep.unneeded_files()), keep.oldest_states(), keep.longer_than(retention)
    commits = keep.oldest_commit() - keep.numbers[0]
    if not dry_run and (unneeded or commits):
        writer.announce(keep.current, oldest, keep.oldest_commits())
        if not set(pinned_commits(writer.store)) <= set(keep.pins):
            # A reader has pinned its commit before it could see the announcement: what it needs stays until later. One
            # that pins from now on sees it, and pins a later commit.
            keep = _Kept(writer, last, places, retention, grace)
            unneeded = list(keep.unneeded_files())
            commits = keep.oldest_commit() - keep.numbers[0]
        unneeded = list(_deleted(writer, unneeded, last.commit, stopped))
        with writer.mutex:
            writer.store.remove_if_empty({name.rpartition("/")[0] for name, _ in unneeded})
            writer.log.remove_before(keep.oldest_commit())
            writer.catalogs.remove_before(writer.log.record(writer.log.numbers()[0]).catalog)
    if not dry_run:
        _remove_emptied(writer, places)
    return Vacuumed(len(unneeded), sum(size for _, size in unneeded), commits, oldest, longer)


def _deleted(
    writer: "Writer", files: Iterable[tuple[str, int]], since: int, stopped: Callable[[], bool]
) -> Iterator[tuple[str, int]]:
    """Delete files that commit `since` did not need, one after the other, until it is stopped."""
    for name, size in files:
        if stopped():
            return
        with writer.mutex:
            # A view that was created meanwhile may have the folder of one that was dropped long ago.
            new = {view.folder for view in writer.catalog.values() if view.created > since}
            if f"{VIEWS}/{name.removeprefix(f'{HOME}/').split('/')[1]}" in new:
                continue
            writer.store.delete(name)
        yield name, size


def _remove_emptied(writer: "Writer", places: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Remove folders of views that are gone: a vacuum that was killed may have emptied them."""
    with writer.mutex:
        inhabited = {view.folder for view in writer.catalog.values()}
        for place, folders in places:
            for folder in (f"{place}/{name}" for name in folders):
                if folder not in inhabited:
                    writer.store.remove_empty_folders(folder)


class _Kept:
    """Which commits each view needs, and so which files."""

    def __init__(
        self,
        writer: "Writer",
        last: Record,
        places: Sequence[tuple[str, Sequence[str]]],
        retention: float,
        grace: float,
    ) -> None:
        self._writer, self._last, self._places, self._grace = writer, last, places, grace
        self.current: Catalog = writer.catalogs.read(last.catalog)
        self.numbers = range(writer.log.listed()[0], last.commit + 1)
        self.pins = pinned_commits(writer.store)
        self._moment = now()
        self._definitions: dict[str, Definition] = {}
        """every view that a record knows, by its folder"""
        self._until: dict[str, int] = {}
        """the last commit that knows it"""
        own: dict[str, float | None] = {}
        """the retention of each, if it has one: what the last definition says"""
        catalogs = self._catalogs()
        for number, following in zip(catalogs, [*catalogs[1:], last.commit + 1], strict=True):
            catalog = writer.catalogs.read(number)
            for view in catalog.values():
                self._definitions[view.folder] = view
                self._until[view.folder] = following - 1
                own[view.folder] = view.retention
            for view in catalog.values():
                # The tables that a view is computed from are kept as long as it is.
                if view.retention is not None:
                    own |= {table.folder: view.retention for table in tables_of(catalog, view)}
        for view in self.current.values():
            # The folder that a view had while it was small holds states of its own.
            if view.before is not None and view.before.folder in own:
                own[view.before.folder] = own[view.folder]
        self._first = {
            folder: self._first_commit(max(grace, retention if (keep := own[folder]) is None else keep))
            for folder in self._definitions
        }
        self._fallback = self._first_commit(max(grace, retention))

    def _catalogs(self) -> list[int]:
        """The commits that have changed the definitions, as far as records need them."""
        first = self._record(self.numbers[0]).catalog
        names = (name.removesuffix(".json") for name in self._writer.store.names(CATALOG))
        return sorted(int(name) for name in names if name.isdecimal() and first <= int(name) <= self._last.catalog)

    @cache  # noqa: B019  # lives as long as one vacuum
    def _first_commit(self, seconds: float) -> int:
        """The oldest commit that is retained for so long."""
        limit = self._moment - timedelta(seconds=seconds)
        retained = self._last.commit
        for earlier, later in pairwise(self.numbers):
            # It was the last commit until the next one came.
            if datetime.fromisoformat(self._record(later).time) > limit:
                retained = earlier
                break
        return min([retained, *self.pins])

    def _first_in(self, folder: str) -> int:
        """The oldest commit that is retained of a table."""
        view = self._definitions[folder]
        return max(self._first[folder], view.created, view.before.until if view.before else 0)

    def oldest_commit(self) -> int:
        return min([*self._first.values(), self._fallback])

    def oldest_commits(self) -> dict[str, int]:
        """The oldest commit of each view of today whose files stay."""
        return {name: max(self._first[view.folder], view.created) for name, view in self.current.items()}

    def oldest_states(self) -> dict[str, int]:
        """The oldest state of each view of today that will be readable."""
        states = {}
        for name, commit in self.oldest_commits().items():
            view, record = self.current[name], self._record(commit)
            group = record.groups[view.group]
            first = group.first if group.steps else group.last
            # A base that is newer than the state cannot give it.
            base = record.tables[name].base if view.at(commit).layout is Layout.APPENDED else 0
            states[name] = max(self._last.tables[name].oldest, first, base)
        return states

    def _record(self, commit: int) -> Record:
        return self._writer.log.record(commit)

    def longer_than(self, retention: float) -> dict[str, float]:
        """The views of today that are kept for longer, and for how long."""
        own = {name: view.retention for name, view in self.current.items() if not view.hidden}
        return {name: keep for name, keep in own.items() if keep is not None and keep > retention}

    def unneeded_files(self) -> Iterator[tuple[str, int]]:
        """Data files that are needed no more and are older than the grace period, with their sizes."""
        limit = self._moment.timestamp() - self._grace
        known = {folder for folder in self._definitions if self._until[folder] >= self._first[folder]}
        listed = {folder: self._listed(folder) for folder in known}
        places = [(f"{place}/{name}", f"{VIEWS}/{name}") for place, names in self._places for name in names]
        for place, folder in places:
            for file in self._writer.store.files(place):
                name = file.name.rpartition("/")[2]
                if file.modified > limit or name.startswith(TEMPORARY):
                    continue
                if folder not in known:
                    yield file.name, file.size
                elif file.name.startswith((f"{folder}/{LOG}/", f"{folder}/{OLD_LOG}/")):
                    # The log of a table goes with the table; before that, what its oldest needed checkpoint replaces.
                    if name[:20].isdigit() and int(name[:20]) < self._checkpoint(folder):
                        yield file.name, file.size
                elif commit_of(file.name) < self._first_in(folder) and file.name not in listed[folder]:
                    yield file.name, file.size

    def _listed(self, folder: str) -> set[str]:
        """The files of a table at the first commit that is retained of it."""
        view = self._definitions[folder]
        table = self._record(self._first_in(folder)).tables[view.name]
        return {f"{folder}/{file.name}" for file in self._writer.tables.files(view, table)}

    @cache  # noqa: B019  # lives as long as one vacuum
    def _checkpoint(self, folder: str) -> int:
        """The newest checkpoint of a table's log that is not newer than what is needed; 0 if there is none."""
        version = self._record(self._first_in(folder)).tables[self._definitions[folder].name].version
        names = [name for log in (LOG, OLD_LOG) for name in self._writer.store.names(f"{folder}/{log}")]
        found = [int(name[:20]) for name in names if ".checkpoint." in name and name[:20].isdigit()]
        return max((number for number in found if number <= version), default=0)
