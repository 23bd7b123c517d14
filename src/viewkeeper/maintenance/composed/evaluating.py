"""An operator without a linear rule, over the rows that a change touches.

    in memory    counts, sums, extremes of columns
    DuckDB       windows and LIMIT over columns: functions that mean the same there
    Spark        everything else

All run the statement of the operator, or what it says; Spark decides what it means.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from viewkeeper.algebra.adaptive import AdaptiveZSet, Engines
from viewkeeper.algebra.zset import Row
from viewkeeper.errors import ExpressionError
from viewkeeper.lake.log.columns import WEIGHT, arrow_schema
from viewkeeper.operators.expressions import flat_names
from viewkeeper.operators.grouping import grouped
from viewkeeper.sql.catalyst.rendering import table_columns, to_sql
from viewkeeper.sql.syntax import ViewDialect
from viewkeeper.sql.tree import Aggregate, AtMostOne, Column, Limit, Operator, Window, inputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_IN_PROCESS = 2_000_000
"""Rows that are evaluated in this process."""
_SAME = (
    exp.RowNumber,
    exp.Rank,
    exp.DenseRank,
    exp.Lag,
    exp.Lead,
    exp.FirstValue,
    exp.LastValue,
    exp.Ntile,
    exp.Count,
    exp.Min,
    exp.Max,
)
"""window functions that mean the same in DuckDB"""
_AROUND = (exp.Window, exp.WindowSpec, exp.Order, exp.Ordered, exp.Column, exp.Identifier, exp.Literal, exp.Star)


class OperatorEngine:
    """Evaluates the operators of one warehouse."""

    def __init__(self, engines: Engines, spark: "Callable[[], SparkSession]") -> None:
        self._engines = engines
        self._spark = spark

    def zset(self, columns: tuple[str, ...], weights: Iterable[tuple[Row, int]] = ()) -> AdaptiveZSet:
        return self._engines.zset(columns, weights)

    def of_table(self, rows: Any) -> AdaptiveZSet:
        """From an Arrow table or a DataFrame with `_vk_weight`."""
        if not isinstance(rows, pa.Table):
            return self._engines.of_frame(rows)
        from viewkeeper.algebra.arrow_rows import weighted_rows

        names = tuple(name for name in rows.column_names if name != WEIGHT)
        return self.zset(names, weighted_rows(rows.select([*names, WEIGHT])))

    def evaluate(self, operator: Operator, rows: Sequence[AdaptiveZSet]) -> AdaptiveZSet:
        names = flat_names(operator.columns)
        if isinstance(operator, AtMostOne):
            return _at_most_one(rows[0])
        if isinstance(operator, Aggregate) and rows[0].on_driver:
            found = grouped(operator, rows[0].columns, rows[0].weights())
            if found is not None:
                return self.zset(names, found)
        if rows[0].on_driver and is_evaluated_here(operator) and rows[0].size() <= MOST_IN_PROCESS:
            return self._zset(names, _by_duckdb(operator, rows[0]))
        return self._by_spark(operator, rows)

    def _zset(self, names: tuple[str, ...], table: pa.Table) -> AdaptiveZSet:
        from viewkeeper.algebra.arrow_rows import rows_of

        return self.zset(names, ((row, 1) for row in rows_of(table)))

    def _by_spark(self, operator: Operator, rows: Sequence[AdaptiveZSet]) -> AdaptiveZSet:
        from viewkeeper.lake.tables.spark_files import spark_errors
        from viewkeeper.maintenance.composed.tree_frames import evaluated

        with spark_errors(f"evaluating {type(operator).__name__.lower()}"):
            return evaluated(self._engines, self._spark(), operator, rows)


def _at_most_one(rows: AdaptiveZSet) -> AdaptiveZSet:
    if sum(weight for _, weight in rows.weights()) > 1:
        raise ExpressionError(
            "a subquery that is used as a value has more than one row", "aggregate it, or add ORDER BY ... LIMIT 1"
        )
    return rows


def is_evaluated_here(operator: Operator) -> bool:
    """Whether DuckDB evaluates it as Spark does: over columns alone, by functions that are the same."""
    columns = {one.name for one in operator.columns}
    if isinstance(operator, Limit):
        return all(one.sql in columns for one in operator.order)
    if not isinstance(operator, Window):
        return False
    for function in operator.functions:
        node = sqlglot.parse_one(function.sql, dialect=ViewDialect)
        if not isinstance(node, exp.Window) or not isinstance(node.this, _SAME):
            return False
        if not all(isinstance(part, (*_AROUND, *_SAME)) for part in node.walk()):
            return False
        if not all(part.is_int for part in node.find_all(exp.Literal)):
            return False
    return True


def _repeated(rows: AdaptiveZSet, columns: Sequence[Column]) -> pa.Table:
    """The rows as columns, each as often as it is there."""
    schema = arrow_schema(tuple((one.name, one.type.upper()) for one in columns), signed=False)
    table = rows.to_arrow([one.type.upper() for one in columns]).consolidate().table
    counts = table[WEIGHT].to_pylist()
    places = [place for place, count in enumerate(counts) for _ in range(count)]
    return table.drop_columns([WEIGHT]).rename_columns(schema.names).cast(schema).take(pa.array(places, pa.int64()))


def _by_duckdb(operator: Operator, rows: AdaptiveZSet) -> pa.Table:
    import duckdb

    (below,) = inputs(operator)
    given = _repeated(rows, below.columns).rename_columns(table_columns(below))
    text = sqlglot.transpile(to_sql(operator, {below: "given"}), read=ViewDialect, write="duckdb")[0]
    schema = arrow_schema(tuple((one.name, one.type.upper()) for one in operator.columns), signed=False)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("given", given)
        found: pa.Table = connection.sql(text).to_arrow_table()
        return found.cast(schema)
