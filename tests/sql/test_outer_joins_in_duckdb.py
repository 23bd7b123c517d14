"""A parsed outer join, evaluated by nested loops, holds what DuckDB answers to the text."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from outer_join_reference import Tables, evaluated

from run_size import examples
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation

NAMES = ("s.a", "s.b", "s.c")
CATALOG = {name: Relation(name, "s", ("k", "v"), ("INT", "INT")) for name in NAMES}
OUTER = ("LEFT JOIN", "RIGHT OUTER JOIN", "FULL JOIN")
KINDS = ("JOIN", *OUTER)

SMALL = st.none() | st.integers(0, 2)
TABLES = st.fixed_dictionaries({name: st.lists(st.tuples(SMALL, SMALL), max_size=4) for name in NAMES})

# {0} is an earlier operand, {1} the new one.
EXTRA = (
    "{0}.v < {1}.v",
    "{1}.v = 1",
    "{0}.v IS NOT NULL",
    "({1}.v <> 2 OR {0}.k = 1)",
    "NOT ({0}.v = {1}.k)",
    "{0}.v <=> {1}.v",
)
WHERE = ("{0}.v IS NULL", "{0}.k > 0", "({0}.v = 1 OR {0}.k IS NULL)", "COALESCE({0}.v, 2) = 2", "NOT {0}.k = {0}.v")


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Two to four operands, also of one relation, at least one outer join, extra conditions in ON and WHERE."""
    count = draw(st.integers(2, 4))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=count - 1, max_size=count - 1))
    if not set(kinds) & set(OUTER):
        kinds[draw(st.integers(0, count - 2))] = draw(st.sampled_from(OUTER))
    relations = draw(st.lists(st.sampled_from(NAMES), min_size=count, max_size=count))
    text = f"{relations[0]} t0"
    for place, kind in enumerate(kinds, 1):
        earlier = st.integers(0, place - 1)
        equality = draw(st.sampled_from(("t{0}.k = t{1}.k", "t{1}.k = t{0}.v", "t{0}.v = t{1}.v")))
        conditions = [equality.format(draw(earlier), place)]
        for extra in draw(st.lists(st.sampled_from(EXTRA), max_size=2)):
            conditions.append(extra.format(f"t{draw(earlier)}", f"t{place}"))
        text += f" {kind} {relations[place]} t{place} ON {' AND '.join(draw(st.permutations(conditions)))}"
    where = [one.format(f"t{draw(st.integers(0, count - 1))}") for one in draw(st.lists(st.sampled_from(WHERE)))][:2]
    shown = ", ".join(f"t{place}.{column} AS {column}{place}" for place in range(count) for column in ("k", "v"))
    computed = f"COALESCE(t{count - 1}.v, t0.v) + 1 AS more"
    return f"SELECT {shown}, {computed} FROM {text}" + (f" WHERE {' AND '.join(where)}" if where else "")


@st.composite
def texts_with_using(draw: st.DrawFn) -> str:
    """Joins by USING, of which only the last may be full: after it the column is no longer that of one operand."""
    count = draw(st.integers(2, 4))
    kinds = draw(st.lists(st.sampled_from(KINDS[:3]), min_size=count - 2, max_size=count - 2))
    kinds.append(draw(st.sampled_from(OUTER)))
    text = "s.a t0"
    for place, kind in enumerate(kinds, 1):
        text += f" {kind} {draw(st.sampled_from(NAMES))} t{place} USING (k)"
    where = draw(st.sampled_from(("", " WHERE k > 0", " WHERE k IS NULL OR k = t0.v", " WHERE COALESCE(k, 1) = 1")))
    shown = ", ".join(f"t{place}.k AS k{place}, t{place}.v AS v{place}" for place in range(count))
    return f"SELECT k, k + 1 AS next, {shown} FROM {text}{where}"


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1; CREATE SCHEMA s")
        for name in NAMES:
            connection.execute(f"CREATE TABLE {name} (k INT, v INT)")
        yield connection


def in_duckdb(database: duckdb.DuckDBPyConnection, sql: str, tables: Tables) -> Counter[tuple[Any, ...]]:
    for name, rows in tables.items():
        database.execute(f"DELETE FROM {name}")
        if rows:
            marks = ", ".join(["(?, ?)"] * len(rows))
            database.execute(f"INSERT INTO {name} VALUES {marks}", [value for row in rows for value in row])
    return Counter(database.execute(duckdb_sql(sql)).fetchall())


@cache
def duckdb_sql(sql: str) -> str:
    return sqlglot.transpile(sql, read="spark", write="duckdb")[0]


def parsed(sql: str) -> OuterJoinView:
    view = parse_definition(sql, CATALOG)
    assert isinstance(view, OuterJoinView)
    return view


@settings(max_examples=examples(80), deadline=None)
@given(texts(), st.lists(TABLES, min_size=2, max_size=4))
def test_on_and_where(database: duckdb.DuckDBPyConnection, sql: str, worlds: list[Tables]) -> None:
    view = parsed(sql)
    for tables in worlds:
        assert evaluated(view, tables) == in_duckdb(database, sql, tables)


@settings(max_examples=examples(30), deadline=None)
@given(texts_with_using(), st.lists(TABLES, min_size=2, max_size=4))
def test_using(database: duckdb.DuckDBPyConnection, sql: str, worlds: list[Tables]) -> None:
    view = parsed(sql)
    for tables in worlds:
        assert evaluated(view, tables) == in_duckdb(database, sql, tables)


def test_the_four_kinds(database: duckdb.DuckDBPyConnection) -> None:
    """One row with a partner and one without on either side, so that every kind has rows of its own."""
    tables: Tables = {"s.a": [(1, 10), (2, 20), (None, 30)], "s.b": [(1, 11), (1, 11), (3, 13)], "s.c": []}
    both, left, right = (10, 11), [(20, None), (30, None)], [(None, 13)]
    held = {"LEFT JOIN": [both, both, *left], "RIGHT JOIN": [both, both, *right]}
    held["FULL JOIN"] = [both, both, *left, *right]
    for kind, rows in held.items():
        sql = f"SELECT a.v, b.v AS w FROM s.a {kind} s.b ON a.k = b.k"
        assert evaluated(parsed(sql), tables) == Counter(rows) == in_duckdb(database, sql, tables)
