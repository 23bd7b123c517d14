"""An operator tree as JSON, and back: a stored view is read without Spark, and nothing of it is executed by reading.

    {"version": 1, "query": {"is": "Query", "root": {"is": "Filter", "input": ..., "condition": "(c1 > 3L)"}, ...}}

A tree that has an operator twice has it twice here, and once again when it is read: equal operators are one.
"""

from dataclasses import fields, is_dataclass
from typing import Any

from viewkeeper.errors import DamagedWarehouse
from viewkeeper.sql import tree
from viewkeeper.sql.tree import Query

VERSION = 1
_KINDS = {
    kind.__name__: kind
    for kind in (
        tree.Column,
        tree.Computed,
        tree.Order,
        tree.Scan,
        tree.Project,
        tree.Filter,
        tree.Generate,
        tree.Repeat,
        tree.Union,
        tree.Join,
        tree.Call,
        tree.Aggregate,
        tree.Window,
        tree.Limit,
        tree.AtMostOne,
        tree.Recompute,
        tree.Query,
    )
}


def to_json(query: Query) -> dict[str, Any]:
    """The stored form of a query."""
    return {"version": VERSION, "query": _plain(query)}


def from_json(stored: Any) -> Query:
    """The query of a stored form; DamagedWarehouse if it is none."""
    try:
        if stored["version"] != VERSION:
            raise DamagedWarehouse(
                f"a view is stored in version {stored['version']} of its plan, and this is version {VERSION}",
                "use the version of viewkeeper that wrote it, or create the view again",
            )
        query = _tree(stored["query"])
    except (KeyError, TypeError) as error:
        raise DamagedWarehouse(f"the stored plan of a view is damaged: {error}", "create the view again") from error
    if not isinstance(query, Query):
        raise DamagedWarehouse("the stored plan of a view is no query", "create the view again")
    return query


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {"is": type(value).__name__} | {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _tree(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_tree(one) for one in value)
    if not isinstance(value, dict):
        return value
    given = {name: _tree(one) for name, one in value.items() if name != "is"}
    return _KINDS[value["is"]](**given)
