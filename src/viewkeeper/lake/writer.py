"""The one writer of a warehouse: it holds the lock, makes commits, and puts things right after a failure."""

import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any

from viewkeeper.clock import now, unique_id
from viewkeeper.errors import DamagedWarehouse, StorageFailure, UsageError
from viewkeeper.lake.log.catalog import VIEWS, Catalog, Catalogs, catalog_name
from viewkeeper.lake.log.commit_log import COMMITS, HOME, CommitLog, overtaken
from viewkeeper.lake.log.intents import Intents, Left, left_by
from viewkeeper.lake.log.record import GroupState, Record, TableState, seal, unseal
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.recovery import recover
from viewkeeper.lake.tables.delta_log import LOG, put_all_aside
from viewkeeper.lake.tables.delta_table import OpenTables
from viewkeeper.lake.tables.file_lists import Tables
from viewkeeper.lake.tables.parquet_files import STAGING
from viewkeeper.lake.tables.staged import StagedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCK = f"{HOME}/writer.lock"
CLOSED = f"{HOME}/closed.json"
"""the commit at which the last writer ended, if it left nothing to sweep"""


class Writer:
    """Commits, one at a time. `mutex` is held while a commit is collected and made."""

    def __init__(
        self,
        store: LocalStore,
        log: CommitLog,
        catalogs: Catalogs,
        tables: Tables,
        spark: "Callable[[], SparkSession]",
        *,
        owns_spark: bool,
    ) -> None:
        self.store, self.log, self.catalogs, self.tables = store, log, catalogs, tables
        self.spark, self.owns_spark = spark, owns_spark
        self.open_tables = OpenTables(store)
        self.id = unique_id()
        self.mutex = RLock()
        self._held = ExitStack()
        self._is_open = self._in_doubt = self._has_failed = False
        self._staging: set[str] = set()
        self._under_way = 0
        """commits that files are being written for: one may be made within another"""

    def open(self) -> None:
        """Take the lock, make the first record of a new warehouse, and undo what a dead writer left half done."""
        holder: dict[str, object] = {"pid": os.getpid(), "host": socket.gethostname(), "since": now().isoformat()}
        before = self._holder_before()
        self._held.enter_context(self.store.locked(LOCK, holder))
        try:
            self._open_log(left_by(self.store, before))
            self._intents = self._held.enter_context(Intents(self.store, holder))
            self._intents.begin(self._last.commit)
            self.store.about_to_write = self._intents.note
            # From here on a crash may leave something.
            self.store.delete_durably(CLOSED)
        except BaseException:
            self._held.close()
            raise
        self._is_open = True

    def _holder_before(self) -> object:
        """Who held the lock last."""
        try:
            return json.loads(self.store.read(LOCK))
        except (ValueError, DamagedWarehouse):
            return None

    def _open_log(self, left: Left | None) -> None:
        closed = self._closed_at()
        in_order = closed is not None and self.log.numbers()[-1:] == range(closed, closed + 1)
        # After a crash what no record knows is swept. A record that got lost must be missed before that.
        if not in_order and not (left is not None and left.commit in self.log.numbers()):
            left = None
            if not self.log.listed():
                self._make_first_record()
        self._last = self.log.last()
        self._settle(sweep=not in_order, left=left)
        self.store.refuse_links(STAGING)
        self._leave_all_folders()

    def close(self) -> None:
        """Let go of the lock."""
        with self.mutex:
            if self._is_open and not (self._has_failed or self._staging or self.store.left_something):
                with suppress(StorageFailure):
                    self.log.write_checkpoint(self._last.commit)
                    self.store.write(CLOSED, seal({"commit": self._last.commit}))
            self._is_open = False
            self._held.close()

    def _closed_at(self) -> int | None:
        """The commit at which the writer before this one ended, in order and with nothing left to sweep."""
        try:
            commit = unseal(self.store.read(CLOSED))["commit"]
        except (ValueError, KeyError, DamagedWarehouse):
            return None
        return commit if isinstance(commit, int) else None

    def _make_first_record(self) -> None:
        # Whatever no record knows is swept, so a log that got lost must not be taken for one that is yet to begin.
        if self.store.names(VIEWS):
            raise DamagedWarehouse(
                f"{self.store.path(COMMITS)} has no commit record, and there are views",
                "put the folder back from a backup: without it nothing says what the views hold",
            )
        # One that was killed here before may have left it.
        self.store.delete(catalog_name(0))
        self.catalogs.write(0, {})
        self.log.append(Record(0, now().isoformat(), self.id, 0))

    @property
    def last(self) -> Record:
        return self._last

    @property
    def catalog(self) -> Catalog:
        return self.catalogs.read(self._last.catalog)

    # --- commits ---

    @contextmanager
    def committing(self) -> Iterator[int]:
        """A block that writes files and then a record of this number; if it fails, everything is as before."""
        with self.mutex:
            self.begin()
            self._under_way += 1
            try:
                yield self.last.commit + 1
            except BaseException:
                self._in_doubt = self._has_failed = True
                # If this fails too (the disk is still full), it is tried again before the next commit.
                with suppress(Exception):
                    self._settle()
                raise
            finally:
                self._under_way -= 1

    def begin(self) -> None:
        """Before a commit: settle what an earlier one has left in doubt; WriterPresent if this writer was replaced."""
        if not self._is_open:
            raise UsageError(f"{self.store} is closed", "open the warehouse again to write to it")
        if self._in_doubt:
            self._settle()
        self._check_place()
        if not self._under_way:
            self._intents.begin_if_long(self._last.commit)

    def make(self, write: Callable[[int], Record]) -> Record:
        """Make a commit: `write` is given its number, writes its files and then its record."""
        with self.committing() as number:
            before = self.catalog
            self._last = write(number)
        self._leave_folders(before)
        return self._last

    def goes_on_from(self, there: GroupState) -> int:
        """The number after which the next state of a group is."""
        return there.last

    def first_state(self, group: str) -> int:
        """The number of the first state of a group that is new."""
        return 0

    def come_true(self, record: Record, catalog: Catalog) -> None:
        """Make a commit whose tables are all committed: within a block of `committing`, and with its number."""
        before = self.catalog
        self.catalogs.write(record.commit, catalog)
        self.log.append(record)
        self._last = record
        self._leave_folders(before)

    def _leave_folders(self, before: Catalog) -> None:
        """Folders that views are not in any more must not open with old rows."""
        for folder in {view.folder for view in before.values()} - {view.folder for view in self.catalog.values()}:
            put_all_aside(self.store, folder)

    def replace_table(self, staged: StagedTable, metrics: Mapping[str, Any]) -> Record:
        """A commit that puts other files in the place of a table's, with the same content."""
        last, name = self.last, staged.view.name
        table = staged.commit(self.open_tables, last.commit + 1)
        return self._append(
            tables={other: state.untouched() for other, state in last.tables.items()} | {name: table},
            metrics=metrics,
        )

    def announce(self, catalog: Catalog, oldest: Mapping[str, int], kept: Mapping[str, int]) -> Record:
        """A commit that says which states and commits can no longer be read, before their files go. `catalog` is that
        of the views that this was decided for: commits went on, and one may have been created or recreated since."""
        with self.committing():
            now_there = {(name, view.folder, view.created) for name, view in self.catalog.items()}
            same = {name for name, view in catalog.items() if (name, view.folder, view.created) in now_there}
            return self._append(
                tables={
                    name: replace(
                        table.untouched(),
                        oldest=max(table.oldest, oldest[name]) if name in same else table.oldest,
                        kept=max(table.kept, kept[name]) if name in same else table.kept,
                    )
                    for name, table in self.last.tables.items()
                },
                metrics={"vacuumed": True},
            )

    def _append(self, tables: Mapping[str, TableState], metrics: Mapping[str, Any]) -> Record:
        """Make a commit that adds no states."""
        record = replace(
            self.last,
            commit=self.last.commit + 1,
            time=now().isoformat(),
            writer=self.id,
            tables=tables,
            groups={group: state.untouched() for group, state in self.last.groups.items()},
            metrics=metrics,
        )
        self.log.append(record)
        self._last = record
        return record

    # --- after a failure ---

    def _settle(self, *, sweep: bool = True, left: Left | None = None) -> None:
        """Make sure that tables and files are what the last record says; `left` is what may be there besides."""
        self._check_place()
        last, staging = self.log.last(), tuple(self._staging) if sweep else None
        self._last = recover(self.store, last, self.catalogs, self.log, self.id, staging, left)
        self._in_doubt = False

    def _check_place(self) -> None:
        """WriterPresent if somebody else has gone on from the last commit: what is on disk is theirs to put right."""
        newest = self.log.last()
        if newest.commit > self._last.commit and newest.writer != self.id:
            raise overtaken(self.store, newest.commit)

    def _leave_all_folders(self) -> None:
        inhabited = {view.folder for view in self.catalog.values()}
        for folder in (f"{VIEWS}/{name}" for name in self.store.names(VIEWS)):
            if folder not in inhabited and self.store.exists(f"{folder}/{LOG}"):
                put_all_aside(self.store, folder)

    # --- beside commits ---

    @contextmanager
    def staging(self) -> Iterator[str]:
        """The name of a folder in which files are written while commits go on; it is gone after the block."""
        name = unique_id()
        self._staging.add(name)
        try:
            yield name
        finally:
            with suppress(StorageFailure):  # the next writer sweeps it
                for file in list(self.store.files(f"{STAGING}/{name}")):
                    self.store.delete(file.name)
                self.store.remove_empty_folders(f"{STAGING}/{name}")
            self._staging.discard(name)
