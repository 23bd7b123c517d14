"""Views as they follow from their sources, exact at a vector.

content     a view, to be stored for the first time or recreated
under       the relations under a view, to audit it
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.errors import UsageError
from viewkeeper.maintenance.context import Context
from viewkeeper.maintenance.images import images_at
from viewkeeper.maintenance.self_maintained.views import SelfMaintainedViews
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.messages import Position, Vector
from viewkeeper.planner.view_properties import VIEWS
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import View, columns_read


@contextmanager
def content_of(
    context: Context, alone: SelfMaintainedViews, how: Maintenance, vector: Vector
) -> Iterator[tuple[Any, dict[str, Position]]]:
    """The rows of a view at a vector, as they are stored, and the vector."""
    base = _base_of(context, alone, how)
    relations = {n: one for over in base.values() for n, one in over.relations.items() if one.source != VIEWS}
    with images_at(context, relations, vector, _columns_of(base.values())) as (contents, at):
        if VIEWS in how.view.sources:
            for name, over in base.items():
                contents[name] = alone.evaluated(over, contents)
        for source, views in (how.parts.local_views if how.parts else {}).items():
            for local in views:
                contents[f"{source}.{local.name}"] = JoinPlan(local).evaluate(contents)
        yield JoinPlan(how.stored).evaluate(contents), at


@contextmanager
def images_under(
    context: Context, alone: SelfMaintainedViews, how: Maintenance, vector: Vector
) -> Iterator[tuple[dict[str, Any], dict[str, Relation], Mapping[str, View | OuterJoinView]]]:
    """The relations of sources under a view at a vector, what they are, and the views between, in order."""
    base = _base_of(context, alone, how)
    relations = {n: one for over in base.values() for n, one in over.relations.items() if one.source != VIEWS}
    with images_at(context, relations, vector, _columns_of(base.values())) as (contents, _):
        yield contents, relations, base if VIEWS in how.view.sources else {}


def _base_of(context: Context, alone: SelfMaintainedViews, how: Maintenance) -> Mapping[str, View | OuterJoinView]:
    """The views that must be computed to compute a view over views, in order; or the view itself."""
    if VIEWS not in how.view.sources:
        return {how.view.name: how.view}
    kept, needed = context.kept(), list(how.view.relations)
    for name in needed:
        needed += [other for other in (kept[name].reads if name in kept else ()) if other not in needed]
    # Those that are maintained by what is stored for them read no other views.
    stored = {name: one.view for name, one in alone.views().items() if name in needed}
    # A reader that was right before what it reads would get what that has missed twice when that is reloaded.
    halts = context.halts.all()
    if halted := [name for name in needed if name in halts or (name not in stored and name not in kept)]:
        raise UsageError(f"{how.view.name} reads {halted[0]}, which is halted", f"reload {halted[0]} first")
    return {**stored, **{name: one.how.view for name, one in kept.items() if name in needed}}


def _columns_of(views: Iterable[View | OuterJoinView]) -> dict[str, frozenset[str]] | None:
    """The columns of relations that views depend on; None if that is all of them."""
    found: dict[str, frozenset[str]] = {}
    for view in views:
        if not isinstance(view, View):
            return None
        for name, columns in columns_read(view).items():
            found[name] = found.get(name, frozenset()) | columns
    return found
