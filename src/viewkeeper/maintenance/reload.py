"""A view recreated from its sources: what is different becomes a new state, and a halt ends.

its columns are what they were     the difference, for it and for those that read it, as one state
hidden ones are others             the same, and it is stored again under its name
the columns or types are others    it is recreated beside the old one, with those that read it    (altering/)
"""

from viewkeeper.errors import DamagedWarehouse, UsageError
from viewkeeper.lake.log.catalog import Definition, find
from viewkeeper.lake.log.columns import RESERVED
from viewkeeper.maintenance.altering.altering import OTHER_COLUMNS, recreate
from viewkeeper.maintenance.joins import created
from viewkeeper.maintenance.keeper import Keeper
from viewkeeper.maintenance.readers import readers_alone, with_readers
from viewkeeper.maintenance.self_maintained.creating import create_all
from viewkeeper.maintenance.self_maintained.following import NUMBERS
from viewkeeper.maintenance.summaries.reloading import reload as reload_lattice
from viewkeeper.maintenance.view_images import content_of
from viewkeeper.messages import Position
from viewkeeper.planner.composed.naming import COMPOSED
from viewkeeper.planner.known_relations import relations_named
from viewkeeper.planner.self_maintained.choosing import REASONS
from viewkeeper.planner.self_maintained.kept_view import SELF_MAINTAINED, as_stored_now, same_ids
from viewkeeper.planner.view_properties import SOURCES, SQL

FROM_SOURCES = "it was to be computed again"
UNREADABLE = "files of it are missing or damaged"
"""why a view is written again that was not asked to be another one"""


def reload_view(keeper: Keeper, name: str) -> None:
    """Make a view again; its sources may have changed in any way since it was created, and its files may be gone."""
    try:
        _reload(keeper, name)
    except DamagedWarehouse:
        # What is different from files that cannot be read is not known: all of it is written again.
        definition = keeper.writer.catalog.get(name)
        recreate(keeper, definition.family or name if definition is not None else name, UNREADABLE)


def _reload(keeper: Keeper, name: str) -> None:
    if keeper.summaries.members(name):
        _reload_summaries(keeper, name)
        return
    definition = find(keeper.writer.catalog, name)
    for source in definition.properties.get(SOURCES, ()):
        keeper.sources.refresh(source, _named(definition))
    if COMPOSED in definition.properties:
        recreate(keeper, name, FROM_SOURCES)
    elif SELF_MAINTAINED in definition.properties:
        _reload_self_maintained(keeper, definition)
    else:
        _reload_join(keeper, definition)


def _named(definition: Definition) -> set[str]:
    stored = definition.properties.get(SELF_MAINTAINED) or definition.properties.get(COMPOSED) or {}
    sql = definition.properties.get(SQL) or stored.get("sql")
    return relations_named(sql) if sql else set()


def _reload_join(keeper: Keeper, definition: Definition) -> None:
    name, view = definition.name, keeper.kept_one(definition.name)
    stored = tuple((column.name, column.expression.type) for column in view.how.stored.output)
    shown = view.how.view.columns
    if not {column for column in stored if column[0] in shown} <= set(definition.columns):
        recreate(keeper, name, OTHER_COLUMNS)
        return
    keeper.bring_others_up(name, view.group)
    vector = _vector_of_others(keeper, name, view.group)
    there = keeper.writer.last.groups[view.group].vector
    with content_of(keeper, keeper.self_maintained, view.how, vector) as (rows, at):
        before = keeper.stored(name)
        with keeper.new_commit() as commit:
            if stored == definition.columns:
                commit.states(view.group, [(at, with_readers(keeper, view.group, name, rows - before))])
            else:
                different = rows.keep(shown) - before.keep(shown)
                propagated = with_readers(keeper, view.group, name, different)
                commit.states(view.group, [(at, readers_alone(propagated, name))], passed_on=[propagated])
                commit.drop(name)
                reasons = definition.properties.get(REASONS, ())
                created(keeper, commit, view.how, view.group, rows, {**there, **at}, reasons)
    keeper.incomplete.forget_skipped(view.group, there, at)
    keeper.halts.remove(definition.folder)


def _reload_self_maintained(keeper: Keeper, definition: Definition) -> None:
    """Recreate a view: what it shows until then stays, and what is different becomes a new state.

    If its rows get other ids than they have, since a key was declared meanwhile, its tables are others as well.
    """
    views = keeper.self_maintained
    relations = keeper.relations()
    kept = as_stored_now(definition, relations)
    if definition.columns != tuple((column.name, column.expression.type) for column in kept.view.output):
        recreate(keeper, kept.name, OTHER_COLUMNS)
        return
    last = keeper.writer.last.groups[kept.group]
    same = {table: kept.columns_of(structure) for table, structure in kept.tables.items()}
    catalog = keeper.writer.catalog
    # Others of its group stay where they are, and so must it.
    alone = all(one.group != kept.group for name, one in views.views().items() if name != kept.name)
    with views.contents(kept, relations, fresh=alone) as (contents, at), keeper.new_commit() as commit:
        structures, view = views.computed(kept, contents, first_number=(last.last + 1) * NUMBERS)
        # Views that read this one follow what is different in it.
        propagated = with_readers(keeper, kept.group, kept.name, view - keeper.stored(kept.name))
        changes = readers_alone(propagated, kept.name)
        if same_ids(definition, kept) and all(catalog[table].columns == columns for table, columns in same.items()):
            for table, structure in kept.tables.items():
                changes[table] = (structures[structure.name] - keeper.stored(table),)
            commit.states(kept.group, [(at, changes)], passed_on=[propagated])
        else:
            commit.states(kept.group, [(at, changes)], passed_on=[propagated])
            views.drop(commit, definition)
            create_all(views, commit, kept, structures, at, relations)
    keeper.incomplete.forget_skipped(kept.group, last.vector, at)
    for name in kept.all_tables:
        views.unhalt(name)


def _vector_of_others(keeper: Keeper, name: str, group: str) -> dict[str, Position]:
    """The positions that other views of the group are at; a source that none of them needs can be read as it is."""
    plan = next((plan for plan in keeper.plans() if plan.name == group), None)
    if plan is None:
        return {}
    if keeper.kept_one(name).reads:
        return dict(plan.vector)
    needed = {source for how in plan.views if how.view.name != name for source in how.view.sources}
    return {source: place for source, place in plan.vector.items() if source in needed}


def _reload_summaries(keeper: Keeper, name: str) -> None:
    """With the whole lattice; of another one, if its fact or a dimension has other columns than it had."""
    lattice = keeper.summaries.lattice_of(name)
    keeper.summaries.refuse_halted_inputs(lattice)
    catalog = keeper.writer.catalog
    own = [catalog[view] for view in lattice.inputs if view.startswith(RESERVED)]
    for source in {source for view in own for source in view.properties.get(SOURCES, ())}:
        keeper.sources.refresh(source, {relation.name for relation in lattice.input_relations.values()})
    keeper.summaries.look_again()
    if not keeper.summaries.members(name):
        reason = keeper.halts.all()[next(iter(lattice.visible))].reason
        raise UsageError(
            f"{name} no longer fits its sources: {reason}", "put back what is missing, or create it with --replace"
        )
    lattice = keeper.summaries.lattice_of(name)
    if keeper.summaries.is_outdated(lattice):
        called = catalog[name].family or name if name in catalog else name
        recreate(keeper, called, OTHER_COLUMNS)
    else:
        reload_lattice(keeper.summaries, lattice)
