"""The root of some tables: what all of them can be derived from, over the fact alone.

    root  =  γ their groups of the fact, the foreign keys of what they join; their functions of the fact ( fact )

Stored, it stands for the fact where dimensions change. Of the changes alone it is the pre-aggregation of figure 7:
these are added up by the foreign keys first, and the dimensions are joined afterwards. Spark does so where it is
expected to pay; on the driver a join in memory costs less than adding up once more.
"""

from collections.abc import Iterable, Sequence

from viewkeeper.sql.expressions import Expression
from viewkeeper.summary.derivation import Derivation, derive
from viewkeeper.summary.measures import Measure
from viewkeeper.summary.node import Node
from viewkeeper.summary.star import FACT


def preaggregation(edge: Derivation) -> tuple[Derivation, Derivation]:
    """An edge from the changes in two: added up by what it needs of the fact, then joined with the dimensions."""
    prepared = root_of(f"pc_{edge.below.name}", [edge.below])
    first, then = derive(prepared, edge.above), derive(edge.below, prepared)
    assert first is not None
    assert then is not None
    return first, then


def root_of(name: str, nodes: Sequence[Node]) -> Node:
    """The smallest table over the fact alone that all of these can be derived from."""
    groups: list[Expression] = []
    measures: list[Measure] = []
    where = frozenset.intersection(*(_of_fact(node.where) for node in nodes))
    for node in nodes:
        for expression in (*node.groups, *sorted(node.where - where, key=str)):
            groups += _fact_parts(expression)
        for dimension in node.dimensions:
            groups += [
                Expression.column(column, type)
                for (column, _), type in zip(dimension.on, dimension.types, strict=True)
                if column.startswith(f"{FACT}.")
            ]
        for measure in node.measures:
            if _of_fact({measure.expression}):
                measures.append(measure)
            else:
                groups += _fact_parts(measure.expression)
    columns = {expression: f"g{index}" for index, expression in enumerate(dict.fromkeys(groups))}
    # A measure over the groups follows from them.
    stored = [one for one in dict.fromkeys(measures) if one.expression not in columns]
    return Node(name, nodes[0].fact, (), where, columns, {one: f"m{i}" for i, one in enumerate(stored)}, hidden=True)


def _fact_parts(expression: Expression) -> list[Expression]:
    """What is needed of the fact: the whole expression, or the columns of the fact in it."""
    if _of_fact({expression}):
        return [expression] if expression.columns else []
    types = dict(expression.column_types)
    return [Expression.column(name, types[name]) for name in sorted(types) if name.startswith(f"{FACT}.")]


def _of_fact(expressions: Iterable[Expression]) -> frozenset[Expression]:
    return frozenset(one for one in expressions if all(column.startswith(f"{FACT}.") for column in one.columns))
