"""Self-maintained views compared with their sources, and made anew from them.

audit     the view computed over the relations at its vector, compared with what its readers see
reload    all structures computed anew; what is different becomes a new state
"""

from typing import TYPE_CHECKING, Any

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.sql.view import View
from viewkeeper.warehouse.audits import Audit, audited
from viewkeeper.warehouse.catalog import Definition
from viewkeeper.warehouse.self_maintained.creating import create_all
from viewkeeper.warehouse.self_maintained.kept_view import KeptView, kept_view

if TYPE_CHECKING:
    from viewkeeper.warehouse.self_maintained.keeping import SelfMaintainedViews


def audit(views: "SelfMaintainedViews", name: str) -> Audit:
    """Compute a view from its sources at its own vector, and compare it with what its readers see."""
    keeper, kept = views.keeper, views.views()[name]
    with views.contents(kept, keeper.relations()) as (contents, _):
        expected = _evaluated(views, kept, contents)
        stored = keeper.stored(name).keep(kept.view.columns)
        difference = expected - stored
        rows = stored.size()
        wrong = [] if difference.is_empty() else list(difference.weights())
    return audited(name, keeper.writer.last.groups[kept.group], rows, wrong)


def _evaluated(views: "SelfMaintainedViews", kept: KeptView, contents: dict[str, Any]) -> Any:
    # An inner join is computed in another way than it is maintained.
    if isinstance(kept.view, View):
        return JoinPlan(kept.view).evaluate(contents)
    return views.computed(kept, contents)[1]


def reload(views: "SelfMaintainedViews", definition: Definition) -> None:
    """Make a view anew: what it shows until then stays, and what is different becomes a new state."""
    keeper = views.keeper
    relations = keeper.relations()
    kept = kept_view(definition, relations)
    last = keeper.writer.last.groups[kept.group]
    same = {table: kept.columns_of(structure) for table, structure in kept.tables.items()}
    catalog = keeper.writer.catalog
    with views.contents(kept, relations, fresh=True) as (contents, at), keeper.new_commit() as commit:
        structures, _ = views.computed(kept, contents, first_number=(last.last + 1) << 32)
        if all(catalog[table].columns == columns for table, columns in same.items()):
            changes = {
                table: structures[structure.name] - keeper.stored(table) for table, structure in kept.tables.items()
            }
            commit.state(kept.group, at, changes)
        else:
            views.drop(commit, definition)
            commit.state(kept.group, at)
            create_all(views, commit, kept, structures, at, relations)
    for name in kept.all_tables:
        views.unhalt(name)
