"""A commit: new states, new views and dropped ones, all of them or none.

    data files  ⟶  Delta commits of the tables  ⟶  record N           the record makes it true

A failure before the record leaves the last commit; tables that are already ahead are put back (`recovery.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pyarrow as pa

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.clock import now
from viewkeeper.durations import seconds
from viewkeeper.errors import BadDelta, DefinitionError, UnknownView
from viewkeeper.lake.log.catalog import Before, Catalog, Definition, Layout, find, free_folder, free_name
from viewkeeper.lake.log.columns import checked_columns, columns_of
from viewkeeper.lake.log.record import GroupState, Record
from viewkeeper.lake.tables import appended, rewritten
from viewkeeper.lake.tables.signed_rows import Delta, SignedRows, frame_in_spark, table_in_arrow
from viewkeeper.lake.tables.small_loads import MOST_ROWS, stage_rows
from viewkeeper.lake.tables.staged import StagedTable
from viewkeeper.messages import Vector

if TYPE_CHECKING:
    from viewkeeper.lake.writer import Writer

_T = TypeVar("_T")
_U = TypeVar("_U")


@dataclass
class _NewStates:
    """The states that a commit adds to one group."""

    before: Vector
    vector: dict[str, str]
    last: int
    resume: Mapping[str, Any]
    steps: list[Mapping[str, str]] = field(default_factory=list)

    def closed(self, time: str) -> GroupState:
        return GroupState(self.vector, self.last, tuple(self.steps), self.before, self.resume, time)


@dataclass(frozen=True)
class NewState:
    """A state that a commit adds to a group, with the changes that it is made of."""

    group: str
    number: int
    vector: Vector
    deltas: Mapping[str, Sequence[Delta]]


@dataclass(frozen=True)
class _Load:
    view: Definition
    rows: Any
    state: int
    distinct: bool


class Commit:
    """Collects what one commit does; leaving its `with` block makes it true, an exception in the block drops it."""

    def __init__(
        self,
        writer: "Writer",
        metrics: Mapping[str, Any] | None = None,
        afterwards: Callable[[Record], None] | None = None,
        follow: "Callable[[Commit], None] | None" = None,
    ) -> None:
        self._writer = writer
        self._afterwards = afterwards
        self._follow = follow
        self._last = writer.last
        self._catalog = dict(writer.catalog)
        self._groups: dict[str, _NewStates] = {}
        self._advanced: dict[str, Vector] = {}
        self._changes: dict[str, SignedRows] = {}
        self._loads: dict[str, _Load] = {}
        self._grown: dict[str, Definition] = {}
        """views whose changes are appended from this commit on, as they were before it"""
        self._dropped: set[str] = set()
        self._redefined = False
        self.metrics: dict[str, Any] = dict(metrics or {})
        self._figures: Callable[[], Mapping[str, Any]] = dict
        self.new_states: list[NewState] = []
        """the states that it adds, for those that follow them"""
        self._then: list[Callable[[Record], None]] = []
        self.record: Record | None = None
        """the record of this commit, once it is made"""

    # --- what it does ---

    def measured(self, figures: Callable[[], Mapping[str, Any]]) -> None:
        """More metrics, asked for at the last moment: when everything but the record is written."""
        self._figures = figures

    def create(
        self,
        view: str,
        columns: Mapping[str, str] | Sequence[tuple[str, str]] | None = None,
        *,
        hidden: Mapping[str, str] | None = None,
        rows: Any = None,
        group: str = "main",
        vector: Vector | None = None,
        layout: Layout | str = Layout.APPENDED,
        distinct: bool = False,
        retention: str | float | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> Definition:
        """A new view with its first rows: a DataFrame, Parquet files, an Arrow table or its batches, a Z-set.

        The rows are the view at the state that the group then has; a group that is new starts with state 0 at `vector`.
        `distinct` says that no row occurs twice, which spares Spark the check. `hidden` columns, whose names begin with
        `_vk_key_`, are stored after the others and not shown.
        """
        free_name(self._catalog, view)
        if columns is None:
            columns = _columns_of_rows(view, rows)
        taken = [other.folder for other in self._catalog.values()]
        definition = Definition(
            view,
            free_folder(self._writer.store, view, taken),
            group,
            _layout(layout),
            checked_columns(view, columns, hidden),
            self._last.commit + 1,
            None if retention is None else seconds(retention),
            dict(properties or {}),
        )
        state = self._begin_group(group, vector)
        self._catalog[view] = definition
        self._loads[view] = _Load(definition, rows, state, distinct)
        return definition

    def state(
        self,
        group: str,
        vector: Vector,
        changes: Mapping[str, Delta] | None = None,
        *,
        resume: Mapping[str, Any] | None = None,
    ) -> int:
        """The next state of a group: the positions that moved, and the change of each view that changes; its number."""
        return self.states(group, [(vector, {view: [delta] for view, delta in (changes or {}).items()})], resume=resume)

    def states(
        self,
        group: str,
        states: Sequence[tuple[Vector, Mapping[str, Sequence[Delta]]]],
        *,
        resume: Mapping[str, Any] | None = None,
        passed_on: Sequence[Mapping[str, Sequence[Delta]]] | None = None,
    ) -> int:
        """The next states of a group, in order: for each the positions that moved, and the changes of each view that
        changes; the number of the last.

        `passed_on` has the changes for those that follow the group, if these are not only what is stored.
        """
        new = self._open_group(group)
        changes: dict[str, list[tuple[int, Delta]]] = {}
        for number, (_, deltas) in enumerate(states, start=new.last + 1):
            for view, of_view in deltas.items():
                changes.setdefault(view, []).extend((number, delta) for delta in of_view)
        for view in changes:
            definition = find(self._catalog, view)
            if definition.group != group:
                raise BadDelta(
                    f"view {view} belongs to group {definition.group}, not {group}",
                    "change it in a state of its own group",
                )
            if view in self._loads:
                raise BadDelta(
                    f"view {view} is created by this very commit", "add the state before, or in the next commit"
                )
        # All changes are looked at before anything is taken: a caller that goes on after an error has no half a state.
        added = [SignedRows(self._catalog[view]) for view in changes]
        for rows, of_view in zip(added, changes.values(), strict=True):
            rows.add(of_view)
        for (vector, _), passed in zip(states, passed_on or [deltas for _, deltas in states], strict=True):
            new.last += 1
            self.new_states.append(NewState(group, new.last, vector, passed))
            new.steps.append({source: place for source, place in vector.items() if new.vector.get(source) != place})
            new.vector.update(vector)
        if resume is not None:
            new.resume = dict(resume)
        for rows in added:
            self._changes.setdefault(rows.view.name, SignedRows(rows.view)).extend(rows)
        return new.last

    def also(self, state: "NewState", changes: Mapping[str, Sequence[Delta]]) -> None:
        """More changes of a state that this commit adds already."""
        for view, deltas in changes.items():
            rows = SignedRows(find(self._catalog, view))
            rows.add([(state.number, delta) for delta in deltas])
            self._changes.setdefault(view, SignedRows(rows.view)).extend(rows)

    def resume(self, group: str, resume: Mapping[str, Any]) -> None:
        """What the group is to remember from here on."""
        self._open_group(group).resume = dict(resume)

    @property
    def catalog(self) -> Catalog:
        """The views as they will be."""
        return self._catalog

    @property
    def advanced(self) -> Mapping[str, Vector]:
        """The groups that go on without a state, and where to."""
        return self._advanced

    def advance(self, group: str, vector: Vector) -> None:
        """The last state of a group also holds at these later positions: what lies between does not concern it."""
        self._open_group(group)
        self._advanced[group] = {**self._advanced.get(group, {}), **vector}

    def drop(self, view: str) -> None:
        """Drop a view; its files go when no retained commit needs them."""
        find(self._catalog, view)
        del self._catalog[view]
        self._changes.pop(view, None)
        if self._loads.pop(view, None) is None:
            self._dropped.add(view)

    def redefine(self, view: str, properties: Mapping[str, Any]) -> None:
        """Give a view other properties; its rows stay as they are."""
        self._catalog[view] = replace(find(self._catalog, view), properties=dict(properties))
        self._redefined = True

    def append_from_now_on(self, view: str) -> None:
        """Append the changes of a rewritten view of distinct rows, which has grown, from this commit on.

        It gets a folder of its own, with the rows before this commit as base. Its earlier states are read where they
        are.
        """
        old = find(self._catalog, view)
        folder = free_folder(self._writer.store, view, [other.folder for other in self._catalog.values()])
        before = Before(old.folder, self._last.commit + 1)
        new = self._catalog[view] = replace(old, folder=folder, layout=Layout.APPENDED, before=before)
        self._changes[view] = replace(self._changes.get(view, SignedRows(new)), view=new)
        self._grown[view] = old
        self._redefined = True

    def retain(self, view: str, retention: str | float | None) -> None:
        """Keep the states of a view readable for so long; None is as long as those of the warehouse."""
        keep = None if retention is None else seconds(retention)
        self._catalog[view] = replace(find(self._catalog, view), retention=keep)
        self._redefined = True

    def afterwards(self, work: Callable[[Record], None]) -> None:
        """Work to be done once the commit is made, and not if it fails."""
        self._then.append(work)

    def _begin_group(self, group: str, vector: Vector | None) -> int:
        if group not in self._groups and group not in self._last.groups:
            start = dict(vector or {})
            # The first state is a step like any other, so that it is listed.
            first = self._writer.first_state(group)
            self._groups[group] = _NewStates({}, start, first, {}, [start])
            return first
        new = self._open_group(group)
        if vector is not None and dict(vector) != new.vector:
            raise BadDelta(
                f"group {group} is at {new.vector}, and the rows of a new view are at {dict(vector)}",
                "bring the group to that vector first, with a state in the same commit",
            )
        if not new.steps and group in self._last.groups and new.last > self._last.groups[group].last:
            # Numbers are skipped: the view begins with a state of its own.
            self.state(group, {})
        return new.last

    def _open_group(self, group: str) -> _NewStates:
        if group not in self._groups:
            if group not in self._last.groups:
                known = ", ".join(sorted(self._last.groups)) or "none yet"
                raise UnknownView(f"the warehouse has no group {group!r}", f"it has: {known}")
            there = self._last.groups[group]
            last = self._writer.goes_on_from(there)
            self._groups[group] = _NewStates(there.vector, dict(there.vector), last, there.resume)
        return self._groups[group]

    # --- making it true ---

    def __enter__(self) -> Self:
        self._writer.mutex.acquire()
        try:
            self._writer.begin()
        except BaseException:
            self._writer.mutex.release()
            raise
        self._last = self._writer.last
        self._catalog = dict(self._writer.catalog)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                if self._follow is not None:
                    self._follow(self)
                self.record = self._writer.make(lambda number: self.stage(number).publish(self._writer))
        finally:
            self._writer.mutex.release()
        if self.record is not None:
            for work in self._then:
                work(self.record)
            if self._afterwards is not None:
                self._afterwards(self.record)

    def stage(self, number: int) -> "Staged":
        """Write the data files of everything that changes; nothing is visible yet."""
        tables: list[StagedTable] = []
        with ExitStack() as cleanup:
            for load in self._loads.values():
                tables.append(self._stage_load(load, number, cleanup))
        tables += side_by_side(lambda rows: self._stage_changes(rows, number), list(self._changes.values()))
        return Staged(self, tables, number)

    def _stage_changes(self, rows: SignedRows, number: int) -> StagedTable:
        store, before = self._writer.store, self._last.tables[rows.view.name]
        if (old := self._grown.get(rows.view.name)) is not None:
            content = rewritten.read_rows(store, old, self._writer.tables.files(old, before))
            return appended.stage_first(store, before, content, self._last.groups[old.group].last, rows, number)
        if rows.view.layout is Layout.APPENDED:
            return appended.stage(store, before, rows, number)
        return rewritten.stage(store, before, self._writer.tables.files(rows.view, before), rows, number)

    def _stage_load(self, load: _Load, number: int, cleanup: ExitStack) -> StagedTable:
        writer, view, rows = self._writer, load.view, load.rows
        if rows is None:
            rows = MemoryZSet(tuple(view.names))
        frame, columns = frame_in_spark(rows), table_in_arrow(rows)
        if columns is not None and columns is not rows and columns.num_rows > MOST_ROWS:
            frame = rows.frame
        few = isinstance(rows, pa.Table) and rows.num_rows <= MOST_ROWS and load.distinct
        if frame is None and (few or hasattr(rows, "weights")):
            return stage_rows(writer.store, view, rows, load.state, number)
        from viewkeeper.lake.tables.loads import Staging, frame_of, stage_load
        from viewkeeper.lake.tables.spark_files import full_load

        staging = Staging(writer.store)
        cleanup.callback(staging.clear)
        frame = frame_of(writer.spark(), staging, rows) if frame is None else frame
        with full_load(writer.spark(), own=writer.owns_spark):
            return stage_load(writer.store, view, frame, load.state, number, distinct=load.distinct)


@dataclass(frozen=True)
class Staged:
    """A commit whose data files are written."""

    commit: Commit
    tables: Sequence[StagedTable]
    number: int

    def publish(self, writer: "Writer") -> Record:
        """Commit the Delta tables, then write the record."""
        commit, last = self.commit, writer.last
        versions = side_by_side(lambda table: table.commit(writer.open_tables, self.number), self.tables)
        committed = {table.view.name: state for table, state in zip(self.tables, versions, strict=True)}
        changed = commit._loads or commit._dropped or commit._redefined
        if changed:
            writer.catalogs.write(self.number, commit._catalog)
        tables = {name: committed.get(name) or last.tables[name].untouched() for name in commit._catalog}
        for name, view in commit._catalog.items():
            if view.computed is not None:
                # It has no rows of its own; whoever asks how large it is means those that it is read from.
                tables[name] = replace(tables[name], rows=tables[view.computed.rows].rows)
        groups = {name: group.untouched() for name, group in last.groups.items()}
        time = now().isoformat()
        groups |= {name: new.closed(time) for name, new in commit._groups.items() if new.steps}
        for name, vector in commit._advanced.items():
            groups[name] = replace(groups[name], vector={**groups[name].vector, **vector})
        inhabited = {view.group for view in commit._catalog.values()}
        record = Record(
            self.number,
            time,
            writer.id,
            self.number if changed else last.catalog,
            tables,
            {name: group for name, group in groups.items() if name in inhabited or name in commit._groups},
            {**commit.metrics, **commit._figures()},
        )
        writer.log.append(record)
        return record


MANY_TABLES = 3
"""From so many on, tables are written side by side: each waits for the disk most of the time."""


def side_by_side(work: Callable[[_T], _U], tables: Sequence[_T]) -> list[_U]:
    """The work on each table, in order; on many at the same time. The first failure is raised when all have ended."""
    if len(tables) < MANY_TABLES:
        return [work(table) for table in tables]
    works = [_threads().submit(work, table) for table in tables]
    # A failure leads to clearing up, and one still at work would write after that.
    wait(works)
    return [each.result() for each in works]


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=4, thread_name_prefix="commit")


def _layout(layout: Layout | str) -> Layout:
    try:
        return Layout(layout)
    except ValueError:
        raise DefinitionError(f"there is no layout {layout!r}", "choose 'appended' or 'rewritten'") from None


def _columns_of_rows(view: str, rows: Any) -> Sequence[tuple[str, str]]:
    frame = frame_in_spark(rows)
    if frame is not None:
        return columns_of(frame.schema)
    raise DefinitionError(f"the columns of view {view} are not known", "give their names and Spark types")
