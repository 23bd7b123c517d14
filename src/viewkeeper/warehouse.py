"""Warehouse: the public object.

with Warehouse.open("lake") as wh:
    with wh.commit() as commit:
        commit.create("big_orders", {"id": "BIGINT", "amount": "DECIMAL(10, 2)"}, rows=orders)
    with wh.commit() as commit:
        commit.state("main", {"shop": "00000000000000000042"}, {"big_orders": delta})
    wh.read("big_orders").show()

What only writers need is imported when a warehouse is opened to write: `status` and `states` start at once.
"""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from viewkeeper.clock import monotonic
from viewkeeper.durations import seconds
from viewkeeper.errors import NotAWarehouse, UsageError
from viewkeeper.lake.compaction_policy import DEFAULT_POLICY, CompactionPolicy
from viewkeeper.lake.engine_errors import explaining_engines
from viewkeeper.lake.log.catalog import Catalogs, find, refuse_hidden, spelled, spellings, tables_of
from viewkeeper.lake.log.commit_log import FORMAT_FILE, CommitLog, create_format, read_format
from viewkeeper.lake.log.halts import Halts
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.log.states import State
from viewkeeper.lake.log.store import open_store
from viewkeeper.lake.tables.file_lists import Tables
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.tables.held_commit import path_of
from viewkeeper.lake.tables.spark_session import local_session
from viewkeeper.maintenance.incomplete import GroupWait, IncompleteTransactions
from viewkeeper.messages import Vector
from viewkeeper.planner.allowed_variables import AllowedVariables, Urls
from viewkeeper.planner.view_properties import ALGORITHM
from viewkeeper.serving.problems import Problem, unreachable_sources
from viewkeeper.serving.running import RunningFile
from viewkeeper.serving.snapshot import Snapshot
from viewkeeper.serving.status import Status, status_of

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from viewkeeper.explaining.drawn import DrawnLattice
    from viewkeeper.explaining.summary_explanation import Explanation
    from viewkeeper.lake.commit import Commit
    from viewkeeper.lake.compaction import Housekeeper
    from viewkeeper.lake.file_audit import FileAudit
    from viewkeeper.lake.log.source_files import SourceDefinition
    from viewkeeper.lake.vacuum import Vacuumed
    from viewkeeper.lake.writer import Writer
    from viewkeeper.maintenance.audits import Audit
    from viewkeeper.maintenance.cubes import CubeChoice
    from viewkeeper.maintenance.explained_query import QueryExplanation
    from viewkeeper.maintenance.live_views import LiveViews
    from viewkeeper.maintenance.load_progress import WatchLoad
    from viewkeeper.mediator.mediator import Mediator
    from viewkeeper.mediator.report import Report
    from viewkeeper.planner.altering.alteration import Alteration
    from viewkeeper.planner.groups import Groups
    from viewkeeper.planner.known_sources import KnownSources
    from viewkeeper.serving.measuring.bench import ViewBench
    from viewkeeper.sources.base import Finding
    from viewkeeper.sql.relation import Relation


@explaining_engines
class Warehouse:
    """The stored views: one writer, any number of readers. Use it as a context manager."""

    def __init__(
        self,
        files: Files,
        writer: "Writer | None",
        identity: str,
        housekeeper: "Housekeeper | None",
        allowed: AllowedVariables,
    ) -> None:
        self._files, self._writer, self._identity, self._housekeeper = files, writer, identity, housekeeper
        self._allowed = allowed
        self._known: KnownSources | None = None
        self._kept_by: LiveViews | None = None
        self._running: Mediator | None = None
        self._stopping = False

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        spark: "SparkSession | Callable[[], SparkSession] | None" = None,
        create: bool = True,
        *,
        read_only: bool = False,
        compaction: CompactionPolicy | None = DEFAULT_POLICY,
        source_urls: Urls | None = None,
    ) -> "Warehouse":
        """Open the warehouse in a folder, or make one in a new or empty folder.

        Without a session one is started on this machine when it is first needed, by the function that is given, if one
        is. A session that is given is used as it is; its executors must see the folder under the same path. With
        `read_only` nothing is written and no lock is taken, so it works beside a writer. `compaction=None` leaves
        compaction to `compact()`. `source_urls` gives URLs of sources by their names: these too, and not only those
        that this user added, may take from the environment what they refer to. Those of a project are given by it.
        """
        store = open_store(path)
        if not store.exists(FORMAT_FILE):
            if read_only or not create:
                raise NotAWarehouse(
                    f"{store} is not a warehouse: there is no {FORMAT_FILE} in it", "name the folder of one"
                )
            create_format(store)
        identity = read_format(store)
        log, catalogs, tables = CommitLog(store), Catalogs(store), Tables(store)
        owned = spark is None or callable(spark)
        session = _Session(spark)
        files = Files(store, log, catalogs, tables, session.get)
        allowed = AllowedVariables(identity, source_urls or getattr(path, "source_urls", None))
        if read_only:
            return cls(files, None, identity, None, allowed)
        from viewkeeper.lake.compaction import Housekeeper
        from viewkeeper.lake.writer import Writer

        writer = Writer(store, log, catalogs, tables, session.get, owns_spark=owned)
        writer.open()
        return cls(files, writer, identity, Housekeeper(writer, compaction) if compaction else None, allowed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wait for a compaction that is under way, and let the next writer in."""
        self._files.cached_reads.close()
        if self._known is not None:
            self._known.close()
        if self._housekeeper is not None:
            self._housekeeper.close()
        if self._writer is not None:
            self._writer.close()

    @property
    def path(self) -> "Path":
        return self._files.store.root

    @property
    def spark(self) -> "SparkSession":
        return self._files.spark()

    # --- writing ---

    def commit(self, metrics: Mapping[str, Any] | None = None) -> "Commit":
        """What a `with` block does to the returned object becomes one atomic commit when the block ends."""
        from viewkeeper.lake.commit import Commit

        return Commit(self._writing(), metrics, self._after_commit, self._keeper.summaries.follow)

    def _after_commit(self, record: Record) -> None:
        self._files.cached_reads.look(record)
        if self._housekeeper is not None:
            self._housekeeper.look(record)

    def compact(self, view: str | None = None) -> list[str]:
        """Give views with pending deltas a new base, now; the names of those that had any."""
        from viewkeeper.lake.compaction import compact

        writer = self._writing()
        catalog = writer.catalog
        views = tables_of(catalog, find(catalog, view)) if view else [catalog[name] for name in sorted(catalog)]
        return [definition.name for definition in views if compact(writer, definition) is not None]

    def vacuum(
        self, retention: str | float = "7 days", *, grace: str | float = "1 hour", dry_run: bool = False
    ) -> "Vacuumed":
        """Forget states that ceased to be the last longer ago than the retention, and delete their files.

        A view's own retention goes before. Files younger than the grace period, and whatever a pinned snapshot needs,
        stay.
        """
        from viewkeeper.lake.vacuum import vacuum

        return vacuum(self._writing(), seconds(retention), seconds(grace), dry_run=dry_run)

    def publish(self, view: str, target: str | os.PathLike[str], state: int | None = None) -> "Path":
        """Write a plain copy of a view as a Delta table outside the warehouse; where it is."""
        from viewkeeper.serving.publish import publish, target_folder

        path = target_folder(self._files.store, target)
        with self.snapshot() as snapshot:
            rows = snapshot.read(view, state)
            return publish(self._spelled(view), rows, snapshot.commit, path)

    # --- views over sources ---

    def add_source(
        self,
        name: str,
        url: str,
        tables: Sequence[str] | None = None,
        *,
        keys: Mapping[str, str | Sequence[str]] | None = None,
        foreign_keys: Sequence[tuple[str, str]] = (),
        hierarchies: Mapping[str, Sequence[str] | Sequence[Sequence[str]]] | None = None,
        transactions: str | None = None,
        install: bool = False,
    ) -> tuple[str, ...]:
        """Add a database, lake or folder by its URL; the names of its relations.

        `install` puts in place what capturing its changes needs; without it a missing piece is an error that names it.
        `transactions` = "single" declares that each of its transactions is a single update, which strobe and c-strobe
        rely on; "local" takes that back. A view that relies on it is halted when a larger one comes.
        A password is not stored: see `viewkeeper.sources.urls`. Hierarchies are {"stores": ["storeID", "city"]}, or
        with several chains {"days": [["day", "month", "year"], ["day", "week"]]}; [] withdraws those of a table.
        Foreign keys, ("orders.cust", "crm.people.id"), are relied upon and not enforced; ("orders.cust", "") withdraws
        one.
        """
        definition = self._keeper.sources.add(
            name, url, tables, keys or {}, foreign_keys, hierarchies or {}, install=install, transactions=transactions
        )
        self._keeper.summaries.look_again()
        return tuple(definition.relations)

    def move_source(self, name: str, url: str) -> None:
        """From now on a source is at another URL. It must be the database that it was: its views go on from there."""
        self._keeper.sources.move(name, url)

    def remove_source(self, name: str, *, force: bool = False) -> list[str]:
        """Undo what was installed at a source and forget it; the statements that are left for somebody else to run.

        With `force` also one that cannot be reached any more: what was installed there stays.
        """
        return self._keeper.remove_source(name, force=force)

    def doctor(self, source: str, name: str | None = None, tables: Sequence[str] | None = None) -> "list[Finding]":
        """What is missing or risky at a source, each with the statement that fixes it.

        `source` is the name of one that was added, or the URL of one that is to be added under `name`, with `tables`
        (None: all of them).
        """
        return self._known_sources.doctor(source, name, tables)

    @property
    def id(self) -> str:
        """What tells this warehouse from others: all that it installs at sources carries it."""
        return self._identity

    @property
    def sources(self) -> "tuple[SourceDefinition, ...]":
        """The sources that were added, each with its relations; none is contacted."""
        return tuple(self._known_sources.definitions().values())

    def create_view(self, sql: str) -> str:
        """CREATE MATERIALIZED VIEW name [TBLPROPERTIES (...)] AS SELECT ...: load it, and maintain it from now on.

        Its name is returned. CREATE OR REPLACE does what `alter_view` does; with IF NOT EXISTS a view of that name that
        is there is left alone, whatever its definition.
        """
        return self._keeper.create_view(self._with_known_name(sql))

    def watch_loads(self, watch: "WatchLoad | None") -> None:
        """From now on `watch` is told how the loads of create_view, reload, audit and cube go, whenever rows have come;
        None: nobody is."""
        self._keeper.loads.watch = watch

    def alteration(
        self, sql: str, also: Sequence[str] = (), relations: "Mapping[str, Relation] | None" = None
    ) -> "Alteration":
        """What `alter_view` would do with a CREATE MATERIALIZED VIEW; nothing is done, and no source is queried.

        It also works with `read_only`. `relations` are those of sources that are taken as they are given here, such as
        with columns that their tables have been given (`with_new_columns`).
        """
        from viewkeeper.planner.altering.planning import plan_alteration
        from viewkeeper.planner.overview import Overview

        overview = Overview(self._latest(), self._known_sources, relations)
        return plan_alteration(overview, self._with_known_name(sql), [*map(self._with_known_name, also)]).alteration

    def groups(self) -> "Groups":
        """The groups of its views, to find out where new ones would go; nothing is done, and no source is queried."""
        from viewkeeper.planner.groups import Groups
        from viewkeeper.planner.overview import Overview

        return Groups.of(Overview(self._latest(), self._known_sources))

    def alter_view(self, sql: str, also: Sequence[str] = ()) -> "Alteration":
        """Make a view what a CREATE MATERIALIZED VIEW says; what was done.

        It is created if it is not there, and left alone if the definition means the same. Otherwise what can be changed
        without reading a source is; everything else recreates it, with the views that read it, while readers go on
        seeing the old ones, until one commit puts the new ones in their place.

        `also` are new definitions of views that read it. Those that are recreated with it are made so, in that commit:
        what they were before may not fit it any more.
        """
        return self._keeper.alter_view(self._with_known_name(sql), [*map(self._with_known_name, also)])

    def alter_views(self, statements: Sequence[str]) -> None:
        """Make several views what CREATE MATERIALIZED VIEW statements say, and their readers again, all by one commit.

        For views that fit each other only when all of them have changed. They are recreated, whatever they were, and
        created if they are not there; until the commit readers see the old ones.
        """
        self._keeper.alter_views([*map(self._with_known_name, statements)])

    def cube(
        self,
        fact: str,
        dimensions: Sequence[str],
        measures: str,
        *,
        space_budget: int | None = None,
        count: int | None = None,
        name: str | None = None,
        refresh: str | None = None,
        replace: Sequence[str] = (),
        dry_run: bool = False,
        watch: Callable[[str], None] | None = None,
    ) -> "CubeChoice":
        """Choose the summaries of a cube that are worth storing, and create them: at most `count` beside the finest, or
        `space_budget` rows in all.

        A dimension is a column of the fact or `table.column`; measures are items of SELECT: "COUNT(*) AS n". The names
        of the tables begin with `name`. All of them come in one commit, in which the summaries in `replace` go: those
        of a former cube, which readers have until then. `watch` is told what is going on.
        """
        from viewkeeper.maintenance.cubes import make_cube

        for table in replace:
            self._refuse_hidden(table)
        with self.snapshot() as snapshot:
            return make_cube(
                self._keeper,
                snapshot,
                snapshot.sql,
                fact,
                dimensions,
                measures,
                space_budget=space_budget,
                count=count,
                name=name,
                refresh=refresh,
                replace_tables=replace,
                dry_run=dry_run,
                watch=watch,
            )

    def drop_view(self, name: str) -> None:
        """Stop maintaining a view, and drop it."""
        self._refuse_hidden(name)
        self._keeper.drop_view(self._spelled(name))

    def with_new_columns(self, sources: Sequence[str]) -> "dict[str, Relation]":
        """The relations of sources as they would be with the columns that they were given since they were added."""
        return self._known_sources.with_new_columns(sources)

    def catch_up(
        self, *, history: str | os.PathLike[str] | None = None, watch: "Callable[[Report], None] | None" = None
    ) -> Vector:
        """Process everything that the sources have committed up to now; the positions that were reached.

        A source that cannot be reached for some time is an error, but its views alone are left behind. With a `history`
        it ends when nothing is under way any more, so that the last state reflects everything that was delivered.
        """
        from viewkeeper.maintenance.histories import recording
        from viewkeeper.serving.view_reports import ViewReports

        with recording(self._keeper, history) as recorder, self._keeper.maintaining(recorder) as mediator:
            reports = ViewReports(self._files)
            look = (lambda: watch(reports.with_views(mediator.report()))) if watch else lambda: None
            reached = mediator.catch_up(watch=look, settled=history is not None)
        if mediator.to_recompute:
            self._keeper.recompute()
        return reached

    def run(
        self,
        seconds: float | None = None,
        *,
        history: str | os.PathLike[str] | None = None,
        watch: "Callable[[Report], None] | None" = None,
        states_per_commit: int | None = None,
        exit_on_failure: bool = False,
        retention: str | float | None = None,
        grace: str | float = "1 hour",
    ) -> "Report":
        """Maintain the views until stopped by `stop`, or for so long; what was done.

        `watch` is called several times a second with what is going on; `status` shows it to other processes. With a
        `history` it ends by catching up, so that the last state reflects everything that was delivered. A commit holds
        as many states as there are, or at most `states_per_commit`.

        A group that fails begins again at its last commit, after pauses that grow from 1 to 60 seconds; the report says
        when. With `exit_on_failure` it ends as soon as a group fails or a view is halted; the failure is raised.

        With a `retention` what is past it is deleted every ten minutes, as `vacuum` does: otherwise the warehouse grows
        with every commit.
        """
        from viewkeeper.lake.expiring import expiring

        begin, self._stopping = monotonic(), False
        with expiring(self._writing(), retention, grace) as expire:
            while True:
                left = None if seconds is None else max(seconds - (monotonic() - begin), 0.0)
                report, to_recompute = self._run(left, history, watch, states_per_commit, exit_on_failure, expire)
                # Those that are to be computed again are when the next round begins.
                if not to_recompute or self._stopping or (left is not None and monotonic() - begin >= (seconds or 0)):
                    return report

    def _run(
        self,
        seconds: float | None,
        history: str | os.PathLike[str] | None,
        watch: "Callable[[Report], None] | None",
        states_per_commit: int | None,
        exit_on_failure: bool,
        expire: Callable[[], None],
    ) -> "tuple[Report, bool]":
        """Maintain until the time is up, or a view is to be computed again, which nothing else may go on beside; what
        was done, and whether one is."""
        from viewkeeper.maintenance.histories import recording
        from viewkeeper.maintenance.summaries.schedule import Schedule
        from viewkeeper.serving.view_reports import ViewReports

        with (
            recording(self._keeper, history) as recorder,
            self._keeper.maintaining(recorder, states_per_commit) as mediator,
            RunningFile(self._files.store).told() as tell,
        ):
            self._running = mediator
            schedule, reports = Schedule(self._keeper.summaries), ViewReports(self._files)

            def look() -> None:
                schedule.look()
                expire()
                report = reports.with_views(mediator.report())
                tell(report)
                if watch is not None:
                    watch(report)
                if mediator.to_recompute and history is None:
                    mediator.stop()

            halted_before = set(reports.halts())

            def fails() -> bool:
                return any(group.failure for group in mediator.groups) or not reports.halts().keys() <= halted_before

            try:
                if self._stopping:
                    mediator.stop()
                mediator.run(seconds, look, until=fails if exit_on_failure else lambda: False)
                for group in mediator.groups if exit_on_failure else ():
                    if group.failure is not None:
                        raise group.failure
                if history is not None:
                    mediator.catch_up(watch=look, settled=True)
                return reports.with_views(mediator.report()), mediator.to_recompute and history is None
            finally:
                self._running = None

    def stop(self) -> None:
        """End `run`, from another thread or a signal handler."""
        self._stopping = True
        if self._running is not None:
            self._running.stop()

    def give_up(self, id: str, view: str | None = None) -> tuple[GroupWait, ...]:
        """Ask that the missing parts of a global transaction not be waited for any more; the waits that this is about.

        The process that maintains the views does it: one that is at work within a second, else the next `catch_up` or
        `run`, if the parts have still not come by then. It shows the parts that are there, and what waits after them.
        From then on the views that read sources on both sides are weakly consistent, until the late parts have come.
        With a `view`, only the group of that view. It also works with `read_only`.
        """
        files = self._files
        catalog = files.catalogs.read(files.log.last().catalog)
        if view is not None:
            find(catalog, view)
        return IncompleteTransactions(files.store).give_up(catalog, id, view)

    def propagate(self, view: str | None = None) -> dict[str, Mapping[str, Any]]:
        """Make summary-deltas of the changes that wait for the refresh of a summary, or of all that are deferred.

        This is the work that can be done outside the batch window: readers see nothing of it. The answer tells what was
        done, by lattice.
        """
        return self._keeper.propagate(None if view is None else self._spelled(view))

    def refresh(self, view: str | None = None) -> dict[str, Mapping[str, Any]]:
        """Apply what waits for the refresh of a summary, or of all that are deferred: all tables of a lattice at once.

        What the sources have committed since `catch_up` is not part of it.
        """
        return self._keeper.refresh(None if view is None else self._spelled(view))

    def awaiting_refresh(self) -> list[str]:
        """Deferred summaries for which changes wait: until their refresh they cannot be audited."""
        return self._keeper.summaries.awaiting_refresh()

    def audit(self, view: str) -> "Audit":
        """Recompute a view from its sources at its own vector, and compare the two as bags."""
        return self.audits(view)[0]

    def audits(self, *views: str, watch: Callable[[Sequence[str]], None] | None = None) -> "list[Audit]":
        """The same for several views, in this order; for summaries of one lattice the sources are read once.

        `watch` is told which views come next.
        """
        self._refuse_hidden(*views)
        return self._keeper.audits([self._spelled(view) for view in views], watch or (lambda _: None))

    def audit_files(self) -> "FileAudit":
        """Read every file that a committed state needs, and compare it with what was written; works beside a writer."""
        from viewkeeper.lake.file_audit import audit_files

        with self.snapshot():
            return audit_files(self._files.store)

    def reload(self, view: str) -> None:
        """Compute a view again from its sources, as after a TRUNCATE or a lost position."""
        self._refuse_hidden(view)
        self._keeper.reload(self._spelled(view))

    def _refuse_hidden(self, *views: str) -> None:
        refuse_hidden(self._writing().catalog, *views)

    def _spelled(self, view: str) -> str:
        """A name in any case as the view was created; names are not distinguished by case."""
        return spelled(self._latest().catalog, view)

    def _with_known_name(self, sql: str) -> str:
        """A definition of a view that is there, with its name as that was created."""
        from viewkeeper.sql.create_clauses import with_name

        return with_name(sql, spellings(self._latest().catalog))

    @property
    def _keeper(self) -> "LiveViews":
        if self._kept_by is None:
            from viewkeeper.algebra.adaptive import MOST_BYTES, Engines
            from viewkeeper.maintenance.live_views import LiveViews

            writer = self._writing()
            engines = Engines(self._files.spark, most_bytes=MOST_BYTES)
            self._kept_by = LiveViews(self._files, writer, self.commit, self._known_sources, engines)
        return self._kept_by

    @property
    def _known_sources(self) -> "KnownSources":
        if self._known is None:
            from viewkeeper.planner.known_sources import KnownSources

            self._known = KnownSources(self._files, self._identity, self._allowed)
        return self._known

    # --- reading ---

    def snapshot(self) -> Snapshot:
        """The last commit, pinned: its files stay until the snapshot is closed."""
        return Snapshot.pinned(self._files)

    def read(self, view: str, state: int | None = None, *, weights: bool = False) -> "DataFrame":
        """The rows of a view at a state (by default its last): a bag, or each distinct row with its count in
        `_vk_weight`."""
        return self._latest().read(view, state, weights=weights)

    def arrow(self, view: str, state: int | None = None) -> "pa.Table":
        """The rows of a view in Arrow, read in this process: without Spark, unless it alone evaluates what is shown."""
        return self._latest().arrow(view, state)

    def pandas(self, view: str, state: int | None = None) -> "pd.DataFrame":
        """The same as a DataFrame of pandas, which has to be installed."""
        if find_spec("pandas") is None:
            raise UsageError("pandas is not installed", "pip install pandas; or use arrow(), which needs nothing more")
        return self.arrow(view, state).to_pandas()

    def sql(self, query: str) -> "DataFrame":
        """The answer of a Spark SQL query over the views, by their names, all at one commit.

        Aggregates over tables of sources are answered from summaries, as if the tables were here; `explain` says how.
        """
        return self._latest().sql(query)

    def states(self, view: str, last: int | None = None) -> list[State]:
        """The states of a view that can be read, or so many of the newest, oldest first."""
        return self._latest().states(view, last)

    def selects(self, view: str) -> bool:
        """Whether readers of a view see only some of the rows that are stored for it."""
        return any(member.selects for member in self._latest().members(view))

    def changes(self, view: str, since: int, until: int | None = None) -> "DataFrame":
        """The signed rows of the states after `since`, up to `until`: `_vk_weight` says how often, `_vk_state` when."""
        return self._latest().changes(view, since, until)

    def path_of(self, view: str) -> "Path":
        """The folder of the Delta table of a view, as it is now; one that is recreated gets another.

        The folder that it had is then no Delta table any more, so a reader that goes on with it fails, and does not see
        old rows. For a path that stays there is `publish`.
        """
        return path_of(self._latest(), view)

    @property
    def views(self) -> tuple[str, ...]:
        return self._latest().views

    @property
    def definitions(self) -> dict[str, str]:
        """The statement that each view or family was created by; one that has no statement is not among them."""
        from viewkeeper.planner.definitions import definitions_of

        return definitions_of(self._files.catalogs.read(self._files.log.last().catalog))

    @property
    def maintained(self) -> dict[str, bool]:
        """The views that are maintained from sources or other views, and whether each is halted. No file of a view is
        looked at: it is soon known, however many there are."""
        halted = Halts(self._files.store).all()
        return {
            name: name in halted
            for name, view in self._latest().catalog.items()
            if ALGORITHM in view.properties and not view.hidden
        }

    def status(self, *, patience: float | None = None) -> Status:
        """Size, files, pending deltas and last state per view, and what is wrong; needs no Spark.

        No source is contacted. With `patience` all are, and those that do not answer within so many seconds are among
        the problems.
        """
        found = status_of(self._files, self._identity)
        if patience is None:
            return found
        from viewkeeper.lake.thread_imports import import_kinds

        known = self._known_sources.definitions()
        import_kinds(one.kind for one in known.values())
        sources = {name: self._known_sources.source(name) for name in known}
        return replace(found, problems=(*found.problems, *unreachable_sources(sources, patience)))

    def problems(self, patience: float = 5.0) -> tuple[Problem, ...]:
        """Everything that is wrong: halted views, failed groups, missing files, missing parts of global transactions,
        and sources that do not answer within `patience` seconds. It also works with `read_only`."""
        return self.status(patience=patience).problems

    def explain(self, view_or_sql: str) -> "Explanation | QueryExplanation":
        """How a view is maintained, and why; how one would be, by its CREATE; or how a SELECT is answered."""
        from viewkeeper.explaining.explaining import explain

        return explain(self._latest(), self._known_sources, self._spelled(view_or_sql))

    def lattice(self, view: str | None = None) -> "list[DrawnLattice]":
        """The lattices of summary tables, or that of a view; needs no Spark."""
        from viewkeeper.explaining.drawn import drawn_lattices

        return drawn_lattices(self._latest(), self._known_sources, None if view is None else self._spelled(view))

    def bench(
        self, *views: str, recompute: bool = True, watch: Callable[[str], None] = lambda _: None
    ) -> "list[ViewBench]":
        """What refreshes of these views, or of all, took, beside recomputing each now; nothing is written.

        `watch` is told the name of each view before it is recomputed.
        """
        from viewkeeper.serving.measuring.bench import bench

        with self.snapshot() as snapshot:
            return bench(snapshot, self._known_sources, views, recompute=recompute, watch=watch)

    def _latest(self) -> Snapshot:
        return Snapshot.last(self._files)

    def _writing(self) -> "Writer":
        if self._writer is None:
            raise UsageError("the warehouse was opened with read_only=True", "open it without, to write")
        return self._writer


class _Session:
    """The session that was given, or one that is started when it is first needed."""

    def __init__(self, given: "SparkSession | Callable[[], SparkSession] | None") -> None:
        self._start = given if callable(given) else local_session
        self._spark = None if callable(given) else given
        self._starting = threading.Lock()

    def get(self) -> "SparkSession":
        import viewkeeper.algebra.pyspark_names  # noqa: F401  # before what it gives is called in several threads

        with self._starting:  # two groups may need it at the same moment
            if self._spark is None:
                self._spark = self._start()
            return self._spark
