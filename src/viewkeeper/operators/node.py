"""What every operator of a plan is: a rule from the changes of its inputs to its own, and tables for it.

    follow :  ΔI₁, ..., ΔIₙ, state  ⟶  ΔO, Δstate           O' - O  =  ΔO    for  O = op(I), O' = op(I + ΔI)

The rule is written once, over Z-sets: they are rows of Python, columns of Arrow or frames of Spark, by their size.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from viewkeeper.sql.tree import Column, Operator

Z = Any
"""a Z-set of the engine in use"""


@dataclass(frozen=True)
class StateTable:
    """A stored bag of rows: its name within the view, its columns, and by which of them it is looked up."""

    name: str
    columns: tuple[Column, ...]
    by: tuple[str, ...] = ()


class State(Protocol):
    """The stored tables, as they were before the change."""

    def matching(self, table: str, columns: Sequence[str], keys: Z) -> Z:
        """The rows whose `columns` are those of some row of `keys`, which has as many, in this order; NULL = NULL."""
        ...

    def whole(self, table: str) -> Z: ...


class Engine(Protocol):
    """Makes Z-sets, and evaluates operators that have no linear rule."""

    def zset(self, columns: tuple[str, ...], weights: Iterable[tuple[tuple[Any, ...], int]] = ()) -> Z: ...

    def evaluate(self, operator: Operator, inputs: Sequence[Z]) -> Z:
        """An operator over whole bags of rows."""
        ...


@dataclass(frozen=True)
class Followed:
    """What a change of the inputs does to an operator."""

    delta: Z
    state: Mapping[str, Z] = field(default_factory=dict)
    """the changes of its tables"""


class Node(Protocol):
    """An operator with its state."""

    @property
    def operator(self) -> Operator: ...

    @property
    def tables(self) -> tuple[StateTable, ...]: ...

    @property
    def rule(self) -> str:
        """In one line, for people: how a change of its inputs becomes one of its own."""
        ...

    def follow(self, deltas: Sequence[Z], state: State, engine: Engine) -> Followed: ...

    def content(self, table: StateTable) -> Operator:
        """The query that gives the first rows of a table."""
        ...


def support(rows: Z) -> Z:
    """Every row that occurs, once, whatever the sign of its weight."""
    return rows.distinct() + (-rows).distinct()


def as_set(columns: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """To compare whole rows."""
    return tuple((name, name) for name in columns)
