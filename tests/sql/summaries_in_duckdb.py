"""DuckDB's answer to an aggregate view, as the SQL says it and as the parsed form says it."""

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import sqlglot

from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.render import render
from viewkeeper.sql.summary_view import Family, Function, SummaryView

Rows = Counter[tuple[Any, ...]]

TABLES = """
    CREATE SCHEMA retail;
    CREATE TABLE retail.pos (storeID INT, itemID INT, date DATE, qty INT, price DECIMAL(10, 2), weight DOUBLE,
                             gift BOOLEAN, note VARCHAR);
    CREATE TABLE retail.stores (storeID INT, city VARCHAR, region VARCHAR);
    CREATE TABLE retail.items (itemID INT, name VARCHAR, category VARCHAR, cost DECIMAL(36, 4));
"""
ROWS = """
    INSERT INTO retail.stores VALUES (1, 'Rome', 'south'), (2, 'Oslo', 'north'), (3, NULL, 'north'),
        (4, 'Bari', 'south');
    INSERT INTO retail.items VALUES (1, 'pen', 'office', 0.5), (2, 'ink', 'office', 2), (3, 'tea', NULL, 1.25);
    INSERT INTO retail.pos VALUES
        (1, 1, '2024-01-01', 2, 1.50, 0.5, true, 'a'), (1, 2, '2024-01-01', 1, 3.00, 0.25, false, NULL),
        (1, 1, '2024-01-02', NULL, 1.75, NULL, NULL, 'b'), (2, 1, '2025-01-01', 5, 1.50, 1.5, true, 'a'),
        (2, 3, '2025-03-01', 3, NULL, 0.125, true, NULL), (3, 3, NULL, 4, 2.25, 2.0, false, 'c'),
        (3, 3, '2024-01-02', 4, 2.25, 2.0, false, 'c'), (NULL, 2, '2024-05-05', 1, 9.99, 0.75, false, 'a'),
        (1, NULL, '2024-05-05', 7, 0.10, 0.5, NULL, 'd'), (1, 1, '2024-01-01', 2, 1.50, 0.5, true, 'a');
"""


@contextmanager
def retail_database(rows: str = ROWS) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as database:
        database.execute(TABLES)
        database.execute(rows)
        yield database


def as_written(database: duckdb.DuckDBPyConnection, sql: str) -> Rows:
    [text] = sqlglot.transpile(sql, read="spark", write="duckdb")
    return _rows(database, text)


def as_parsed(database: duckdb.DuckDBPyConnection, parsed: SummaryView | Family) -> Rows:
    if isinstance(parsed, SummaryView):
        return _rows(database, _text(parsed))
    members = []
    for member in parsed.members:
        columns = ", ".join(f'{_duck(sql)} AS "{name}"' for name, sql in member.padded)
        members.append(f"SELECT {columns} FROM ({_text(member.view)})")
    return _rows(database, " UNION ALL ".join(members))


def _text(view: SummaryView) -> str:
    """γ over the core, then the output and HAVING over that: what the docstring of SummaryView says."""
    groups = [f"g{index}" for index in range(len(view.groups))]
    arguments: list[Expression] = []
    columns = [f'{group} AS "g.{index}"' for index, group in enumerate(groups)]
    for index, aggregate in enumerate(view.aggregates):
        if aggregate.argument is not None and aggregate.argument not in arguments:
            arguments.append(aggregate.argument)
        argument = f"a{arguments.index(aggregate.argument)}" if aggregate.argument is not None else "*"
        function = {Function.COUNT_ALL: "count(", Function.COUNT_DISTINCT: "count(DISTINCT "}.get(
            aggregate.function, f"{aggregate.function.value}("
        )
        columns.append(f'{function}{argument}) AS "a.{index}"')
    by = f"GROUP BY {', '.join(groups)}" if groups else ""
    inner = f"SELECT {', '.join(columns) or '1'} FROM ({render(view.core, 'duckdb')}) {by}"
    output = ", ".join(f'{_duck(column.expression.sql)} AS "{column.name}"' for column in view.output)
    where = f"WHERE {_duck(view.having.sql)}" if view.having else ""
    return f"SELECT {output} FROM ({inner}) {where}"


def _duck(sql: str) -> str:
    return sqlglot.parse_one(sql, dialect="spark").sql("duckdb")


def _rows(database: duckdb.DuckDBPyConnection, text: str) -> Rows:
    return Counter(tuple(map(_plain, row)) for row in database.execute(text).fetchall())


def _plain(value: Any) -> Any:
    """Doubles are sums in any order."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.10g}")
    return value
