"""Where a simulated group commits: what is in here survives a restart, everything else is lost."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.errors import ProtocolError
from viewkeeper.mediator.alignment import GroupChange, Place
from viewkeeper.messages import Position, Vector


class Crash(StrEnum):
    """The moment at which the warehouse stops working."""

    STOPPED = "stopped"
    """between two steps, orderly: how far the sources have gone is noted"""
    KILLED = "killed"
    """between two steps"""
    BEFORE_COMMIT = "before-commit"
    """in a step, when new states are about to become durable"""
    AFTER_COMMIT = "after-commit"
    """in a step, when new states have just become durable"""


class Crashed(Exception):
    """The warehouse has stopped working in the middle of a step."""


@dataclass(frozen=True)
class GroupState:
    """What a state of the group shows, view by view, and the one vector that it claims for all of them."""

    vector: Vector
    rows: Mapping[str, MemoryZSet]


class SimulatedStore:
    """The stored views of one group, with every state that it committed."""

    def __init__(
        self, stored: Mapping[str, MemoryZSet], columns: Mapping[str, tuple[str, ...]], vector: Vector
    ) -> None:
        self.vector: dict[str, Position] = dict(vector)
        self.places: list[Place] = []
        """the transactions of the committed states, in order"""
        self.crash: Crash | None = None
        """what happens at the next commit"""
        self._stored = dict(stored)
        self._columns = columns
        self._claimed: dict[str, Position] = dict(vector)
        self.states = [self._state()]

    def commit(self, group: str, changes: Sequence[GroupChange], figures: Callable[[], Mapping[str, Any]]) -> None:
        if self.crash is Crash.BEFORE_COMMIT:
            raise Crashed
        for change in changes:
            for view, deltas in change.deltas.items():
                for delta in deltas:
                    self._stored[view] = self._stored[view] + delta
            self._claimed.update(change.vector)
            self.places += [(one.source, one.position) for one in change.transactions]
            self.states.append(self._state())
        self.vector.update(self._claimed)
        if self.crash is Crash.AFTER_COMMIT:
            raise Crashed

    def advance(self, group: str, vector: Vector) -> None:
        self.vector.update(vector)
        self._claimed.update(vector)

    def read(self, view: str) -> MemoryZSet:
        return self._stored[view]

    def halt(self, group: str, view: str, reason: str, *, recomputable: bool = False) -> None:
        raise ProtocolError(f"{view} was halted: {reason}", "no simulated run has a reason to halt a view")

    def failed(self, group: str, reason: str | None) -> None:
        """The world reads the failure of the group itself."""

    def _state(self) -> GroupState:
        rows = {view: self._stored[view].keep(columns) for view, columns in self._columns.items()}
        return GroupState(dict(self._claimed), rows)
