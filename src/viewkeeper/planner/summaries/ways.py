"""What can be computed from what, among the tables of a lattice: its Hasse diagram, for those who look at it.

    exact         v2 ≺ v1, whatever the sources do; those that a longer path implies are left out
    chosen        the ones that the next propagation will take, kept even if a longer path implies them
    promised      v2 ≺ v1 if every changed fact finds its row in a dimension, which declared foreign keys promise
    relying on    the same without a promise: the paper takes it so, here it is never taken

The changes of the fact are above everything.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import permutations

from viewkeeper.planner.summaries.lattice import Lattice
from viewkeeper.sql.summary_view import readable
from viewkeeper.summary.cube_lattice import Edge
from viewkeeper.summary.cube_lattice import Lattice as Order
from viewkeeper.summary.derivation import Derivation, derive
from viewkeeper.summary.measures import Measure
from viewkeeper.summary.plan import CHANGES, Plan


@dataclass(frozen=True)
class Way:
    """`below` can be computed from `above`, joined with dimensions."""

    above: str
    below: str
    joins: tuple[str, ...] = ()
    with_attributes: tuple[str, ...] = ()
    """what the summary-delta above has to carry: attributes that its groups determine, aggregate functions"""
    chosen: bool = False
    relies_on: tuple[str, ...] = ()
    """the dimensions in which every fact would have to find its row"""
    promised: tuple[str, ...] = ()
    """the dimensions in which foreign keys that are declared promise it"""

    @property
    def ends(self) -> tuple[str, str]:
        return self.above, self.below

    @property
    def label(self) -> str:
        """⋈ stores, with region."""
        joined = " ".join(f"⋈ {table}" for table in self.joins)
        carried = f"with {', '.join(self.with_attributes)}" if self.with_attributes else ""
        promised = f"by the foreign key to {', '.join(self.promised)}" if self.promised else ""
        return ", ".join(filter(None, (joined, carried, promised)))


def ways_of(lattice: Lattice, plan: Plan) -> list[Way]:
    """All ways worth showing: from the changes first, then the finest tables first."""
    names = (CHANGES, *plan.considered)
    exact: dict[tuple[str, str], Derivation] = {}
    for name in plan.considered:
        for edge in lattice.lineage.ways(name):
            # Of two ways from one table the one that carries joins less; the simple one is shown if it is taken.
            exact[edge.above.name, name] = edge
    exact |= {ends: edge for edge in plan.edges if (ends := (edge.above.name, edge.below.name)) in exact}
    chosen = {(edge.above.name, edge.below.name) for edge in plan.edges}
    order = Order(names, tuple(Edge(*ends) for ends in exact))
    shown = dict.fromkeys([*map(_ends, order.reduced().edges), *(ends for ends in exact if ends in chosen)])
    found = [_way(*ends, exact[ends], chosen=ends in chosen) for ends in shown]
    place = {name: number for number, name in enumerate(names)}
    return sorted([*found, *_relying(lattice, order)], key=lambda way: (place[way.above], place[way.below]))


def _relying(lattice: Lattice, order: Order[str]) -> list[Way]:
    """Ways that no exact ones imply, if every foreign key found its row."""
    found: dict[tuple[str, str], Way] = {}
    for above, below in permutations(lattice.nodes, 2):
        way = trusting_way(lattice, above, below)
        # Tables that derive from each other are one above the other already.
        if way is not None and below not in order.descendants(above) and above not in order.descendants(below):
            found[way.ends] = way
            order = replace(order, edges=(*order.edges, Edge(above, below)))
    kept = set(map(_ends, order.reduced().edges))
    return [way for ends, way in found.items() if ends in kept]


def trusting_way(lattice: Lattice, above: str, below: str) -> Way | None:
    """How a table could be computed from another if every fact found its row in the dimensions joined there."""
    higher, lower = lattice.nodes[above], lattice.nodes[below]
    missing = higher.paths - lower.paths
    if not missing:
        return None
    edge = derive(lower, higher, trusting=missing)
    if edge is None:
        return None
    relations = {one.short for one in higher.dimensions if one.path in missing}
    return _way(above, below, edge, relies_on=sorted(relations))


def _ends(edge: Edge[str]) -> tuple[str, str]:
    return edge.above, edge.below


def _way(above: str, below: str, edge: Derivation, *, chosen: bool = False, relies_on: Iterable[str] = ()) -> Way:
    carried = edge.carried
    attributes = [readable(one) for one, column in edge.above.groups.items() if column in carried]
    functions = [measure_name(one) for one, column in edge.above.measures.items() if column in carried]
    promised = tuple(sorted({one.short for one in edge.above.dimensions if one.path in edge.relies_on}))
    return Way(
        above,
        below,
        edge.joined,
        tuple(dict.fromkeys((*attributes, *functions))),
        chosen,
        tuple(relies_on),
        () if relies_on else promised,
    )


def measure_name(measure: Measure) -> str:
    """SUM(qty), as a reader would write it."""
    if measure.floating and measure.of is not None:
        return f"SUM({readable(measure.of)}), of finite values"
    return f"{measure.kind.upper()}({readable(measure.expression)})"
