"""The definition of a view that is any query, read by Spark."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from viewkeeper.errors import DefinitionError, UnsupportedClause
from viewkeeper.lake.log.columns import RESERVED, checked_columns
from viewkeeper.levels import Level
from viewkeeper.operators.normal_form import words
from viewkeeper.operators.plan import NodePlan
from viewkeeper.planner.canonical import Parsed
from viewkeeper.planner.composed.checked_texts import check_texts
from viewkeeper.planner.composed.composed_view import ComposedView, columns_of, sources_of
from viewkeeper.sql.catalyst.reading import read_query
from viewkeeper.sql.catalyst.rendering import to_sql
from viewkeeper.sql.definition import GLOBAL_TIMEOUT, RETENTION, read_definition
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.syntax import ViewDialect, not_too_deep
from viewkeeper.sql.tree import Operator, Query, Recompute, Scan, in_order
from viewkeeper.sql.view import View

REFRESH_POLICY = "refresh_policy"
AUTO, INCREMENTAL, FULL = "auto", "incremental", "full"
OF_COMPOSED = ("consistency", "group", RETENTION, GLOBAL_TIMEOUT, REFRESH_POLICY)


def read_view(
    sql: str, relations: Mapping[str, Relation], spark: Callable[[], Any], composed: Collection[str] = ()
) -> Parsed | ComposedView:
    """A join, an outer join or a summary in its own form; any other query, one that is to be computed as a whole, and a
    join that reads such views, which are `composed`, as operators."""
    with not_too_deep():
        policy = dict(read_definition(sql, None).properties).get(REFRESH_POLICY)
    if policy != FULL:
        with suppress(UnsupportedClause):
            parsed = parse_definition(sql, relations)
            if not isinstance(parsed, View) or not parsed.relations.keys() & set(composed):
                return parsed
    return read_composed(sql, relations, spark)


def read_composed(sql: str, relations: Mapping[str, Relation], spark: Callable[[], Any]) -> ComposedView:
    """The view that a CREATE defines, in a group of its own name; DefinitionError if it can be none."""
    with not_too_deep():
        definition = read_definition(sql, None)
    _refuse_properties(definition.name, definition.properties)
    properties = dict(definition.properties)
    query = read_query(spark(), query_text(sql), relations)
    if reads_the_clock(query):
        raise UnsupportedClause(
            f"{definition.name} depends on the time at which it is read, which changes without any change at a source",
            "compare with a literal, or apply the function when reading the view",
        )
    query = _by_policy(definition.name, query, properties.get(REFRESH_POLICY, AUTO))
    check_texts(query)
    level = Level.COMPLETE if properties.get("consistency") == "complete" else Level.STRONG
    return ComposedView(
        definition.name,
        definition.sql,
        definition.properties,
        query,
        properties.get("group", definition.name),
        level,
        sources_of(query, relations),
    )


def query_text(sql: str) -> str:
    """The query of a CREATE ... AS, as it was written."""
    tokens, depth = ViewDialect().tokenize(sql), 0
    if tokens[0].text.upper() != "CREATE":
        return sql
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if not depth and token.text.upper() == "AS":
            return sql[token.end + 1 :].strip().rstrip(";")
    raise DefinitionError("the view has no query", "write CREATE MATERIALIZED VIEW name AS SELECT ...")


def _refuse_properties(name: str, properties: tuple[tuple[str, str], ...]) -> None:
    for key, value in properties:
        if key not in OF_COMPOSED:
            raise UnsupportedClause(
                f"the property {key} does not apply to {name}, which is maintained operator by operator",
                f"it can have {', '.join(OF_COMPOSED)}",
            )
        if key == "consistency" and value not in ("auto", "strong", "complete"):
            raise UnsupportedClause(
                f"{name} is maintained operator by operator, at the level strong or complete",
                "leave 'consistency' out, or choose one of these",
            )


def _by_policy(name: str, query: Query, policy: str) -> Query:
    if policy == FULL and not isinstance(query.root, Recompute):
        query = _recomputed(query, f"'{REFRESH_POLICY}' = '{FULL}'")
    elif (why := _not_storable(query)) is not None:
        query = _recomputed(query, why)
    if policy == INCREMENTAL and isinstance(query.root, Recompute):
        raise UnsupportedClause(
            f"{name} is not maintained incrementally: {query.root.why}",
            f"leave '{REFRESH_POLICY}' out: Spark then computes it again when what it reads changes",
        )
    return query


def _not_storable(query: Query) -> str | None:
    """Why the rows that an operator needs cannot be stored; None if they can."""
    for name, (table, _) in NodePlan.of(query).tables.items():
        try:
            checked_columns(f"{RESERVED}{name}", columns_of(table))
        except DefinitionError as error:
            return f"what an operator needs cannot be stored: {error.detail}"
    return None


def _recomputed(query: Query, why: str) -> Query:
    """The same query as one node that Spark computes from whole relations."""
    scans = tuple(one for one in in_order(query.root) if isinstance(one, Scan))
    names: dict[Operator, str] = {scan: f"input_{number}" for number, scan in enumerate(scans, start=1)}
    root = Recompute(to_sql(query.root, names), scans, tuple(names.values()), query.root.columns, why)
    return replace(query, root=root)


def reads_the_clock(query: Query) -> bool:
    """Whether a query depends on the time at which it is asked."""
    texts = " ".join(str(placed.node.operator) for placed in NodePlan.of(query).nodes)
    return bool(words(texts) & {"current_date", "current_timestamp", "now"})
