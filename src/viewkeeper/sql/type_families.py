"""Spark's types as far as the in-memory engine computes with them, and how Spark widens them.

A type belongs to a family. Within a family, and among the three numeric ones, Spark converts implicitly; the in-memory
engine converts nothing else, so that it never compares what Spark would first have cast.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import sqlglot
from sqlglot import exp

from viewkeeper.errors import ExpressionError

DIALECT = "spark"
MAX_PRECISION = 38


class Family(StrEnum):
    """What values of a type can be compared and combined with."""

    BOOLEAN = "BOOLEAN"
    INTEGER = "integer"
    DECIMAL = "DECIMAL"
    FLOATING = "DOUBLE"
    STRING = "STRING"
    BINARY = "BINARY"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_NTZ = "TIMESTAMP_NTZ"
    NULL = "NULL"
    UNKNOWN = ""
    OTHER = "other"


@dataclass(frozen=True)
class SqlType:
    """`name` as Spark writes it; `precision` and `scale` for integers and decimals, in decimal digits."""

    family: Family
    name: str
    precision: int = 0
    scale: int = 0

    @property
    def numeric(self) -> bool:
        return self.family in (Family.INTEGER, Family.DECIMAL, Family.FLOATING)

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest value of an integer type."""
        bits = _BITS[self.name]
        return -(1 << bits - 1), (1 << bits - 1) - 1


_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}

BOOLEAN = SqlType(Family.BOOLEAN, "BOOLEAN")
# The digits are those of the DECIMAL that Spark widens the type to.
TINYINT = SqlType(Family.INTEGER, "TINYINT", 3)
SMALLINT = SqlType(Family.INTEGER, "SMALLINT", 5)
INT = SqlType(Family.INTEGER, "INT", 10)
BIGINT = SqlType(Family.INTEGER, "BIGINT", 20)
FLOAT = SqlType(Family.FLOATING, "FLOAT")
DOUBLE = SqlType(Family.FLOATING, "DOUBLE")
STRING = SqlType(Family.STRING, "STRING")
BINARY = SqlType(Family.BINARY, "BINARY")
DATE = SqlType(Family.DATE, "DATE")
TIMESTAMP = SqlType(Family.TIMESTAMP, "TIMESTAMP")
TIMESTAMP_NTZ = SqlType(Family.TIMESTAMP_NTZ, "TIMESTAMP_NTZ")
NULL = SqlType(Family.NULL, "")
UNKNOWN = SqlType(Family.UNKNOWN, "")

# CHAR(n) is missing on purpose: Spark pads it before it compares.
_KNOWN = {
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.TINYINT: TINYINT,
    exp.DType.SMALLINT: SMALLINT,
    exp.DType.INT: INT,
    exp.DType.BIGINT: BIGINT,
    exp.DType.FLOAT: FLOAT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.TEXT: STRING,
    exp.DType.VARCHAR: STRING,
    exp.DType.BINARY: BINARY,
    exp.DType.VARBINARY: BINARY,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ,
    exp.DType.NULL: NULL,
    exp.DType.UNKNOWN: UNKNOWN,
}


def decimal(precision: int, scale: int) -> SqlType:
    """DECIMAL(precision, scale); more digits than Spark has are refused, because Spark would then drop some."""
    if precision > MAX_PRECISION:
        raise ExpressionError(
            f"the result needs DECIMAL({precision}, {scale}), and Spark keeps {MAX_PRECISION} digits",
            "this expression needs the Spark engine; or CAST the operands to fewer digits at the source",
        )
    return SqlType(Family.DECIMAL, f"DECIMAL({precision}, {scale})", precision, scale)


def parse_type(name: str) -> exp.DataType | None:
    """The sqlglot type of a type's name, or None for a name that Spark does not know."""
    try:
        return exp.DataType.build(name, dialect=DIALECT) if name else None
    except (sqlglot.ParseError, ValueError):
        return None


def sql_type(data_type: exp.DataType | None) -> SqlType:
    """The type that a sqlglot annotation stands for."""
    if data_type is None:
        return UNKNOWN
    if data_type.this is exp.DType.DECIMAL:
        digits = [int(parameter.name) for parameter in data_type.expressions]
        precision, scale = digits + [10, 0][len(digits) :]
        if precision <= MAX_PRECISION:
            return decimal(precision, scale)
    return _KNOWN.get(data_type.this) or SqlType(Family.OTHER, data_type.sql(DIALECT))


@lru_cache(maxsize=1024)
def type_named(name: str) -> SqlType:
    """The type of a type's name. Types are asked for again and again, and few."""
    return sql_type(parse_type(name))


def type_name(data_type: exp.DataType | None) -> str:
    """The name of a type as Spark writes it, '' if it is unknown."""
    if data_type is None or data_type.this in (exp.DType.UNKNOWN, exp.DType.NULL):
        return ""
    return data_type.sql(DIALECT)


def widest(types: Iterable[SqlType], node: exp.Expr) -> SqlType:
    """The type to which Spark widens all of these before it compares or returns them; `node` is the expression."""
    result = NULL
    for type in types:
        result = _wider(result, type, node)
    return result


def _wider(one: SqlType, other: SqlType, node: exp.Expr) -> SqlType:
    families = {one.family, other.family}
    if one == other or other.family is Family.NULL:
        return one
    if one.family is Family.NULL:
        return other
    if Family.UNKNOWN in families:
        return UNKNOWN
    if one.numeric and other.numeric:
        if Family.FLOATING in families:
            return DOUBLE
        if families == {Family.INTEGER}:
            return max(one, other, key=lambda type: type.precision)
        scale = max(one.scale, other.scale)
        return decimal(max(one.precision - one.scale, other.precision - other.scale) + scale, scale)
    if len(families) == 1 and one.family is not Family.OTHER:
        return one
    raise ExpressionError(f"{node.sql(DIALECT)} mixes {one.name} with {other.name}", _way_out(one, other))


def _way_out(one: SqlType, other: SqlType) -> str:
    by_family = {one.family: one, other.family: other}
    for family in (Family.DATE, Family.TIMESTAMP, Family.TIMESTAMP_NTZ):
        if family in by_family and Family.STRING in by_family:
            return f"write a literal as {family} '...', or add a CAST"
    target = STRING if by_family.keys() == {Family.STRING, Family.INTEGER} else one
    return f"add a CAST so that both sides have one type: CAST(... AS {target.name})"


def same_equality(one: exp.DataType | None, other: exp.DataType | None) -> bool:
    """Whether Spark's `=` between two types is Python's `==` and agrees with its `hash`, or the types are unknown."""
    try:
        common = widest((sql_type(one), sql_type(other)), exp.EQ())
    except ExpressionError:
        return False
    return common.family not in (Family.FLOATING, Family.OTHER)
