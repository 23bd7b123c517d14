"""Rows that a source has as columns: Python values for those who look at them, a record batch for bulk loads."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from viewkeeper.algebra.zset import Row

if TYPE_CHECKING:
    import pyarrow as pa


class ColumnarRows(Sequence[Row]):
    """The rows of a record batch, made when the first of them is requested."""

    def __init__(self, batch: "pa.RecordBatch", values: "Callable[[Any], list[Any]]") -> None:
        """`values` makes Python values of a column."""
        self.batch = batch
        self._values = values
        self._made: list[Row] | None = None

    @property
    def _rows(self) -> list[Row]:
        if self._made is None:
            self._made = list(zip(*map(self._values, self.batch.columns), strict=True))
        return self._made

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> list[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | list[Row]:
        return self._rows[place]
