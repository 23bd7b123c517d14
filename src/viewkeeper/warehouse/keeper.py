"""The live side of a warehouse: sources are added, views over them created, maintained, audited and dropped.

    load        the relations at a vector, the view computed over them, committed as the first state at that vector
    catch up    the mediator processes what the sources have committed after the vector of each group
    audit       the relations at the view's own vector, its text run by Spark over them, compared with what is stored
    reload      the same, and what is different becomes a new state

All four rest on `mediator/base_image.py`: relations as they were at a vector, while everyone writes. What only creating
and auditing need is imported by them: a process that is started to go on maintaining is soon at work.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from viewkeeper.algebra.adaptive import Engines
from viewkeeper.errors import DefinitionError, UsageError
from viewkeeper.lake.commit import Commit
from viewkeeper.lake.log.catalog import Definition, find, free_name, readable
from viewkeeper.lake.log.columns import HIDDEN, RESERVED
from viewkeeper.lake.log.halts import Halts
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.thread_imports import import_for_streams, import_for_threads
from viewkeeper.lake.writer import Writer
from viewkeeper.mediator.choice import promised
from viewkeeper.mediator.group import GroupPlan, Recorder
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.mediator.mediator import Mediator
from viewkeeper.messages import Position, Vector
from viewkeeper.sql.create_clauses import IfThere, read_create
from viewkeeper.sql.definition import name_in
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.sql.view import View
from viewkeeper.sql.view_keys import key_of_view
from viewkeeper.warehouse.altering.alteration import Alteration
from viewkeeper.warehouse.audits import Audit, audited
from viewkeeper.warehouse.images import Images
from viewkeeper.warehouse.incomplete import IncompleteTransactions, give_up_after
from viewkeeper.warehouse.kept_views import Kept, KeptViews
from viewkeeper.warehouse.known_relations import refuse_summaries
from viewkeeper.warehouse.known_sources import KnownSources
from viewkeeper.warehouse.load_progress import Loads
from viewkeeper.warehouse.new_columns import recompute, reload_with_types, with_new_columns
from viewkeeper.warehouse.self_maintained.automatic import REMOTE
from viewkeeper.warehouse.self_maintained.choosing import REASONS, is_automatic, storage_for
from viewkeeper.warehouse.self_maintained.keeping import SelfMaintainedViews
from viewkeeper.warehouse.self_maintained.kept_view import SELF_MAINTAINED
from viewkeeper.warehouse.stored_states import StoredStates
from viewkeeper.warehouse.summaries.keeping import Summaries
from viewkeeper.warehouse.summaries.lattice import Lattice
from viewkeeper.warehouse.view_properties import ALGORITHM, HIERARCHY, KEY, LEVEL, SOURCES, SQL, VIEWS


class Keeper:
    """Maintains the views of one warehouse."""

    def __init__(
        self, files: Files, writer: Writer, commit: Callable[[], Commit], sources: KnownSources, engines: Engines
    ) -> None:
        self.files = files
        self.writer = writer
        self.new_commit = commit
        self.sources = sources
        self.engines = engines
        self.loads = Loads()
        self.halts = Halts(files.store)
        self.incomplete = IncompleteTransactions(files.store)
        self.views = KeptViews(lambda: writer.catalog, sources, self._halt_unfit)
        self.images = Images(self)
        self.summaries = Summaries(self)
        self.self_maintained = SelfMaintainedViews(self)
        self._store = StoredStates(files, commit, engines, self.summaries, self.self_maintained)
        self._recorded = False
        self._busy = threading.Lock()

    # --- what is kept ---

    def kept(self) -> dict[str, Kept]:
        """Every view that was created over sources or other views, each after those that it reads. One that its
        sources no longer allow is halted, and left out."""
        return self.views.all()

    def _halt_unfit(self, view: Definition, reason: str) -> None:
        if view.name not in self.halts.all():
            self._store.halt(view.group, view.name, reason)

    def relations(self) -> dict[str, Relation]:
        """What a view can be over: the relations of the sources, and the views that are stored."""
        return self.views.relations()

    def plans(self, only: str | None = None) -> list[GroupPlan]:
        """The groups, or one of them, with the views that are not halted, each at the vector of its last commit."""
        halted = self.halts.all()
        views: dict[str, list[Maintenance]] = {}
        derived: dict[str, list[View]] = {}
        for name, view in self.kept().items():
            if name not in halted and view.reads:
                derived.setdefault(view.group, []).append(view.how.view)
            elif name not in halted:
                views.setdefault(view.group, []).append(view.how)
        record = self.writer.last
        read = {name for one in self.kept().values() for name in one.reads}
        read |= {view for lattice in self.summaries.lattices().values() for view in lattice.inputs}
        passed_on = {
            view: columns
            for lattice in self.summaries.lattices().values()
            for view, columns in lattice.read.items()
            if view.startswith(RESERVED)
        }
        return [
            GroupPlan(
                group,
                tuple(of_group),
                record.groups[group].vector,
                tuple(derived.get(group, ())),
                1 if self.summaries.one_by_one(group) else None,
                followers=tuple(self.self_maintained.followers(group, lambda view: self._recorded or view in read)),
                one_state=self.self_maintained.one_state(group),
                give_up_after=give_up_after(self.writer.catalog, group),
                read=passed_on,
            )
            for group, of_group in views.items()
            if only in (None, group)
        ]

    def _reading(self, view: str) -> list[str]:
        """The summaries and the views that are over a view."""
        return sorted({*self.summaries.over(view), *(name for name, one in self.kept().items() if view in one.reads)})

    # --- creating and dropping ---

    def create_view(self, sql: str) -> str:
        """Create a view, or replace or leave the one that exists, as OR REPLACE and IF NOT EXISTS say; its name."""
        create = read_create(sql)
        with self.alone():
            if create.if_there is IfThere.REPLACE:
                from viewkeeper.warehouse.altering.altering import alter

                return with_new_columns(self, [sql], lambda: alter(self, sql)).view
            if create.if_there is IfThere.KEEP and (name := name_in(create.sql)) in readable(self.writer.catalog):
                return name
            if not create.creates:
                raise DefinitionError("the view has no name", "write CREATE MATERIALIZED VIEW name AS SELECT ...")
            return with_new_columns(self, [create.sql], lambda: self.create(create.sql))

    def alter_view(self, sql: str, also: Sequence[str] = ()) -> Alteration:
        """Make a view what a definition says, and those that read it what others say."""
        from viewkeeper.warehouse.altering.altering import alter

        with self.alone():
            return with_new_columns(self, [sql, *also], lambda: alter(self, sql, also))

    def alter_views(self, statements: Sequence[str]) -> None:
        """Make several views what definitions say, in one commit."""
        from viewkeeper.warehouse.altering.making_anew import alter_together

        with self.alone():
            with_new_columns(self, statements, lambda: alter_together(self, statements))

    def create(self, sql: str) -> str:
        """Parse, choose an algorithm, load, and commit the first state; its name."""
        from viewkeeper.warehouse.spark_agreement import check_agreement

        refuse_summaries(sql, self.writer.catalog)
        relations = self.relations()
        view = parse_definition(sql, relations)
        free_name(self.writer.catalog, view.name)
        with self.images.sampled(lambda rows: check_agreement(view, relations, self.files.spark, rows)):
            return self._create_parsed(view, relations)

    def _create_parsed(self, view: View | OuterJoinView | SummaryView | Family, relations: dict[str, Relation]) -> str:
        if isinstance(view, SummaryView | Family):
            return self.summaries.create(view, relations)
        from viewkeeper.warehouse.self_maintained.change_rates import recent, transactions_per_hour
        from viewkeeper.warehouse.self_maintained.creating import create as create_self_maintained

        rates = transactions_per_hour(recent(self.files.log)) if is_automatic(view) else {}
        decision = storage_for(view, self.sources.definitions(), rates)
        if decision.storage != REMOTE:
            return create_self_maintained(self.self_maintained, view, decision, relations, rates)
        assert isinstance(view, View)
        how = self.views.how(view)
        group = self.views.group_for(view, how)
        reasons = decision.reasons if is_automatic(view) else ()
        with self.images.content(how, self.images.followed(group)) as (rows, at), self.new_commit() as commit:
            return self._create(commit, how, group, rows, at, reasons).name

    def _create(
        self,
        commit: Commit,
        how: Maintenance,
        group: str,
        rows: Any,
        at: Mapping[str, Position],
        reasons: Sequence[str] = (),
    ) -> Definition:
        """`reasons` are why its sources are queried, if that was left to viewkeeper."""
        if there := self.writer.last.groups.get(group):
            if new := {name: place for name, place in at.items() if there.vector.get(name) != place}:
                commit.state(group, new)
            at = {**there.vector, **new}
        return self.created(commit, how, group, rows, at, reasons)

    def create_internal(self, commit: Commit, view: View, group: str, rows: Any, at: Vector) -> Definition:
        """A view of viewkeeper's own, maintained with a group that is at this vector."""
        before = next((one.how.algorithm for one in self.kept().values() if one.group == group), None)
        return self.created(commit, self.views.how(view, before), group, rows, at)

    def created(
        self,
        commit: Commit,
        how: Maintenance,
        group: str,
        rows: Any,
        at: Mapping[str, Position],
        reasons: Sequence[str] = (),
    ) -> Definition:
        columns = [(column.name, column.expression.type) for column in how.stored.output]
        return commit.create(
            how.view.name,
            [column for column in columns if not column[0].startswith(HIDDEN)],
            hidden={name: type for name, type in columns if name.startswith(HIDDEN)},
            rows=rows,
            group=group,
            vector=at,
            retention=dict(how.view.properties).get("retention"),
            properties=self.properties_for(how, reasons),
        )

    def properties_for(self, how: Maintenance, reasons: Sequence[str] = ()) -> dict[str, Any]:
        """What the catalog says of a view that is maintained so."""
        return {
            **dict(how.view.properties),
            **({REASONS: list(reasons)} if reasons else {}),
            SQL: how.view.sql,
            ALGORITHM: how.algorithm,
            LEVEL: str(promised(how)),
            SOURCES: [source for source in how.view.sources if source != VIEWS],
            KEY: key_of_view(how.view),
            HIERARCHY: self.summaries.hierarchies.inherited(how.view),
        }

    def drop_view(self, name: str) -> None:
        with self.alone():
            if self.summaries.members(name):
                self.summaries.drop(name)
                return
            definition = find(self.writer.catalog, name)
            if over := self._reading(name):
                raise UsageError(f"view {name} is read by {', '.join(over)}", "drop those first")
            with self.new_commit() as commit:
                if SELF_MAINTAINED in definition.properties:
                    self.self_maintained.drop(commit, definition)
                else:
                    commit.drop(name)
            self.halts.remove(definition.folder)
            self.incomplete.forget_other_groups(self.groups())

    def remove_source(self, name: str, *, force: bool = False) -> list[str]:
        """Undo what was installed at a source; refused while views are over it."""
        with self.alone():
            name = name.lower()
            views = [view for view, one in self.writer.catalog.items() if name in one.properties.get(SOURCES, ())]
            using = sorted(view for view in views if not view.startswith(RESERVED))
            if using:
                raise UsageError(f"source {name} is in use by {', '.join(using)}", "drop those views first")
            return self.sources.remove(name, force=force)

    def group_of(self, view: str) -> str:
        """The group of a view."""
        return find(self.writer.catalog, view).group

    def groups(self) -> frozenset[str]:
        return frozenset(self.writer.last.groups)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One thing at a time: a group cannot be maintained while its views change under it."""
        if not self._busy.acquire(blocking=False):
            raise UsageError("the warehouse is being maintained", "wait until it is done, or stop it first")
        try:
            yield
        finally:
            self._busy.release()

    # --- keeping fresh ---

    @contextmanager
    def maintaining(
        self,
        recorder: Callable[[list[GroupPlan]], Recorder | None] = lambda _: None,
        states_per_commit: int | None = None,
    ) -> Iterator[Mediator]:
        """A mediator over all groups that have views to maintain."""
        with self.alone():
            recompute(self)

            def planned(only: str | None = None) -> list[GroupPlan]:
                # One alone is planned while others commit.
                with self.writer.mutex:
                    plans = self.plans(only)
                return [replace(plan, states_per_commit=plan.states_per_commit or states_per_commit) for plan in plans]

            plans = planned()
            recording = recorder(plans)
            self._recorded = recording is not None
            with self._mediating(plans, recording, lambda group: next(iter(planned(group)), None)) as mediator:
                yield mediator

    def _mediating(
        self,
        plans: list[GroupPlan],
        recorder: Recorder | None = None,
        plan_again: Callable[[str], GroupPlan | None] | None = None,
        *,
        others_need: bool = False,
    ) -> Mediator:
        names = dict.fromkeys(name for plan in plans for how in plan.views for name in how.view.sources)
        import_for_streams(self.sources.definition(name).kind for name in names)
        sources = {name: self.sources.source(name) for name in names}
        return Mediator(
            sources,
            plans,
            self.engines.zset,
            self._store,
            recorder,
            others_need=others_need,
            wait_store=self.incomplete,
            plan_again=plan_again,
            before_groups=import_for_threads,
        )

    def stored(self, name: str) -> Any:
        """A view as it is stored at the last commit, hidden columns included."""
        return self._store.read(name)

    def propagate(self, name: str | None) -> dict[str, Mapping[str, Any]]:
        """Of a summary's lattice, or of all that are deferred."""
        with self.alone():
            return {one.name: self.summaries.propagate(one) for one in self._deferred(name)}

    def refresh(self, name: str | None) -> dict[str, Mapping[str, Any]]:
        with self.alone():
            return {one.name: self.summaries.refresh(one) for one in self._deferred(name)}

    def _deferred(self, name: str | None) -> list[Lattice]:
        if name is None:
            return [lattice for lattice in self.summaries.lattices().values() if lattice.deferred]
        lattice = self.summaries.lattice_of(name)
        if not lattice.deferred:
            raise UsageError(
                f"{name} follows its facts continuously: there is nothing to propagate or refresh",
                "create it with TBLPROPERTIES('refresh' = 'manual') to refresh it yourself",
            )
        return [lattice]

    # --- audit and reload ---

    def audits(self, names: Sequence[str], watch: Callable[[Sequence[str]], None]) -> list[Audit]:
        """Compute views from their sources, each at its own vector, and compare them with what is stored."""
        from viewkeeper.warehouse.auditing import audits

        with self.alone():
            return audits(self, names, watch)

    def is_from_sources(self, name: str) -> bool:
        """Whether a view is maintained from sources, or from other views; else a program loads it."""
        properties = find(self.writer.catalog, name).properties
        return SQL in properties or SELF_MAINTAINED in properties

    def audit_join(self, name: str) -> Audit:
        """The audit of a view that is no summary."""
        from viewkeeper.warehouse.original_rows import original_rows
        from viewkeeper.warehouse.self_maintained.mending import audit as audit_self_maintained

        if name in self.self_maintained.views():
            return audit_self_maintained(self.self_maintained, name)
        view = self.kept_one(name)
        group = self.writer.last.groups[view.group]
        with (
            self.images.under(view.how, group.vector) as (contents, relations, between),
            original_rows(self.files.spark(), contents, relations) as original,
        ):
            for below in between.values():
                original.add(below.name, original.of(below.sql, below.operands, below.columns))
            shown = view.how.view
            expected = self.engines.of_frame(original.of(shown.sql, shown.operands, shown.columns))
            stored = self._store.read(name).keep(shown.columns)
            difference = expected - stored
            rows = stored.size()
            wrong = [] if difference.is_empty() else list(difference.weights())
        return audited(name, group, rows, wrong)

    def reload(self, name: str) -> None:
        """Compute a view again from its sources; what is different becomes a new state. This also ends a halt.

        Columns that were widened at a source get their new type, and the other views that read them with it."""
        with self.alone():
            reload_with_types(self, name)
            recompute(self)

    def recompute(self) -> list[str]:
        """Compute again the views that are halted only because a column that they read was widened; which were."""
        with self.alone():
            return recompute(self)

    def bring_others_up(self, name: str, group: str) -> None:
        """Past what halts the view: after that, what it was before could not be known. If it is not halted it comes
        along, or is halted now: whatever happens before it is recreated, it misses nothing that it does not know of."""
        plans = [plan for plan in self.plans() if plan.name == group]
        if any(how.view.name != name for plan in plans for how in plan.views):
            with self._mediating(plans, others_need=True) as mediator:
                mediator.catch_up()

    def kept_one(self, name: str) -> Kept:
        """A view that is maintained from sources or from other views."""
        definition = find(self.writer.catalog, name)
        if SQL not in definition.properties:
            from viewkeeper.warehouse.altering.reading import definition_of

            if (sql := definition_of(definition)) is not None:
                parse_definition(sql, self.relations())  # it is left out because of what this says
            raise UsageError(f"view {name} is not maintained from sources", "it was loaded by a commit of its own")
        return self.views.one(definition, self.relations())

    def close(self) -> None:
        self.sources.close()
