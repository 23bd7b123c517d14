"""What the literals of Spark SQL stand for, as Python values."""

import datetime
import re
from decimal import Decimal
from typing import Any

from viewkeeper.errors import ExpressionError
from viewkeeper.sql import type_families as types
from viewkeeper.sql.type_families import Family, SqlType


def number(text: str) -> tuple[Any, SqlType]:
    """A number without a suffix: INT, BIGINT or DECIMAL by its size, DOUBLE if it has an exponent."""
    if "e" in text.lower():
        return float(text), types.DOUBLE
    if "." not in text:
        value = int(text)
        for type in (types.INT, types.BIGINT):
            low, high = type.bounds
            if low <= value <= high:
                return value, type
    exact = Decimal(text)
    _, digits, exponent = exact.as_tuple()
    scale = -int(exponent)
    return exact, types.decimal(max(len(digits), scale), scale)


def suffixed_number(text: str, type: SqlType) -> tuple[Any, SqlType]:
    """A number whose suffix says its type: 3L, 3S, 3Y, 3D, 3BD."""
    if type.family is Family.INTEGER:
        low, high = type.bounds
        if not low <= int(text) <= high:
            raise ExpressionError(f"{text} is out of the range of {type.name}", "write it without the suffix")
        return int(text), type
    if type == types.DOUBLE:
        return float(text), type
    if type.family is Family.DECIMAL:
        return Decimal(text), type
    raise ExpressionError(f"a literal of {type.name} is not evaluated in memory", "write it as DOUBLE: 1.5D")


def in_utc(time: datetime.datetime) -> datetime.datetime:
    """A TIMESTAMP is a moment: without an offset it is taken as UTC, in literals as in values."""
    return time.replace(tzinfo=datetime.UTC) if time.tzinfo is None else time.astimezone(datetime.UTC)


def cast_literal(text: str, target: SqlType, what: str) -> Any:
    """DATE '...', TIMESTAMP '...' and 1.5BD, which the parser turns into casts of a string.

    Spark reads more spellings than ISO 8601; those are left to Spark.
    """
    try:
        if target.family is Family.DATE and _DATE.fullmatch(text):
            return datetime.date.fromisoformat(text)
        if target.family is Family.TIMESTAMP and _TIMESTAMP.fullmatch(text):
            return in_utc(datetime.datetime.fromisoformat(text))
        if target.family is Family.TIMESTAMP_NTZ and _TIMESTAMP_NTZ.fullmatch(text):
            return datetime.datetime.fromisoformat(text)
        if target.family is Family.DECIMAL and _DECIMAL.fullmatch(text):
            value, type = number(text if "." in text else f"{text}.")
            if type.precision - type.scale <= target.precision - target.scale and type.scale <= target.scale:
                return value
    except ValueError as error:
        raise ExpressionError(f"{what}: {error}", "write a date that exists, as DATE '2024-02-29'") from error
    raise ExpressionError(
        f"{what} is not evaluated in memory",
        "write DATE 'yyyy-mm-dd' or TIMESTAMP 'yyyy-mm-dd hh:mm:ss'; anything else needs the Spark engine",
    )


def like_pattern(pattern: str, escape: str) -> re.Pattern[str]:
    """A LIKE pattern as a regular expression: % is any text, _ one character, `escape` takes the next as it is."""
    result, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, "")
            if following not in ("%", "_", escape) or not following:
                raise ExpressionError(
                    f"LIKE '{pattern}': the escape character {escape} must be followed by %, _ or itself",
                    f"write {escape * 2} for the character itself",
                )
            result.append(re.escape(following))
        else:
            result.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return re.compile("".join(result), re.DOTALL)


_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP_NTZ = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?")
_TIMESTAMP = re.compile(rf"{_TIMESTAMP_NTZ.pattern}|{_TIMESTAMP_NTZ.pattern}(Z|[+-]\d\d:\d\d)")
_DECIMAL = re.compile(r"-?(\d+(\.\d*)?|\.\d+)")
