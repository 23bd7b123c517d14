"""A bound aggregate query, and the summary tables that are made of it.

    core  =  π g0, g1, ..., a0, a1, ... ( σ conditions ( R_0 ⋈ ... ⋈ R_n-1 ) )

The core has one column per group and one per argument of an aggregate: all that a change must bring along.
"""

from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.sql.bound_select import BoundSelect, Item, as_condition
from viewkeeper.sql.definition import Definition
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.grouped_scope import GroupedScope
from viewkeeper.sql.summary_view import Aggregate, SummaryView
from viewkeeper.sql.view import OutputColumn, View

# Properties that are about the aggregate and not about its core.
_OF_THE_AGGREGATE = frozenset({"refresh", "minmax", "core"})


@dataclass(frozen=True)
class AggregateQuery:
    """An aggregate SELECT with its names bound: its groups, its aggregates, and `having`, a tree."""

    definition: Definition
    bound: BoundSelect
    groups: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]
    having: exp.Expr | None

    def scope(self, grouped: tuple[int, ...] | None = None) -> GroupedScope:
        """What the expressions of a table may use that has these groups of the family, or all."""
        return GroupedScope(self.groups, self.aggregates, grouped)

    def table(
        self, name: str, scope: GroupedScope, output: tuple[OutputColumn, ...], family: str | None = None
    ) -> SummaryView:
        """The summary table with these columns."""
        groups = self.groups if scope.grouped is None else tuple(self.groups[place] for place in scope.grouped)
        having = None
        if self.having is not None:
            having = as_condition(scope.over_groups(self.having, "HAVING"), written=self.having)
        return SummaryView(
            name=name,
            sql=self.definition.sql,
            core=self._core(name, groups),
            groups=groups,
            aggregates=self.aggregates,
            output=output,
            having=having,
            properties=self.definition.properties,
            family=family,
        )

    def _core(self, name: str, groups: tuple[Expression, ...]) -> View:
        arguments = dict.fromkeys(one.argument for one in self.aggregates if one.argument is not None)
        output = [OutputColumn(f"g{index}", group) for index, group in enumerate(groups)]
        output += [OutputColumn(f"a{index}", argument) for index, argument in enumerate(arguments)]
        if not output:
            # COUNT(*) of everything needs the rows and nothing in them, and a table has at least one column.
            output = [OutputColumn("one", Expression.from_node(exp.Literal.number(1)))]
        return View(
            name=name,
            sql=self.definition.sql,
            operands=self.bound.operands,
            conditions=self.bound.conditions,
            output=tuple(output),
            crossings=self.bound.crossings,
            properties=tuple(pair for pair in self.definition.properties if pair[0] not in _OF_THE_AGGREGATE),
        )


def item_over_groups(item: Item, scope: GroupedScope) -> Expression:
    """An item of SELECT in one table."""
    return Expression.from_node(scope.over_groups(item.node, f"the output column {item.name}"))


def summary_table(query: AggregateQuery) -> SummaryView:
    """The one table of a query without grouping sets."""
    scope = query.scope()
    output = tuple(OutputColumn(item.name, item_over_groups(item, scope)) for item in query.bound.items)
    return query.table(query.definition.name, scope, output)
