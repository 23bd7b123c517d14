"""A summary as one SELECT over its relations again: what it means, by no way through the lattice.

This is what an audit compares with, and rematerialization without the lattice.
"""

from collections.abc import Mapping

from viewkeeper.sql.summary_view import Aggregate, Function, SummaryView, aggregate_column, group_column
from viewkeeper.sql.syntax import spark_sql
from viewkeeper.summary.statements import quoted, spelled_out


def select_of_summary(view: SummaryView, tables: Mapping[str, str]) -> str:
    """The statement; `tables` has what stands for each relation in FROM."""
    groups = [spark_sql(group.node) for group in view.groups]
    meaning = {group_column(place): f"({sql})" for place, sql in enumerate(groups)}
    meaning |= {aggregate_column(place): _call(one) for place, one in enumerate(view.aggregates)}
    items = [f"{spelled_out(column.expression, meaning)} AS {quoted(column.name)}" for column in view.output]
    listed = [f"{tables[operand.relation.name]} AS {quoted(operand.alias)}" for operand in view.core.operands]
    text = f"SELECT {', '.join(items)}\nFROM {' CROSS JOIN '.join(listed)}"
    if view.core.conditions:
        text += "\nWHERE " + " AND ".join(f"({spark_sql(one.node)})" for one in view.core.conditions)
    if groups:
        text += f"\nGROUP BY {', '.join(groups)}"
    if view.having is not None:
        text += f"\nHAVING {spelled_out(view.having, meaning)}"
    return text


def _call(aggregate: Aggregate) -> str:
    if aggregate.argument is None:
        return "COUNT(*)"
    argument = spark_sql(aggregate.argument.node)
    if aggregate.function is Function.COUNT_DISTINCT:
        return f"COUNT(DISTINCT {argument})"
    return f"{aggregate.function.value.upper()}({argument})"
