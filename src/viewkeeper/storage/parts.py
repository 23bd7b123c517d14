"""A two-way join kept in parts: the rows that join, and the rows of either side that join with nothing.

    V  = L ⋈ R        L0 = L ▷ R        R0 = R ▷ L        so L = L0 ∪ π(V) and R = R0 ∪ π(V)

The paper's formulas, deletions first:

    V_D    = σ[id in L_D](V) ∪ σ[id in R_D](V)                                                          (2)
    L'     = L - L_D,   R' = R - R_D                                                                    (4, 5)
    V_I    = L_I ⋈ R'  ∪  L' ⋈ R_I  ∪  L_I ⋈ R_I                    R' and L' are in two parts each       (6)
    L0     = those of L' ∪ L_I without a partner in V - V_D + V_I, and R0 likewise

so a row that loses its last partner goes back to L0 or R0, and one that gains its first leaves it. The three joins of
V_I have no pair in common, as L', L_I, R' and R_I have no row in common.

All of it happens among rows that are equal to a changed row in what is compared: nothing else is looked at.
"""

from dataclasses import dataclass
from typing import Generic

from viewkeeper.algebra.zset import On
from viewkeeper.sql.expressions import Expression
from viewkeeper.storage.change_sets import able_to_join, deleted, inserted, unable_to_join
from viewkeeper.storage.join_tree import Columns, TwoWayJoin
from viewkeeper.storage.tables import Z


@dataclass(frozen=True)
class Parts(Generic[Z]):
    """V, L0 and R0: some rows of them, or the changes of them."""

    joined: Z
    left: Z
    right: Z


@dataclass(frozen=True)
class PartsLayout:
    """Which columns the parts have."""

    join: TwoWayJoin
    left: Columns
    right: Columns
    joined: Columns

    def left_of(self, joined: Z) -> Z:
        """L1: each left row in V, once."""
        return joined.keep(self.left).distinct()

    def right_of(self, joined: Z) -> Z:
        """R1. A column that is equal to one of the left may be stored once: then it is taken from there."""
        return self.whole(joined).keep(self.right).distinct()

    def whole(self, joined: Z) -> Z:
        """Rows of V with the columns of both sides."""
        same = {right: left for left, right in self.join.on}
        columns = (*self.left, *self.right)
        return joined.project(tuple((c, Expression.column(c if c in self.joined else same[c])) for c in columns))

    def pairs(self, left: Z, right: Z) -> Z:
        """left ⋈ right."""
        return left.join(right, self.join.on, self.join.where, self.joined)


def refresh_parts(layout: PartsLayout, before: Parts[Z], left: Z, right: Z) -> Parts[Z]:
    """The changes of the parts, given the changes of both sides and the rows that are equal to a changed one."""
    join = layout.join
    left_ids, right_ids = _identity(join.left.ids), _identity(join.right.ids)
    # A NULL joins with nothing, so such a row only comes to L0 or R0 and goes.
    joinable_left, joinable_right = able_to_join(left, join.left_on), able_to_join(right, join.right_on)

    left_gone, right_gone = deleted(joinable_left), deleted(joinable_right)
    left_stays = (before.left + layout.left_of(before.joined)).key_delete(left_gone, left_ids)
    right_stays = (before.right + layout.right_of(before.joined)).key_delete(right_gone, right_ids)
    lose_left = before.joined.matching(left_gone, left_ids)
    keep_left = before.joined.key_delete(left_gone, left_ids)
    lost = lose_left + keep_left.matching(right_gone, right_ids)
    stay_joined = keep_left.key_delete(right_gone, right_ids)

    left_new, right_new = inserted(joinable_left), inserted(joinable_right)
    joining = (
        layout.pairs(left_new, right_stays) + layout.pairs(left_stays, right_new) + layout.pairs(left_new, right_new)
    )
    joined = stay_joined + joining

    left_alone = (left_stays + left_new).key_delete(joined, left_ids)
    right_alone = (right_stays + right_new).key_delete(joined, right_ids)
    return Parts(
        joining - lost,
        left_alone - before.left + unable_to_join(left, join.left_on),
        right_alone - before.right + unable_to_join(right, join.right_on),
    )


def _identity(ids: Columns) -> On:
    return tuple((column, column) for column in ids)
