"""One commit, held still: all views of a group read from it show one vector, while refreshes go on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from viewkeeper.errors import ExpressionError, StateGone, UsageError
from viewkeeper.lake.log.catalog import (
    Catalog,
    Catalogs,
    Definition,
    Layout,
    families,
    find,
    readable,
    spelled,
    tables_of,
)
from viewkeeper.lake.log.commit_log import CommitLog, state_gone
from viewkeeper.lake.log.pins import Pin, pin
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.log.states import State, common_states, states_of
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.tables.delta_table import DataFile
from viewkeeper.lake.tables.file_lists import Tables
from viewkeeper.messages import Vector
from viewkeeper.warehouse.kept_reads import KeptReads

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from viewkeeper.warehouse.computed_views import ComputedView
    from viewkeeper.warehouse.reading import AppendedView, MemberView, RewrittenView, StoredView


@dataclass(frozen=True)
class Files:
    """What every reader of a warehouse shares: its files, its log, and a way to Spark."""

    store: LocalStore
    log: CommitLog
    catalogs: Catalogs
    tables: Tables
    spark: "Callable[[], SparkSession]"
    kept_reads: KeptReads = field(default_factory=KeptReads)


class Snapshot:
    """The views as one commit has them; a context manager that keeps their files from being deleted.

    The name of a family, such as the tables of a CUBE, stands for all its members, read as one view.
    """

    def __init__(self, files: Files, record: Record, pin: Pin | None = None) -> None:
        self._files, self._record, self._pin = files, record, pin

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the commit: its files may be deleted once they are past their retention."""
        if self._pin is not None:
            self._pin.release()
            self._pin = None

    # --- what there is ---

    @property
    def files(self) -> Files:
        return self._files

    @property
    def commit(self) -> int:
        """The number of the commit."""
        return self._record.commit

    @property
    def record(self) -> Record:
        return self._record

    @property
    def catalog(self) -> Catalog:
        return self._files.catalogs.read(self._record.catalog)

    @property
    def views(self) -> tuple[str, ...]:
        """The names that can be read: of views and of families, sorted; hidden views are left out."""
        return readable(self.catalog)

    def vector(self, view: str) -> Vector:
        """The positions of the sources that the last state of a view reflects."""
        return dict(self._record.groups[self.members(view)[0].group].vector)

    def state(self, view: str) -> int:
        """The number of the last state of a view."""
        return self._record.groups[self.members(view)[0].group].last

    def states(self, view: str, last: int | None = None) -> list[State]:
        """The states of a view that can be read, or so many of the newest, oldest first."""
        members = [tables_of(self.catalog, one) for one in self.members(view)]
        return common_states([states_of(self._files.log, tables, self._record, last) for tables in members])

    # --- reading ---

    def read(self, view: str, state: int | None = None, *, weights: bool = False) -> "DataFrame":
        """The rows of a view at a state (by default its last): a bag, or each distinct row with its count in
        `_vk_weight`."""
        stored = self.stored(view, state)
        return stored.weights() if weights else stored.bag()

    def arrow(self, view: str, state: int | None = None) -> "pa.Table":
        """The rows of a view in Arrow; Spark is not asked, unless the view shows what Spark alone evaluates."""
        from viewkeeper.warehouse.arrow_reading.parts import arrow_table

        view = spelled(self.catalog, view)
        try:
            return arrow_table(self, view, state)
        except ExpressionError:
            return self.read(view, state).toArrow()

    def stored(self, view: str, state: int | None = None) -> "StoredView":
        """The same in any of its forms."""
        from viewkeeper.warehouse.reading import FamilyView

        view = spelled(self.catalog, view)
        if (members := families(self.catalog).get(view)) is not None:
            return FamilyView([(self._shown(member, state, view), member) for member in members])
        return self._shown(find(self.catalog, view), state, view)

    def with_hidden(self, view: str, state: int | None = None) -> "AppendedView | RewrittenView | ComputedView":
        """One view as it is stored, with the rows and columns that are not shown; or as it is computed."""
        found = find(self.catalog, view)
        return self._table(found, state, view) if found.computed is None else self._computed(found, state, view)

    def changes(self, view: str, since: int, until: int | None = None) -> "DataFrame":
        """The signed rows of the states after `since`, up to `until` (by default the last)."""
        from viewkeeper.warehouse.changes import family_changes

        view = spelled(self.catalog, view)
        members = self.members(view)
        changes = [self._changes(member, since, until, view) for member in members]
        return family_changes(changes, members) if view in families(self.catalog) else changes[0]

    def sql(self, query: str) -> "DataFrame":
        """The answer of a Spark SQL query over the views, by their names."""
        from viewkeeper.warehouse.queries import run_query

        return run_query(self, self._files.spark, query)

    def members(self, view: str) -> tuple[Definition, ...]:
        """The members of a family, or a view by itself."""
        view = spelled(self.catalog, view)
        return families(self.catalog).get(view) or (find(self.catalog, view),)

    def _shown(self, view: Definition, state: int | None, asked: str) -> "MemberView":
        from viewkeeper.warehouse.reading import ShownView

        if view.computed is not None:
            return self._computed(view, state, asked)
        stored = self._table(view, state, asked)
        return stored if view.shown_as_stored else ShownView(stored, view)

    def _computed(self, view: Definition, state: int | None, asked: str) -> "ComputedView":
        from viewkeeper.warehouse.computed_views import ComputedView

        tables, last = tables_of(self.catalog, view), self._record.groups[view.group].last
        for table in tables:
            self.holding(table, state, asked)
        stored = [self._table(table, state, asked) for table in tables]
        at = last, *(self._record.tables[table.name].version for table in tables)

        def once(rows: "DataFrame") -> "DataFrame":
            return self._files.kept_reads.read(view, at, rows) if state in (None, last) else rows

        return ComputedView(view, tables, stored, once)

    def _changes(self, view: Definition, since: int, until: int | None, asked: str) -> "DataFrame":
        from viewkeeper.warehouse.changes import shown_changes, stored_changes
        from viewkeeper.warehouse.computed_changes import computed_changes, joined_changes

        tables, newest = tables_of(self.catalog, view), []
        last = self._record.groups[view.group].last if until is None else until
        for table in tables:
            self.holding(table, since, asked)
            newest.append(self.holding(table, last, asked)[0])
        if last < since:
            raise StateGone(f"state {last} of {asked} is before state {since}", "give the earlier one as 'since'")
        signed = [
            stored_changes(self._files, table, record, since, last)
            for table, record in zip(tables, newest, strict=True)
        ]
        if view.computed is None:
            return shown_changes(signed[0], view)
        if not view.computed.copies:
            return computed_changes(view, tables, signed[0])
        before = [self._table(table, since, asked).bag() for table in tables]
        sizes = [self._record.tables[table.name].rows for table in tables]
        return joined_changes(view, tables, before, signed, since, sizes)

    def _table(self, view: Definition, state: int | None, asked: str) -> "AppendedView | RewrittenView":
        from viewkeeper.warehouse.reading import AppendedView, RewrittenView

        if self._pin is not None:
            self._pin.renew()
        record, state = self.holding(view, state, asked)
        view, table = view.at(record.commit), record.tables[view.name]
        files, spark, store = self._files, self._files.spark(), self._files.store
        listed = files.tables.files(view, table)
        if view.layout is Layout.APPENDED:
            return AppendedView(spark, store, view, listed, state, hashed=table.hashed)
        later = [DataFile(table.changes, 0, 0)] if table.changes and state < record.groups[view.group].last else []
        return RewrittenView(spark, store, view, listed, later, state)

    def holding(self, view: Definition, state: int | None, asked: str) -> tuple[Record, int]:
        """The record to read a state from, and its number; StateGone for the name that was asked for."""
        last = self._record.groups[view.group].last
        table = self._record.tables[view.name]
        if state is None:
            return self._record, last
        if not table.oldest <= state <= last:
            raise state_gone(asked, state)
        held = state >= table.base if view.layout is Layout.APPENDED else state == last
        if held:
            return self._record, state
        log = self._files.log
        return log.find_state(view.group, state, since=table.kept, newest=self._record.commit), state


def path_of(snapshot: Snapshot, view: str) -> Path:
    """The folder of the Delta table of a view; UsageError if its rows are in no table."""
    found = find(snapshot.catalog, view)
    if found.computed is not None:
        tables = ", ".join(table.name for table in tables_of(snapshot.catalog, found))
        raise UsageError(
            f"the rows of {found.name} are in no table: they are computed from {tables} when they are read",
            f"viewkeeper publish {found.name} FOLDER writes them as a Delta table",
        )
    return snapshot.files.store.path(found.folder)


def at_commit(files: Files, commit: int) -> Snapshot:
    """A commit that somebody has looked at before; StateGone if vacuum has removed it."""
    return Snapshot(files, files.log.retained(commit))


def pinned(files: Files) -> Snapshot:
    """A snapshot of the last commit, pinned."""
    while True:
        snapshot = Snapshot(files, record := files.log.last(), pin(files.store, record.commit))
        # Vacuum may have passed between reading the record and pinning it. It says in a record of its own what it is
        # about to take away.
        later = files.log.last().tables
        if all(view in later and later[view].kept <= record.commit for view in record.tables):
            return snapshot
        snapshot.close()
