"""Large joins and differences of Parquet files, by Spark."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from operator import and_
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from viewkeeper.algebra.arrow_rows import weighted_rows
from viewkeeper.algebra.pyspark_names import (
    Column,
    DataFrame,
    F,
    Py4JError,
    PySparkException,
    SparkSession,
    StructField,
    StructType,
    _parse_datatype_string,
)
from viewkeeper.algebra.zset import Row
from viewkeeper.errors import SourceError
from viewkeeper.messages import Fetch
from viewkeeper.sources.lake.column_types import arrow_type, conform
from viewkeeper.sources.lake.content import WEIGHT, Content
from viewkeeper.sources.lake.workshop import Workshop, canonical_files, write_parquet
from viewkeeper.sql.view import Operand

_INT96 = "spark.sql.parquet.outputTimestampType"
_PATTERN = re.compile(r"[\[\]{}*?]")


def netted_on_spark(minus: Content, plus: Content, workshop: Workshop) -> list[tuple[Row, int]]:
    """The rows of one content minus those of the other, with their weights."""
    spark = workshop.spark()
    with workshop.scratch() as place, _spark_errors(f"differencing {plus.relation.name}"):
        signed = [
            _frame(spark, content, place).select("*", F.lit(sign).alias(WEIGHT))
            for content, sign in ((minus, -1), (plus, 1))
        ]
        columns = [_column(name) for name in plus.relation.columns]
        # Hardly two rows of one side are equal: adding up before the exchange would only cost.
        exchanged = signed[0].unionAll(signed[1]).repartition(*columns)
        summed = exchanged.groupBy(*columns).agg(F.sum(_column(WEIGHT)).alias(WEIGHT))
        return list(weighted_rows(summed.filter(_column(WEIGHT) != 0).toArrow()))


def repeated_key_on_spark(content: Content, key: Sequence[str], workshop: Workshop) -> Row | None:
    """A key that two rows have."""
    spark = workshop.spark()
    with workshop.scratch() as place, _spark_errors(f"checking the key of {content.relation.name}"):
        keys = _frame(spark, content, place).groupBy(*map(_column, key)).count()
        found = keys.filter(_column("count") > 1).drop("count").limit(1).toArrow().to_pylist()
        return tuple(found[0].values()) if found else None


@contextmanager
def joined_on_spark(fetch: Fetch, contents: Mapping[str, Content], workshop: Workshop) -> Iterator[list[Path]]:
    """The answer to a fetch as Parquet files, with the columns numbered; they are gone afterwards."""
    spark = workshop.spark()
    with workshop.scratch() as place:
        with _spark_errors("joining " + ", ".join(operand.relation.name for operand in fetch.operands)):
            joined: DataFrame | None = None
            for operand in fetch.operands:
                frame = _frame(spark, contents[operand.relation.name], place).toDF(*operand.columns)
                joined = frame if joined is None else _join(joined, frame, fetch)
            assert joined is not None, "a fetch has an operand"
            if fetch.keys is not None:
                joined = _matching(joined, fetch, place)
            output = joined.select(*(_column(name).alias(f"c{n}") for n, name in enumerate(fetch.columns)))
            with _microseconds(spark):
                output.write.option("compression", "zstd").parquet(f"file:{place / 'joined'}")
        yield sorted((place / "joined").glob("*.parquet"))


def _join(left: DataFrame, right: DataFrame, fetch: Fetch) -> DataFrame:
    mine, its = set(left.columns), set(right.columns)
    on = [_column(a) == _column(b) for a, b in fetch.equal if (a in mine and b in its) or (b in mine and a in its)]
    own = [_column(a) == _column(b) for a, b in fetch.equal if a in its and b in its]
    right = right.filter(reduce(and_, own)) if own else right
    return left.join(right, reduce(and_, on)) if on else left.crossJoin(right)


def _matching(joined: DataFrame, fetch: Fetch, place: Path) -> DataFrame:
    """The rows that match the keys, as far as these are values of the columns; more rows are allowed."""
    types = {column: arrow_type(type) for operand in fetch.operands for column, type in _types(operand)}
    arrays = {}
    for number, column in enumerate(fetch.matched):
        with suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
            arrays[column] = pa.array([key[number] for key in fetch.keys or ()], types[column])
    if not arrays:
        return joined
    names = [f"{WEIGHT}{number}" for number in range(len(arrays))]
    keys = pa.RecordBatch.from_arrays(list(arrays.values()), names=names)
    path = place / "keys.parquet"
    write_parquet(path, keys.schema, iter([keys]))
    same = [_column(column) == _column(name) for column, name in zip(arrays, names, strict=True)]
    shipped = joined.sparkSession.read.parquet(_spark_path(path))
    return joined.join(F.broadcast(shipped), reduce(and_, same), "left_semi")


def _types(operand: Operand) -> Iterator[tuple[str, str]]:
    return zip(operand.columns, operand.relation.types, strict=True)


def read_joined(paths: Sequence[Path], types: Sequence[pa.DataType], rows: int) -> Iterator[pa.RecordBatch]:
    """What Spark wrote, in the types of the columns."""
    for path in paths:
        with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
            for batch in file.iter_batches(batch_size=rows):
                arrays = [
                    conform(name, batch[name], type) for name, type in zip(batch.schema.names, types, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _frame(spark: SparkSession, content: Content, place: Path) -> DataFrame:
    relation = content.relation
    fields = zip(relation.columns, relation.types, strict=True)
    schema = StructType([StructField(name, _parse_datatype_string(type)) for name, type in fields])
    # Spark reads a file that is named twice once.
    paths = canonical_files(content, place)
    frames = []
    while paths:
        once = list(dict.fromkeys(paths))
        for path in once:
            paths.remove(path)
        frames.append(spark.read.schema(schema).parquet(*map(_spark_path, once)))
    return reduce(DataFrame.unionAll, frames) if frames else spark.createDataFrame([], schema)


def _spark_path(path: Path) -> str:
    # Spark takes what it reads for a pattern.
    return re.sub(_PATTERN, r"\\\g<0>", f"file:{path}")


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


@contextmanager
def _microseconds(spark: SparkSession) -> Iterator[None]:
    before = str(spark.conf.get(_INT96))
    spark.conf.set(_INT96, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        spark.conf.set(_INT96, before)


@contextmanager
def _spark_errors(doing: str) -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise SourceError(f"{doing} failed: {lines[0] if lines else error}", "look at the log of Spark") from error
