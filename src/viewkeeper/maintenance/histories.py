"""The history of a run, as `check` reads it: what was delivered, and every state that the views had.

    wh.run(seconds=30, history="run.json")              one view
    wh.run(seconds=30, history="run-{view}.json")       a file for each view

It is kept in memory until the end, with the whole content of every state: for tests and for study, not for large views.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.checker.history import History, State
from viewkeeper.errors import UsageError
from viewkeeper.lake.log.columns import RESERVED
from viewkeeper.maintenance.images import images_of_group
from viewkeeper.maintenance.keeper import Keeper
from viewkeeper.mediator.alignment import GroupChange
from viewkeeper.mediator.group_plan import GroupPlan, Recorder
from viewkeeper.mediator.waits import GivenUp
from viewkeeper.messages import Transaction, Vector
from viewkeeper.sql.view import View

PLACE = "{view}"


@dataclass
class _Recorded:
    """One group."""

    plan: GroupPlan
    relations: dict[str, MemoryZSet]
    vector: dict[str, str]
    deliveries: list[Transaction] = field(default_factory=list)
    contents: dict[str, MemoryZSet] = field(default_factory=dict)
    states: dict[str, list[State]] = field(default_factory=dict)
    given_up: list[GivenUp] = field(default_factory=list)
    """what was given up before the run, and was not whole then"""


class HistoryRecorder:
    """Records groups, from their vectors at the start."""

    def __init__(self, keeper: Keeper, plans: Sequence[GroupPlan]) -> None:
        self._incomplete = keeper.incomplete
        self._began_with = len(keeper.incomplete.noted)
        self._groups: dict[str, _Recorded] = {}
        for plan in plans:
            read = images_of_group(keeper, plan) if _shown(plan) else {}
            relations = {name: _memory(rows) for name, rows in read.items()}
            group = self._groups[plan.name] = _Recorded(plan, relations, dict(plan.vector))
            group.given_up = keeper.incomplete.given_up(plan.name)
            for view in _shown(plan):
                group.contents[view.name] = _memory(keeper.stored(view.name))
                group.states[view.name] = [self._state(group, view)]

    def delivered(self, group: str, transaction: Transaction) -> None:
        self._groups[group].deliveries.append(transaction)

    def installed(self, group: str, changes: Sequence[GroupChange]) -> None:
        recorded = self._groups[group]
        for change in changes:
            recorded.vector.update(change.vector)
            for view in _shown(recorded.plan):
                for delta in change.deltas.get(view.name, ()):
                    recorded.contents[view.name] = recorded.contents[view.name] + _memory(delta)
                recorded.states[view.name].append(self._state(recorded, view))

    def began_again(self, group: str, vector: Vector) -> None:
        recorded = self._groups[group]
        recorded.deliveries = [one for one in recorded.deliveries if one.position <= vector[one.source]]

    @staticmethod
    def _state(group: _Recorded, view: View) -> State:
        return State(group.contents[view.name].keep(view.columns), dict(group.vector))

    def histories(self) -> Iterator[tuple[str, History]]:
        """The history of each view."""
        for group in self._groups.values():
            for view, algorithm in _shown(group.plan).items():
                meta: dict[str, Any] = {"algorithm": algorithm, "group": group.plan.name}
                if given_up := self._given_up(group.plan.name, view):
                    meta["given_up"] = given_up
                deliveries = [_part(one, view) for one in group.deliveries if one.source in view.sources]
                states = [_part_of_state(state, view) for state in group.states[view.name]]
                yield view.name, History.of(view, group.relations, deliveries, states, meta)

    def _given_up(self, group: str, view: View) -> list[dict[str, Any]]:
        """What the group has given up, before the run or in it, and of which this view may show a half."""
        noted = [given for name, given in self._incomplete.noted[self._began_with :] if name == group]
        given = {one.key: one for one in (*self._groups[group].given_up, *noted)}
        return [
            {"id": one.id, "missing": list(one.missing), "time": one.time, "why": one.why}
            for one in given.values()
            if set(one.missing) & set(view.sources)
        ]


def _shown(plan: GroupPlan) -> dict[View, str]:
    """The views of a group that users know, and what maintains them: feeds and copies are none of them.

    Nor are outer joins: the checker knows select, project and join.
    """
    maintained = {how.view: how.algorithm for how in plan.views if not how.view.name.startswith(RESERVED)}
    return maintained | {one.definition: one.algorithm for one in plan.followers if one.definition is not None}


def _part(transaction: Transaction, view: View) -> Transaction:
    """What one view of a group sees of a transaction: others may be over more sources."""
    parts = tuple(
        replace(part, participants=tuple(one for one in part.participants if one in view.sources))
        for part in transaction.parts
    )
    return replace(transaction, parts=parts)


def _part_of_state(state: State, view: View) -> State:
    assert state.vector is not None
    return State(state.rows, {source: state.vector[source] for source in view.sources})


def _memory(zset: Any) -> MemoryZSet:
    return MemoryZSet(zset.columns, zset.weights())


@contextmanager
def recording(
    keeper: Keeper, path: str | os.PathLike[str] | None
) -> Iterator[Callable[[list[GroupPlan]], Recorder | None]]:
    """What makes a recorder for the groups of a run; the files are written when the block ends, however it ends."""
    if path is None:
        yield lambda _: None
        return
    made: list[HistoryRecorder] = []

    def recorder(plans: list[GroupPlan]) -> HistoryRecorder:
        views = [view.name for plan in plans for view in _shown(plan)]
        if len(views) > 1 and PLACE not in str(path):
            raise UsageError(
                f"there are {len(views)} views, and each has a history of its own",
                f"write {PLACE} into the name of the file, as in history-{PLACE}.json",
            )
        made.append(HistoryRecorder(keeper, plans))
        return made[0]

    try:
        yield recorder
    finally:
        for one in made:
            for view, history in one.histories():
                history.save(str(path).replace(PLACE, view))
