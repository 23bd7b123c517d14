"""Retention: states past it can no longer be read, and their files are deleted.

    a file is kept while     a retained commit needs it    or    a reader has pinned such a commit

A commit is retained while it was the last one at any moment within the retention. First a record says which states go;
then the files are deleted, then the records that nobody needs any more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from viewkeeper.clock import now
from viewkeeper.lake.log.catalog import VIEWS, Definition, Layout, tables_of
from viewkeeper.lake.log.commit_log import HOME
from viewkeeper.lake.log.pins import pinned_commits
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.tables.delta_log import LOG, OLD_LOG
from viewkeeper.lake.tables.rewritten import CHANGES

if TYPE_CHECKING:
    from viewkeeper.lake.writer import Writer


_PLACES = (VIEWS, f"{HOME}/{CHANGES}")
"""where data files are"""


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


def vacuum(writer: "Writer", retention: float, grace: float, *, dry_run: bool = False) -> Vacuumed:
    """Delete what is past the retention (seconds, a view's own if it has one) and older than the grace period."""
    with writer.mutex:
        writer.begin()
        keep = _Kept(writer, retention, grace)
        unneeded = list(keep.unneeded_files())
        commits = keep.oldest_commit() - writer.log.numbers()[0]
        done = Vacuumed(
            len(unneeded), sum(size for _, size in unneeded), commits, keep.oldest_states(), keep.longer_than(retention)
        )
        if not dry_run and (unneeded or commits):
            writer.announce(done.oldest, keep.oldest_commits())
            for name, _ in unneeded:
                writer.store.delete(name)
            for place in _PLACES:
                writer.store.remove_empty_folders(place)
            writer.log.remove_before(keep.oldest_commit())
            writer.catalogs.remove_before(writer.log.record(writer.log.numbers()[0]).catalog)
        return done


class _Kept:
    """Which commits each view needs, and so which files."""

    def __init__(self, writer: "Writer", retention: float, grace: float) -> None:
        self._writer, self._grace = writer, grace
        self._records = [writer.log.record(number) for number in writer.log.listed()]
        self._pins = pinned_commits(writer.store)
        self._moment = now()
        self._definitions: dict[str, Definition] = {}
        """every view that a record knows, by its folder"""
        own: dict[str, float | None] = {}
        """the retention of each, if it has one: what the last definition says"""
        for number in sorted({record.catalog for record in self._records}):
            catalog = writer.catalogs.read(number)
            for view in catalog.values():
                self._definitions[view.folder] = view
                own[view.folder] = view.retention
            for view in catalog.values():
                # The tables that a view is computed from are kept as long as it is.
                if view.retention is not None:
                    own |= {table.folder: view.retention for table in tables_of(catalog, view)}
        for view in catalog.values():
            # The folder that a view had while it was small holds states of its own.
            if view.before is not None and view.before.folder in own:
                own[view.before.folder] = own[view.folder]
        self._first = {
            folder: self._first_commit(max(grace, retention if (keep := own[folder]) is None else keep))
            for folder in self._definitions
        }
        self._fallback = self._first_commit(max(grace, retention))

    def _first_commit(self, seconds: float) -> int:
        """The oldest commit that is retained for so long."""
        limit = self._moment - timedelta(seconds=seconds)
        retained = self._records[-1].commit
        for earlier, later in pairwise(self._records):
            # It was the last commit until the next one came.
            if datetime.fromisoformat(later.time) > limit:
                retained = earlier.commit
                break
        return min([retained, *self._pins])

    def oldest_commit(self) -> int:
        return min([*self._first.values(), self._fallback])

    def oldest_commits(self) -> dict[str, int]:
        """The oldest commit of each view of today whose files stay."""
        current = self._writer.catalogs.read(self._records[-1].catalog)
        return {name: max(self._first[view.folder], view.created) for name, view in current.items()}

    def oldest_states(self) -> dict[str, int]:
        """The oldest state of each view of today that will be readable."""
        last = self._records[-1]
        current = self._writer.catalogs.read(last.catalog)
        states = {}
        for name, commit in self.oldest_commits().items():
            view, record = current[name], self._record(commit)
            group = record.groups[view.group]
            first = group.first if group.steps else group.last
            # A base that is newer than the state cannot give it.
            base = record.tables[name].base if view.at(commit).layout is Layout.APPENDED else 0
            states[name] = max(last.tables[name].oldest, first, base)
        return states

    def _record(self, commit: int) -> Record:
        return self._records[commit - self._records[0].commit]

    def longer_than(self, retention: float) -> dict[str, float]:
        """The views of today that are kept for longer, and for how long."""
        current = self._writer.catalogs.read(self._records[-1].catalog)
        own = {name: view.retention for name, view in current.items() if not view.hidden}
        return {name: keep for name, keep in own.items() if keep is not None and keep > retention}

    def needed_files(self) -> set[str]:
        """Every file that a retained commit reads."""
        needed: set[str] = set()
        for folder, view in self._definitions.items():
            started = False
            for record in self._records:
                table = record.tables.get(view.name)
                if record.commit < max(self._first[folder], view.created) or table is None:
                    continue
                if self._writer.catalogs.read(record.catalog)[view.name].folder != folder:
                    continue
                if not started:
                    listed = self._writer.tables.files(view, table)
                    needed.update(f"{folder}/{file.name}" for file in listed)
                    started = True
                needed.update(f"{folder}/{name}" for name in table.added)
                if table.changes:
                    needed.add(f"{HOME}/{table.changes}")
        return needed

    def unneeded_files(self) -> Iterator[tuple[str, int]]:
        """Data files that nobody needs and that are older than the grace period, with their sizes."""
        needed = self.needed_files()
        known = {folder for folder in self._definitions if self._is_live(folder)}
        limit = self._moment.timestamp() - self._grace
        for place in _PLACES:
            for file in self._writer.store.files(place):
                folder = "/".join(file.name.split("/")[:2])
                if file.modified > limit:
                    continue
                if f"/{LOG}/" in file.name or f"/{OLD_LOG}/" in file.name:
                    # The log of a table goes with the table; before that, what its oldest needed checkpoint replaces.
                    if folder in known and not self._is_old_log(folder, file.name.rpartition("/")[2]):
                        continue
                elif file.name in needed:
                    continue
                yield file.name, file.size

    def _is_old_log(self, folder: str, name: str) -> bool:
        return name[:20].isdigit() and int(name[:20]) < self._checkpoint(folder)

    @cache  # noqa: B019  # lives as long as one vacuum
    def _checkpoint(self, folder: str) -> int:
        """The newest checkpoint of a table's log that is not newer than what is needed; 0 if there is none."""
        view = self._definitions[folder]
        commit = max(self._first[folder], view.created, view.before.until if view.before else 0)
        version = self._record(commit).tables[view.name].version
        names = [name for log in (LOG, OLD_LOG) for name in self._writer.store.names(f"{folder}/{log}")]
        found = [int(name[:20]) for name in names if ".checkpoint." in name and name[:20].isdigit()]
        return max((number for number in found if number <= version), default=0)

    def _is_live(self, folder: str) -> bool:
        view = self._definitions[folder]
        return any(
            record.commit >= self._first[folder]
            and view.name in record.tables
            and self._writer.catalogs.read(record.catalog)[view.name].folder == folder
            for record in self._records
        )
