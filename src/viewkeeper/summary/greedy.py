"""Which views of a lattice to store: the greedy choice of Harinarayan, Rajaraman and Ullman (SIGMOD 1996).

    cost_S(w)     = the least size of a view in S that w is, or can be computed from        (to answer w is to read it)
    benefit(v, S) = Σ over w ≤ v of  weight(w) · max(0, cost_S(w) − size(v))
    greedy          S = {top};  again and again add the v with the most benefit(v, S)

The benefit of what is chosen is at least 1 − 1/e = 63% of that of the best choice of as many views; no polynomial
algorithm does better in general. With a budget of space instead of a number, the v with the most benefit per unit of
its size is added, and what no longer fits is skipped; the bound is then lower by the share of the budget that the
largest view takes. Views that are of no use to anyone are not chosen, even if there is room.

The top is always stored and is no choice: it counts neither in `count` nor in `space_budget`, only in `total_space`.
Among equals the smaller view goes first, then the earlier one in the topological order, so that a run can be repeated.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import expm1, inf, log1p, prod
from typing import Generic

from viewkeeper.errors import UsageError
from viewkeeper.summary.cube_lattice import Lattice, LatticeNode, Node
from viewkeeper.summary.hierarchies import Hierarchy


@dataclass(frozen=True)
class Choice(Generic[Node]):
    """A view that was chosen, and what follows: its benefit, the cost of all views and the space of all stored ones."""

    node: Node
    size: float
    benefit: float
    cost_after: float
    total_space: float


def choose(
    lattice: Lattice[Node],
    sizes: Mapping[Node, float],
    top: Node,
    *,
    count: int | None = None,
    space_budget: float | None = None,
    weights: Mapping[Node, float] | None = None,
) -> list[Choice[Node]]:
    """The views to store besides the top, in the order of their choice: at most `count`, or what `space_budget` holds.

    `weights` say how often each view is requested; one that is left out is requested once.
    """
    if (count is None) == (space_budget is None):
        raise UsageError("the greedy choice needs one limit", "give count, or space_budget, and not both")
    weight = _weights(lattice, weights)
    costs = _costs(lattice, sizes, {top})
    room = inf if space_budget is None else space_budget
    space = sizes[top]
    candidates = [node for node in lattice.topological if node != top]
    chosen: list[Choice[Node]] = []
    while candidates and (count is None or len(chosen) < count):
        candidates = [node for node in candidates if sizes[node] <= room]
        benefits = {node: _benefit(lattice, sizes, costs, weight, node) for node in candidates}
        worth = benefits if space_budget is None else {v: _per_unit(benefits[v], sizes[v]) for v in candidates}
        # max() takes the first of equals, and the candidates are in topological order.
        best = max(candidates, key=lambda node: (worth[node], -sizes[node]), default=None)
        if best is None or benefits[best] <= 0:
            break
        candidates.remove(best)
        room -= sizes[best]
        space += sizes[best]
        for node in (best, *lattice.descendants(best)):
            costs[node] = min(costs[node], sizes[best])
        after = _weighted(costs, weight)
        chosen.append(Choice(best, sizes[best], benefits[best], after, space))
    return chosen


def total_cost(
    lattice: Lattice[Node],
    sizes: Mapping[Node, float],
    stored: Collection[Node],
    weights: Mapping[Node, float] | None = None,
) -> float:
    """Σ over w of weight(w) · cost_S(w): reading each view once, from the smallest stored one that it comes from."""
    return _weighted(_costs(lattice, sizes, stored), _weights(lattice, weights))


def estimated_sizes(
    lattice: Lattice[LatticeNode],
    distinct: Mapping[str, int],
    rows: int,
    hierarchies: Collection[Hierarchy] = (),
) -> dict[LatticeNode, int]:
    """The rows that each view may have, from the distinct values of its columns and the rows of the fact table.

        n = Π distinct(a) over its columns a that no other of them determines
        size = n · (1 − (1 − 1/n)^rows)                                                          (Cardenas 1975)

    That is how many of n equally likely groups at least one row falls into. It is never above min(rows, n), and well
    below it where the two are near each other, which is where that simpler estimate is at its worst. Columns that
    depend on each other make it too large, unless a hierarchy says so.
    """
    if missing := {name for node in lattice.nodes for name in node.attributes} - distinct.keys():
        raise UsageError(
            f"no number of distinct values for {', '.join(sorted(missing))}", "count them, or give an upper bound"
        )

    def size(node: LatticeNode) -> int:
        if not node.attributes:
            return 1
        implied = {
            below
            for hierarchy in hierarchies
            for above in node.attributes
            for below in hierarchy.closure((above,)) & node.attributes
            if below != above
        }
        groups = prod(distinct[name] for name in node.attributes - implied)
        if rows <= 0 or groups <= 1:
            return min(max(rows, 0), groups)
        return min(rows, groups, max(1, round(-groups * expm1(rows * log1p(-1 / groups)))))

    return {node: size(node) for node in lattice.nodes}


def _benefit(
    lattice: Lattice[Node],
    sizes: Mapping[Node, float],
    costs: Mapping[Node, float],
    weight: Mapping[Node, float],
    view: Node,
) -> float:
    # In the order of the lattice: a sum of floats depends on its order, and a choice must not.
    served = lattice.descendants(view) | {view}
    return sum(weight[node] * max(0, costs[node] - sizes[view]) for node in lattice.nodes if node in served)


def _per_unit(benefit: float, size: float) -> float:
    return benefit / size if size else inf if benefit else 0.0


def _weighted(costs: Mapping[Node, float], weight: Mapping[Node, float]) -> float:
    return sum(weight[node] * cost for node, cost in costs.items())


def _costs(lattice: Lattice[Node], sizes: Mapping[Node, float], stored: Collection[Node]) -> dict[Node, float]:
    """cost_S(w) of every w."""
    if strange := [node for node in stored if node not in lattice.nodes]:
        raise UsageError(f"no view of the lattice: {', '.join(map(str, strange))}", "take one of its nodes")
    if unknown := [node for node in lattice.nodes if not sizes.get(node, -1) >= 0]:
        raise UsageError(f"no size for {', '.join(map(str, unknown))}", "give each view its number of rows, 0 or more")
    costs = {
        node: min((sizes[one] for one in stored if one == node or one in lattice.ancestors(node)), default=inf)
        for node in lattice.nodes
    }
    if lost := [node for node in lattice.nodes if costs[node] == inf]:
        raise UsageError(
            f"not to be computed from what is stored: {', '.join(map(str, lost))}",
            "store a view above it as well, or choose in a lattice that has one top",
        )
    return costs


def _weights(lattice: Lattice[Node], weights: Mapping[Node, float] | None) -> dict[Node, float]:
    given = weights or {}
    if wrong := [node for node in given if node not in lattice.nodes or not given[node] >= 0]:
        raise UsageError(f"no weight of a view: {', '.join(map(str, wrong))}", "weights are 0 or more, for views only")
    return {node: given.get(node, 1) for node in lattice.nodes}
