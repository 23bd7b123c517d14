"""Change sets: what was deleted and what was inserted, and which rows can have partners at all.

Δ = I - D        I = the rows of Δ that come, D = those that go; a modification is in both
"""

from functools import lru_cache
from typing import TypeVar

from sqlglot import exp

from viewkeeper.algebra.zset import ZSet
from viewkeeper.sql.expressions import Expression, qualified
from viewkeeper.storage.join_tree import Columns

Z = TypeVar("Z", bound=ZSet)

# Asked for at every refresh. One that is kept has also been compiled.
_kept = lru_cache(maxsize=4096)


def inserted(change: Z) -> Z:
    """R_I."""
    return change.distinct()


def deleted(change: Z) -> Z:
    """R_D."""
    return (-change).distinct()


def both_ways(some: Z, others: Z) -> Z:
    """Each row of either once."""
    return (some + others).distinct()


@_kept
def absent(columns: Columns) -> Expression:
    """Whether all of these are NULL."""
    return Expression.from_node(exp.and_(*map(_null, columns)))


@_kept
def present(columns: Columns) -> Expression:
    """Whether one of these is not NULL."""
    return Expression.from_node(exp.or_(*(_not_null(column) for column in columns)))


def able_to_join(change: Z, on: Columns) -> Z:
    """The rows with a value in every column that is compared for equality. The others have no partner, ever."""
    return change.select(tuple(present((column,)) for column in on))


def unable_to_join(change: Z, on: Columns) -> Z:
    """These others."""
    if not on:
        return change - change
    return change.select((_one_absent(on),))


@_kept
def _one_absent(columns: Columns) -> Expression:
    return Expression.from_node(exp.or_(*map(_null, columns)))


def _null(column: str) -> exp.Expr:
    return exp.Is(this=qualified(column), expression=exp.Null())


def _not_null(column: str) -> exp.Expr:
    return exp.Not(this=_null(column))
