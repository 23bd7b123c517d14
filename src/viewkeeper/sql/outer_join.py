"""The form of a view that is an outer join.

    V = π output ( σ where ( ( (R_0 ⟗ R_1) ⟗ R_2 ) ... ⟗ R_n-1 ) )

Each ⟗ is an inner, left, right or full join by conditions of its own: one step of a left-deep tree, which joins
everything before it with one more operand. Unlike in an inner join the order of the steps matters, and so does whether
a condition stands in ON or in WHERE: ON decides who has a partner, WHERE drops rows after all joins.
"""

from dataclasses import dataclass
from enum import StrEnum

from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.view import Operand, OverOperands


class JoinKind(StrEnum):
    """Whose rows a join keeps when they have no partner: nobody's, the left side's, the right side's, both."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"

    @property
    def is_outer(self) -> bool:
        return self is not JoinKind.INNER

    @property
    def keeps_left(self) -> bool:
        return self in (JoinKind.LEFT, JoinKind.FULL)

    @property
    def keeps_right(self) -> bool:
        return self in (JoinKind.RIGHT, JoinKind.FULL)


@dataclass(frozen=True)
class JoinStep:
    """The join of everything before it with one more operand; `conditions` are the conjuncts of ON and USING."""

    kind: JoinKind
    operand: Operand
    conditions: tuple[Expression, ...]

    @property
    def equalities(self) -> tuple[tuple[str, str], ...]:
        """The pairs (earlier column, column of the operand) that must be equal, and can be matched by hash."""
        own = set(self.operand.columns)
        pairs = [pair for condition in self.conditions if (pair := condition.equality) is not None]
        ordered = [pair if pair[1] in own else (pair[1], pair[0]) for pair in pairs]
        return tuple((left, right) for left, right in ordered if right in own)


@dataclass(frozen=True, kw_only=True)
class OuterJoinView(OverOperands):
    """`operands` are in the order of FROM, with one step for each after the first; `where` holds for the joined rows.

    Every step has an equality between its operand and an earlier one.
    """

    steps: tuple[JoinStep, ...]
    where: tuple[Expression, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if tuple(step.operand for step in self.steps) != self.operands[1:]:
            raise ValueError(f"view {self.name} needs one step for each operand after the first")
