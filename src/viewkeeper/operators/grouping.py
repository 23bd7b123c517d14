"""Groups computed from all of their rows, in memory: counts, sums, averages and extremes, of all values or of distinct
ones."""

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

from viewkeeper.operators.aggregate import average, fitting_sum, is_exact
from viewkeeper.operators.expressions import flat
from viewkeeper.sql.row_functions import order
from viewkeeper.sql.tree import Aggregate, Call

Row = tuple[Any, ...]
_Weighted = list[tuple[Any, int]]


def grouped(
    aggregate: Aggregate, columns: Sequence[str], rows: Iterable[tuple[Row, int]]
) -> list[tuple[Row, int]] | None:
    """The groups of some rows; None if a function is not computed here."""
    functions = [_function(aggregate, call) for call in aggregate.calls]
    if not all(functions):
        return None
    keys = [columns.index(flat(one.sql)) for one in aggregate.keys]
    arguments = [
        columns.index(flat(call.arguments[0])) if _is_column(aggregate, call) else None for call in aggregate.calls
    ]
    groups: dict[Row, list[tuple[Row, int]]] = {}
    for row, weight in rows:
        groups.setdefault(tuple(row[place] for place in keys), []).append((row, weight))
    if not keys:
        groups.setdefault((), [])
    made = []
    for key, members in groups.items():
        values = []
        for call, place, function in zip(aggregate.calls, arguments, functions, strict=True):
            given = [(True if place is None else row[place], weight) for row, weight in members]
            given = [(value, weight) for value, weight in given if value is not None]
            if call.distinct:
                given = [(value, 1) for value in dict.fromkeys(value for value, _ in given)]
            assert function is not None
            values.append(function(given))
        made.append(((*key, *values), 1))
    return made


def _is_column(aggregate: Aggregate, call: Call) -> bool:
    return call.arguments[0] in {one.name for one in aggregate.input.columns}


def _function(aggregate: Aggregate, call: Call) -> Callable[[_Weighted], Any] | None:
    if len(call.arguments) != 1 or call.filter is not None or call.order:
        return None
    types = {one.name: one.type for one in aggregate.input.columns}
    type = types.get(call.arguments[0])
    if type is None and not (call.function == "count" and call.arguments[0].isdigit()):
        return None
    if call.function == "count":
        return lambda values: sum(weight for _, weight in values)
    if call.function in ("min", "max"):
        if type is None or type.startswith(("array", "struct", "map", "binary", "interval")):
            return None
        best = min if call.function == "min" else max
        by = cmp_to_key(order)
        return lambda values: best((value for value, _ in values), key=by) if values else None
    if call.function in ("sum", "avg") and type is not None and is_exact(type):
        column = call.column

        def total(values: _Weighted) -> Any:
            if not values:
                return None
            whole = sum((Decimal(value) * weight for value, weight in values), Decimal(0))
            count = sum(weight for _, weight in values)
            return fitting_sum(whole, column) if call.function == "sum" else average(whole, count, column)

        return total
    return None
