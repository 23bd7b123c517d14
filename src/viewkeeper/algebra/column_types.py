"""Where two columns meet, and where one meets what an expression was written for: the type they are compared in.

    BIGINT ∘ INT = BIGINT       DECIMAL(3, 1) ∘ DECIMAL(4, 3) = DECIMAL(5, 3)       STRING ∘ BIGINT: refused

An engine that holds its columns in types does what these say; the one in memory has values alone.
"""

from sqlglot import exp

from viewkeeper.errors import ExpressionError
from viewkeeper.sql.type_families import Family, SqlType, widest


def common_type(name: str, type: SqlType, other_name: str, other: SqlType) -> SqlType:
    """The type of values of either column; Spark would rather convert a STRING than say that it is no BIGINT."""
    columns = exp.EQ(this=exp.column(name, quoted=True), expression=exp.column(other_name, quoted=True))
    return widest((type, other), columns)


def needs_cast(name: str, present: SqlType, target: SqlType) -> bool:
    """Whether a column must be converted to be of the target type; ExpressionError if its values are of another."""
    if present == target or target.family in (Family.NULL, Family.UNKNOWN):
        return False
    if present.family is Family.NULL:
        return True
    if Family.OTHER in (present.family, target.family) or present.family is Family.UNKNOWN:
        return False
    if present.numeric and target.numeric:
        exact = present.family is not Family.FLOATING and present.scale <= target.scale
        if exact or target.family is Family.FLOATING:
            return True
    raise ExpressionError(
        f"{name} is declared {target.name} and its values are {present.name}", "declare the type that the values have"
    )
