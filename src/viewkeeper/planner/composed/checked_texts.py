"""The texts of a stored tree: data, whoever wrote them, until they have passed the checks of a new view.

an expression    no query inside it, nothing that leaves SQL
a whole query    over the names of its inputs alone, nothing that leaves SQL
"""

from collections.abc import Iterator
from functools import lru_cache

from sqlglot import exp

from viewkeeper.errors import UnsupportedClause
from viewkeeper.sql.outside_sql import refuse_outside_sql
from viewkeeper.sql.stored_text import stored_type
from viewkeeper.sql.syntax import not_too_deep, parse_statement
from viewkeeper.sql.tree import (
    Aggregate,
    Filter,
    Generate,
    Join,
    Limit,
    Operator,
    Project,
    Query,
    Recompute,
    Repeat,
    Window,
    in_order,
)


def check_texts(query: Query) -> None:
    """UnsupportedClause or SyntaxProblem if a text of a tree is not what it should be."""
    for operator in in_order(query.root):
        for column in operator.columns:
            _check_name(column.name)
            stored_type(column.type)
        if isinstance(operator, Recompute):
            _check_query(operator.sql, operator.names)
        for text in _expressions(operator):
            _check_expression(text)
    for one in query.order:
        _check_expression(one.sql)


def _expressions(operator: Operator) -> Iterator[str]:
    match operator:
        case Project():
            yield from (one.sql for one in operator.expressions)
        case Filter():
            yield operator.condition
        case Generate():
            yield operator.generator
        case Repeat():
            yield operator.times
        case Join():
            yield from (side for pair in operator.keys for side in pair)
            if operator.condition is not None:
                yield operator.condition
        case Aggregate():
            yield from (one.sql for one in operator.keys)
            yield from (one.sql for one in operator.calls)
        case Window():
            yield from operator.partition
            yield from (one.sql for one in operator.functions)
        case Limit():
            yield from (one.sql for one in operator.order)


def _check_name(name: str) -> None:
    if not name.isidentifier():
        raise UnsupportedClause(f"{name[:60]!r} is no column of a tree", "create the view again")


@lru_cache(maxsize=8192)
def _check_expression(sql: str) -> None:
    with not_too_deep():
        # As an item of a list, so that whatever is an expression is one here.
        tree = parse_statement(f"SELECT {sql} FROM given")
        if not isinstance(tree, exp.Select) or len(tree.expressions) != 1 or len(list(tree.find_all(exp.Query))) > 1:
            raise UnsupportedClause(f"{sql[:60]!r} is no expression", "create the view again")
        for node in tree.walk():
            refuse_outside_sql(node)


@lru_cache(maxsize=1024)
def _check_query(sql: str, names: tuple[str, ...]) -> None:
    with not_too_deep():
        tree = parse_statement(sql)
        if not isinstance(tree, exp.Query):
            raise UnsupportedClause(f"{sql[:60]!r} is no query", "create the view again")
        known = {*names, *(one.alias.lower() for one in tree.find_all(exp.CTE))}
        for node in tree.walk():
            refuse_outside_sql(node)
            if isinstance(node, exp.Table) and (node.db or node.name.lower() not in known):
                raise UnsupportedClause(
                    f"{node.name[:60]!r} is none of the tables of the view", "create the view again"
                )
