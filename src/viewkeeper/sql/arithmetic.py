"""Python source for arithmetic, with Spark's result types.

Integers stay within their type, or it is an error. Decimals are exact: a result for which Spark would drop digits is
refused. Doubles are what the hardware makes of them.
"""

from abc import ABC, abstractmethod
from dataclasses import replace

from sqlglot import exp

from viewkeeper.sql import type_families as types
from viewkeeper.sql.code_writer import Code, CodeWriter, refusal
from viewkeeper.sql.literals import number, suffixed_number
from viewkeeper.sql.spark_grammar import suffixed
from viewkeeper.sql.syntax import spark_sql
from viewkeeper.sql.type_families import Family, SqlType, sql_type, widest

# The operator, and the method of decimal.Context that computes it without rounding.
ARITHMETIC: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Add: ("+", "add"),
    exp.Sub: ("-", "subtract"),
    exp.Mul: ("*", "multiply"),
}

# Spark rounds to so many digits when it changes the sign of a decimal: there it computes in IEEE's DECIMAL128.
_SIGN_PRECISION = 34


class Arithmetic(CodeWriter, ABC):
    """The arithmetic operators; what their operands become is up to the subclass."""

    @abstractmethod
    def code(self, node: exp.Expr) -> Code:
        """The code of any expression."""

    def arithmetic(self, node: exp.Expr) -> Code:
        """+, - and *."""
        operator, method = ARITHMETIC[type(node)]
        left, right, common = self.numbers(node)
        if common.family is Family.INTEGER:
            return self.strict([left, right], common, lambda a, b: self.bounded(f"{a} {operator} {b}", common))
        if common.family is Family.DECIMAL:
            type_ = _decimal_result(operator, digits_of(left), digits_of(right))
            return self.strict([left, right], type_, f"exact.{method}({{0}}, {{1}})".format)
        return self.strict([left, right], common, lambda a, b: self.floating(f"{a} {operator} {b}"))

    def division(self, node: exp.Expr) -> Code:
        left, right, common = self.numbers(node)
        if common.family is not Family.FLOATING:
            raise refusal(f"/ on {common.name}", "it needs the Spark engine; or divide doubles: CAST(... AS DOUBLE)")
        return self.strict(
            [left, right], common, lambda a, b: self.floating(f"({a} / {b} if {b} else division_by_zero())")
        )

    def remainder(self, node: exp.Expr) -> Code:
        left, right, common = self.numbers(node)
        if common.family is not Family.INTEGER:
            raise refusal(f"% on {common.name}")
        return self.strict([left, right], common, "(remainder({0}, {1}) if {1} else division_by_zero())".format)

    def numbers(self, node: exp.Expr) -> tuple[Code, Code, SqlType]:
        """The two operands of an arithmetic operator and the type in which it computes."""
        left, right = self.code(node.this), self.code(node.expression)
        common = _double_if_null(widest((left.type, right.type), node))
        if common.family is Family.FLOATING:
            left, right = self.coerced(left, common), self.coerced(right, common)
        self.check_number(common, node)
        return left, right, common

    def check_number(self, type: SqlType, node: exp.Expr) -> None:
        if not type.numeric or type == types.FLOAT:
            raise refusal(f"arithmetic on {type.name or 'an unknown type'} in {spark_sql(node)}")

    def sign(self, node: exp.Expr) -> Code:
        """Unary minus and ABS."""
        negative = isinstance(node, exp.Neg)
        if negative and isinstance(node.this, exp.Literal) and not node.this.is_string:
            return self.constant(*number(f"-{node.this.name}"))
        if negative and suffixed(node.this):
            literal = node.this.this.name
            return self.constant(*suffixed_number(f"-{literal}", sql_type(node.this.args["to"])))
        operand = self.code(node.this)
        operand = replace(operand, type=_double_if_null(operand.type))
        self.check_number(operand.type, node)
        body = "-{0}" if negative else "abs({0})"
        if operand.type.family is Family.INTEGER:
            return self.strict([operand], operand.type, lambda a: self.bounded(body.format(a), operand.type))
        if operand.type.family is Family.DECIMAL:
            if operand.type.precision > _SIGN_PRECISION:
                raise refusal(f"{spark_sql(node)} on {operand.type.name}")
            body = "exact.minus({0})" if negative else "exact.abs({0})"
            return self.strict([operand], operand.type, body.format)
        return self.strict([operand], operand.type, lambda a: self.floating(body.format(a)))


def _double_if_null(type: SqlType) -> SqlType:
    """Spark's type for arithmetic on nothing but NULL."""
    return types.DOUBLE if type.family is Family.NULL else type


def digits_of(code: Code) -> SqlType:
    """The DECIMAL that an exact number takes part as. Spark gives an integer literal the digits that are written,
    unless it is a TINYINT."""
    if code.is_constant and code.type.family is Family.INTEGER and code.type != types.TINYINT:
        return types.decimal(len(str(abs(code.constant))), 0)
    return types.decimal(code.type.precision, code.type.scale)


def _decimal_result(operator: str, left: SqlType, right: SqlType) -> SqlType:
    """Spark's digits for the sum, difference or product of two decimals."""
    if operator == "*":
        return types.decimal(left.precision + right.precision + 1, left.scale + right.scale)
    scale = max(left.scale, right.scale)
    return types.decimal(max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)
