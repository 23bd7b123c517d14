"""Expressions over columns in Arrow.

    a column                     stays in Arrow, as it is
    whether columns are NULL     is told by Arrow
    a constant                   is evaluated once
    anything else                row by row, by the functions of the in-memory engine, over the columns it mentions

The columns are first brought to the types that the expression is written for, as Spark does it.
"""

from collections.abc import Callable, Iterable
from itertools import repeat

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from viewkeeper.algebra.arrow_rows import arrow_array, python_values
from viewkeeper.algebra.arrow_types import as_named
from viewkeeper.algebra.memory import compile_conditions
from viewkeeper.algebra.zset import Row
from viewkeeper.sql.evaluation import flat_name
from viewkeeper.sql.expressions import Expression

ColumnOf = Callable[[str], pa.ChunkedArray]
"""The column of a name; it may have to be copied together, so only those that are needed are asked for."""


def true_places(conditions: tuple[Expression, ...], names: tuple[str, ...], column: ColumnOf, count: int) -> pa.Array:
    """The places, of so many rows, where all of the conditions are true."""
    places = pa.arange(0, count)
    others = []
    for condition in conditions:
        if (flag := _flag(condition, column)) is None:
            others.append(condition)
        else:
            places = places.filter(flag.take(places))
    if not others:
        return places
    mentioned = _mentioned(others, names)
    holds = compile_conditions(mentioned, tuple(others))
    assert holds is not None
    rows = _rows(others, mentioned, lambda name: column(name).take(places), len(places))
    return places.filter(pa.array(map(holds, rows), pa.bool_()))


def _flag(condition: Expression, column: ColumnOf) -> pa.ChunkedArray | None:
    """The condition as a column, if it is one or asks for NULLs only."""
    if (name := condition.is_column) is None:
        return _null_test(condition.node, column)
    flag = as_named(name, column(name), condition.type)
    return flag if pa.types.is_boolean(flag.type) else None


def _null_test(node: exp.Expr, column: ColumnOf) -> pa.ChunkedArray | None:
    """IS NULL of columns, with NOT, AND and OR. None of these is ever NULL itself."""
    node = node.unnest()
    if isinstance(node, exp.Is):
        tested = node.this.unnest()
        of_column = isinstance(tested, exp.Column) and isinstance(node.expression, exp.Null)
        return pc.is_null(column(flat_name(tested))) if of_column else None
    if isinstance(node, exp.Not):
        test = _null_test(node.this, column)
        return None if test is None else pc.invert(test)
    if not isinstance(node, exp.And | exp.Or):
        return None
    left = _null_test(node.left, column)
    right = None if left is None else _null_test(node.right, column)
    return None if right is None else (pc.and_ if isinstance(node, exp.And) else pc.or_)(left, right)


def computed(
    name: str, expression: Expression, names: tuple[str, ...], column: ColumnOf, count: int
) -> pa.ChunkedArray:
    """The values of an expression for so many rows, in its SQL type if that is known."""
    if (source := expression.is_column) is not None:
        return as_named(source, column(source), expression.type)
    mentioned = _mentioned((expression,), names)
    evaluate = expression.compile(mentioned)
    if not mentioned and count:
        value = as_named(name, pa.chunked_array([arrow_array(name, [evaluate(())])]), expression.type)
        return pa.chunked_array([pa.repeat(value[0], count)])
    values = [evaluate(row) for row in _rows((expression,), mentioned, column, count)]
    return as_named(name, pa.chunked_array([arrow_array(name, values)]), expression.type)


def _mentioned(expressions: Iterable[Expression], names: tuple[str, ...]) -> tuple[str, ...]:
    wanted = frozenset[str]().union(*(expression.columns for expression in expressions))
    return tuple(name for name in dict.fromkeys(names) if name in wanted)


def _rows(expressions: Iterable[Expression], names: tuple[str, ...], column: ColumnOf, count: int) -> Iterable[Row]:
    """The rows of these columns, in the types that the expressions are written for."""
    if not names:
        return repeat((), count)
    declared = dict(pair for expression in expressions for pair in expression.column_types)
    values = (python_values(name, as_named(name, column(name), declared.get(name, ""))) for name in names)
    return zip(*values, strict=True)
