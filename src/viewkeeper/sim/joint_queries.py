"""A source with several relations and no wrapper: example 1 of the wrapper paper, to be seen failing.

    MQ = ΔR_3 ⋈ (R_1 ⋈ R_2)          one query over both relations, answered as R_1 ⋈ (R_2 + ΔR_2)

ΔR_2 is delivered before that answer, and SWEEP could compensate for it if it knew ΔR_2 ⋈ R_1. That takes a query to the
source, so it is known only after the answer has been used: the error stays in the view.
"""

from typing import Any

from viewkeeper.algorithms.driver import Ticket
from viewkeeper.sources.multi_relation import MultiRelationWrapper


class JointQueries(MultiRelationWrapper):
    """Answers go up as they come: there is no order assignment."""

    def base_answer(self, asked_by: tuple[str, Ticket], answer: Any) -> None:
        name, ticket = asked_by
        if name:
            super().base_answer(asked_by, answer)
        else:
            self._emit((ticket, answer))
