"""Z-sets as tables and frames with the types that a relation declares."""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.zset import Row
from viewkeeper.errors import SourceError
from viewkeeper.lake.log.columns import WEIGHT, arrow_schema, spark_schema
from viewkeeper.lake.tables.signed_rows import frame_in_spark, table_in_arrow
from viewkeeper.maintenance.contents import frame_of_table
from viewkeeper.sql.relation import Relation
from viewkeeper.summary.grouping import canonical_floats
from viewkeeper.summary.statements import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def signed_rows(deltas: Sequence[Any], relation: Relation) -> "tuple[pa.Table | DataFrame | None, int]":
    """Several changes of a relation as one, with `_vk_weight`, and how many rows they have; None if there are none.

    A change is a Z-set, an Arrow table or a frame with weights. Those on the driver stay there, and are added up.
    """
    frames = [_typed(frame, relation) for delta in deltas if (frame := frame_in_spark(delta)) is not None]
    here = [delta for delta in deltas if frame_in_spark(delta) is None]
    small = netted(_weighted_sum(here, relation), relation) if here else None
    if not frames:
        return (small, small.num_rows) if small is not None and small.num_rows else (None, 0)
    if small is not None and small.num_rows:
        frames.append(frame_of_table(frames[0].sparkSession, small))
    whole = reduce(lambda one, other: one.unionAll(other), frames)
    rows = whole.count()
    return (whole, rows) if rows else (None, 0)


def netted(table: pa.Table, relation: Relation) -> pa.Table:
    """Each row once, with what its weights come to: changes are then weakly minimal."""
    total = table.group_by(list(relation.columns), use_threads=False).aggregate([(WEIGHT, "sum")])
    total = total.rename_columns([*relation.columns, WEIGHT])
    return total.filter(pc.not_equal(total[WEIGHT], 0))


def weighted_table(delta: Any, relation: Relation) -> pa.Table:
    """The rows of a change on the driver, with `_vk_weight`."""
    return _weighted_sum([delta], relation)


def _weighted_sum(deltas: Iterable[Any], relation: Relation) -> pa.Table:
    """The rows of all changes, with `_vk_weight`: thousands of small ones become columns once, not one by one."""
    schema = arrow_schema(tuple(zip(relation.columns, relation.types, strict=True)), signed=False)
    tables: list[pa.Table] = []
    rows: list[tuple[Row, int]] = []
    for delta in deltas:
        if (table := table_in_arrow(delta)) is None:
            rows += delta.keep(relation.columns).weights()
        else:
            arrays = [canonical_floats(table[field.name].cast(field.type)) for field in schema]
            names = [*relation.columns, WEIGHT]
            tables.append(pa.Table.from_arrays([*arrays, table[WEIGHT].cast(pa.int64())], names))
    return pa.concat_tables([*tables, _table_of_rows(rows, relation, schema)])


def _table_of_rows(rows: Sequence[tuple[Row, int]], relation: Relation, schema: pa.Schema) -> pa.Table:
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
    return frame_of_table(spark, weighted_table(zset, relation)) if frame is None else _typed(frame, relation)


def _typed(frame: "DataFrame", relation: Relation) -> "DataFrame":
    from viewkeeper.algebra.pyspark_names import F

    fields = spark_schema(tuple(zip(relation.columns, relation.types, strict=True)), signed=False).fields
    typed = [F.col(quoted(field.name)).cast(field.dataType).alias(field.name) for field in fields]
    return frame.select(*typed, F.col(WEIGHT).cast("bigint").alias(WEIGHT))
