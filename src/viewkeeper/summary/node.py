"""A node of the lattice: a stored summary table, seen or hidden.

    N  =  γ groups; COUNT(*), measures ( σ where ( fact ⋈ dimensions ) )

Users see the tables that they define. Hidden ones stand above them: a root has the foreign keys of the fact, so that
changes of dimensions need no fact; a node for MIN, MAX, COUNT(DISTINCT e) and the spread of DOUBLE also groups by e.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from viewkeeper.sql.expressions import Expression
from viewkeeper.summary.measures import ExtremeFunction, Measure
from viewkeeper.summary.node_shape import FromNode, Linear, NodeShape, Recomputed
from viewkeeper.summary.star import Dimension

COUNT = "_vk_count"
"""COUNT(*), in a table that does not show it"""


@dataclass(frozen=True)
class Extreme:
    """MIN(e), MAX(e), COUNT(DISTINCT e) or Σ (e - mean)² of a table: its column, and the node that also groups by e."""

    column: str
    function: ExtremeFunction
    value: Expression
    node: str
    recomputed: bool = False
    """whether it is looked up in the stored core, and the node is not stored but only has a summary-delta"""


@dataclass(frozen=True)
class Node:
    """One table of the lattice. Groups and measures have the columns that they are stored in."""

    name: str
    fact: str
    dimensions: tuple[Dimension, ...]
    where: frozenset[Expression]
    groups: Mapping[Expression, str]
    measures: Mapping[Measure, str]
    count: str = COUNT
    extremes: tuple[Extreme, ...] = ()
    hidden: bool = False
    stored: bool = True
    types: Mapping[str, str] = field(default_factory=dict)
    """Spark's types of the columns, once they are known"""

    @cached_property
    def paths(self) -> frozenset[str]:
        return frozenset(dimension.path for dimension in self.dimensions)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.groups.values())

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its summary-delta: groups, COUNT(*), measures."""
        return (*self.groups.values(), self.count, *self.measures.values())

    def same_groups(self, groups: frozenset[Expression]) -> bool:
        return frozenset(self.groups) == groups

    def __hash__(self) -> int:
        return hash(self.name)


def rest_column(column: str) -> str:
    """Where the rounding error of a sum of DOUBLE is kept."""
    return f"_vk_rest_{column}"


def shape_of(node: Node, nodes: Mapping[str, Node]) -> NodeShape:
    """The node as the refresh function sees it."""
    linear = []
    for measure, column in node.measures.items():
        if measure.kind == "count":
            linear.append(Linear(column, "count"))
            continue
        counted = _count_behind(node, measure)
        if measure.floating:
            linear.append(Linear(column, "float_sum", counted, rest_column(column)))
        else:
            linear.append(Linear(column, "sum", counted))
    derived, recomputed = [], []
    for extreme in node.extremes:
        behind = nodes[extreme.node]
        value = behind.groups[extreme.value]
        if extreme.recomputed and extreme.function != "distinct" and extreme.function != "spread":
            count = node.measures[Measure("count", extreme.value)]
            recomputed.append(Recomputed(extreme.column, extreme.function, count, *recomputed_columns(extreme.column)))
        else:
            keys = tuple(behind.groups[group] for group in node.groups)
            derived.append(FromNode(extreme.column, extreme.function, extreme.node, keys, value, behind.count))
    return NodeShape(node.name, node.keys, node.count, tuple(linear), tuple(derived), tuple(recomputed))


def recomputed_columns(column: str) -> tuple[str, str]:
    """The columns of a summary-delta that have the extreme of the inserted and of the deleted values."""
    return f"_vk_inserted_{column}", f"_vk_deleted_{column}"


def _count_behind(node: Node, total: Measure) -> str:
    """The column that tells whether a sum has any value in it."""
    return node.measures[total.counted]
