"""Arrow types as Spark SQL types and back, and values in one canonical form.

    uint8 uint16 uint32 uint64      SMALLINT INT BIGINT DECIMAL(20, 0): the next type that holds them all
    timestamp with, without zone    TIMESTAMP, TIMESTAMP_NTZ, in microseconds
    decimal of up to 38 digits      DECIMAL(p, s)

A column is converted only where every value stays what it is; what does not fit is a Misfit that names the column.
"""

import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.errors import UnsupportedType
from viewkeeper.sql.one_nan import NAN
from viewkeeper.sql.type_families import MAX_PRECISION, Family, parse_type, sql_type

_MOMENT = pa.timestamp("us", tz="UTC")
_LOCAL_TIME = pa.timestamp("us")

_NAMES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.uint8(): "SMALLINT",
    pa.uint16(): "INT",
    pa.uint32(): "BIGINT",
    pa.uint64(): "DECIMAL(20, 0)",
    pa.float16(): "FLOAT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.large_string(): "STRING",
    pa.string_view(): "STRING",
    pa.binary(): "BINARY",
    pa.large_binary(): "BINARY",
    pa.binary_view(): "BINARY",
    pa.date32(): "DATE",
    pa.date64(): "DATE",
}

_ARROW = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": _MOMENT,
    "TIMESTAMP_NTZ": _LOCAL_TIME,
}

# What Python's dates hold, in days and in microseconds since 1970.
_FIRST_DAY = (datetime.date.min - datetime.date(1970, 1, 1)).days
_LAST_DAY = (datetime.date.max - datetime.date(1970, 1, 1)).days
_DAY = 24 * 3600 * 1_000_000


class Misfit(Exception):
    """A file or a column that is not what the relation says, or a value that cannot be kept."""

    def __init__(self, reason: str, column: str = "") -> None:
        super().__init__(f"column {column}: {reason}" if column else reason)


def spark_type(table: str, column: str, type: pa.DataType) -> str:
    """The name of the Spark type that holds every value; UnsupportedType if there is none."""
    if pa.types.is_dictionary(type):
        type = type.value_type
    if type in _NAMES:
        return _NAMES[type]
    if pa.types.is_decimal(type) and type.precision <= MAX_PRECISION and type.scale >= 0:
        return f"DECIMAL({type.precision}, {type.scale})"
    if pa.types.is_timestamp(type):
        return "TIMESTAMP" if type.tz is not None else "TIMESTAMP_NTZ"
    if pa.types.is_fixed_size_binary(type):
        return "BINARY"
    raise unsupported(table, column, str(type))


def unsupported(table: str, column: str, type: str) -> UnsupportedType:
    """The error for a type that cannot be kept."""
    return UnsupportedType(
        f"{table}: column {column} has the type {type}, whose values cannot be kept exactly",
        "write the column as numbers, texts, dates or timestamps (fields of a struct as columns of their own), "
        "or leave the table out with tables=",
    )


def known_type(table: str, column: str, name: str) -> str:
    """A type as Spark writes it; UnsupportedType for one that is not kept."""
    known = sql_type(parse_type(name))
    if known.family is not Family.DECIMAL and known.name not in _ARROW:
        raise unsupported(table, column, name)
    return known.name


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type in which the values of a Spark type are kept."""
    if name in _ARROW:
        return _ARROW[name]
    known = sql_type(parse_type(name))
    return pa.decimal128(known.precision, known.scale)


def conform(column: str, values: Any, wanted: pa.DataType) -> Any:
    """The same values as an array of the wanted type; Misfit unless each stays exactly what it is."""
    given = values.type
    if pa.types.is_dictionary(given):
        values = values.cast(given.value_type)
        given = values.type
    if given != wanted:
        if not _same_kind(given, wanted):
            raise Misfit(f"it is {given}, and was registered as {wanted}", column)
        try:
            values = _cast(values, given, wanted)
        except pa.ArrowException as error:
            raise Misfit(str(error), column) from error
    _check_years(column, values)
    return values


def _cast(values: Any, given: pa.DataType, wanted: pa.DataType) -> Any:
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted) and given.tz is None and wanted.tz is not None:
        # INT96, in which Spark writes moments, does not tell that they are in UTC.
        return values.cast(_LOCAL_TIME).cast(wanted)
    if pa.types.is_integer(given) and pa.types.is_decimal(wanted):
        # Arrow wants room for every value of the type, not for those that are there.
        values = values.cast(pa.decimal256(76, wanted.scale))
    return values.cast(wanted)


def _same_kind(given: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_null(given):
        return True
    if pa.types.is_floating(wanted):
        # An integer of 64 bits is not always a double.
        return bool(pa.types.is_floating(given) and given.bit_width <= wanted.bit_width)
    return any(test(given) and test(wanted) for test in (_is_exact, _is_text, _is_bytes, pa.types.is_date, _is_time))


def _is_exact(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type) or pa.types.is_decimal(type))


def _is_text(type: pa.DataType) -> bool:
    return type in (pa.string(), pa.large_string(), pa.string_view())


def _is_bytes(type: pa.DataType) -> bool:
    return type in (pa.binary(), pa.large_binary(), pa.binary_view()) or pa.types.is_fixed_size_binary(type)


def _is_time(type: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type))


def _check_years(column: str, values: Any) -> None:
    if pa.types.is_date32(values.type):
        low, high, numbers = _FIRST_DAY, _LAST_DAY, values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        low, high, numbers = _FIRST_DAY * _DAY, (_LAST_DAY + 1) * _DAY - 1, values.cast(pa.int64())
    else:
        return
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is not None and (bounds["min"] < low or bounds["max"] > high):
        raise Misfit("it has a year before 1 or after 9999", column)


def python_values(values: Any) -> list[Any]:
    """The values of a conformed array as rows hold them: moments in UTC, one NaN."""
    if pa.types.is_timestamp(values.type) and values.type.tz is not None:
        local = values.cast(_LOCAL_TIME).to_pylist()
        return [time if time is None else time.replace(tzinfo=datetime.UTC) for time in local]
    plain: list[Any] = values.to_pylist()
    if pa.types.is_floating(values.type):
        return [value if value == value else NAN for value in plain]
    return plain
