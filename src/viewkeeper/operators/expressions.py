"""Expressions of an operator tree over the columns of Z-sets.

A column `c1` of the tree is the column `q.c1` of a Z-set: expressions there are over flat names, an alias and a column.
The text goes to Spark as Spark wrote it. In memory it is evaluated if that means the same, else by Spark as well.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from viewkeeper.errors import ExpressionError
from viewkeeper.sql.expressions import qualified
from viewkeeper.sql.formulas import Formula
from viewkeeper.sql.syntax import ViewDialect
from viewkeeper.sql.tree import Column
from viewkeeper.sql.type_families import parse_type

ALIAS = "q"
_TOKEN = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|\b[A-Za-z_]\w*\b", re.DOTALL)


def flat(name: str) -> str:
    """The name of a column of the tree in a Z-set."""
    return f"{ALIAS}.{name}"


def flat_names(columns: Iterable[Column]) -> tuple[str, ...]:
    return tuple(flat(column.name) for column in columns)


class Computation(Formula):
    """An expression whose text Spark wrote."""

    def _parsed(self) -> exp.Expr:
        types = dict(self.column_types)
        try:
            node = sqlglot.parse_one(self.sql, dialect=ViewDialect)
        except SqlglotError as error:
            raise ExpressionError(f"{self.sql} is not evaluated in memory", "Spark evaluates it") from error
        return node.transform(
            lambda part: (
                qualified(part.name, parse_type(types.get(part.name, ""))) if isinstance(part, exp.Column) else part
            )
        )

    @property
    def is_column(self) -> str | None:
        return next(iter(self.columns)) if self.sql.strip("`") in self.columns else None


def column(one: Column) -> Computation:
    """The expression that is a column and nothing else."""
    return computation(one.name, one.type, (one,))


def null_of(one: Column) -> Computation:
    return computation(f"CAST(NULL AS {one.type})", one.type, ())


@lru_cache(maxsize=4096)
def computation(sql: str, type: str, columns: tuple[Column, ...]) -> Computation:
    """An expression over some columns, with the type of its value."""
    types: Mapping[str, str] = {one.name: one.type for one in columns}
    used: dict[str, str] = {}

    def as_flat(token: re.Match[str]) -> str:
        name = token.group().strip("`")
        if token.group()[0] in "'\"" or name not in types:
            return token.group()
        used[flat(name)] = types[name]
        return f"`{flat(name)}`"

    return Computation(_TOKEN.sub(as_flat, sql), frozenset(used), type, tuple(sorted(used.items())))
