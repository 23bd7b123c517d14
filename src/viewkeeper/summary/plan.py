"""The D-lattice: which summary-delta each one is computed from (sections 5.2 to 5.5).

    parent(v)  =  the ancestor from which it costs least: its expected rows, once more for each join, and what it has to
                  carry for v
    carried    =  attributes that its groups determine, and aggregate functions of the facts in it

By theorem 5.1 the summary-deltas form the lattice of the tables, so a node can be derived from any node above it, or
from the changes themselves. What is above is taken as if it were lattice-friendly: a summary-delta may carry more than
its table has. Of the chosen edges `optimize.py` then pushes down everything as far as it goes: a summary-delta carries
only what one that is derived from it needs.

The theorem holds for changes of the fact. Where a dimension changes, an edge with a join also reads the table above as
it is stored, γ(sd_p ⋈ D_old) + γ(p_new ⋈ ΔD), and that has nothing but its own columns: so such an edge uses nothing
that is carried, and no aggregate function is carried then. A table that joins a dimension which the one below does not
is above it only while every changed fact finds its row there (figure 9's fourth edge). Declared foreign keys promise
it; the propagation checks it, and if it is not so, the plan without these edges is run instead.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from viewkeeper.errors import ProtocolError
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.type_families import parse_type, type_name
from viewkeeper.summary.cube_lattice import Edge, Lattice
from viewkeeper.summary.derivation import Derivation, Determined, derive
from viewkeeper.summary.friendly import lattice_friendly
from viewkeeper.summary.node import Node
from viewkeeper.summary.optimize import optimized_nodes
from viewkeeper.summary.star import FACT

CHANGES = "changes"
"""the name of what the topmost summary-deltas are computed from"""
WORTH_ADDING_UP = 0.5
"""rows of a summary-delta for each change below which changes are added up before they are joined"""
JOIN_COST = 1.0
"""what a join adds to the cost of reading a row"""
CARRY_COST = 0.3
"""what one more aggregate function adds to it"""

Expected = Callable[[str], float]
"""How many rows the summary-delta of a node, or the changes, will have."""


@dataclass(frozen=True)
class Candidate:
    """A node that another could be derived from, and what that would cost."""

    above: str
    rows: float
    joins: tuple[str, ...]
    cost: float


@dataclass(frozen=True)
class Plan:
    """The edges in an order in which they can be computed, and what else was considered."""

    edges: tuple[Derivation, ...]
    considered: Mapping[str, tuple[Candidate, ...]]
    preaggregated: frozenset[str] = frozenset()
    """nodes for which the changes are added up before they are joined with dimensions (section 4.1.3)"""

    def edge(self, name: str) -> Derivation:
        return next(edge for edge in self.edges if edge.below.name == name)

    @property
    def relied(self) -> frozenset[str]:
        """The paths of the dimensions in which every changed fact must find its row, or the plan is not right."""
        return frozenset().union(*(edge.relies_on for edge in self.edges))


def changes_of(fact: Relation, weight: str) -> Node:
    """The changes of the fact, or the fact itself, as a node: grouped by every column, counted by weight."""
    groups = {
        Expression.column(f"{FACT}.{column}", type_name(parse_type(type))): column
        for column, type in zip(fact.columns, fact.types, strict=True)
    }
    return Node(CHANGES, fact.name, (), frozenset(), groups, {}, count=weight)


class Lineage:
    """All ways to derive each node from another or from the changes. They do not depend on sizes: plans do.

    A dimension that changes needs what is above the join as it is now: without a core that can be read, no node that
    joins dimensions is derived from the changes. With `facts_only` no dimension changes, and theorem 5.1 holds in full;
    `relied` then has the paths of dimensions in which every fact is promised to find its row.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        changes: Node,
        *,
        core_readable: bool,
        determined: Determined | None = None,
        facts_only: bool = False,
        relied: frozenset[str] = frozenset(),
    ) -> None:
        self.changes = changes
        # MIN and MAX come from nodes of their own: they are no part of a summary-delta.
        self._nodes = {node.name: replace(node, extremes=()) for node in nodes}
        self._extremes = {node.name: node.extremes for node in nodes}
        self._determined, self._facts_only = determined, facts_only
        self._relied = relied if facts_only else frozenset[str]()
        self._core_readable = core_readable
        found = self._found()
        self._edges: dict[str, list[Derivation]] = {}
        for node in _finest_first(list(self._nodes.values()), found):
            ways = [derive(node, changes)]
            ways += [edge for above in self._edges for edge in found[node.name].get(above, ())]
            self._edges[node.name] = [edge for edge in ways if edge is not None and self._can_be_computed(edge)]
            if not self._edges[node.name]:
                raise ProtocolError(f"nothing in the lattice derives {node.name}", "drop its view and create it again")
        self._made: dict[tuple[int, ...], tuple[Derivation, ...]] = {}

    def _found(self) -> dict[str, dict[str, list[Derivation]]]:
        """The edges between nodes, by the names below and above: exact ones, and those that need more to be carried."""
        nodes, friendly = self._nodes.values(), self._friendly()
        found: dict[str, dict[str, list[Derivation]]] = {node.name: {} for node in nodes}
        for below in nodes:
            for above in nodes:
                if above is not below:
                    # The simpler one first: of two that cost the same it is taken.
                    both = derive(below, above), derive(below, friendly[above.name], trusting=self._relied)
                    edges = [edge for edge in both if edge is not None]
                    if len(edges) == 2 and not edges[1].carried:
                        edges.pop()
                    if edges:
                        found[below.name][above.name] = edges
        return found

    @property
    def _may_carry(self) -> bool:
        """Whether summary-deltas may have more columns than tables; not for first contents, which read tables."""
        return self._determined is not None or self._facts_only

    def _friendly(self) -> Mapping[str, Node]:
        """The nodes with all that their summary-deltas may carry for others."""
        if not self._may_carry:
            return self._nodes
        made = lattice_friendly(list(self._nodes.values()), self._determined, own_joins=True)
        if not self._facts_only:
            made = tuple(replace(one, measures=self._nodes[one.name].measures) for one in made)
        return {one.name: one for one in made}

    def _can_be_computed(self, edge: Derivation) -> bool:
        """Whether what the edge reads is there, also where the theorem does not hold."""
        if not edge.joins:
            return True
        if edge.above.name == CHANGES:
            return self._core_readable
        return self._facts_only or (edge.above.stored and not edge.carried)

    def plan(self, expected: Expected, *, relying: bool = True) -> Plan:
        """The cheapest way to compute the summary-deltas of all nodes; without `relying`, on no foreign key."""
        considered: dict[str, tuple[Candidate, ...]] = {}
        chosen: dict[str, int] = {}
        fed = {CHANGES: 0.0}
        for name, edges in self._edges.items():
            costs = {
                place: _cost(edge, expected, fed[edge.above.name])
                for place, edge in enumerate(edges)
                if relying or not edge.relies_on
            }
            order = sorted(costs, key=lambda place: costs[place].cost)
            first = {costs[place].above: place for place in reversed(order)}
            considered[name] = tuple(costs[place] for place in order if first[costs[place].above] == place)
            chosen[name] = order[0]
            fed[name] = expected(edges[order[0]].above.name)
        places = tuple(chosen.values())
        if places not in self._made:
            self._made[places] = self._pushed_down(chosen)
        edges_made = self._made[places]
        added_up = frozenset(edge.below.name for edge in edges_made if _preaggregation_pays(edge, expected))
        return Plan(edges_made, considered, added_up)

    def _pushed_down(self, chosen: Mapping[str, int]) -> tuple[Derivation, ...]:
        """The chosen edges, with what each summary-delta has to carry and nothing else (appendix B)."""
        edges = {name: self._edges[name][place] for name, place in chosen.items()}
        if not self._may_carry:
            return tuple(replace(e, below=replace(e.below, extremes=self._extremes[n])) for n, e in edges.items())
        made = self._optimized(edges)
        if made is None:
            # What is carried would have to come through an edge that joins, where the table above is read too.
            plain = {name: [edge for edge in ways if not edge.carried] for name, ways in self._edges.items()}
            made = self._optimized({name: ways[-1] for name, ways in plain.items()})
            assert made is not None
        return made

    def _optimized(self, edges: Mapping[str, Derivation]) -> tuple[Derivation, ...] | None:
        between = tuple(Edge(e.above.name, name) for name, e in edges.items() if e.above.name != CHANGES)
        lattice = Lattice(tuple(edges), between)
        nodes = list(self._nodes.values())
        whole = optimized_nodes(nodes, lattice, self._determined, relied=self._relied)
        made = []
        for name, edge in edges.items():
            above = self.changes if edge.above.name == CHANGES else whole[edge.above.name]
            if edge.joins and not self._facts_only and edge.above.name != CHANGES:
                above = self._nodes[edge.above.name]
            found = derive(whole[name], above, trusting=self._relied)
            if found is None:
                return None
            made.append(replace(found, below=replace(whole[name], extremes=self._extremes[name])))
        return tuple(made)

    def ways(self, name: str) -> Sequence[Derivation]:
        """The edges that lead to a node."""
        return self._edges[name]


def _preaggregation_pays(edge: Derivation, expected: Expected) -> bool:
    """Whether the changes are expected to fall together enough for that to spare the joins more than it costs."""
    return (
        edge.above.name == CHANGES
        and bool(edge.joins)
        and expected(edge.below.name) <= WORTH_ADDING_UP * expected(CHANGES)
    )


def _cost(edge: Derivation, expected: Expected, fed: float) -> Candidate:
    """`fed` is how many rows the summary-delta above is computed from: so often a function is added up for this one."""
    rows = expected(edge.above.name)
    functions = sum(column in edge.above.measures.values() for column in edge.carried)
    cost = rows * (1 + JOIN_COST * len(edge.joins)) + CARRY_COST * functions * fed
    return Candidate(edge.above.name, rows, edge.joined, cost)


def _finest_first(nodes: Sequence[Node], above: Mapping[str, Mapping[str, object]]) -> list[Node]:
    """Every node after those that it derives from; of two that derive from each other the one made first."""
    order: list[Node] = []
    remaining = list(nodes)
    while remaining:
        names = {node.name for node in remaining}
        ready = next(
            (n for n in remaining if all(n.name in above[other] for other in above[n.name].keys() & names)),
            remaining[0],
        )
        order.append(ready)
        remaining.remove(ready)
    return order
