"""Rows of every type for the tests of sources that are files, and how they are written as such."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from viewkeeper.clock import Random
from viewkeeper.sql.one_nan import NAN

TYPES = {
    "id": "BIGINT",
    "flag": "BOOLEAN",
    "small": "SMALLINT",
    "price": "DECIMAL(10, 2)",
    "share": "DOUBLE",
    "name": "STRING",
    "day": "DATE",
    "moment": "TIMESTAMP",
    "local": "TIMESTAMP_NTZ",
}
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("flag", pa.bool_()),
        ("small", pa.int16()),
        ("price", pa.decimal128(10, 2)),
        ("share", pa.float64()),
        ("name", pa.string()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
    ]
)
WRITTEN = ", ".join(f"{name} {type}" for name, type in TYPES.items())
TEXTS = ("", "a", "ä,b", 'quo"te', "line\nbreak", " blank ", "NULL", "0", "🦆")


def random_row(random: Random, id: int) -> tuple[Any, ...]:
    """A row with some NULLs."""
    moment = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(microseconds=random.randrange(10**15))
    values: list[Any] = [
        random.random() < 0.5,
        random.randrange(-(2**15), 2**15),
        Decimal(random.randrange(-(10**9), 10**9)).scaleb(-2),
        random.choice([0.1, -1e300, NAN, 0.0, float("inf"), 1 / 3]),
        random.choice(TEXTS),
        date(1, 1, 1) + timedelta(days=random.randrange(3_652_058)),
        moment,
        moment.replace(tzinfo=None),
    ]
    return (id, *(None if random.random() < 0.15 else value for value in values))


def arrow(rows: list[tuple[Any, ...]], schema: pa.Schema = SCHEMA) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def write(path: Path, table: pa.Table) -> None:
    """Write a file in the format that its name tells; it appears at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}")
    if path.suffix == ".parquet":
        pq.write_table(table, unfinished)
    elif path.suffix == ".csv":
        pa_csv.write_csv(table, unfinished)
    else:
        lines = [json.dumps({name: _plain(value) for name, value in row.items()}) for row in table.to_pylist()]
        unfinished.write_text("".join(line + "\n" for line in lines))
    unfinished.replace(path)


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    return value.isoformat() if isinstance(value, date) else value
