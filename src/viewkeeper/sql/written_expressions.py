"""Each expression of a view twice: as its user wrote it, and as it was understood.

    WHERE a = b BETWEEN c AND d      "a = b BETWEEN c AND d"      (a = b) BETWEEN c AND d

What is understood is bound as when the view is created. What is written comes from the text alone. Where both cannot be
put side by side, a whole clause is one expression.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.sql.bound_select import BoundSelect, bind_select
from viewkeeper.sql.definition import read_definition
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.names import bind_tables
from viewkeeper.sql.original_text import Pieces, conjuncts, original_query, pieces
from viewkeeper.sql.parse_summary import aggregates
from viewkeeper.sql.relation import Catalog
from viewkeeper.sql.type_families import type_named
from viewkeeper.sql.using import columns_of_using
from viewkeeper.sql.view import Operand


@dataclass(frozen=True)
class Written:
    """`place` says where it stands, for messages."""

    place: str
    text: str
    expression: Expression


@dataclass(frozen=True)
class WrittenView:
    """`using` are the columns of USING, of each join; `items` is empty for a view that aggregates."""

    operands: tuple[Operand, ...]
    using: tuple[tuple[str, ...], ...]
    items: tuple[Written, ...]
    conditions: tuple[Written, ...]
    pieces: Pieces


def written_view(sql: str, catalog: Catalog) -> WrittenView:
    """The expressions of a definition that has been accepted."""
    select = read_definition(sql, None).query
    assert isinstance(select, exp.Select)
    listed = list(select.expressions)
    summed = aggregates(select)
    if summed:
        for clause in ("group", "having", "distinct"):
            select.set(clause, None)
        select.set("expressions", [exp.alias_(exp.Literal.number(1), "one")])
    operands = bind_tables(select, catalog)
    using = tuple(columns_of_using(select))
    bound = bind_select(select, operands)
    cut = pieces(original_query(sql, [f"t{operand.index}" for operand in operands]))
    items = () if summed else tuple(_items(listed, bound, cut))
    return WrittenView(operands, using, items, tuple(_conditions(bound, cut)), cut)


def _items(listed: list[exp.Expr], bound: BoundSelect, cut: Pieces) -> Iterator[Written]:
    by_name = {item.name.lower(): item for item in bound.items}
    for node, text in zip(listed, cut.items, strict=True):
        if not node.is_star:
            item = by_name[node.unnest().alias_or_name.lower()]
            yield Written(f"the output column {item.name}", text, Expression.from_node(item.node))


def _conditions(bound: BoundSelect, cut: Pieces) -> Iterator[Written]:
    for operand, text, understood in zip(bound.operands[1:], cut.on, bound.on, strict=True):
        if text is not None:
            yield from _side_by_side(f"ON of {operand.alias}", text, understood)
    if cut.where is not None:
        yield from _side_by_side("WHERE", cut.where, bound.where)


def _side_by_side(place: str, text: str, understood: tuple[Expression, ...]) -> Iterator[Written]:
    texts = [part for part in conjuncts(text) if part.upper() != "TRUE"]
    if len(texts) == len(understood):
        for part, expression in zip(texts, understood, strict=True):
            yield Written(place, part, expression)
    else:
        whole = exp.and_(*(one.node.copy() for one in understood)) if understood else exp.true()
        yield Written(place, text, Expression.from_node(whole))


def is_plain(node: exp.Expr) -> bool:
    """Whether there is nothing in an expression that two could read differently: columns, literals of their type, and
    comparisons of these."""
    node = node.unnest()
    if isinstance(node, (exp.Column, exp.Null, exp.Boolean)):
        return True
    if isinstance(node, exp.Literal):
        return node.is_string or node.is_int
    if isinstance(node, (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)):
        return _alike(node.left.unnest(), node.right.unnest())
    if isinstance(node, exp.Is):
        return isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Null)
    return isinstance(node, (exp.And, exp.Not)) and all(is_plain(part) for part in node.iter_expressions())


def _alike(left: exp.Expr, right: exp.Expr) -> bool:
    if not all(isinstance(side, (exp.Column, exp.Literal)) and is_plain(side) for side in (left, right)):
        return False
    return len({type_named(Expression.from_node(side).type).family for side in (left, right)}) == 1
