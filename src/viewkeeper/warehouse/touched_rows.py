"""Rows of a stored table that are looked up by some columns, read from those parts of its files that may have them.

A table that is looked up is stored in the order of what it is looked up by, in small groups of rows, and Parquet knows
the least and the greatest value of each group. Where the values that are asked for lie together, few groups are read;
where they are spread over the whole table it is better read once and kept, which is for the caller to do.
"""

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from viewkeeper.summary.content import ArrowContent
from viewkeeper.warehouse.catalog import Definition
from viewkeeper.warehouse.columns import WEIGHT, arrow_schema
from viewkeeper.warehouse.delta_table import DataFile
from viewkeeper.warehouse.parquet_files import check_file
from viewkeeper.warehouse.record import Record
from viewkeeper.warehouse.snapshot import Files
from viewkeeper.warehouse.store import damaged_file

MOST_OF_IT = 0.25
"""Of a table more than this part is not worth being read again and again."""


def touched_rows(
    files: Files, view: Definition, record: Record, by: tuple[str, ...], values: pa.Table, wanted: tuple[str, ...]
) -> pa.Table | None:
    """The wanted columns of the rows whose columns `by` are those of some row of `values`; None if the parts that may
    have them are most of the table. The rows of the table are told apart by what is wanted."""
    first = values[by[0]]
    if pa.types.is_floating(first.type):
        return None  # a NaN has no place in an order
    asked = sorted(value for value in set(first.to_pylist()) if value is not None)
    types = dict(view.columns)
    names = tuple(dict.fromkeys((*wanted, *by)))
    schema = arrow_schema(tuple((name, types[name]) for name in names), signed=False)
    schema = schema.append(pa.field(WEIGHT, pa.int64()))
    found = [schema.empty_table()]
    with ExitStack() as stack:
        parts = []
        for file in files.tables.files(view, record.tables[view.name]):
            opened = stack.enter_context(_opened(files, view, file))
            parts.append((file, opened, _groups(opened, by[0], asked, nulls=bool(first.null_count))))
        total = sum(opened.metadata.num_rows for _, opened, _ in parts)
        chosen = sum(opened.metadata.row_group(place).num_rows for _, opened, groups in parts for place in groups)
        if chosen > MOST_OF_IT * total:
            return None
        for file, opened, groups in parts:
            if groups:
                rows = _read(files, view, file, opened, groups, schema)
                found.append(ArrowContent(rows).find(by, values).rows)
    rows = pa.concat_tables(found).group_by(list(names), use_threads=False).aggregate([(WEIGHT, "sum")])
    there = rows.filter(pc.greater(rows[f"{WEIGHT}_sum"], 0))
    return there.select(list(wanted)).cast(pa.schema([schema.field(name) for name in wanted]))


def _opened(files: Files, view: Definition, file: DataFile) -> pq.ParquetFile:
    check_file(files.store, view.folder, file)
    path = files.store.path(f"{view.folder}/{file.name}")
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged_file(path, error) from error


def _groups(opened: pq.ParquetFile, column: str, asked: Sequence[Any], *, nulls: bool) -> list[int]:
    """The groups of rows that may have one of these values."""
    metadata = opened.metadata
    place = opened.schema_arrow.names.index(column)
    return [
        group
        for group in range(metadata.num_row_groups)
        if _may_have(metadata.row_group(group).column(place).statistics, asked, nulls=nulls)
    ]


def _may_have(statistics: Any, asked: Sequence[Any], *, nulls: bool) -> bool:
    if statistics is None or not statistics.has_min_max:
        return True
    if nulls and statistics.null_count:
        return True
    try:
        first = bisect_left(asked, statistics.min)
        return first < len(asked) and asked[first] <= statistics.max
    except TypeError:
        return True  # what Parquet says of this type cannot be compared with the values


def _read(
    files: Files, view: Definition, file: DataFile, opened: pq.ParquetFile, groups: list[int], schema: pa.Schema
) -> pa.Table:
    try:
        return opened.read_row_groups(groups, columns=schema.names).select(schema.names).cast(schema)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged_file(files.store.path(f"{view.folder}/{file.name}"), error) from error
