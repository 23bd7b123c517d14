"""GROUP BY as grouping sets.

    CUBE (a, b)       =  GROUPING SETS ((a, b), (a), (b), ())
    ROLLUP (a, b)     =  GROUPING SETS ((a, b), (a), ())
    x, CUBE (a, b)    =  GROUPING SETS ((x, a, b), (x, a), (x, b), (x))

A name in GROUP BY is a column of a table or, if none is called so, an item of SELECT; a number is an item by its place.
A name in HAVING is a column of a table if that is grouped by, and else an item.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

from sqlglot import exp

from viewkeeper.errors import DefinitionError, UnsupportedClause
from viewkeeper.sql.aggregate_calls import GROUPING, has_call
from viewkeeper.sql.syntax import position, spark_sql

_ANALYTIC = (exp.Cube, exp.Rollup, exp.GroupingSets)
MOST_DIMENSIONS = 8
MOST_SETS = 2**MOST_DIMENSIONS


@dataclass(frozen=True)
class GroupBy:
    """The expressions that are grouped by and, if there is a CUBE or the like, the sets of their indices.

    With `all_items` it is the items of SELECT that aggregate nothing, instead: GROUP BY ALL, and DISTINCT.
    """

    expressions: tuple[exp.Expr, ...] = ()
    sets: tuple[tuple[int, ...], ...] | None = None
    all_items: bool = False


def read_group_by(select: exp.Select, visible: Counter[str]) -> GroupBy:
    """What a SELECT groups by; `visible` has the number of columns that each bare name stands for in its tables."""
    if select.args.get("distinct"):
        _refuse_distinct(select)
        return GroupBy(all_items=True)
    group = select.args.get("group")
    if group is None:
        return GroupBy()
    if group.args.get("totals"):
        raise UnsupportedClause("WITH TOTALS is not supported in a view: Spark has none", "write WITH ROLLUP")
    if group.args.get("all") is not None:
        if group.expressions or not group.args["all"]:
            raise UnsupportedClause(
                "GROUP BY ALL and GROUP BY DISTINCT with a list are not supported in a view: Spark has neither",
                "write GROUP BY and the list, or GROUP BY ALL and no list",
            )
        return GroupBy(all_items=True)
    return _Reader(select, visible).group_by(group)


def _refuse_distinct(select: exp.Select) -> None:
    if select.args["distinct"].args.get("on"):
        raise UnsupportedClause(
            "DISTINCT ON is not supported in a view: which row it takes is not determined",
            "write GROUP BY, and MIN or MAX of the other columns",
        )
    for clause in ("group", "having"):
        if select.args.get(clause):
            name = {"group": "GROUP BY", "having": "HAVING"}[clause]
            raise UnsupportedClause(
                f"SELECT DISTINCT with {name} is not supported in a view: it aggregates twice",
                "leave DISTINCT out, and write it in the query that reads the view",
            )
    if any(has_call(item) for item in select.expressions):
        raise UnsupportedClause(
            "SELECT DISTINCT of an aggregate is not supported in a view: it is one row", "leave DISTINCT out"
        )


class _Reader:
    """Collects the expressions of GROUP BY in the order in which it first has them: that of the bits of GROUPING_ID."""

    def __init__(self, select: exp.Select, visible: Counter[str]) -> None:
        self.items = select.expressions
        self.visible = visible
        self.aliases = {item.alias.lower(): item.unalias() for item in self.items if isinstance(item, exp.Alias)}
        self.expressions: list[exp.Expr] = []

    def group_by(self, group: exp.Group) -> GroupBy:
        elements = group.expressions
        for name, kind in (("cube", exp.Cube), ("rollup", exp.Rollup)):
            if group.args.get(name):  # WITH CUBE and WITH ROLLUP are about the whole list
                elements = [kind(expressions=elements)]
        if group.args.get("grouping_sets"):  # GROUP BY a, b GROUPING SETS (...): the list only gives the order
            for element in elements:
                self.part(element)
            elements = group.args["grouping_sets"]
        choices = [self.sets(element) for element in elements]
        if prod(len(sets) for sets in choices) > MOST_SETS:
            raise UnsupportedClause(
                f"GROUP BY has {prod(len(sets) for sets in choices)} grouping sets, and each would be a table",
                f"name the ones that you need, at most {MOST_SETS}: GROUPING SETS ((a, b), (a), ())",
            )
        sets = tuple(tuple(index for part in chosen for index in part) for chosen in product(*choices))
        analytic = any(isinstance(element, _ANALYTIC) for element in elements)
        return GroupBy(tuple(self.expressions), sets if analytic else None)

    def sets(self, element: exp.Expr) -> list[tuple[int, ...]]:
        if isinstance(element, exp.GroupingSets):
            return [found for entry in element.expressions for found in self.sets(entry)]
        if not isinstance(element, _ANALYTIC):
            return [self.part(element)]
        parts = [self.part(part) for part in element.expressions]
        if isinstance(element, exp.Rollup):
            chosen = [parts[:length] for length in range(len(parts), -1, -1)]
        elif len(parts) > MOST_DIMENSIONS:
            raise UnsupportedClause(
                f"CUBE has {len(parts)} dimensions, and each of its {2 ** len(parts)} grouping sets would be a table",
                f"leave out all but {MOST_DIMENSIONS}, or name the ones that you need: GROUPING SETS ((a, b), (a), ())",
            )
        else:
            chosen = [list(some) for size in range(len(parts), -1, -1) for some in combinations(parts, size)]
        return [tuple(index for part in some for index in part) for some in chosen]

    def part(self, node: exp.Expr) -> tuple[int, ...]:
        """The indices of one element, which may be several expressions in parentheses."""
        node = node.unnest()
        if isinstance(node, exp.Tuple):
            return tuple(index for part in node.expressions for index in self.part(part))
        if isinstance(node, _ANALYTIC):
            raise UnsupportedClause(
                f"{type(node).__name__.upper()} inside another is not supported in a view",
                "write the sets out: GROUPING SETS ((a, b), (a), ())",
            )
        resolved = self.resolved(node)
        if resolved not in self.expressions:
            self.expressions.append(resolved)
        return (self.expressions.index(resolved),)

    def resolved(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Literal) and node.is_int:
            return self.item(int(node.name))
        unknown = {name for name in self.aliases if not self.visible[name]}
        for column in node.find_all(exp.Column):
            if _bare(column) in unknown:
                self.refuse_aggregate(self.aliases[column.name.lower()], column.name)
        return _replaced(node, {name: self.aliases[name] for name in unknown})

    def item(self, place: int) -> exp.Expr:
        if any(item.is_star for item in self.items):
            raise DefinitionError(
                f"GROUP BY {place} counts the items of SELECT, and one of them is *", "name the columns in GROUP BY"
            )
        if not 1 <= place <= len(self.items):
            raise DefinitionError(
                f"GROUP BY {place}: the items of SELECT are numbered from 1 to {len(self.items)}",
                "count again, or name the columns",
            )
        item: exp.Expr = self.items[place - 1].unalias().unnest()
        self.refuse_aggregate(item, str(place))
        return item.copy()

    def refuse_aggregate(self, item: exp.Expr, written: str) -> None:
        if has_call(item) or item.find(*GROUPING):
            raise DefinitionError(
                f"GROUP BY {written} is GROUP BY {spark_sql(item)}: an aggregate cannot be grouped by{position(item)}",
                f"leave {written} out of GROUP BY",
            )


def read_having(select: exp.Select, group_by: GroupBy, visible: Counter[str]) -> exp.Expr | None:
    """The condition of HAVING, in which names of items have become the items."""
    having = select.args.get("having")
    if having is None:
        return None
    plain = [item for item in select.expressions if group_by.all_items and not has_call(item)]
    grouped = {column.name.lower() for node in (*group_by.expressions, *plain) for column in node.find_all(exp.Column)}
    if any(item.is_star for item in plain):
        grouped |= visible.keys()
    items = {item.alias_or_name.lower(): item.unalias() for item in select.expressions if not item.is_star}
    return _replaced(
        having.this, {name: item for name, item in items.items() if visible[name] != 1 or name not in grouped}
    )


def _replaced(node: exp.Expr, items: Mapping[str, exp.Expr]) -> exp.Expr:
    """The tree with items of SELECT for bare names; inside an aggregate a name is always a column of a table."""

    def replaced(part: exp.Expr) -> exp.Expr:
        item = items.get(_bare(part))
        if item is None or part.find_ancestor(exp.AggFunc):
            return part
        item = item.unnest().copy()
        alone = part.parent is None or isinstance(item, exp.Column)
        return exp.paren(item) if not alone and isinstance(item, (exp.Binary, exp.Unary, exp.Predicate)) else item

    return node.transform(replaced)


def _bare(node: exp.Expr) -> str:
    """The name of a column that is not qualified, in lower case; '' for everything else."""
    return node.name.lower() if isinstance(node, exp.Column) and len(node.parts) == 1 else ""
