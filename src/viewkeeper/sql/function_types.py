"""Spark's result types of functions that only Spark computes, and of arithmetic with dates.

    DATE ± INTERVAL of years, months, days       DATE          of hours or less    TIMESTAMP
    TIMESTAMP ± INTERVAL                         TIMESTAMP     DATE ± integer      DATE
    EXTRACT(field FROM ...)                      INT           of seconds          DECIMAL(8, 6)

What is not listed has no type here, and is refused unless a CAST says it. When a view is created, Spark's own analysis
of the text is compared with these types.
"""

from collections.abc import Callable

from sqlglot import exp

from viewkeeper.sql.type_families import Family, parse_type, sql_type

TypeOf = Callable[[exp.Expr], str]

_FIXED: dict[str, tuple[type[exp.Expr], ...]] = {
    "DATE": (exp.AddMonths, exp.DateFromUnixDate, exp.DateTrunc, exp.LastDay, exp.NextDay, exp.TsOrDsAdd, exp.DateSub),
    "TIMESTAMP": (exp.TimestampTrunc, exp.FromTimeZone, exp.AtTimeZone),
    "TIMESTAMP_NTZ": (exp.ConvertTimezone,),
    "INT": (exp.UnixDate, exp.Levenshtein, exp.BitwiseCount, exp.ArraySize),
    "BIGINT": (
        exp.IntDiv, exp.TimestampDiff, exp.StrToUnix, exp.TimeToUnix, exp.UnixSeconds, exp.UnixMillis, exp.UnixMicros,
        exp.Factorial, exp.WidthBucket,
    ),
    "DOUBLE": (exp.MonthsBetween,),
    "STRING": (exp.SubstringIndex, exp.SplitPart, exp.Monthname, exp.Dayname),
}  # fmt: skip
_BY_CLASS = {kind: type for type, kinds in _FIXED.items() for kind in kinds}
_BY_NAME = {
    "bin": "STRING",
    "crc32": "BIGINT",
    "format_number": "STRING",
    "hash": "INT",
    "hypot": "DOUBLE",
    "isnotnull": "BOOLEAN",
    "isnull": "BOOLEAN",
    "make_date": "DATE",
    "make_timestamp": "TIMESTAMP",
    "make_timestamp_ntz": "TIMESTAMP_NTZ",
    "octet_length": "INT",
    "timestamp_micros": "TIMESTAMP",
    "timestamp_millis": "TIMESTAMP",
    "timestamp_seconds": "TIMESTAMP",
    "to_timestamp_ntz": "TIMESTAMP_NTZ",
    "try_to_date": "DATE",
    "weekday": "INT",
    "xxhash64": "BIGINT",
}
_SECONDS = frozenset({"SECOND", "SECONDS", "S", "SEC", "SECS"})
_WHOLE_DAYS = frozenset({"YEAR", "MONTH", "WEEK", "DAY"})
_BITWISE = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)


def function_type(node: exp.Expr, type_of: TypeOf) -> str:
    """The type of a call, or of arithmetic with dates; '' if it is not known here."""
    if isinstance(node, exp.Anonymous):
        return _of_name(node, type_of)
    if isinstance(node, exp.Extract):
        return _of_field(node.this.name)
    if isinstance(node, exp.DateDiff):
        return "BIGINT" if node.args.get("unit") else "INT"
    if isinstance(node, (exp.TimestampAdd, exp.TimestampSub, exp.DateAdd)):
        return _moment(type_of(node.this))
    if isinstance(node, (exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.BitwiseNot)):
        return _integer(type_of(node.this))
    if isinstance(node, _BITWISE):
        types = {_integer(type_of(node.this)), _integer(type_of(node.expression))}
        return types.pop() if len(types) == 1 else ""
    if isinstance(node, exp.Sign):
        return "DOUBLE" if sql_type(parse_type(type_of(node.this))).family is Family.FLOATING else ""
    if isinstance(node, (exp.Add, exp.Sub)):
        return _of_dates(node, type_of)
    return _BY_CLASS.get(type(node), "")


def _of_name(node: exp.Anonymous, type_of: TypeOf) -> str:
    name = node.name.lower()
    if name == "date_part" and node.expressions and isinstance(node.expressions[0], exp.Literal):
        return _of_field(node.expressions[0].name)
    if name == "positive" and node.expressions:
        return type_of(node.expressions[0])
    if name == "pmod" and len(node.expressions) == 2:
        types = {_integer(type_of(part)) for part in node.expressions}
        return types.pop() if len(types) == 1 else ""
    return _BY_NAME.get(name, "")


def _of_field(field: str) -> str:
    return "DECIMAL(8, 6)" if field.upper() in _SECONDS else "INT"


def _moment(type: str) -> str:
    """A unit is added to a moment: a DATE becomes one."""
    return type if type == "TIMESTAMP_NTZ" else "TIMESTAMP"


def _integer(type: str) -> str:
    return type if sql_type(parse_type(type)).family is Family.INTEGER else ""


def _of_dates(node: exp.Add | exp.Sub, type_of: TypeOf) -> str:
    left, right = node.left.unnest(), node.right.unnest()
    if isinstance(left, exp.Interval) and isinstance(node, exp.Add):
        left, right = right, left
    type = type_of(left)
    if isinstance(right, exp.Interval):
        if type == "DATE":
            return "DATE" if _units(right) <= _WHOLE_DAYS else "TIMESTAMP"
        return type if type in ("TIMESTAMP", "TIMESTAMP_NTZ") else ""
    if isinstance(node, exp.Add) and type_of(right) == "DATE":
        left, right, type = right, left, "DATE"
    return "DATE" if type == "DATE" and type_of(right) in ("INT", "SMALLINT", "TINYINT") else ""


def _units(interval: exp.Interval) -> set[str]:
    unit = interval.args.get("unit")
    span = [unit.this, unit.expression] if isinstance(unit, exp.IntervalSpan) else [unit]
    return {part.name.upper().removesuffix("S") if part is not None else "" for part in span}
