"""The live side of a warehouse, as its user knows it: views are created, altered, maintained, audited and reloaded.

    load        the relations at a vector, the view computed over them, committed as the first state at that vector
    catch up    the mediator processes what the sources have committed after the vector of each group
    audit       the relations at the view's own vector, its text run by Spark over them, compared with what is stored
    reload      the same, and what is different becomes a new state

All four rest on `mediator/base_image.py`: relations as they were at a vector, while everyone writes. What only creating
and auditing need is imported by them: a process that is started to go on maintaining is soon at work.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from viewkeeper.errors import DefinitionError
from viewkeeper.lake.log.catalog import readable
from viewkeeper.maintenance.audits import Audit
from viewkeeper.maintenance.keeper import Keeper
from viewkeeper.maintenance.new_columns import recompute, reload_with_types, with_new_columns
from viewkeeper.mediator.group_plan import GroupPlan, Recorder
from viewkeeper.mediator.mediator import Mediator
from viewkeeper.planner.altering.alteration import Alteration
from viewkeeper.sql.create_clauses import IfThere, read_create
from viewkeeper.sql.definition import name_in


class LiveViews(Keeper):
    """Maintains the views of one warehouse. One thing is done at a time."""

    def create_view(self, sql: str) -> str:
        """Create a view, or replace or leave the one that exists, as OR REPLACE and IF NOT EXISTS say; its name."""
        create = read_create(sql)
        with self.alone():
            if create.if_there is IfThere.REPLACE:
                from viewkeeper.maintenance.altering.altering import alter

                return with_new_columns(self, [sql], lambda: alter(self, sql)).view
            if create.if_there is IfThere.KEEP and (name := name_in(create.sql)) in readable(self.writer.catalog):
                return name
            if not create.creates:
                raise DefinitionError("the view has no name", "write CREATE MATERIALIZED VIEW name AS SELECT ...")
            return with_new_columns(self, [create.sql], lambda: self.create(create.sql))

    def alter_view(self, sql: str, also: Sequence[str] = ()) -> Alteration:
        """Make a view what a definition says, and those that read it what others say."""
        from viewkeeper.maintenance.altering.altering import alter

        with self.alone():
            return with_new_columns(self, [sql, *also], lambda: alter(self, sql, also))

    def alter_views(self, statements: Sequence[str]) -> None:
        """Make several views what definitions say, in one commit."""
        from viewkeeper.maintenance.altering.recreating import alter_together

        with self.alone():
            with_new_columns(self, statements, lambda: alter_together(self, statements))

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
            self.recorded = recording is not None
            with self.mediating(plans, recording, lambda group: next(iter(planned(group)), None)) as mediator:
                yield mediator

    def audits(self, names: Sequence[str], watch: Callable[[Sequence[str]], None]) -> list[Audit]:
        """Compute views from their sources, each at its own vector, and compare them with what is stored."""
        from viewkeeper.maintenance.auditing import audits

        with self.alone():
            return audits(self, names, watch)

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
