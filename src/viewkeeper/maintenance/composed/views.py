"""The views of one warehouse that are plans of operators: created, followed, audited, reloaded, dropped."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from viewkeeper.errors import ViewkeeperError
from viewkeeper.lake.commit import Commit
from viewkeeper.lake.log.catalog import SORTED_BY, Definition
from viewkeeper.lake.log.record import Record
from viewkeeper.levels import Level
from viewkeeper.maintenance.context import Context
from viewkeeper.maintenance.images import images_of
from viewkeeper.maintenance.joins import create_internal
from viewkeeper.mediator.alignment import GroupChange
from viewkeeper.messages import Position, Vector
from viewkeeper.planner.composed.naming import COMPOSED
from viewkeeper.sql.relation import Relation

if TYPE_CHECKING:
    from viewkeeper.maintenance.audits import Audit
    from viewkeeper.maintenance.composed.evaluating import OperatorEngine
    from viewkeeper.maintenance.composed.following import ComposedFollowing
    from viewkeeper.maintenance.composed.state_tables import StateTables
    from viewkeeper.planner.composed.composed_view import ComposedView


class ComposedViews:
    """All of one warehouse. What only such views need is imported when there is one."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._following: dict[str, ComposedFollowing] = {}
        self._known: dict[str, tuple[Definition, ComposedView]] = {}

    @cached_property
    def _engine(self) -> "OperatorEngine":
        from viewkeeper.maintenance.composed.evaluating import OperatorEngine

        return OperatorEngine(self.context.engines, self.context.files.spark)

    @cached_property
    def _tables(self) -> "StateTables":
        from viewkeeper.maintenance.composed.state_tables import StateTables

        return StateTables(self.context.files)

    # --- what there is ---

    def views(self) -> "dict[str, ComposedView]":
        """Those that are stored. One whose relations have lost what it needs is halted, and left out."""
        found = {}
        definitions = {name: one for name, one in self.context.writer.catalog.items() if COMPOSED in one.properties}
        if not definitions:
            return {}
        from viewkeeper.planner.composed.composed_view import composed_view

        relations = self.context.relations()
        for name, definition in definitions.items():
            try:
                known = self._known.get(name)
                if known is None or known[0] != definition:
                    known = self._known[name] = definition, composed_view(definition)
                reason = _unfit(known[1], relations)
            except ViewkeeperError as error:
                reason = error.detail
            if reason is None and known is not None:
                found[name] = known[1]
            elif reason is not None:
                self._halt(definition, reason)
        return found

    def _halt(self, definition: Definition, reason: str) -> None:
        if definition.name not in self.context.halts.all():
            last = self.context.writer.last.groups[definition.group].last
            self.context.halts.add(definition.name, definition.folder, reason, last)

    def followers(self, group: str) -> "list[ComposedFollowing]":
        """The views of a group that are not halted, each after those that it reads."""
        views = {name: view for name, view in self.views().items() if view.group == group}
        if not views:
            return []
        from viewkeeper.maintenance.composed.following import ComposedFollowing

        halted = self.context.halts.all()
        found = []
        for name, view in sorted(views.items(), key=lambda one: self.context.writer.catalog[one[0]].created):
            if name not in halted:
                following = ComposedFollowing(view, self.context.files, self._tables, self._engine)
                self._following[name] = following
                found.append(following)
        return found

    def one_state(self, group: str) -> bool:
        """Whether all that a commit of a group holds is one state of it."""
        return any(view.group == group and view.level is not Level.COMPLETE for view in self.views().values())

    def read(self) -> set[str]:
        """The views that these read."""
        return {name for view in self.views().values() for name in view.views}

    def unstored(self, group: str) -> set[str]:
        """Feeds, of which only the changes are passed on; of a view that is halted nothing is stored."""
        found = set()
        for name, definition in self.context.writer.catalog.items():
            if COMPOSED in definition.properties and definition.group == group:
                tables = definition.properties[COMPOSED]["tables"]
                following = self._following.get(name)
                found |= set(tables if following is None else following.view.feeds)
        return found

    def committed(self, group: str, before: Record, record: Record, changes: Sequence[GroupChange]) -> None:
        """These changes of a group are stored."""
        for following in self._following.values():
            if following.view.group == group:
                following.committed(before, record, changes)

    # --- from the sources ---

    @contextmanager
    def contents(
        self, view: "ComposedView", *, fresh: bool = False
    ) -> Iterator[tuple[dict[str, Any], dict[str, Position]]]:
        """What a view reads, at the vector of its group or, if that is new, as it is now; and the vector."""
        context = self.context
        relations = context.relations()
        tables = {name: relations[name] for name in view.relations if name not in view.views}
        with images_of(context, tables, view.group, fresh=fresh) as (contents, at):
            read = {name: context.stored(name).keep(relations[name].columns) for name in view.views}
            yield {**contents, **read}, at

    def create(self, view: "ComposedView") -> None:
        """Load a view and everything that is stored for it, and commit its first state."""
        context = self.context
        with self.contents(view) as (contents, at), context.new_commit() as commit:
            there = context.writer.last.groups.get(view.group)
            if there is not None:
                if new := {name: place for name, place in at.items() if there.vector.get(name) != place}:
                    commit.state(view.group, new)
                at = {**there.vector, **at}
            self.create_all(commit, view, contents, at)

    def create_all(self, commit: Commit, view: "ComposedView", contents: Mapping[str, Any], at: Vector) -> None:
        from viewkeeper.maintenance.composed.tree_frames import tree_frames
        from viewkeeper.planner.composed.composed_view import columns_of

        context, relations = self.context, self.context.relations()
        retention = dict(view.properties).get("retention")
        for feed in view.feeds:
            create_internal(context, commit, view.feed(feed, relations), view.group, None, at)
        with tree_frames(context.files.spark(), contents, relations) as frames:
            for name, (table, node) in view.plan.tables.items():
                commit.create(
                    view.table_of(name),
                    columns_of(table),
                    rows=self._small(frames.of(node.content(table))),
                    group=view.group,
                    vector=at,
                    retention=retention,
                    properties={SORTED_BY: list(table.by)} if table.by else {},
                )
            rows = frames.of(view.plan.query.root).toDF(*view.query.names)
            commit.create(
                view.name,
                view.columns,
                rows=self._small(rows),
                group=view.group,
                vector=at,
                retention=retention,
                properties=view.as_properties(),
            )

    def _small(self, frame: Any) -> Any:
        """The rows of a frame; on the driver if they are few."""
        rows = self.context.engines.of_frame(frame)
        rows.is_empty()
        return rows

    def audit(self, name: str) -> "Audit":
        """Compute a view by Spark from what it reads, at its own vector, and compare it with what is stored."""
        from viewkeeper.maintenance.audits import audited
        from viewkeeper.maintenance.composed.tree_frames import tree_frames

        context, view = self.context, self.views()[name]
        with (
            self.contents(view) as (contents, _),
            tree_frames(context.files.spark(), contents, context.relations()) as frames,
        ):
            stored = context.stored(name).keep(view.query.names)
            expected = context.engines.of_frame(frames.of(view.plan.query.root).toDF(*view.query.names))
            difference = expected - stored
            wrong = [] if difference.is_empty() else list(difference.weights())
            different = [
                view.table_of(table)
                for table, (one, node) in view.plan.tables.items()
                if not self._same(view.table_of(table), context.engines.of_frame(frames.of(node.content(one))))
            ]
            rows = stored.size()
        return audited(name, context.writer.last.groups[view.group], rows, wrong, different)

    def _same(self, table: str, expected: Any) -> bool:
        return bool((expected - self.context.stored(table).keep(expected.columns)).is_empty())

    # --- dropping ---

    def drop(self, commit: Commit, definition: Definition) -> None:
        """Drop a view, and everything that was stored for it."""
        for name in definition.properties[COMPOSED]["tables"]:
            self.context.halts.remove(self.context.writer.catalog[name].folder)
            commit.drop(name)
        self.forget(definition.name)

    def forget(self, name: str) -> None:
        """A view is not there any more, or another one is."""
        self._following.pop(name, None)
        self._known.pop(name, None)


def _unfit(view: "ComposedView", relations: Mapping[str, Relation]) -> str | None:
    """Why a view can no longer be maintained."""
    for name in view.relations:
        if name not in relations:
            return f"{name}, which it reads, is not there any more"
        there = dict(zip(relations[name].columns, relations[name].types, strict=True))
        gone = [field for field in view.fields(name) if field not in relations[name].there]
        if gone:
            return f"{name} no longer has the column {gone[0]}"
        for scan in view.plan.scans:
            if scan.relation == name:
                for field, column in zip(scan.fields, scan.columns, strict=True):
                    if there[field].lower().replace(" ", "") != column.type.lower().replace(" ", ""):
                        return f"the column {field} of {name} was {column.type} and is {there[field].lower()}"
    return None
