"""Recomputation: DuckDB on the rows of the model, with the view's own SQL; and what readers see of stored rows.

Spark's way to write something that DuckDB reads differently is reworded here. Stored rows are shown by the expressions
of the catalog, so that comparing needs no Spark job.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isclose, isnan
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp
from summary_definitions import Definition
from summary_schemas import Bag, Row, Table

from viewkeeper.lake.log import catalog
from viewkeeper.lake.log.columns import arrow_schema

# Spark's functions that give NULL for what does not fit; here everything fits, with every digit.
MACROS = """
CREATE MACRO safe_multiply(a, b) AS a::DECIMAL(38, 4) * b::DECIMAL(38, 4);
CREATE MACRO safe_subtract(a, b) AS a - b;
"""


class Oracle:
    """One DuckDB, for many questions."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")
        self._connection.execute(MACROS)
        self._reworded: dict[str, str] = {}

    def close(self) -> None:
        self._connection.close()

    def recomputed(self, definition: Definition, tables: Iterable[Table], rows: Mapping[str, Bag]) -> list[Row]:
        """The rows that a definition has over these rows."""
        given = {table.name: arrow_rows(table, rows[table.name]) for table in tables}
        return self._asked(definition.query(), given)

    def shown(self, *tables: tuple[catalog.Definition, pa.Table]) -> list[Row]:
        """What readers see of a summary, or of all tables of a family, given their stored rows."""
        found: list[Row] = []
        for view, stored in tables:
            query = self._shown_query(view)
            if view.family is not None:
                padded = ", ".join(f"{sql} AS `{name}`" for name, sql in view.padded)
                query = f"SELECT {padded} FROM ({query}) AS t"
            found += self._asked(query, {"stored": stored})
        return found

    @staticmethod
    def _shown_query(view: catalog.Definition) -> str:
        assert view.expressions is not None
        items = ", ".join(f"{sql} AS `{name}`" for name, sql, _ in view.expressions)
        return f"SELECT {items} FROM stored{f' WHERE {view.having}' if view.having else ''}"

    def answer(self, query: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        """The answer of a query in Spark's SQL over some tables."""
        return self._relation(query, tables).to_arrow_table()

    def _asked(self, query: str, tables: Mapping[str, pa.Table]) -> list[Row]:
        return self._relation(query, tables).fetchall()

    def _relation(self, query: str, tables: Mapping[str, pa.Table]) -> duckdb.DuckDBPyRelation:
        if query not in self._reworded:
            self._reworded[query] = in_duckdb(query)
        for name, table in tables.items():
            self._connection.register(name, table)
        try:
            return self._connection.sql(self._reworded[query])
        except duckdb.Error as error:
            error.add_note(f"{query}\n\n{self._reworded[query]}")
            raise


def in_duckdb(query: str) -> str:
    """Spark SQL as DuckDB takes it."""
    return sqlglot.parse_one(query, dialect="spark").transform(_reworded).sql(dialect="duckdb")


def _reworded(node: exp.Expr) -> exp.Expr:
    # DOUBLE('NaN') is a cast.
    if isinstance(node, exp.Anonymous) and node.name.upper() == "DOUBLE":
        return exp.cast(node.expressions[0], "double")
    return node


def arrow_rows(table: Table, bag: Bag) -> pa.Table:
    """The rows of a table, each as often as it is there."""
    schema = arrow_schema(tuple(table.columns.items()), signed=False)
    rows = list(bag.elements())
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    return pa.Table.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema=schema
    )


def differences(expected: Sequence[Row], found: Sequence[Row], rounded: frozenset[int]) -> str | None:
    """What is different between two bags of rows, numbers in some columns being compared with a tolerance."""
    left, right = (sorted(map(_plain, rows), key=lambda row: _order(row, rounded)) for rows in (expected, found))
    if len(left) == len(right) and all(_same(*pair, rounded) for pair in zip(left, right, strict=True)):
        return None
    missing = [row for row in left if not any(_same(row, other, rounded) for other in right)]
    extra = [row for row in right if not any(_same(row, other, rounded) for other in left)]
    return f"{len(left)} rows expected, {len(right)} found\n  missing {missing}\n  extra {extra}"


def _plain(row: Row) -> Row:
    return tuple("NaN" if isinstance(value, float) and isnan(value) else value for value in row)


def _order(row: Row, rounded: frozenset[int]) -> list[Any]:
    exact = [_rank(value) for place, value in enumerate(row) if place not in rounded]
    return [*exact, *(_rank(row[place]) for place in sorted(rounded))]


def _rank(value: Any) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    if isinstance(value, bool):
        return 1, value
    return (2, value) if not isinstance(value, str) and hasattr(value, "__float__") else (3, repr(value))


def _same(left: Row, right: Row, rounded: frozenset[int]) -> bool:
    return all(
        _close(*pair) if place in rounded else pair[0] == pair[1]
        for place, pair in enumerate(zip(left, right, strict=True))
    )


def _close(left: Any, right: Any) -> bool:
    if left is None or right is None or isinstance(left, str) or isinstance(right, str):
        return left is right or left == right
    return isclose(left, right, rel_tol=1e-6, abs_tol=1e-5)
