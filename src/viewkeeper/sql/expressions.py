"""A scalar expression over the flat columns of a join.

Inside a join every column is named `alias.column`, so an expression writes a column as one identifier with a dot in it:
`` `o.id` = `c.id` ``. The text is what a data engine runs against rows with flat names, and it is the identity of the
expression: two expressions are equal if their texts are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Self

import sqlglot
from sqlglot import exp

from viewkeeper.sql.evaluation import compile_evaluator, flat_name, type_of
from viewkeeper.sql.failing import can_fail
from viewkeeper.sql.syntax import ViewDialect, spark_sql
from viewkeeper.sql.type_families import parse_type, same_equality

Evaluator = Callable[[tuple[Any, ...]], Any]


@dataclass(frozen=True)
class Expression:
    """`sql` in Spark's dialect, the flat `columns` that it uses, and its Spark `type` ('' if unknown).

    Two are the same if text and types of the columns are: `a < b` means one thing for INT and another for DOUBLE.
    """

    sql: str
    columns: frozenset[str] = field(compare=False)
    type: str = field(default="", compare=False)
    column_types: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    _node: exp.Expr | None = field(default=None, compare=False, repr=False)
    _evaluators: dict[tuple[str, ...], Evaluator] = field(default_factory=dict, init=False, compare=False, repr=False)

    @classmethod
    def column(cls, name: str, type: str = "") -> "Expression":
        """The expression that is a column and nothing else."""
        return cls(_quoted(name), frozenset({name}), type, ((name, type),))

    @classmethod
    def from_node(cls, node: exp.Expr) -> Self:
        """From a tree whose columns are qualified by the alias of their operand, and typed if the types are known."""
        columns = {flat_name(column): type_of(column) for column in node.find_all(exp.Column)}
        return cls(
            spark_sql(_flat(node)), frozenset(columns), type_of(node), tuple(sorted(columns.items())), node.copy()
        )

    @classmethod
    def greater(cls, left: str, right: str, *, or_equal: bool = False) -> "Expression":
        """`left > right` (or >=) between two integer columns."""
        integer = parse_type("BIGINT")
        comparison = exp.GTE if or_equal else exp.GT
        return cls.from_node(comparison(this=qualified(left, integer), expression=qualified(right, integer)))

    @property
    def node(self) -> exp.Expr:
        """The tree, its columns qualified by the alias of their operand. It is shared: copy it before changing it."""
        if self._node is None:
            object.__setattr__(self, "_node", self._parsed())
        assert self._node is not None
        return self._node

    @property
    def is_column(self) -> str | None:
        """The flat name, if this is a column and nothing else."""
        node = self.node.unnest()
        return flat_name(node) if isinstance(node, exp.Column) else None

    @property
    def equality(self) -> tuple[str, str] | None:
        """The two columns, if this is `column = column` across two operands and matching equal values is all it takes.

        That is what a hash join does. It is not enough where `=` converts its operands (BIGINT = STRING) or where equal
        is not identical (the NaN of a DOUBLE): there the answer is None and the condition is evaluated row by row.
        """
        node = self.node.unnest()
        if not isinstance(node, exp.EQ):
            return None
        left, right = node.left.unnest(), node.right.unnest()
        if not (isinstance(left, exp.Column) and isinstance(right, exp.Column)) or left.table == right.table:
            return None
        return (flat_name(left), flat_name(right)) if same_equality(left.type, right.type) else None

    @cached_property
    def can_fail(self) -> bool:
        """Whether there may be a row for which this is an error, such as an overflow."""
        return can_fail(self.node)

    def compile(self, columns: tuple[str, ...]) -> Evaluator:
        """The function from a row laid out as `columns` to the value; ExpressionError if only Spark can evaluate it."""
        evaluator = self._evaluators.get(columns)
        if evaluator is None:
            positions = {name: index for index, name in enumerate(columns)}
            evaluator = self._evaluators[columns] = compile_evaluator(self.node, positions, self.sql)
        return evaluator

    def renamed(self, mapping: Mapping[str, str]) -> "Expression":
        """The same expression over other columns; a name that is not in the mapping stays."""
        return Expression.from_node(
            self.node.transform(
                lambda node: (
                    qualified(mapping.get(flat_name(node), flat_name(node)), node.type)
                    if isinstance(node, exp.Column)
                    else node
                )
            )
        )

    def __str__(self) -> str:
        return self.sql

    def __getstate__(self) -> dict[str, Any]:
        # Compiled functions can be neither pickled nor copied; they are made again on demand.
        return {**self.__dict__, "_evaluators": {}}

    def _parsed(self) -> exp.Expr:
        if self.sql == _quoted(name := next(iter(self.columns), "")):
            return qualified(name, parse_type(self.type))
        return sqlglot.parse_one(self.sql, dialect=ViewDialect).transform(
            lambda node: _unflattened(node) if isinstance(node, exp.Column) else node
        )


def qualified(name: str, type: exp.DataType | None = None) -> exp.Column:
    """The column of a flat name. An alias has no dot, a column may: the first dot separates them."""
    alias, _, column = name.partition(".")
    node = exp.column(column, table=alias, quoted=True)
    node.type = type
    return node


def _flat(node: exp.Expr) -> exp.Expr:
    return node.transform(
        lambda part: (
            exp.column(exp.to_identifier(flat_name(part), quoted=True)) if isinstance(part, exp.Column) else part
        )
    )


def _unflattened(column: exp.Column) -> exp.Expr:
    """The parser takes the flat name before a struct's field for the name of a table."""
    name, *fields = column.parts
    return exp.Dot.build([qualified(name.name), *fields]) if fields else qualified(name.name)


@lru_cache(maxsize=4096)
def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(ViewDialect)
