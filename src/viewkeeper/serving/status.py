"""What `status` says: of the warehouse, and of each view. It needs no Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.lake.log.catalog import Definition, tables_of
from viewkeeper.lake.log.failures import Failures
from viewkeeper.lake.log.halts import Halt, Halts
from viewkeeper.lake.log.pins import pinned_commits
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.log.source_files import SourceFiles
from viewkeeper.lake.log.states import oldest_state
from viewkeeper.lake.tables.files import Files
from viewkeeper.maintenance.incomplete import GroupGivenUp, GroupWait, IncompleteTransactions, reached_level
from viewkeeper.messages import Vector
from viewkeeper.planner.summaries.naming import SUMMARY, log_name
from viewkeeper.planner.view_properties import ALGORITHM
from viewkeeper.serving.problems import Problem, failed_groups, halted_views, missing_files, overdue_waits
from viewkeeper.serving.running import Running, RunningFile
from viewkeeper.sql.refresh_mode import PROPERTY as REFRESH


@dataclass(frozen=True)
class ViewStatus:
    """One view: its last state, and what it takes on disk. Of a view that is computed, files, bytes and pending are
    those of the hidden tables that it is computed from, and `rows` those of the first of them."""

    view: str
    group: str
    layout: str
    state: int
    oldest: int
    """the oldest state that can be read"""
    vector: Vector
    rows: int
    files: int
    bytes: int
    pending_files: int
    pending_rows: int
    folder: str
    algorithm: str | None = None
    """how it is maintained, if it is"""
    consistency: str | None = None
    """the level that this reaches; weak while it shows a global transaction half, whose other parts were given up"""
    halted: Halt | None = None
    """why it is not maintained any more, if so"""
    family: str | None = None
    """the name under which it is read together with others, if it is"""
    refresh: str | None = None
    """of a summary: continuous, manual, or how often"""
    waiting: int = 0
    """changes that were noted for its next refresh, and not propagated yet"""
    selects: bool = False
    """whether readers see only some of `rows`, which are those that are stored: how many is known by reading them"""


@dataclass(frozen=True)
class GroupFailure:
    """A group whose maintenance stopped with an error when it was last tried. Its views are at their last state."""

    group: str
    views: tuple[str, ...]
    reason: str
    time: str


@dataclass(frozen=True)
class SourceStatus:
    """One source, as it was added."""

    source: str
    kind: str
    url: str
    relations: tuple[str, ...]
    installed: bool


@dataclass(frozen=True)
class Status:
    """The warehouse at its last commit."""

    path: str
    id: str
    commit: int
    time: str
    commits: int
    """how many commits are retained"""
    readers: int
    """how many snapshots are pinned"""
    views: tuple[ViewStatus, ...]
    metrics: Mapping[str, object]
    """figures of the last commit"""
    sources: tuple[SourceStatus, ...] = ()
    running: Running | None = None
    """what the process that maintains the views said last, if there is one"""
    hidden: tuple[ViewStatus, ...] = ()
    """tables that are stored for the views"""
    waits: tuple[GroupWait, ...] = ()
    """global transactions that groups wait for missing parts of"""
    given_up: tuple[GroupGivenUp, ...] = ()
    """those that groups have given up waiting for, and whose parts have not all come yet"""
    failures: tuple[GroupFailure, ...] = ()
    """groups whose maintenance stopped with an error, and was not tried again with success"""
    problems: tuple[Problem, ...] = ()
    """everything that is wrong, as far as it is known without asking the sources"""

    @property
    def halted(self) -> dict[str, str]:
        """Why views are halted. They are in the order in which they can be reloaded: what a view reads was halted
        before it."""
        halts = [view.halted for view in self.views if view.halted is not None]
        return {halt.view: halt.reason for halt in sorted(halts, key=lambda halt: halt.time)}

    def readable_states(self, name: str) -> int:
        """How many states of a view, or of a family as a whole, can be read; 0 if there is none of that name."""
        spans = [view.state - view.oldest + 1 for view in self.views if name in (view.view, view.family)]
        return min(spans, default=0)


def status_of(files: Files, identity: str) -> Status:
    """The status at the last commit."""
    record = files.log.last()
    halts = Halts(files.store).all()
    catalog = files.catalogs.read(record.catalog)
    views = sorted(catalog.values(), key=lambda view: view.name)
    incomplete = IncompleteTransactions(files.store)
    given_up = incomplete.all_given_up(catalog)
    waits = incomplete.all_waits(catalog)
    failures = Failures(files.store).of(record)

    def status(view: Definition) -> ViewStatus:
        level = reached_level(view, given_up)
        return _status_of(files, view, tables_of(catalog, view), record, halts, level)

    return Status(
        str(files.store),
        identity,
        record.commit,
        record.time,
        len(files.log.numbers()),
        len(pinned_commits(files.store)),
        tuple(status(view) for view in views if not view.hidden),
        record.metrics,
        tuple(
            SourceStatus(one.name, one.kind, one.url, tuple(one.relations), one.installed)
            for one in SourceFiles(files.store).all().values()
        ),
        RunningFile(files.store).read(),
        tuple(status(view) for view in views if view.hidden),
        waits,
        given_up,
        tuple(GroupFailure(one.group, _maintained_by(one.group, views), one.reason, one.time) for one in failures),
        (
            *halted_views({name: halt for name, halt in halts.items() if name in catalog and not catalog[name].hidden}),
            *failed_groups({one.group: one.reason for one in failures}),
            *missing_files(files, record),
            *overdue_waits(waits),
        ),
    )


def _maintained_by(group: str, views: Sequence[Definition]) -> tuple[str, ...]:
    """The views of a group, and the summaries that it has the facts of."""
    cores = {view.name: view.properties.get(SUMMARY, {}).get("facts", {}).get("core") for view in views}
    return tuple(view.name for view in views if not view.hidden and group in (view.group, cores[view.name]))


def _status_of(
    files: Files,
    view: Definition,
    tables: Sequence[Definition],
    record: Record,
    halts: Mapping[str, Halt],
    level: str | None,
) -> ViewStatus:
    group, stored = record.groups[view.group], [record.tables[table.name] for table in tables]
    listed = [file for table, state in zip(tables, stored, strict=True) for file in files.tables.files(table, state)]
    return ViewStatus(
        view.name,
        view.group,
        view.layout.value,
        group.last,
        oldest_state(tables, record),
        dict(group.vector),
        stored[0].rows,
        len(listed),
        sum(file.size for file in listed),
        sum(state.pending.files for state in stored),
        sum(state.pending.rows for state in stored),
        str(files.store.path(view.folder)),
        view.properties.get(ALGORITHM),
        level,
        halts.get(view.name),
        view.family,
        view.properties.get(REFRESH, "continuous") if SUMMARY in view.properties and not view.hidden else None,
        waiting(view, record),
        view.selects,
    )


def waiting(view: Definition, record: Record) -> int:
    """Changes that were noted for the next refresh of a summary, and not propagated yet."""
    if SUMMARY not in view.properties:
        return 0
    facts = view.properties[SUMMARY]["facts"]
    logs = [log_name(view.group, held) for held in {facts["feed"], *facts["copies"].values()}]
    return sum(record.tables[log].rows for log in logs if log in record.tables)
