"""The rows of a relation on their way from a source to a computation: in memory if they are few, else staged for Spark.

A bulk that would pass through the driver row by row is written as Parquet and read by Spark instead.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from viewkeeper.algebra.adaptive import MOST_ROWS, AdaptiveZSet, Engines
from viewkeeper.algebra.zset import Row
from viewkeeper.clock import unique_id
from viewkeeper.errors import SourceError
from viewkeeper.sql.relation import Relation
from viewkeeper.warehouse.columns import WEIGHT, arrow_schema
from viewkeeper.warehouse.store import LocalStore, explained

if TYPE_CHECKING:
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
        self._rows: list[Row] = []
        self._weights: list[int] = []
        self._writer: pq.ParquetWriter | None = None

    def add(self, rows: Sequence[Row], weight: int = 1) -> None:
        self._rows.extend(rows)
        self._weights.extend([weight] * len(rows))
        if len(self._rows) >= (MOST_ROWS if self._writer is None else AT_ONCE):
            self._write()
        self._come(len(rows))

    def result(self) -> AdaptiveZSet:
        """What was collected, as a Z-set."""
        columns = self._relation.columns
        if self._writer is None:
            return self._engines.zset(columns, zip(self._rows, self._weights, strict=True))
        self._write()
        self._writer.close()
        return self._engines.of_file(self._store.path(self._name), self._store.spark_pattern(self._name))

    def _write(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pairs = tuple(zip(self._relation.columns, self._relation.types, strict=True))
        schema = arrow_schema(pairs, signed=False).append(pa.field(WEIGHT, pa.int64(), nullable=False))
        path = self._store.path(self._name)
        try:
            values: list[Any] = list(zip(*self._rows, strict=True)) if self._rows else [()] * len(pairs)
            arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=False)]
            batch = pa.record_batch([*arrays, pa.array(self._weights, pa.int64())], schema=schema)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise SourceError(f"a row of {self._relation.name} does not fit its types: {error}") from error
        with explained(path):
            if self._writer is None:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._writer = pq.ParquetWriter(path, schema)
            self._writer.write_batch(batch)
        self._rows.clear()
        self._weights.clear()
