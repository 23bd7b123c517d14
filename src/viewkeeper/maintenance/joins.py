"""Inner joins over sources, or over other views: created in a commit, and described in the catalog."""

from collections.abc import Mapping, Sequence
from typing import Any

from viewkeeper.lake.commit import Commit
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import HIDDEN
from viewkeeper.maintenance.context import Context
from viewkeeper.mediator.choice import promised
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.messages import Position, Vector
from viewkeeper.planner.self_maintained.choosing import REASONS
from viewkeeper.planner.summaries.hierarchies import DeclaredHierarchies
from viewkeeper.planner.view_properties import ALGORITHM, HIERARCHY, KEY, LEVEL, SOURCES, SQL, VIEWS
from viewkeeper.sql.view import View
from viewkeeper.sql.view_keys import key_of_view


def create_internal(context: Context, commit: Commit, view: View, group: str, rows: Any, at: Vector) -> Definition:
    """A view of viewkeeper's own, maintained with a group that is at this vector."""
    before = next((one.how.algorithm for one in context.kept().values() if one.group == group), None)
    return created(context, commit, context.views.how(view, before), group, rows, at)


def created(
    context: Context,
    commit: Commit,
    how: Maintenance,
    group: str,
    rows: Any,
    at: Mapping[str, Position],
    reasons: Sequence[str] = (),
) -> Definition:
    """Create a join, with its first rows. `reasons` are why its sources are queried, if that was left to viewkeeper."""
    columns = [(column.name, column.expression.type) for column in how.stored.output]
    return commit.create(
        how.view.name,
        [column for column in columns if not column[0].startswith(HIDDEN)],
        hidden={name: type for name, type in columns if name.startswith(HIDDEN)},
        rows=rows,
        group=group,
        vector=at,
        retention=dict(how.view.properties).get("retention"),
        properties=properties_for(context, how, reasons),
    )


def properties_for(context: Context, how: Maintenance, reasons: Sequence[str] = ()) -> dict[str, Any]:
    """What the catalog says of a view that is maintained so."""
    hierarchies = DeclaredHierarchies(context.sources.definitions(), context.writer.catalog)
    return {
        **dict(how.view.properties),
        **({REASONS: list(reasons)} if reasons else {}),
        SQL: how.view.sql,
        ALGORITHM: how.algorithm,
        LEVEL: str(promised(how)),
        SOURCES: [source for source in how.view.sources if source != VIEWS],
        KEY: key_of_view(how.view),
        HIERARCHY: hierarchies.inherited(how.view),
    }
