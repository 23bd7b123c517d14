"""The rows that the text of a view gives, as Spark reads it.

    stored  =  Spark( the text as it was written ; the relations at the vector of the view )

This is what an audit compares with. Nothing that maintains a view takes part, neither its tree nor the driver's
evaluation of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from viewkeeper.lake.log.columns import WEIGHT
from viewkeeper.maintenance.typed_rows import weighted_frame
from viewkeeper.sql.original_text import original_query
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import Operand
from viewkeeper.summary.statements import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class OriginalRows:
    """Evaluates texts of views over frames of relations, by the names of these; of views below too, in order."""

    def __init__(self, spark: "SparkSession", frames: "Mapping[str, DataFrame]") -> None:
        from viewkeeper.summary.propagate import TemporaryNames

        self._spark = spark
        self._temporary = TemporaryNames(spark)
        self.names = {name: self._temporary.name(frame) for name, frame in frames.items()}

    def of(self, sql: str, operands: Sequence[Operand], columns: Sequence[str]) -> "DataFrame":
        """The rows that a definition gives, under the names of its columns."""
        text = original_query(sql, [self.names[operand.relation.name] for operand in operands])
        # The text may come from a warehouse of somebody else: to Spark too it must be a query, and no command.
        self._spark._jsparkSession.sessionState().sqlParser().parseQuery(text)
        return self._spark.sql(text).toDF(*columns)

    def add(self, name: str, frame: "DataFrame") -> None:
        """A relation more: a view that others read."""
        self.names[name] = self._temporary.name(frame)

    def select(self, statement: str) -> "DataFrame":
        """Any statement over `names`."""
        return self._spark.sql(statement)

    def close(self) -> None:
        self._temporary.__exit__()


@contextmanager
def original_frames(spark: "SparkSession", frames: "Mapping[str, DataFrame]") -> Iterator[OriginalRows]:
    """Over relations that are frames already."""
    rows = OriginalRows(spark, frames)
    try:
        yield rows
    finally:
        rows.close()


@contextmanager
def original_rows(
    spark: "SparkSession", contents: Mapping[str, Any], relations: Mapping[str, Relation]
) -> Iterator[OriginalRows]:
    """Over relations whose rows are Z-sets."""
    frames = {name: repeated(weighted_frame(spark, held, relations[name])) for name, held in contents.items()}
    with original_frames(spark, frames) as rows:
        yield rows


def repeated(weighted: "DataFrame") -> "DataFrame":
    """Each row as often as its weights say."""
    from viewkeeper.algebra.pyspark_names import F

    columns = [F.col(quoted(name)) for name in weighted.columns if name != WEIGHT]
    total = weighted.groupBy(*columns).agg(F.sum(WEIGHT).alias(WEIGHT)).filter(F.col(WEIGHT) > 0)
    times = F.expr(f"explode(array_repeat(0, CAST({WEIGHT} AS INT)))")
    return total.select(*columns, times.alias("_vk_copy")).drop("_vk_copy")
