"""Files as typed batches, and the types that a file seems to have.

    parquet     its own types
    csv         a header, then lines; an empty field is NULL, "" is an empty text, a text may hold line breaks
    json        an object per line; a field that is missing is NULL

A file that does not fit the columns of its table is a Misfit.
"""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from viewkeeper.sources.lake.column_types import Misfit, conform, spark_type
from viewkeeper.sources.lake.content import ROWS_AT_ONCE
from viewkeeper.sources.layout import widens

ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".csv.gz"),
    "json": (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz"),
}

_BLOCK = 1 << 24
# Beyond this a double is not every whole number that might have been written.
_EXACT_WHOLE = float(1 << 53)


@dataclass(frozen=True)
class Format:
    """How the files of a table are written."""

    name: str
    delimiter: str = ","


@dataclass(frozen=True)
class Lack:
    """Why a file says nothing of a column of its table."""

    reason: str
    widened: bool = False
    """whether it does, in a wider type"""


def format_of(name: str) -> str | None:
    """The format that the name of a file tells."""
    return next((format for format, endings in ENDINGS.items() if name.lower().endswith(endings)), None)


def stem(name: str) -> str:
    """The name of a file without what tells its format."""
    ending = max(
        (ending for endings in ENDINGS.values() for ending in endings if name.lower().endswith(ending)),
        key=len,
        default="",
    )
    return name[: len(name) - len(ending)]


def typed_batches(path: Path, format: Format, schema: pa.Schema, lacks: dict[str, Lack]) -> Iterator[pa.RecordBatch]:
    """The rows of a file in the columns of its table. A column that it does not have, or in a wider type with values
    that do not fit, is NULL and named in `lacks`; one that the table does not have is passed over."""
    try:
        for batch in _opened(path, format, schema):
            arrays = [_field(batch, field, lacks) for field in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
    except pa.ArrowException as error:
        raise Misfit(str(error)) from error


def _field(batch: pa.RecordBatch, field: pa.Field, lacks: dict[str, Lack]) -> Any:
    if field.name not in batch.schema.names:
        lacks[field.name] = Lack(f"the column {field.name} is gone")
        return pa.nulls(batch.num_rows, field.type)
    values = batch[field.name]
    try:
        return conform(field.name, values, field.type)
    except Misfit as error:
        if not _is_widened(field.type, values.type):
            raise
        lacks[field.name] = Lack(f"the column {field.name} was widened ({error})", widened=True)
        return pa.nulls(batch.num_rows, field.type)


def _is_widened(registered: pa.DataType, found: pa.DataType) -> bool:
    if pa.types.is_nested(found):
        return False
    before, now = spark_type("", "", registered), spark_type("", "", found)
    return before != now and widens(before, now)


def _opened(path: Path, format: Format, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if format.name == "parquet":
        with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
            names = file.schema_arrow.names
            _check_columns(names, schema)
            yield from file.iter_batches(batch_size=ROWS_AT_ONCE, columns=[one for one in schema.names if one in names])
    elif format.name == "csv":
        yield from _csv_batches(path, format, schema)
    else:
        yield from _json_batches(path, schema)


def _csv_batches(path: Path, format: Format, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    header = _header(path, format)
    _check_columns(header, schema)
    with pa.input_stream(str(path), compression="detect") as stream:
        try:
            reader = pa_csv.open_csv(
                stream,
                read_options=pa_csv.ReadOptions(use_threads=False),
                parse_options=pa_csv.ParseOptions(delimiter=format.delimiter, newlines_in_values=True),
                convert_options=_conversion(
                    {field.name: field.type for field in schema}, [one for one in header if one in schema.names]
                ),
            )
            with reader:
                yield from reader
        except pa.ArrowException as error:
            raise _named(str(error), header) from error


def _header(path: Path, format: Format) -> list[str]:
    with pa.input_stream(str(path), compression="detect") as stream:
        lines = csv.reader(TextIOWrapper(stream, "utf-8-sig", newline=""), delimiter=format.delimiter)
        try:
            return next(lines)
        except (StopIteration, UnicodeDecodeError, csv.Error) as error:
            raise Misfit("it has no header") from error


def _named(message: str, header: Sequence[str]) -> Misfit:
    """What Arrow says of a CSV file, with the name of the column that it numbers."""
    found = re.match(r"In CSV column #(\d+): ", message)
    if found is None or int(found[1]) >= len(header):
        return Misfit(message)
    return Misfit(message[found.end() :], header[int(found[1])])


def _json_batches(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    # Arrow reads days as numbers only.
    asked = pa.schema([(field.name, pa.string() if pa.types.is_date(field.type) else field.type) for field in schema])
    if _is_blank(path):
        return
    with pa.input_stream(str(path), compression="detect") as stream:
        reader = pa_json.open_json(
            stream,
            read_options=pa_json.ReadOptions(use_threads=False, block_size=_block_size(path)),
            parse_options=pa_json.ParseOptions(explicit_schema=asked, unexpected_field_behavior="ignore"),
        )
        with reader:
            for batch in reader:
                arrays = [
                    _days(field.name, batch[field.name]) if pa.types.is_date(field.type) else batch[field.name]
                    for field in schema
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=schema.names)


def _days(column: str, texts: Any) -> Any:
    try:
        return texts.cast(pa.date32())
    except pa.ArrowException as error:
        raise Misfit(str(error), column) from error


def _check_columns(found: Sequence[str], schema: pa.Schema) -> None:
    for column in schema.names:
        if list(found).count(column) > 1:
            raise Misfit("it is there twice", column)
    if not set(found) & set(schema.names):
        raise Misfit(f"it has none of the columns {', '.join(schema.names)}")


def _conversion(types: dict[str, pa.DataType], columns: Sequence[str] | None = None) -> pa_csv.ConvertOptions:
    return pa_csv.ConvertOptions(
        include_columns=columns,
        column_types=types,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )


def _block_size(path: Path) -> int:
    # An object may not be larger than two blocks; of a compressed file the size is not known.
    return max(_BLOCK, min(path.stat().st_size, 1 << 30))


def _is_blank(path: Path) -> bool:
    with pa.input_stream(str(path), compression="detect") as stream:
        while block := stream.read(1 << 16):
            if block.strip():
                return False
    return True


def column_names(path: Path, format: Format) -> list[str]:
    """The columns that a file has, as far as its beginning tells; Misfit if it cannot be read."""
    try:
        if format.name == "parquet":
            return list(pq.read_schema(path).names)
        if format.name == "csv":
            return _header(path, format)
        with pa.input_stream(str(path), compression="detect") as stream:
            first = next((line for line in TextIOWrapper(stream, "utf-8") if line.strip()), "{}")
        row = json.loads(first)
        return list(row) if isinstance(row, dict) else []
    except (pa.ArrowException, ValueError) as error:
        raise Misfit(str(error)) from error


# --- the types that a file seems to have ---


def seen_schema(path: Path, format: Format) -> pa.Schema:
    """The columns of a file with their types; of CSV and JSON, those that every value is written in."""
    try:
        if format.name == "parquet":
            return pq.read_schema(path)
        return _seen_in_csv(path, format) if format.name == "csv" else _seen_in_json(path)
    except pa.ArrowException as error:
        raise Misfit(str(error)) from error


def _seen_in_csv(path: Path, format: Format) -> pa.Schema:
    def read(types: dict[str, pa.DataType]) -> pa.Table:
        with pa.input_stream(str(path), compression="detect") as stream:
            return pa_csv.read_csv(
                stream,
                parse_options=pa_csv.ParseOptions(delimiter=format.delimiter, newlines_in_values=True),
                convert_options=_conversion(types),
            )

    guessed = read({})
    if len(set(guessed.column_names)) < len(guessed.column_names):
        return guessed.schema
    written = read({name: pa.string() for name in guessed.column_names})
    return pa.schema([(name, _kept(guessed[name], written[name])) for name in guessed.column_names])


def _seen_in_json(path: Path) -> pa.Schema:
    if _is_blank(path):
        return pa.schema([])
    with pa.input_stream(str(path), compression="detect") as stream:
        options = pa_json.ReadOptions(block_size=_block_size(path))
        table = pa_json.read_json(stream, read_options=options)
    return pa.schema([(name, _kept(table[name], None)) for name in table.column_names])


def _kept(guessed: Any, written: Any) -> pa.DataType:
    """The guessed type if the values are written as it would write them, else a text: 007 is no number."""
    type = guessed.type
    if pa.types.is_integer(type) and written is not None:
        return type if pc.all(pc.equal(guessed.cast(pa.string()), written)).as_py() is not False else pa.string()
    if pa.types.is_floating(type):
        largest = pc.max(pc.abs(guessed)).as_py()
        return pa.string() if largest is not None and largest > _EXACT_WHOLE else type
    if pa.types.is_timestamp(type):
        return pa.string() if type.unit == "ns" else pa.timestamp("us", tz=type.tz and "UTC")
    return pa.string() if pa.types.is_time(type) else type


def unified(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """One schema for the files of a table; where they disagree, a text."""
    types: dict[str, pa.DataType] = {}
    for schema in schemas:
        for field in schema:
            types[field.name] = _common(types.get(field.name, pa.null()), field.type)
    return pa.schema([(name, pa.string() if pa.types.is_null(type) else type) for name, type in types.items()])


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    try:
        both = pa.unify_schemas([pa.schema([("c", one)]), pa.schema([("c", other)])], promote_options="permissive")
    except pa.ArrowException:
        return pa.string()
    return both.field("c").type
