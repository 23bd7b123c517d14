"""A self-maintained view recreated from its sources: all structures recomputed; what is different becomes a new
state."""

from viewkeeper.lake.log.catalog import Definition
from viewkeeper.maintenance.altering.altering import OTHER_COLUMNS, make_anew
from viewkeeper.maintenance.keeper import Keeper
from viewkeeper.maintenance.readers import readers_alone, with_readers
from viewkeeper.maintenance.self_maintained.creating import create_all
from viewkeeper.maintenance.self_maintained.following import NUMBERS
from viewkeeper.planner.self_maintained.kept_view import kept_anew, same_ids


def reload(keeper: Keeper, definition: Definition) -> None:
    """Recreate a view: what it shows until then stays, and what is different becomes a new state.

    If its rows get other ids than they have, since a key was declared meanwhile, its tables are others as well.
    """
    views = keeper.self_maintained
    relations = keeper.relations()
    kept = kept_anew(definition, relations)
    if definition.columns != tuple((column.name, column.expression.type) for column in kept.view.output):
        make_anew(keeper, kept.name, OTHER_COLUMNS)
        return
    last = keeper.writer.last.groups[kept.group]
    same = {table: kept.columns_of(structure) for table, structure in kept.tables.items()}
    catalog = keeper.writer.catalog
    # Others of its group stay where they are, and so must it.
    alone = all(one.group != kept.group for name, one in views.views().items() if name != kept.name)
    with views.contents(kept, relations, fresh=alone) as (contents, at), keeper.new_commit() as commit:
        structures, view = views.computed(kept, contents, first_number=(last.last + 1) * NUMBERS)
        # Those that follow the view are told what it shows from now on.
        told = with_readers(keeper, kept.group, kept.name, view - keeper.stored(kept.name))
        changes = readers_alone(told, kept.name)
        if same_ids(definition, kept) and all(catalog[table].columns == columns for table, columns in same.items()):
            for table, structure in kept.tables.items():
                changes[table] = (structures[structure.name] - keeper.stored(table),)
            commit.states(kept.group, [(at, changes)], passed_on=[told])
        else:
            commit.states(kept.group, [(at, changes)], passed_on=[told])
            views.drop(commit, definition)
            create_all(views, commit, kept, structures, at, relations)
    keeper.incomplete.forget_skipped(kept.group, last.vector, at)
    for name in kept.all_tables:
        views.unhalt(name)
