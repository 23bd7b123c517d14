"""Rows of a stored table that are looked up by some columns, read from those parts of its files that may have them.

A table that is looked up is stored in the order of what it is looked up by, in small groups of rows, and Parquet knows
the least and the greatest value of each group. Where the values that are asked for lie together, few groups are read.
Where they are spread over the whole table it is better read once and kept, which is for the caller to do. A table that
is too large to be kept is read group by group: first what it is looked up by, then the groups that have some of it.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import WEIGHT, arrow_schema
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.log.store import damaged_file
from viewkeeper.lake.tables.delta_table import DataFile
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.tables.parquet_files import check_file, open_parquet
from viewkeeper.summary.content import ArrowContent

MOST_OF_IT = 0.25
"""Of a table that can be kept more than this part is not worth being read again and again."""


def touched_rows(
    files: Files,
    view: Definition,
    record: Record,
    by: tuple[str, ...],
    values: pa.Table,
    wanted: tuple[str, ...],
    room: float,
) -> pa.Table | None:
    """The wanted columns of the rows whose columns `by` are those of some row of `values`; these identify rows.

    None if the parts that may have such rows are most of a table that takes no more bytes than there is room for.
    """
    types = dict(view.columns)
    names = tuple(dict.fromkeys((*wanted, *by)))
    schema = arrow_schema(tuple((name, types[name]) for name in names), signed=False)
    schema = schema.append(pa.field(WEIGHT, pa.int64()))
    with ExitStack() as stack:
        listed = files.tables.files(view, record.tables[view.name])
        parts = [_Part(path, stack.enter_context(opened)) for path, opened in _opened(files, view, listed)]
        asked = _Asked.of(values[by[0]])
        chosen = [(part, part.groups_with(by[0], asked)) for part in parts]
        total = sum(part.rows for part in parts)
        if sum(part.rows_of(groups) for part, groups in chosen) > MOST_OF_IT * total:
            largest = max(parts, key=lambda part: part.rows)
            if total * largest.row_bytes(schema) <= room:
                return None
        found = [rows for part, groups in chosen for rows in part.matching(groups, by, values, schema)]
    rows = pa.concat_tables([schema.empty_table(), *found])
    rows = rows.group_by(list(names), use_threads=False).aggregate([(WEIGHT, "sum")])
    there = rows.filter(pc.greater(rows[f"{WEIGHT}_sum"], 0))
    return there.select(list(wanted)).cast(pa.schema([schema.field(name) for name in wanted]))


def _opened(files: Files, view: Definition, listed: Sequence[DataFile]) -> Iterator[tuple[Path, pq.ParquetFile]]:
    for file in listed:
        check_file(files.store, view.folder, file)
        path = files.store.path(f"{view.folder}/{file.name}")
        try:
            yield path, open_parquet(path)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise damaged_file(path, error) from error


@dataclass(frozen=True)
class _Part:
    """One file of a table."""

    path: Path
    opened: pq.ParquetFile

    @property
    def rows(self) -> int:
        return int(self.opened.metadata.num_rows)

    def rows_of(self, groups: Sequence[int]) -> int:
        return sum(self.opened.metadata.row_group(group).num_rows for group in groups)

    def row_bytes(self, schema: pa.Schema) -> float:
        """The memory that a row takes, as its first group has it: Parquet knows only what is left of its strings."""
        first = self.read(range(min(1, self.opened.num_row_groups)), schema)
        return float(first.nbytes / max(1, first.num_rows))

    def groups_with(self, column: str, asked: "_Asked") -> list[int]:
        """The groups of rows that may have one of these values."""
        metadata = self.opened.metadata
        place = self.opened.schema_arrow.names.index(column)
        return [
            group
            for group in range(metadata.num_row_groups)
            if asked.may_be_in(metadata.row_group(group).column(place).statistics)
        ]

    def matching(
        self, groups: Sequence[int], by: tuple[str, ...], values: pa.Table, schema: pa.Schema
    ) -> Iterator[pa.Table]:
        """The rows of some groups that have one of these values."""
        if not groups:
            return
        keys = ArrowContent(self.read(groups, pa.schema([schema.field(name) for name in by])))
        positions = keys.where(by, values)
        start = first = 0
        for group in groups:
            end = start + self.rows_of([group])
            last = bisect_left(positions, end, lo=first, key=lambda position: position.as_py())
            if last > first:
                here = pc.subtract(positions.slice(first, last - first), pa.scalar(start, pa.int64()))
                yield self.read([group], schema).take(here)
            start, first = end, last

    def read(self, groups: Sequence[int], schema: pa.Schema) -> pa.Table:
        try:
            return self.opened.read_row_groups(groups, columns=schema.names).select(schema.names).cast(schema)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise damaged_file(self.path, error) from error


@dataclass(frozen=True)
class _Asked:
    """Values that are looked for, in order."""

    values: Sequence[Any]
    anywhere: bool
    """whether there is a value that has no place in the order"""
    nulls: bool

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> "_Asked":
        if pa.types.is_floating(column.type):
            return cls((), anywhere=True, nulls=True)  # a NaN may be among them
        values = sorted(value for value in set(column.to_pylist()) if value is not None)
        return cls(values, anywhere=False, nulls=bool(column.null_count))

    def may_be_in(self, statistics: Any) -> bool:
        """Whether a group of rows may have one of them."""
        if self.anywhere or statistics is None or not statistics.has_min_max:
            return True
        if self.nulls and statistics.null_count:
            return True
        try:
            first = bisect_left(self.values, statistics.min)
            return first < len(self.values) and self.values[first] <= statistics.max
        except TypeError:
            return True  # what Parquet says of this type cannot be compared with the values
