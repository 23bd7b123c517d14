"""Why a stored table does not answer a query: what is missing in it, item by item.

Each part of the query is requested by itself, as a query that asks for nothing else would be.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.summary_view import readable
from viewkeeper.summary.answering import StoredTables, way_from
from viewkeeper.summary.defined import Defined
from viewkeeper.summary.measures import ExtremeFunction, Measure
from viewkeeper.summary.node import Node

_CALLS: dict[ExtremeFunction, str] = {
    "min": "MIN({})",
    "max": "MAX({})",
    "distinct": "COUNT(DISTINCT {})",
    "spread": "VAR({})",
}


@dataclass(frozen=True)
class Unfit:
    """A stored table that does not answer, and everything that it lacks."""

    table: str
    rows: int
    missing: tuple[str, ...]


def unfit(asked: Defined, stored: Iterable[StoredTables]) -> list[Unfit]:
    """The tables over the same fact that users know of and that do not answer, the closest first."""
    found = [
        Unfit(node.name, one.rows[node.name], tuple(dict.fromkeys(_missing(asked, node, one))))
        for one in stored
        for node in one.nodes
        if node.fact == asked.node.fact and not node.hidden and way_from(asked, node, one) is None
    ]
    return sorted(found, key=lambda one: (len(one.missing), one.rows))


def _missing(asked: Defined, node: Node, stored: StoredTables) -> Iterator[str]:
    query = asked.node
    for dimension in node.dimensions:
        if dimension.path not in query.paths:
            yield f"it joins {dimension.short}, so that facts without a row there are not in it"
    for condition in sorted(node.where - query.where, key=str):
        yield f"it has only rows with {readable(condition)}"
    # As if it had everything that is said above, so that the rest can be distinguished from it.
    node = replace(
        node,
        where=node.where & query.where,
        dimensions=tuple(one for one in node.dimensions if one.path in query.paths),
    )
    bare = replace(asked, node=replace(query, where=node.where, groups={}, measures={}), extremes=())
    for dimension in query.dimensions:
        if dimension.path not in node.paths:
            reached = tuple(one for one in query.dimensions if one.path in node.paths or one == dimension)
            one = replace(bare, node=replace(bare.node, dimensions=reached))
            if dimension.relation.name not in stored.copies:
                yield f"{dimension.short} is not stored with it"
            elif way_from(one, node, stored) is None:
                keys = ", ".join(column.partition(".")[2] for column, _ in dimension.on)
                yield f"it does not group by {keys}, which {dimension.short} is joined by"

    def lacks(part: Defined) -> bool:
        return way_from(part, node, stored) is None

    if lacks(bare):
        # Without its dimensions nothing else can be told.
        return
    for group in query.groups:
        if lacks(_with(bare, groups={group: "g"})):
            yield f"it does not group by {readable(group)}"
    for condition in sorted(query.where - node.where, key=str):
        if lacks(_with(bare, where=node.where | {condition})):
            yield f"it does not group by {_columns(condition)}, which the condition {readable(condition)} is about"
    for aggregate in asked.view.aggregates:
        if aggregate.argument is None:
            continue
        argument = aggregate.argument.renamed(asked.star.renaming)
        needed = [m for m in query.measures if m.expression == argument or m.of == argument]
        if any(lacks(_with(bare, measures={m.counted: "n", m: "m"})) for m in needed):
            yield f"it has no {aggregate.name}"
    for _, function, value in asked.extremes:
        if lacks(replace(bare, extremes=(("e", function, value),))):
            yield f"it has no {_CALLS[function].format(readable(value))}, and does not group by {readable(value)}"


def _with(
    bare: Defined,
    *,
    groups: dict[Expression, str] | None = None,
    where: frozenset[Expression] | None = None,
    measures: dict[Measure, str] | None = None,
) -> Defined:
    """A query that asks for this alone."""
    node = bare.node
    return replace(
        bare,
        node=replace(
            node,
            groups=node.groups if groups is None else groups,
            where=node.where if where is None else where,
            measures=node.measures if measures is None else measures,
        ),
    )


def _columns(expression: Expression) -> str:
    return " and ".join(sorted(column.partition(".")[2] for column in expression.columns))
