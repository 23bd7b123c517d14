"""What a compiled expression calls when a row needs more than an operator.

They raise plain Python errors; the compiled function turns them into an ExpressionError that quotes the expression.
"""

import decimal
from typing import Any, NoReturn

from viewkeeper.sql.one_nan import NAN

# Wide enough for any sum or product of two decimals of 38 digits, and never rounding: inexact is an error.
EXACT = decimal.Context(prec=80, traps=[decimal.Inexact, decimal.InvalidOperation, decimal.Overflow])


def overflow(value: int, type: str) -> NoReturn:
    """ANSI mode: an integer that leaves its type is an error."""
    raise OverflowError(f"{value} is out of the range of {type}")


def division_by_zero() -> NoReturn:
    """ANSI mode: so is this."""
    raise ZeroDivisionError("division by zero")


def remainder(dividend: int, divisor: int) -> int:
    """The remainder with the sign of the dividend; Python's own has the sign of the divisor."""
    result = abs(dividend) % abs(divisor)
    return -result if dividend < 0 else result


def order(left: Any, right: Any) -> int:
    """Minus one, zero or one, for values whose SQL types are not known."""
    kinds = {type(left), type(right)}
    if len(kinds) > 1 and not kinds <= {int, float, decimal.Decimal}:
        names = f"{type(left).__name__} with {type(right).__name__}"
        raise TypeError(f"compares {names}: add a CAST so that both sides have one type")
    if float in kinds:
        left, right = float(left), float(right)
        if left != left or right != right:
            return int(left != left) - int(right != right)
    return int(left > right) - int(left < right)


FUNCTIONS: dict[str, Any] = {
    "Decimal": decimal.Decimal,
    "exact": EXACT,
    "nan": NAN,
    "overflow": overflow,
    "division_by_zero": division_by_zero,
    "remainder": remainder,
    "order": order,
}
