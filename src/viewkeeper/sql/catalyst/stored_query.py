"""A query as JSON, for storing: plain data, read again without a JVM, and nothing of it is executed.

    {"version": 1, "operators": [{"operator": "Scan", ...}, {"operator": "Filter", "input": 0, ...}], "root": 1,
     "names": ["id"], "order": [], "spark": "4.3.0"}

Operators stand after those that they read and name them by their places, so what is shared stays shared.
"""

from dataclasses import fields
from typing import Any

from viewkeeper.errors import DamagedWarehouse, FormatTooNew
from viewkeeper.sql import tree

VERSION = 1
_OPERATORS = {
    one.__name__: one
    for one in (
        tree.Scan,
        tree.Project,
        tree.Filter,
        tree.Generate,
        tree.Repeat,
        tree.Union,
        tree.Join,
        tree.Aggregate,
        tree.Window,
        tree.Limit,
        tree.AtMostOne,
        tree.Recompute,
    )
}
_PARTS = {one.__name__: one for one in (tree.Column, tree.Computed, tree.Order, tree.Call)}
_INPUTS = ("input", "left", "right", "inputs")


def to_json(query: tree.Query) -> dict[str, Any]:
    """What `json.dumps` writes."""
    places: dict[tree.Operator, int] = {}
    operators = []
    for operator in tree.in_order(query.root):
        operators.append(_written(operator, places))
        places[operator] = len(places)
    return {
        "version": VERSION,
        "operators": operators,
        "root": places[query.root],
        "names": list(query.names),
        "order": [_value(one) for one in query.order],
        "spark": query.spark,
    }


def from_json(stored: Any) -> tree.Query:
    """The query that was stored; DamagedWarehouse if it is none, FormatTooNew if a later version wrote it."""
    try:
        if int(stored["version"]) > VERSION:
            raise FormatTooNew(
                f"the stored query has version {stored['version']}, and this viewkeeper reads up to {VERSION}",
                "use the viewkeeper that wrote it, or a later one",
            )
        operators: list[tree.Operator] = []
        for one in stored["operators"]:
            operators.append(_operator(one, operators))
        return tree.Query(
            operators[_place(stored["root"])],
            tuple(map(_text, stored["names"])),
            tuple(_read(one) for one in stored["order"]),
            _text(stored["spark"]),
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise DamagedWarehouse(f"a stored query is not one: {error!r}", "recreate the view") from error


def _written(operator: tree.Operator, places: dict[tree.Operator, int]) -> dict[str, Any]:
    written: dict[str, Any] = {"operator": type(operator).__name__}
    for field in fields(operator):
        value = getattr(operator, field.name)
        if field.name == "inputs":
            written[field.name] = [places[one] for one in value]
        elif field.name in _INPUTS:
            written[field.name] = places[value]
        else:
            written[field.name] = _value(value)
    return written


def _value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_value(one) for one in value]
    if type(value).__name__ in _PARTS:
        return {"is": type(value).__name__, **{one.name: _value(getattr(value, one.name)) for one in fields(value)}}
    return value


def _operator(written: dict[str, Any], operators: list[tree.Operator]) -> tree.Operator:
    made: Any = _OPERATORS[written["operator"]]
    values: dict[str, Any] = {}
    for field in fields(made):
        value = written[field.name]
        if field.name == "inputs":
            values[field.name] = tuple(operators[_place(one)] for one in value)
        elif field.name in _INPUTS:
            values[field.name] = operators[_place(value)]
        else:
            values[field.name] = _read(value)
    result: tree.Operator = made(**values)
    return result


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_read(one) for one in value)
    if isinstance(value, dict):
        made: Any = _PARTS[value["is"]]
        return made(**{field.name: _read(value[field.name]) for field in fields(made)})
    if value is None or isinstance(value, (str, bool, int)):
        return value
    raise TypeError(f"a value that no operator has: {value!r}")


def _place(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(f"a place that is no number: {value!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a name that is no text: {value!r}")
    return value
