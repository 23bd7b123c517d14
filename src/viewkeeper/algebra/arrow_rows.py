"""Rows on the driver as Arrow, and back: the way into Spark and out of it.

    bool int float str bytes date       BOOLEAN BIGINT DOUBLE STRING BINARY DATE
    Decimal                             DECIMAL, with as many digits as the values need
    datetime with, without time zone    TIMESTAMP, TIMESTAMP_NTZ
    tuple                               ARRAY of what is in it
    nothing but None                    void, which takes on any other type

What comes back is what the in-memory engine would hold: moments in UTC, bytes, the one NaN.
"""

import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from types import NoneType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.zset import Row
from viewkeeper.errors import ExpressionError
from viewkeeper.sql.one_nan import NAN
from viewkeeper.sql.row_functions import EXACT
from viewkeeper.sql.type_families import BIGINT, MAX_PRECISION

ONE_TYPE = "give the column one type at its source"
MOST_SCALE = 10
"""Digits after the point that are tried; with more, each value is looked at."""
_MOMENT = pa.timestamp("us", tz="UTC")
_LOCAL_TIME = pa.timestamp("us")


def arrow_table(columns: Sequence[str], weight: str, rows: Sequence[tuple[Row, int]]) -> pa.Table:
    """One column per name, and one more for the weights; types are what the values need."""
    values = zip(*(row for row, _ in rows), strict=True) if rows else ((),) * len(columns)
    arrays = [arrow_array(name, list(column)) for name, column in zip(columns, values, strict=True)]
    return pa.table([*arrays, pa.array([weight for _, weight in rows], pa.int64())], names=[*columns, weight])


def weighted_rows(table: pa.Table) -> Iterator[tuple[Row, int]]:
    """The rows of a table whose last column is the weight."""
    return zip(rows_of(table.select(range(table.num_columns - 1))), table.columns[-1].to_pylist(), strict=True)


def rows_of(table: pa.Table) -> Iterable[Row]:
    """The rows of a table."""
    columns = [python_values(name, column) for name, column in zip(table.column_names, table.columns, strict=True)]
    return zip(*columns, strict=True) if columns else ((),) * table.num_rows


def arrow_array(name: str, values: list[Any]) -> pa.Array:
    """Values of rows as a column, in the type that they need."""
    if (decimals := _decimals(values)) is not None:
        return decimals
    type_ = _arrow_type(name, values)
    if pa.types.is_decimal(type_):
        # Arrow counts the zeros that are written after the point as digits.
        unit = Decimal(1).scaleb(-type_.scale)
        values = [value if value is None else EXACT.quantize(Decimal(value), unit) for value in values]
    return pa.array(values, type_)


def _decimals(values: list[Any]) -> pa.Array | None:
    """Values that are all Decimal, in the digits that they need; None where each of them has to be looked at.

    A conversion to a type that is given takes a tenth of one that has to find the type, and one that fails ends at the
    first value that does not fit.
    """
    if not {Decimal} <= {*map(type, values)} <= {Decimal, NoneType}:
        return None
    converted = (_exactly(lambda kind: pa.array(values, kind), scale) for scale in range(MOST_SCALE + 1))
    held = next((array for array in converted if array is not None), None)
    if held is None:
        return None
    while held.type.scale and (shorter := _exactly(held.cast, held.type.scale - 1)) is not None:
        held = shorter
    ends = [int(end) for end in pc.min_max(held).as_py().values()]
    whole = max(len(str(abs(end))) if end else 0 for end in ends)
    return held.cast(pa.decimal128(max(whole + held.type.scale, 1), held.type.scale))


def _exactly(convert: Callable[[pa.DataType], pa.Array], scale: int) -> pa.Array | None:
    """Decimals with so many digits after the point; None if that is not exact."""
    try:
        return convert(pa.decimal128(MAX_PRECISION, scale))
    except pa.ArrowInvalid:
        return None


def _arrow_type(name: str, values: Iterable[Any]) -> pa.DataType:
    values = [value for value in values if value is not None]
    kinds = frozenset(map(type, values))
    if len(kinds) <= 1:
        (kind,) = kinds or (None,)
        if kind in _SCALARS:
            return _SCALARS[kind]
        if kind is datetime.datetime:
            return _time_type(name, values)
        if kind is tuple:
            return pa.list_(_arrow_type(name, chain.from_iterable(values)))
    if kinds <= {int, Decimal}:
        least, most = BIGINT.bounds
        return pa.int64() if kinds == {int} and least <= min(values) <= max(values) <= most else _digits(name, values)
    if kinds <= {int, float}:
        return pa.float64()
    raise ExpressionError(f"{name} holds {' and '.join(sorted(kind.__name__ for kind in kinds))}", ONE_TYPE)


def _time_type(name: str, times: Iterable[datetime.datetime]) -> pa.DataType:
    aware = {time.tzinfo is not None for time in times}
    if len(aware) > 1:
        raise ExpressionError(f"{name} holds times with a time zone and without one", ONE_TYPE)
    return _MOMENT if aware == {True} else _LOCAL_TIME


def _digits(name: str, values: Iterable[int | Decimal]) -> pa.DataType:
    whole = scale = 0
    for value in values:
        _, digits, exponent = Decimal(value).as_tuple()
        if not isinstance(exponent, int):
            raise ExpressionError(f"{name} holds {value}, which is no DECIMAL", ONE_TYPE)
        written = "".join(map(str, digits))
        if significant := written.rstrip("0"):
            whole = max(whole, len(written) + exponent)
            scale = max(scale, len(significant) - len(written) - exponent)
    if whole + scale > MAX_PRECISION:
        raise ExpressionError(
            f"{name} needs {whole} digits before the point and {scale} after it, and Spark keeps {MAX_PRECISION}",
            "round the column at its source",
        )
    return pa.decimal128(max(whole + scale, 1), scale)


def python_values(name: str, column: pa.ChunkedArray) -> list[Any]:
    """The values of a column as rows hold them."""
    kind = column.type
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        raise ExpressionError(f"{name} is {kind}, which has no value in a row", "take its fields as columns")
    try:
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            local: list[Any] = column.cast(_MOMENT).cast(_LOCAL_TIME).to_pylist()
            return [time if time is None else time.replace(tzinfo=datetime.UTC) for time in local]
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError) as error:
        raise ExpressionError(f"{name} holds a value that Python cannot: {error}", "years go from 1 to 9999") from error
    if pa.types.is_floating(kind):
        return [value if value == value else NAN for value in values]
    return [_hashable(name, value) for value in values] if pa.types.is_nested(kind) else values


def _hashable(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        raise ExpressionError(f"{name} holds structs, which have no value in a row", "take their fields as columns")
    if isinstance(value, float) and value != value:
        return NAN
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC)
    return tuple([_hashable(name, part) for part in value]) if isinstance(value, list) else value


_SCALARS = {
    None: pa.null(),
    bool: pa.bool_(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    datetime.date: pa.date32(),
}
