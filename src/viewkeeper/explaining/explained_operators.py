"""A view that is a plan of operators, explained: the rule of each node, what it stores, and what that costs."""

from viewkeeper.explaining.explanation import Advice, InWords
from viewkeeper.explaining.summary_explanation import Explanation
from viewkeeper.operators.plan import Placed
from viewkeeper.planner.composed.composed_view import ComposedView
from viewkeeper.planner.composed.naming import OPERATORS
from viewkeeper.planner.overview import Overview
from viewkeeper.sql.tree import Aggregate, Filter, Join, Limit, Recompute, Scan, Window

KIND = "query"


def explain_operators(overview: Overview, view: ComposedView, *, created: bool) -> Explanation:
    """How a view is maintained, or would be."""
    halt = overview.halts.get(view.name) if created else None
    reason = halt.reason if halt is not None else None
    return Explanation(
        view.name,
        KIND,
        created,
        view.sql,
        view.group,
        OPERATORS,
        str(view.level),
        "continuous",
        view.sources,
        view.relations,
        overview.rows(view.name) if created else None,
        overview.record.groups[view.group].last if created else None,
        reason,
        in_words=InWords(_nodes(overview, view), _level(view), (), None, _advice(view, reason)),
    )


def _nodes(overview: Overview, view: ComposedView) -> tuple[str, ...]:
    """One line for each node, from the relations up."""
    lines = []
    for number, placed in enumerate(view.plan.nodes, start=1):
        reads = ", ".join(str(place + 1) for place in placed.inputs)
        stored = [f"{table.name} ({_rows(overview, view, table.name)})" for table in placed.node.tables]
        text = f"{number}. {_operator(placed)}{f' of {reads}' if reads else ''}: {placed.node.rule}"
        lines.append(f"{text}; stored: {', '.join(stored)}" if stored else text)
    return tuple(lines)


def _rows(overview: Overview, view: ComposedView, table: str) -> str:
    rows = overview.rows(view.table_of(table))
    return "not loaded yet" if rows is None else f"{rows:,} rows"


def _operator(placed: Placed) -> str:
    match operator := placed.node.operator:
        case Scan():
            return f"{operator.relation} ({', '.join(operator.fields)})"
        case Filter():
            return f"filter {operator.condition}"
        case Join():
            on = " AND ".join(f"{one} = {other}" for one, other in operator.keys)
            also = f" and {operator.condition}" if operator.condition else ""
            return f"{operator.kind} join on {on or 'every pair'}{also}"
        case Aggregate():
            by = ", ".join(one.column.name for one in operator.keys) or "nothing"
            return f"aggregate by {by}"
        case Window():
            return f"window over partitions of {', '.join(operator.partition) or 'everything'}"
        case Limit():
            return (
                f"first {operator.count} rows" if operator.count is not None else f"rows from {operator.offset + 1} on"
            )
        case _:
            return type(operator).__name__.lower()


def _level(view: ComposedView) -> tuple[str, ...]:
    return (
        "it is computed from the changes of what it reads, in the same states: no source is queried",
        "complete: each transaction has its own state"
        if str(view.level) == "complete"
        else "strong: transactions that come together may be one state; 'consistency' = 'complete' keeps them apart",
    )


def _advice(view: ComposedView, halted: str | None) -> tuple[Advice, ...]:
    found = []
    if halted is not None:
        found.append(
            Advice(
                "halted", f"recreate {view.name}", "it is not maintained until then", f"viewkeeper reload {view.name}"
            )
        )
    for placed in view.plan.nodes:
        operator = placed.node.operator
        if isinstance(operator, Recompute):
            found.append(
                Advice(
                    "recompute",
                    "nothing: this query has no rule",
                    f"every change costs a whole computation: {operator.why}",
                )
            )
        if isinstance(operator, Window) and not operator.partition:
            found.append(
                Advice(
                    "one-partition", "add PARTITION BY", "without it every change computes the window of all rows again"
                )
            )
        if isinstance(operator, Join) and not operator.keys:
            found.append(
                Advice(
                    "no-key",
                    "join on an equality",
                    "without one every changed row is compared with all rows of the other side",
                )
            )
    return tuple(found)
