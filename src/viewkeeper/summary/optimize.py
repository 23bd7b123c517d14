"""A lattice optimized: joins, aggregate functions and attributes as low as they go (appendix B).

    essential at v         what the definition of v asks for
    essential for v → w    what w has and cannot be computed on the edge
    v has                  what is essential at v or for an edge out of it, and nothing else

One traversal from the bottom up does all three: functions, then joins, then attributes of each node, once the nodes
below it are known. The appendix pushes joins first, from the top, and drops one wherever the definition does not ask
for it, even if a table below needs a function of its columns that cannot be computed there any more. Here such a
function is kept, and its join with it. What the user asked for always stays; only what was added for others goes.

On an edge, SUM(A) of a group-by column A is SUM(A * Y), COUNT(A) the sum of Y where A is not NULL, MIN(A) is MIN(A); Y
is the COUNT(*) of the table above.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from viewkeeper.errors import DefinitionError
from viewkeeper.sql.expressions import Expression
from viewkeeper.summary.cube_lattice import Edge, Lattice
from viewkeeper.summary.derivation import Derivation, Determined, derive
from viewkeeper.summary.friendly import lattice_friendly, paths_in, reached_through, unanswered, with_added
from viewkeeper.summary.measures import OF_ALL_VALUES, Measure
from viewkeeper.summary.node import Extreme, Node
from viewkeeper.summary.star import Dimension


@dataclass(frozen=True)
class Optimized:
    """A V-lattice; by theorem 5.1 the D-lattice is the same."""

    lattice: Lattice[str]
    """the edges, with the dimension tables to join on each"""
    nodes: Mapping[str, Node]
    """each table with its own columns and what those below it need of it"""
    edges: Mapping[tuple[str, str], Derivation]
    """the query of each edge, by the names of the tables above and below; MIN and MAX are not part of it"""


def friendly_lattice(
    nodes: Sequence[Node], determined: Determined | None = None, *, trusting: frozenset[str] = frozenset()
) -> Lattice[str]:
    """The tables as they are placed once they are lattice-friendly; of two that are alike the earlier is above."""
    friendly = lattice_friendly(nodes, determined, trusting=trusting)
    found = {
        (above.name, below.name): edge
        for above in friendly
        for below in friendly
        if above is not below and (edge := _derived(below, above, nodes, trusting)) is not None
    }
    place = {node.name: position for position, node in enumerate(nodes)}
    edges = tuple(
        Edge(above, below, frozenset(edge.joined))
        for (above, below), edge in found.items()
        if (below, above) not in found or place[above] < place[below]
    )
    return Lattice(tuple(place), edges).reduced()


def optimized(
    nodes: Sequence[Node],
    determined: Determined | None = None,
    *,
    trusting: frozenset[str] = frozenset(),
    lattice: Lattice[str] | None = None,
) -> Optimized:
    """The nodes with what the lattice needs of each, everything as low as it can be.

    `lattice` is the one to optimize if it is not the whole `friendly_lattice`: the edges that a plan has chosen, say.
    """
    friendly = {node.name: node for node in lattice_friendly(nodes, determined, trusting=trusting)}
    asked = {node.name: node for node in nodes}
    if lattice is None:
        lattice = friendly_lattice(nodes, determined, trusting=trusting)
    made = _pushed_down(asked, friendly, lattice, trusting, own_joins=False)
    edges, labelled = {}, []
    for edge in lattice.edges:
        above, below = made[edge.above], made[edge.below]
        query, with_values = derive(below, above, trusting=trusting), _derived(below, above, nodes, trusting)
        assert query is not None, f"{below.name} was derived from {above.name} before less of it was needed"
        assert with_values is not None, f"the extremes of {below.name} were over {above.name} before"
        edges[above.name, below.name] = query
        labelled.append(replace(edge, joins=frozenset(with_values.joined)))
    return Optimized(replace(lattice, edges=tuple(labelled)), made, edges)


def optimized_nodes(
    nodes: Sequence[Node], lattice: Lattice[str], determined: Determined | None, *, relied: frozenset[str]
) -> dict[str, Node]:
    """What each table of a warehouse has along the edges of a plan: its own columns and joins, and what those below it
    need. A join that the user wrote stays, also where a promised foreign key makes it needless: promises are broken.
    """
    friendly = {node.name: node for node in lattice_friendly(nodes, determined, own_joins=True)}
    return _pushed_down({node.name: node for node in nodes}, friendly, lattice, relied, own_joins=True)


def _pushed_down(
    asked: Mapping[str, Node],
    friendly: Mapping[str, Node],
    lattice: Lattice[str],
    trusting: frozenset[str],
    *,
    own_joins: bool,
) -> dict[str, Node]:
    """One traversal from the bottom up."""
    made: dict[str, Node] = {}
    for name in reversed(lattice.topological):
        children = [made[child] for child in lattice.children(name)]
        pushed = _Pushed(asked[name], friendly[name], children, list(asked.values()), trusting, own_joins)
        made[name] = pushed.node()
    return made


@dataclass(frozen=True)
class _Pushed:
    """One node: as it was requested, with all that could be added, and the nodes below it, which are done."""

    asked: Node
    friendly: Node
    below: Sequence[Node]
    nodes: Sequence[Node]
    trusting: frozenset[str]
    own_joins: bool

    def node(self) -> Node:
        """The node with what it needs."""
        measures, extremes = self._measures(), self._extremes()
        joined = replace(self.asked, dimensions=self._dimensions(measures, extremes))
        attributes = [one for one in self.friendly.groups if one not in joined.groups and paths_in(one) <= joined.paths]
        whole = with_added(joined, attributes, measures, extremes)
        edges = [self._edge(child, whole) for child in self.below]
        needed = [one for one in attributes if any(edge.uses(whole.groups[one]) for edge in edges)]
        return with_added(joined, needed, measures, extremes)

    def _measures(self) -> list[Measure]:
        """Pushing aggregate functions: those that could be added, and that an edge cannot compute from the groups."""
        added = self.friendly.measures.keys() - self.asked.measures.keys()
        wanted = ((child, one) for child in self.below for one in child.measures if one in added)
        return [one for child, one in wanted if not self._computable(one.expression, child)]

    def _extremes(self) -> list[Extreme]:
        added = _extremes_of(self.friendly) - _extremes_of(self.asked)
        wanted = ((child, one) for child in self.below for one in child.extremes if (one.function, one.value) in added)
        return [one for child, one in wanted if not self._computable(one.value, child)]

    def _computable(self, expression: Expression, child: Node) -> bool:
        """Whether an expression is one over the groups, and the dimensions that they are foreign keys of."""
        alone = replace(child, groups={expression: "value"}, measures={}, where=self.friendly.where)
        return derive(alone, self.friendly, trusting=self.trusting) is not None

    def _dimensions(self, measures: Sequence[Measure], extremes: Sequence[Extreme]) -> tuple[Dimension, ...]:
        """Pushing joins: a dimension stays if it is used here, or may lack rows that facts refer to."""
        asked = self.asked
        if self.own_joins:
            return asked.dimensions
        functions = [one.expression for one in (*asked.measures, *measures)]
        functions += [one.value for one in (*asked.extremes, *extremes)]
        used = paths_in(*asked.groups, *asked.where, *functions) | asked.paths - self.trusting
        for dimension in reversed(self.friendly.dimensions):
            if dimension.path in used:
                used |= reached_through(dimension)
        return tuple(dimension for dimension in self.friendly.dimensions if dimension.path in used)

    def _edge(self, child: Node, whole: Node) -> Derivation:
        edge = _derived(child, whole, self.nodes, self.trusting)
        if edge is None:
            raise DefinitionError(
                f"{child.name} does not follow from {whole.name}",
                "leave the edge out, or declare the hierarchy that it relies on",
            )
        return edge


def _derived(below: Node, above: Node, nodes: Sequence[Node], trusting: frozenset[str]) -> Derivation | None:
    """The edge, with the values of MIN and MAX among its groups where the table above does not have them already."""
    lacking = [one for one in unanswered(below, nodes) if (one.function, one.value) not in _extremes_of(above)]
    values = {one.value: f"value {place}" for place, one in enumerate(lacking) if one.value not in below.groups}
    return derive(replace(below, groups={**below.groups, **values}), above, trusting=trusting)


def _extremes_of(node: Node) -> frozenset[tuple[str, Expression]]:
    """The functions MIN and MAX of a node. COUNT(DISTINCT e) is not computed from parts."""
    return frozenset((one.function, one.value) for one in node.extremes if one.function not in OF_ALL_VALUES)
