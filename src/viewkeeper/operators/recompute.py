"""A query without a rule: Spark computes it from whole relations, and the difference is the change.

ΔO  =  Q(I + ΔI) - Q(I)
"""

from collections.abc import Sequence
from dataclasses import dataclass

from viewkeeper.operators.expressions import flat_names
from viewkeeper.operators.node import Engine, Followed, State, StateTable, Z
from viewkeeper.sql.tree import Operator, Recompute


@dataclass(frozen=True)
class RecomputeNode:
    operator: Recompute
    number: int

    @property
    def rule(self) -> str:
        return f"computed again by Spark: {self.operator.why}"

    @property
    def output(self) -> StateTable:
        return StateTable(f"{self.number}_output", self.operator.columns)

    @property
    def tables(self) -> tuple[StateTable, ...]:
        read = (StateTable(f"{self.number}_input_{n}", one.columns) for n, one in enumerate(self.operator.inputs))
        return (*read, self.output)

    def content(self, table: StateTable) -> Operator:
        if table.name == self.output.name:
            return self.operator
        return self.operator.inputs[self.tables.index(table)]

    def follow(self, deltas: Sequence[Z], state: State, engine: Engine) -> Followed:
        if all(rows.is_empty() for rows in deltas):
            return Followed(engine.zset(flat_names(self.operator.columns)))
        *read, output = self.tables
        now = [state.whole(table.name) + rows for table, rows in zip(read, deltas, strict=True)]
        delta = engine.evaluate(self.operator, now) - state.whole(output.name)
        changes = {table.name: rows for table, rows in zip(read, deltas, strict=True)}
        return Followed(delta, {**changes, output.name: delta})
