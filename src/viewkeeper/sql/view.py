"""The select-project-join form of a view.

    V = π output ( σ conditions ( R_0 ⋈ R_1 ⋈ ... ⋈ R_n-1 ) )

An operand is one occurrence of a relation in FROM: a self-join has two operands over one relation. Columns are named
`alias.column` throughout, so that every column of every operand has a name of its own.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.relation import Relation

HIDDEN_KEY = "_vk_key_"


@dataclass(frozen=True)
class Operand:
    """R_index: one occurrence of a relation in the view."""

    index: int
    alias: str
    relation: Relation

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"{self.alias}.{column}" for column in self.relation.columns)

    @cached_property
    def key(self) -> tuple[str, ...] | None:
        if self.relation.key is None:
            return None
        return tuple(f"{self.alias}.{column}" for column in self.relation.key)

    @property
    def source(self) -> str:
        return self.relation.source


@dataclass(frozen=True)
class OutputColumn:
    """One column of the projection."""

    name: str
    expression: Expression


@dataclass(frozen=True, kw_only=True)
class OverOperands:
    """What the view of an inner join and that of an outer join have in common.

    `properties` are those of TBLPROPERTIES, as they were written.
    """

    name: str
    sql: str
    operands: tuple[Operand, ...]
    output: tuple[OutputColumn, ...]
    properties: tuple[tuple[str, str], ...] = field(default=())

    def __post_init__(self) -> None:
        for what, names in (("alias", [o.alias for o in self.operands]), ("column", [c.name for c in self.output])):
            if len(set(names)) < len(names):
                raise ValueError(f"view {self.name} has an {what} twice: {names}")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.output)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The sources in the order in which the view first names them."""
        return tuple(dict.fromkeys(operand.source for operand in self.operands))

    @cached_property
    def relations(self) -> dict[str, Relation]:
        return {operand.relation.name: operand.relation for operand in self.operands}

    @cached_property
    def _owner(self) -> dict[str, int]:
        return {column: operand.index for operand in self.operands for column in operand.columns}

    def mentions(self, expression: Expression) -> frozenset[int]:
        """The operands whose columns an expression uses."""
        return frozenset(self._owner[column] for column in expression.columns)

    def operands_of(self, relation: str) -> tuple[Operand, ...]:
        """The occurrences of a relation, in order."""
        return self._occurrences.get(relation, ())

    @cached_property
    def _occurrences(self) -> dict[str, tuple[Operand, ...]]:
        return {
            name: tuple(operand for operand in self.operands if operand.relation.name == name)
            for name in self.relations
        }

    @cached_property
    def keyless(self) -> tuple[str, ...]:
        """The relations for which no key is declared."""
        return tuple(name for name, relation in self.relations.items() if relation.key is None)

    @cached_property
    def with_keys(self) -> Self:
        """The same view with the key of every operand as hidden columns: every row then has one derivation."""
        hidden = tuple(
            OutputColumn(hidden, Expression.column(column))
            for operand in self.operands
            for hidden, column in zip(hidden_key(operand), operand.key or (), strict=True)
        )
        return replace(self, output=self.output + hidden)

    @cached_property
    def with_all_columns(self) -> Self:
        """The same join with every column of every operand as its output."""
        everything = tuple(
            OutputColumn(column, Expression.column(column)) for operand in self.operands for column in operand.columns
        )
        return replace(self, output=everything)


@dataclass(frozen=True, kw_only=True)
class View(OverOperands):
    """An inner join of its operands; `crossings` are the pairs of operands that the user joined by CROSS JOIN."""

    conditions: tuple[Expression, ...]
    crossings: tuple[tuple[int, int], ...] = field(default=())


def columns_read(view: View) -> dict[str, frozenset[str]]:
    """The columns of each relation that the rows of a view depend on; its key is one of them, where it has one."""
    named = frozenset[str]().union(
        *(column.expression.columns for column in view.output), *(condition.columns for condition in view.conditions)
    )
    read: dict[str, frozenset[str]] = {}
    for operand in view.operands:
        relation = operand.relation
        used = {column for column in relation.columns if f"{operand.alias}.{column}" in named}
        read[relation.name] = read.get(relation.name, frozenset()) | used | frozenset(relation.key or ())
    return read


def hidden_key(operand: Operand) -> tuple[str, ...]:
    """The names that the key of an operand has in `View.with_keys`: by number, since aliases may run together."""
    return tuple(f"{HIDDEN_KEY}{operand.index}_{column}" for column in operand.relation.key or ())
