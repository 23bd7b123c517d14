"""Lattices of views: what can be computed from what.

    v1 → v2                v2 can be computed from v1, instead of from the base data
    cube(A, B, C)        = {A → ∅} × {B → ∅} × {C → ∅}                     2^k nodes
    L1 × L2              : (a, b) → (a', b) if a → a',   (a, b) → (a, b') if b → b'
    joins(v1 ⇝ v2)       = ⋂ over paths ( ⋃ over the edges of a path of its joins )

Mumick, Quass and Mumick (1997), sections 3.2 to 3.4, after Harinarayan, Rajaraman and Ullman (1996). A `Lattice` is the
Hasse diagram of such an order, over any hashable nodes: `LatticeNode` for the points of a cube, `str` for the names of
views. Dimension hierarchies are multiplied into it in `hierarchies.py`.

A partial lattice is one with nodes removed: what was above a removed node is connected with what was below it. The
paper adds an edge for every such pair; those that a path through other nodes implies are left out here, as in figure 9
(four edges between its four views, although SID_sales is above sR_sales too). Where edges carry joins, a new edge
carries those that every path through removed nodes has: what v2 has and v1 lacks is joined somewhere on each of them.
That is enough, and more than needed where every path climbs a hierarchy only to leave it; `hierarchies.annotated`
of the partial lattice gives exactly what is needed.
"""

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Generic, TypeVar

from viewkeeper.errors import DefinitionError

Node = TypeVar("Node", bound=Hashable)


@dataclass(frozen=True)
class Edge(Generic[Node]):
    """`below` can be computed from `above`, joined with the dimension tables `joins`."""

    above: Node
    below: Node
    joins: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class Lattice(Generic[Node]):
    """A partial order as its Hasse diagram; equal to any other with the same nodes and edges, in whatever order.

    After section 3.4 it may lack a top or a bottom. The order of `nodes` settles ties in `topological`.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge[Node], ...] = ()

    def __post_init__(self) -> None:
        if len(self._positions) < len(self.nodes):
            raise ValueError(f"a node is in the lattice twice: {', '.join(map(str, self.nodes))}")
        for edge in self.edges:
            if missing := {edge.above, edge.below} - self._positions.keys():
                raise ValueError(f"an edge leads to or from what is no node: {', '.join(map(str, missing))}")
        if len(self._edges) < len(self.edges):
            raise ValueError("two edges connect the same nodes; put their joins into one")
        if len(self.topological) < len(self.nodes):
            stuck = [str(node) for node in self.nodes if node not in self.topological]
            raise ValueError(f"edges run in a circle among or above {', '.join(stuck)}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lattice):
            return NotImplemented
        return set(self.nodes) == set(other.nodes) and set(self.edges) == set(other.edges)

    def __hash__(self) -> int:
        return hash((frozenset(self.nodes), frozenset(self.edges)))

    @cached_property
    def _positions(self) -> dict[Node, int]:
        return {node: position for position, node in enumerate(self.nodes)}

    @cached_property
    def _edges(self) -> dict[tuple[Node, Node], Edge[Node]]:
        return {(edge.above, edge.below): edge for edge in self.edges}

    @cached_property
    def _incoming(self) -> dict[Node, tuple[Edge[Node], ...]]:
        return self._grouped((edge.below, edge.above, edge) for edge in self.edges)

    @cached_property
    def _outgoing(self) -> dict[Node, tuple[Edge[Node], ...]]:
        return self._grouped((edge.above, edge.below, edge) for edge in self.edges)

    def _grouped(self, found: Iterable[tuple[Node, Node, Edge[Node]]]) -> dict[Node, tuple[Edge[Node], ...]]:
        """Edges by their one end, in the order of their other end."""
        groups: dict[Node, list[Edge[Node]]] = {node: [] for node in self.nodes}
        for end, _, edge in sorted(found, key=lambda one: self._positions[one[1]]):
            groups[end].append(edge)
        return {node: tuple(edges) for node, edges in groups.items()}

    def edge(self, above: Node, below: Node) -> Edge[Node]:
        """The edge between two neighbours; KeyError if they are none."""
        return self._edges[above, below]

    def incoming(self, node: Node) -> tuple[Edge[Node], ...]:
        """The edges from its parents."""
        return self._incoming[node]

    def outgoing(self, node: Node) -> tuple[Edge[Node], ...]:
        """The edges to its children."""
        return self._outgoing[node]

    def parents(self, node: Node) -> tuple[Node, ...]:
        """The neighbours above."""
        return tuple(edge.above for edge in self._incoming[node])

    def children(self, node: Node) -> tuple[Node, ...]:
        """The neighbours below."""
        return tuple(edge.below for edge in self._outgoing[node])

    def ancestors(self, node: Node) -> frozenset[Node]:
        """All that it can be computed from, without itself."""
        return self._ancestors[node]

    def descendants(self, node: Node) -> frozenset[Node]:
        """All that can be computed from it, without itself."""
        return self._descendants[node]

    @cached_property
    def _ancestors(self) -> dict[Node, frozenset[Node]]:
        found: dict[Node, frozenset[Node]] = {}
        for node in self.topological:
            found[node] = frozenset[Node]().union(*({parent} | found[parent] for parent in self.parents(node)))
        return found

    @cached_property
    def _descendants(self) -> dict[Node, frozenset[Node]]:
        found: dict[Node, frozenset[Node]] = {}
        for node in reversed(self.topological):
            found[node] = frozenset[Node]().union(*({child} | found[child] for child in self.children(node)))
        return found

    @cached_property
    def topological(self) -> tuple[Node, ...]:
        """All nodes, each after its parents; layer by layer, and in the order of `nodes` within a layer."""
        waiting = {node: len(self._incoming[node]) for node in self.nodes}
        order: list[Node] = []
        layer = list(self.tops)
        while layer:
            order += layer
            freed: list[Node] = []
            for below in (edge.below for node in layer for edge in self._outgoing[node]):
                waiting[below] -= 1
                if not waiting[below]:
                    freed.append(below)
            layer = sorted(freed, key=self._positions.__getitem__)
        return tuple(order)

    @cached_property
    def tops(self) -> tuple[Node, ...]:
        """The nodes with nothing above."""
        return tuple(node for node in self.nodes if not self._incoming[node])

    @cached_property
    def bottoms(self) -> tuple[Node, ...]:
        """The nodes with nothing below."""
        return tuple(node for node in self.nodes if not self._outgoing[node])

    @property
    def top(self) -> Node | None:
        """The node above all others, if there is one."""
        return self.tops[0] if len(self.tops) == 1 else None

    @property
    def bottom(self) -> Node | None:
        """The node below all others, if there is one."""
        return self.bottoms[0] if len(self.bottoms) == 1 else None

    def reduced(self) -> "Lattice[Node]":
        """The same order without the edges that a longer path implies."""
        kept = (
            edge
            for edge in self.edges
            if not any(edge.below in self.descendants(child) for child in self.children(edge.above))
        )
        return replace(self, edges=tuple(kept))


@dataclass(frozen=True)
class LatticeNode:
    """A point of a cube: the view that groups by `attributes`. `names` are the same, in the order to show them in."""

    names: Collection[str] = field(compare=False)
    attributes: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        names = tuple(sorted(self.names) if isinstance(self.names, set | frozenset) else self.names)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "attributes", frozenset(names))
        if len(self.attributes) < len(names):
            raise ValueError(f"an attribute is grouped by twice: {', '.join(names)}")

    def __str__(self) -> str:
        return f"({', '.join(self.names)})"


def cube_lattice(dimensions: Sequence[str]) -> Lattice[LatticeNode]:
    """The 2^k views of a data cube (figure 4(a)); an edge leaves one attribute out."""
    nothing = LatticeNode(())
    grouped = [LatticeNode((dimension,)) for dimension in dimensions]
    return direct_product(*(Lattice((node, nothing), (Edge(node, nothing),)) for node in grouped))


def direct_product(*factors: Lattice[LatticeNode]) -> Lattice[LatticeNode]:
    """One point of each factor, in all combinations; an edge is one of one factor, with its joins."""
    seen: set[str] = set()
    for factor in factors:
        attributes = frozenset[str]().union(*(node.attributes for node in factor.nodes))
        if shared := sorted(attributes & seen):
            raise DefinitionError(
                f"{', '.join(shared)}: in two dimensions of one cube",
                "name a dimension once, or give the columns of the second one names of their own",
            )
        seen |= attributes

    def together(points: Iterable[LatticeNode]) -> LatticeNode:
        return LatticeNode(tuple(name for point in points for name in point.names))

    combinations = list(product(*(factor.topological for factor in factors)))
    edges = tuple(
        Edge(together(points), together((*points[:index], step.below, *points[index + 1 :])), step.joins)
        for points in combinations
        for index, factor in enumerate(factors)
        for step in factor.outgoing(points[index])
    )
    return Lattice(tuple(map(together, combinations)), edges)


def partial(lattice: Lattice[Node], keep: Collection[Node]) -> Lattice[Node]:
    """The lattice without the nodes that are not kept (section 3.4)."""
    kept = set(keep)
    if missing := kept - set(lattice.nodes):
        raise ValueError(f"no node of the lattice: {', '.join(sorted(map(str, missing)))}")
    edges = tuple(
        Edge(node, below, joins)
        for node in lattice.nodes
        if node in kept
        for below, joins in _next_kept(lattice, node, kept).items()
    )
    return Lattice(tuple(node for node in lattice.nodes if node in kept), edges).reduced()


def _next_kept(lattice: Lattice[Node], start: Node, kept: set[Node]) -> dict[Node, frozenset[str]]:
    """The kept nodes that paths from `start` through removed ones lead to, with the joins that all those paths have."""
    reached: dict[Node, frozenset[str]] = {start: frozenset()}
    for node in (start, *(node for node in lattice.topological if node in lattice.descendants(start))):
        if node not in reached or (node in kept and node != start):
            continue
        for step in lattice.outgoing(node):
            joins = reached[node] | step.joins
            reached[step.below] = reached.get(step.below, joins) & joins
    return {node: joins for node, joins in reached.items() if node in kept and node != start}
