"""Operators and whole trees evaluated by Spark."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from viewkeeper.algebra.adaptive import AdaptiveZSet, Engines
from viewkeeper.algebra.pyspark_names import F
from viewkeeper.lake.log.columns import WEIGHT
from viewkeeper.maintenance.original_rows import repeated
from viewkeeper.maintenance.typed_rows import weighted_frame
from viewkeeper.operators.expressions import flat_names
from viewkeeper.sql.catalyst.rendering import table_columns, to_sql
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.tree import Operator, Scan, in_order, inputs
from viewkeeper.summary.propagate import TemporaryNames
from viewkeeper.summary.statements import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def evaluated(
    engines: Engines, spark: "SparkSession", operator: Operator, rows: Sequence[AdaptiveZSet]
) -> AdaptiveZSet:
    """An operator over the rows of its inputs. The result is computed before the names of these are given back."""
    with TemporaryNames(spark) as temporary:
        tables: dict[Operator, str] = {}
        for below, given in zip(inputs(operator), rows, strict=True):
            types = zip(table_columns(below), (one.type for one in below.columns), strict=True)
            frame = given.frame.select(
                *(
                    F.col(quoted(flat)).cast(type).alias(name)
                    for flat, (name, type) in zip(given.columns, types, strict=True)
                ),
                WEIGHT,
            )
            tables[below] = _bare(temporary.name(repeated(frame)))
        found = engines.of_frame(spark.sql(to_sql(operator, tables)).toDF(*flat_names(operator.columns)))
        found.is_empty()
        return found


class TreeFrames:
    """Trees over relations, each with its rows at one vector."""

    def __init__(
        self,
        spark: "SparkSession",
        temporary: TemporaryNames,
        contents: Mapping[str, Any],
        relations: Mapping[str, Relation],
    ) -> None:
        self._spark = spark
        self._temporary = temporary
        self._tables = {
            name: _bare(temporary.name(repeated(weighted_frame(spark, rows, relations[name]))))
            for name, rows in contents.items()
        }
        self._names: dict[Operator, str] = {}

    def of(self, operator: Operator) -> "DataFrame":
        """The rows of an operator, in the types of its columns."""
        for scan in in_order(operator):
            if isinstance(scan, Scan) and scan not in self._names:
                self._names[scan] = self._tables[scan.relation]
        frame = self._spark.sql(to_sql(operator, self._names))
        return frame.select(
            *(
                F.col(quoted(have)).cast(one.type).alias(one.name)
                for have, one in zip(frame.columns, operator.columns, strict=True)
            )
        )


def _bare(name: str) -> str:
    return name.strip("`")


@contextmanager
def tree_frames(
    spark: "SparkSession", contents: Mapping[str, Any], relations: Mapping[str, Relation]
) -> Iterator[TreeFrames]:
    """Evaluate trees over the rows of relations."""
    with TemporaryNames(spark) as temporary:
        yield TreeFrames(spark, temporary, contents, relations)
