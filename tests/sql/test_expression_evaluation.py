"""The in-memory evaluator against truth tables, SQLite and Spark's documented rules."""

import datetime
import sqlite3
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from viewkeeper.errors import ExpressionError
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation

TYPES = {
    "x": "BIGINT",
    "y": "BIGINT",
    "i": "INT",
    "tiny": "TINYINT",
    "s": "STRING",
    "t": "STRING",
    "p": "BOOLEAN",
    "q": "BOOLEAN",
    "f": "DOUBLE",
    "g": "DOUBLE",
    "f32": "FLOAT",
    "d": "DECIMAL(10, 2)",
    "e": "DECIMAL(5, 4)",
    "long": "DECIMAL(34, 6)",
    "huge": "DECIMAL(38, 10)",
    "day": "DATE",
    "at": "TIMESTAMP",
    "local": "TIMESTAMP_NTZ",
    "padded": "CHAR(3)",
    "parts": "ARRAY<INT>",
    "odd": "no such type",
    "odder": "no such type",
}
RELATION = Relation("s.r", "s", tuple(TYPES), tuple(TYPES.values()))
COLUMNS = tuple(f"r.{column}" for column in TYPES)
NAN = float("nan")
INFINITY = float("inf")
LONG = Decimal("1234567890123456789012345678.012345")  # more digits than Python's default context keeps


def expression(sql: str) -> Expression:
    [column] = parse_view(f"SELECT {sql} AS v FROM s.r", {"s.r": RELATION}).output
    return column.expression


def value(sql: str, **row: Any) -> Any:
    return expression(sql).compile(COLUMNS)(tuple(row.get(column) for column in TYPES))


def refusal(sql: str, **row: Any) -> ExpressionError:
    with pytest.raises(ExpressionError) as refused:
        value(sql, **row)
    return refused.value


T, F, N = True, False, None


@pytest.mark.parametrize(
    ("p", "q", "conjunction", "disjunction", "negation", "equal", "null_safe"),
    [
        (T, T, T, T, F, T, T),
        (T, F, F, T, F, F, F),
        (T, N, N, T, F, N, F),
        (F, T, F, T, T, F, F),
        (F, F, F, F, T, T, T),
        (F, N, F, N, T, N, F),
        (N, T, N, T, N, N, F),
        (N, F, F, N, N, N, F),
        (N, N, N, N, N, N, T),
    ],
)
def test_three_valued_logic(
    p: bool | None,
    q: bool | None,
    conjunction: bool | None,
    disjunction: bool | None,
    negation: bool | None,
    equal: bool | None,
    null_safe: bool,
) -> None:
    row = {"p": p, "q": q}
    assert value("p AND q", **row) is conjunction
    assert value("p OR q", **row) is disjunction
    assert value("NOT p", **row) is negation
    assert value("p = q", **row) is equal
    assert value("p <=> q", **row) is null_safe
    assert value("p IS DISTINCT FROM q", **row) is not null_safe
    assert value("p IS NULL AND q IS NULL", **row) is (p is None and q is None)
    assert value("p IS NOT NULL OR q IS NOT NULL", **row) is (p is not None or q is not None)
    assert value("p IS TRUE", **row) is (p is True)
    assert value("p IS NOT TRUE", **row) is (p is not True)
    assert value("p IS FALSE", **row) is (p is False)
    assert value("p IS UNKNOWN", **row) is (p is None)


@pytest.mark.parametrize(
    ("sql", "row", "expected"),
    [
        ("x = y", {"x": 1, "y": 1}, T),
        ("x <> y", {"x": 1, "y": 1}, F),
        ("x < y", {"x": 1}, N),
        ("x <= 1", {"x": 1}, T),
        ("x > NULL", {"x": 1}, N),
        ("x >= 1.5", {"x": 1}, F),
        ("x = d", {"x": 1, "d": Decimal("1.00")}, T),
        ("s < t", {"s": "B", "t": "a"}, T),
        ("s = 'a '", {"s": "a"}, F),
        ("p > q", {"p": True, "q": False}, T),
        ("x IN (1, 2)", {"x": 2}, T),
        ("x IN (1, 2)", {"x": 3}, F),
        ("x IN (1, 2)", {}, N),
        ("x IN (1, NULL)", {"x": 1}, T),
        ("x IN (1, NULL)", {"x": 2}, N),
        ("x NOT IN (1, NULL)", {"x": 2}, N),
        ("x NOT IN (1, 3)", {"x": 2}, T),
        ("x IN (NULL)", {"x": 2}, N),
        ("x IN (y, 5)", {"x": 5}, T),
        ("x IN (y, 5)", {"x": 4}, N),
        ("x IN (1.5, 2.0)", {"x": 2}, T),
        ("f IN (1, 2.5)", {"f": 2.5}, T),
        ("f IN (1, 2.5)", {"f": NAN}, F),
        ("s IN ('a', 'b')", {"s": "b"}, T),
        ("day IN (DATE '2024-02-29')", {"day": datetime.date(2024, 2, 29)}, T),
        ("x BETWEEN 1 AND 3", {"x": 3}, T),
        ("x BETWEEN 1 AND y", {"x": 0}, F),
        ("x BETWEEN 1 AND y", {"x": 2}, N),
        ("x NOT BETWEEN 1 AND 3", {"x": 4}, T),
        ("x + 1 BETWEEN 1 AND 3", {"x": 4}, F),
        ("CASE WHEN x = 1 THEN 'a' WHEN y = 1 THEN 'b' ELSE 'c' END", {"x": 1, "y": 1}, "a"),
        ("CASE WHEN x = 1 THEN 'a' WHEN y = 1 THEN 'b' ELSE 'c' END", {"y": 1}, "b"),
        ("CASE WHEN x = 1 THEN 'a' WHEN y = 1 THEN 'b' ELSE 'c' END", {}, "c"),
        ("CASE WHEN x = 1 THEN 'a' END", {}, None),
        ("CASE x + y WHEN 3 THEN 'a' WHEN 4 THEN 'b' END", {"x": 2, "y": 2}, "b"),
        ("CASE x WHEN NULL THEN 'a' ELSE 'b' END", {}, "b"),
        ("IF(x > 1, y, 0)", {"x": 2, "y": 7}, 7),
        ("IF(x > 1, y, 0)", {"y": 7}, 0),
        ("COALESCE(x, y, 3)", {}, 3),
        ("COALESCE(x + 1, y)", {"x": 1, "y": 9}, 2),
        ("nvl(x, y)", {"y": 9}, 9),
        ("NULLIF(x, 1)", {"x": 1}, None),
        ("NULLIF(x + 1, 1)", {"x": 1}, 2),
        ("NULLIF(x, y)", {"x": 1}, 1),
        ("(x + y) * 2 - i", {"x": 1, "y": 2, "i": 3}, 3),
        ("x + y", {"x": 1}, None),
        ("-x", {"x": 1}, -1),
        ("ABS(x)", {"x": -3}, 3),
        ("x % 3", {"x": 7}, 1),
        ("x % 3", {"x": -7}, -1),
        ("x % -3", {"x": 7}, 1),
        ("mod(x, y)", {"x": -7, "y": -3}, -1),
        ("x % y", {"y": 0}, None),
        ("s || '-' || t", {"s": "a", "t": "b"}, "a-b"),
        ("s || t", {"s": "a"}, None),
        ("CONCAT(s, t, 'z')", {"s": "a", "t": "b"}, "abz"),
        ("'a' 'b'", {}, "ab"),
        ("'it\\'s'", {}, "it's"),
        ("r'a\\b'", {}, "a\\b"),
        ("f + 1", {"f": 0.5}, 1.5),
        ("f * g - 1", {"f": 0.5, "g": 3.0}, 0.5),
        ("f / 4", {"f": 1.0}, 0.25),
        ("CAST(x AS DOUBLE) / y", {"x": 1, "y": 4}, 0.25),
        ("-f", {"f": 0.5}, -0.5),
        ("ABS(f)", {"f": -0.5}, 0.5),
        ("CAST(x AS STRING)", {"x": -12}, "-12"),
        ("CAST(x AS STRING)", {}, None),
        ("CAST(x AS VARCHAR(2))", {"x": -12}, "-12"),
        ("CAST(i AS BIGINT) + 1", {"i": 2**31 - 1}, 2**31),
        ("CAST(x AS INT)", {"x": 5}, 5),
        ("CAST(s AS STRING)", {"s": "a"}, "a"),
        ("CAST(NULL AS BIGINT) + x", {"x": 1}, None),
        ("x::string || s", {"x": 1, "s": "a"}, "1a"),
        ("1L + 2S + 3Y", {}, 6),
        ("1.5D", {}, 1.5),
        ("1.5BD", {}, Decimal("1.5")),
        ("1e3", {}, 1000.0),
        ("-9223372036854775808", {}, -(2**63)),
        ("9223372036854775808", {}, Decimal(2**63)),
        ("TRUE", {}, True),
        ("NULL", {}, None),
        ("DATE '2024-02-29'", {}, datetime.date(2024, 2, 29)),
        ("day >= DATE '2024-02-29'", {"day": datetime.date(2024, 3, 1)}, T),
        (
            "TIMESTAMP '2024-02-29 10:00:00.5'",
            {},
            datetime.datetime(2024, 2, 29, 10, 0, 0, 500000, tzinfo=datetime.UTC),
        ),
        ("at = TIMESTAMP '2024-02-29 10:00:00'", {"at": datetime.datetime(2024, 2, 29, 10, tzinfo=datetime.UTC)}, T),
        ("at <> TIMESTAMP '2024-02-29'", {"at": datetime.datetime(2024, 2, 29, 10, tzinfo=datetime.UTC)}, T),
        ("at IN (TIMESTAMP '2024-02-29')", {"at": datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC)}, T),
        ("local < TIMESTAMP_NTZ '2024-02-29 10:00:00'", {"local": datetime.datetime(2024, 2, 29)}, T),
        ("parts IS NULL", {"parts": [1]}, F),
        ("odd = odder", {"odd": 1, "odder": 1.0}, T),
        ("odd < odder", {"odd": "a", "odder": "b"}, T),
        ("odd = odder", {"odd": NAN, "odder": NAN}, T),
        ("odd IN (1, 2)", {"odd": Decimal(2)}, T),
        ("odd = odder", {"odd": 1}, N),
    ],
)
def test_value(sql: str, row: dict[str, Any], expected: Any) -> None:
    result = value(sql, **row)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("a%", ["a", "ab", "a\nb"], ["A", "ba", ""]),
        ("_b%", ["ab", "äbc"], ["b", "cab"]),
        ("%", ["", "x"], []),
        ("", [""], ["x"]),
        ("a.c", ["a.c"], ["abc"]),
        ("10\\%", ["10%"], ["100"]),
        ("a\\_b", ["a_b"], ["axb"]),
        ("[a](b)*", ["[a](b)*"], ["ab"]),
    ],
)
def test_like(pattern: str, matching: list[str], other: list[str]) -> None:
    for text in matching + other:
        assert value(f"s LIKE '{pattern}'", s=text) is (text in matching)
        assert value(f"s NOT LIKE '{pattern}'", s=text) is (text in other)
        assert value(f"NOT s LIKE '{pattern}'", s=text) is (text in other)
    assert value(f"s LIKE '{pattern}'") is None


def test_like_with_another_escape() -> None:
    assert value("s LIKE '10!%' ESCAPE '!'", s="10%") is True
    assert value("s LIKE '10!%' ESCAPE '!'", s="100") is False
    assert "escape" in refusal("s LIKE 'a\\\\b'", s="ab").detail


@pytest.mark.parametrize("left", [1.0, -0.0, 0.0, INFINITY, -INFINITY, NAN])
@pytest.mark.parametrize("right", [1.0, -0.0, 0.0, INFINITY, -INFINITY, NAN])
def test_doubles_are_totally_ordered_with_nan_last(left: float, right: float) -> None:
    def rank(number: float) -> tuple[bool, float]:
        return (True, 0.0) if number != number else (False, number)

    row = {"f": left, "g": right}
    assert value("f = g", **row) is (rank(left) == rank(right))
    assert value("f <> g", **row) is (rank(left) != rank(right))
    assert value("f < g", **row) is (rank(left) < rank(right))
    assert value("f <= g", **row) is (rank(left) <= rank(right))
    assert value("f > g", **row) is (rank(left) > rank(right))
    assert value("f >= g", **row) is (rank(left) >= rank(right))
    assert value("f <=> g", **row) is (rank(left) == rank(right))


def test_integers_compare_with_doubles_as_doubles() -> None:
    assert value("x = f", x=2**53 + 1, f=float(2**53)) is True
    assert value("d = f", d=Decimal("0.10"), f=0.1) is True
    assert value("x IN (f, 1e0)", x=2**53 + 1, f=float(2**53)) is True


@pytest.mark.parametrize(
    ("sql", "row", "expected"),
    [
        ("d + e", {"d": Decimal("1.25"), "e": Decimal("0.0001")}, Decimal("1.2501")),
        ("d - 1", {"d": Decimal("1.25")}, Decimal("0.25")),
        ("d * 0.10", {"d": Decimal("1.25")}, Decimal("0.125")),
        ("d * x", {"d": Decimal("99999999.99"), "x": 10**18 + 1}, Decimal("99999999990000000099999999.99")),
        ("-long", {"long": LONG}, LONG.copy_negate()),
        ("ABS(long)", {"long": LONG.copy_negate()}, LONG),
        ("long + long", {"long": LONG}, Decimal("2469135780246913578024691356.024690")),
        ("CASE WHEN x = 1 THEN x ELSE d END", {"x": 1}, Decimal(1)),
        ("COALESCE(d, x)", {"x": 1}, Decimal(1)),
        ("CAST(x AS DECIMAL(20, 0))", {"x": 7}, Decimal(7)),
        ("CAST(d AS DECIMAL(12, 2))", {"d": Decimal("1.25")}, Decimal("1.25")),
    ],
)
def test_decimals_are_exact(sql: str, row: dict[str, Any], expected: Decimal) -> None:
    result = value(sql, **row)
    assert result == expected
    assert isinstance(result, Decimal)


@pytest.mark.parametrize(
    ("sql", "row"),
    [
        ("x + 1", {"x": 2**63 - 1}),
        ("x - 1", {"x": -(2**63)}),
        ("x * x", {"x": 2**32}),
        ("-x", {"x": -(2**63)}),
        ("ABS(x)", {"x": -(2**63)}),
        ("i + 1", {"i": 2**31 - 1}),
        ("tiny + tiny", {"tiny": 100}),
        ("CAST(x AS INT)", {"x": 2**31}),
        ("9223372036854775807 + x", {"x": 1}),
    ],
)
def test_overflow_is_an_error(sql: str, row: dict[str, Any]) -> None:
    assert "out of the range of" in refusal(sql, **row).detail


@pytest.mark.parametrize("sql", ["f / g", "f / 0", "x % y", "x % 0"])
def test_division_by_zero_is_an_error(sql: str) -> None:
    assert "division by zero" in refusal(sql, f=1.0, g=0.0, x=1, y=0).detail


@pytest.mark.parametrize(
    "sql",
    [
        "x = 0 OR 1 / CAST(x AS DOUBLE) > 1",
        "NOT (x <> 0 AND 1 / CAST(x AS DOUBLE) > 1)",
        "CASE WHEN x = 0 THEN TRUE ELSE 1 % x = 1 END",
        "COALESCE(x = 0, 1 % x = 1)",
        "x IN (0, 1 % x)",
        "IF(x = 0, TRUE, 1 % x = 1)",
    ],
)
def test_what_is_decided_is_not_evaluated_further(sql: str) -> None:
    assert value(sql, x=0) is True


@pytest.mark.parametrize(
    ("sql", "named", "hint"),
    [
        ("x = s", "BIGINT with STRING", "CAST(... AS STRING)"),
        ("x IN ('a')", "BIGINT with STRING", "CAST"),
        ("x BETWEEN 'a' AND 'b'", "BIGINT with STRING", "CAST"),
        ("p = 1", "BOOLEAN with INT", "CAST"),
        ("day = '2024-02-29'", "DATE with STRING", "write a literal as DATE '...'"),
        ("at > '2024-02-29'", "TIMESTAMP with STRING", "TIMESTAMP '...'"),
        ("day = at", "DATE with TIMESTAMP", "CAST"),
        ("at = local", "TIMESTAMP with TIMESTAMP_NTZ", "CAST"),
        ("COALESCE(x, s)", "BIGINT with STRING", "CAST"),
        ("CASE WHEN p THEN 1 ELSE 'a' END", "INT with STRING", "CAST"),
        ("NULLIF(x, 'a')", "BIGINT with STRING", "CAST"),
        ("x + s", "BIGINT with STRING", "CAST"),
        ("x || s", "needs STRING", "CAST(... AS STRING)"),
        ("x LIKE 'a'", "needs STRING", "CAST(... AS STRING)"),
        ("x AND p", "BOOLEAN", "compare"),
        ("NOT x", "BOOLEAN", "compare"),
        ("CASE WHEN x THEN 1 END", "BOOLEAN", "compare"),
        ("padded = 'a'", "CHAR(3) with STRING", "CAST"),
        ("parts = parts", "ARRAY<INT>", "Spark"),
        ("parts[0]", "parts", "Spark"),
        ("day + 1", "DATE with INT", "CAST"),
        ("-day", "DATE", "Spark"),
        ("-s", "STRING", "Spark"),
        ("f32 + f32", "FLOAT", "Spark"),
        ("odd + 1", "unknown type", "Spark"),
        ("x / y", "/ on BIGINT", "DOUBLE"),
        ("d / d", "/ on DECIMAL(10, 2)", "DOUBLE"),
        ("d % 2", "% on DECIMAL", "Spark"),
        ("x DIV y", "DIV", "Spark"),
        ("x & y", "&", "Spark"),
        ("huge * huge", "DECIMAL(77, 20)", "Spark"),
        ("-huge", "-", "Spark"),
        ("ABS(huge)", "ABS", "Spark"),
        ("upper(s)", "UPPER", "Spark"),
        ("length(s)", "LENGTH", "Spark"),
        ("s RLIKE 'a'", "RLIKE", "Spark"),
        ("s ILIKE 'a'", "ILIKE", "Spark"),
        ("s LIKE t", "LIKE with the pattern", "literal"),
        ("s LIKE ANY ('a', 'b')", "LIKE", "literal"),
        ("x BETWEEN SYMMETRIC 1 AND 2", "BETWEEN SYMMETRIC", "OR"),
        ("(x, y) IN ((1, 2))", "(", "Spark"),
        ("TRY_CAST(x AS STRING)", "TRY_CAST", "Spark"),
        ("CAST(s AS BIGINT)", "CAST", "Spark"),
        ("CAST(f AS STRING)", "CAST", "Spark"),
        ("CAST(d AS DECIMAL(10, 1))", "CAST", "Spark"),
        ("CAST('soon' AS DATE)", "CAST", "DATE 'yyyy-mm-dd'"),
        ("DATE '2023-02-29'", "day is out of range", "DATE"),
        ("TIMESTAMP_NTZ '2024-02-29 10:00:00Z'", "CAST", "yyyy-mm-dd"),
    ],
)
def test_refused(sql: str, named: str, hint: str) -> None:
    error = refusal(sql)
    assert named in error.detail
    assert hint in error.hint


@pytest.mark.parametrize(
    ("sql", "row"),
    [
        ("x < 1", {"x": "a"}),
        ("odd = odder", {"odd": "1", "odder": 1}),
        ("at < TIMESTAMP '2024-02-29'", {"at": datetime.datetime(2024, 2, 29)}),
        ("s || t", {"s": "a", "t": 1}),
        ("odd || odder", {"odd": 1, "odder": 1}),
    ],
)
def test_a_row_with_values_of_other_types(sql: str, row: dict[str, Any]) -> None:
    error = refusal(sql, **row)
    assert expression(sql).sql in error.detail
    assert error.hint


def test_literals_are_never_code() -> None:
    text = "'); __import__('os').system('true'); ('"
    assert value("s = '{}'".format(text.replace("'", "\\'")), s=text) is True
    assert value("s IN ('{}')".format(text.replace("'", "\\'")), s=text) is True


def test_long_chains_and_deep_nesting() -> None:
    assert value(" OR ".join(f"x = {number}" for number in range(500)), x=499) is True
    assert value(" AND ".join(f"x <> {number}" for number in range(500)), x=500) is True
    assert value(" || ".join(["s"] * 500), s="a") == "a" * 500
    assert "nested too deeply" in refusal(" + ".join(["x"] * 500), x=1).detail


# Random expressions, evaluated by SQLite as well. Values are small, so that SQLite's overflow into REAL does not show.

NUMBER_LEAVES = ["x", "y", "0", "1", "-2", "7", "NULL"]
NUMBERS = ["({0} + {1})", "({0} - {1})", "(x * {1})", "(- {0})", "ABS({0})", "({0} % 3)", "COALESCE({0}, {1})"]
NUMBERS += ["NULLIF({0}, {1})", "CASE {0} WHEN {1} THEN {0} WHEN 1 THEN 5 ELSE x END"]
CHOICES = ["CASE WHEN {0} THEN {1} WHEN y = 1 THEN 3 END", "IF({0}, {1}, 2)"]
TEXTS = ["s", "t", "'a'", "'B'", "''", "NULL", "s || t", "COALESCE(s, 'b')"]
COMPARISONS = ["{0} = {1}", "{0} <> {1}", "{0} < {1}", "{0} >= {1}", "({0} <=> {1})", "{0} IN ({1}, NULL)"]
RANGES = [
    "{0} IN ({1}, 1)",
    "{0} NOT IN ({1}, NULL)",
    "{0} IN (1, 2)",
    "{0} BETWEEN {1} AND 2",
    "{0} NOT BETWEEN y AND {1}",
]
CONDITION_LEAVES = ["x = 1", "y > x", "s IS NULL", "x IS NOT NULL", "s < 'b'", "x = NULL"]
CONNECTORS = ["({0} AND {1})", "({0} OR {1})", "(NOT {0})", "(({0}) IS TRUE)", "({0} OR {1} OR x = 2)"]

Texts = st.SearchStrategy[str]


def filled(templates: list[str], *parts: Texts) -> Texts:
    return st.tuples(st.sampled_from(templates), *parts).map(lambda drawn: drawn[0].format(*drawn[1:]))


def numbers(depth: int) -> Texts:
    leaves = st.sampled_from(NUMBER_LEAVES)
    if depth == 0:
        return leaves
    below = numbers(depth - 1)
    return leaves | filled(NUMBERS, below, below) | filled(CHOICES, conditions(depth - 1), below)


def conditions(depth: int) -> Texts:
    texts = st.sampled_from(TEXTS)
    leaves = st.sampled_from(CONDITION_LEAVES) | filled(COMPARISONS, texts, texts)
    if depth == 0:
        return leaves
    below, operands = conditions(depth - 1), numbers(depth - 1)
    return leaves | filled(CONNECTORS, below, below) | filled(COMPARISONS + RANGES, operands, operands)


rows = st.fixed_dictionaries(
    {
        "x": st.none() | st.integers(-3, 3),
        "y": st.none() | st.integers(-3, 3),
        "s": st.none() | st.sampled_from(["", "a", "B", "ab", "ä"]),
        "t": st.none() | st.sampled_from(["", "a", "b"]),
    }
)


@settings(deadline=None)
@given(sql=conditions(3) | numbers(3), row=rows)
def test_sqlite_agrees(sql: str, row: dict[str, Any]) -> None:
    made = expression(sql)
    with sqlite3.connect(":memory:") as database:
        query = f"SELECT {made.node.sql('sqlite')} FROM (SELECT :x AS x, :y AS y, :s AS s, :t AS t) AS r"
        [(expected,)] = database.execute(query, row)
    database.close()
    try:
        result = value(sql, **row)
    except ExpressionError as refused:
        # NULL + NULL is a DOUBLE to Spark, which memory does not take the remainder of.
        assume("needs the Spark engine" not in refused.hint)
        raise
    assert (int(result) if isinstance(result, bool) else result) == expected
