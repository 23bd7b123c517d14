"""The aggregate functions of a plan's node: each once, with a column of its own."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from viewkeeper.sql.catalyst.expressions import Renderer
from viewkeeper.sql.catalyst.literals import NotRendered
from viewkeeper.sql.catalyst.plan_json import Node
from viewkeeper.sql.tree import Call, Column

_FLAGS = {"First": "ignoreNulls", "Last": "ignoreNulls", "AnyValue": "ignoreNulls"}
"""functions with an argument that is no expression in Spark's plan"""


class AggregateCalls:
    """What one Aggregate computes; equal calls are one."""

    def __init__(self, renderer: Renderer, functions: Mapping[str, str], column: Callable[[Any, bool], Column]) -> None:
        self._renderer = renderer
        self._functions = functions
        self._column = column
        self._known: dict[str, Call] = {}

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(self._known.values())

    def add(self, expression: Node, data_type: Any, nullable: bool) -> str:
        """The column of a call."""
        call = aggregate_call(expression, self._renderer, self._functions)
        if call.sql not in self._known:
            column = self._column(data_type, nullable)
            self._known[call.sql] = Call(column, *_parts(call))
        return self._known[call.sql].column.name

    def count(self) -> None:
        """COUNT(*), where a group must have something."""
        self._known["count(1)"] = Call(self._column("long", False), "count", ("1",), sql="count(1)")


def aggregate_call(expression: Node, renderer: Renderer, functions: Mapping[str, str]) -> Call:
    """An AggregateExpression as a call, with a column that is yet to be named."""
    function = expression.expression("aggregateFunction")
    filtered = expression.optional("filter")
    name = functions.get(function.java_class)
    if name is None:
        raise NotRendered(f"the aggregate function {function.name}")
    distinct = bool(expression.fields["isDistinct"])
    arguments = renderer.texts(function.children)
    flag = _FLAGS.get(function.name)
    if flag is not None and function.fields[flag]:
        arguments = (*arguments, "true")
    condition = renderer.text(filtered) if filtered is not None else None
    text = f"{name}({'DISTINCT ' if distinct else ''}{', '.join(arguments)})"
    if condition is not None:
        text += f" FILTER (WHERE {condition})"
    return Call(Column("", ""), name, arguments, distinct, condition, (), text)


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
