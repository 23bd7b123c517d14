"""Inner join of two nodes.

    Δ(L ⋈ R)  =  ΔL ⋈ R  +  L' ⋈ ΔR                L' = L + ΔL

Of L and R only the rows are looked up that have a key of the other side's change; without keys, all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from viewkeeper.operators.expressions import computation, flat, flat_names
from viewkeeper.operators.linear import BOOLEAN
from viewkeeper.operators.node import Engine, Followed, State, StateTable, Z, support
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.tree import Join, Operator


@dataclass(frozen=True)
class Sides:
    """The two inputs of a join, stored by their keys."""

    operator: Join
    number: int
    swapped: bool = False
    """whether the left side is stored as the right one"""

    @property
    def left_by(self) -> tuple[str, ...]:
        return tuple(one for one, _ in self.operator.keys)

    @property
    def right_by(self) -> tuple[str, ...]:
        return tuple(other for _, other in self.operator.keys)

    @property
    def left(self) -> StateTable:
        return StateTable(
            f"{self.number}_{'right' if self.swapped else 'left'}", self.operator.left.columns, self.left_by
        )

    @property
    def right(self) -> StateTable:
        return StateTable(
            f"{self.number}_{'left' if self.swapped else 'right'}", self.operator.right.columns, self.right_by
        )

    @property
    def tables(self) -> tuple[StateTable, ...]:
        return (self.left, self.right)

    def content(self, table: StateTable) -> Operator:
        return self.operator.left if table.name == self.left.name else self.operator.right

    @property
    def on(self) -> tuple[tuple[str, str], ...]:
        return tuple((flat(one), flat(other)) for one, other in self.operator.keys)

    @property
    def where(self) -> tuple[Expression, ...]:
        columns = (*self.operator.left.columns, *self.operator.right.columns)
        condition = self.operator.condition
        return () if condition is None else (computation(condition, BOOLEAN, columns),)

    def partners(self, state: State, table: StateTable, keys: Z, by: tuple[str, ...]) -> Z:
        """The stored rows of one side that may join with rows of the other, whose keys are in the columns `by`."""
        if not table.by:
            return state.whole(table.name)
        return state.matching(table.name, table.by, keys.keep(tuple(map(flat, by))).distinct())

    def changes(self, left: Z, right: Z) -> dict[str, Any]:
        """Of the stored sides."""
        return {self.left.name: left, self.right.name: right}


class InnerJoinNode(Sides):
    rule = "ΔL ⋈ R + L' ⋈ ΔR"

    def follow(self, deltas: Sequence[Z], state: State, engine: Engine) -> Followed:
        left, right = deltas
        names = flat_names(self.operator.columns)
        delta = engine.zset(names)
        if not left.is_empty():
            old = self.partners(state, self.right, support(left), self.left_by)
            delta = delta + left.join(old, self.on, self.where, names)
        if not right.is_empty():
            new = self.partners(state, self.left, support(right), self.right_by) + left
            delta = delta + new.join(right, self.on, self.where, names)
        return Followed(delta, self.changes(left, right))
