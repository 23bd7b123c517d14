"""The one writer of a warehouse: it holds the lock, makes commits, and puts things right after a failure."""

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any

from viewkeeper.clock import now, unique_id
from viewkeeper.warehouse.catalog import Catalog, Catalogs
from viewkeeper.warehouse.commit import Commit
from viewkeeper.warehouse.commit_log import HOME, CommitLog
from viewkeeper.warehouse.record import Record
from viewkeeper.warehouse.recovery import recover
from viewkeeper.warehouse.staged import StagedTable
from viewkeeper.warehouse.store import LocalStore
from viewkeeper.warehouse.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCK = f"{HOME}/writer.lock"


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
        self.id = unique_id()
        self.mutex = RLock()
        self._held = ExitStack()
        self._in_doubt = True
        self._being_written: set[str] = set()

    def open(self) -> None:
        """Take the lock, make the first record of a new warehouse, and undo what a dead writer left half done."""
        holder: dict[str, object] = {"pid": os.getpid(), "host": socket.gethostname(), "since": now().isoformat()}
        self._held.enter_context(self.store.locked(LOCK, holder))
        try:
            if not self.log.numbers():
                self.catalogs.write(0, {})
                self.log.append(Record(0, now().isoformat(), self.id, 0))
            self.settle()
        except BaseException:
            self._held.close()
            raise

    def close(self) -> None:
        """Let go of the lock."""
        with self.mutex:
            self._held.close()

    @property
    def last(self) -> Record:
        return self._last

    @property
    def catalog(self) -> Catalog:
        return self.catalogs.read(self._last.catalog)

    def settle(self) -> None:
        """Make sure that tables and files are what the last record says."""
        self._last = self.log.last()
        self._last = recover(self.store, self._last, self.catalogs, self.log, self.id, self._being_written)
        self._in_doubt = False

    def make(self, commit: Commit) -> Record:
        """Write the files of a commit, then its record; on failure everything is as before."""
        with self.mutex:
            number = self.last.commit + 1
            try:
                self._last = commit.stage(number).publish(self)
            except BaseException:
                self._in_doubt = True
                self._try_to_settle()
                raise
            return self._last

    def replace_table(self, staged: StagedTable, metrics: Mapping[str, Any]) -> Record:
        """A commit that puts other files in the place of a table's, with the same content."""
        last, name = self.last, staged.view.name
        try:
            table = staged.commit(self.store, last.commit + 1)
            self._last = replace(
                last,
                commit=last.commit + 1,
                time=now().isoformat(),
                writer=self.id,
                tables={other: state.untouched() for other, state in last.tables.items()} | {name: table},
                groups={group: state.untouched() for group, state in last.groups.items()},
                metrics=metrics,
            )
            self.log.append(self._last)
        except BaseException:
            self._in_doubt = True
            self._try_to_settle()
            raise
        return self._last

    def announce(self, oldest: Mapping[str, int], kept: Mapping[str, int]) -> None:
        """A commit that says which states and commits can no longer be read, before their files go."""
        last = self.last
        self._last = replace(
            last,
            commit=last.commit + 1,
            time=now().isoformat(),
            writer=self.id,
            tables={
                name: replace(table.untouched(), oldest=oldest[name], kept=kept[name])
                for name, table in last.tables.items()
            },
            groups={group: state.untouched() for group, state in last.groups.items()},
            metrics={"vacuumed": True},
        )
        self.log.append(self._last)

    def is_being_written(self, name: str) -> bool:
        """Whether a file belongs to what is being written beside commits."""
        return any(f"/{other}/" in name for other in self._being_written)

    @contextmanager
    def writing(self, name: str) -> Iterator[None]:
        """Keep files that are being written beside commits from being swept as leftovers."""
        self._being_written.add(name)
        try:
            yield
        finally:
            self._being_written.discard(name)

    def _try_to_settle(self) -> None:
        # If this fails too (the disk is still full), it is tried again before the next commit.
        try:
            self.settle()
        except Exception:
            self._in_doubt = True

    def begin(self) -> None:
        """Before a commit is collected: settle what an earlier one has left in doubt."""
        if self._in_doubt:
            self.settle()
