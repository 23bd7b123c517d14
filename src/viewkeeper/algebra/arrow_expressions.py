"""Expressions over columns in Arrow.

    a column         stays in Arrow, as it is
    anything else    row by row, by the functions of the in-memory engine, over the columns that it mentions

The columns are first brought to the types that the expression is written for, as Spark does it.
"""

from collections.abc import Callable, Iterable
from itertools import repeat

import pyarrow as pa

from viewkeeper.algebra.arrow_rows import arrow_array, python_values
from viewkeeper.algebra.arrow_types import as_named
from viewkeeper.algebra.memory import compile_conditions
from viewkeeper.algebra.zset import Row
from viewkeeper.sql.expressions import Expression

ColumnOf = Callable[[str], pa.ChunkedArray]
"""The column of a name; it may have to be copied together, so only those that are needed are asked for."""


def true_places(conditions: tuple[Expression, ...], names: tuple[str, ...], column: ColumnOf, count: int) -> pa.Array:
    """The places, of so many rows, where all of the conditions are true."""
    places = pa.arange(0, count)
    others = []
    for condition in conditions:
        name = condition.is_column
        if name is None or not pa.types.is_boolean((flag := as_named(name, column(name), condition.type)).type):
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


def computed(
    name: str, expression: Expression, names: tuple[str, ...], column: ColumnOf, count: int
) -> pa.ChunkedArray:
    """The values of an expression for so many rows, in its SQL type if that is known."""
    if (source := expression.is_column) is not None:
        return as_named(source, column(source), expression.type)
    mentioned = _mentioned((expression,), names)
    evaluate = expression.compile(mentioned)
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
