"""A select-project-join view, explained: the order in which each change is joined on its way to the view."""

from collections.abc import Mapping

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algorithms.registry import Transactions
from viewkeeper.mediator.choice import choose
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.sql.summary_view import readable
from viewkeeper.sql.view import Operand, View
from viewkeeper.warehouse.known_sources import KnownSources
from viewkeeper.warehouse.summaries.explanation import Step, Sweep
from viewkeeper.warehouse.view_properties import VIEWS


def maintenance(view: View, sources: KnownSources, before: str | None) -> Maintenance:
    """How a view is maintained, or would be; `before` is the algorithm that has maintained it."""
    if VIEWS in view.sources:
        return Maintenance(view, "batched-sweep")
    spanning = [name for name in view.sources if sources.definition(name).global_transactions]
    return choose(view, Transactions.GLOBAL if len(spanning) > 1 else Transactions.LOCAL, before=before)


def sweeps(how: Maintenance) -> tuple[Sweep, ...]:
    """One for each relation: joined first with those of its own source, there, then with what the others have."""
    parts = how.parts if VIEWS not in how.view.sources else None
    if parts is None:
        plan = JoinPlan(how.view)
        return tuple(Sweep(_called(start, how.view), _steps(plan, start)) for start in how.view.operands)
    joined = {
        local.name: " ⋈ ".join(operand.relation.name for operand in local.operands)
        for locals_ in parts.local_views.values()
        for local in locals_
    }
    over = JoinPlan(parts.assembly)
    found = []
    for whole in parts.assembly.operands:
        local = next(one for one in parts.local_views[whole.source] if one.name == whole.alias)
        inside, outside = JoinPlan(local), _steps(over, whole, joined)
        found += [Sweep(_called(start, local), (*_steps(inside, start), *outside)) for start in local.operands]
    return tuple(found)


def _steps(plan: JoinPlan, start: Operand, joined: Mapping[str, str] | None = None) -> tuple[Step, ...]:
    """The joins outwards from an operand; `joined` has what local views are made of, by their alias."""
    return tuple(
        Step(
            (joined or {}).get(hop.operand.alias) or _called(hop.operand, plan.view),
            hop.operand.source,
            (*(f"{left} = {right}" for left, right in hop.on), *(readable(condition) for condition in hop.where)),
        )
        for hop in plan.path(frozenset({start.index}))
    )


def _called(operand: Operand, view: View) -> str:
    """A relation, with its alias if it occurs twice."""
    name = operand.relation.name
    return name if len(view.operands_of(name)) == 1 else f"{name} {operand.alias}"
