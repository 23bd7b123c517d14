"""A new self-maintained view: its structures computed from the sources at one vector, all created in one commit."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from viewkeeper.lake.commit import Commit
from viewkeeper.lake.log.catalog import SORTED_BY
from viewkeeper.maintenance.joins import create_internal
from viewkeeper.maintenance.self_maintained.first_structures import first_structures
from viewkeeper.maintenance.self_maintained.views import SelfMaintainedViews, moved
from viewkeeper.messages import Vector
from viewkeeper.planner.self_maintained.automatic import decide
from viewkeeper.planner.self_maintained.choosing import is_automatic
from viewkeeper.planner.self_maintained.facts import facts_of, with_sizes
from viewkeeper.planner.self_maintained.kept_view import KeptView, feed_of
from viewkeeper.planner.self_maintained.planned import properties_of, supposed
from viewkeeper.planner.view_plan import StoredJoin
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import View


def create_stored(views: SelfMaintainedViews, plan: StoredJoin, relations: Mapping[str, Relation]) -> None:
    """Compute everything that is stored for a view, and create it.

    If the choice is left to viewkeeper, it is made again once the relations are read, by their sizes.
    """
    context, view, kept = views.context, plan.definition, plan.kept
    with views.contents(kept, relations) as (contents, at), context.new_commit() as commit:
        if is_automatic(view) and isinstance(view, View):
            facts = facts_of(view, context.sources.definitions(), plan.rates)
            kept = replace(supposed(view, decide(with_sizes(facts, view, contents))), group=kept.group)
        structures = first_structures(views, kept, contents)
        there = context.writer.last.groups.get(kept.group)
        if there is not None:
            if new := moved(there.vector, at):
                commit.state(kept.group, new)
            at = {**there.vector, **at}
        create_all(views, commit, kept, structures, at, relations)


def create_all(
    views: SelfMaintainedViews,
    commit: Commit,
    kept: KeptView,
    structures: Mapping[str, Any],
    at: Vector,
    relations: Mapping[str, Relation],
) -> None:
    """Everything that is stored for a view."""
    retention = dict(kept.view.properties).get("retention")
    for feed, number in kept.feeds.items():
        view = feed_of(kept.storage.tree.leaves[number], feed, relations)
        create_internal(views.context, commit, view, kept.group, None, at)
    for table, structure in kept.tables.items():
        commit.create(
            table,
            kept.columns_of(structure),
            rows=structures[structure.name],
            distinct=isinstance(structures[structure.name], pa.Table),
            group=kept.group,
            vector=at,
            retention=retention,
            properties={SORTED_BY: structure.by[0]},
        )
    commit.create(
        kept.name,
        [(column.name, column.expression.type) for column in kept.view.output],
        group=kept.group,
        vector=at,
        retention=retention,
        properties=properties_of(kept),
    )
