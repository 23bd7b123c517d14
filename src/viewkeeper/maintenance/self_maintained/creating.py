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
from viewkeeper.planner.self_maintained.automatic import Decision, decide
from viewkeeper.planner.self_maintained.choosing import is_automatic
from viewkeeper.planner.self_maintained.facts import facts_of, with_sizes
from viewkeeper.planner.self_maintained.kept_view import KeptView, feed_of
from viewkeeper.planner.self_maintained.planned import properties_of, refuse_company, supposed
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import View


def create(
    views: SelfMaintainedViews,
    view: View | OuterJoinView,
    decision: Decision,
    relations: Mapping[str, Relation],
    rates: Mapping[str, float],
) -> str:
    """Compute everything that is stored for a view, and create it; its name.

    If the choice is left to viewkeeper, the decision is recreated once the relations are read, by their sizes.
    """
    context = views.context
    kept = _in_its_group(views, supposed(view, decision))
    _check_group(views, kept)
    with views.contents(kept, relations) as (contents, at), context.new_commit() as commit:
        if is_automatic(view) and isinstance(view, View):
            facts = facts_of(view, context.sources.definitions(), rates)
            kept = replace(supposed(view, decide(with_sizes(facts, view, contents))), group=kept.group)
        structures = first_structures(views, kept, contents)
        there = context.writer.last.groups.get(kept.group)
        if there is not None:
            if new := moved(there.vector, at):
                commit.state(kept.group, new)
            at = {**there.vector, **at}
        create_all(views, commit, kept, structures, at, relations)
    return view.name


def _in_its_group(views: SelfMaintainedViews, kept: KeptView) -> KeptView:
    """In a group of its own, unless it asks for one."""
    if "group" in dict(kept.view.properties):
        return kept
    return replace(kept, group=views.context.views.free_group(kept.name))


def _check_group(views: SelfMaintainedViews, kept: KeptView) -> None:
    """A group has views that are maintained alike."""
    context = views.context
    if kept.group not in context.groups():
        return
    others = {one.name: one for one in views.views().values() if one.group == kept.group}
    catalog = context.writer.catalog
    mine = {table for one in others.values() for table in one.all_tables}
    strangers = sorted(name for name, one in catalog.items() if one.group == kept.group and name not in mine)
    refuse_company(kept, strangers, {name: one.level for name, one in others.items()})


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
