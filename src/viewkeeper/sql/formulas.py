"""What readers see of stored sums, evaluated in memory: the formulas of AVG, VAR and STDDEV, and conditions on them.

    AVG(e) = SUM(e) / COUNT(e)        VAR(e) = (n Σe² - (Σe)²) / n(n-1)        STDDEV(e) = √VAR(e)

Expressions of views are refused in memory where Spark drops digits: what is stored must not depend on the engine. A
formula is evaluated when it is read, and Spark's rounding is repeated here: a result has so many digits as Spark's
rules say, halves go away from zero, and what does not fit is an error or, with `try_`, NULL.
"""

import math
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any, Literal

import sqlglot
from sqlglot import exp

from viewkeeper.sql import type_families as types
from viewkeeper.sql.arithmetic import digits_of
from viewkeeper.sql.code_writer import Code
from viewkeeper.sql.evaluation import Compiler, compile_evaluator
from viewkeeper.sql.expressions import Evaluator, Expression, qualified
from viewkeeper.sql.one_nan import NAN
from viewkeeper.sql.row_functions import order
from viewkeeper.sql.syntax import ViewDialect
from viewkeeper.sql.type_families import MAX_PRECISION, Family, SqlType, parse_type, widest

STORED = "s"
"""the alias of the row that a formula is over: its columns are `s.name`"""

_LEAST_SCALE = 6
"""So many digits after the point Spark keeps, if it has to drop some."""
# Spark computes with one digit more than it keeps, and rounds that one down if it is a half.
_WIDE = Context(prec=MAX_PRECISION + 1, rounding=ROUND_HALF_DOWN)
_ROOM = Context(prec=4 * MAX_PRECISION, rounding=ROUND_HALF_DOWN)
_LAST_OF_QUOTIENT = Decimal(1).scaleb(-MAX_PRECISION - 1)


class Formula(Expression):
    """An expression over stored columns, with the functions that formulas use."""

    def compile(self, columns: tuple[str, ...]) -> Evaluator:
        evaluator = self._evaluators.get(columns)
        if evaluator is None:
            positions = {name: index for index, name in enumerate(columns)}
            evaluator = compile_evaluator(self.node, positions, self.sql, _FormulaCompiler)
            self._evaluators[columns] = evaluator
        return evaluator


def formula(sql: str, column_types: Mapping[str, str]) -> Formula:
    """The formula of a text in which stored columns are identifiers; in the row they are `s.name`."""

    def of_row(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        return qualified(stored_column(node.name), parse_type(column_types.get(node.name, "")))

    return Formula.from_node(sqlglot.parse_one(sql, dialect=ViewDialect).transform(of_row))


def stored_column(name: str) -> str:
    """The name of a stored column in the row of a formula."""
    return f"{STORED}.{name}"


class _FormulaCompiler(Compiler):
    """The compiler, with division of decimals, roots, and arithmetic that gives NULL for what does not fit."""

    def division(self, node: exp.Expr) -> Code:
        left, right = self.code(node.this), self.code(node.expression)
        if not _decimals(left, right):
            return super().division(node)
        type = _quotient_type(digits_of(left), digits_of(right))
        divide = self.constant(_dividing(type), types.UNKNOWN)
        body = f"({divide.text}({{0}}, {{1}}) if {{1}} else division_by_zero())"
        return self.strict([self.coerced(left, type), self.coerced(right, type)], type, body.format)

    def cast(self, node: exp.Expr) -> Code:
        target, source = types.sql_type(node.args["to"]), node.this.unnest()
        if target == types.DOUBLE and isinstance(source, exp.Literal) and source.name in _ODD:
            return self.constant(_ODD[source.name], target)
        code = self.code(node.this)
        if target.family is Family.DECIMAL and code.type.family in (Family.DECIMAL, Family.INTEGER):
            fit = self.constant(_fitting(target), types.UNKNOWN)
            return self.strict([self.coerced(code, target)], target, f"{fit.text}({{0}})".format)
        return super().cast(node)

    def root(self, node: exp.Expr) -> Code:
        root = self.constant(lambda value: math.sqrt(value) if value >= 0 else NAN, types.UNKNOWN)
        return self.strict(
            [self.coerced(self.code(node.this), types.DOUBLE)], types.DOUBLE, f"{root.text}({{0}})".format
        )

    def greatest(self, node: exp.Expr) -> Code:
        codes = self.unified((self.code(part) for part in (node.this, *node.expressions)), node)
        largest = self.constant(_greatest, types.UNKNOWN)
        text = f"{largest.text}({', '.join(code.text for code in codes)})"
        return Code(text, widest((code.type for code in codes), node), nullable=all(code.nullable for code in codes))

    def attempt(self, node: exp.Expr) -> Code:
        """try_subtract and try_multiply."""
        left, right = self.code(node.this), self.code(node.expression)
        times = isinstance(node, exp.SafeMultiply)
        if _decimals(left, right):
            one, other = digits_of(left), digits_of(right)
            type = _product_type(one, other) if times else _difference_type(one, other)
            left, right = self.coerced(left, type), self.coerced(right, type)
        else:
            type = widest((left.type, right.type), node)
            self.check_number(type, node)
        attempt = self.constant(_attempting("multiply" if times else "subtract", type), types.UNKNOWN)
        made = self.strict([left, right], type, f"{attempt.text}({{0}}, {{1}})".format)
        return Code(made.text, type)


_FormulaCompiler.handlers = {
    **Compiler.handlers,
    exp.Div: _FormulaCompiler.division,
    exp.Cast: _FormulaCompiler.cast,
    exp.Sqrt: _FormulaCompiler.root,
    exp.Greatest: _FormulaCompiler.greatest,
    exp.SafeSubtract: _FormulaCompiler.attempt,
    exp.SafeMultiply: _FormulaCompiler.attempt,
}

_ODD = {"NaN": NAN, "Infinity": math.inf, "-Infinity": -math.inf}


def _decimals(left: Code, right: Code) -> bool:
    """Whether two exact numbers meet, one of which is a DECIMAL."""
    families = {left.type.family, right.type.family}
    return Family.DECIMAL in families and families <= {Family.DECIMAL, Family.INTEGER}


# --- Spark's digits ---


def _kept(precision: int, scale: int) -> SqlType:
    """The type of a result that needs so many digits; those that are too many are dropped after the point."""
    if precision <= MAX_PRECISION:
        return types.decimal(precision, scale)
    return types.decimal(MAX_PRECISION, max(MAX_PRECISION - (precision - scale), min(scale, _LEAST_SCALE)))


def _quotient_type(left: SqlType, right: SqlType) -> SqlType:
    scale = max(_LEAST_SCALE, left.scale + right.precision + 1)
    return _kept(left.precision - left.scale + right.scale + scale, scale)


def _product_type(left: SqlType, right: SqlType) -> SqlType:
    return _kept(left.precision + right.precision + 1, left.scale + right.scale)


def _difference_type(left: SqlType, right: SqlType) -> SqlType:
    scale = max(left.scale, right.scale)
    return _kept(max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)


# --- on rows ---


def _rounded(value: Decimal, type: SqlType) -> Decimal | None:
    """The value with the digits of a type; None if it has too many before the point."""
    result = value.quantize(Decimal(1).scaleb(-type.scale), ROUND_HALF_UP, _ROOM)
    return result if abs(result) < Decimal(1).scaleb(type.precision - type.scale) else None


def _fitting(type: SqlType) -> Callable[[Decimal], Decimal]:
    def fit(value: Decimal) -> Decimal:
        result = _rounded(value, type)
        if result is None:
            raise OverflowError(f"{value} does not fit {type.name}")
        return result

    return fit


def _dividing(type: SqlType) -> Callable[[Decimal, Decimal], Decimal]:
    fit = _fitting(type)

    def divide(dividend: Decimal, divisor: Decimal) -> Decimal:
        quotient = _ROOM.divide(dividend, divisor)
        return fit(quotient.quantize(_LAST_OF_QUOTIENT, ROUND_HALF_DOWN, _ROOM))

    return divide


def _attempting(operation: Literal["multiply", "subtract"], type: SqlType) -> Callable[[Any, Any], Any]:
    def of_decimals(left: Decimal, right: Decimal) -> Decimal | None:
        return _rounded(getattr(_WIDE, operation)(left, right), type)

    def of_integers(left: int, right: int) -> int | None:
        exact = left * right if operation == "multiply" else left - right
        low, high = type.bounds
        return exact if low <= exact <= high else None

    return of_decimals if type.family is Family.DECIMAL else of_integers


def _greatest(*values: Any) -> Any:
    """The largest of the values that are there; NaN is larger than any other number."""
    largest = None
    for value in values:
        if value is not None and (largest is None or order(value, largest) > 0):
            largest = value
    return largest
