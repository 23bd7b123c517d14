"""Which expressions can fail on a row: an engine evaluates the others wherever it likes."""

import pytest
from test_expression_evaluation import expression

from viewkeeper.sql.expressions import Expression


@pytest.mark.parametrize(
    "sql",
    [
        "x", "1", "-5", "1.5BD", "'a'", "TRUE", "NULL", "DATE '2024-02-29'", "TIMESTAMP '2024-02-29 10:00:00'",
        "x = 1", "x > -5", "d = x", "f = x", "x <=> y", "x IS DISTINCT FROM y", "x BETWEEN 1 AND y",
        "x IN (1, y, NULL)", "s LIKE 'a%'", "s NOT LIKE 'a!%' ESCAPE '!'", "at < TIMESTAMP '2024-01-01'",
        "parts IS NULL", "p AND NOT q OR x = 1", "p IS NOT TRUE",
        "CASE WHEN x = 1 THEN 'a' ELSE s END", "CASE x WHEN 1 THEN 2 END", "IF(p, x, 0)", "COALESCE(x, y)",
        "NULLIF(x, y)", "s || t", "CONCAT(s, 'a')",
        "f + 1", "f * g - 2", "-f", "ABS(f)", "d + e", "d * 2", "-d",
        "CAST(i AS BIGINT)", "CAST(x AS DOUBLE)", "CAST(x AS STRING)", "CAST(x AS DECIMAL(20, 0))",
        "CAST(d AS DECIMAL(12, 2))",
    ],
)  # fmt: skip
def test_cannot_fail(sql: str) -> None:
    assert not expression(sql).can_fail


@pytest.mark.parametrize(
    "sql",
    [
        "x + 1", "x - y", "x * 2", "-x", "ABS(x)", "i + i", "x % 3", "f / 2", "x / y", "x DIV y",
        "x > 0 AND x + 1 > 0", "CASE WHEN x = 1 THEN x + 1 END", "COALESCE(x + 1, 0)",
        "CAST(x AS INT)", "CAST(s AS INT)", "CAST(s AS DATE)", "CAST(f AS INT)", "CAST(d AS DECIMAL(10, 1))",
        "x = s", "x IN ('a')", "day = '2024-02-29'", "COALESCE(x, s)", "huge * huge", "huge + huge",
        "odd = odder", "odd || s", "upper(s)", "parts[0]", "s LIKE t",
    ],
)  # fmt: skip
def test_can_fail_or_is_not_known(sql: str) -> None:
    assert expression(sql).can_fail


def test_columns_without_types() -> None:
    assert not Expression.column("r.x").can_fail
    assert not Expression.greater("r.x", "r.y").can_fail
    assert Expression("`r.x` = 1", frozenset({"r.x"})).can_fail
