"""The rows of a relation on their way from a source to a computation: in memory if they are few, else staged for Spark.

A bulk that would pass through the driver row by row is written as Parquet and read by Spark instead. What a source has
as columns stays columns.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from viewkeeper.algebra.adaptive import MOST_ROWS, AdaptiveZSet, Engines
from viewkeeper.algebra.zset import Row
from viewkeeper.clock import unique_id
from viewkeeper.errors import SourceError
from viewkeeper.lake.log.columns import WEIGHT, arrow_schema
from viewkeeper.lake.log.store import LocalStore, explained
from viewkeeper.sources.columnar import ColumnarRows
from viewkeeper.sql.relation import Relation

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

AT_ONCE = 50_000


class CollectedRows:
    """The collector of one relation; see `mediator/base_image.py`."""

    def __init__(
        self,
        relation: Relation,
        engines: Engines,
        store: LocalStore,
        folder: str,
        come: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`come` is told how many rows have come, whenever some have."""
        self._relation = relation
        self._come = come
        self._engines = engines
        self._store = store
        self._name = f"{folder}/{unique_id()}.parquet"
        self._waiting: list[tuple[Sequence[Row], list[int]]] = []
        """rows, and their weights"""
        self._count = 0
        """how many of these there are"""
        self._writer: pq.ParquetWriter | None = None

    def add(self, rows: Sequence[Row], weight: int = 1) -> None:
        weights = [weight] * len(rows)
        if isinstance(rows, ColumnarRows):
            self._waiting.append((rows, weights))
        elif self._waiting and isinstance(before := self._waiting[-1][0], list):
            # Corrections come one by one.
            before.extend(rows)
            self._waiting[-1][1].extend(weights)
        else:
            self._waiting.append((list(rows), weights))
        self._count += len(rows)
        if self._count >= (MOST_ROWS if self._writer is None else AT_ONCE):
            self._write()
        self._come(len(rows))

    def result(self) -> AdaptiveZSet:
        """What was collected, as a Z-set."""
        columns = self._relation.columns
        if self._writer is None:
            pairs = (zip(rows, weights, strict=True) for rows, weights in self._waiting)
            return self._engines.zset(columns, chain.from_iterable(pairs))
        self._write()
        self._writer.close()
        return self._engines.of_file(self._store.path(self._name), self._store.spark_pattern(self._name))

    def _write(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pairs = tuple(zip(self._relation.columns, self._relation.types, strict=True))
        schema = arrow_schema(pairs, signed=False)
        path = self._store.path(self._name)
        try:
            table = pa.Table.from_batches([_batch(rows, schema) for rows, _ in self._waiting], schema)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise SourceError(f"a row of {self._relation.name} does not fit its types: {error}") from error
        weights = pa.chunked_array([pa.array(weights, pa.int64()) for _, weights in self._waiting], pa.int64())
        table = table.append_column(pa.field(WEIGHT, pa.int64(), nullable=False), weights)
        with explained(path):
            if self._writer is None:
                self._writer = pq.ParquetWriter(self._store.new_file(self._name), table.schema)
            self._writer.write_table(table)
        self._waiting.clear()
        self._count = 0


def _batch(rows: Sequence[Row], schema: "pa.Schema") -> "pa.RecordBatch":
    import pyarrow as pa

    from viewkeeper.summary.grouping import canonical_floats

    if isinstance(rows, ColumnarRows):
        held = zip(rows.batch.columns, schema, strict=True)
        return pa.record_batch([canonical_floats(column.cast(field.type)) for column, field in held], schema=schema)
    values: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)], schema=schema
    )
