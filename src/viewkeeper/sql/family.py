"""The tables of a CUBE, a ROLLUP or GROUPING SETS: one per grouping set.

    GROUP BY ROLLUP (region, city)   is the family   v_region_city, v_region, v_total

The family is the union of its members. What a member does not group by is NULL in the family's rows, so an item that
is made of nothing else is a constant there: it is no column of the member, and comes back in `padded`.
"""

import re
from dataclasses import replace

from viewkeeper.errors import DefinitionError
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.summary_table import AggregateQuery, item_over_groups
from viewkeeper.sql.summary_view import Family, Member, group_column, readable
from viewkeeper.sql.view import OutputColumn


def family_of(query: AggregateQuery, sets: list[tuple[int, ...]]) -> Family:
    """One member for each different set of groups."""
    _refuse_hidden_groups(query)
    distinct = dict.fromkeys(tuple(sorted(set(one))) for one in sets)
    names = _group_names(query)
    taken: set[str] = set()
    members = []
    for grouped in sorted(distinct, key=lambda one: -len(one)):
        name = _free("_".join([query.definition.name, *([names[place] for place in grouped] or ["total"])]), taken)
        taken.add(name)
        member = _member(query, name, grouped)
        view = replace(member.view, repeated_sets=len(distinct) < len(sets))
        members.append(replace(member, view=view))
    definition = query.definition
    return Family(definition.name, definition.sql, tuple(members), definition.properties)


def _member(query: AggregateQuery, name: str, grouped: tuple[int, ...]) -> Member:
    scope = query.scope(grouped)
    output: list[OutputColumn] = []
    padded: list[tuple[str, str]] = []
    for item in query.bound.items:
        expression = item_over_groups(item, scope)
        if expression.columns:
            output.append(OutputColumn(item.name, expression))
            padded.append((item.name, Expression.column(item.name).sql))
        else:
            padded.append((item.name, expression.sql))
    if not output:
        raise DefinitionError(
            f"the table {name} of the family {query.definition.name} would have no columns: it has one row per group, "
            "and SELECT shows nothing of it",
            "add COUNT(*) AS n",
        )
    return Member(query.table(name, scope, tuple(output), query.definition.name), tuple(padded))


def _refuse_hidden_groups(query: AggregateQuery) -> None:
    """Every group must be in SELECT: else the rows of one member look like those of another."""
    scope = query.scope()
    shown = set[int]().union(*(scope.mentioned(item.node) for item in query.bound.items))
    for place, group in enumerate(query.groups):
        if place not in shown:
            name = readable(group)
            raise DefinitionError(
                f"{query.definition.name} groups by {name} and does not show it: the rows of its grouping sets could "
                "not be distinguished",
                f"add {name} to SELECT, or GROUPING_ID() AS grouping_set",
            )


def _group_names(query: AggregateQuery) -> list[str]:
    """The name of each group in names of tables: that of its output column, or of its column."""
    scope = query.scope(tuple(range(len(query.groups))))
    names: dict[str, str] = {}
    for item in query.bound.items:
        expression = item_over_groups(item, scope)
        if expression.is_column:
            names.setdefault(expression.is_column, item.name)
    for place, group in enumerate(query.groups):
        columns = sorted(group.columns)
        own = columns[0].partition(".")[2] if len(columns) == 1 else f"group{place + 1}"
        names.setdefault(group_column(place), own)
    return [re.sub(r"\W", "_", names[group_column(place)]).lower() for place in range(len(query.groups))]


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free
