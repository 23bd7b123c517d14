"""PostgreSQL's types as Spark's: one decoder of text per type, for the stream and for readings alike.

Both come as the text of the type's output function, in sessions with the same pinned settings, and go through the
same decoder: equal rows give equal values by construction.

    bool, int2, int4, int8, float4, float8, bytea, date     BOOLEAN, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, BINARY, DATE
    numeric(p, s) with p <= 38                              DECIMAL(p, s)
    timestamptz, timestamp                                  TIMESTAMP (UTC), TIMESTAMP_NTZ
    text, varchar, char(n) without its padding              STRING
    uuid, enum, json, inet, interval, time, arrays, ranges  STRING, their text
    numeric without bounds or with more digits, and others  STRING, their text

Refused, because their text depends on something that can change without a change of the row: money (locale), reg*
(names of other objects), composite types (ALTER TYPE).
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from viewkeeper.errors import UnsupportedType
from viewkeeper.sql.one_nan import NAN
from viewkeeper.sql.type_families import MAX_PRECISION

Decode = Callable[[str], Any]


@dataclass(frozen=True)
class Declared:
    """A column's type as the catalog has it, domains resolved; `element` of an array."""

    written: str
    name: str
    builtin: bool
    kind: str
    """pg_type.typtype: b base, e enum, c composite, r range, m multirange, p pseudo"""
    typmod: int
    element: str | None = None
    element_kind: str | None = None


@dataclass(frozen=True)
class ColumnType:
    """`family` says what a column may be compared with at the database: see `keys.py`."""

    spark: str
    family: str
    decode: Decode


GONE = ColumnType("STRING", "other", str)
"""a column that is not there any more"""


def column_type(declared: Declared, table: str, column: str) -> ColumnType:
    """How a column is kept; UnsupportedType if it cannot be kept exactly."""
    if declared.builtin and declared.name == "numeric":
        return numeric(declared.typmod)
    if declared.builtin and declared.name in _PLAIN:
        return _PLAIN[declared.name]
    reason = _refusal(declared)
    if reason:
        raise UnsupportedType(
            f"{table}.{column} has the type {declared.written}, which cannot be kept exactly: {reason}",
            f"leave {table} out of the tables, or give the column another type (numeric, text, ...)",
        )
    return ColumnType("STRING", "other", str)


def _refusal(declared: Declared) -> str | None:
    for name, kind in ((declared.name, declared.kind), (declared.element, declared.element_kind)):
        if name == "money":
            return "its text depends on the locale"
        if name is not None and declared.builtin and (name.startswith("reg") or name == "aclitem"):
            return "it shows names of other objects, which can be renamed"
        if kind in ("c", "p", "d"):
            return "it is made of other types, which can be altered while no row changes"
    return None


def numeric(typmod: int) -> ColumnType:
    """numeric(precision, scale) by its modifier."""
    if typmod < 4:
        return ColumnType("STRING", "other", str)
    precision = (typmod - 4) >> 16 & 0xFFFF
    # Since PostgreSQL 15 the scale has 11 bits and may be negative, or larger than the precision.
    scale = ((typmod - 4 & 0x7FF) ^ 1024) - 1024
    digits = max(precision, scale) if scale >= 0 else precision - scale
    if digits > MAX_PRECISION:
        return ColumnType("STRING", "other", str)
    return ColumnType(f"DECIMAL({digits}, {max(scale, 0)})", "decimal", _decimal)


def _decimal(text: str) -> Decimal:
    value = Decimal(text)
    if not value.is_finite():
        raise ValueError("DECIMAL has no such value")
    return value


def _double(text: str) -> float:
    value = float(text)
    return value if value == value else NAN


def _single(text: str) -> float:
    """The number that is stored in 32 bits, not the nearest double to its shortest text."""
    value = float(text)
    return float(struct.unpack("f", struct.pack("f", value))[0]) if value == value else NAN


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text[2:])


_PLAIN = {
    "bool": ColumnType("BOOLEAN", "boolean", "t".__eq__),
    "int2": ColumnType("SMALLINT", "integer", int),
    "int4": ColumnType("INT", "integer", int),
    "int8": ColumnType("BIGINT", "integer", int),
    "oid": ColumnType("BIGINT", "oid", int),
    "float4": ColumnType("FLOAT", "float", _single),
    "float8": ColumnType("DOUBLE", "float", _double),
    "text": ColumnType("STRING", "text", str),
    "varchar": ColumnType("STRING", "text", str),
    "bpchar": ColumnType("STRING", "char", lambda text: text.rstrip(" ")),
    "uuid": ColumnType("STRING", "uuid", str),
    "bytea": ColumnType("BINARY", "binary", _bytes),
    "date": ColumnType("DATE", "time", date.fromisoformat),
    "timestamp": ColumnType("TIMESTAMP_NTZ", "time", datetime.fromisoformat),
    "timestamptz": ColumnType("TIMESTAMP", "time", _moment),
}


def row_decoder(
    table: str, columns: Sequence[str], decoders: Sequence[Decode]
) -> Callable[[Sequence[str | None]], tuple[Any, ...]]:
    """From the texts of a row to its values; UnsupportedType names the column and the value."""
    plain = all(decode is str for decode in decoders)

    def decoded(texts: Sequence[str | None]) -> tuple[Any, ...]:
        if plain:
            return tuple(texts)
        try:
            return tuple([None if text is None else decode(text) for decode, text in zip(decoders, texts, strict=True)])
        except (ValueError, ArithmeticError):
            raise _unrepresentable(table, columns, decoders, texts) from None

    return decoded


def _unrepresentable(
    table: str, columns: Sequence[str], decoders: Sequence[Decode], texts: Sequence[str | None]
) -> UnsupportedType:
    for column, decode, text in zip(columns, decoders, texts, strict=True):
        if text is None:
            continue
        try:
            decode(text)
        except (ValueError, ArithmeticError):
            return UnsupportedType(
                f"{table}.{column} has the value {text[:60]!r}, which cannot be represented",
                "dates go from year 1 to 9999 and have no infinity, DECIMAL has no NaN: "
                "change the value, or leave the table out",
            )
    raise AssertionError("every value of the row can be decoded")
