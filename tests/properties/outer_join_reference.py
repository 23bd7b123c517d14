"""What a view with outer joins holds, by nested loops: the meaning of `OuterJoinView` in a few lines.

Every row of the left side looks at every row of the right side. A condition holds if it is TRUE, so neither FALSE nor
NULL makes partners.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.outer_join import JoinKind, JoinStep, OuterJoinView

Row = tuple[Any, ...]
Tables = Mapping[str, Sequence[Row]]
"""The rows of each relation by its name, duplicates as often as they are there."""


def evaluated(view: OuterJoinView, tables: Tables) -> Counter[Row]:
    """The bag of output rows."""
    columns, rows = joined(view, tables)
    output = [column.expression.compile(columns) for column in view.output]
    holds = _all_true(view.where, columns)
    return Counter(tuple(value(row) for value in output) for row in rows if holds(row))


def joined(view: OuterJoinView, tables: Tables) -> tuple[tuple[str, ...], list[Row]]:
    """The flat columns and the rows of all operands joined, before WHERE and SELECT."""
    first = view.operands[0]
    columns, rows = first.columns, list(tables[first.relation.name])
    for step in view.steps:
        rows = _join(step, columns, rows, tables[step.operand.relation.name])
        columns += step.operand.columns
    return columns, rows


def _join(step: JoinStep, columns: tuple[str, ...], left: Sequence[Row], right: Sequence[Row]) -> list[Row]:
    holds = _all_true(step.conditions, columns + step.operand.columns)
    pairs = [(i, j) for i, one in enumerate(left) for j, other in enumerate(right) if holds(one + other)]
    rows = [left[i] + right[j] for i, j in pairs]
    if step.kind in (JoinKind.LEFT, JoinKind.FULL):
        met = {i for i, _ in pairs}
        rows += [row + (None,) * len(step.operand.columns) for i, row in enumerate(left) if i not in met]
    if step.kind in (JoinKind.RIGHT, JoinKind.FULL):
        met = {j for _, j in pairs}
        rows += [(None,) * len(columns) + row for j, row in enumerate(right) if j not in met]
    return rows


def _all_true(conditions: Sequence[Expression], columns: tuple[str, ...]) -> Callable[[Row], bool]:
    compiled = [condition.compile(columns) for condition in conditions]
    return lambda row: all(condition(row) is True for condition in compiled)
