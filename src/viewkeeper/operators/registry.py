"""Which node maintains which operator."""

from viewkeeper.operators.aggregate import SumsNode, is_linear
from viewkeeper.operators.join import InnerJoinNode
from viewkeeper.operators.keyed import KeyedNode
from viewkeeper.operators.linear import FilterNode, GenerateNode, ProjectNode, RepeatNode, ScanNode, UnionNode
from viewkeeper.operators.node import Node
from viewkeeper.operators.outer_join import OuterJoinNode
from viewkeeper.operators.recompute import RecomputeNode
from viewkeeper.sql.tree import (
    Aggregate,
    AtMostOne,
    Filter,
    Generate,
    Join,
    Limit,
    Operator,
    Project,
    Recompute,
    Repeat,
    Scan,
    Union,
    Window,
)


def node_of(operator: Operator, number: int) -> Node:
    """The node of an operator, which is the number-th of its plan."""
    match operator:
        case Scan():
            return ScanNode(operator)
        case Project():
            return ProjectNode(operator)
        case Filter():
            return FilterNode(operator)
        case Generate():
            return GenerateNode(operator)
        case Repeat():
            return RepeatNode(operator)
        case Union():
            return UnionNode(operator)
        case Join(kind="inner"):
            return InnerJoinNode(operator, number)
        case Join():
            return OuterJoinNode(operator, number)
        case Aggregate() if is_linear(operator):
            return SumsNode(operator, number)
        case Aggregate() | Window() | Limit() | AtMostOne():
            return KeyedNode(operator, number)
        case Recompute():
            return RecomputeNode(operator, number)
