"""Spark's types of results that only Spark computes.

    DECIMAL(p1, s1) / DECIMAL(p2, s2)    DECIMAL(p1 - s1 + s2 + s, s),  s = max(6, s1 + p2 + 1)
    ROUND(DECIMAL(p, s), d)              DECIMAL(p - s + 1 + d', d'),   d' = min(s, d)

With more than 38 digits Spark drops some of the fraction, and leaves at least six. Where the rule is not known here the
type is unknown: sqlglot's own types are not Spark's for numbers.
"""

from collections.abc import Callable

from sqlglot import exp

from viewkeeper.errors import ExpressionError
from viewkeeper.sql import type_families as types
from viewkeeper.sql.function_types import function_type
from viewkeeper.sql.spark_grammar import suffixed
from viewkeeper.sql.type_families import MAX_PRECISION, Family, SqlType, parse_type, sql_type, widest

TypeOf = Callable[[exp.Expr], str]

_LEAST_SCALE = 6
_INT_FUNCTIONS = (
    exp.Ascii, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.Hour, exp.Length, exp.Minute, exp.Month,
    exp.Quarter, exp.Second, exp.StrPosition, exp.WeekOfYear, exp.Year,
)  # fmt: skip
_DOUBLE_FUNCTIONS = (
    exp.Acos, exp.Asin, exp.Atan, exp.Cbrt, exp.Cos, exp.Degrees, exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Radians,
    exp.Sin, exp.Sqrt, exp.Tan,
)  # fmt: skip
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)


def result_type(node: exp.Expr, type_of: TypeOf) -> str:
    """The type of a tree whose parts have the types `type_of`; '' if it is not known here."""
    node = node.unnest()
    if isinstance(node, exp.Cast):
        return sql_type(node.args["to"]).name
    if isinstance(node, exp.Bracket):
        return _element(parse_type(type_of(node.this)))
    if isinstance(node, _INT_FUNCTIONS):
        return "INT"
    if isinstance(node, _DOUBLE_FUNCTIONS):
        return "DOUBLE"
    if isinstance(node, (exp.Neg, exp.Abs)):
        operand = sql_type(parse_type(type_of(node.this)))
        return operand.name if operand.numeric else ""
    if isinstance(node, exp.Round):
        return _round(sql_type(parse_type(type_of(node.this))), node.args.get("decimals"))
    if isinstance(node, (exp.Ceil, exp.Floor)) and not node.args.get("decimals"):
        return _whole(sql_type(parse_type(type_of(node.this))))
    if known := function_type(node, type_of):
        return known
    if isinstance(node, _ARITHMETIC):
        return _arithmetic(node, _digits(node.left, type_of), _digits(node.right, type_of))
    if isinstance(node, (exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least)):
        return _choice([type_of(part) for part in _branches(node) if not isinstance(part.unnest(), exp.Null)])
    return ""


def _element(container: exp.DataType | None) -> str:
    """The values of a MAP, or the elements of an ARRAY."""
    if container is None or container.this not in (exp.DType.MAP, exp.DType.ARRAY) or not container.expressions:
        return ""
    return sql_type(container.expressions[-1]).name


def _round(operand: SqlType, decimals: exp.Expr | None) -> str:
    if operand.family is not Family.DECIMAL:
        return operand.name if operand.numeric else ""
    digits = _whole_number(decimals)
    if digits is None:
        return ""
    integral = operand.precision - operand.scale + 1
    if digits < 0:
        return _decimal(max(integral, 1 - digits), 0)
    scale = min(operand.scale, digits)
    return _decimal(integral + scale, scale)


def _whole_number(node: exp.Expr | None) -> int | None:
    if node is None:
        return 0
    if isinstance(node, exp.Neg):
        positive = _whole_number(node.this)
        return None if positive is None else -positive
    return int(node.name) if isinstance(node, exp.Literal) and node.is_int else None


def _whole(operand: SqlType) -> str:
    if operand.family is Family.DECIMAL and operand.scale:
        return _decimal(operand.precision - operand.scale + 1, 0)
    return operand.name if operand.family is Family.DECIMAL else "BIGINT" if operand.numeric else ""


def _digits(node: exp.Expr, type_of: TypeOf) -> SqlType:
    """The type of an operand; an integer literal has only the digits that are written."""
    type = sql_type(parse_type(type_of(node)))
    literal = node.unnest()
    if isinstance(literal, exp.Neg):
        literal = literal.this  # the sign belongs to the literal, unless there are parentheses between
    if suffixed(literal):
        literal = literal.this
    if type.family is Family.INTEGER and isinstance(literal, exp.Literal) and type != types.TINYINT:
        return SqlType(Family.INTEGER, type.name, len(literal.name.lstrip("0")) or 1)
    return type


def _arithmetic(node: exp.Expr, left: SqlType, right: SqlType) -> str:
    families = {left.family, right.family}
    if not (left.numeric and right.numeric) or types.FLOAT in (left, right):
        return ""
    if Family.FLOATING in families:
        return "DOUBLE"
    if families == {Family.INTEGER}:
        wider = max(left, right, key=lambda type: type.bounds[1])
        return "DOUBLE" if isinstance(node, exp.Div) else wider.name
    integral, scale = max(left.precision - left.scale, right.precision - right.scale), max(left.scale, right.scale)
    if isinstance(node, exp.Div):
        scale = max(_LEAST_SCALE, left.scale + right.precision + 1)
        return _adjusted(left.precision - left.scale + right.scale + scale, scale)
    if isinstance(node, exp.Mul):
        return _adjusted(left.precision + right.precision + 1, left.scale + right.scale)
    if isinstance(node, exp.Mod):
        return _adjusted(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)
    return _adjusted(integral + scale + 1, scale)


def _adjusted(precision: int, scale: int) -> str:
    if precision > MAX_PRECISION:
        scale = max(MAX_PRECISION - (precision - scale), min(scale, _LEAST_SCALE))
    return _decimal(precision, scale)


def _decimal(precision: int, scale: int) -> str:
    return f"DECIMAL({min(precision, MAX_PRECISION)}, {scale})"


def _branches(node: exp.Expr) -> list[exp.Expr]:
    """What a choice chooses from."""
    if isinstance(node, exp.Case):
        chosen = [when.args["true"] for when in node.args["ifs"]] + [node.args.get("default")]
    elif isinstance(node, exp.If):
        chosen = [node.args["true"], node.args.get("false")]
    elif isinstance(node, exp.Nullif):
        chosen = [node.this]
    else:
        chosen = [node.this, *node.expressions]
    return [part for part in chosen if part is not None]


def _choice(names: list[str]) -> str:
    """The one type of all, or a number that all fit into without a change of digits."""
    if len(set(names)) == 1:
        return names[0]
    try:
        common = widest((sql_type(parse_type(name)) for name in names), exp.Coalesce())
    except ExpressionError:
        return ""
    return common.name if common.family is Family.INTEGER or ("DOUBLE" in names and common.numeric) else ""
