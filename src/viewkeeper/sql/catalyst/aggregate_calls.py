"""The aggregate functions of a plan's node: each once, with a column of its own."""

from collections.abc import Callable, Iterator
from typing import Any

from viewkeeper.sql.catalyst.expressions import Renderer, mode_of, order_text
from viewkeeper.sql.catalyst.functions import Dialect
from viewkeeper.sql.catalyst.literals import NotRendered
from viewkeeper.sql.catalyst.plan_json import Node
from viewkeeper.sql.tree import Call, Column, Order

_FLAGS = {"First": "ignoreNulls", "Last": "ignoreNulls", "AnyValue": "ignoreNulls"}
"""functions with an argument that is no expression in Spark's plan"""


_WITHIN = ("PercentileCont", "PercentileDisc")
"""functions whose first argument is what they order by"""


class AggregateCalls:
    """What one Aggregate computes; equal calls are one."""

    def __init__(self, renderer: Renderer, dialect: Dialect, column: Callable[[Any, bool], Column]) -> None:
        self._renderer = renderer
        self._dialect = dialect
        self._column = column
        self._known: dict[str, Call] = {}

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(self._known.values())

    def add(self, expression: Node, data_type: Any, nullable: bool) -> str:
        """The column of a call."""
        call = aggregate_call(expression, self._renderer, self._dialect)
        if call.sql not in self._known:
            column = self._column(data_type, nullable)
            self._known[call.sql] = Call(column, *_parts(call))
        return self._known[call.sql].column.name

    def count(self) -> None:
        """COUNT(*), where a group must have something."""
        self._known["count(1)"] = Call(self._column("long", False), "count", ("1",), sql="count(1)")


def aggregate_call(expression: Node, renderer: Renderer, dialect: Dialect) -> Call:
    """An AggregateExpression as a call, with a column that is yet to be named."""
    function = expression.expression("aggregateFunction")
    filtered = expression.children[1] if len(expression.children) > 1 else None
    name = dialect.functions.get(function.java_class)
    if name is None:
        raise NotRendered(f"the aggregate function {function.name}")
    if mode_of(function) == "TRY":
        name = f"try_{name}"
    distinct = bool(expression.fields["isDistinct"])
    order = tuple(renderer.order(one) for one in function.children if one.name == "SortOrder")
    arguments = renderer.texts(tuple(one for one in function.children if one.name != "SortOrder"))
    flag = _FLAGS.get(function.name)
    if flag is not None and function.fields[flag]:
        arguments = (*arguments, "true")
    if function.name == "HyperLogLogPlusPlus":
        arguments = (*arguments, f"{float(function.fields['relativeSD'])}D")
    if function.name in _WITHIN:
        arguments, order = _within(function, arguments)
    condition = renderer.text(filtered) if filtered is not None else None
    text = f"{name}({'DISTINCT ' if distinct else ''}{', '.join(arguments)})"
    if order:
        text += f" WITHIN GROUP (ORDER BY {', '.join(map(order_text, order))})"
    if condition is not None:
        text += f" FILTER (WHERE {condition})"
    return Call(Column("", ""), name, arguments, distinct, condition, order, text)


def _within(function: Node, arguments: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[Order, ...]]:
    descending = bool(function.fields["reverse"])
    return arguments[1:2], (Order(arguments[0], descending, not descending),)


def _parts(call: Call) -> tuple[Any, ...]:
    return (call.function, call.arguments, call.distinct, call.filter, call.order, call.sql)


def aggregates_of(expression: Any) -> Iterator[Any]:
    """The AggregateExpressions in an expression of the JVM, each before what follows it."""
    if expression.getClass().getSimpleName() == "AggregateExpression":
        yield expression
        return
    children = expression.children()
    for place in range(children.size()):
        yield from aggregates_of(children.apply(place))
