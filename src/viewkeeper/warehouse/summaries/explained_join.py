"""A select-project-join view, explained: the order in which each change is joined on its way to the view."""

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
    """One for each relation; relations of one source that are joined there are one."""
    parts = how.parts
    view = parts.assembly if parts is not None else how.view
    joined = {
        f"{source}.{local.name}": " ⋈ ".join(operand.relation.name for operand in local.operands)
        for source, locals_ in (parts.local_views if parts is not None else {}).items()
        for local in locals_
    }

    def called(operand: Operand) -> str:
        name = joined.get(operand.relation.name, operand.relation.name)
        return name if len(view.operands_of(operand.relation.name)) == 1 else f"{name} {operand.alias}"

    plan = JoinPlan(view)
    return tuple(
        Sweep(
            called(start),
            tuple(
                Step(
                    called(hop.operand),
                    hop.operand.source,
                    (
                        *(f"{left} = {right}" for left, right in hop.on),
                        *(readable(condition) for condition in hop.where),
                    ),
                )
                for hop in plan.path(frozenset({start.index}))
            ),
        )
        for start in view.operands
    )
