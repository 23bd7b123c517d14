"""A query that has no operator tree: its text, with its relations under names that any session can have.

`pg.public.orders` becomes `input_1 AS orders`, and `pg.public.orders.id` becomes `orders.id`, at the places of the text
at which Spark found them. That the text still means the same is checked: Spark analyzes both, and compares the plans.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from viewkeeper.errors import UnsupportedClause, is_of_engine
from viewkeeper.sql import tree
from viewkeeper.sql.catalyst.analysis import Analysis, elements, relations_in
from viewkeeper.sql.catalyst.plan_json import fields_of
from viewkeeper.sql.catalyst.type_text import quoted, type_text
from viewkeeper.sql.relation import Relation


def recompute(analysis: Analysis, sql: str, plan: Any, relations: Mapping[str, Relation], why: str) -> tree.Query:
    """The whole query as one node."""
    spelled = {name.casefold(): name for name in relations}
    parsed = analysis.parsed(sql)
    found = [spelled[_name(one)] for one in relations_in(parsed)]
    read = sorted(set(found), key=found.index)
    prefix = "input_"
    while prefix in sql.casefold():
        prefix = f"_{prefix}"
    names = {relation: f"{prefix}{place}" for place, relation in enumerate(read, 1)}
    text = _renamed(sql, parsed, {relation.casefold(): name for relation, name in names.items()})
    _check(analysis, text, plan, relations, {name: relation for relation, name in names.items()})
    columns = _Columns()
    scans = tuple(columns.scan(relations[one], one) for one in read)
    schema = fields_of(plan.schema().json())
    shown = tuple(columns.next(type_text(one["type"]), one["nullable"]) for one in schema)
    root = tree.Recompute(text, scans, tuple(names[one] for one in read), shown, why)
    return tree.Query(root, tuple(one["name"] for one in schema), (), analysis.version)


class _Columns:
    """Names c1, c2, ..."""

    def __init__(self) -> None:
        self._named = 0

    def next(self, data_type: str, nullable: bool) -> tree.Column:
        self._named += 1
        return tree.Column(f"c{self._named}", data_type, nullable)

    def scan(self, relation: Relation, name: str) -> tree.Scan:
        types = dict(zip(relation.columns, relation.types, strict=True))
        key = relation.key or ()
        columns = (self.next(types[one].lower(), one not in key) for one in relation.there)
        return tree.Scan(name, relation.there, tuple(columns))


def _check(
    analysis: Analysis, text: str, plan: Any, relations: Mapping[str, Relation], names: Mapping[str, str]
) -> None:
    try:
        read = analysis.analyzed(text, relations, names)
        same = read.sameResult(plan) or _without_numbers(read) == _without_numbers(plan)
    except Exception as error:
        if not is_of_engine(error):
            raise
        same = False
    if not same:
        raise UnsupportedClause(
            "the query names its relations in a way that cannot be replaced",
            "give each relation in FROM an alias, and qualify columns by it",
        )


def _without_numbers(plan: Any) -> str:
    """Recursion has numbers of its own, which differ in equal plans."""
    return re.sub(
        r"#\d+L?|(?<=CTERelationDef )\d+|(?<=Ref )\d+|(?<=UnionLoop )\d+", "#", plan.canonicalized().toString()
    )


def _renamed(sql: str, plan: Any, names: Mapping[str, str]) -> str:
    changes: dict[tuple[int, int], str] = {}
    for node, has_alias in _nodes(plan, False):
        kind = node.getClass().getSimpleName()
        place = _place(node)
        if place is None:
            continue
        if kind == "UnresolvedRelation" and _name(node) in names:
            last = elements(node.multipartIdentifier())[-1]
            changes[place] = names[_name(node)] + ("" if has_alias else f" AS {quoted(last)}")
        elif kind == "UnresolvedAttribute":
            parts = elements(node.nameParts())
            dropped = _qualifier([part.casefold() for part in parts], names)
            if dropped:
                changes[place] = ".".join(map(quoted, parts[dropped:]))
        elif kind == "UnresolvedStar" and node.target().isDefined():
            parts = elements(node.target().get())
            dropped = _qualifier([part.casefold() for part in [*parts, "*"]], names)
            if dropped:
                changes[place] = ".".join([*map(quoted, parts[dropped:]), "*"])
    for (start, stop), text in sorted(changes.items(), reverse=True):
        sql = sql[:start] + text + sql[stop:]
    return sql


def _qualifier(parts: list[str], names: Mapping[str, str]) -> int:
    """How many parts of a column's name stand before the relation's last one."""
    for relation in names:
        words = relation.split(".")
        for first in range(len(words) - 1):
            tail = words[first:]
            if parts[: len(tail)] == tail and len(parts) > len(tail):
                return len(tail) - 1
    return 0


def _nodes(node: Any, has_alias: bool) -> Iterator[tuple[Any, bool]]:
    """The nodes and expressions of a parsed plan, in its subqueries too, and whether an alias stands over each."""
    yield node, has_alias
    kind = node.getClass().getSimpleName()
    below = kind == "SubqueryAlias" or (kind == "UnresolvedSubqueryColumnAliases" and has_alias)
    for child in elements(node.children()):
        yield from _nodes(child, below)
    if _is_plan(node):
        for expression in elements(node.expressions()):
            yield from _nodes(expression, False)
        for inner in elements(node.subqueries()):
            yield from _nodes(inner, False)


def _is_plan(node: Any) -> bool:
    """Whether a node is one of a plan, and no expression."""
    return ".plans.logical." in node.getClass().getName() or "UnresolvedRelation" in node.getClass().getName()


def _name(relation: Any) -> str:
    return ".".join(elements(relation.multipartIdentifier())).casefold()


def _place(node: Any) -> tuple[int, int] | None:
    start, stop = node.origin().startIndex(), node.origin().stopIndex()
    return (start.get(), stop.get() + 1) if start.isDefined() and stop.isDefined() else None
