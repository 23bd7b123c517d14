"""Facts of a join that its explanation rests on: how relations are found, their sizes, what only Spark evaluates."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.errors import ExpressionError
from viewkeeper.explaining.situations import JoinedRelation
from viewkeeper.explaining.sizes import stored_joins
from viewkeeper.planner.overview import Overview
from viewkeeper.planner.self_maintained.automatic import JoinFacts
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.summary_view import readable
from viewkeeper.sql.view import Operand, View


def asked(view: View | OuterJoinView, name: str) -> str | None:
    """What a property says; None if it leaves the choice to viewkeeper."""
    asked = dict(view.properties).get(name)
    return None if asked == "auto" else asked


def with_known_sizes(facts: JoinFacts, sizes: Mapping[str, int], rows: int | None) -> JoinFacts:
    """The same with the sizes that the warehouse knows."""
    return replace(facts, relations=tuple(replace(one, rows=sizes.get(one.name)) for one in facts.relations), rows=rows)


def joined_relations(overview: Overview, view: View | OuterJoinView, facts: JoinFacts) -> tuple[JoinedRelation, ...]:
    """The relations of a view, and how the changes of others find them."""
    numbered = {name for kept in stored_joins(overview) for name in kept.view.keyless}
    return tuple(
        JoinedRelation(
            operand.relation.name,
            operand.source,
            one.quick,
            operand.relation.key,
            tuple(_own_names(by) for by in _ways(view, operand)),
            operand.relation.name not in numbered,
            one.transactions_per_hour,
            "`" if one.kind in ("mysql", "mariadb") else '"',
        )
        for operand, one in zip(view.operands, facts.relations, strict=True)
    )


def _own_names(columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(column.partition(".")[2] for column in columns)


def _ways(view: View | OuterJoinView, operand: Operand) -> list[tuple[str, ...]]:
    """The columns by which an operand is looked up, from each of the others."""
    if isinstance(view, OuterJoinView):
        pairs = [[c for pair in step.equalities for c in pair if c in operand.columns] for step in view.steps]
        return [tuple(columns) for columns in pairs if columns]
    plan = JoinPlan(view)
    hops = [hop for start in view.operands for hop in plan.path(frozenset({start.index})) if hop.operand == operand]
    ways = dict.fromkeys(tuple(right for _, right in hop.on) for hop in hops)
    # Who writes CROSS JOIN wants all rows.
    wanted = any(operand.index in pair for pair in view.crossings)
    return [by for by in ways if by or not wanted]


def only_spark(view: View | OuterJoinView) -> str | None:
    """An expression of a view that only Spark evaluates, if there is one."""
    columns = tuple(column for operand in view.operands for column in operand.columns)
    conditions = view.conditions if isinstance(view, View) else view.where
    for expression in (*conditions, *(column.expression for column in view.output)):
        try:
            expression.compile(columns)
        except ExpressionError:
            return readable(expression)
    return None


def room_of(facts: JoinFacts) -> int | None:
    """Bytes of the needed columns of all relations, and of pointers for each row of the view; None if not known."""
    if facts.rows is None or any(one.rows is None for one in facts.relations):
        return None
    pointers = sum(one.pointer_bytes for one in facts.relations)
    return sum((one.rows or 0) * one.row_bytes for one in facts.relations) + facts.rows * pointers
