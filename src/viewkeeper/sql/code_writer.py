"""Python source for scalar expressions: how NULL, conversions and comparisons are written.

What becomes of each SQL operator is in `evaluation.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from sqlglot import exp

from viewkeeper.errors import ExpressionError
from viewkeeper.sql import type_families as types
from viewkeeper.sql.syntax import spark_sql
from viewkeeper.sql.type_families import Family, SqlType, widest

NOT_CONSTANT = object()


@dataclass(frozen=True)
class Code:
    """A Python expression over the row `r`. An `atom` is cheap and may be written several times."""

    text: str
    type: SqlType
    nullable: bool = True
    atom: bool = False
    constant: Any = NOT_CONSTANT

    @property
    def is_constant(self) -> bool:
        return self.constant is not NOT_CONSTANT


NOT_IN_MEMORY = "this expression needs the Spark engine; or keep the computed value as a column at the source"


def refusal(what: str, hint: str = NOT_IN_MEMORY) -> ExpressionError:
    """The error for what is not evaluated in memory."""
    return ExpressionError(f"{what} is not evaluated in memory", hint)


class CodeWriter:
    """Writes Python expressions, in which literals are constants and intermediate results temporaries."""

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {}
        self.temporaries = 0

    def constant(self, value: Any, type: SqlType) -> Code:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return Code(name, type, nullable=False, atom=True, constant=value)

    def temporary(self) -> str:
        self.temporaries += 1
        return f"t{self.temporaries}"

    def once(self, code: Code) -> tuple[Code, Code]:
        """The code for its first use, which stores the value, and for every later one."""
        if code.atom:
            return code, code
        name = self.temporary()
        return replace(code, text=f"({name} := {code.text})"), replace(code, text=name, atom=True)

    def strict(self, operands: Sequence[Code], type: SqlType, body: Callable[..., str]) -> Code:
        """`body` of the operands' names, and NULL if any of them is NULL; the rest is then not evaluated."""
        tests, names = [], []
        for operand in operands:
            first, later = self.once(operand)
            names.append(later.text)
            if operand.nullable or not operand.atom:
                tests.append(f"{first.text} is None")
        nulls = f"None if {' or '.join(tests)} else " if tests else ""
        text = f"({nulls}{body(*names)})"
        return Code(text, type, nullable=any(operand.nullable for operand in operands))

    def coerced(self, code: Code, type: SqlType) -> Code:
        """The value as Python holds it in a wider type."""
        if code.type.family in (type.family, Family.NULL) or type.family not in (Family.DECIMAL, Family.FLOATING):
            return replace(code, type=type)
        convert = float if type.family is Family.FLOATING else Decimal
        if code.is_constant:
            return self.constant(convert(code.constant), type)
        return self.strict([code], type, lambda value: f"{convert.__name__}({value})")

    def unified(self, codes: Iterable[Code], node: exp.Expr) -> list[Code]:
        """The codes in the one type to which Spark widens them."""
        codes = list(codes)
        common = widest((code.type for code in codes), node)
        if common.family is Family.UNKNOWN:
            return codes
        return [self.coerced(code, common) for code in codes]

    def compared(self, symbol: str, left: Code, right: Code, node: exp.Expr) -> Code:
        """A comparison that is NULL if an operand is."""
        left, right, body = self.comparison(symbol, left, right, node)
        return self.strict([left, right], types.BOOLEAN, body)

    def comparison(self, symbol: str, left: Code, right: Code, node: exp.Expr) -> tuple[Code, Code, Callable[..., str]]:
        """The operands in a form in which `body` compares them, once neither is NULL."""
        common = widest((left.type, right.type), node)
        if common.family is Family.OTHER:
            raise refusal(f"comparing {common.name} in {spark_sql(node)}")
        if common.family is Family.FLOATING:
            left, right = self.coerced(left, common), self.coerced(right, common)
        template = _COMPARISONS.get((symbol, common.family), f"{{0}} {symbol} {{1}}")
        return left, right, template.format

    def bounded(self, text: str, type: SqlType) -> str:
        """An integer that must not leave its type."""
        name = self.temporary()
        low, high = (self.constant(bound, type).text for bound in type.bounds)
        what = self.constant(type.name, types.STRING).text
        return f"({name} if {low} <= ({name} := {text}) <= {high} else overflow({name}, {what}))"

    def floating(self, text: str) -> str:
        """A double; if it is a NaN, then the one that all rows share."""
        name = self.temporary()
        return f"({name} if ({name} := {text}) == {name} else nan)"


# Where Python's operator is not Spark's. NaN is the largest double and equals itself. Python finds a datetime with a
# time zone and one without unequal, and only fails when it orders them: equality is therefore spelled with an order.
_COMPARISONS: dict[tuple[str, Family], str] = {
    ("==", Family.FLOATING): "({0} == {1} or {0} != {0} and {1} != {1})",
    ("!=", Family.FLOATING): "not ({0} == {1} or {0} != {0} and {1} != {1})",
    ("<", Family.FLOATING): "({0} < {1} or {1} != {1} and {0} == {0})",
    ("<=", Family.FLOATING): "({0} <= {1} or {1} != {1})",
    (">", Family.FLOATING): "({0} > {1} or {0} != {0} and {1} == {1})",
    (">=", Family.FLOATING): "({0} >= {1} or {0} != {0})",
    **{("==", family): "{0} <= {1} <= {0}" for family in (Family.TIMESTAMP, Family.TIMESTAMP_NTZ)},
    **{("!=", family): "not {0} <= {1} <= {0}" for family in (Family.TIMESTAMP, Family.TIMESTAMP_NTZ)},
    **{(symbol, Family.UNKNOWN): f"order({{0}}, {{1}}) {symbol} 0" for symbol in ("==", "!=", "<", "<=", ">", ">=")},
}
