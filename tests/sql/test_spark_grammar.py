"""Expressions are read as Spark's grammar reads them, and their text means the same in every dialect."""

from decimal import Decimal

import pytest
from test_expression_evaluation import expression, value

from viewkeeper.errors import SyntaxProblem
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.render import render
from viewkeeper.sql.syntax import parse_statement, spark_sql

READINGS = {
    "a = b BETWEEN false AND true": "(a = b) BETWEEN FALSE AND TRUE",
    "a BETWEEN b AND c = d": "a BETWEEN b AND (c = d)",
    "a > b NOT IN (true, false)": "NOT (a > b) IN (TRUE, FALSE)",
    "a = b LIKE 'x'": "(a = b) LIKE 'x'",
    "a LIKE b = c": "a LIKE (b = c)",
    "a = b IS NULL": "(a = b) IS NULL",
    "a < b = c": "(a < b) = c",
    "a = b < c": "(a = b) < c",
    "a <=> b IS DISTINCT FROM c": "(a IS NOT DISTINCT FROM b) IS DISTINCT FROM c",
    "NOT a = b BETWEEN c AND d AND e": "NOT (a = b) BETWEEN c AND d AND e",
    "a || b + c": "(a || b) + c",
    "a + b || c - d": "((a + b) || c) - d",
    "a | b & c ^ d": "a | ((b & c) ^ d)",
    "a & b = c": "a & b = c",
    "a BETWEEN 1 AND 2 AND b IN (3)": "a BETWEEN 1 AND 2 AND b IN (3)",
    "3L + 3S - 3Y * 1.5D / 1.50BD": "3L + 3S - 3Y * 1.5D / 1.50BD",
    "-3L": "-3L",
    "CAST(3 AS BIGINT)": "CAST(3 AS BIGINT)",
    "unix_date(a)": "UNIX_DATE(a)",
}


@pytest.mark.parametrize("sql", READINGS)
def test_operators_bind_as_in_spark(sql):
    read = parse_statement(f"SELECT {sql} AS x FROM s.t").expressions[0].this
    assert spark_sql(read) == READINGS[sql]
    again = parse_statement(f"SELECT {spark_sql(read)} AS x FROM s.t").expressions[0].this
    assert spark_sql(again) == spark_sql(read)


@pytest.mark.parametrize("sql", ["a IS NULL IS NULL", "a IN (1) = b", "a = NOT b", "a BETWEEN 1 AND 2 IS TRUE"])
def test_what_spark_does_not_parse_is_refused(sql):
    with pytest.raises(SyntaxProblem):
        parse_statement(f"SELECT {sql} AS x FROM s.t")


def test_the_driver_evaluates_the_tree_that_spark_evaluates():
    assert value("x = y BETWEEN false AND true", x=1, y=2) is True
    assert value("x = y BETWEEN true AND true", x=1, y=2) is False
    assert value("x > y NOT IN (true)", x=1, y=2) is True
    assert value("x < y = p", x=1, y=2, p=False) is False


@pytest.mark.parametrize(
    ("sql", "type"),
    [
        ("d * 3L", "DECIMAL(12, 2)"),
        ("d * CAST(3 AS BIGINT)", "DECIMAL(31, 2)"),
        ("d / 3L", "DECIMAL(14, 6)"),
        ("d / CAST(3 AS BIGINT)", "DECIMAL(31, 23)"),
        ("d + 3Y", "DECIMAL(11, 2)"),
        ("d % (-1)", "DECIMAL(3, 2)"),
        ("d / -3S", "DECIMAL(14, 6)"),
        ("1.50BD", "DECIMAL(3, 2)"),
        ("1e3BD", "DECIMAL(4, 0)"),
        ("3D", "DOUBLE"),
    ],
)
def test_literals_with_a_suffix_have_the_digits_that_are_written(sql, type):
    assert expression(sql).type == type


def test_literals_with_a_suffix_have_values():
    assert value("d + 3L", d=Decimal("1.25")) == Decimal("4.25")
    assert value("-3L") == -3
    assert value("-128Y") == -128
    assert value("1.50BD") == Decimal("1.50")


def test_other_dialects_get_the_same_meaning():
    catalog = {"s.t": Relation("s.t", "s", ("a", "b", "c"), ("BIGINT", "BIGINT", "BOOLEAN"))}
    view = parse_view("SELECT a FROM s.t WHERE a = b BETWEEN c AND true AND a > 3L", catalog)
    assert '("t"."a" = "t"."b") BETWEEN "t"."c" AND TRUE' in render(view, "postgres")
    assert "CAST(3 AS BIGINT)" in render(view, "postgres")
    assert "`t`.`a` > 3L" in render(view)


@pytest.mark.parametrize(
    ("sql", "type"),
    [
        ("date_trunc('month', day)", "TIMESTAMP"),
        ("date_trunc('month', local)", "TIMESTAMP"),
        ("day + INTERVAL 1 DAY", "DATE"),
        ("day - INTERVAL '2' MONTH", "DATE"),
        ("day + INTERVAL 3 HOURS", "TIMESTAMP"),
        ("INTERVAL 1 WEEK + day", "DATE"),
        ("local + INTERVAL 3 HOURS", "TIMESTAMP_NTZ"),
        ("at - INTERVAL 1 YEAR", "TIMESTAMP"),
        ("day + 1", "DATE"),
        ("datediff(day, at)", "INT"),
        ("datediff(MONTH, day, at)", "BIGINT"),
        ("timestampdiff(HOUR, at, local)", "BIGINT"),
        ("timestampadd(HOUR, 1, local)", "TIMESTAMP_NTZ"),
        ("dateadd(DAY, 1, day)", "TIMESTAMP"),
        ("date_add(day, 1)", "DATE"),
        ("date_sub(day, i)", "DATE"),
        ("x DIV 7", "BIGINT"),
        ("d DIV e", "BIGINT"),
        ("EXTRACT(YEAR FROM day)", "INT"),
        ("EXTRACT(SECOND FROM at)", "DECIMAL(8, 6)"),
        ("date_part('second', at)", "DECIMAL(8, 6)"),
        ("add_months(day, 1)", "DATE"),
        ("months_between(day, at)", "DOUBLE"),
        ("last_day(day)", "DATE"),
        ("next_day(day, 'MON')", "DATE"),
        ("trunc(day, 'MM')", "DATE"),
        ("to_date(s)", "DATE"),
        ("date_format(day, 'yyyy')", "STRING"),
        ("unix_date(day)", "INT"),
        ("year(day)", "INT"),
        ("weekday(day)", "INT"),
        ("unix_timestamp(at)", "BIGINT"),
        ("day - day", ""),
    ],
)
def test_functions_of_dates_have_the_types_of_spark(sql, type):
    assert expression(sql).type == type
