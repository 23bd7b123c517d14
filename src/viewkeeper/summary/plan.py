"""The D-lattice: which summary-delta each one is computed from (sections 5.3 to 5.5).

    parent(v)  =  the ancestor whose summary-delta is expected to be smallest, joins counted

By theorem 5.1 the summary-deltas form the lattice of the tables, so a node can be derived from any node above it, or
from the changes themselves. Joins, attributes and measures are pushed down as far as they go: a summary-delta carries
an attribute beside its groups only if one that is derived from it needs it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.errors import ProtocolError
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.type_families import parse_type, type_name
from viewkeeper.summary.derivation import Derivation, Determined, derive, extended
from viewkeeper.summary.node import Node
from viewkeeper.summary.star import FACT

CHANGES = "changes"
"""the name of what the topmost summary-deltas are computed from"""
WORTH_ADDING_UP = 0.5
"""rows of a summary-delta for each change below which changes are added up before they are joined"""
JOIN_COST = 1.0
"""what a join adds to the cost of reading a row"""

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
    joins dimensions is derived from the changes.
    """

    def __init__(
        self, nodes: Sequence[Node], changes: Node, *, core_readable: bool, determined: Determined | None = None
    ) -> None:
        self.changes = changes
        exact = {n.name: {o.name: e for o in nodes if o is not n and (e := derive(n, o)) is not None} for n in nodes}
        self._order = _finest_first(nodes, exact)
        self._edges: dict[str, list[Derivation]] = {}
        for place, node in enumerate(self._order):
            ways = [derive(node, changes)]
            ways += [derive(node, above, determined=determined) for above in self._order[:place]]
            self._edges[node.name] = [
                edge
                for edge in ways
                if edge is not None
                and not (edge.joins and (edge.extension or not _readable(edge.above, core_readable)))
            ]
            if not self._edges[node.name]:
                raise ProtocolError(f"nothing in the lattice derives {node.name}", "drop its view and create it anew")
        self._made: dict[tuple[str, ...], tuple[Derivation, ...]] = {}

    def plan(self, expected: Expected) -> Plan:
        """The cheapest way to compute the summary-deltas of all nodes."""
        considered = {
            name: tuple(sorted((_cost(edge, expected) for edge in edges), key=lambda one: one.cost))
            for name, edges in self._edges.items()
        }
        parents = tuple(candidates[0].above for candidates in considered.values())
        if parents not in self._made:
            self._made[parents] = self._chosen(parents)
        edges = self._made[parents]
        return Plan(edges, considered, frozenset(e.below.name for e in edges if _preaggregation_pays(e, expected)))

    def _chosen(self, parents: Sequence[str]) -> tuple[Derivation, ...]:
        """The edges from these parents, as far as what is added to summary-deltas fits together."""
        chosen = {
            name: next(edge for edge in edges if edge.above.name == parent)
            for (name, edges), parent in zip(self._edges.items(), parents, strict=True)
        }
        made = _with_extensions(chosen, self.changes)
        if made is None:
            plain = {name: [edge for edge in edges if not edge.extension] for name, edges in self._edges.items()}
            made = _with_extensions({name: edges[-1] for name, edges in plain.items()}, self.changes)
            assert made is not None
        return made

    def ways(self, name: str) -> Sequence[Derivation]:
        """The edges that lead to a node."""
        return self._edges[name]


def _readable(above: Node, core_readable: bool) -> bool:
    return core_readable if above.name == CHANGES else above.stored


def _preaggregation_pays(edge: Derivation, expected: Expected) -> bool:
    """Whether the changes are expected to fall together enough for that to spare the joins more than it costs."""
    return (
        edge.above.name == CHANGES
        and bool(edge.joins)
        and expected(edge.below.name) <= WORTH_ADDING_UP * expected(CHANGES)
    )


def _cost(edge: Derivation, expected: Expected) -> Candidate:
    rows = expected(edge.above.name)
    return Candidate(edge.above.name, rows, edge.joined, rows * (1 + JOIN_COST * len(edge.joins)))


def _finest_first(nodes: Sequence[Node], above: Mapping[str, Mapping[str, Derivation]]) -> list[Node]:
    """Every node behind those that it derives from; of two that derive from each other the one made first."""
    order: list[Node] = []
    remaining = list(nodes)
    while remaining:
        names = {node.name for node in remaining}
        ready = next(
            node for node in remaining if all(node.name in above[other] for other in above[node.name].keys() & names)
        )
        order.append(ready)
        remaining.remove(ready)
    return order


def _with_extensions(chosen: Mapping[str, Derivation], changes: Node) -> tuple[Derivation, ...] | None:
    """The edges again, with every attribute that an edge relies on added to the summary-delta above it.

    None if an attribute would have to come through an edge that joins: there the table above is read too, not only its
    summary-delta.
    """
    wanted: dict[str, list[Expression]] = {}
    for name in reversed(list(chosen)):
        edge = chosen[name]
        if edge.extension:
            wanted.setdefault(edge.above.name, []).extend(edge.extension)
        # What is added to a summary-delta may have to come from the one above it.
        below = extended(edge.below, dict.fromkeys(wanted.get(name, ())))
        if derive(below, edge.above) is None:
            missing = [one for one in below.groups if one not in edge.below.groups]
            wanted.setdefault(edge.above.name, []).extend(missing)
    whole = {name: extended(e.below, dict.fromkeys(wanted.get(name, ()))) for name, e in chosen.items()}
    whole[changes.name] = changes
    edges = []
    for name, edge in chosen.items():
        made = derive(whole[name], edge.above if edge.joins else whole[edge.above.name])
        if made is None:
            return None
        edges.append(made)
    return tuple(edges)
