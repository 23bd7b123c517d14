"""The states of several views as one sequence.

The views of a group follow the same deliveries, each with an algorithm at work of its own, and show the same vector. A
state of the group is reached when every view has come to reflect one and the same set of transactions:

    the smallest T ≠ ∅ such that for every view the changes that it has computed, from its first on, reflect exactly T

With an algorithm that installs every update by itself that is one transaction at a time. Others may reflect several at
once: then the views meet where the last of them has caught up.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.messages import Position, Transaction, ViewDelta

Place = tuple[str, Position]


@dataclass(frozen=True)
class GroupChange:
    """A new state of a group: the positions that it moves to, and the changes of each view, in order."""

    vector: Mapping[str, Position]
    deltas: Mapping[str, tuple[Any, ...]]
    transactions: tuple[Transaction, ...]


class Alignment:
    """Collects what the views of a group install, and gives it out state by state."""

    def __init__(self, views: Iterable[str]) -> None:
        self._installed: dict[str, deque[ViewDelta]] = {view: deque() for view in views}

    def installed(self, view: str, deltas: Iterable[ViewDelta]) -> None:
        if view in self._installed:
            self._installed[view].extend(deltas)

    def waiting(self, view: str) -> Iterable[ViewDelta]:
        """What a view has installed and no state of the group has yet."""
        return tuple(self._installed[view])

    def leave(self, view: str) -> None:
        """A view that is no longer maintained is not waited for."""
        del self._installed[view]

    def changes(self) -> list[GroupChange]:
        """The states that all views have reached."""
        made = []
        while self._installed and (meeting := self._meeting()):
            taken = {view: [queue.popleft() for _ in range(meeting[view])] for view, queue in self._installed.items()}
            made.append(_change(taken))
        return made

    def _meeting(self) -> dict[str, int] | None:
        """How many changes of each view make the next state."""
        counts = dict.fromkeys(self._installed, 0)
        reflected: dict[str, set[Place]] = {view: set() for view in self._installed}
        wanted: set[Place] = set()
        while True:
            for view, queue in self._installed.items():
                while not counts[view] or wanted - reflected[view]:
                    if counts[view] == len(queue):
                        return None
                    reflected[view].update(_places(queue[counts[view]]))
                    counts[view] += 1
            together = set[Place]().union(*reflected.values())
            if all(together == places for places in reflected.values()):
                return counts
            wanted = together


def _places(delta: ViewDelta) -> Iterable[Place]:
    return ((transaction.source, transaction.position) for transaction in delta.transactions)


def _change(taken: Mapping[str, list[ViewDelta]]) -> GroupChange:
    vector: dict[str, Position] = {}
    any_view = next(iter(taken.values()))
    transactions = tuple(transaction for delta in any_view for transaction in delta.transactions)
    for transaction in transactions:
        vector[transaction.source] = max(vector.get(transaction.source, ""), transaction.position)
    deltas = {view: tuple(d.delta for d in changes if not d.delta.is_empty()) for view, changes in taken.items()}
    return GroupChange(vector, {view: changes for view, changes in deltas.items() if changes}, transactions)
