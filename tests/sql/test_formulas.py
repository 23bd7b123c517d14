"""Formulas of stored sums: Spark's digits and Spark's rounding, and what is not there is NULL."""

import math
from decimal import Decimal
from typing import Any

import pytest

from viewkeeper.errors import ExpressionError
from viewkeeper.sql.formulas import formula

TYPES = {
    "n": "BIGINT",
    "i": "INT",
    "d": "DECIMAL(20, 2)",
    "wide": "DECIMAL(38, 18)",
    "x": "DOUBLE",
    "a.b": "STRING",
}


def value(sql: str, **row: Any) -> Any:
    made = formula(sql, TYPES)
    names = tuple(sorted(made.columns))
    return made.compile(names)(tuple(row[name.removeprefix("s.").replace(".", "_")] for name in names))


@pytest.mark.parametrize(
    ("sql", "row", "expected"),
    [
        # AVG of a DECIMAL(10, 2): a quotient of 20 digits after the point, then 6.
        ("CAST(`d` / CAST(NULLIF(`n`, 0) AS DECIMAL(20, 0)) AS DECIMAL(14, 6))", (1, 3), "0.333333"),
        ("CAST(`d` / CAST(NULLIF(`n`, 0) AS DECIMAL(20, 0)) AS DECIMAL(14, 6))", (2, 3), "0.666667"),
        ("CAST(`d` / CAST(NULLIF(`n`, 0) AS DECIMAL(20, 0)) AS DECIMAL(14, 6))", (-2, 3), "-0.666667"),
        ("CAST(`d` / CAST(NULLIF(`n`, 0) AS DECIMAL(20, 0)) AS DECIMAL(14, 6))", (1, 0), None),
        # Halves go away from zero.
        ("CAST(`d` AS DECIMAL(20, 1))", ("0.25", 1), "0.3"),
        ("CAST(`d` AS DECIMAL(20, 1))", ("-0.25", 1), "-0.3"),
        ("`d` / `n`", ("1", 8), "0.12500000000000000000"),
    ],
)
def test_decimals_are_divided_and_rounded_as_spark_does(sql: str, row: tuple[Any, int], expected: str | None) -> None:
    found = value(sql, d=Decimal(row[0]), n=row[1])
    assert found == (None if expected is None else Decimal(expected))
    assert found is None or str(found) == expected


def test_what_does_not_fit_is_an_error_or_null() -> None:
    with pytest.raises(ExpressionError, match=r"does not fit DECIMAL\(3, 2\)"):
        value("CAST(`d` AS DECIMAL(3, 2))", d=Decimal("10.00"))
    with pytest.raises(ExpressionError, match="division by zero"):
        value("`d` / `n`", d=Decimal(1), n=0)
    assert value("try_multiply(`wide`, `wide`)", wide=Decimal(10) ** 19) is None
    assert value("try_multiply(`n`, `n`)", n=1 << 40) is None
    assert value("try_multiply(`n`, `n`)", n=1 << 20) == 1 << 40
    assert value("try_subtract(`n`, `i`)", n=5, i=7) == -2
    assert value("try_subtract(`d`, `n`)", d=Decimal("0.50"), n=1) == Decimal("-0.50")
    assert value("try_subtract(`d`, `n`)", d=None, n=1) is None


def test_roots_and_the_greatest() -> None:
    assert value("SQRT(`n`)", n=9) == 3.0
    assert value("SQRT(`x`)", x=None) is None
    assert math.isnan(value("SQRT(`x`)", x=-1.0))
    assert value("GREATEST(`x`, 0D)", x=-1.0) == 0.0
    assert value("GREATEST(`x`, 0D)", x=None) == 0.0
    assert math.isnan(value("GREATEST(`x`, 0D)", x=math.nan))


def test_odd_doubles_are_constants() -> None:
    found = "CASE WHEN `n` = 0 THEN NULL WHEN `i` > 0 THEN DOUBLE('-Infinity') ELSE COALESCE(`x`, 0D) END"
    assert value(found, n=0, i=1, x=1.0) is None
    assert value(found, n=1, i=1, x=1.0) == -math.inf
    assert value(found, n=1, i=0, x=None) == 0.0


def test_a_column_may_have_a_dot_in_its_name() -> None:
    assert value("`a.b` = 'x'", a_b="x") is True


def test_other_functions_are_left_to_spark() -> None:
    with pytest.raises(ExpressionError, match="not evaluated in memory"):
        value("UPPER(`a.b`)", a_b="x")
