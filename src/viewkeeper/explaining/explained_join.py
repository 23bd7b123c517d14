"""A select-project-join view, explained: the order in which each change is joined on its way to the view."""

from collections.abc import Mapping
from dataclasses import replace

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.explaining.summary_explanation import Step, Sweep
from viewkeeper.mediator.choice import choose
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.planner.known_sources import KnownSources
from viewkeeper.planner.view_properties import VIEWS
from viewkeeper.sources.local_queries import together
from viewkeeper.sql.summary_view import readable
from viewkeeper.sql.view import Operand, View


def maintenance(view: View, sources: KnownSources, before: str | None) -> Maintenance:
    """How a view is maintained, or would be; `before` is the algorithm that has maintained it."""
    if VIEWS in view.sources:
        return Maintenance(view, "batched-sweep")
    return choose(view, sources.transactions(view.sources), before=before)


def sweeps(how: Maintenance) -> tuple[Sweep, ...]:
    """One for each relation: joined first with those of its own source, there, then with what the others have."""
    parts = how.parts if VIEWS not in how.view.sources else None
    if parts is None:
        plan = JoinPlan(how.view)
        return tuple(Sweep(_called(start, how.view), _steps(plan, start)) for start in how.view.operands)
    local_views = {local.name: local for views in parts.local_views.values() for local in views}
    over = JoinPlan(parts.assembly)
    found = []
    for whole in parts.assembly.operands:
        local = local_views[whole.alias]
        inside, outside = JoinPlan(local), _steps(over, whole, local_views)
        for start in local.operands:
            apart = together(inside, start.index)
            within = [replace(step, together=so) for step, so in zip(_steps(inside, start), apart, strict=True)]
            found.append(Sweep(_called(start, local), (*within, *outside), len(within)))
    return tuple(found)


def _steps(plan: JoinPlan, start: Operand, local_views: Mapping[str, View] | None = None) -> tuple[Step, ...]:
    """The joins outwards from an operand; `local_views` are those that operands stand for, by alias."""
    locals_ = local_views or {}
    # In words, columns are those of the relations, and not of the local views that carry them.
    own = {
        f"{alias}.{output.name}": output.expression.is_column or output.name
        for alias, local in locals_.items()
        for output in local.output
    }
    steps = []
    for hop in plan.path(frozenset({start.index})):
        on = [(own.get(left, left), own.get(right, right)) for left, right in hop.on]
        local = locals_.get(hop.operand.alias)
        operands = local.operands if local is not None else (hop.operand,)
        by, key = tuple(right for _, right in on), operands[0].key
        steps.append(
            Step(
                " ⋈ ".join(_called(one, local if local is not None else plan.view) for one in operands),
                hop.operand.source,
                (*(f"{left} = {right}" for left, right in on), *(readable(one) for one in hop.where)),
                by,
                len(operands) == 1 and key is not None and set(by) >= set(key),
            )
        )
    return tuple(steps)


def _called(operand: Operand, view: View) -> str:
    """A relation, with its alias if it occurs twice."""
    name = operand.relation.name
    return name if len(view.operands_of(name)) == 1 else f"{name} {operand.alias}"
