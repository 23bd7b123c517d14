"""A planned view is created: loaded from its sources at one vector, and committed as the first state at that vector."""

from collections.abc import Mapping

from viewkeeper.maintenance.composed.views import ComposedViews
from viewkeeper.maintenance.context import Context
from viewkeeper.maintenance.images import followed
from viewkeeper.maintenance.joins import created
from viewkeeper.maintenance.self_maintained.creating import create_stored
from viewkeeper.maintenance.self_maintained.views import SelfMaintainedViews
from viewkeeper.maintenance.summaries.creating import create_summary
from viewkeeper.maintenance.summaries.lattices import Summaries
from viewkeeper.maintenance.view_images import content_of
from viewkeeper.planner.self_maintained.choosing import is_automatic
from viewkeeper.planner.view_plan import PlannedQuery, PlannedSummary, QueriedJoin, StoredJoin, ViewPlan
from viewkeeper.sql.relation import Relation


def create_planned(
    context: Context,
    summaries: Summaries,
    alone: SelfMaintainedViews,
    composed: ComposedViews,
    plan: ViewPlan,
    relations: Mapping[str, Relation],
) -> None:
    """Load what a plan says, and commit it."""
    match plan:
        case QueriedJoin():
            _create_join(context, alone, plan)
        case StoredJoin():
            create_stored(alone, plan, relations)
        case PlannedSummary():
            create_summary(summaries, plan)
        case PlannedQuery():
            composed.create(plan.view)


def _create_join(context: Context, alone: SelfMaintainedViews, plan: QueriedJoin) -> None:
    group = plan.group
    with (
        content_of(context, alone, plan.how, followed(context, group)) as (rows, at),
        context.new_commit() as commit,
    ):
        if there := context.writer.last.groups.get(group):
            if new := {name: place for name, place in at.items() if there.vector.get(name) != place}:
                commit.state(group, new)
            at = {**there.vector, **new}
        created(context, commit, plan.how, group, rows, at, plan.reasons if is_automatic(plan.definition) else ())
