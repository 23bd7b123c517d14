"""Window functions with their whole OVER clause."""

from viewkeeper.sql.catalyst.aggregate_calls import aggregate_call
from viewkeeper.sql.catalyst.expressions import Renderer, order_text
from viewkeeper.sql.catalyst.functions import Dialect
from viewkeeper.sql.catalyst.literals import NotRendered
from viewkeeper.sql.catalyst.plan_json import Node, is_nodes, nested

RANKS = {"RowNumber": "row_number", "Rank": "rank", "DenseRank": "dense_rank", "PercentRank": "percent_rank"}
"""functions of the order alone: Spark's plan has the order among their arguments"""
_OFFSETS = ("Lag", "Lead", "NthValue")


def window_text(expression: Node, renderer: Renderer, dialect: Dialect) -> str:
    """`sum(c1) OVER (PARTITION BY c2 ORDER BY c3 ASC NULLS FIRST ROWS BETWEEN ...)`."""
    function, spec = expression.expression("windowFunction"), expression.expression("windowSpec")
    call = _function(function, renderer, dialect)
    parts = []
    if partition := renderer.texts(spec.expressions("partitionSpec")):
        parts.append(f"PARTITION BY {', '.join(partition)}")
    if order := tuple(map(renderer.order, spec.expressions("orderSpec"))):
        parts.append(f"ORDER BY {', '.join(map(order_text, order))}")
    frame = spec.expression("frameSpecification")
    # The frame of an offset or a rank is its own: Spark adds it by itself.
    if function.name == "AggregateExpression" or function.name == "NthValue":
        parts.append(_frame(frame, renderer))
    return f"{call} OVER ({' '.join(part for part in parts if part)})"


def _function(function: Node, renderer: Renderer, dialect: Dialect) -> str:
    if function.name == "AggregateExpression":
        return aggregate_call(function, renderer, dialect).sql
    if function.name in RANKS:
        return f"{RANKS[function.name]}()"
    name = dialect.functions.get(function.java_class)
    if name is None:
        raise NotRendered(f"the window function {function.name}")
    nulls = " IGNORE NULLS" if function.name in _OFFSETS and function.fields.get("ignoreNulls") else ""
    return f"{name}({', '.join(renderer.texts(function.children))}){nulls}"


def _frame(frame: Node, renderer: Renderer) -> str:
    if frame.name == "UnspecifiedFrame":
        return ""
    kind = str(frame.fields["frameType"]["object"]).rstrip("$").rpartition(".")[2]
    words = {"RowFrame": "ROWS", "RangeFrame": "RANGE"}
    lower, upper = (_bound(frame, side, renderer) for side in ("lower", "upper"))
    return f"{words[kind]} BETWEEN {lower} AND {upper}"


def _bound(frame: Node, side: str, renderer: Renderer) -> str:
    value = frame.fields[side]
    bound = frame.children[value] if isinstance(value, int) else nested(value) if is_nodes(value) else None
    if bound is None:
        raise NotRendered("a bound of a window's frame")
    names = {"UnboundedPreceding": "UNBOUNDED PRECEDING", "UnboundedFollowing": "UNBOUNDED FOLLOWING"}
    if bound.name in names:
        return names[bound.name]
    if bound.name == "CurrentRow":
        return "CURRENT ROW"
    if bound.name == "UnaryMinus":
        return f"{renderer.text(bound.children[0])} PRECEDING"
    text = renderer.text(bound)
    return f"{text[2:-1]} PRECEDING" if text.startswith("(-") and text[2:-1].isdigit() else f"{text} FOLLOWING"
