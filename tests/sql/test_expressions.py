"""Expressions as values: identity, columns, equalities, renaming."""

import copy
import pickle

import pytest
import sqlglot
from sqlglot import exp

from viewkeeper.errors import ExpressionError
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation


def condition(sql: str, **types: str) -> Expression:
    """A condition over the columns of two relations, both called like their alias: a and b."""
    catalog = {f"s.{alias}": Relation(f"s.{alias}", "s", tuple(types), tuple(types.values())) for alias in ("a", "b")}
    [made] = parse_view(f"SELECT a.x FROM s.a CROSS JOIN s.b WHERE {sql}", catalog).conditions
    return made


def test_column() -> None:
    column = Expression.column("o.id", "BIGINT")
    assert column.sql == "`o.id`"
    assert column.columns == {"o.id"}
    assert column.type == "BIGINT"
    assert column.is_column == "o.id"
    assert column.equality is None
    assert isinstance(column.node, exp.Column)
    assert (column.node.table, column.node.name) == ("o", "id")


@pytest.mark.parametrize("name", ["o.id", "o.two words", "o.dotted.name", "o.tick`ed", "my o.id", "o.naïve"])
def test_any_name_survives(name: str) -> None:
    column = Expression.column(name)
    assert column.is_column == name
    assert Expression.from_node(column.node) == column
    assert Expression(column.sql + " = 1", frozenset({name})).compile((name,))((1,)) is True
    assert column.compile(("other", name))((1, 2)) == 2


def test_identity_is_the_text_and_the_types_of_the_columns() -> None:
    one, other = condition("a.x = b.x", x="BIGINT"), condition("a.x  =  b.x", x="BIGINT")
    assert one == other
    assert len({one, other}) == 1
    assert one.type == "BOOLEAN"
    assert one != condition("b.x = a.x", x="BIGINT")
    assert one != condition("a.x = b.x", x="INT")


def test_the_tree_comes_back_from_the_text() -> None:
    made = condition("a.x + 1 = b.x AND a.s LIKE 'it\\'s%' OR a.p.f = 2", x="BIGINT", s="STRING", p="STRUCT<f: INT>")
    parsed = Expression(made.sql, made.columns)
    assert parsed.node == made.node
    assert Expression.from_node(parsed.node).sql == made.sql


@pytest.mark.parametrize(
    ("sql", "types", "expected"),
    [
        ("a.x = b.x", {"x": "BIGINT"}, ("a.x", "b.x")),
        ("b.y = a.x", {"x": "BIGINT", "y": "INT"}, ("b.y", "a.x")),
        ("(a.x) = (b.y)", {"x": "BIGINT", "y": "DECIMAL(10, 2)"}, ("a.x", "b.y")),
        ("a.x = b.x", {"x": "STRING"}, ("a.x", "b.x")),
        ("a.x = b.y", {"x": "STRING", "y": "VARCHAR(10)"}, ("a.x", "b.y")),
        ("a.x = b.x", {"x": "no such type"}, ("a.x", "b.x")),
        ("a.x = a.y", {"x": "BIGINT", "y": "BIGINT"}, None),
        ("a.x = 1", {"x": "BIGINT"}, None),
        ("a.x < b.x", {"x": "BIGINT"}, None),
        ("a.x <=> b.x", {"x": "BIGINT"}, None),
        ("NOT a.x = b.x", {"x": "BIGINT"}, None),
        ("a.x + 0 = b.x", {"x": "BIGINT"}, None),
        ("a.x = b.y", {"x": "DATE", "y": "STRING"}, None),
        ("a.x = b.y", {"x": "BIGINT", "y": "DOUBLE"}, None),
        ("a.x = b.x", {"x": "DOUBLE"}, None),
        ("a.x = b.x", {"x": "CHAR(3)"}, None),
    ],
)
def test_equality(sql: str, types: dict[str, str], expected: tuple[str, str] | None) -> None:
    assert condition(sql, **types).equality == expected


def test_renamed() -> None:
    made = condition("a.x = b.x OR a.x > 1", x="BIGINT")
    renamed = made.renamed({"a.x": "b.x", "b.x": "a.x"})
    assert renamed.sql == "`b.x` = `a.x` OR `b.x` > 1"
    assert renamed.columns == {"a.x", "b.x"}
    assert made.sql == "`a.x` = `b.x` OR `a.x` > 1"
    assert condition("a.x = b.x", x="BIGINT").renamed({"a.x": "v_1.total"}).equality == ("v_1.total", "b.x")


def test_renaming_keeps_the_types() -> None:
    renamed = condition("a.x + 1 = 2", x="INT").renamed({"a.x": "c.z"})
    with pytest.raises(ExpressionError, match="INT"):
        renamed.compile(("c.z",))((2**31 - 1,))


def test_compiled_once_per_layout() -> None:
    made = condition("a.x = b.x", x="BIGINT")
    assert made.compile(("a.x", "b.x")) is made.compile(("a.x", "b.x"))
    assert made.compile(("b.x", "z.z", "a.x"))((1, 2, 1)) is True


def test_equal_texts_of_other_types_compile_apart() -> None:
    narrow, wide = condition("a.x + 1 > 0", x="INT"), condition("a.x + 1 > 0", x="BIGINT")
    assert narrow != wide, "one must not be found in a cache for the other"
    assert wide.compile(("a.x",))((2**31 - 1,)) is True
    with pytest.raises(ExpressionError):
        narrow.compile(("a.x",))((2**31 - 1,))


def test_pickled_and_copied() -> None:
    made = condition("a.x = b.x", x="BIGINT")
    evaluate = made.compile(("a.x", "b.x"))
    for twin in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert twin == made
        assert twin.compile(("a.x", "b.x"))((1, 1)) is evaluate((1, 1)) is True


def test_a_missing_column() -> None:
    with pytest.raises(ExpressionError, match=r"no column o\.id"):
        Expression.column("o.id").compile(("o.x",))


def test_comments_are_no_part_of_the_identity() -> None:
    node = sqlglot.parse_one("a.x /* why */ = 1", dialect="spark")
    assert Expression.from_node(node).sql == "`a.x` = 1"
