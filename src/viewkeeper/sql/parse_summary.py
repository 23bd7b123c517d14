"""From the SQL of a view to the form in which it is maintained: a join, an outer join, a summary table, or a family.

    parse_definition("SELECT city, SUM(qty) AS n FROM shop.sales GROUP BY city", catalog)

A SELECT aggregates if it has GROUP BY, HAVING, DISTINCT or an aggregate call; it is then split into its join and what
is computed from that. GROUP BY with CUBE, ROLLUP or GROUPING SETS gives a family. One with LEFT, RIGHT or FULL JOIN is
an outer join, and does not aggregate.
"""

from sqlglot import exp

from viewkeeper.errors import DefinitionError
from viewkeeper.sql.aggregate_calls import GROUPING, comparable, has_call, rewrite_calls
from viewkeeper.sql.aggregate_refusals import refuse_calls
from viewkeeper.sql.bound_select import BoundSelect, bind_select, refuse_unnamed
from viewkeeper.sql.definition import Definition, read_definition
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.family import family_of
from viewkeeper.sql.grouped_scope import collect_aggregates
from viewkeeper.sql.grouping import GroupBy, read_group_by, read_having
from viewkeeper.sql.names import bind_tables, visible_columns
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.parse import joined_view, refuse_disconnected
from viewkeeper.sql.parse_outer_join import has_outer_join, outer_join_view
from viewkeeper.sql.refusals import refuse_unsupported
from viewkeeper.sql.relation import Catalog
from viewkeeper.sql.summary_table import AggregateQuery, summary_table
from viewkeeper.sql.summary_view import Family, SummaryView, readable
from viewkeeper.sql.syntax import not_too_deep, position
from viewkeeper.sql.view import View


def parse_definition(
    sql: str, catalog: Catalog, *, name: str | None = None
) -> View | SummaryView | Family | OuterJoinView:
    """What a text defines: a CREATE MATERIALIZED VIEW, or a SELECT, which is then called `name`."""
    with not_too_deep():
        definition = read_definition(sql, name)
        if isinstance(definition.query, exp.Select) and aggregates(definition.query):
            return _summary(definition, catalog)
        if has_outer_join(definition.query):
            return outer_join_view(definition, catalog)
        return joined_view(definition, catalog)


def aggregates(select: exp.Select) -> bool:
    """Whether a SELECT makes a summary."""
    clauses = any(select.args.get(clause) for clause in ("group", "having", "distinct"))
    return clauses or has_call(select) or select.find(*GROUPING) is not None


def _summary(definition: Definition, catalog: Catalog) -> SummaryView | Family:
    select = refuse_unsupported(definition.query, aggregates=True)
    refuse_calls(select)
    rewrite_calls(select)
    refuse_unnamed(select)
    operands = bind_tables(select, catalog)
    visible = visible_columns(select, operands)
    group_by = read_group_by(select, visible)
    having = read_having(select, group_by, visible)
    for clause in ("group", "having", "distinct"):
        select.set(clause, None)
    bound = bind_select(select, operands, [*group_by.expressions, *([having] if having else [])])
    return _tables(definition, bound, group_by, bound.extra[-1] if having else None)


def _tables(
    definition: Definition, bound: BoundSelect, group_by: GroupBy, having: exp.Expr | None
) -> SummaryView | Family:
    written = [Expression.from_node(node.unnest()) for node in _grouped_nodes(bound, group_by)]
    for group in written:
        _refuse_group(group, in_sets=group_by.sets is not None)
    distinct = tuple(dict.fromkeys(written))
    # A constant makes no groups, unless there is nothing else: then there is no row as long as there are no rows below.
    groups = tuple(group for group in distinct if group.columns) or distinct
    nodes = [*(item.node for item in bound.items), *([having] if having else [])]
    query = AggregateQuery(definition, bound, groups, collect_aggregates(nodes), having)
    if group_by.sets is None:
        table = summary_table(query)
        refuse_disconnected(table.core)
        return table
    family = family_of(query, [tuple(groups.index(written[index]) for index in one) for one in group_by.sets])
    refuse_disconnected(family.members[0].view.core)
    return family


def _grouped_nodes(bound: BoundSelect, group_by: GroupBy) -> tuple[exp.Expr, ...]:
    if not group_by.all_items:
        return bound.extra[: len(group_by.expressions)]
    return tuple(item.node for item in bound.items if not has_call(item.node) and not item.node.find(*GROUPING))


def _refuse_group(group: Expression, *, in_sets: bool) -> None:
    if not group.type:
        raise DefinitionError(
            f"the type of {readable(group)} in GROUP BY is not known{position(group.node)}",
            f"CAST it: CAST({readable(group)} AS ...)",
        )
    if not comparable(group.type):
        raise DefinitionError(
            f"{readable(group)} is {group.type}, and values of that type cannot be grouped{position(group.node)}",
            f"group by a part of it, such as {readable(group)}['key']",
        )
    if in_sets and not group.columns:
        raise DefinitionError(
            f"the grouping sets have {group.sql}, which is the same for all rows", "leave it out of GROUP BY"
        )
