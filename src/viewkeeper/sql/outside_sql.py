"""What leaves SQL: calls into the JVM, scripts. No view and no query has them, wherever its text comes from.

A warehouse may come from somebody else, and a query is often made by a program: neither may run code on this machine.
"""

from sqlglot import exp

from viewkeeper.errors import UnsupportedClause
from viewkeeper.sql.syntax import position

FUNCTIONS = ("java_method", "reflect", "try_reflect")
"""Spark's functions that call any method of any class"""
_HINT = "compute the value in your own program, or at the source"


def refuse_outside_sql(node: exp.Expr) -> None:
    """UnsupportedClause if a part of a text runs something that is not SQL."""
    if isinstance(node, exp.Anonymous) and node.name.lower() in FUNCTIONS:
        raise UnsupportedClause(f"the function {node.name.lower()} is refused: it runs code{position(node)}", _HINT)
    if isinstance(node, exp.QueryTransform):
        raise UnsupportedClause(f"TRANSFORM is refused: it runs a program{position(node)}", _HINT)
