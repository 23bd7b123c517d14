"""A join of many operands as a left-deep tree of two-way joins.

    J_1 = R_0 ⋈ R_1        J_k = J_{k-1} ⋈ R_k        V = π output ( σ where ( J_{n-1} ) )

Rows have ids, as the paper has it: the key of their relation, or a number that is given to a row when it first comes.
A row of a join is identified by the ids of the rows that it is made of.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.zset import On
from viewkeeper.errors import UnsupportedClause
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.outer_join import JoinKind, OuterJoinView
from viewkeeper.sql.view import Operand, View

NUMBER = "_vk_id"
"""the column of the numbers that are given to rows without a key"""

Columns = tuple[str, ...]


@dataclass(frozen=True)
class Leaf:
    """One operand of the view, with the columns of it that anything needs."""

    operand: Operand
    columns: Columns
    """ids first"""
    own: tuple[Expression, ...]
    """conditions on it alone, which can be applied before all else"""

    @property
    def numbered(self) -> bool:
        """Whether its rows get numbers, for want of a key."""
        return self.operand.relation.key is None

    @cached_property
    def ids(self) -> Columns:
        return self.operand.key or (f"{self.operand.alias}.{NUMBER}",)

    @cached_property
    def given(self) -> Columns:
        """The columns that its changes come with."""
        return tuple(column for column in self.columns if not self.numbered or column not in self.ids)


@dataclass(frozen=True)
class Side:
    """What a two-way join has on one side: a leaf, or the join of those before."""

    ids: Columns
    columns: Columns
    """ids first, then what this join, a later one, or the output uses"""
    compared: Columns
    """those that this join or a later one compares: the predicate attributes"""

    @cached_property
    def pointers(self) -> Columns:
        """Ids and predicate attributes: what is needed to find partners."""
        return self.ids + tuple(column for column in self.compared if column not in self.ids)


@dataclass(frozen=True)
class TwoWayJoin:
    """J_k = left ⋈ right."""

    number: int
    left: Side
    right: Side
    on: On
    where: tuple[Expression, ...]
    """further conditions"""
    kind: JoinKind

    @cached_property
    def left_on(self) -> Columns:
        return tuple(left for left, _ in self.on)

    @cached_property
    def right_on(self) -> Columns:
        return tuple(right for _, right in self.on)

    @property
    def ids(self) -> Columns:
        return self.left.ids + self.right.ids


@dataclass(frozen=True)
class JoinTree:
    """A whole view."""

    leaves: tuple[Leaf, ...]
    """in the order in which they are joined"""
    joins: tuple[TwoWayJoin, ...]
    where: tuple[Expression, ...]
    """conditions on joined rows, after all joins: of outer joins, where they cannot be applied before"""
    output: tuple[tuple[str, Expression], ...]

    @property
    def last(self) -> TwoWayJoin:
        return self.joins[-1]

    @property
    def inner(self) -> bool:
        return all(join.kind is JoinKind.INNER for join in self.joins)


def tree_of(view: View | OuterJoinView) -> JoinTree:
    """The tree of a view; UnsupportedClause if one of its joins has no equality to find partners by."""
    steps, where = _inner_steps(view) if isinstance(view, View) else (_outer_steps(view), view.where)
    output = tuple((column.name, column.expression) for column in view.output)
    at_the_end = (*(expression for _, expression in output), *where)
    own = {step.operand.index: step.own for step in steps}
    leaves = tuple(
        _leaf(step.operand, [c for other in steps for c in other.conditions], at_the_end, own[step.operand.index])
        for step in steps
    )
    joins: list[TwoWayJoin] = []
    left = leaves[0]
    left_ids, left_columns = left.ids, left.columns
    for number, step in enumerate(steps[1:], 1):
        later = [c for other in steps[number + 1 :] for c in other.conditions]
        used_later = frozenset[str]().union(*(c.columns for c in (*later, *at_the_end)))
        compared = frozenset[str]().union(*(c.columns for c in (*step.conditions, *later)))
        leaf = leaves[number]
        on, further = _divided(step.conditions, frozenset(leaf.columns))
        if not on:
            raise UnsupportedClause(
                f"no equality of columns joins {leaf.operand.alias} to what is before it in {view.name}, and a view "
                "that is maintained by itself finds partners by that",
                "add one, or leave 'storage' out: the view is then maintained by asking the sources",
            )
        sides = [
            Side(ids, columns, tuple(column for column in columns if column in compared))
            for ids, columns in ((left_ids, left_columns), (leaf.ids, leaf.columns))
        ]
        joins.append(TwoWayJoin(number, sides[0], sides[1], on, further, step.kind))
        left_ids = left_ids + leaf.ids
        kept = (*left_columns, *leaf.columns)
        left_columns = left_ids + tuple(c for c in kept if c in used_later and c not in left_ids)
    return JoinTree(leaves, tuple(joins), where, output)


@dataclass(frozen=True)
class _Step:
    """An operand, what it must satisfy alone, and how it is joined to those before it."""

    operand: Operand
    own: tuple[Expression, ...]
    conditions: tuple[Expression, ...]
    kind: JoinKind


def _inner_steps(view: View) -> tuple[list[_Step], tuple[Expression, ...]]:
    """The operands of an inner join, each connected to those before it where that is possible."""
    plan = JoinPlan(view)
    order = [view.operands[0], *(hop.operand for hop in plan.path(frozenset({0})))]
    steps, covered = [], frozenset[int]()
    for operand in order:
        covered |= {operand.index}
        due = [c for c in view.conditions if view.mentions(c) <= covered and operand.index in view.mentions(c)]
        own = tuple(c for c in due if view.mentions(c) == {operand.index})
        joined = tuple(c for c in due if c not in own)
        steps.append(_Step(operand, own, joined, JoinKind.INNER))
    constant = tuple(c for c in view.conditions if not view.mentions(c))
    return steps, constant


def _outer_steps(view: OuterJoinView) -> list[_Step]:
    """Conditions stay where they are: for a row that is kept in any case they only decide on its partners."""
    first = _Step(view.operands[0], (), (), JoinKind.INNER)
    return [first, *(_Step(step.operand, (), step.conditions, step.kind) for step in view.steps)]


def _leaf(
    operand: Operand, conditions: Sequence[Expression], at_the_end: Sequence[Expression], own: tuple[Expression, ...]
) -> Leaf:
    ids = operand.key or (f"{operand.alias}.{NUMBER}",)
    if operand.key is None and NUMBER in operand.relation.columns:
        raise UnsupportedClause(
            f"{operand.relation.name} has a column {NUMBER}, which is what the numbers of its rows would be called",
            "rename that column, or declare the key of the table",
        )
    used = frozenset[str]().union(*(expression.columns for expression in (*conditions, *at_the_end)))
    rest = tuple(column for column in operand.columns if column in used and column not in ids)
    return Leaf(operand, ids + rest, own)


def _divided(conditions: Sequence[Expression], right: frozenset[str]) -> tuple[On, tuple[Expression, ...]]:
    """Equalities between a column of the left and one of the right, and the other conditions. Rows are looked up by
    each column once: what it is equal to beside that is a further condition."""
    on: list[tuple[str, str]] = []
    further: list[Expression] = []
    for condition in conditions:
        pair = condition.equality
        if pair is not None and (pair[0] in right) != (pair[1] in right):
            left_column, right_column = pair if pair[1] in right else (pair[1], pair[0])
            if all(left_column != left and right_column != other for left, other in on):
                on.append((left_column, right_column))
                continue
        further.append(condition)
    return tuple(on), tuple(further)
