"""Z-sets as tables and frames with the types that a relation declares."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from viewkeeper.errors import SourceError
from viewkeeper.sql.relation import Relation
from viewkeeper.warehouse.columns import WEIGHT, arrow_schema, spark_schema
from viewkeeper.warehouse.signed_rows import canonical_floats, frame_in_spark
from viewkeeper.warehouse.summaries.contents import frame_of_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def weighted_table(zset: Any, relation: Relation) -> pa.Table:
    """The rows of a Z-set on the driver, with `_vk_weight`."""
    rows = list(zset.keep(relation.columns).weights())
    schema = arrow_schema(tuple(zip(relation.columns, relation.types, strict=True)), signed=False)
    values = zip(*(row for row, _ in rows), strict=True) if rows else ((),) * len(schema)
    try:
        arrays = [canonical_floats(pa.array(v, field.type)) for field, v in zip(schema, values, strict=True)]
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise SourceError(f"a row of {relation.name} does not fit its types: {error}") from error
    weights = pa.array([weight for _, weight in rows], pa.int64())
    return pa.Table.from_arrays([*arrays, weights], [*relation.columns, WEIGHT])


def weighted_frame(spark: "SparkSession", zset: Any, relation: Relation) -> "DataFrame":
    """The rows of a Z-set as a frame, with `_vk_weight`; those in Spark stay there."""
    frame = frame_in_spark(zset)
    if frame is None:
        return frame_of_table(spark, weighted_table(zset, relation))
    from pyspark.sql import functions as F

    fields = spark_schema(tuple(zip(relation.columns, relation.types, strict=True)), signed=False).fields
    typed = [F.col(f"`{field.name}`").cast(field.dataType).alias(field.name) for field in fields]
    return frame.select(*typed, F.col(WEIGHT).cast("bigint").alias(WEIGHT))
