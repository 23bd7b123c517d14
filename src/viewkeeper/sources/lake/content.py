"""The content of a relation: a bag of immutable Parquet files, read as one table.

    content = rows of file_1 ⊎ rows of file_2 ⊎ ...

Equal files may occur several times. A column that a file does not have comes from the file's constants (the partition
of a Delta table), or is NULL.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from viewkeeper.algebra.zset import Row
from viewkeeper.errors import SourceUnavailable
from viewkeeper.sources.columnar import ColumnarRows
from viewkeeper.sources.lake.column_types import Misfit, arrow_type, conform, python_values
from viewkeeper.sql.relation import Relation

ROWS_AT_ONCE = 8192

WEIGHT = "_vk_weight"

# Spark writes moments as INT96 unless it is told otherwise.
_FORMAT = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")
_DISK = LocalFileSystem()


class FileGone(Exception):
    """A file of a content is not there any more."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is gone")
        self.path = path


@dataclass(frozen=True)
class DataFile:
    """A Parquet file. `canonical`: it has the relation's columns in their own types, so that Spark may read it."""

    path: Path
    rows: int | None = None
    constants: Mapping[str, Any] = field(default_factory=dict)
    """the values of columns that are not in the file"""
    canonical: bool = False

    def count(self) -> int:
        """How many rows it has."""
        if self.rows is not None:
            return self.rows
        with file_errors(self.path):
            return int(pq.read_metadata(self.path).num_rows)


@dataclass(frozen=True)
class Content:
    """A relation and the files that hold it."""

    relation: Relation
    files: tuple[DataFile, ...]
    absent: frozenset[str] = frozenset()
    """columns that are NULL, whatever the files hold"""

    @cached_property
    def schema(self) -> pa.Schema:
        columns = zip(self.relation.columns, self.relation.types, strict=True)
        return pa.schema([pa.field(name, arrow_type(type)) for name, type in columns])

    def count(self) -> int:
        """How many rows there are."""
        return sum(file.count() for file in self.files)

    def batches(
        self, columns: Sequence[str], among: Mapping[str, pa.Array] | None = None
    ) -> Iterator[pa.RecordBatch | pa.Table]:
        """Some columns of all rows; only of those whose values are among these, where any are given."""
        among = among or {}
        needed = list(dict.fromkeys([*columns, *among]))
        for file in self.files:
            for batch in self._scan(file, needed, among):
                for column, values in among.items():
                    batch = batch.filter(pc.is_in(batch[column], value_set=values))
                if batch.num_rows:
                    yield batch.select(list(columns))

    def rows(self, columns: Sequence[str], among: Mapping[str, pa.Array] | None = None) -> Iterator[Sequence[Row]]:
        """The same as rows of Python values."""
        for batch in self.batches(columns, among):
            yield ColumnarRows(batch, python_values)

    def _scan(self, file: DataFile, needed: list[str], among: Mapping[str, pa.Array]) -> Iterator[pa.Table]:
        with file_errors(file.path):
            fragment = _FORMAT.make_fragment(str(file.path), _DISK)
            stored = fragment.physical_schema
            present = [column for column in needed if column in stored.names and column not in file.constants]
            for column, values in among.items():
                # Row groups whose bounds exclude every value are left out. Rows are compared afterwards, in the types
                # of the relation: those of the file may be others.
                if column in present and column not in self.absent and stored.field(column).type == values.type:
                    fragment = fragment.subset(ds.field(column).isin(values))
            scanned = fragment.to_batches(
                columns=present, batch_size=ROWS_AT_ONCE, batch_readahead=4, fragment_readahead=1, use_threads=False
            )
            for batch in scanned:
                if batch.num_rows:
                    yield self._conformed(file, batch, needed)

    def _conformed(self, file: DataFile, batch: pa.RecordBatch, needed: list[str]) -> pa.RecordBatch:
        arrays = []
        for column in needed:
            wanted = self.schema.field(column).type
            if column in self.absent:
                arrays.append(pa.nulls(batch.num_rows, wanted))
            elif column in file.constants:
                scalar = pa.scalar(file.constants[column], wanted)
                arrays.append(pa.repeat(scalar, batch.num_rows))
            elif column in batch.schema.names:
                arrays.append(batch[column] if file.canonical else conform(column, batch[column], wanted))
            else:
                arrays.append(pa.nulls(batch.num_rows, wanted))
        return pa.RecordBatch.from_arrays(arrays, names=needed)


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """What reading a file says when it fails: FileGone, Misfit or SourceUnavailable."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileGone(path) from error
    except pa.ArrowException as error:
        raise Misfit(f"it cannot be read: {error}") from error
    except OSError as error:
        raise SourceUnavailable(f"{path}: {error.strerror or error}", "check the access to the file") from error
