"""Keys that are shipped to the database, as typed arrays.

    column = ANY ($1::text[]::int8[])

They are parameters, never SQL text. They come from elsewhere, so that an INT column may be asked for a Decimal or for a
number beyond its range: a value that the column can never have is left out, and where the types do not compare the
column does not restrict at all. More rows may come back than match, never fewer.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from psycopg import sql

from viewkeeper.sources.postgres.types import ColumnType

_INT64 = range(-(1 << 63), 1 << 63)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class KeyArray:
    """Values of one column of the keys, as texts; None where the column can never have that value."""

    cast: sql.SQL | None
    """the type that the column is cast to before it is compared, if it must be"""
    type: sql.SQL
    texts: list[str | None]


def key_array(column: ColumnType, values: Sequence[Any]) -> KeyArray | None:
    """The values as an array that the column can be compared with; None: they tell nothing about the column.

    The values come from elsewhere: an INT column may be asked for a Decimal, or for a number beyond its range.
    """
    if column.family in ("integer", "decimal", "float", "oid") and all(_is_number(value) for value in values):
        return _number_array(column, values)
    kinds = {type(value) for value in values}
    if column.family == "boolean" and kinds <= {bool}:
        return KeyArray(None, sql.SQL("boolean"), [str(value).lower() for value in values])
    if column.family == "binary" and kinds <= {bytes}:
        return KeyArray(None, sql.SQL("bytea"), ["\\x" + value.hex() for value in values])
    if column.family == "time" and kinds <= {date, datetime}:
        return _time_array(values)
    if kinds <= {str}:
        return _string_array(column, values)
    return None


def _is_number(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite()
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number_array(column: ColumnType, values: Sequence[Any]) -> KeyArray:
    if column.family == "float":
        return KeyArray(None, sql.SQL("float8"), [_float_text(value) for value in values])
    if any(isinstance(value, float) for value in values):
        return KeyArray(sql.SQL("float8"), sql.SQL("float8"), [_float_text(value) for value in values])
    if column.family == "decimal":
        return KeyArray(None, sql.SQL("numeric"), [format(value, "f") for value in values])
    texts = [_integer_text(value) for value in values]
    return KeyArray(sql.SQL("int8") if column.family == "oid" else None, sql.SQL("int8"), texts)


def _float_text(value: Any) -> str | None:
    try:
        return repr(float(value))
    except OverflowError:
        return None


def _integer_text(value: int | Decimal) -> str | None:
    if not _INT64.start <= value < _INT64.stop or value != int(value):
        return None
    return str(int(value))


def _time_array(values: Sequence[Any]) -> KeyArray:
    if any(isinstance(value, datetime) and value.tzinfo is not None for value in values):
        name = sql.SQL("timestamptz")
    elif any(isinstance(value, datetime) for value in values):
        name = sql.SQL("timestamp")
    else:
        name = sql.SQL("date")
    return KeyArray(None, name, [value.isoformat() for value in values])


def _string_array(column: ColumnType, values: Sequence[str]) -> KeyArray | None:
    if column.family == "uuid":
        return KeyArray(None, sql.SQL("uuid"), [value if _UUID.fullmatch(value) else None for value in values])
    texts = [value if _storable(value) else None for value in values]
    if column.family == "text":
        return KeyArray(None, sql.SQL("text"), texts)
    if column.family == "char":
        return KeyArray(None, sql.SQL("bpchar"), texts)
    return KeyArray(sql.SQL("text"), sql.SQL("text"), texts) if column.family == "other" else None


def _storable(text: str) -> bool:
    """Whether PostgreSQL can have this text at all."""
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
