"""The self-maintained views of one warehouse: created, followed, audited, recreated, dropped."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.errors import ViewkeeperError
from viewkeeper.lake.commit import Commit
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.halts import Halts
from viewkeeper.lake.log.record import Record
from viewkeeper.levels import Level
from viewkeeper.maintenance.context import Context
from viewkeeper.maintenance.images import images_of
from viewkeeper.maintenance.self_maintained.following import Following
from viewkeeper.mediator.alignment import GroupChange
from viewkeeper.messages import Position, Vector
from viewkeeper.planner.self_maintained.kept_view import SELF_MAINTAINED, KeptView, kept_view, self_maintained
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import View
from viewkeeper.storage.self_maintained import operand_changes, refresh
from viewkeeper.storage.tables import HeldTables


class SelfMaintainedViews:
    """All self-maintained views of one warehouse."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._halts = Halts(context.files.store)
        self._following: dict[str, Following] = {}
        self._known: tuple[dict[str, Definition], dict[str, Relation], dict[str, KeptView]] | None = None

    # --- what there is ---

    def views(self) -> dict[str, KeptView]:
        """Those that are stored. One that its sources no longer allow is halted and left out."""
        definitions = self_maintained(self.context.writer.catalog)
        relations = self.context.relations() if definitions else {}
        if self._known is None or self._known[:2] != (definitions, relations):
            found = {}
            for name, definition in definitions.items():
                try:
                    found[name] = kept_view(definition, relations)
                except ViewkeeperError as error:
                    self.halt(name, error.detail)
            self._known = definitions, relations, found
        return self._known[2]

    def halt(self, view: str, reason: str) -> None:
        """Remember that a view is not maintained any more, and why."""
        definition = self.context.writer.catalog[view]
        if view not in self._halts.all():
            state = self.context.writer.last.groups[definition.group].last
            self._halts.add(view, definition.folder, reason, state)

    def followers(self, group: str, listened: Callable[[str], bool]) -> list[Following]:
        """The views of a group that are not halted, ready to follow it; `listened` says whose changes are of use."""
        halted, context = self._halts.all(), self.context
        found = []
        for name, kept in self.views().items():
            if kept.group == group and name not in halted:
                following = Following(kept, context.files, context.contents, context.engines, partial(listened, name))
                self._following[name] = following
                found.append(following)
        return found

    def one_state(self, group: str) -> bool:
        """Whether all that a commit of a group holds is one state of it."""
        return any(kept.group == group and kept.level is not Level.COMPLETE for kept in self.views().values())

    def unstored(self, group: str) -> set[str]:
        """The views of a group of which only the changes are passed on: feeds, and what is read through structures. Of
        those that are halted nothing is stored."""
        following = {name: one.kept for name, one in self._following.items() if one.kept.group == group}
        halted = {
            table
            for name, view in self.context.writer.catalog.items()
            if SELF_MAINTAINED in view.properties and view.group == group and name not in following
            for table in view.properties[SELF_MAINTAINED]["tables"]
        }
        return halted | {name for kept in following.values() for name in (*kept.feeds, kept.name)}

    def committed(self, group: str, before: Record, record: Record, changes: Sequence[GroupChange]) -> None:
        """These changes of a group are stored."""
        for following in self._following.values():
            if following.kept.group == group:
                following.committed(before, record, changes)

    # --- from the sources ---

    @contextmanager
    def contents(
        self, kept: KeptView, relations: Mapping[str, Relation], *, fresh: bool = False
    ) -> Iterator[tuple[dict[str, Any], dict[str, Position]]]:
        """The relations of a view at the vector of its group, or as they are now; and the vector."""
        wanted = {name: relations[name] for name in kept.view.relations}
        with images_of(self.context, wanted, kept.group, fresh=fresh) as (contents, at):
            yield contents, at

    def computed(
        self, kept: KeptView, contents: Mapping[str, Any], first_number: int = 0
    ) -> tuple[dict[str, Any], Any]:
        """All structures, and the view, computed from its relations: as if all their rows had just come."""
        storage, engines = kept.storage, self.context.engines
        tables = HeldTables({one.name: engines.zset(one.columns) for one in storage.structures})
        given = {}
        for number, leaf in enumerate(storage.tree.leaves):
            rows = contents[leaf.operand.relation.name].rename(leaf.operand.columns)
            given[number] = rows.select(leaf.own).keep(leaf.given)
        leaves = operand_changes(storage, tables, given, count(first_number))
        return refresh(storage, tables, leaves, view=True)

    def evaluated(self, view: View | OuterJoinView, contents: Mapping[str, Any]) -> Any:
        """A view computed from its relations. An inner join is computed in another way than it is maintained."""
        if isinstance(view, View):
            return JoinPlan(view).evaluate(contents)
        return self.computed(self.views()[view.name], contents)[1]

    # --- dropping ---

    def drop(self, commit: Commit, definition: Definition) -> None:
        """Drop a view, and everything that was stored for it."""
        for name in definition.properties[SELF_MAINTAINED]["tables"]:
            commit.drop(name)
            self.unhalt(name)
        self.forget(definition.name)

    def forget(self, name: str) -> None:
        """A view is not there any more, or another one is."""
        self._following.pop(name, None)

    def unhalt(self, name: str) -> None:
        self._halts.remove(self.context.writer.catalog[name].folder)


def moved(there: Vector, at: Vector) -> dict[str, Position]:
    """The positions that are not those of a group."""
    return {name: place for name, place in at.items() if there.get(name) != place}
