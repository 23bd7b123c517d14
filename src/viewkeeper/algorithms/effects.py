"""The words that an algorithm can say to its driver.

u       = yield Next()               REMOVE an update FROM UpdateMessageQueue; block if it is empty
u       = yield NextOrForced()       the same; None if the driver is forced while it is empty
batch   = yield NextBatch(limit)     up to `limit` updates that are there, at least one
answer  = yield HopQuery(hop, ΔV)    SEND ΔV TO source j; RECEIVE the answer FROM source j
process = yield Spawn(generator)     start a process beside this one
results = yield Join(p, q)           wait for processes, get what they return
view    = yield ReadView()           the materialized view as it stands
          yield Install(delta, ...)  new states of the view, in order, in one commit
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from viewkeeper.messages import Query, ViewDelta

Process = Generator["Effect", Any, Any]
"""A running algorithm: yields effects, is sent their results."""


@dataclass(frozen=True)
class Next:
    """The next update of the queue."""


@dataclass(frozen=True)
class NextOrForced(Next):
    """The next update of the queue, or None: time has passed, and what was taken is to become a state now."""


@dataclass(frozen=True)
class NextBatch:
    """The next updates of the queue: what is there, up to a limit, waiting only for the first."""

    limit: int


@dataclass(frozen=True)
class Spawn:
    """Start a process; the result is a handle for `Join`."""

    process: Process


@dataclass(eq=False)
class Handle:
    """A spawned process, and what it returned once it is done."""

    done: bool = False
    result: Any = None


class Join:
    """Wait until all the given processes have ended; the result is the list of what they returned."""

    def __init__(self, *handles: Handle) -> None:
        self.handles = handles


@dataclass(frozen=True)
class ReadView:
    """The materialized view as it stands, as a Z-set."""


class Install:
    """New states of the view, in order, made durable together."""

    def __init__(self, *deltas: ViewDelta) -> None:
        self.deltas = deltas


Effect = Next | NextBatch | Query | Spawn | Join | ReadView | Install
