"""Summary tables made lattice-friendly (section 5.2 of the summary-delta paper).

    v   =  γ groups; functions ( fact ⋈ some dimensions )
    v'  =  γ groups ∪ attributes that they determine; functions of all ( fact ⋈ all dimensions )

Grouping by storeID is grouping by (storeID, city, region): attributes that the groups determine make no more groups.
With them, and with the aggregate functions of all tables, more tables can be computed from one another, and each
dimension is joined once, at the top. This is always correct and seldom the best: `optimize.py` takes back what nothing
needs. A join loses the facts that find no row in the dimension, so it is added only for dimensions that are trusted to
have them all; the paper trusts all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from viewkeeper.sql.expressions import Expression
from viewkeeper.summary.derivation import ALSO, Determined, extended
from viewkeeper.summary.measures import OF_ALL_VALUES, Measure
from viewkeeper.summary.node import Extreme, Node
from viewkeeper.summary.star import FACT, Dimension


def lattice_friendly(
    nodes: Sequence[Node],
    determined: Determined | None = None,
    *,
    trusting: frozenset[str] = frozenset(),
    own_joins: bool = False,
) -> tuple[Node, ...]:
    """The nodes with the joins, attributes and functions of all, as far as that changes none of their groups.

    `determined` has the hierarchies; a foreign key determines its dimension without them. `trusting` has the paths of
    dimensions in which every fact finds its row. What is added has columns of viewkeeper's own. A MIN or MAX that a
    node of its own answers is not added to others. With `own_joins` each node joins what its definition does: what a
    warehouse computes.
    """
    shared = () if own_joins else _trusted(nodes, trusting)
    attributes = _attributes(nodes)
    measures = [one for node in nodes for one in node.measures]
    extremes = [one for node in nodes for one in unanswered(node, nodes) if one.function not in OF_ALL_VALUES]
    friendly = []
    for node in nodes:
        joined = replace(node, dimensions=tuple(dict.fromkeys((*node.dimensions, *shared))))
        known = _determined_by(joined, determined)
        friendly.append(
            with_added(
                joined,
                [one for one in attributes if one.columns <= known],
                [one for one in measures if paths_in(one.expression) <= joined.paths],
                [one for one in extremes if paths_in(one.value) <= joined.paths],
            )
        )
    return tuple(friendly)


def with_added(
    node: Node, attributes: Iterable[Expression], measures: Iterable[Measure], extremes: Iterable[Extreme]
) -> Node:
    """The node with more groups, measures and extremes, those that it lacks, in columns of viewkeeper's own."""
    grouped = extended(node, [one for one in dict.fromkeys(attributes) if one not in node.groups])
    free = len(grouped.groups) - len(node.groups)
    lacking = [one for one in dict.fromkeys(measures) if one not in node.measures]
    summed = {one: f"{ALSO}{free + place}" for place, one in enumerate(lacking)}
    free += len(summed)
    own = {(one.function, one.value) for one in node.extremes}
    asked = {(one.function, one.value): one for one in extremes if (one.function, one.value) not in own}
    found = tuple(replace(one, column=f"{ALSO}{free + place}") for place, one in enumerate(asked.values()))
    return replace(grouped, measures={**node.measures, **summed}, extremes=(*node.extremes, *found))


def unanswered(node: Node, nodes: Iterable[Node]) -> tuple[Extreme, ...]:
    """The MIN, MAX and COUNT(DISTINCT e) of a node for which there is no node that groups by e too."""
    names = {other.name for other in nodes}
    return tuple(one for one in node.extremes if one.node not in names)


def paths_in(*expressions: Expression) -> frozenset[str]:
    """The dimensions that some expressions use columns of."""
    return frozenset(column.partition(".")[0] for one in expressions for column in one.columns) - {FACT}


def reached_through(dimension: Dimension) -> frozenset[str]:
    """The dimensions, if any, that have the foreign key of this one."""
    return frozenset(column.partition(".")[0] for column, _ in dimension.on) - {FACT}


def _trusted(nodes: Iterable[Node], trusting: frozenset[str]) -> tuple[Dimension, ...]:
    """The dimensions that any node may join: trusted, and reached through none that is not."""
    found: dict[str, Dimension] = {}
    for dimension in (dimension for node in nodes for dimension in node.dimensions):
        if dimension.path in trusting and reached_through(dimension) <= found.keys():
            found[dimension.path] = dimension
    return tuple(found.values())


def _attributes(nodes: Iterable[Node]) -> list[Expression]:
    """The columns of dimensions that something is grouped, selected or joined by."""
    nodes = list(nodes)
    dimensions = {dimension.path: dimension for node in nodes for dimension in node.dimensions}
    used = [column for node in nodes for one in (*node.groups, *node.where) for column in sorted(one.columns)]
    used += [column for dimension in dimensions.values() for column, _ in dimension.on]
    return [
        Expression.column(flat, dimension.type_of(dimension.columns[flat]))
        for flat in dict.fromkeys(used)
        if (dimension := dimensions.get(flat.partition(".")[0])) is not None
    ]


def _determined_by(node: Node, determined: Determined | None) -> frozenset[str]:
    """The columns of which each group of the node has one value."""
    known = {name for group in node.groups if (name := group.is_column) is not None}
    size = -1
    while size < len(known):
        size = len(known)
        for dimension in node.dimensions:
            if all(column in known for column, _ in dimension.on):
                known |= dimension.columns.keys()
            elif determined is not None:
                here = frozenset(bare for flat, bare in dimension.columns.items() if flat in known)
                more = determined(dimension, here)
                known |= {flat for flat, bare in dimension.columns.items() if bare in more}
    return frozenset(known)
