"""A summary as one SELECT over its relations again: what it means, by no way through the lattice.

This is what an audit compares with, and rematerialization without the lattice.
"""

from collections.abc import Mapping

from viewkeeper.sql.summary_view import Aggregate, Function, SummaryView, aggregate_column, group_column
from viewkeeper.sql.syntax import spark_sql
from viewkeeper.sql.type_families import Family, type_named
from viewkeeper.sql.view import OutputColumn
from viewkeeper.summary.measures import SPREADS
from viewkeeper.summary.spread import difference
from viewkeeper.summary.statements import quoted, spelled_out

ADDED_UP = 1e-12
"""what is lost of a sum of DOUBLE, of the sum of absolute values"""
NO_DIFFERENCE = 1e-14
"""what may be left of the difference of two equal values, of their size"""


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
    loses of large values, all of which are DOUBLE to it, it does not lose of these. Beside each column that is
    rounded is how far it may be off."""
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
    shown += [
        f"CAST({_tolerance(view, view.output[place])} AS DOUBLE) AS {tolerance_column(place)}"
        for place in rounded_columns(view)
    ]
    text = f"SELECT {', '.join(shown)}\nFROM (SELECT {', '.join(['*', *centers])} FROM (\n{inner}\n))"
    if groups:
        text += f"\nGROUP BY {', '.join(groups)}"
    if view.having is not None:
        text += f"\nHAVING {spelled_out(view.having, meaning)}"
    return text


def rounded_columns(view: SummaryView) -> tuple[int, ...]:
    """The output columns, by place, whose aggregates depend on the order in which DOUBLE are added up."""
    found = {aggregate_column(place) for place, one in enumerate(view.aggregates) if _is_rounded(one)}
    return tuple(place for place, column in enumerate(view.output) if column.expression.columns & found)


def tolerance_column(place: int) -> str:
    """What an output column may be off, in `centered_select`."""
    return f"_vk_tolerance_{place}"


def _is_rounded(one: Aggregate) -> bool:
    if one.argument is None:
        return False
    floating = type_named(one.argument.type).family is Family.FLOATING
    return one.function in SPREADS or (floating and one.function in (Function.SUM, Function.AVG))


def _tolerance(view: SummaryView, column: OutputColumn) -> str:
    """SUM and AVG: of the size of what is added up. VAR and STDDEV: that of differences which should be 0."""
    parts = []
    for place, one in enumerate(view.aggregates):
        if aggregate_column(place) not in column.expression.columns or not _is_rounded(one):
            continue
        size = f"ABS(CAST(`a{place}` AS DOUBLE))"
        if one.function in (Function.SUM, Function.AVG):
            parts.append(f"COALESCE({one.function.value.upper()}({size}), 0D) * {ADDED_UP!r}D")
        else:
            power = 2 if one.function in (Function.VAR_SAMP, Function.VAR_POP) else 1
            parts.append(f"POWER(COALESCE(MAX({size}), 0D) * {NO_DIFFERENCE!r}D, {power})")
    return " + ".join(parts)


def _call(aggregate: Aggregate, argument: str | None = None) -> str:
    if aggregate.argument is None:
        return "COUNT(*)"
    argument = argument or spark_sql(aggregate.argument.node)
    if aggregate.function is Function.COUNT_DISTINCT:
        return f"COUNT(DISTINCT {argument})"
    return f"{aggregate.function.value.upper()}({argument})"
