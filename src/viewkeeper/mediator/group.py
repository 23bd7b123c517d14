"""A group of views: one queue of messages from each source, one sequence of states, one vector.

    loop    receive what has come    →    send what the algorithms ask    →    commit the states that are reached

Each part only does what is there to do, so batches follow the load: a lone transaction is swept and committed at once,
and while that is under way others gather. A commit runs while the sources work on the next questions.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from viewkeeper.algorithms.update_queue import MakeZSet
from viewkeeper.errors import PositionLost, SourceError, ViewkeeperError
from viewkeeper.mediator.alignment import Alignment, GroupChange
from viewkeeper.mediator.channel import Channel, Learn, Reply
from viewkeeper.mediator.derived import DerivedView
from viewkeeper.mediator.feed import Event, Feed
from viewkeeper.mediator.maintained import MaintainedView, Maintenance
from viewkeeper.mediator.report import GroupReport
from viewkeeper.messages import Position, Query, Transaction, Vector, ViewDelta
from viewkeeper.sources.base import Disruption
from viewkeeper.sql.view import View

MOST_IN_PROGRESS = 20_000
"""Transactions of a source that are taken and not yet part of a state; more are taken only if an answer shows them."""


class Store(Protocol):
    """Where states go."""

    def commit(self, group: str, changes: Sequence[GroupChange]) -> None:
        """Make new states of a group durable, all of them or none."""
        ...

    def read(self, view: str) -> Any:
        """A view as it is stored at the last commit, hidden columns included, as a Z-set."""
        ...

    def halt(self, group: str, view: str, reason: str) -> None:
        """Remember that a view is not maintained any more, and why."""
        ...


class Recorder(Protocol):
    """Who wants to know what happens, for a history."""

    def delivered(self, group: str, transaction: Transaction) -> None: ...

    def installed(self, group: str, changes: Sequence[GroupChange]) -> None: ...


@dataclass(frozen=True)
class GroupPlan:
    """A group to be maintained: its views, and the vector that they are at."""

    name: str
    views: tuple[Maintenance, ...]
    vector: Vector
    derived: tuple[View, ...] = ()
    """views over views of the group, each behind those that it reads"""
    states_per_commit: int | None = None
    """how many states a commit holds at most; None: as many as there are"""


class Group:
    """Views at work. Everything but `wake` runs in the thread of the group."""

    def __init__(
        self,
        plan: GroupPlan,
        feeds: Mapping[str, Feed],
        make_zset: MakeZSet,
        store: Store,
        recorder: Recorder | None = None,
    ) -> None:
        self.name = plan.name
        self.vector: dict[str, Position] = dict(plan.vector)
        self._reached = dict(plan.vector)
        self.failure: ViewkeeperError | None = None
        self.halted: dict[str, str] = {}
        self.states = 0
        self.commits = 0
        self._store = store
        self._recorder = recorder
        self._make_zset = make_zset
        self._states_per_commit = plan.states_per_commit
        self._bell = threading.Event()
        sources = dict.fromkeys(source for how in plan.views for source in how.view.sources)
        self.channels = {
            source: Channel(feeds[source], self.vector[source], make_zset, self.wake) for source in sources
        }
        self._alignment = Alignment(how.view.name for how in plan.views)
        self._contents: dict[str, Any] = {}
        self._last: dict[str, Any] = {}
        self._instant: deque[Callable[[], None]] = deque()
        self._in_progress: dict[str, set[Position]] = {source: set() for source in sources}
        self.views = {how.view.name: self._maintained(how, sources) for how in plan.views}
        self._derived = {
            view.name: DerivedView(view, make_zset=make_zset, read=self._committed) for view in plan.derived
        }

    def _maintained(self, how: Maintenance, sources: Iterable[str]) -> MaintainedView:
        name = how.view.name
        return MaintainedView(
            how,
            make_zset=self._make_zset,
            ask=lambda query, reply: self._ask(name, query, reply),
            install=lambda deltas: self._installed(name, deltas),
            read_view=lambda: self._read_view(name),
            sources=sources,
        )

    # --- the loop ---

    def wake(self) -> None:
        """Something has come, or it is time to stop."""
        self._bell.set()

    def run(self, stop: threading.Event) -> None:
        """Maintain until told to stop, or until something goes wrong that only this group is hit by."""
        try:
            while not stop.is_set() and self.views:
                if not self.step():
                    self._bell.wait()
                    self._bell.clear()
        except ViewkeeperError as error:
            self.failure = error

    def step(self) -> bool:
        """Do what there is to do; whether there was anything."""
        progressed = False
        for source, channel in self.channels.items():
            if channel.feed.failure is not None:
                self._source_failed(source, channel.feed.failure)
                continue
            try:
                progressed |= channel.receive(self._deliver, max(MOST_IN_PROGRESS - len(self._in_progress[source]), 0))
            except SourceError as error:
                self._source_failed(source, error)
        while self._instant:
            self._instant.popleft()()
            progressed = True
        for channel in self.channels.values():
            progressed |= channel.send()
        return self._commit() or progressed

    def caught_up(self, ends: Vector) -> bool:
        """Whether everything up to these positions is part of a committed state, and nothing is under way."""
        return all(
            channel.quiet and channel.subscription.position >= ends.get(source, "")
            for source, channel in self.channels.items()
        ) and not (self._instant or self._under_way())

    def _under_way(self) -> int:
        held = max((view.held for view in self.views.values()), default=0)
        return sum(map(len, self._in_progress.values())) - held

    def durable(self, source: str) -> Position:
        """Up to here the group needs nothing of a source any more."""
        return self.vector[source] if self._in_progress[source] else self.channels[source].subscription.position

    def report(self) -> GroupReport:
        traffic = [channel.traffic for channel in self.channels.values()]
        return GroupReport(
            self.name,
            (*self.views, *self._derived),
            dict(self.vector),
            self.states,
            self.commits,
            sum(map(len, self._in_progress.values())),
            sum(one.transactions for one in traffic),
            sum(one.merged for one in traffic),
            sum(one.queries for one in traffic),
            sum(one.messages for one in traffic),
            sum(one.rows_sent for one in traffic),
            sum(one.rows_received for one in traffic),
            self.failure.detail if self.failure else None,
        )

    def close(self) -> None:
        for channel in self.channels.values():
            channel.close()

    # --- what comes ---

    def _deliver(self, event: Event) -> None:
        if isinstance(event, Disruption):
            for view in [view for view in self.views.values() if event.relation in view.relations]:
                self._halt(view.name, f"{event.relation}: {event.reason}")
            return
        if not self._concerns(event):
            return
        self._in_progress[event.source].add(event.position)
        traffic = self.channels[event.source].traffic
        traffic.transactions += 1
        traffic.merged += event.merged
        if self._recorder is not None:
            self._recorder.delivered(self.name, event)
        for view in tuple(self.views.values()):
            self._guarded(view.name, lambda view=view: view.deliver(event))  # type: ignore[misc]

    def _concerns(self, transaction: Transaction) -> bool:
        """Whether it changes a relation of the group. A part of a global transaction is waited for in any case."""
        return transaction.global_id is not None or any(
            change.relation in view.relations for view in self.views.values() for change in transaction.changes
        )

    def _guarded(self, view: str, work: Callable[[], None]) -> None:
        """What goes wrong in one view, such as an overflow in an expression, stops that view alone."""
        try:
            work()
        except ViewkeeperError as error:
            if view in self.views:
                self._halt(view, error.detail)

    def _halt(self, view: str, reason: str) -> None:
        if self._derived.pop(view, None) is None:
            del self.views[view]
            self._alignment.leave(view)
        self._store.halt(self.name, view, reason)
        self.halted[view] = reason
        for over in [name for name, derived in self._derived.items() if view in derived.view.relations]:
            self._halt(over, f"it reads {view}, which is halted: {reason}")

    def _source_failed(self, source: str, error: ViewkeeperError) -> None:
        """The source will not go on. If its changes are lost so are the views over it; else they wait for a repair."""
        if not isinstance(error, PositionLost):
            raise error
        for view in [view for view in self.views.values() if any(r.source == source for r in view.relations.values())]:
            self._halt(view.name, error.detail)

    # --- what the algorithms say ---

    def _ask(self, view: str, query: Query, reply: Reply) -> None:
        def answered(rows: Any) -> None:
            if view in self.views:
                self._guarded(view, lambda: reply(rows))

        if query.size() == 0:
            # Nothing joins with nothing: that needs no source.
            nothing = [self._make_zset(fetch.columns, []) for fetch in query.fetches()]
            self._instant.append(lambda: answered(query.over(nothing)))
        else:
            self.channels[query.source].ask(query, answered, self._learner(view))

    def _learner(self, view: str) -> Learn:
        return lambda query, keys, rows: self.views[view].learn(query, keys, rows) if view in self.views else None

    def _installed(self, view: str, deltas: tuple[ViewDelta, ...]) -> None:
        if view in self._contents:
            for delta in deltas:
                self._contents[view] = self._contents[view] + delta.delta
        self._alignment.installed(view, deltas)

    def _read_view(self, view: str) -> Any:
        """MV as the algorithm has left it: what is stored, and what it has installed since."""
        held = self._contents.get(view)
        if held is None:
            held = self._store.read(view)
            for delta in self._alignment.waiting(view):
                held = held + delta.delta
            self._contents[view] = held
        return held

    def _committed(self, view: str) -> Any:
        """A view at the last commit; kept, if it is small."""
        if view not in self._last:
            self._last[view] = self._store.read(view)
        return self._last[view]

    def _forward(self, change: GroupChange) -> GroupChange:
        """Recompute may reflect a transaction again: a vector does not go back."""
        ahead = {source: place for source, place in change.vector.items() if place > self._reached[source]}
        self._reached.update(ahead)
        return replace(change, vector=ahead)

    def _commit(self) -> bool:
        changes = [self._forward(change) for change in self._alignment.changes()]
        if not changes:
            return False
        for name, derived in tuple(self._derived.items()):
            try:
                changes = derived.follow(changes)
            except ViewkeeperError as error:
                self._halt(name, error.detail)
        if self._recorder is not None:
            self._recorder.installed(self.name, changes)
        size = self._states_per_commit or len(changes)
        for first in range(0, len(changes), size):
            part = changes[first : first + size]
            self._store.commit(self.name, part)
            self.commits += 1
            self.states += len(part)
            for change in part:
                self.vector.update(change.vector)
                for transaction in change.transactions:
                    self._in_progress[transaction.source].discard(transaction.position)
        for view, rows in self._last.items():
            for delta in (delta for change in changes for delta in change.deltas.get(view, ())):
                rows = rows + delta
            self._last[view] = rows
        # On Spark a sum would grow with every state: the stored view is read again instead.
        for held in (self._contents, self._last):
            for view in [view for view, rows in held.items() if not getattr(rows, "in_memory", True)]:
                del held[view]
        return True
