"""The states of several views as one sequence.

The views of a group follow the same deliveries, each with an algorithm at work of its own, and show the same vector. A
state of the group is reached when every view has come to reflect one and the same set of transactions:

    the smallest T ≠ ∅ such that for every view the changes that it has computed, from its first on, reflect exactly T

With an algorithm that installs every update by itself that is one transaction at a time. Others may reflect several at
once: then the views meet where the last of them has caught up.

Recompute may say again that it reflects a transaction. What a view has reflected before is not waited for; a change
without any news goes with the next one that has some, and is nothing if it changes nothing.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.messages import Position, Transaction, ViewDelta

Place = tuple[str, Position]


@dataclass(frozen=True)
class GroupChange:
    """A new state of a group: the positions that it moves to, and the changes of each view, in order."""

    vector: Mapping[str, Position]
    deltas: Mapping[str, tuple[Any, ...]]
    transactions: tuple[Transaction, ...]


@dataclass
class _Installed:
    """What one view has installed and no state of the group has yet; how far it has come at each source."""

    waiting: deque[ViewDelta] = field(default_factory=deque)
    reached: dict[str, Position] = field(default_factory=dict)

    def add(self, delta: ViewDelta) -> None:
        # A view takes the transactions of a source in their order.
        reached = self.reached
        if all(one.position > reached.get(one.source, "") for one in delta.transactions):
            news = delta.transactions
        else:
            news = tuple(one for one in delta.transactions if one.position > reached.get(one.source, ""))
            delta = ViewDelta(delta.delta, news)
        for transaction in news:
            reached[transaction.source] = max(transaction.position, reached.get(transaction.source, ""))
        if news or not delta.delta.is_empty():
            self.waiting.append(delta)


class Alignment:
    """Collects what the views of a group install, and gives it out state by state."""

    def __init__(self, views: Iterable[str]) -> None:
        self._installed = {view: _Installed() for view in views}

    def installed(self, view: str, deltas: Iterable[ViewDelta]) -> None:
        if view in self._installed:
            for delta in deltas:
                self._installed[view].add(delta)

    def waiting(self, view: str) -> Iterable[ViewDelta]:
        """What a view has installed and no state of the group has yet."""
        return tuple(self._installed[view].waiting)

    def leave(self, view: str) -> None:
        """A view that is no longer maintained is not waited for."""
        del self._installed[view]

    def start_again(self, view: str) -> None:
        """A view goes back to the last state of the group."""
        self._installed[view] = _Installed()

    def has_changes(self) -> bool:
        """Whether there may be a state that all views have reached: each has installed something."""
        return bool(self._installed) and all(one.waiting for one in self._installed.values())

    def changes(self) -> list[GroupChange]:
        """The states that all views have reached."""
        made = []
        while self._installed and (meeting := self._meeting()):
            taken = {
                view: [installed.waiting.popleft() for _ in range(meeting[view])]
                for view, installed in self._installed.items()
            }
            made.append(_change(taken))
        return made

    def _meeting(self) -> dict[str, int] | None:
        """How many changes of each view make the next state."""
        # Almost always: the next change of every view reflects the same transactions.
        heads = [installed.waiting[0] if installed.waiting else None for installed in self._installed.values()]
        first = heads[0]
        if first is not None and first.transactions and all(_reflects_the_same(first, other) for other in heads[1:]):
            return dict.fromkeys(self._installed, 1)
        counts = dict.fromkeys(self._installed, 0)
        together: set[Place] = set()
        missing: dict[str, set[Place]] = {view: set() for view in self._installed}
        while not together or any(missing.values()):
            for view, installed in self._installed.items():
                while missing[view] or not together or not counts[view]:
                    if counts[view] == len(installed.waiting):
                        return None
                    places = _places(installed.waiting[counts[view]])
                    counts[view] += 1
                    missing[view] -= places
                    if new := places - together:
                        together |= new
                        for other in missing.keys() - {view}:
                            missing[other] |= new
        return counts


def merged(changes: Sequence[GroupChange]) -> GroupChange:
    """Several states as one: where the last of them is, with all their changes in order."""
    deltas: dict[str, tuple[Any, ...]] = {}
    vector: dict[str, Position] = {}
    for change in changes:
        vector |= change.vector
        for view, some in change.deltas.items():
            deltas[view] = (*deltas.get(view, ()), *some)
    return GroupChange(vector, deltas, tuple(one for change in changes for one in change.transactions))


def _reflects_the_same(one: ViewDelta, other: ViewDelta | None) -> bool:
    if other is not None and one.transactions is other.transactions:
        return True
    if other is None or len(one.transactions) != len(other.transactions):
        return False
    return all(
        mine.position == theirs.position and mine.source == theirs.source
        for mine, theirs in zip(one.transactions, other.transactions, strict=True)
    )


def _places(delta: ViewDelta) -> set[Place]:
    return {(transaction.source, transaction.position) for transaction in delta.transactions}


def _change(taken: Mapping[str, list[ViewDelta]]) -> GroupChange:
    any_view = next(iter(taken.values()))
    transactions = (
        any_view[0].transactions
        if len(any_view) == 1
        else tuple(transaction for delta in any_view for transaction in delta.transactions)
    )
    vector: dict[str, Position] = {}
    for transaction in transactions:
        vector[transaction.source] = max(vector.get(transaction.source, ""), transaction.position)
    deltas = {}
    for view, changes in taken.items():
        if some := tuple([one.delta for one in changes if not one.delta.is_empty()]):
            deltas[view] = some
    return GroupChange(vector, deltas, transactions)
