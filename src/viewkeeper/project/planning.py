"""From a project and a warehouse to the plan: what is there is compared with what is to be there.

    sources     added, or changed if something is declared that the warehouse does not know yet
    views       those that are not there are created; for the others the warehouse says what a definition amounts to
    the rest    what a project made before and has no more: dropped, if pruning was requested

Everything is checked before anything is done: the tables and columns of all views, over what the sources have.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from viewkeeper.algorithms.registry import Transactions
from viewkeeper.errors import SourceError, UnknownName, UsageError, ViewkeeperError
from viewkeeper.planner.canonical import Parsed
from viewkeeper.planner.composed.composed_view import ComposedView
from viewkeeper.planner.declared import as_the_source_spells
from viewkeeper.planner.known_relations import relations_named
from viewkeeper.planner.known_sources import refuse_move
from viewkeeper.planner.stored_definitions import tables_in
from viewkeeper.project.checking import check_cubes, check_views, relations_at, together
from viewkeeper.project.content import Content
from viewkeeper.project.cubes import ProjectCube
from viewkeeper.project.ownership import Owned, read_owned
from viewkeeper.project.places import placed
from viewkeeper.project.plan import Action, Plan, Step
from viewkeeper.project.sources import ProjectSource
from viewkeeper.project.views import ProjectView, dependants
from viewkeeper.sources.urls import shown
from viewkeeper.sql.relation import Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from viewkeeper.lake.log.source_files import SourceDefinition
    from viewkeeper.warehouse import Warehouse

_GONE = "no longer in the project"


def make_plan(
    content: Content, warehouse: "Warehouse | None", spark: "Callable[[], SparkSession]", *, prune: bool
) -> Plan:
    """What applying a project would do; a warehouse that is not there yet is None."""
    stored = {source.name: source for source in warehouse.sources} if warehouse is not None else {}
    definitions = dict(warehouse.definitions) if warehouse is not None else {}
    owned = read_owned(warehouse.path) if warehouse is not None else Owned()
    sources = [source_step(one, stored.get(one.name), content.views) for one in content.sources.values()]
    identity = None if warehouse is None else warehouse.id
    relations: dict[str, Relation] = {}
    errors: list[ViewkeeperError] = []
    unknown: set[str] = set()
    """sources whose tables are not known"""
    for step in sources:
        source = content.sources[step.name]
        before = stored.get(step.name)
        try:
            if before is not None and is_moved(source, before):
                refuse_move(before, source.url)
            if step.changes:
                relations |= relations_at(source, spark, identity, errors, installed=before is not None)
            else:
                relations |= stored[step.name].relations
        except ViewkeeperError as error:
            errors.append(error)
            unknown.add(step.name)
    new_columns: Mapping[str, Relation] = {}
    if warehouse is not None:
        unchanged = [one.name for one in sources if not one.changes]
        new_columns = _new_columns(content.views, relations, warehouse, unchanged, spark)
        relations |= new_columns
        sources = [_with_new_columns(step, stored.get(step.name), new_columns, content.views) for step in sources]
    single = [one.name for one in content.sources.values() if _transactions(one, stored.get(one.name)) == "single"]
    parsed: dict[str, Parsed | ComposedView] = {}
    known = check_views(content.views, relations, single, unknown, errors, parsed, spark=spark)
    declared = {name: [*source.foreign_keys] for name, source in content.sources.items()}
    for name, before in stored.items():
        declared.setdefault(name, []).extend(before.foreign_keys)
    check_cubes(content.cubes.values(), known, declared, unknown, errors)
    if errors:
        raise together(errors)
    gone = _gone(owned, content, definitions, stored)
    views: list[Step] = []
    changing = {step.name for step in sources if step.changes}
    for view in content.views:
        try:
            step = _view_step(
                view, content.views, warehouse, definitions, changing, views, gone.views if prune else (), new_columns
            )
        except ViewkeeperError as error:
            errors.append(error)
            continue
        views.append(step)
        changing |= {step.name} if step.changes and step.action is not Action.ALTER else set()
    errors += _without_place(content, views, parsed, known, warehouse, stored, single)
    if prune:
        errors += _still_read(gone, content, definitions)
    if errors:
        raise together(errors)
    cubes = [_cube_step(cube, owned, definitions) for cube in content.cubes.values()]
    if warehouse is not None:
        views, cubes = _with_losses(views, cubes, warehouse, owned)
    return Plan(
        str(content.warehouse if warehouse is None else warehouse.path),
        warehouse is not None,
        (*sources, *(_dropped(name, Action.REMOVE, prune) for name in gone.sources)),
        (*views, *(_dropped(name, Action.DROP, prune) for name in gone.views)),
        (*cubes, *(_dropped(name, Action.DROP, prune) for name in gone.cubes)),
        tuple(sorted(_by_hand(definitions, owned, content))),
    )


def _new_columns(
    views: Sequence[ProjectView],
    relations: Mapping[str, Relation],
    warehouse: "Warehouse",
    sources: Sequence[str],
    spark: "Callable[[], SparkSession]",
) -> Mapping[str, Relation]:
    """The relations of sources with columns that they were given since they were added, if a view may need one."""
    read = {read.source for view in views for read in view.reads}
    try:
        errors: list[ViewkeeperError] = []
        check_views(tuple(views), relations, (), (), errors, spark=spark)
        named = [name for name in sources if name in read]
        return warehouse.with_new_columns(named) if any(isinstance(one, UnknownName) for one in errors) else {}
    except SourceError:
        return {}


def _with_new_columns(
    step: Step, stored: "SourceDefinition | None", relations: Mapping[str, Relation], views: Collection[ProjectView]
) -> Step:
    """The step of a source whose new columns are taken up, because a view names one."""
    if stored is None or step.changes:
        return step
    read = {one.name for view in views for one in view.reads}
    reasons = tuple(
        f"the column {column} of {name} is new"
        for name, relation in stored.relations.items()
        if name.lower() in read and name in relations
        for column in relations[name].columns
        if column not in relation.columns
    )
    return replace(step, reasons=reasons) if reasons else step


def _without_place(
    content: Content,
    steps: Sequence[Step],
    parsed: Mapping[str, Parsed | ComposedView],
    relations: Mapping[str, Relation],
    warehouse: "Warehouse | None",
    stored: "Mapping[str, SourceDefinition]",
    single: Collection[str],
) -> list[ViewkeeperError]:
    """The errors of views that could not be created where they would go, after those that come before them."""
    from viewkeeper.planner.groups import Groups

    def transactions(sources: Sequence[str]) -> Transactions:
        if sum(one in stored and stored[one].global_transactions for one in sources) > 1:
            return Transactions.GLOBAL
        return Transactions.SINGLE if set(sources) <= set(single) else Transactions.LOCAL

    groups = Groups() if warehouse is None else warehouse.groups()
    actions = {step.name: step.action for step in steps}
    errors: list[ViewkeeperError] = []
    wrong: set[str] = set()
    for view in content.views:
        action = actions.get(view.name)
        if action not in (Action.CREATE, Action.RELOAD) or set(view.views) & wrong:
            wrong |= {view.name} if action in (None, Action.CREATE) else set()
            continue
        if action is Action.RELOAD:
            groups.leave(view.name, again=True)
        try:
            new = parsed[view.name]
            if isinstance(new, ComposedView):
                groups.place_composed(new)
            else:
                groups.place(new, relations, transactions)
        except ViewkeeperError as error:
            errors.append(placed(error, view.place))
            wrong.add(view.name)
    return errors


def _still_read(gone: Owned, content: Content, definitions: Mapping[str, str]) -> list[ViewkeeperError]:
    """The errors of what is to be dropped and is read by views that stay, which are in no project."""
    of_cubes = {table for cube in gone.cubes.values() for table in cube.tables}
    mine = {view.name for view in content.views} | gone.views | of_cubes
    staying = {name: sql for name, sql in definitions.items() if name not in mine}
    errors: list[ViewkeeperError] = []
    for name in sorted(gone.views):
        if reading := sorted({*stored_dependants(name, definitions)} & staying.keys()):
            errors.append(UsageError(f"view {name} is read by {', '.join(reading)}", "drop those first"))
    for name in sorted(gone.sources):
        using = sorted(view for view, sql in staying.items() if name in _sources(sql))
        if using:
            errors.append(UsageError(f"source {name} is in use by {', '.join(using)}", "drop those views first"))
    return errors


def _with_losses(
    views: Sequence[Step], cubes: Sequence[Step], warehouse: "Warehouse", owned: Owned
) -> tuple[list[Step], list[Step]]:
    """What is reloaded begins with a state of its own: how many there are that nobody can read then."""
    if not any(step.action is Action.RELOAD for step in (*views, *cubes)):
        return [*views], [*cubes]
    readable = warehouse.status().readable_states

    def told(step: Step, tables: Iterable[str]) -> Step:
        lost = max(map(readable, tables), default=0) if step.action is Action.RELOAD else 0
        return replace(step, states_lost=lost)

    return (
        [told(step, (step.name,)) for step in views],
        [told(step, owned.cubes[step.name].tables if step.name in owned.cubes else ()) for step in cubes],
    )


def _dropped(name: str, action: Action, prune: bool) -> Step:
    return Step(name, action, (_GONE,), if_pruned=not prune)


# --- sources ---


def source_step(source: ProjectSource, stored: "SourceDefinition | None", views: Collection[ProjectView]) -> Step:
    """What is done to a source of the project."""
    if stored is None:
        return Step(source.name, Action.ADD, (f"{source.kind} at {shown(source.url)}",), place=str(source.place))
    reasons = _differences(source, stored)
    known = {name.lower() for name in stored.relations}
    read = {one.name for view in views for one in view.reads if one.source == source.name}
    reasons += [f"the table {name} is not known yet" for name in sorted(read - known)]
    action = Action.CHANGE if reasons else Action.KEEP
    return Step(source.name, action, tuple(reasons), place=str(source.place))


def _differences(source: ProjectSource, stored: "SourceDefinition") -> list[str]:
    """What the project declares and the warehouse does not know. What it declared before stays declared."""
    found = []
    foreign_keys, hierarchies = as_the_source_spells(
        source.name, stored.relations, source.foreign_keys, source.hierarchies
    )
    if is_moved(source, stored):
        found.append(f"it is at {shown(source.url)}, and was at {stored.url}")
    if stored.tables is not None:
        if source.tables is None:
            found.append("all of its tables are taken, and not some")
        else:
            found += [f"the table {table} is added" for table in source.tables if table not in stored.tables]
    found += [
        f"the key of {table} is {', '.join(key)}"
        for table, key in source.keys.items()
        if tuple(stored.keys.get(table, ())) != key
    ]
    found += [
        f"the foreign key {child} → {parent} is declared"
        for child, parent in foreign_keys
        if (child, parent) not in stored.foreign_keys
    ]
    found += [
        f"the hierarchy {', '.join(levels)} of {table} is declared"
        for table, chains in hierarchies.items()
        for levels in chains
        if levels not in stored.hierarchies.get(table, ())
    ]
    found += [
        f"the hierarchies of {table} are withdrawn"
        for table, chains in hierarchies.items()
        if not chains and stored.hierarchies.get(table)
    ]
    if source.transactions is not None and source.transactions != stored.transactions:
        found.append(f"its transactions are declared {source.transactions}, and were {stored.transactions}")
    if source.install and not stored.installed:
        found.append("what capture needs is installed")
    return found


def _transactions(source: ProjectSource, stored: "SourceDefinition | None") -> str | None:
    """What is declared of the transactions of a source: what was declared before stays declared."""
    return source.transactions or (None if stored is None else stored.transactions)


def is_moved(source: ProjectSource, stored: "SourceDefinition") -> bool:
    """Whether a source is to be somewhere else than it was."""
    return shown(source.url) != stored.url


# --- views ---


def _view_step(
    view: ProjectView,
    views: Collection[ProjectView],
    warehouse: "Warehouse | None",
    definitions: Mapping[str, str],
    changing: Collection[str],
    before: Collection[Step],
    dropped: Collection[str],
    relations: Mapping[str, Relation],
) -> Step:
    """What is done to a view, behind what is done before: `changing` are the sources and views that it makes others,
    and views that are dropped are in nobody's way."""
    place = str(view.place)
    if warehouse is None or view.name not in definitions:
        return Step(view.name, Action.CREATE, place=place)
    reads = {read.source or read.name for read in view.reads}
    try:
        found = warehouse.alteration(view.sql, readers(view, views, definitions), relations or None)
    except ViewkeeperError as error:
        # Over what will be there it was checked already, so it is what is there now that is in the way.
        if followed := sorted(reads & set(changing)):
            return Step(view.name, Action.RELOAD, (f"it follows {', '.join(followed)}",), place=place)
        behind = stored_dependants(view.name, definitions)
        if behind and set(behind) <= {*(one.name for one in views), *dropped}:
            return Step(view.name, Action.RELOAD, ("its columns differ",), behind, place)
        raise placed(error, view.place) from error
    if found.kind == "keep" and (origin := [step.name for step in before if view.name in step.dependants]):
        return Step(view.name, Action.RELOAD, (f"it is recreated with {', '.join(origin)}",), place=place)
    return Step(view.name, Action(found.kind), found.reasons, found.dependants, place)


def readers(view: ProjectView, views: Collection[ProjectView], definitions: Mapping[str, str]) -> list[str]:
    """The definitions, as the project has them, of the views that read a view, there or in the project."""
    names = {*dependants(view.name, views), *stored_dependants(view.name, definitions)}
    return [one.sql for one in views if one.name in names]


def stored_dependants(name: str, definitions: Mapping[str, str]) -> tuple[str, ...]:
    """The views of the warehouse that read a view, or one that does, in the order in which they can be dropped."""
    reading = [other for other, sql in definitions.items() if name.casefold() in _tables(sql) and other != name]
    deeper = [deep for other in reading for deep in stored_dependants(other, definitions)]
    return tuple(dict.fromkeys((*deeper, *reading)))


@lru_cache(maxsize=4096)
def _tables(sql: str) -> frozenset[str]:
    """Every view is looked at for every other."""
    return frozenset(tables_in(sql))


def _sources(sql: str) -> set[str]:
    return {table.partition(".")[0] for table in relations_named(sql)}


# --- cubes, and what is in the project no more ---


def _cube_step(cube: ProjectCube, owned: Owned, definitions: Collection[str]) -> Step:
    place, made = str(cube.place), owned.cubes.get(cube.name)
    if made is None:
        return Step(cube.name, Action.CREATE, place=place)
    reasons = [f"{field} is another" for field, value in cube.told.items() if made.told.get(field) != value]
    reasons += [f"its table {table} is gone" for table in made.tables if table not in definitions]
    return Step(cube.name, Action.RELOAD if reasons else Action.KEEP, tuple(reasons), place=place)


def _gone(owned: Owned, content: Content, definitions: Collection[str], stored: Collection[str]) -> Owned:
    """What a project made before, is still there, and is in the project no more."""
    views = {view.name for view in content.views}
    return Owned(
        frozenset(name for name in owned.sources if name in stored and name not in content.sources),
        frozenset(name for name in owned.views if name in definitions and name not in views),
        {name: made for name, made in owned.cubes.items() if name not in content.cubes},
    )


def _by_hand(definitions: Collection[str], owned: Owned, content: Content) -> set[str]:
    of_cubes = {table for cube in owned.cubes.values() for table in cube.tables}
    return set(definitions) - {view.name for view in content.views} - owned.views - of_cubes
