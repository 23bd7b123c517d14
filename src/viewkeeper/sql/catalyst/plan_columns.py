"""What the nodes of a plan give to the nodes above them: columns, by Spark's numbers."""

from viewkeeper.sql.catalyst.literals import NotRendered
from viewkeeper.sql.catalyst.plan_json import Node, expr_id, is_nodes, nested

JOINS = {
    "Inner": "inner",
    "Cross": "inner",
    "LeftOuter": "left",
    "RightOuter": "right",
    "FullOuter": "full",
    "LeftSemi": "semi",
    "LeftAnti": "anti",
    "LeftSingle": "single",
    "ExistenceJoin": "existence",
}


def number(expression: Node) -> int:
    """The number of a column, or of an expression with an alias."""
    return expr_id(expression.fields["exprId"])


def references(*expressions: Node) -> set[int]:
    """The columns that expressions name, the subqueries' own aside."""
    return {number(one) for each in expressions for one in each.walk() if one.name == "AttributeReference"}


def outputs(node: Node) -> tuple[int, ...]:
    """The columns of a plan in their order; the same one may stand there twice."""
    match node.name:
        case "Project":
            return tuple(map(number, node.expressions("projectList")))
        case "Aggregate":
            return tuple(map(number, node.expressions("aggregateExpressions")))
        case "Window":
            return outputs(node.children[0]) + tuple(map(number, node.expressions("windowExpressions")))
        case "Generate":
            dropped = set(node.fields["unrequiredChildIndex"])
            below = outputs(node.children[0])
            passed = tuple(one for place, one in enumerate(below) if place not in dropped)
            return passed + tuple(map(number, node.expressions("generatorOutput")))
        case "Expand":
            return tuple(map(number, node.expressions("output")))
        case "HiveTableRelation":
            return tuple(map(number, node.expressions("dataCols")))
        case "Join":
            kind = join_kind(node)
            left = outputs(node.children[0])
            if kind in ("semi", "anti"):
                return left
            if kind == "existence":
                return (*left, existence(node))
            return left + outputs(node.children[1])
        case _ if node.children:
            return outputs(node.children[0])
    raise NotRendered(f"the operator {node.name}")


def join_kind(node: Node) -> str:
    """One of the kinds of the tree, right or existence."""
    kind = node.fields["joinType"]
    name = (kind.get("object") or kind.get("product-class")).rstrip("$").rpartition(".")[2]
    if name not in JOINS:
        raise NotRendered(f"a join of kind {name}")
    return JOINS[name]


def existence(node: Node) -> int:
    """The column that an existence join adds."""
    flag = node.fields["joinType"]["exists"]
    return number(nested(flag) if is_nodes(flag) else flag)


def conjuncts(condition: Node | None) -> list[Node]:
    """The parts of a condition that all must be true."""
    if condition is None:
        return []
    if condition.name == "And":
        return [part for child in condition.children for part in conjuncts(child)]
    return [condition]


_EXPRESSIONS = {
    "Project": ("projectList",),
    "Filter": ("condition",),
    "Join": ("condition",),
    "Aggregate": ("groupingExpressions", "aggregateExpressions"),
    "Window": ("windowExpressions", "partitionSpec", "orderSpec"),
    "Generate": ("generator",),
}


def expressions_of(node: Node) -> list[Node]:
    """The expressions of a plan's node, in the order of the plan."""
    found = []
    for field in _EXPRESSIONS.get(node.name, ()):
        value = node.fields.get(field)
        if is_nodes(value) or isinstance(value, int):
            found.append(node.expression(field))
        elif value:
            found += node.expressions(field)
    return found
