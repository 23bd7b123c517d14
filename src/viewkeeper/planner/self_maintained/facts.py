"""What `automatic.py` decides by: gathered from the definition of a view, its sources, the commit log, and the
relations once they are read."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.errors import UnsupportedClause
from viewkeeper.lake.log.source_files import SourceDefinition
from viewkeeper.mediator.choice import with_option
from viewkeeper.planner.self_maintained.automatic import JoinFacts, RelationFacts
from viewkeeper.planner.view_properties import VIEWS
from viewkeeper.sources.registry import KINDS
from viewkeeper.sql.definition import OF_ALGORITHMS
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.view import Operand, OutputColumn, View
from viewkeeper.storage.join_tree import JoinTree, tree_of

_BYTES = {"BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INT": 4, "FLOAT": 4, "DATE": 4, "DECIMAL": 16, "BINARY": 64}
_STRING, _NESTED, _OTHER = 24, 64, 8


def facts_of(
    view: View | OuterJoinView, sources: Mapping[str, SourceDefinition], rates: Mapping[str, float]
) -> JoinFacts:
    """All that is known before a relation is read; `rates` are transactions per hour, by source."""
    properties = dict(view.properties)
    asked = properties.get("algorithm", "auto")
    options = [name for name in OF_ALGORITHMS if name in properties]
    tree = _tree(view)
    return JoinFacts(
        tuple(_relation(view, operand, tree, sources, rates) for operand in view.operands),
        outer=isinstance(view, OuterJoinView),
        equalities=tree is not None,
        over_views=VIEWS in view.sources,
        algorithm=asked if asked != "auto" else next((with_option(one)[0] for one in options), None),
    )


def with_sizes(facts: JoinFacts, view: View, contents: Mapping[str, Any]) -> JoinFacts:
    """The same, once the relations are read: with their rows, and those of the view."""
    sizes = {name: contents[name].size() for name in view.relations}
    relations = tuple(replace(one, rows=sizes[one.name]) for one in facts.relations)
    return replace(facts, relations=relations, rows=JoinPlan(_of_ids(view)).evaluate(contents).size())


def _of_ids(view: View) -> View:
    """The same joined rows, distinguished: a Z-set counts equal rows once."""
    columns = [
        OutputColumn(column, Expression.column(column, type))
        for operand in view.operands
        for column, type in zip(operand.columns, operand.relation.types, strict=True)
        if operand.key is None or column in operand.key
    ]
    return replace(view, output=tuple(columns))


def _tree(view: View | OuterJoinView) -> JoinTree | None:
    if len(view.operands) == 1:
        return None
    try:
        return tree_of(view)
    except UnsupportedClause:
        return None


def _relation(
    view: View | OuterJoinView,
    operand: Operand,
    tree: JoinTree | None,
    sources: Mapping[str, SourceDefinition],
    rates: Mapping[str, float],
) -> RelationFacts:
    source = sources.get(operand.source)
    types = dict(zip(operand.columns, operand.relation.types, strict=True))
    needed, compared = set(operand.columns), set(operand.key or ())
    if tree is not None:
        leaf = next(one for one in tree.leaves if one.operand == operand)
        conditions = {c for join in tree.joins for side in (join.left, join.right) for c in side.compared}
        needed, compared = set(leaf.columns), {c for c in leaf.columns if c in conditions or c in leaf.ids}
    return RelationFacts(
        operand.relation.name,
        operand.source,
        source.kind if source is not None else "view",
        source is None or not KINDS[urlsplit(source.url).scheme].reads_with_spark,
        _scanned_by(view, operand) if isinstance(view, View) else (),
        sum(bytes_of(types.get(column, "BIGINT")) for column in needed),
        sum(bytes_of(types.get(column, "BIGINT")) for column in compared),
        transactions_per_hour=rates.get(operand.source),
    )


def _scanned_by(view: View, operand: Operand) -> tuple[str, ...]:
    """The columns by which changes of others look up an operand, if they are not its whole key."""
    plan, key = JoinPlan(view), set(operand.key or ())
    for start in view.operands:
        for hop in plan.path(frozenset({start.index})):
            by = tuple(right for _, right in hop.on)
            if hop.operand == operand and by and (not key or not key <= set(by)):
                return by
    return ()


def bytes_of(type: str) -> int:
    """About what a value of a type takes."""
    name = type.partition("(")[0].partition("<")[0].strip().upper()
    if name in ("STRING", "VARCHAR", "CHAR"):
        return _STRING
    return _NESTED if name in ("ARRAY", "MAP", "STRUCT") else _BYTES.get(name, _OTHER)
