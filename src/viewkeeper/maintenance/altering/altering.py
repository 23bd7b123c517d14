"""Making a view what a definition says."""

from collections.abc import Sequence
from dataclasses import replace

from viewkeeper.lake.commit import Commit
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.levels import Level
from viewkeeper.maintenance.altering.recreating import reload_as
from viewkeeper.maintenance.joins import properties_for
from viewkeeper.maintenance.keeper import Keeper
from viewkeeper.maintenance.spark_agreement import check_agreement
from viewkeeper.planner.altering.alteration import Alteration
from viewkeeper.planner.altering.in_place import algorithm_before
from viewkeeper.planner.altering.planning import Plan, plan_alteration
from viewkeeper.planner.composed.composed_view import ComposedView
from viewkeeper.planner.overview import Overview
from viewkeeper.planner.self_maintained.choosing import REASONS, is_automatic, storage_for
from viewkeeper.planner.self_maintained.kept_view import SELF_MAINTAINED, as_stored, kept_view
from viewkeeper.planner.self_maintained.planned import properties_of, reached_level
from viewkeeper.planner.stored_definitions import definition_of, sql_of
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.planner.summaries.refused import OF_SUMMARIES
from viewkeeper.planner.view_properties import LEVEL
from viewkeeper.sql.definition import RETENTION
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.sql.view import View
from viewkeeper.storage.self_maintained import storage_of

OTHER_COLUMNS = "the columns of what it is computed from have changed"
"""why a view is recreated that was not asked to be another one"""


def alter(keeper: Keeper, sql: str, also: Sequence[str] = ()) -> Alteration:
    """Create, keep, alter or reload a view; what was done. `also` has new definitions of views that read it."""
    plan = plan_alteration(Overview(HeldCommit(keeper.files, keeper.writer.last), keeper.sources), sql, also)
    match plan.alteration.kind:
        case "create":
            keeper.create(plan.sql)
        case "alter":
            assert not isinstance(plan.new, ComposedView)
            check_agreement(plan.new, keeper.relations(), keeper.files.spark)
            with keeper.new_commit() as commit:
                _alter_in_place(keeper, commit, plan)
        case "reload":
            reload_as(keeper, plan)
    return plan.alteration


def recreate(keeper: Keeper, name: str, stale: str) -> None:
    """Make a view again by its own definition, with those that read it, or with the lattice that it is in."""
    overview = Overview(HeldCommit(keeper.files, keeper.writer.last), keeper.sources)
    reload_as(keeper, plan_alteration(overview, sql_of(overview.catalog, name), stale=stale))


def _alter_in_place(keeper: Keeper, commit: Commit, plan: Plan) -> None:
    present, new = plan.present[0], plan.new
    assert not isinstance(new, ComposedView)
    if isinstance(new, SummaryView | Family):
        _alter_summary(keeper, commit, plan, new)
    elif SELF_MAINTAINED in present.properties:
        _alter_self_maintained(keeper, commit, plan, new)
    else:
        assert isinstance(new, View)
        _alter_join(keeper, commit, plan, new)


def _alter_join(keeper: Keeper, commit: Commit, plan: Plan, new: View) -> None:
    [present] = plan.present
    old = parse_definition(str(definition_of(present)), keeper.relations(), name=new.name)
    how = keeper.views.how(new, algorithm_before(present, old))
    reasons = _reasons_of(keeper, present.properties.get(REASONS, ()), new)
    commit.redefine(new.name, properties_for(keeper, how, reasons))
    commit.retain(new.name, dict(new.properties).get(RETENTION))


def _reasons_of(keeper: Keeper, before: tuple[str, ...], new: View | OuterJoinView) -> tuple[str, ...]:
    """Why a view has its storage, if that is left to viewkeeper."""
    if not is_automatic(new):
        return ()
    return tuple(before) or storage_for(new, keeper.sources.definitions(), {}).reasons


def _alter_self_maintained(keeper: Keeper, commit: Commit, plan: Plan, new: View | OuterJoinView) -> None:
    [present] = plan.present
    relations = as_stored(present, keeper.relations())
    before, view = kept_view(present, relations), parse_definition(new.sql, relations, name=new.name)
    assert isinstance(view, View | OuterJoinView)
    kept = replace(
        before,
        view=view,
        storage=storage_of(view, before.storage_name),
        level=reached_level(new),
        reasons=before.reasons if is_automatic(new) else (),
    )
    commit.redefine(new.name, properties_of(kept))
    for table in (*kept.tables, new.name):
        commit.retain(table, dict(new.properties).get(RETENTION))


def _alter_summary(keeper: Keeper, commit: Commit, plan: Plan, new: SummaryView | Family) -> None:
    """Its tables, and the hidden ones that were made for it, all of which know its definition."""
    properties, old = dict(new.properties), definition_of(plan.present[0])
    level = Level.COMPLETE if properties.get("consistency") == "complete" else Level.STRONG
    for name, table in keeper.writer.catalog.items():
        told = table.properties.get(SUMMARY)
        if table.group != plan.present[0].group or told is None or told["sql"] != old:
            continue
        others = {key: value for key, value in table.properties.items() if key not in OF_SUMMARIES}
        shown = {} if table.hidden else {**properties, LEVEL: str(level)}
        commit.redefine(name, {**others, **shown, SUMMARY: {**told, "sql": new.sql}})
        commit.retain(name, properties.get(RETENTION))
