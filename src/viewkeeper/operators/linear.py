"""Linear operators: what happens to a row does not depend on any other, so a change goes through as the rows did.

op(R + ΔR)  =  op(R) + op(ΔR)           project, filter, UNION ALL, explode, rows repeated
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from viewkeeper.operators.expressions import computation, flat, flat_names
from viewkeeper.operators.node import Engine, Followed, State, StateTable, Z
from viewkeeper.sql.tree import Column, Filter, Generate, Operator, Project, Repeat, Scan, Union

BOOLEAN = "boolean"


class Linear:
    """An operator without state."""

    rule = "linear: each changed row by itself"
    tables: tuple[StateTable, ...] = ()

    def content(self, table: StateTable) -> Operator:
        raise AssertionError(f"a linear operator has no table {table.name}")


@dataclass(frozen=True)
class ScanNode(Linear):
    operator: Scan
    rule = "the changes that its sources have committed"

    def follow(self, deltas: Sequence[Z], state: State, engine: Engine) -> Followed:
        (rows,) = deltas
        return Followed(rows)


@dataclass(frozen=True)
class ProjectNode(Linear):
    operator: Project

    def follow(self, deltas: Sequence[Z], state: State, engine: Engine) -> Followed:
        (rows,) = deltas
        below = self.operator.input.columns
        output = tuple(
            (flat(one.column.name), computation(one.sql, one.column.type, below)) for one in self.operator.expressions
        )
        return Followed(rows.project(output))


@dataclass(frozen=True)
class FilterNode(Linear):
    operator: Filter

    def follow(self, deltas: Sequence[Z], state: State, engine: Engine) -> Followed:
        (rows,) = deltas
        return Followed(rows.select((computation(self.operator.condition, BOOLEAN, self.operator.columns),)))


@dataclass(frozen=True)
class UnionNode(Linear):
    operator: Union

    def follow(self, deltas: Sequence[Z], state: State, engine: Engine) -> Followed:
        columns = flat_names(self.operator.columns)
        return Followed(reduce(add, (rows.rename(columns) for rows in deltas)))


@dataclass(frozen=True)
class GenerateNode(Linear):
    operator: Generate

    def follow(self, deltas: Sequence[Z], state: State, engine: Engine) -> Followed:
        (rows,) = deltas
        come = engine.zset(rows.columns, ((row, weight) for row, weight in rows.weights() if weight > 0))
        gone = engine.zset(rows.columns, ((row, -weight) for row, weight in rows.weights() if weight < 0))
        return Followed(engine.evaluate(self.operator, [come]) - engine.evaluate(self.operator, [gone]))


@dataclass(frozen=True)
class RepeatNode(Linear):
    """The weight of a row is multiplied by what it says itself."""

    operator: Repeat

    def follow(self, deltas: Sequence[Z], state: State, engine: Engine) -> Followed:
        (rows,) = deltas
        columns = flat_names(self.operator.columns)
        times = Column("times", "bigint")
        output = tuple(
            (flat(one.name), computation(one.name, one.type, self.operator.columns)) for one in self.operator.columns
        )
        counted = rows.project(
            (*output, (flat(times.name), computation(self.operator.times, times.type, self.operator.columns)))
        )
        return Followed(
            engine.zset(columns, ((row[:-1], weight * max(row[-1] or 0, 0)) for row, weight in counted.weights()))
        )
