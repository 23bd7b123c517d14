"""A summary as one SELECT over its relations again: what it means, by no way through the lattice.

This is what an audit compares with, and rematerialization without the lattice.
"""

from collections.abc import Mapping

from viewkeeper.sql.summary_view import Aggregate, Function, SummaryView, aggregate_column, group_column
from viewkeeper.sql.syntax import spark_sql
from viewkeeper.sql.type_families import Family, type_named
from viewkeeper.summary.measures import SPREADS
from viewkeeper.summary.spread import difference
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


def centered_select(view: SummaryView, tables: Mapping[str, str]) -> str:
    """The same, with VAR and STDDEV over differences from the mean of the group, or from its least value: what Spark
    loses of large values, all of which are DOUBLE to it, it does not lose of these."""
    groups = [f"`g{place}`" for place in range(len(view.groups))]
    items = [f"{spark_sql(group.node)} AS {name}" for group, name in zip(view.groups, groups, strict=True)]
    centers, meaning = [], {group_column(place): name for place, name in enumerate(groups)}
    for place, one in enumerate(view.aggregates):
        value = f"`a{place}`"
        if one.argument is not None:
            items.append(f"{spark_sql(one.argument.node)} AS {value}")
        if one.function in SPREADS and one.argument is not None:
            by = f"PARTITION BY {', '.join(groups)}" if groups else ""
            # Of exact numbers the least is one of them; their mean may need more digits than there are.
            exact = type_named(one.argument.type).family is not Family.FLOATING
            centers.append(f"{'MIN' if exact else 'AVG'}({value}) OVER ({by}) AS `c{place}`")
            double = f"CAST({value} AS DOUBLE) - CAST(`c{place}` AS DOUBLE)"
            value = difference(value, f"`c{place}`") if exact else double
        meaning[aggregate_column(place)] = _call(one, value)
    listed = [f"{tables[operand.relation.name]} AS {quoted(operand.alias)}" for operand in view.core.operands]
    inner = f"SELECT {', '.join(items)}\nFROM {' CROSS JOIN '.join(listed)}"
    if view.core.conditions:
        inner += "\nWHERE " + " AND ".join(f"({spark_sql(one.node)})" for one in view.core.conditions)
    shown = [f"{spelled_out(column.expression, meaning)} AS {quoted(column.name)}" for column in view.output]
    text = f"SELECT {', '.join(shown)}\nFROM (SELECT {', '.join(['*', *centers])} FROM (\n{inner}\n))"
    if groups:
        text += f"\nGROUP BY {', '.join(groups)}"
    if view.having is not None:
        text += f"\nHAVING {spelled_out(view.having, meaning)}"
    return text


def spread_columns(view: SummaryView) -> tuple[int, ...]:
    """The output columns, by place, that have VAR or STDDEV in them."""
    found = {aggregate_column(place) for place, one in enumerate(view.aggregates) if one.function in SPREADS}
    return tuple(place for place, column in enumerate(view.output) if column.expression.columns & found)


def _call(aggregate: Aggregate, argument: str | None = None) -> str:
    if aggregate.argument is None:
        return "COUNT(*)"
    argument = argument or spark_sql(aggregate.argument.node)
    if aggregate.function is Function.COUNT_DISTINCT:
        return f"COUNT(DISTINCT {argument})"
    return f"{aggregate.function.value.upper()}({argument})"
