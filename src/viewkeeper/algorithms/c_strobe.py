"""C-Strobe: every update gets its state; later updates are taken out of its answer again.

Source     Zhuge et al. (1996), section 6
Assumes    keys; a FIFO channel per source
Reaches    complete, for single updates (action by action, so convergent under transactions)
Costs      n - 1 queries per insertion, none per deletion; and per insertion compensating ones: grouped by relation
           at most Σ (n-1)!/(n-1-k)! for k = 1..n-2, ungrouped K + ... + K^(n-2) for K interfering deletions

    Q_{i,i,0} = V⟨U_i⟩          for a deletion U_p seen by the answer to Q:   Q⟨U_p⟩ asks for what it took away
    Δ = all answers, less what later insertions brought

Which version of a tuple belongs into Δ when its key is used again: the state after U_i holds, for a key touched later,
the version that the first later event on that key deletes, and none if that event is an insertion. This one rule
(`versions_at`) says which deletions to compensate and what to keep in Δ. It needs every column of the answers, so Δ is
gathered over `View.with_all_columns`.
"""

from typing import Any

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algorithms.effects import Install, Join, Next, Process, ReadView, Spawn
from viewkeeper.algorithms.keyed import (
    Actions,
    Bound,
    Insert,
    apply_actions,
    single_actions,
    source_evaluate,
    split_actions,
)
from viewkeeper.algorithms.update_queue import Point, UpdateQueue
from viewkeeper.messages import Change, ViewDelta

Place = tuple[int, int]
"""An event of the window, and the operand that it is taken back in: in a self-join one deletion concerns several"""

FROM_THE_START: Place = (-1, -1)

Versions = dict[tuple[str, tuple[Any, ...]], tuple[int, Change | None]]
"""(relation, key) -> the place of the first event on it in the window, and that event if it is a deletion"""


def c_strobe(plan: JoinPlan, queue: UpdateQueue, *, grouped: bool = True, apart: bool = False) -> Process:
    """Process each update in order of arrival; `apart` takes transactions apart into their actions."""
    complete = CompleteAnswers(plan, queue, grouped)
    while True:
        u = yield Next()
        changes = u.changes
        for place, piece in single_actions(changes, apart=apart):
            actions = split_actions(piece, plan.view, queue.make_zset)
            reflected = u.transactions if place == len(changes) - 1 else ()
            yield from install_complete(plan, complete, actions, (u.seq, place), reflected)
        queue.forget(u.rank)


def install_complete(
    plan: JoinPlan, complete: "CompleteAnswers", actions: Actions, point: Point, reflected: tuple[Any, ...]
) -> Process:
    """key_delete(MV, deletions), MV + Δ(insertions), as one state: the one just behind `point`."""
    delta = yield from complete.answer(actions, point)
    mv = yield ReadView()
    change = apply_actions([*actions.key_deletes(), Insert(delta)], plan.view, mv)
    yield Install(ViewDelta(change, reflected))


class CompleteAnswers:
    """V⟨insertions⟩ as of a point of the delivery order, whatever the sources have gone through since."""

    def __init__(self, plan: JoinPlan, queue: UpdateQueue, grouped: bool) -> None:
        self._stored = plan
        self._plan = JoinPlan(plan.view.with_all_columns)
        self._queue = queue
        self._grouped = grouped

    def answer(self, actions: Actions, point: Point) -> Process:
        """Δ: the answers to all insertions and to everything that compensates them, as rows of the stored view."""
        queries = []
        for bound in actions.bindings(self._plan.view):
            queries.append((yield Spawn(self._evaluate(bound, point))))
        gathered = self._plan.no_change(self._queue.make_zset)
        for rows in (yield Join(*queries)):
            gathered += rows
        return self.as_of(gathered, point)

    def _evaluate(self, bound: Bound, point: Point) -> Process:
        rows, seq = yield from source_evaluate(self._plan, bound)
        return (yield from self.compensated(bound, rows, seq, point, FROM_THE_START))

    def compensated(self, bound: Bound, rows: Any, seq: int | None, point: Point, after: Place) -> Process:
        """An answer A_{i,j,k} with all that deletions behind `point` made it miss.

        Deletions are bound in the order in which they came, `after` being the place of the last one: a row that misses
        several tuples is found by binding them in that order, so no other order is needed.
        """
        if seq is None:
            return rows
        children = []
        for index, place, deleted in self._deletions(bound, seq, point, after):
            children.append((yield Spawn(self._compensate({**bound, index: deleted}, point, place))))
        for more in (yield Join(*children)):
            rows += more
        return rows

    def _compensate(self, bound: Bound, point: Point, after: Place) -> Process:
        """Q⟨U_p⟩, and again what its own answer misses."""
        rows, seq = yield from source_evaluate(self._plan, bound)
        return (yield from self.compensated(bound, rows, seq, point, after))

    def _deletions(self, bound: Bound, seq: int, point: Point, after: Place) -> list[tuple[int, Place, Any]]:
        """(operand, place, deleted rows) of each compensating query: one per operand, or one per deletion."""
        view = self._plan.view
        lost: dict[int, list[tuple[int, Change]]] = {}
        for (relation, _), (place, deletion) in versions_at(view, self._queue.events_after(point, seq)).items():
            if deletion is not None:
                for operand in view.operands_of(relation):
                    if operand.index not in bound and (place, operand.index) > after:
                        lost.setdefault(operand.index, []).append((place, deletion))
        groups = [
            (index, group)
            for index, events in sorted(lost.items())
            for group in ([events] if self._grouped else [[event] for event in events])
        ]
        return [
            (
                index,
                (min(place for place, _ in group), index),
                self._queue.make_zset(
                    view.operands[index].relation.columns, ((deletion.row, 1) for _, deletion in group)
                ),
            )
            for index, group in groups
        ]

    def as_of(self, gathered: Any, point: Point) -> Any:
        """Of all rows gathered, those whose tuples are the versions that were there at `point`."""
        view = self._plan.view
        versions = versions_at(view, self._queue.events_after(point, self._queue.delivered))
        touched: dict[str, tuple[set[Any], set[Any]]] = {name: (set(), set()) for name in view.relations}
        for (relation, key), (_, deletion) in versions.items():
            keys, kept = touched[relation]
            keys.add(key)
            if deletion is not None:
                kept.add(deletion.row)
        for operand in view.operands:
            keys, kept = touched[operand.relation.name]
            if keys:
                key_columns = operand.key or ()
                make = self._queue.make_zset
                gone = gathered.matching(make(key_columns, ((key, 1) for key in keys)), _same(key_columns))
                gathered = (
                    gathered
                    - gone
                    + gone.matching(make(operand.columns, ((row, 1) for row in kept)), _same(operand.columns))
                )
        return self._stored.finish(gathered.distinct()).distinct()


def _same(columns: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((column, column) for column in columns)


def versions_at(view: Any, events: list[Change]) -> Versions:
    """Per key touched by the events, the version that was there before them: what the first one deletes, if it does."""
    first: Versions = {}
    for place, change in enumerate(events):
        relation = view.relations.get(change.relation)
        if relation is not None:
            key = (change.relation, relation.key_of(change.row))
            first.setdefault(key, (place, change if change.count < 0 else None))
    return first
