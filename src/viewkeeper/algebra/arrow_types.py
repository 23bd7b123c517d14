"""SQL types as Arrow types and back.

    TINYINT SMALLINT INT BIGINT         int8 int16 int32 int64
    FLOAT DOUBLE DECIMAL(p, s)          float32 float64 decimal128
    BOOLEAN STRING BINARY DATE          bool string binary date32
    TIMESTAMP TIMESTAMP_NTZ             timestamp of microseconds, in UTC and without a zone

Arrow has more types for the same values, such as dictionaries and 64-bit offsets; a Z-set holds each value in the one
that stands here, so that columns which are equal in SQL have one type.
"""

from functools import lru_cache

import pyarrow as pa

from viewkeeper.algebra.column_types import common_type, needs_cast
from viewkeeper.errors import ExpressionError
from viewkeeper.sql import type_families as types
from viewkeeper.sql.type_families import MAX_PRECISION, Family, SqlType, type_named

_ARROW = {
    types.NULL: pa.null(),
    types.BOOLEAN: pa.bool_(),
    types.TINYINT: pa.int8(),
    types.SMALLINT: pa.int16(),
    types.INT: pa.int32(),
    types.BIGINT: pa.int64(),
    types.FLOAT: pa.float32(),
    types.DOUBLE: pa.float64(),
    types.STRING: pa.string(),
    types.BINARY: pa.binary(),
    types.DATE: pa.date32(),
    types.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    types.TIMESTAMP_NTZ: pa.timestamp("us"),
}

_SQL = {arrow: sql for sql, arrow in _ARROW.items()} | {
    # The next type that holds them all.
    pa.uint8(): types.SMALLINT,
    pa.uint16(): types.INT,
    pa.uint32(): types.BIGINT,
    pa.uint64(): types.decimal(20, 0),
    pa.float16(): types.FLOAT,
    pa.large_string(): types.STRING,
    pa.string_view(): types.STRING,
    pa.large_binary(): types.BINARY,
    pa.binary_view(): types.BINARY,
    pa.date64(): types.DATE,
}


def arrow_type(type: SqlType) -> pa.DataType:
    """The Arrow type of a SQL type; KeyError for one that has none."""
    return pa.decimal128(type.precision, type.scale) if type.family is Family.DECIMAL else _ARROW[type]


@lru_cache(maxsize=1024)
def type_of(kind: pa.DataType) -> SqlType:
    """The SQL type of an Arrow type."""
    if pa.types.is_dictionary(kind):
        return type_of(kind.value_type)
    if kind in _SQL:
        return _SQL[kind]
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= MAX_PRECISION:
        return types.decimal(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return types.TIMESTAMP_NTZ if kind.tz is None else types.TIMESTAMP
    if pa.types.is_fixed_size_binary(kind):
        return types.BINARY
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return SqlType(Family.OTHER, f"ARRAY<{type_of(kind.value_type).name or 'VOID'}>")
    return SqlType(Family.OTHER, str(kind))


def as_held(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same values in the Arrow type in which a Z-set holds them."""
    known = type_of(column.type)
    return column if known.family is Family.OTHER else _cast(name, column, known)


def as_declared(name: str, column: pa.ChunkedArray, declared: SqlType) -> pa.ChunkedArray:
    """The same values in the type that is declared for them; ExpressionError if they are of another."""
    return _cast(name, column, declared) if needs_cast(name, type_of(column.type), declared) else column


def as_named(name: str, column: pa.ChunkedArray, type: str) -> pa.ChunkedArray:
    """The same for the name of a type; with '' the values stay as they are."""
    return as_declared(name, column, type_named(type)) if type else column


def in_one_type(
    name: str, column: pa.ChunkedArray, other_name: str, other: pa.ChunkedArray
) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Both columns in the type in which they are compared; ExpressionError if there is none."""
    if column.type == other.type:
        return column, other
    common = common_type(name, type_of(column.type), other_name, type_of(other.type))
    if common.family is Family.OTHER:
        kind = other.type if pa.types.is_null(column.type) else column.type
        return column.cast(kind), other.cast(kind)
    return as_declared(name, column, common), as_declared(other_name, other, common)


def _cast(name: str, column: pa.ChunkedArray, known: SqlType) -> pa.ChunkedArray:
    target = arrow_type(known)
    if column.type == target:
        return column
    try:
        if pa.types.is_integer(column.type) and pa.types.is_decimal(target):
            # Arrow wants room for every value of the type, not for those that are there.
            column = column.cast(pa.decimal256(76, target.scale))
        # As in Spark, a number becomes the nearest DOUBLE; everything else stays what it is or is an error.
        return column.cast(target, safe=not pa.types.is_floating(target))
    except pa.ArrowInvalid as error:
        raise ExpressionError(
            f"{name} holds a value that is no {known.name}: {error}", "declare the type that the values have"
        ) from error
