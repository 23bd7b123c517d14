"""Left, full and semi joins: linear in the left side, and looked at by key for a change of the right one.

op(L, R)    =  linear in L                     for  ⟕, ⋉ and ▷:  each row of L by itself, given R
Δ op(L, R)  =  op(ΔL, R')  +  op(L ⋉ K, R') - op(L ⋉ K, R)               K = the keys of ΔR

L ⟕ R  =  L ⋈ R  +  (L ▷ R) × NULL             L ⟗ R  =  L ⟕ R  +  NULL × (R ▷ L)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from viewkeeper.errors import ExpressionError
from viewkeeper.operators.expressions import column, flat, flat_names, null_of
from viewkeeper.operators.join import Sides
from viewkeeper.operators.node import Engine, Followed, State, Z, as_set, support
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.tree import Column, Join


@dataclass(frozen=True)
class OuterJoinNode(Sides):
    @property
    def rule(self) -> str:
        return "the changed rows of the left side, and those that a changed row of the right side may match"

    def follow(self, deltas: Sequence[Z], state: State, engine: Engine) -> Followed:
        left, right = deltas
        names = flat_names(self.operator.columns)
        delta = engine.zset(names) + self._linear(left, right, state, self._of)
        if self.operator.kind == "full":
            delta = delta + self._mirrored().unmatched_rows(right, left, state, self._padded_left)
        if self.operator.kind == "single":
            self._refuse_two(left, right, state)
        return Followed(delta, self.changes(left, right))

    def unmatched_rows(self, left: Z, right: Z, state: State, padded: Callable[[Z], Z]) -> Z:
        return self._linear(left, right, state, lambda rows, partners: padded(self._unmatched(rows, partners)))

    def _linear(self, left: Z, right: Z, state: State, of: Callable[[Z, Z], Z]) -> Z:
        """The change of an operator that is linear in the left side."""
        keys = support(left)
        partners = self.partners(state, self.right, keys, self.left_by) + right
        delta = of(left, partners)
        if right.is_empty():
            return delta
        keys = support(right)
        touched = self.partners(state, self.left, keys, self.right_by)
        before = self.partners(state, self.right, keys, self.right_by)
        return delta + of(touched, before + right) - of(touched, before)

    def _of(self, rows: Z, partners: Z) -> Z:
        kind = self.operator.kind
        if kind == "semi":
            return rows.matching(self._matched(rows, partners), as_set(rows.columns))
        if kind == "anti":
            return self._unmatched(rows, partners)
        pairs = rows.join(partners, self.on, self.where, flat_names(self.operator.columns))
        return pairs + self._padded(self._unmatched(rows, partners))

    def _matched(self, rows: Z, partners: Z) -> Z:
        """The rows that have a partner, each once."""
        return support(rows).join(partners, self.on, self.where, rows.columns).distinct()

    def _unmatched(self, rows: Z, partners: Z) -> Z:
        return rows.key_delete(self._matched(rows, partners), as_set(rows.columns))

    def _padded(self, rows: Z) -> Z:
        left, right = self.operator.left.columns, self.operator.right.columns
        return rows.project((*((flat(one.name), column(one)) for one in left), *_nulls(right)))

    def _padded_left(self, rows: Z) -> Z:
        left, right = self.operator.left.columns, self.operator.right.columns
        return rows.project((*_nulls(left), *((flat(one.name), column(one)) for one in right)))

    def _mirrored(self) -> "OuterJoinNode":
        join = self.operator
        keys = tuple((other, one) for one, other in join.keys)
        return OuterJoinNode(
            Join("anti", join.right, join.left, keys, join.null_safe, join.condition), self.number, swapped=True
        )

    def _refuse_two(self, left: Z, right: Z, state: State) -> None:
        """A scalar subquery has at most one row for each row that it is for."""
        keys = support(left)
        now = (self.partners(state, self.right, keys, self.left_by) + right, left.distinct())
        touched = support(right)
        then = self.partners(state, self.right, touched, self.right_by) + right
        rows = (self.partners(state, self.left, touched, self.right_by) + left).distinct()
        for partners, some in (now, (then, rows)):
            pairs = some.join(partners, self.on, self.where, some.columns)
            if any(weight > 1 for _, weight in pairs.weights()):
                raise ExpressionError(
                    "a subquery that is used as a value has more than one row",
                    "aggregate it, or add LIMIT 1 with an ORDER BY",
                )


def _nulls(columns: tuple[Column, ...]) -> tuple[tuple[str, Expression], ...]:
    return tuple((flat(one.name), null_of(one)) for one in columns)
