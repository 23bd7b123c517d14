"""The text of a view is cut into the expressions that were understood of it."""

import pytest

from viewkeeper.errors import DefinitionError, SyntaxProblem
from viewkeeper.sql.original_text import original_query, pieces
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.written_expressions import written_view

CATALOG = {"s.a": Relation("s.a", "s", ("id", "x", "d"), ("BIGINT", "INT", "DATE"), ("id",))}


def texts(sql: str) -> list[str]:
    written = written_view(sql, CATALOG)
    return [one.text for one in (*written.items, *written.conditions)]


def test_a_column_in_parentheses_has_its_name():
    sql = "SELECT (x), ((a.id)), d + 1 AS q FROM s.a"
    assert [column.name for column in parse_view(sql, CATALOG).output] == ["x", "id", "q"]
    assert texts(sql) == ["(x)", "((a.id))", "d + 1 AS q"]
    with pytest.raises(DefinitionError, match="has no name"):
        parse_view("SELECT (x AS y) FROM s.a", CATALOG)


@pytest.mark.parametrize("end", [";", "; -- done", " -- done", " /* a */ ; /* b */", ";;"])
def test_what_ends_a_statement_is_in_no_clause(end):
    assert texts(f"SELECT x + 1 AS q FROM s.a WHERE x + 1 > 2{end}") == ["x + 1 AS q", "x + 1 > 2"]
    grouped = f"SELECT SUM(x) + 1 AS q FROM s.a GROUP BY id{end}"
    assert written_view(grouped, CATALOG).pieces.group_by == "id"
    assert original_query(grouped, ["t"]) == "SELECT SUM(x) + 1 AS q FROM t AS `a` GROUP BY id"


@pytest.mark.parametrize("item", ["x + 1 AS q", "(x + 1) AS q"])
def test_select_all_is_select(item):
    assert texts(f"SELECT ALL {item} FROM s.a") == [item]


@pytest.mark.parametrize("listed", ["ALL, x", "x,", ", x", "x,, d", "DISTINCT , x", "x FROM s.a, WHERE x > 1 --"])
def test_an_item_that_is_not_there_is_refused(listed):
    with pytest.raises(SyntaxProblem, match="nothing is listed before"):
        parse_view(f"SELECT {listed} FROM s.a", CATALOG)


@pytest.mark.parametrize("where", ["(x + 1 > 2)", "(x) + 1 > 2 AND (d > DATE '2024-01-01')"])
def test_a_join_ends_where_the_next_clause_begins_in_parentheses(where):
    sql = f"SELECT a.x + 1 AS q FROM s.a a JOIN s.a b ON LEFT(a.x, 1) = LEFT(b.x, 1) AND a.id = b.id WHERE ({where})"
    found = pieces(sql)
    assert (found.on, found.where) == (("LEFT(a.x, 1) = LEFT(b.x, 1) AND a.id = b.id",), f"({where})")
