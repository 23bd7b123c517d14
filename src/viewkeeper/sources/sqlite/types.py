"""Declared types of SQLite, and the values that may stand in such a column.

    canonical(types, rows)          what is stored, as rows of canonical values; Misfit if a value is not of its type
    stored_forms(value)             every way in which a column may hold a canonical value

SQLite lets any value stand in any column. A value that is not of the declared type is never converted by guesswork: it
is a Misfit, which names it. DECIMAL(p, s) is kept as an integer or a double; up to 15 digits each decimal has a double
of its own, so a double that is the nearest one to a decimal of that scale is that decimal, and any other is a misfit.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from itertools import product
from typing import Any

from viewkeeper.algebra.zset import Row

DIGITS_OF_A_DOUBLE = 15
DIGITS_OF_AN_INTEGER = 18
_INTEGERS = range(-(1 << 63), 1 << 63)
_WIDE = Context(prec=60, rounding=ROUND_HALF_EVEN)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3}([0-9]{3})?)?")
_DECLARED = re.compile(r"\s*([A-Z][A-Z0-9_ ]*?)\s*(?:\(\s*([0-9]+)\s*(?:,\s*([0-9]+)\s*)?\))?\s*")


@dataclass(frozen=True)
class StoredType:
    """`spark` is the type's name; values are of `python`, and `convert` makes them canonical (ValueError: it is none).

    `wants` says in words what may stand in the column.
    """

    spark: str
    python: tuple[type, ...]
    convert: Callable[[Any], Any] | None
    wants: str


class Misfit(Exception):
    """A value that is not of its column's type."""

    def __init__(self, column: int, row: int, value: object, wants: str) -> None:
        super().__init__(f"{storage_class(value)} where {wants} is declared")
        self.column = column
        self.row = row
        self.value = value


def _text(value: str) -> str:
    """Bytes that are no UTF-8 were read as lone surrogates, which do not encode."""
    if not value.isascii():
        value.encode()
    return value


def _boolean(value: int) -> bool:
    if value not in (0, 1):
        raise ValueError
    return value == 1


def _date(value: str) -> date:
    if not _DATE.fullmatch(value):
        raise ValueError
    return date.fromisoformat(value)


def _timestamp(value: str) -> datetime:
    if not _DATETIME.fullmatch(value):
        raise ValueError
    return datetime.fromisoformat(value)


def _decimal(precision: int, scale: int) -> Callable[[Any], Decimal]:
    unit, limit = Decimal(1).scaleb(-scale), Decimal(10) ** (precision - scale)

    def convert(value: int | float) -> Decimal:
        try:
            result = Decimal(repr(value)).quantize(unit, context=_WIDE)
        except InvalidOperation:
            raise ValueError from None
        exact = float(result) == value if isinstance(value, float) else result == value
        if not exact or abs(result) >= limit:
            raise ValueError
        return result

    return convert


_BIGINT = StoredType("BIGINT", (int,), None, "an integer")
_DOUBLE = StoredType("DOUBLE", (float,), None, "a real")
_STRING = StoredType("STRING", (str,), _text, "text in UTF-8")
_BINARY = StoredType("BINARY", (bytes,), None, "a blob")
_BOOLEAN = StoredType("BOOLEAN", (int,), _boolean, "0 or 1")
_DATES = StoredType("DATE", (str,), _date, "text YYYY-MM-DD")
_TIMESTAMPS = StoredType(
    "TIMESTAMP_NTZ", (str,), _timestamp, "text YYYY-MM-DD HH:MM:SS, with 3, 6 or no digits after the point"
)

ABSENT = StoredType("STRING", (), None, "nothing")
"""a column that is not there any more: it is NULL"""

_BY_NAME = {
    **dict.fromkeys(
        ("INT", "INTEGER", "TINYINT", "SMALLINT", "MEDIUMINT", "BIGINT", "INT2", "INT4", "INT8"),
        _BIGINT,
    ),
    "UNSIGNED BIG INT": _BIGINT,
    **dict.fromkeys(("REAL", "DOUBLE", "FLOAT", "DOUBLE PRECISION"), _DOUBLE),
    **dict.fromkeys(("TEXT", "CLOB", "VARCHAR", "NVARCHAR", "CHAR", "CHARACTER", "NCHAR"), _STRING),
    **dict.fromkeys(("VARYING CHARACTER", "CHARACTER VARYING", "NATIVE CHARACTER"), _STRING),
    **dict.fromkeys(("BLOB", "BINARY", "VARBINARY"), _BINARY),
    **dict.fromkeys(("BOOLEAN", "BOOL"), _BOOLEAN),
    "DATE": _DATES,
    **dict.fromkeys(("TIMESTAMP", "DATETIME"), _TIMESTAMPS),
}


def stored_type(declared: str) -> StoredType | str:
    """The type that a declared one stands for; if there is none, the way out."""
    name = declared.upper().removesuffix("GENERATED ALWAYS")
    parts = _DECLARED.fullmatch(name)
    if parts is None:
        return "declare a type: INTEGER, REAL, TEXT, BLOB, BOOLEAN, DATE, TIMESTAMP or DECIMAL(p, s)"
    if parts[1] in ("DECIMAL", "NUMERIC"):
        return _decimal_type(parts[2], parts[3])
    return _BY_NAME.get(parts[1]) or (
        "declare the column as TEXT (SQLite stores text in a column of this type as a number if it looks like one), or "
        "as INTEGER, REAL, BLOB, BOOLEAN, DATE, TIMESTAMP or DECIMAL(p, s)"
    )


def _decimal_type(digits: str | None, behind: str | None) -> StoredType | str:
    if digits is None:
        return "declare its digits, as in DECIMAL(10, 2), or declare REAL or INTEGER"
    precision, scale = int(digits), int(behind or 0)
    most = DIGITS_OF_A_DOUBLE if scale else DIGITS_OF_AN_INTEGER
    if not scale <= precision <= most or precision == 0:
        return (
            f"SQLite keeps decimals as doubles, exact up to {DIGITS_OF_A_DOUBLE} digits (integers: "
            f"{DIGITS_OF_AN_INTEGER}): declare fewer, or store integers of the smallest unit, or TEXT"
        )
    python = (int, float) if scale else (int,)
    name = f"DECIMAL({precision}, {scale})"
    return StoredType(name, python, _decimal(precision, scale), f"a number that is exactly a {name}")


def canonical(types: Sequence[StoredType], rows: Sequence[Row]) -> Sequence[Row]:
    """The rows with every value in its canonical form. Column by column, since that is several times faster."""
    if not rows or not types:
        return rows
    columns = [
        _column(number, type, values)
        for number, (type, values) in enumerate(zip(types, zip(*rows, strict=True), strict=True))
    ]
    return list(zip(*columns, strict=True))


def canonical_prefix(types: Sequence[StoredType], rows: Sequence[Row]) -> tuple[Sequence[Row], Misfit | None]:
    """The rows before the first one with a misfit, and that misfit."""
    found, end = None, len(rows)
    while True:
        try:
            return canonical(types, rows[:end]), found
        except Misfit as misfit:
            found, end = misfit, misfit.row


def _column(number: int, type: StoredType, values: Sequence[Any]) -> Sequence[Any]:
    if not {*map(_type_of, values)} <= {*type.python, _NOTHING}:
        row = next(row for row, value in enumerate(values) if value is not None and _type_of(value) not in type.python)
        raise Misfit(number, row, values[row], type.wants)
    convert = type.convert
    if convert is None:
        return values
    result = []
    for row, value in enumerate(values):
        try:
            result.append(None if value is None else convert(value))
        except ValueError:
            raise Misfit(number, row, value, type.wants) from None
    return result


_type_of: Callable[[object], type] = type
_NOTHING = type(None)
_CLASSES = {int: "an integer", float: "a real", str: "text", bytes: "a blob", _NOTHING: "NULL"}


def storage_class(value: object) -> str:
    """The storage class of a value, and the value itself in short."""
    shown = ascii(value)
    return f"{_CLASSES[type(value)]} ({shown if len(shown) <= 40 else shown[:37] + '...'})"


def stored_forms(value: Any) -> tuple[Any, ...]:
    """What a column may hold for a canonical value; nothing for a value that no column can hold."""
    if isinstance(value, bool):
        return (int(value),)
    if isinstance(value, Decimal):
        if not value.is_finite():
            return ()
        return stored_forms(int(value)) if value == value.to_integral_value() else (float(value),)
    if isinstance(value, int):
        return (value,) if value in _INTEGERS else ()
    if isinstance(value, float):
        return (value,) if value == value else ()
    if isinstance(value, datetime):
        return tuple(_timestamp_forms(value)) if value.tzinfo is None else ()
    if isinstance(value, date):
        return (value.isoformat(),)
    if isinstance(value, str):
        try:
            return (_text(value),)
        except ValueError:
            return ()
    return (value,)


def _timestamp_forms(value: datetime) -> list[str]:
    precisions = ["microseconds"]
    if value.microsecond % 1000 == 0:
        precisions.append("milliseconds")
    if value.microsecond == 0:
        precisions.append("seconds")
    return [value.isoformat(separator, precision) for separator, precision in product(" T", precisions)]


def normal_timestamp(expression: str) -> str:
    """SQL for the one form of a timestamp's text: two columns may hold the same in different forms."""
    return (
        f"replace({expression}, 'T', ' ') || "
        f"CASE length({expression}) WHEN 19 THEN '.000000' WHEN 23 THEN '000' ELSE '' END"
    )
