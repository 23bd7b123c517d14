"""`plan_view`: how a view is to be maintained. Nothing else decides that.

    definition  ->  operator tree  ->  storage, algorithm, group, level  ->  ViewPlan, or the error that says why not

Creating a view carries its plan out, `explain` puts it in words, `plan` makes those of a project in their order. So
they accept the same definitions, and refuse the others for the same reasons.
"""

from collections.abc import Mapping
from dataclasses import replace

from viewkeeper.lake.log.catalog import free_name
from viewkeeper.planner.canonical import Parsed
from viewkeeper.planner.composed.composed_view import ComposedView
from viewkeeper.planner.composed.naming import composed_names
from viewkeeper.planner.composed.reading import read_view
from viewkeeper.planner.groups import Groups
from viewkeeper.planner.kept_views import Kept
from viewkeeper.planner.known_relations import refuse_summaries
from viewkeeper.planner.overview import Overview
from viewkeeper.planner.self_maintained.choosing import is_automatic, storage_for
from viewkeeper.planner.view_plan import PlannedQuery, StoredJoin, ViewPlan
from viewkeeper.sql.summary_view import Family, SummaryView


def plan_view(
    overview: Overview,
    sql: str,
    kept: Mapping[str, Kept] | None = None,
    homes: Mapping[str, str | None] | None = None,
) -> ViewPlan:
    """The plan of a view that is not there yet. `kept` are the joins that are, if they are known already; `homes` the
    groups that views which are recreated had."""
    refuse_summaries(sql, overview.catalog)
    new = read_view(sql, overview.relations, overview.spark, composed_names(overview.catalog))
    free_name(overview.catalog, new.name)
    if isinstance(new, ComposedView):
        return PlannedQuery(Groups.of(overview, kept, homes).place_composed(new))
    return plan_parsed(overview, new, kept, homes)


def plan_parsed(
    overview: Overview,
    new: Parsed,
    kept: Mapping[str, Kept] | None = None,
    homes: Mapping[str, str | None] | None = None,
) -> ViewPlan:
    """The same of a definition that is parsed."""
    groups = Groups.of(overview, kept, homes)
    sources, decision, rates = overview.sources, None, dict[str, float]()
    if not isinstance(new, SummaryView | Family):
        # How often sources change, which takes a look at the log, is of interest only where the choice is viewkeeper's.
        rates = overview.rates if is_automatic(new) else {}
        decision = storage_for(new, sources.definitions(), rates)
    plan = groups.place(new, overview.relations, sources.transactions, decision)
    assert plan is not None
    return replace(plan, rates=rates) if isinstance(plan, StoredJoin) else plan
