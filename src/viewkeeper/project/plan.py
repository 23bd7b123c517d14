"""A plan is data: what applying a project would do to a warehouse, and why. It is explained before it is applied."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Action(StrEnum):
    """What is done to a source, a view or a cube."""

    ADD = "add"
    """a source"""
    CHANGE = "change"
    """a source: more of it, or it is somewhere else"""
    CREATE = "create"
    ALTER = "alter"
    """only how a view is kept is different: its rows stay"""
    RELOAD = "reload"
    """a view is recreated beside the old one, which readers have until then; its states begin again too"""
    KEEP = "keep"
    DROP = "drop"
    REMOVE = "remove"
    """a source"""


@dataclass(frozen=True)
class Step:
    """What is done to one of them."""

    name: str
    action: Action
    reasons: tuple[str, ...] = ()
    dependants: tuple[str, ...] = ()
    """views that are recreated with it"""
    place: str | None = None
    """where the project defines it"""
    if_pruned: bool = False
    """whether it is left as it is, because nobody asked for pruning"""
    states_lost: int = 0
    """of a reload: the states that can be read now and not afterwards"""

    @property
    def loss(self) -> str | None:
        """What a reload costs, in words."""
        if not self.states_lost:
            return None
        return f"{self.states_lost:,} earlier state{'' if self.states_lost == 1 else 's'} can no longer be read"

    @property
    def changes(self) -> bool:
        """Whether something is done."""
        return self.action is not Action.KEEP and not self.if_pruned


@dataclass(frozen=True)
class Plan:
    """What is done to a warehouse, in this order: sources, views, cubes; then what is dropped and removed."""

    warehouse: str
    exists: bool
    """whether there is a warehouse already"""
    sources: tuple[Step, ...]
    views: tuple[Step, ...]
    cubes: tuple[Step, ...] = ()
    by_hand: tuple[str, ...] = ()
    """views that no project made: they are left alone"""

    @property
    def steps(self) -> tuple[Step, ...]:
        return (*self.sources, *self.views, *self.cubes)

    @property
    def changes(self) -> bool:
        """Whether anything would be done."""
        return any(step.changes for step in self.steps)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        parts = {part: list(map(asdict, getattr(self, part))) for part in ("sources", "views", "cubes")}
        told = {"warehouse": self.warehouse, "exists": self.exists, "changes": self.changes}
        return {**told, **parts, "by_hand": list(self.by_hand)}
