"""Which expressions can fail on a row.

    can fail  ⟸  overflow, division by zero, a cast of text, ...      the errors of ANSI mode
    cannot    ⟸  made of nothing but the operators listed here, on types that Spark need not convert

An engine may evaluate what cannot fail on any row, also on one that a deletion cancels out later. What can fail must
see only the rows that are there.
"""

from sqlglot import exp

from viewkeeper.errors import ExpressionError
from viewkeeper.sql.arithmetic import ARITHMETIC
from viewkeeper.sql.evaluation import computed_type
from viewkeeper.sql.type_families import Family, sql_type


def can_fail(node: exp.Expr) -> bool:
    """Whether there may be a row for which the expression is an error; True where that is not known."""
    if isinstance(node.unnest(), exp.Column):
        return False
    try:
        # What compiles mixes no types, so that no implicit cast hides in it.
        computed_type(node)
        return any(_fails_itself(part) for part in node.walk())
    except (ExpressionError, RecursionError):
        return True


def _fails_itself(node: exp.Expr) -> bool:
    if isinstance(node, exp.Column):
        return sql_type(node.type).family is Family.UNKNOWN
    if isinstance(node, exp.Cast):
        return _narrows(node)
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return False
    if isinstance(node, (*ARITHMETIC, exp.Neg, exp.Abs)):
        # Doubles have infinities, and a decimal that compiles has room for every digit of the result.
        return computed_type(node).family not in (Family.FLOATING, Family.DECIMAL)
    return not isinstance(node, _NEVER_FAILING)


def _narrows(cast: exp.Cast) -> bool:
    """The one cast that compiles and can fail: to an integer type that is too small."""
    target = sql_type(cast.args["to"])
    if target.family is not Family.INTEGER or isinstance(cast.this.unnest(), exp.Literal):
        return False
    return computed_type(cast.this).precision > target.precision


_NEVER_FAILING = (
    # leaves, and what belongs to them
    exp.Literal, exp.RawString, exp.Boolean, exp.Null, exp.Identifier, exp.DataType, exp.DataTypeParam,
    # logic
    exp.Paren, exp.And, exp.Or, exp.Not, exp.Is,
    # comparisons
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In,
    exp.Like, exp.Escape,
    # choices
    exp.Case, exp.If, exp.Coalesce, exp.Nullif,
    # texts
    exp.DPipe, exp.Concat,
)  # fmt: skip
