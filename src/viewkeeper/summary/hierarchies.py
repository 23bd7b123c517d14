"""Dimension hierarchies: functional dependencies among the columns of a dimension table, and what they add to a cube.

    storeID → city → region                        a store is in one city, a city in one region
    closure({storeID})  = {storeID, city, region}  grouping by storeID is grouping by all three
    combined lattice    = the product of one lattice per dimension, its hierarchy with "none" below     (figure 5)
    joins(v1 → v2)      = the tables that v2 has a column of, and v1 was not joined with before         (example 5.3)

Mumick, Quass and Mumick (1997), sections 3.3 and 5.2 to 5.4. A hierarchy may be a partial order (weeks and months do
not contain each other); a point of the combined lattice groups by one of its columns or by none, as Harinarayan,
Rajaraman and Ullman have it.

Which edges need a join depends on what a view has besides what it was requested. The paper's text gives two readings:

- Example 5.1, before anything is optimized: a view has exactly its own columns, so sR_sales needs `stores` to come
  from sCD_sales, whose cities have no regions. This is `annotated(..., carrying=False)`.
- Example 5.4 and appendix B: a join is pushed down to the first edge that needs its table, and from there on the
  columns that it brought are carried along. sCD_sales gets the region as well, at no more groups, and sR_sales comes
  from it without "(re-)joining". Figure 5 is labelled after this pushing (example 5.3), so it is what `annotated` does
  unless told otherwise: the edge storeID → city is labelled, where the table is first met, and city → region is not.
  It is also the sounder one: city is no key of `stores`, and a join on it repeats every row once per store of the
  city. `carried` tells which columns a view must have in addition.

The key of a dimension table, the column that nothing else determines, is a column of the fact table and needs no join.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from viewkeeper.errors import DefinitionError
from viewkeeper.summary.cube_lattice import Edge, Lattice, LatticeNode, direct_product

NONE = LatticeNode(())
Chains = tuple[tuple[str, ...], ...]
"""what is declared of one table: columns that determine those after them, the finest first"""
Declared = Sequence[str] | Sequence[Sequence[str]]
"""one chain, or several: a hierarchy is a partial order, such as day, month, year and day, week"""


def chains_of(declared: Declared) -> Chains:
    """The chains that are declared, each once."""
    if all(isinstance(one, str) for one in declared):
        return (tuple(map(str, declared)),) if declared else ()
    if any(isinstance(one, str) for one in declared):
        raise DefinitionError(
            f"a hierarchy mixes columns and chains of columns: {', '.join(map(str, declared))}",
            "write one chain, such as storeID, city, region, or a list of chains",
        )
    return tuple(dict.fromkeys(tuple(chain) for chain in declared))


@dataclass(frozen=True)
class Hierarchy:
    """The dimension table `name`; each of `dependencies` is (a, b): a determines b."""

    name: str
    dependencies: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        if not self.dependencies:
            raise DefinitionError(
                f"hierarchy {self.name} is empty", "give it two columns or more, the finest first, or leave it out"
            )
        for attribute in self.attributes:
            if circle := self._way(attribute, attribute):
                raise DefinitionError(
                    f"hierarchy {self.name} runs in a circle: {' → '.join(circle)}",
                    "columns that determine each other group alike: keep one of them",
                )

    @classmethod
    def chain(cls, name: str, attributes: Sequence[str]) -> "Hierarchy":
        """A total order, the finest column first."""
        return cls.of(name, [attributes])

    @classmethod
    def of(cls, name: str, chains: Iterable[Sequence[str]]) -> "Hierarchy":
        """A partial order: what each of the chains says, together."""
        return cls(name, tuple(dict.fromkeys(step for chain in chains for step in pairwise(chain))))

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """All its columns, in the order in which the dependencies name them."""
        return tuple(dict.fromkeys(attribute for dependency in self.dependencies for attribute in dependency))

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """What nothing else determines: the columns that the fact table has too."""
        determined = {below for _, below in self.dependencies}
        return tuple(attribute for attribute in self.attributes if attribute not in determined)

    @property
    def lines(self) -> tuple[str, ...]:
        """Its order, written down: the longest chains without a step that others imply."""
        steps = self.shown({attribute: attribute for attribute in self.attributes})
        below = {end for _, end in steps}
        chains = [chain for start in self.attributes if start not in below for chain in _walks((start,), steps)]
        return tuple(" → ".join(chain) for chain in chains)

    @cached_property
    def looked_up(self) -> frozenset[str]:
        """The columns that only a join with the dimension table gives."""
        return frozenset(self.attributes) - set(self.keys)

    def determines(self, above: str, below: str) -> bool:
        """Whether rows that agree in `above` agree in `below`."""
        return above == below or bool(self._way(above, below))

    def closure(self, attributes: Iterable[str]) -> frozenset[str]:
        """The attributes and all that they determine; those of other tables stay as they are."""
        given = frozenset(attributes)
        return given | {below for below in self.attributes if any(self._way(above, below) for above in given)}

    def lattice(self, finest: str | None = None) -> Lattice[LatticeNode]:
        """The dimension lattice (figure 4(b)), with none at the bottom; from one column down, or all of it."""
        named = self.attributes if finest is None else sorted(self.closure((finest,)), key=self.attributes.index)
        points = {attribute: LatticeNode((attribute,)) for attribute in named}
        steps = [(a, b) for a, b in dict.fromkeys(self.dependencies) if a in points]
        coarsest = points.keys() - {above for above, _ in steps}
        edges = [Edge(points[above], points[below]) for above, below in steps]
        edges += [Edge(points[attribute], NONE) for attribute in named if attribute in coarsest]
        return Lattice((*points.values(), NONE), tuple(edges)).reduced()

    def shown(self, names: Mapping[str, str]) -> Chains:
        """The chains of what is left of it under other names: steps between the columns that have one."""
        kept = [attribute for attribute in self.attributes if attribute in names]
        steps = [(a, b) for a in kept for b in kept if a != b and self._way(a, b)]
        direct = [(a, b) for a, b in steps if not any((a, c) in steps and (c, b) in steps for c in kept)]
        return tuple((names[a], names[b]) for a, b in direct)

    def _way(self, above: str, below: str) -> tuple[str, ...]:
        """A way of one step or more down the dependencies; empty if there is none."""
        ways: dict[str, tuple[str, ...]] = {above: (above,)}
        waiting = [above]
        while waiting:
            here = waiting.pop()
            for start, end in self.dependencies:
                if start == here and end == below:
                    return (*ways[here], below)
                if start == here and end not in ways:
                    ways[end] = (*ways[here], end)
                    waiting.append(end)
        return ()


def _walks(so_far: tuple[str, ...], steps: Chains) -> list[tuple[str, ...]]:
    onward = [end for start, end in steps if start == so_far[-1]]
    return [walk for end in onward for walk in _walks((*so_far, end), steps)] or [so_far]


def combined_lattice(dimensions: Sequence[str], hierarchies: Collection[Hierarchy]) -> Lattice[LatticeNode]:
    """Figure 5: each dimension at each level of its hierarchy, or not grouped by; one without a hierarchy is one level.

    A dimension may be any column of a hierarchy; what is finer is then left out. The edges are not labelled.
    """
    owners = _owners(hierarchies)
    taken: dict[str, str] = {}
    factors = []
    for dimension in dimensions:
        if dimension not in owners:
            point = LatticeNode((dimension,))
            factors.append(Lattice((point, NONE), (Edge(point, NONE),)))
            continue
        hierarchy = owners[dimension]
        if hierarchy.name in taken:
            raise DefinitionError(
                f"{taken[hierarchy.name]} and {dimension} are both of hierarchy {hierarchy.name}",
                "name the finer one only, or leave the hierarchy out to have them as two dimensions",
            )
        taken[hierarchy.name] = dimension
        factors.append(hierarchy.lattice(dimension))
    return direct_product(*factors)


def annotated(
    lattice: Lattice[LatticeNode], hierarchies: Collection[Hierarchy], *, carrying: bool = True
) -> Lattice[LatticeNode]:
    """The lattice with every edge labelled by the dimension tables to join: pushed down, and carried along or not."""

    def needed(edge: Edge[LatticeNode], hierarchy: Hierarchy) -> bool:
        wanted = edge.below.attributes & hierarchy.looked_up
        if carrying:
            return bool(wanted) and not edge.above.attributes & hierarchy.looked_up
        return not wanted <= edge.above.attributes

    _owners(hierarchies)
    for edge in lattice.edges:
        if lost := edge.below.attributes - _closure(edge.above, hierarchies):
            raise DefinitionError(
                f"{edge.below} does not follow from {edge.above}: nothing there determines {', '.join(sorted(lost))}",
                "add the missing dependency to a hierarchy, or remove the edge",
            )
    return replace(
        lattice,
        edges=tuple(
            replace(edge, joins=frozenset(hierarchy.name for hierarchy in hierarchies if needed(edge, hierarchy)))
            for edge in lattice.edges
        ),
    )


def carried(lattice: Lattice[LatticeNode], hierarchies: Collection[Hierarchy]) -> Mapping[LatticeNode, frozenset[str]]:
    """The columns that each view has in addition, so that the edges which `annotated` left bare need no join.

    Appendix B, "pushing projections": only what some view below still needs, from tables that the view is joined with
    anyway. Adding them makes no more groups, since the view's own columns determine them. With several parents every
    one of them carries; pass the lattice of the chosen edges to have only the chosen parents carry.
    """
    added: dict[LatticeNode, frozenset[str]] = {}
    for node in reversed(lattice.topological):
        wanted = frozenset[str]().union(*(child.attributes | added[child] for child in lattice.children(node)))
        at_hand = frozenset[str]().union(
            *(hierarchy.looked_up for hierarchy in hierarchies if node.attributes & hierarchy.looked_up)
        )
        added[node] = (wanted & at_hand) - node.attributes
    return added


def _owners(hierarchies: Iterable[Hierarchy]) -> dict[str, Hierarchy]:
    """The hierarchy of each column; every column has one, since a name stands for one column here."""
    owners: dict[str, Hierarchy] = {}
    for hierarchy in hierarchies:
        for attribute in hierarchy.attributes:
            if attribute in owners:
                raise DefinitionError(
                    f"{attribute} is in two hierarchies, {owners[attribute].name} and {hierarchy.name}",
                    "qualify the names if they are two columns; if it is one, make one hierarchy of both",
                )
            owners[attribute] = hierarchy
    return owners


def _closure(node: LatticeNode, hierarchies: Iterable[Hierarchy]) -> frozenset[str]:
    return node.attributes.union(*(hierarchy.closure(node.attributes) for hierarchy in hierarchies))
