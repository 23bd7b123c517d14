"""One commit, held still: all views of a group read from it show one vector, while refreshes go on."""

from pathlib import Path
from types import TracebackType
from typing import Self

from viewkeeper.errors import UsageError
from viewkeeper.lake.log.catalog import Catalog, Definition, Layout, families, find, readable, spelled, tables_of
from viewkeeper.lake.log.commit_log import state_gone
from viewkeeper.lake.log.pins import Pin, pin
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.log.states import State, common_states, states_of
from viewkeeper.lake.tables.files import Files
from viewkeeper.messages import Vector


class HeldCommit:
    """A commit; as a context manager, pinned, it keeps its files from being deleted.

    The name of a family, such as the tables of a CUBE, stands for all its members, read as one view.
    """

    def __init__(self, files: Files, record: Record, pin: Pin | None = None) -> None:
        self._files, self._record, self._pin = files, record, pin

    @classmethod
    def last(cls, files: Files) -> Self:
        """The last commit, not pinned: for what is read at once."""
        return cls(files, files.log.last())

    @classmethod
    def numbered(cls, files: Files, commit: int) -> Self:
        """A commit that somebody has looked at before; StateGone if vacuum has removed it."""
        return cls(files, files.log.retained(commit))

    @classmethod
    def pinned(cls, files: Files) -> Self:
        """The last commit, pinned."""
        while True:
            held = cls(files, record := files.log.last(), pin(files.store, record.commit))
            # Vacuum may have passed between reading the record and pinning it. It says in a record of its own what it
            # is about to take away.
            later = files.log.last().tables
            if all(view in later and later[view].kept <= record.commit for view in record.tables):
                return held
            held.close()

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

    def renew(self) -> None:
        """Pin the commit for longer, if it is pinned: it is still being read."""
        if self._pin is not None:
            self._pin.renew()

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

    def members(self, view: str) -> tuple[Definition, ...]:
        """The members of a family, or a view by itself."""
        view = spelled(self.catalog, view)
        return families(self.catalog).get(view) or (find(self.catalog, view),)

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


def path_of(held: HeldCommit, view: str) -> Path:
    """The folder of the Delta table of a view; UsageError if its rows are in no table."""
    found = find(held.catalog, view)
    if found.computed is not None:
        tables = ", ".join(table.name for table in tables_of(held.catalog, found))
        raise UsageError(
            f"the rows of {found.name} are in no table: they are computed from {tables} when they are read",
            f"viewkeeper publish {found.name} FOLDER writes them as a Delta table",
        )
    return held.files.store.path(found.folder)
