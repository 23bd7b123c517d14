"""What SELECT and HAVING say, as expressions over groups and aggregates.

    SELECT city, SUM(qty) / COUNT(*) ... GROUP BY city     is     g.0, a.0 / a.1     where g = (city), a = (SUM, COUNT)

In a grouping set without some group that group is NULL, and GROUPING of it is 1: the bits of GROUPING_ID, the first
group first.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from viewkeeper.errors import DefinitionError
from viewkeeper.sql.aggregate_calls import GROUPING, aggregate_of, is_call
from viewkeeper.sql.expressions import Expression, qualified
from viewkeeper.sql.summary_view import Aggregate, aggregate_column, group_column, readable
from viewkeeper.sql.syntax import position
from viewkeeper.sql.type_families import parse_type


@dataclass(frozen=True)
class GroupedScope:
    """The groups and aggregates of one table. `grouped` are the groups that it has, if it is one of a family."""

    groups: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]
    grouped: tuple[int, ...] | None = None

    @cached_property
    def _places(self) -> dict[str, int]:
        # A constant is the same with and without groups, and some arguments of functions must stay constants.
        return {group.sql: index for index, group in enumerate(self.groups) if group.columns}

    def over_groups(self, node: exp.Expr, where: str) -> exp.Expr:
        """The tree with groups and aggregates in place of the columns of tables; `where` names it in errors."""

        def replaced(part: exp.Expr) -> exp.Expr:
            if is_call(part):
                aggregate = aggregate_of(part)
                return _column(aggregate_column(self.aggregates.index(aggregate)), aggregate.type)
            if isinstance(part, GROUPING):
                return self._grouping(part)
            if isinstance(part, exp.Condition) and (place := self._place(part)) is not None:
                return self._group(place)
            if isinstance(part, exp.Column):
                self._refuse_column(part, where)
            return part

        return node.transform(replaced)

    def mentioned(self, node: exp.Expr) -> set[int]:
        """The groups that a tree shows, or tells about by GROUPING."""
        found: set[int] = set()
        for part in node.walk(prune=is_call):
            if isinstance(part, exp.GroupingId) and not part.expressions:
                return set(range(len(self.groups)))
            if isinstance(part, exp.Condition) and (place := self._place(part)) is not None:
                found.add(place)
        return found

    def _place(self, node: exp.Expr) -> int | None:
        return self._places.get(Expression.from_node(node.unnest()).sql)

    def _group(self, place: int) -> exp.Expr:
        type = self.groups[place].type
        if self.grouped is None or place in self.grouped:
            index = place if self.grouped is None else self.grouped.index(place)
            return _column(group_column(index), type)
        return exp.cast(exp.Null(), parse_type(type) or type)

    def _grouping(self, node: exp.Expr) -> exp.Expr:
        name = "GROUPING_ID" if isinstance(node, exp.GroupingId) else "GROUPING"
        if self.grouped is None:
            raise DefinitionError(
                f"{name} without grouping sets{position(node)}", "it is for GROUP BY with CUBE, ROLLUP or GROUPING SETS"
            )
        if name == "GROUPING" and len(node.expressions) != 1:
            raise DefinitionError(
                f"GROUPING takes one group, and has {len(node.expressions)}{position(node)}", "write GROUPING_ID(a, b)"
            )
        places = [self._place(part) for part in node.expressions] or list(range(len(self.groups)))
        for part, place in zip(node.expressions, places, strict=False):
            if place is None:
                raise DefinitionError(
                    f"{name} of {readable(Expression.from_node(part))}, which is not grouped by{position(part)}",
                    f"the groups are {', '.join(map(readable, self.groups))}",
                )
        value = sum((place not in self.grouped) << shift for shift, place in enumerate(reversed(places)))
        type = "TINYINT" if name == "GROUPING" else "BIGINT"
        return exp.cast(exp.Literal.number(value), type)

    def _refuse_column(self, column: exp.Column, where: str) -> None:
        # Only `column.name`: it is what the text most likely says.
        raise DefinitionError(
            f"the column {column.name} in {where} is neither grouped by nor aggregated{position(column)}",
            f"add {column.name} to GROUP BY, or aggregate it, for example MIN({column.name})",
        )


def _column(name: str, type: str) -> exp.Column:
    return qualified(name, parse_type(type))


def collect_aggregates(nodes: Iterable[exp.Expr]) -> tuple[Aggregate, ...]:
    """Every aggregate that the trees call, once, in the order of the text."""
    calls = (part for node in nodes for part in node.walk(bfs=False) if is_call(part))
    return tuple(dict.fromkeys(aggregate_of(call) for call in calls))
