"""Hierarchies that nobody has declared, and that would let a summary be computed from a smaller one.

by region, from what has sales by store and day, joined with stores       as it is
by region, from by city and day                                           if every city is in one region
"""

from collections.abc import Iterator, Sequence
from itertools import product

from viewkeeper.explaining.explained_table import LatticeExplained
from viewkeeper.explaining.situations import HierarchyFacts
from viewkeeper.explaining.summary_explanation import Table
from viewkeeper.planner.summaries.lattice import Lattice
from viewkeeper.planner.view_properties import VIEWS
from viewkeeper.summary.derivation import Determined, derive
from viewkeeper.summary.node import Node
from viewkeeper.summary.plan import Lineage, Plan
from viewkeeper.summary.star import Dimension


def missing_hierarchies(explained: LatticeExplained, tables: Sequence[Table]) -> tuple[HierarchyFacts, ...]:
    """The one that saves a summary most; of a family none, for its own tables are computed from each other."""
    if len(tables) > 1:
        return ()
    ways = [way for way in _supposed(explained, tables[0].table) if way.cost_then < way.cost_now]
    return (min(ways, key=lambda way: way.cost_then),) if ways else ()


def _supposed(explained: LatticeExplained, name: str) -> Iterator[HierarchyFacts]:
    lattice, overview = explained.lattice, explained.overview
    below, now, expected = lattice.nodes[name], _cost(explained.plan, name), overview.expected(lattice)
    smaller = [node for node in lattice.nodes.values() if node is not below and expected(node.name) < now]
    for dimension in below.dimensions:
        relation = dimension.relation
        declared = overview.hierarchies.of(relation.name)
        if relation.source == VIEWS:
            continue
        for above in smaller:
            for by, attribute in product(_grouped(above, dimension), _grouped(below, dimension)):
                if declared is not None and (declared.determines(by, attribute) or declared.determines(attribute, by)):
                    continue
                if_declared = _if_declared(overview.hierarchies.determined, relation.name, by, attribute)
                if by == attribute or derive(below, above, determined=if_declared) is None:
                    continue
                # Whether it fits together with all else shows only in a whole plan.
                plan = _lineage(lattice, if_declared).plan(expected)
                chosen = plan.edge(name).above.name
                yield HierarchyFacts(name, relation.name, (by, attribute), chosen, now, _cost(plan, name))


def _lineage(lattice: Lattice, determined: Determined) -> Lineage:
    nodes, changes = list(lattice.nodes.values()), lattice.lineage.changes
    return Lineage(
        nodes,
        changes,
        core_readable=lattice.facts.readable,
        determined=determined,
        facts_only=True,
        relied=lattice.relied,
    )


def _if_declared(known: Determined, relation: str, by: str, attribute: str) -> Determined:
    """What is declared, and that one column determines another."""

    def determined(dimension: Dimension, columns: frozenset[str]) -> frozenset[str]:
        more = dimension.relation.name == relation and by in known(dimension, columns) | columns
        return known(dimension, columns | {attribute}) | {attribute} if more else known(dimension, columns)

    return determined


def _cost(plan: Plan, name: str) -> float:
    chosen = plan.edge(name).above.name
    return next(one.cost for one in plan.considered[name] if one.above == chosen)


def _grouped(node: Node, dimension: Dimension) -> list[str]:
    """The columns of a dimension that a node is grouped by."""
    return [bare for flat, bare in dimension.columns.items() if any(group.is_column == flat for group in node.groups)]
