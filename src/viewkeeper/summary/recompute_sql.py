"""A summary as one SELECT over its relations again: what it means, by no way through the lattice.

This is what an audit compares with, and rematerialization without the lattice.
"""

from collections.abc import Mapping

from sqlglot import exp

from viewkeeper.sql.evaluation import flat_name
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.summary_view import Aggregate, Function, SummaryView, aggregate_column, group_column
from viewkeeper.sql.syntax import spark_sql
from viewkeeper.summary.statements import quoted


def select_of_summary(view: SummaryView, tables: Mapping[str, str]) -> str:
    """The statement; `tables` has what stands for each relation in FROM."""
    groups = [spark_sql(group.node) for group in view.groups]
    meaning = {group_column(place): f"({sql})" for place, sql in enumerate(groups)}
    meaning |= {aggregate_column(place): _call(one) for place, one in enumerate(view.aggregates)}
    items = [f"{_written(column.expression, meaning)} AS {quoted(column.name)}" for column in view.output]
    listed = [f"{tables[operand.relation.name]} AS {quoted(operand.alias)}" for operand in view.core.operands]
    text = f"SELECT {', '.join(items)}\nFROM {' CROSS JOIN '.join(listed)}"
    if view.core.conditions:
        text += "\nWHERE " + " AND ".join(f"({spark_sql(one.node)})" for one in view.core.conditions)
    if groups:
        text += f"\nGROUP BY {', '.join(groups)}"
    if view.having is not None:
        text += f"\nHAVING {_written(view.having, meaning)}"
    return text


def _call(aggregate: Aggregate) -> str:
    if aggregate.argument is None:
        return "COUNT(*)"
    argument = spark_sql(aggregate.argument.node)
    if aggregate.function is Function.COUNT_DISTINCT:
        return f"COUNT(DISTINCT {argument})"
    return f"{aggregate.function.value.upper()}({argument})"


def _written(expression: Expression, meaning: Mapping[str, str]) -> str:
    """An expression over groups and aggregates, with these spelled out."""
    slots = {name: f"_vk_slot_{place}_" for place, name in enumerate(meaning)}
    text = spark_sql(
        expression.node.transform(
            lambda node: (
                exp.column(exp.to_identifier(slots[flat_name(node)], quoted=True))
                if isinstance(node, exp.Column)
                else node
            )
        )
    )
    for name, slot in slots.items():
        text = text.replace(quoted(slot), meaning[name])
    return text
