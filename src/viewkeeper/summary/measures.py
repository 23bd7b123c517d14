"""What a summary table stores for its aggregates.

    COUNT(e), SUM(e), AVG(e)     COUNT(e) and SUM(e)
    VAR(e), STDDEV(e)            and SUM(e * e) of exact numbers, if DECIMAL has room for it
    MIN, MAX, COUNT(DISTINCT e)  from a node of the lattice that also groups by e
    VAR(e), STDDEV(e) otherwise  COUNT(e), and Σ (e - mean)² from such a node

All that is stored is linear: what a change adds to it depends on the change alone. A sum of DOUBLE is over the finite
values; the others are counted, for an infinity that was added cannot be subtracted again. Squares of DOUBLE are not
summed: of values that are large beside their differences nothing would be left.
"""

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.summary_view import Aggregate, Function
from viewkeeper.sql.type_families import Family, type_named

ExtremeFunction = Literal["min", "max", "distinct", "spread"]
"""`spread` is Σ (e - mean)²"""
OF_ALL_VALUES = frozenset({"distinct", "spread"})
"""those that are always from a node, and not computed from parts"""
EXTREMES: dict[Function, ExtremeFunction] = {
    Function.MIN: "min",
    Function.MAX: "max",
    Function.COUNT_DISTINCT: "distinct",
}
SPREADS = (Function.VAR_SAMP, Function.VAR_POP, Function.STDDEV_SAMP, Function.STDDEV_POP)
MOST_DIGITS = 38
DIGITS_OF_COUNTS = 10
"""what Spark adds to the digits of a DECIMAL so that a sum has room"""


@dataclass(frozen=True)
class Measure:
    """COUNT(e) or SUM(e)."""

    kind: Literal["count", "sum"]
    expression: Expression
    of: Expression | None = None
    """of a sum: the values that are counted to know whether there are any, if they are not those that are summed"""

    @property
    def counted(self) -> "Measure":
        """The count beside a sum: without any value the sum is NULL."""
        return Measure("count", self.of or self.expression)

    @property
    def floating(self) -> bool:
        """Whether it is a sum that is subject to rounding."""
        return self.kind == "sum" and _family(self.expression) is Family.FLOATING


@dataclass(frozen=True)
class Needed:
    """The measures behind one aggregate: how many values, their sum, the sum of their squares, odd ones by kind."""

    count: Measure | None = None
    total: Measure | None = None
    squares: Measure | None = None
    odd: tuple[Measure, ...] = ()
    """how often NaN, Infinity and -Infinity occur"""

    def all(self) -> tuple[Measure, ...]:
        return tuple(one for one in (self.count, self.total, self.squares, *self.odd) if one is not None)


def needed(aggregate: Aggregate, argument: Expression | None) -> Needed:
    """What has to be stored for an aggregate over this argument."""
    if argument is None or aggregate.function in EXTREMES:
        return Needed()
    count = Measure("count", argument)
    if aggregate.function is Function.COUNT:
        return Needed(count)
    if is_spread_of_values(aggregate, argument):
        return Needed(count)
    odd: tuple[Measure, ...] = ()
    value = argument
    if _family(argument) is Family.FLOATING:
        odd = tuple(Measure("count", _if(_is_odd(argument, which), exp.Literal.number(1))) for which in _ODD)
        value = _if(exp.and_(*(exp.not_(_is_odd(argument, which)) for which in _ODD)), argument.node.copy())
    total = Measure("sum", value, argument)
    if aggregate.function in (Function.SUM, Function.AVG):
        return Needed(count, total, odd=odd)
    return Needed(count, total, Measure("sum", _square(value), argument), odd)


def is_spread_of_values(aggregate: Aggregate, argument: Expression) -> bool:
    """Whether it is computed from the values themselves, and not from sums."""
    if aggregate.function not in SPREADS:
        return False
    known = type_named(argument.type)
    # Squares of BIGINT, or of a wide DECIMAL, add up to more than any type holds.
    return known.family is Family.FLOATING or 2 * known.precision + DIGITS_OF_COUNTS > MOST_DIGITS


_ODD = ("NaN", "Infinity", "-Infinity")


def _is_odd(argument: Expression, which: str) -> exp.Expr:
    odd = exp.cast(exp.Literal.string(which), "double")
    return exp.EQ(this=exp.cast(argument.node.copy(), "double"), expression=odd)


def _if(condition: exp.Expr, value: exp.Expr) -> Expression:
    return _typed(exp.Case(ifs=[exp.If(this=condition, true=value)]), value)


def _typed(node: exp.Expr, like: exp.Expr) -> Expression:
    node.type = like.type or (exp.DataType.build("int") if isinstance(like, exp.Literal) else None)
    return Expression.from_node(node)


def _square(value: Expression) -> Expression:
    """e * e in units of the last digit of e, as a DECIMAL with room for sums."""
    digits = min(2 * (type_named(value.type).precision or MOST_DIGITS // 2), MOST_DIGITS)
    type = exp.DataType.build(f"decimal({digits}, 0)", dialect="spark")
    product = exp.cast(exp.Mul(this=_in_units(value), expression=_in_units(value)), type)
    product.type = type
    return Expression.from_node(product)


def _in_units(value: Expression) -> exp.Expr:
    known = type_named(value.type)
    node: exp.Expr = exp.Paren(this=value.node.copy())
    if known.scale:
        unit = exp.cast(exp.Literal.number(10**known.scale), _decimal(known.scale + 1))
        node = exp.Mul(this=node, expression=unit)
    return exp.cast(node, _decimal(known.precision))


def _decimal(digits: int) -> exp.DataType:
    return exp.DataType.build(f"decimal({digits}, 0)", dialect="spark")


def _family(expression: Expression) -> Family:
    return type_named(expression.type).family
