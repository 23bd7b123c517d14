"""What a group is made of: the views that it maintains, from where on, and where its states go."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from viewkeeper.mediator.alignment import GroupChange
from viewkeeper.mediator.derived import Follower
from viewkeeper.mediator.known_rows import MOST_KNOWN
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.mediator.without_quiet import MOST_BEHIND_ANSWERS
from viewkeeper.messages import Transaction, Vector
from viewkeeper.sql.view import View

OWN = "_vk_"
"""how the names of hidden views begin"""


class Store(Protocol):
    """Where states go."""

    def commit(self, group: str, changes: Sequence[GroupChange], figures: Callable[[], Mapping[str, Any]]) -> None:
        """Make new states of a group durable, all of them or none; `figures`, asked at the end, go with them."""
        ...

    def advance(self, group: str, vector: Vector) -> None:
        """Make durable that the last state of a group also holds at these later positions."""
        ...

    def read(self, view: str) -> Any:
        """A view as it is stored at the last commit, hidden columns included, as a Z-set."""
        ...

    def halt(self, group: str, view: str, reason: str, *, recomputable: bool = False) -> None:
        """Remember that a view is not maintained any more, and why; `recomputable`: it is to be computed again."""
        ...

    def failed(self, group: str, reason: str | None) -> None:
        """Remember that a group stopped at its last commit, and why; None: it did not fail."""
        ...


class Recorder(Protocol):
    """Who wants to know what happens, for a history."""

    def delivered(self, group: str, transaction: Transaction) -> None: ...

    def installed(self, group: str, changes: Sequence[GroupChange]) -> None: ...

    def began_again(self, group: str, vector: Vector) -> None:
        """What was delivered after this vector is delivered again."""
        ...


@dataclass(frozen=True)
class GroupPlan:
    """A group to be maintained: its views, and the vector that they are at."""

    name: str
    views: tuple[Maintenance, ...]
    vector: Vector
    derived: tuple[View, ...] = ()
    """views over views of the group, each after those that it reads"""
    states_per_commit: int | None = None
    """how many states a commit holds at most; None: as many as there are"""
    most_behind_answers: int = MOST_BEHIND_ANSWERS
    """transactions after which views that wait for quiet, or for each other, go over to an algorithm that does not"""
    most_known: int = MOST_KNOWN
    """keys of which it remembers the rows; 0: none, and every question is asked, also what a view would answer"""
    followers: tuple[Follower, ...] = ()
    """views that are maintained from the changes of others by what is stored for them, in any order"""
    one_state: bool = False
    """whether all that there is to commit becomes one state"""
    give_up_after: float | None = None
    """seconds after which a missing part of a global transaction is not waited for any more; None: never"""
    read: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    """the columns of each relation that matter of a view which passes on more than is read of it, by view"""

    @property
    def sources(self) -> tuple[str, ...]:
        """Those that its views are over; the vector may have others, of views that are halted."""
        return tuple(dict.fromkeys(source for how in self.views for source in how.view.sources))


def because_it_reads(halted: str, reason: str) -> str:
    """Why a view is halted that reads one that is; what only viewkeeper knows of is not mentioned."""
    return reason if halted.startswith(OWN) else f"it reads {halted}, which is halted: {reason}"
