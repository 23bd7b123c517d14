"""Values of a plan as Spark SQL that has their type."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from viewkeeper.sql.catalyst.type_text import type_text


class NotRendered(Exception):
    """A part of a plan for which there is no text."""


_SUFFIX = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L", "float": "F", "double": "D"}
_DAY_TIME = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


def literal(value: str | None, data_type: object, zone: str) -> str:
    """The text of a value that Spark's JSON writes as a string, a timestamp as a local time of `zone`."""
    kind = type_text(data_type)
    if value is None:
        return "NULL" if kind == "void" else f"CAST(NULL AS {kind.upper() if kind.isalpha() else kind})"
    if kind in _SUFFIX:
        return _number(value, kind)
    if kind == "boolean":
        return value
    if kind == "string":
        return text_literal(value)
    if kind == "date":
        return _checked(f"DATE'{value}'", value, r"\d{4}-\d{2}-\d{2}")
    if kind == "timestamp":
        return f"TIMESTAMP'{_instant(value, zone)}'"
    if kind == "timestamp_ntz":
        moment = datetime(1970, 1, 1) + timedelta(microseconds=int(value))
        return f"TIMESTAMP_NTZ'{moment.isoformat(' ')}'"
    if kind == "binary":
        return _checked(value, value, r"X'[0-9A-Fa-f]*'")
    if (decimal := _DECIMAL.fullmatch(kind)) is not None:
        return _decimal(value, int(decimal[1]), int(decimal[2]))
    if kind.startswith("interval "):
        return _interval(int(value), kind.removeprefix("interval ").split(" to "))
    raise NotRendered(f"a literal of type {kind}")


def text_literal(value: str) -> str:
    """A string in quotes. Spark replaces ${...} in a text before it is parsed: a dollar is written by its number."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024").replace("\0", "\\0")
    return f"'{escaped}'"


def _number(value: str, kind: str) -> str:
    if value in ("NaN", "Infinity", "-Infinity"):
        return f"CAST('{value}' AS {kind.upper()})"
    text = _checked(value + _SUFFIX[kind], value, r"-?\d+(\.\d+)?(E-?\d+)?")
    return f"({text})" if text.startswith("-") else text


def _decimal(value: str, precision: int, scale: int) -> str:
    """Spark takes precision and scale of a literal from its digits."""
    text = _checked(f"{value}BD", value, r"-?\d+(\.\d+)?(E[+-]?\d+)?")
    text = f"({text})" if text.startswith("-") else text
    digits = re.sub(r"\D", "", value).lstrip("0")
    written = len(value.partition(".")[2])
    if "E" not in value and written == scale and max(len(digits), written, 1) == precision:
        return text
    return f"CAST({text} AS DECIMAL({precision},{scale}))"


def _interval(amount: int, units: list[str]) -> str:
    sign, amount = ("-" if amount < 0 else ""), abs(amount)
    first, last = units[0], units[-1]
    span = " TO ".join(unit.upper() for unit in units)
    if first in ("year", "month"):
        years, months = divmod(amount, 12)
        value = str(amount) if first == "month" else str(years) if last == "year" else f"{years}-{months}"
        return f"INTERVAL '{sign}{value}' {span}"
    fields = list(_DAY_TIME)
    value = ""
    for unit in fields[fields.index(first) : fields.index(last) + 1]:
        whole, amount = divmod(amount, _DAY_TIME[unit])
        before = "" if not value else " " if unit == "hour" else ":"
        value += f"{before}{whole}" if not value else f"{before}{whole:02}"
    if last == "second" and amount:
        value += f".{amount:06}"
    elif amount:
        raise NotRendered("an interval that has more than its type says")
    return f"INTERVAL '{sign}{value}' {span}"


def _instant(value: str, zone: str) -> str:
    """A local time with its distance from UTC; where a clock shows an hour twice, which one is meant is not known."""
    try:
        local = datetime.fromisoformat(value[:26]).replace(tzinfo=_zone(zone))
    except (ValueError, ZoneInfoNotFoundError):
        raise NotRendered(f"the timestamp {value}") from None
    first, second = local.replace(fold=0), local.replace(fold=1)
    if first.utcoffset() != second.utcoffset():
        raise NotRendered(f"the timestamp {value}, which there are two of")
    return first.astimezone(UTC).replace(tzinfo=None).isoformat(" ") + "Z"


def _zone(name: str) -> tzinfo:
    return UTC if name in ("UTC", "GMT", "Etc/UTC", "Z") else ZoneInfo(name)


def _checked(text: str, value: str, pattern: str) -> str:
    if not re.fullmatch(pattern, value):
        raise NotRendered(f"the literal {value}")
    return text
