"""What the tests of the engines share: one constructor per engine, expressions from SQL, and how contents are shown."""

import uuid
from collections.abc import Callable, Iterable
from typing import Any

from viewkeeper.algebra.adaptive import Engines
from viewkeeper.algebra.arrow import ArrowZSet
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.spark import SparkZSet
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation

Make = Callable[..., Any]

TYPES = {
    "x": "BIGINT",
    "y": "BIGINT",
    "i": "INT",
    "s": "STRING",
    "f": "DOUBLE",
    "d": "DECIMAL(10, 2)",
    "at": "TIMESTAMP",
    "local": "TIMESTAMP_NTZ",
    "day": "DATE",
    "raw": "BINARY",
    "p": "BOOLEAN",
}
RELATION = Relation("s.r", "s", tuple(TYPES), tuple(TYPES.values()))


def expression(sql: str) -> Expression:
    """An expression over the columns of `r`, which are called r.x, r.y and so on."""
    [column] = parse_view(f"SELECT {sql} AS v FROM s.r", {"s.r": RELATION}).output
    return column.expression


def no_session() -> Any:
    """In place of a session that may not be needed."""
    raise AssertionError("Spark is started")


WITHOUT_SPARK: dict[str, Make] = {
    "memory": MemoryZSet,
    "arrow": ArrowZSet.of_rows,
    "adaptive in arrow": Engines(no_session, most_rows=0, most_bytes=1 << 30).zset,
}


def constructors(spark: Any) -> dict[str, Make]:
    """From the name of an engine to what makes its Z-sets; the adaptive one keeps next to nothing in memory."""
    return {
        **WITHOUT_SPARK,
        "spark": lambda columns, weights=(): SparkZSet.of_rows(spark, columns, weights),
        "adaptive": Engines(lambda: spark, most_rows=1).zset,
    }


def contents(zset: Any) -> dict[Any, int]:
    """Rows with their weights. Values count as equal only if their Python types are: 1 is neither True nor 1.0."""
    found = [((*row, *(type(value).__name__ for value in row)), weight) for row, weight in zset.weights()]
    assert len(dict(found)) == len(found), f"a row comes twice: {found}"
    return dict(found)


def expected(weights: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    """The same for rows that are written out."""
    return {(*row, *(type(value).__name__ for value in row)): weight for row, weight in weights}


def jobs(spark: Any, work: Callable[[], object]) -> int:
    """How many jobs some work starts."""
    group = str(uuid.uuid5(uuid.NAMESPACE_OID, repr(work)))
    context = spark.sparkContext
    context.setJobGroup(group, "counted")
    try:
        work()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)
    return len(context.statusTracker().getJobIdsForGroup(group))
