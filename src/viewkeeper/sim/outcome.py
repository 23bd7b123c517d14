"""What a run left behind."""

from collections.abc import Callable
from dataclasses import dataclass, field

from viewkeeper.checker.history import History


@dataclass
class Messages:
    """What went back and forth; an update that a source reports by itself is not counted."""

    queries: int = 0
    answers: int = 0
    rows: int = 0


@dataclass(frozen=True)
class ViewRun:
    """The histories of one view, as `live_run.py` has them; without a group there is only one."""

    name: str
    history: History
    """over all sources of its group, commit by commit"""
    alone: History | None = None
    """over the sources of the view, if its group has others"""
    captured: Callable[[], History] | None = None
    """as the captures delivered it, if they merged commits; made of the committed states, so it needs strong ones"""


@dataclass(frozen=True)
class Run:
    """The views of a run and what it took to maintain them."""

    views: tuple[ViewRun, ...]
    messages: Messages = field(default_factory=Messages)
    local_queries: int = 0
    waiting: int = 0
    """transactions that were delivered and are part of no state at the end"""

    @property
    def history(self) -> History:
        """That of the first view."""
        return self.views[0].history
