"""Tables with rows for the oracle: a query and its tree must give the same bag of rows."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import constructs
import pyarrow as pa
import pytest

import tpch
from viewkeeper.sql.catalyst.reading import read_query
from viewkeeper.sql.catalyst.rendering import to_sql
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.tree import Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 3


ONE_TASK = {"spark.sql.shuffle.partitions": "1", "spark.sql.leafNodeDefaultParallelism": "1"}
"""A few rows: without other tasks there is nothing to exchange."""


@pytest.fixture(scope="session")
def one_task(spark: "SparkSession") -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in ONE_TASK}
    for name, value in ONE_TASK.items():
        spark.conf.set(name, value)
    yield
    for name, old in before.items():
        if old is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, old)


@pytest.fixture(scope="session")
def tpch_tables(spark: "SparkSession", one_task: None) -> Iterator[Mapping[str, Relation]]:
    """The tables of TPC-H, small, as temporary views of the suite's session."""
    for table, rows in tpch.rows(SEED).items():
        show(spark, table, tpch.TABLES[table], rows)
    yield tpch.relations()
    for table in tpch.TABLES:
        spark.catalog.dropTempView(table)


@pytest.fixture(scope="session")
def tables(spark: "SparkSession", one_task: None) -> Iterator[Mapping[str, Relation]]:
    """The tables of `constructs`, as temporary views of the suite's session."""
    for table, rows in constructs.rows(SEED).items():
        show(spark, table, constructs.TABLES[table], rows)
    yield constructs.relations()
    for table in constructs.TABLES:
        spark.catalog.dropTempView(table)


def show(spark: "SparkSession", name: str, schema: str, rows: list[tuple[Any, ...]]) -> None:
    """Rows as a temporary view. From Arrow, Spark knows how few they are, and joins them without a shuffle."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    arrow = to_arrow_schema(StructType.fromDDL(schema), timezone="UTC")
    columns = zip(*rows, strict=True) if rows else ((),) * len(arrow)
    arrays = [pa.array(list(values), field.type) for values, field in zip(columns, arrow, strict=True)]
    spark.createDataFrame(pa.Table.from_arrays(arrays, schema=arrow)).createOrReplaceTempView(name)


def bag(spark: "SparkSession", sql: str) -> Counter[Any]:
    """The rows of a query with how often each is there; floats to nine digits."""
    return Counter(tuple(_comparable(value) for value in row) for row in spark.sql(sql).collect())


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, (list, tuple)):
        return tuple(map(_comparable, value))
    if isinstance(value, dict):
        return tuple(sorted((str(key), _comparable(one)) for key, one in value.items()))
    return value


@pytest.fixture(scope="session")
def same_rows(spark: "SparkSession") -> Callable[[str, Mapping[str, Relation]], Query]:
    """Reads a query, and compares the rows of its tree with its own."""

    def check(sql: str, relations: Mapping[str, Relation]) -> Query:
        query = read_query(spark, sql, relations)
        rendered = to_sql(query.root, {})
        assert bag(spark, rendered) == bag(spark, sql), f"{sql}\nis not\n{rendered}"
        return query

    return check
