"""The derivations of a view over time, as a tree that grows where it is walked.

    ΔR_i row ──▶ its matches in R_j ──▶ their matches in R_k ──▶ ... ──▶ a row of the view

From a row of operand i the joins lead outwards (the hops of `joins.py`). Which rows of the next operand match depends
on the rows alone, so it is found once, for the rows of all times; which of them are there depends on the source state,
and is asked of their lifetimes on each walk. So a walk costs no more than the matches that it meets, and the joins are
not repeated from one source state to the next.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from viewkeeper.algebra.joins import TAG, Hop, JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.checker.timelines import Lifetime, Timeline

_LEFT, _RIGHT = f"{TAG}left", f"{TAG}right"
"""Columns that tell, in the result of a join, which rows met."""

Weights = list[tuple[Row, int]]


@dataclass(frozen=True)
class _Stage:
    """One hop, with the matches found so far: partial row -> (lifetime of the match, the longer partial row)."""

    hop: Hop
    timeline: Timeline
    columns: tuple[str, ...]
    matches: dict[Row, list[tuple[Lifetime, Row]]] = field(default_factory=dict)

    def find(self, partials: Weights) -> None:
        """Find the matches of those partial rows that have not been met before."""
        # A partial row may come several times; its matches are found once.
        new = list(dict.fromkeys(partial for partial, _ in partials if partial not in self.matches))
        left_places = [self.columns.index(left) for left, _ in self.hop.on]
        right_places = tuple(self.hop.operand.columns.index(right) for _, right in self.hop.on)
        keys = {tuple([partial[place] for place in left_places]) for partial in new}
        candidates = [row for key in keys for row in self.timeline.matching(right_places, key)]
        left = MemoryZSet((_LEFT, *self.columns), [((n, *partial), 1) for n, partial in enumerate(new)])
        right = MemoryZSet((_RIGHT, *self.hop.operand.columns), [((n, *row), 1) for n, row in enumerate(candidates)])
        joined = left.join(right, self.hop.on, self.hop.where, (_LEFT, _RIGHT, *self.hop.keep))
        self.matches.update((partial, []) for partial in new)
        for (from_left, from_right, *longer), _ in joined.weights():
            lifetime = self.timeline.lifetimes[candidates[from_right]]
            self.matches[new[from_left]].append((lifetime, tuple(longer)))


class Derivations:
    """What changes of one operand do to the view, at any source state."""

    def __init__(self, plan: JoinPlan, operand: int, timelines: Mapping[str, Timeline]) -> None:
        self._plan = plan
        self._operand = operand
        self._stages: list[_Stage] = []
        columns = plan.carried(frozenset({operand}))
        for hop in plan.path(frozenset({operand})):
            self._stages.append(_Stage(hop, timelines[hop.operand.relation.name], columns))
            columns = hop.keep
        self._columns = columns
        self._finished: dict[Row, Row] = {}

    def starts(self, delta: MemoryZSet) -> Weights:
        """The changed rows that pass the conditions over this operand alone, as partial rows."""
        return list(self._plan.start(self._operand, delta).weights())

    def walk(self, starts: Weights, moments: Sequence[int]) -> Weights:
        """The rows of the view that derive from partial rows, when operand j is at moments[j]; rows may repeat."""
        partials = starts
        for stage in self._stages:
            moment = moments[stage.hop.operand.index]
            longer: Weights = []
            for partial, weight in partials:
                if partial not in stage.matches:
                    stage.find(partials)
                for lifetime, row in stage.matches[partial]:
                    count = lifetime.counts[bisect_right(lifetime.moments, moment) - 1]
                    if count:
                        longer.append((row, weight * count))
            if not longer:
                return longer
            partials = longer
        return [(self._finished.get(partial) or self._finish(partial), weight) for partial, weight in partials]

    def _finish(self, partial: Row) -> Row:
        ((row, _),) = self._plan.finish(MemoryZSet.of(self._columns, partial)).weights()
        self._finished[partial] = row
        return row
