"""The views of a warehouse: created and dropped, and the plans of their groups.

    create      the relations at a vector, the view computed over them, committed as the first state at that vector
    plan        the views of each group that are not halted, at the vector of its last commit, for the mediator

What only creating needs is imported by it: a process that is started to go on maintaining is soon at work.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from viewkeeper.algebra.adaptive import Engines
from viewkeeper.errors import UsageError
from viewkeeper.lake.commit import Commit
from viewkeeper.lake.log.catalog import Definition, find
from viewkeeper.lake.log.columns import RESERVED
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.lake.thread_imports import import_for_streams, import_for_threads
from viewkeeper.lake.writer import Writer
from viewkeeper.maintenance.composed.views import ComposedViews
from viewkeeper.maintenance.context import Context
from viewkeeper.maintenance.images import sampled
from viewkeeper.maintenance.incomplete import give_up_after
from viewkeeper.maintenance.self_maintained.views import SelfMaintainedViews
from viewkeeper.maintenance.stored_states import StoredStates
from viewkeeper.maintenance.summaries.lattices import Summaries
from viewkeeper.mediator.group_plan import GroupPlan, Recorder
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.mediator.mediator import Mediator
from viewkeeper.planner.composed.naming import COMPOSED
from viewkeeper.planner.kept_views import Kept
from viewkeeper.planner.known_sources import KnownSources
from viewkeeper.planner.overview import Overview
from viewkeeper.planner.self_maintained.kept_view import SELF_MAINTAINED
from viewkeeper.planner.summaries.lattice import Lattice
from viewkeeper.planner.view_properties import SOURCES, SQL
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.view import View


class Keeper(Context):
    """Creates and drops the views of one warehouse, and plans how their groups are maintained."""

    def __init__(
        self, files: Files, writer: Writer, commit: Callable[[], Commit], sources: KnownSources, engines: Engines
    ) -> None:
        super().__init__(files, writer, commit, sources, engines, self._halt_unfit)
        self.summaries = Summaries(self)
        self.self_maintained = SelfMaintainedViews(self)
        self.composed = ComposedViews(self)
        self._store = StoredStates(files, commit, engines, self.summaries, self.self_maintained, self.composed)
        self._busy = threading.Lock()
        self.recorded = False
        """whether what is committed is recorded, so that changes count which no view reads"""

    # --- what there is ---

    def _halt_unfit(self, view: Definition, reason: str) -> None:
        if view.name not in self.halts.all():
            self._store.halt(view.group, view.name, reason)

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
        read |= self.composed.read()
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
                followers=(
                    *self.self_maintained.followers(group, lambda view: self.recorded or view in read),
                    *self.composed.followers(group),
                ),
                one_state=self.self_maintained.one_state(group) or self.composed.one_state(group),
                give_up_after=give_up_after(self.writer.catalog, group),
                read=passed_on,
            )
            for group, of_group in views.items()
            if only in (None, group)
        ]

    def _reading(self, view: str) -> list[str]:
        """The summaries and the views that are over a view."""
        reading = {name for name, one in self.kept().items() if view in one.reads}
        reading |= {name for name, one in self.composed.views().items() if view in one.views}
        return sorted({*self.summaries.over(view), *reading})

    # --- creating and dropping ---

    def create(self, sql: str) -> str:
        """Plan a view, load it, and commit its first state; its name."""
        from viewkeeper.maintenance.creating import create_planned
        from viewkeeper.maintenance.spark_agreement import check_agreement
        from viewkeeper.planner.planning import plan_view
        from viewkeeper.planner.view_plan import PlannedQuery

        overview = Overview(HeldCommit(self.files, self.writer.last), self.sources)
        plan = plan_view(overview, sql, self.kept(), self.views.homes)
        relations = overview.relations

        def agreeing(rows: Mapping[str, Any]) -> None:
            # What Spark has read itself needs no comparison with Spark.
            if not isinstance(plan, PlannedQuery):
                check_agreement(plan.definition, relations, self.files.spark, rows)

        with sampled(self, agreeing):
            create_planned(self, self.summaries, self.self_maintained, self.composed, plan, relations)
        return plan.definition.name

    def drop_view(self, name: str) -> None:
        with self.alone():
            if self.summaries.members(name):
                from viewkeeper.maintenance.summaries.dropping import drop_summary

                drop_summary(self.summaries, name)
                return
            definition = find(self.writer.catalog, name)
            if over := self._reading(name):
                raise UsageError(f"view {name} is read by {', '.join(over)}", "drop those first")
            with self.new_commit() as commit:
                if SELF_MAINTAINED in definition.properties:
                    self.self_maintained.drop(commit, definition)
                elif COMPOSED in definition.properties:
                    self.composed.drop(commit, definition)
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

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One thing at a time: a group cannot be maintained while its views change under it."""
        if not self._busy.acquire(blocking=False):
            raise UsageError("the warehouse is being maintained", "wait until it is done, or stop it first")
        try:
            yield
        finally:
            self._busy.release()

    # --- maintaining ---

    def mediating(
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

    def is_from_sources(self, name: str) -> bool:
        """Whether a view is maintained from sources, or from other views; else a program loads it."""
        properties = find(self.writer.catalog, name).properties
        return bool(properties.keys() & {SQL, SELF_MAINTAINED, COMPOSED})

    def bring_others_up(self, name: str, group: str) -> None:
        """Past what halts the view: after that, what it was before could not be known. If it is not halted it comes
        along, or is halted now: whatever happens before it is recreated, it misses nothing that it does not know of."""
        plans = [plan for plan in self.plans() if plan.name == group]
        if any(how.view.name != name for plan in plans for how in plan.views):
            with self.mediating(plans, others_need=True) as mediator:
                mediator.catch_up()

    def kept_one(self, name: str) -> Kept:
        """A view that is maintained from sources or from other views."""
        definition = find(self.writer.catalog, name)
        if SQL not in definition.properties:
            from viewkeeper.planner.stored_definitions import definition_of

            if (sql := definition_of(definition)) is not None:
                parse_definition(sql, self.relations())  # it is left out because of what this says
            raise UsageError(f"view {name} is not maintained from sources", "it was loaded by a commit of its own")
        return self.views.one(definition, self.relations())

    def close(self) -> None:
        self.sources.close()
