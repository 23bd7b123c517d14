"""Carrying out a plan, step by step; each step is all or nothing, and what is done is remembered.

A step that fails ends it. What was done before stays, and applying again goes on from there.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from viewkeeper.errors import DefinitionError, SourceUnfit, UnknownName, UsageError, ViewkeeperError
from viewkeeper.project.checking import as_a_project_says
from viewkeeper.project.content import Content
from viewkeeper.project.cubes import ProjectCube
from viewkeeper.project.ownership import MadeCube, Owned, read_owned, write_owned
from viewkeeper.project.places import Place, placed
from viewkeeper.project.plan import Action, Plan, Step
from viewkeeper.project.planning import is_moved, readers, stored_dependants
from viewkeeper.project.sources import ProjectSource
from viewkeeper.project.views import ProjectView

if TYPE_CHECKING:
    from viewkeeper.warehouse import Warehouse

Watch = Callable[[str, str, str], None]
"""is told of each step: its kind (source, view, cube), its name, and what was done; before it begins, `...`"""

BEGINS = "..."
_DONE = {
    Action.ADD: "added",
    Action.CHANGE: "changed",
    Action.CREATE: "created",
    Action.ALTER: "altered",
    Action.RELOAD: "reloaded",
    Action.KEEP: "kept",
}


def carry_out(plan: Plan, content: Content, warehouse: "Warehouse", watch: Watch) -> None:
    """Do what a plan says."""
    _Application(content, warehouse, watch).run(plan)


class _Application:
    def __init__(self, content: Content, warehouse: "Warehouse", watch: Watch) -> None:
        self._content, self._warehouse, self._watch = content, warehouse, watch
        self._owned = read_owned(warehouse.path)
        self._to_come: set[str] = set()
        """views that are yet to be made what the project says"""

    def run(self, plan: Plan) -> None:
        sources = {one.name for one in self._warehouse.sources}
        self._remember(self._owned.still_there(self._warehouse.definitions, sources))
        for step in plan.sources:
            if step.action is not Action.REMOVE:
                self._source(step, self._content.sources[step.name])
        self._drop(self._in_the_way(plan))
        # Those of the project come first, in its order; after them is what is dropped.
        self._to_come = {step.name for step in plan.views if step.changes and step.action is not Action.DROP}
        for step, view in zip(plan.views, self._content.views, strict=False):
            self._view(step, view)
            self._to_come.discard(view.name)
        for step in plan.cubes:
            if step.action is not Action.DROP:
                self._cube(step, self._content.cubes[step.name])
        self._prune(plan)

    def _in_the_way(self, plan: Plan) -> list[str]:
        """What is dropped and reads a view that changes, which it may not fit any more."""
        definitions = self._warehouse.definitions
        changing = [step.name for step in plan.views if step.changes and step.action is not Action.DROP]
        reading = {one for name in changing for one in stored_dependants(name, definitions)}
        return [name for name in _dropped(plan.views) if name in reading]

    def _prune(self, plan: Plan) -> None:
        views, cubes = _dropped(plan.views), _dropped(plan.cubes)
        self._drop([*views, *(table for cube in cubes for table in self._owned.cubes[cube].tables)])
        for cube in cubes:
            self._remember(self._owned.without_cube(cube))
        for step in plan.sources:
            if step.action is Action.REMOVE and step.changes:
                self._watch("source", step.name, BEGINS)
                left = self._warehouse.remove_source(step.name)
                self._remember(self._owned.without_source(step.name))
                rest = f"; left for somebody who may: {'; '.join(left)}" if left else ""
                self._watch("source", step.name, f"removed{rest}")

    def _remember(self, owned: Owned) -> None:
        if owned != self._owned:
            write_owned(self._warehouse.path, owned)
            self._owned = owned

    # --- sources ---

    def _source(self, step: Step, source: ProjectSource) -> None:
        if step.changes:
            self._watch("source", step.name, BEGINS)
            with _at(source.place):
                self._put(source)
            self._watch("source", step.name, _DONE[step.action])
        self._remember(self._owned.with_source(step.name))

    def _put(self, source: ProjectSource) -> None:
        stored = {one.name: one for one in self._warehouse.sources}.get(source.name)
        tables = source.tables
        if stored is not None:
            if is_moved(source, stored):
                self._warehouse.move_source(source.name, source.url)
            if stored.tables is None:
                # It has all of them; naming some now would take the others away.
                tables = None
        try:
            self._warehouse.add_source(
                source.name,
                source.url,
                tables,
                keys=source.keys,
                foreign_keys=source.foreign_keys,
                hierarchies=source.hierarchies,
                transactions=source.transactions,
                install=source.install,
            )
        except SourceUnfit as error:
            raise as_a_project_says(error) from error

    # --- views ---

    def _view(self, step: Step, view: ProjectView) -> None:
        there = view.name in self._warehouse.definitions
        if step.changes or not there:
            self._watch("view", view.name, BEGINS)
            with _at(view.place):
                if there:
                    self._alter(view)
                else:
                    self._warehouse.create_view(view.sql)
            self._watch("view", view.name, self._told(step, view.name))
        self._remember(self._owned.with_view(view.name))

    def _alter(self, view: ProjectView) -> None:
        """With the new definitions of those that read it, in one commit."""
        also = readers(view, self._content.views, self._warehouse.definitions)
        if not (problem := self._problem(view, also)):
            self._warehouse.alter_view(view.sql, also)
        elif not self._problem(view, []):
            # They need something that comes later, and what they are now fits.
            self._warehouse.alter_view(view.sql)
        elif len(together := self._together(view)) > 1:
            self._warehouse.alter_views(together)
        else:
            raise problem

    def _together(self, view: ProjectView) -> list[str]:
        """The definitions of a view, of those that read it, and of everything that these need and that is yet to come:
        none of them fits what the others are now."""
        definitions, names = self._warehouse.definitions, {view.name}
        while True:
            behind = {one for name in names for one in stored_dependants(name, definitions)}
            needed = {read for one in self._content.views if one.name in names | behind for read in one.views}
            more = names | behind | (needed & self._to_come)
            if more == names:
                return [one.sql for one in self._content.views if one.name in names]
            names = more

    def _problem(self, view: ProjectView, also: Sequence[str]) -> DefinitionError | None:
        """Why a view cannot be altered now, if it cannot."""
        try:
            try:
                self._warehouse.alteration(view.sql, also)
            except UnknownName:
                # Altering it looks at its sources again: a column may be new there.
                read = {read.source for read in view.reads if read.source is not None}
                self._warehouse.alteration(view.sql, also, self._warehouse.with_new_columns(sorted(read)))
        except DefinitionError as error:
            return error
        return None

    def _told(self, step: Step, name: str) -> str:
        made = [one for one in self._warehouse.status().views if name in (one.view, one.family)]
        rows, most = sum(one.rows for one in made), "up to " if any(one.selects for one in made) else ""
        told = f"{_DONE[step.action]}, {most}{rows} row{'' if rows == 1 else 's'}"
        return told + (f"; {step.loss}" if step.loss else "")

    def _drop(self, names: Iterable[str]) -> None:
        """Drop views, those that read others before them."""
        left = [name for name in names if name in self._warehouse.definitions]
        while left:
            definitions = self._warehouse.definitions
            free = [name for name in left if not set(left) & set(stored_dependants(name, definitions))]
            for name in free:
                self._watch("view", name, BEGINS)
                self._warehouse.drop_view(name)
                self._remember(self._owned.without_view(name))
                self._watch("view", name, "dropped")
            left = [name for name in left if name not in free]

    # --- cubes ---

    def _cube(self, step: Step, cube: ProjectCube) -> None:
        if not step.changes:
            return
        self._watch("cube", cube.name, BEGINS)
        with _at(cube.place):
            before = self._owned.cubes[cube.name].tables if cube.name in self._owned.cubes else ()
            still_there = [table for table in before if table in self._warehouse.definitions]
            choice = self._warehouse.cube(**cube.told, replace=still_there)
        made = MadeCube(cube.told, tuple(view.name for view in choice.views))
        self._remember(self._owned.with_cube(cube.name, made))
        loss = f"; {step.loss}" if step.loss else ""
        self._watch("cube", cube.name, f"{_DONE[step.action]}: {', '.join(made.tables)}{loss}")


def _dropped(steps: Iterable[Step]) -> list[str]:
    return [step.name for step in steps if step.action is Action.DROP and step.changes]


@contextmanager
def _at(place: Place) -> Iterator[None]:
    """Errors say where the project defines what failed."""
    try:
        yield
    except UsageError:
        raise
    except ViewkeeperError as error:
        raise placed(error, place) from error
