"""Operators that look at all rows of a key: windows, and aggregates that sums and counts do not give.

    ΔO  =  op(I' ⋉ K) - op(I ⋉ K)              K = the keys of ΔI;  I' = I + ΔI

The key of a window is its partition, that of an aggregate its group. Without a key K is everything: LIMIT, a window
without PARTITION BY, a scalar subquery that must have one row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from viewkeeper.operators.aggregate import touched
from viewkeeper.operators.expressions import flat_names
from viewkeeper.operators.node import Engine, Followed, State, StateTable, Z
from viewkeeper.sql.tree import Aggregate, AtMostOne, Limit, Operator, Window


@dataclass(frozen=True)
class KeyedNode:
    operator: Aggregate | Window | Limit | AtMostOne
    number: int

    @property
    def key(self) -> tuple[str, ...]:
        """Columns of the input."""
        match self.operator:
            case Window():
                return self.operator.partition
            case Aggregate():
                return tuple(one.sql for one in self.operator.keys)
            case _:
                return ()

    @property
    def rule(self) -> str:
        if self.key:
            return (
                "the touched partitions, computed again"
                if isinstance(self.operator, Window)
                else ("the touched groups, computed again")
            )
        return "all of its input, computed again"

    @property
    def rows(self) -> StateTable:
        return StateTable(f"{self.number}_rows", self.operator.input.columns, self.key)

    @property
    def output(self) -> StateTable | None:
        """What it was last, if that cannot be computed again to the last digit: sums of DOUBLE depend on the order."""
        match self.operator:
            case Aggregate():
                made, key = [call.column for call in self.operator.calls], [k.column.name for k in self.operator.keys]
            case Window():
                made, key = [one.column for one in self.operator.functions], list(self.key)
            case _:
                return None
        if not any(column.type in ("double", "float") for column in made):
            return None
        return StateTable(f"{self.number}_output", self.operator.columns, tuple(key))

    @property
    def tables(self) -> tuple[StateTable, ...]:
        return (self.rows,) if self.output is None else (self.rows, self.output)

    def content(self, table: StateTable) -> Operator:
        return self.operator.input if table.name == self.rows.name else self.operator

    def follow(self, deltas: Sequence[Z], state: State, engine: Engine) -> Followed:
        (rows,) = deltas
        if rows.is_empty():
            return Followed(engine.zset(flat_names(self.operator.columns)))
        keys = touched(rows, self.key)
        before = _of_keys(state, self.rows, keys)
        now = engine.evaluate(self.operator, [before + rows])
        if self.output is None:
            return Followed(now - engine.evaluate(self.operator, [before]), {self.rows.name: rows})
        delta = now - _of_keys(state, self.output, keys)
        return Followed(delta, {self.rows.name: rows, self.output.name: delta})


def _of_keys(state: State, table: StateTable, keys: Z) -> Z:
    return state.matching(table.name, table.by, keys) if table.by else state.whole(table.name)
