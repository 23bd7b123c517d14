"""Self-maintained views compared with their sources, and recreated from them.

audit     the view's text run by Spark, and its structures computed, over the relations at its vector
reload    all structures recomputed; what is different becomes a new state
"""

from typing import TYPE_CHECKING, Any

from viewkeeper.lake.log.catalog import Definition
from viewkeeper.warehouse.altering.altering import OTHER_COLUMNS, make_anew
from viewkeeper.warehouse.audits import Audit, audited
from viewkeeper.warehouse.original_rows import original_rows
from viewkeeper.warehouse.self_maintained.creating import create_all
from viewkeeper.warehouse.self_maintained.following import NUMBERS
from viewkeeper.warehouse.self_maintained.kept_view import KeptView, kept_anew, same_ids
from viewkeeper.warehouse.told_readers import readers_alone, with_readers

if TYPE_CHECKING:
    from viewkeeper.warehouse.self_maintained.keeping import SelfMaintainedViews


def audit(views: "SelfMaintainedViews", name: str) -> Audit:
    """Compute a view from its sources at its own vector, and compare it with what its readers see."""
    keeper, kept = views.keeper, views.views()[name]
    with views.contents(kept, keeper.relations()) as (contents, _):
        structures, _ = views.computed(kept, contents)
        stored = keeper.stored(name).keep(kept.view.columns)
        with original_rows(keeper.files.spark(), contents, kept.view.relations) as original:
            text = original.of(kept.view.sql, kept.view.operands, kept.view.columns)
            difference = keeper.engines.of_frame(text) - stored
            wrong = [] if difference.is_empty() else list(difference.weights())
        rows = stored.size()
        different = [table for table, one in kept.tables.items() if not _same(views, kept, table, structures[one.name])]
    return audited(name, keeper.writer.last.groups[kept.group], rows, wrong, different)


def _same(views: "SelfMaintainedViews", kept: KeptView, table: str, expected: Any) -> bool:
    """Whether a structure is what it should be. Which number a row without a key was given does not matter."""
    numbers = {leaf.ids[0] for leaf in kept.storage.tree.leaves if leaf.numbered}
    columns = tuple(column for column in kept.tables[table].columns if column not in numbers)
    return bool((expected.keep(columns) - views.keeper.stored(table).keep(columns)).is_empty())


def reload(views: "SelfMaintainedViews", definition: Definition) -> None:
    """Make a view anew: what it shows until then stays, and what is different becomes a new state.

    If its rows get other ids than they have, since a key was declared meanwhile, its tables are others as well.
    """
    keeper = views.keeper
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
