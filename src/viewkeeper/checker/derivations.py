"""From a changed row to the rows of the view that derive from it, at any source state.

    ΔR_i row ──▶ its matches in R_j ──▶ their matches in R_k ──▶ ... ──▶ a row of the view

From operand i the joins lead outwards (the hops of `joins.py`). Here they go row by row and are remembered: how a
partial row continues with a match does not depend on the source state, only which matches are there does. A walk that
is repeated for the next source state looks everything up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from viewkeeper.algebra.joins import Hop, JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.checker.timelines import Group, Timeline, Weights

_NO_MATCHES = Group()


@dataclass
class _Partial:
    """A row over the operands joined so far: where its matches are, and what it becomes with each of them."""

    matches: Group
    longer: dict[Row, Row | None] = field(default_factory=dict)


class _Stage:
    """One hop: σ where ( partial ⋈ R_j ) projected on what is still needed."""

    def __init__(self, hop: Hop, timeline: Timeline, columns: tuple[str, ...]) -> None:
        both = columns + hop.operand.columns
        self.operand = hop.operand.index
        self.partials: dict[Row, _Partial] = {}
        self._key = [columns.index(left) for left, _ in hop.on]
        self._groups = timeline.groups(tuple(hop.operand.columns.index(right) for _, right in hop.on))
        self._tests = [condition.compile(both) for condition in hop.where]
        self._keep = [both.index(column) for column in hop.keep]

    def meet(self, row: Row) -> _Partial:
        """A partial row that comes for the first time. NULL never joins."""
        key = tuple([row[place] for place in self._key])
        group = None if None in key else self._groups.get(key)
        partial = self.partials[row] = _Partial(group or _NO_MATCHES)
        return partial

    def join(self, row: Row, match: Row) -> Row | None:
        """The longer partial row, or None if a condition is not true."""
        both = row + match
        if all(test(both) is True for test in self._tests):
            return tuple([both[place] for place in self._keep])
        return None


class Derivations:
    """What changes of one operand do to the view."""

    def __init__(self, plan: JoinPlan, operand: int, timelines: Mapping[str, Timeline]) -> None:
        self._plan = plan
        self._operand = operand
        self._stages: list[_Stage] = []
        columns = plan.carried(frozenset({operand}))
        for hop in plan.path(frozenset({operand})):
            self._stages.append(_Stage(hop, timelines[hop.operand.relation.name], columns))
            columns = hop.keep
        self._output = [column.expression.compile(columns) for column in plan.view.output]
        self._finished: dict[Row, Row] = {}

    def starts(self, delta: MemoryZSet) -> Weights:
        """The changed rows that pass the conditions over this operand alone, as partial rows."""
        return list(self._plan.start(self._operand, delta).weights())

    def walk(self, starts: Weights, moments: Sequence[int]) -> Weights:
        """The rows of the view that derive from partial rows, when operand j is at moments[j]; rows may repeat."""
        rows = starts
        for stage in self._stages:
            moment, partials = moments[stage.operand], stage.partials
            following: Weights = []
            for row, weight in rows:
                partial = partials.get(row) or stage.meet(row)
                longer = partial.longer
                for match, count in partial.matches.at(moment):
                    if match not in longer:
                        longer[match] = stage.join(row, match)
                    if (joined := longer[match]) is not None:
                        following.append((joined, weight * count))
            if not following:
                return following
            rows = following
        return [(self._finished.get(row) or self._finish(row), weight) for row, weight in rows]

    def _finish(self, row: Row) -> Row:
        """π output; remembered, as one row is met at many source states."""
        output = self._finished[row] = tuple([compute(row) for compute in self._output])
        return output
