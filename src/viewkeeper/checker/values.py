"""Column values in JSON.

    BOOLEAN, STRING, integers      as they are
    FLOAT, DOUBLE                  a finite number
    DECIMAL                        "12.50" (a text keeps every digit), or a number
    DATE, TIMESTAMP                ISO 8601: "2024-02-29", "2024-02-29T12:00:00Z"
    BINARY                         base64
    any type                       null

Reading goes by the declared type, writing by the value. NaN and the infinities have no JSON, and a NaN differs from
itself, so no two states that hold one could be compared: they are refused.
"""

import base64
import datetime
import math
import struct
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from viewkeeper.algebra.zset import Row
from viewkeeper.checker.json_input import Node
from viewkeeper.errors import HistoryError
from viewkeeper.sql.literals import in_utc
from viewkeeper.sql.type_families import Family, SqlType, parse_type, sql_type

_ISO_HINT = "write dates and times in ISO 8601: 2024-02-29, 2024-02-29T12:00:00Z"


def decode_row(node: Node, types: Sequence[str], of: str) -> Row:
    """A list of values as a row; `of` names what the row belongs to."""
    values = node.elements()
    if len(values) != len(types):
        raise node.problem(f"a row of {of} has {len(types)} values, found {len(values)}")
    return tuple([decode(value, type) for value, type in zip(values, types, strict=True)])


def decode(node: Node, type: str) -> Any:
    """A value of a declared type; a type that is unknown ('') takes any scalar as it is."""
    if node.value is None:
        return None
    if isinstance(node.value, float) and not math.isfinite(node.value):
        raise node.error(
            "a finite number", "NaN and the infinities cannot be compared; leave the row out or write null"
        )
    declared = _declared(type)
    return _fitting(node, _DECODERS.get(declared.family, _scalar)(node), declared)


def _fitting(node: Node, value: Any, declared: SqlType) -> Any:
    """The value as its type holds it; one that the type cannot hold is refused, since no source could have had it."""
    if declared.family is Family.INTEGER:
        least, most = declared.bounds
        if not least <= value <= most:
            raise node.error(f"a value of {declared.name}, from {least} to {most}")
    elif declared.family is Family.DECIMAL:
        exponent = value.normalize().as_tuple().exponent
        assert isinstance(exponent, int)
        whole = value.adjusted() + 1 if value else 0
        if -exponent > declared.scale or whole > declared.precision - declared.scale:
            raise node.error(f"a value of {declared.name}")
    elif declared.name == "FLOAT":
        try:
            return struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            raise node.error("a number that a FLOAT can hold") from None
    return value


def encode_row(row: Row) -> list[Any]:
    return [encode(value) for value in row]


def encode(value: Any) -> Any:
    """A value as JSON."""
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case Decimal() if value.is_finite():
            return str(value)
        case datetime.date():  # and datetime, which is one
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode("ascii")
    raise HistoryError(f"{value!r} cannot be written into a history", "leave the column out of the view")


def known_type(node: Node) -> str:
    """The name of a type that Spark knows."""
    name = node.text()
    if not name or parse_type(name) is None:
        raise node.error("the name of a type", "such as BIGINT, DOUBLE, DECIMAL(10, 2), STRING, DATE or TIMESTAMP")
    return name


def infer_type(values: Iterable[Any]) -> str | None:
    """The type of JSON values, STRING if all of them are null, None if no one type holds them."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {str}:
        return "STRING"
    if kinds == {bool}:
        return "BOOLEAN"
    if kinds == {int}:
        return "BIGINT"
    return "DOUBLE" if kinds <= {int, float} else None


@lru_cache(maxsize=256)
def _declared(type: str) -> SqlType:
    return sql_type(parse_type(type))


def _scalar(node: Node) -> Any:
    if isinstance(node.value, dict | list):
        raise node.error("a value")
    return node.value


def _boolean(node: Node) -> bool:
    if not isinstance(node.value, bool):
        raise node.error("true or false")
    return node.value


def _floating(node: Node) -> float:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise node.error("a number")
    try:
        return float(node.value)
    except OverflowError:
        raise node.error("a number that a DOUBLE can hold") from None


def _decimal(node: Node) -> Decimal:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float | str):
        raise node.error('a decimal number, such as "12.50"')
    try:
        value = Decimal(str(node.value))
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite():
        raise node.error('a decimal number, such as "12.50"')
    return value


def _date(node: Node) -> datetime.date:
    try:
        return datetime.date.fromisoformat(node.text())
    except ValueError:
        raise node.error("a date", _ISO_HINT) from None


def _timestamp(node: Node) -> datetime.datetime:
    try:
        return datetime.datetime.fromisoformat(node.text())
    except ValueError:
        raise node.error("a time", _ISO_HINT) from None


def _moment(node: Node) -> datetime.datetime:
    return in_utc(_timestamp(node))


def _local_time(node: Node) -> datetime.datetime:
    time = _timestamp(node)
    if time.tzinfo is not None:
        raise node.error("a time without an offset, as TIMESTAMP_NTZ has it")
    return time


def _binary(node: Node) -> bytes:
    try:
        return base64.b64decode(node.text(), validate=True)
    except ValueError:
        raise node.error("base64") from None


_DECODERS: dict[Family, Callable[[Node], Any]] = {
    Family.BOOLEAN: _boolean,
    Family.INTEGER: Node.whole_number,
    Family.FLOATING: _floating,
    Family.DECIMAL: _decimal,
    Family.STRING: Node.text,
    Family.BINARY: _binary,
    Family.DATE: _date,
    Family.TIMESTAMP: _moment,
    Family.TIMESTAMP_NTZ: _local_time,
}
