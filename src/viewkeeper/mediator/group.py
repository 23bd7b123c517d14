"""A group of views: one queue of messages from each source, one sequence of states, one vector.

    loop    receive what has come    →    send what the algorithms ask    →    commit the states that are reached

Each part only does what is there to do, so batches follow the load: a lone transaction is swept and committed at once,
and while that is under way others gather. A commit runs while the sources work on the next questions.

What was delivered and is not part of a committed state yet is kept: from the last commit and that, the algorithm of a
view can be started again at any time.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from viewkeeper.algorithms.update_queue import MakeZSet
from viewkeeper.clock import monotonic
from viewkeeper.errors import PositionLost, SourceError, ViewkeeperError, as_viewkeeper_error, may_pass
from viewkeeper.mediator.alignment import Alignment, GroupChange, Place, merged
from viewkeeper.mediator.channel import Channel, Learn
from viewkeeper.mediator.derived import DerivedView, in_topological_order
from viewkeeper.mediator.group_plan import OWN, GroupPlan, Recorder, Store, because_it_reads
from viewkeeper.mediator.known_rows import KnownRows
from viewkeeper.mediator.maintained import MaintainedView, Maintenance
from viewkeeper.mediator.missing_parts import LOOK_EVERY, MissingParts
from viewkeeper.mediator.report import GroupReport
from viewkeeper.mediator.stream import Event, Stream, rows_in
from viewkeeper.mediator.unknown_rows import Unknown
from viewkeeper.mediator.waits import GivenUp, WaitStore
from viewkeeper.mediator.without_quiet import without_quiet
from viewkeeper.messages import Position, Query, Transaction, Vector, ViewDelta
from viewkeeper.sources.base import Disruption
from viewkeeper.sources.layout import VIEW
from viewkeeper.sources.local_queries import LocalSweep
from viewkeeper.sql.view import columns_read

FIRST_IN_PROGRESS, MOST_IN_PROGRESS = 256, 8_192
"""Rows of a source's transactions that are taken and not yet part of a state; more are taken only if an answer shows
them, or if they are of one transaction. Few at first, so that the first commit after a start comes soon however much
has gathered: whoever is killed every few seconds gets ahead. Every commit doubles them."""
MANY_STATES = 64
REST, LONGEST_REST = 3.0, 0.5
"""A commit costs about the same however many states it holds. So after one of many states the next is put off for
`REST` times the seconds that it took, `LONGEST_REST` at most, unless as much is in progress as may be: under a steady
load most of the time is for the transactions. After one of few states the next follows at once."""
ADVANCE_EVERY = 60.0
"""Seconds between two times that a group notes how far its sources have gone without concerning it."""


@dataclass(frozen=True)
class _Progress:
    """How far a group is at the end of a step, for other threads to see."""

    taken: Vector
    """everything up to here was delivered"""
    open: Vector
    """the oldest transaction of each source that is delivered and not part of a state yet, if there is one"""
    idle: bool
    """nothing is under way: it goes on only with what comes"""


class Group:
    """Views at work. Everything but `wake` runs in the thread of the group."""

    def __init__(
        self,
        plan: GroupPlan,
        feeds: Mapping[str, Stream],
        make_zset: MakeZSet,
        store: Store,
        recorder: Recorder | None = None,
        wait_store: WaitStore | None = None,
    ) -> None:
        self.name = plan.name
        self.vector: dict[str, Position] = dict(plan.vector)
        self.failure: ViewkeeperError | None = None
        self.halted: dict[str, str] = {}
        self.to_recompute: set[str] = set()
        """those of the halted views that are only to be computed again"""
        self.went_over: dict[str, str] = {}
        self.states = 0
        self.commits = 0
        self._since: dict[Place, float] = {}
        """when each transaction that is in progress was delivered"""
        self._refresh_seconds: float | None = None
        self._queries_told = 0
        self._read = plan.read
        self._store = store
        self._recorder = recorder
        self._make_zset = make_zset
        self._states_per_commit = plan.states_per_commit
        self._most_behind_answers = plan.most_behind_answers
        self._bell = threading.Event()
        relations = frozenset(name for how in plan.views for name in how.view.relations)
        self.channels = {
            source: Channel(feeds[source], self.vector[source], make_zset, self.wake, relations)
            for source in plan.sources
        }
        self._alignment = Alignment(how.view.name for how in plan.views)
        self._contents: dict[str, Any] = {}
        self._last: dict[str, Any] = {}
        self._most_in_progress = min(FIRST_IN_PROGRESS, MOST_IN_PROGRESS)
        self._known = KnownRows(plan.most_known)
        self._view_answers = plan.most_known > 0
        self._instant: deque[Callable[[], None]] = deque()
        self._forced: dict[str, float] = {}
        """when each view with an interval was last forced to a state"""
        self._in_progress: dict[Place, Transaction] = {}
        self._in_progress_of: dict[str, deque[Position]] = {source: deque() for source in plan.sources}
        self._rows_in_progress = dict.fromkeys(plan.sources, 0)
        self._advanced = monotonic()
        self._next_commit = 0.0
        """when it may be made, on the monotonic clock"""
        self._put_off = False
        self._progress = _Progress(dict(self.vector), {}, idle=False)
        self._runs: dict[str, object] = {}
        self.views = {how.view.name: self._maintained(how) for how in plan.views}
        self._one_state = plan.one_state
        self._missing = MissingParts(self.name, self.vector, self.channels, wait_store, plan.give_up_after, self.wake)
        derived = [DerivedView(view, make_zset=make_zset, read=self._committed) for view in plan.derived]
        self._followers = in_topological_order([*plan.followers, *derived])

    def _maintained(self, how: Maintenance) -> MaintainedView:
        name = how.view.name
        run = self._runs[name] = object()
        return MaintainedView(
            how,
            make_zset=self._make_zset,
            ask=lambda query, reply: self._ask(name, run, query, reply),
            install=lambda deltas: self._installed(name, deltas),
            read_view=lambda: self._read_view(name),
            sources=self.channels,
            view_answers=self._view_answers,
        )

    # --- the loop ---

    def wake(self) -> None:
        """Something has come, or it is time to stop."""
        self._bell.set()

    def run(self, stop: threading.Event) -> None:
        """Maintain until told to stop, or until something goes wrong that only this group is hit by."""
        try:
            while not stop.is_set() and self.views:
                progressed = self.step()
                self._advance_now_and_then()
                if not progressed:
                    pause = LOOK_EVERY if self._missing.waits else ADVANCE_EVERY
                    self._bell.wait(min(pause, self._seconds_to_the_next_state()))
                    self._bell.clear()
            self._next_commit = 0.0
            self._commit()
            self._advance()
            self._missing.note()
        except Exception as error:
            self.failure = as_viewkeeper_error(error, f"group {self.name}")
        finally:
            with suppress(ViewkeeperError, OSError):
                # What cannot be written is in the failure itself.
                self._store.failed(self.name, None if self.failure is None else self.failure.detail)
            # Others go on with the streams, and would have to wait for it.
            self.close()

    def step(self) -> bool:
        """Do what there is to do; whether there was anything."""
        progressed = False
        for source, channel in tuple(self.channels.items()):
            if channel.feed.failure is not None:
                self._source_failed(source, channel.feed.failure)
                continue
            try:
                progressed |= channel.receive(self._deliver, self._most_of(source))
            except SourceError as error:
                self._source_failed(source, error)
        progressed |= self._work()
        progressed |= self._force_overdue()
        for channel in self.channels.values():
            progressed |= channel.send()
        progressed |= self._commit()
        progressed |= self._do_without_quiet()
        idle = not (self._instant or self._put_off) and all(channel.quiet for channel in self.channels.values())
        gave_up = self._give_up(self._missing.look(idle=idle))
        self._progress = _Progress(
            {source: channel.subscription.position for source, channel in self.channels.items()},
            {source: places[0] for source, places in self._in_progress_of.items() if places},
            idle=idle and not gave_up and not self._missing.unsure,
        )
        return progressed or gave_up

    def _work(self) -> bool:
        """Run the algorithms on what was delivered, until they wait for a source; whether a query was answered."""
        answered = False
        while True:
            for name, view in tuple(self.views.items()):
                self._guarded(name, view.work)
            if not self._instant:
                return answered
            answered = True
            for _ in range(len(self._instant)):
                self._instant.popleft()()

    def _most_of(self, source: str) -> int | None:
        """How many more rows of a source are taken; all, if a part is missing that may be among them."""
        if source in self._missing.sources:
            return None
        return max(self._most_in_progress - self._rows_in_progress[source], 0)

    def caught_up(self, ends: Vector, *, settled: bool = False) -> bool:
        """Whether everything up to these positions is part of a committed state, or waits for the rest of a global
        transaction and for nothing else; settled: and nothing is under way. From any thread."""
        # A stream that has not begun may have to tell first that a relation is not what it was.
        channels = tuple(self.channels.values())
        begun = all(channel.feed.begun and channel.subscription.lost is None for channel in channels)
        progress = self._progress
        taken = begun and all(source in ends and place >= ends[source] for source, place in progress.taken.items())
        committed = all(source in ends and place > ends[source] for source, place in progress.open.items())
        return not self.views or (taken and (progress.idle or (committed and not settled)))

    @property
    def goes_well(self) -> bool:
        """Whether it has made a commit, or has taken everything that its sources have sent. From any thread."""
        progress, channels = self._progress, tuple(self.channels.items())
        return self.failure is None and (
            self.commits > 0
            or (
                progress.idle
                and all(one.feed.begun and progress.taken.get(source, "") >= one.feed.upto for source, one in channels)
            )
        )

    def needs_behind(self, source: str) -> Position | None:
        """The group needs what comes after this position of a source, and nothing before; None if it needs nothing.
        From any thread."""
        return self.vector[source] if self.views and source in self.channels else None

    def _advance_now_and_then(self) -> None:
        if monotonic() - self._advanced >= ADVANCE_EVERY:
            self._advance()

    def _advance(self) -> None:
        """Sources go on without concerning the group: note that, so that they may forget what went by."""
        self._advanced = monotonic()
        ahead = {
            source: channel.subscription.position
            for source, channel in self.channels.items()
            if not self._in_progress_of[source] and channel.subscription.position > self.vector[source]
        }
        if ahead and self.views:
            self._store.advance(self.name, ahead)
            self.vector.update(ahead)

    def report(self) -> GroupReport:
        traffic = [channel.traffic for channel in tuple(self.channels.values())]
        return GroupReport(
            self.name,
            tuple(name for name in (*self.views, *self._followers) if not name.startswith(OWN)),
            dict(self.vector),
            self.states,
            self.commits,
            len(self._in_progress),
            sum(one.transactions for one in traffic),
            sum(one.merged for one in traffic),
            sum(one.queries for one in traffic),
            sum(one.messages for one in traffic),
            sum(one.rows_sent for one in traffic),
            sum(one.rows_received for one in traffic),
            self.failure.detail if self.failure else None,
            dict(self.went_over),
            {
                source: channel.subscription.waiting + len(self._in_progress_of[source])
                for source, channel in tuple(self.channels.items())
            },
            self._refresh_seconds,
            self._missing.waits,
            self._missing.given,
        )

    def close(self) -> None:
        for channel in self.channels.values():
            channel.close()

    # --- what comes ---

    def _deliver(self, event: Event) -> None:
        if isinstance(event, Disruption):
            for view in [view for view in self.views.values() if self._is_disrupted(view, event)]:
                self._halt(view.name, f"{event.relation}: {event.reason}", recomputable=event.recomputable)
            return
        self._known.delivered(event)
        if not self._concerns(event):
            return
        taken = self._missing.delivered(event) if event.parts else event
        self._in_progress[event.source, event.position] = taken
        self._since[event.source, event.position] = monotonic()
        self._in_progress_of[event.source].append(event.position)
        self._rows_in_progress[event.source] += rows_in(event)
        traffic = self.channels[event.source].traffic
        traffic.transactions += 1
        traffic.merged += event.merged
        if self._recorder is not None:
            self._recorder.delivered(self.name, event)
        for view in tuple(self.views.values()):
            self._guarded(view.name, partial(view.deliver, taken))

    def _is_disrupted(self, view: MaintainedView, event: Disruption) -> bool:
        if event.relation not in view.relations or event.columns is None:
            return event.relation in view.relations
        if event.recomputable and view.name.startswith(OWN):
            # What is passed on to others has the types that it was stored with, of all columns.
            return True
        read = self._read.get(view.name) or columns_read(view.how.view)
        return not event.columns.isdisjoint(read.get(event.relation, ()))

    def _concerns(self, transaction: Transaction) -> bool:
        """Whether it changes a relation of the group. A part of a global transaction is waited for in any case."""
        views = self.views.values()
        return bool(transaction.parts) or any(not transaction.relations.isdisjoint(view.relations) for view in views)

    def _guarded(self, view: str, work: Callable[[], None]) -> None:
        """What goes wrong in one view, such as an overflow in an expression, stops that view alone."""
        try:
            work()
        except Exception as error:
            if may_pass(error):
                raise
            if view in self.views:
                self._halt(view, as_viewkeeper_error(error, f"maintaining {view}").detail)

    def _halt(self, view: str, reason: str, *, recomputable: bool = False) -> None:
        if self._followers.pop(view, None) is None:
            del self.views[view], self._runs[view]
            self._alignment.leave(view)
        self._store.halt(self.name, view, reason, recomputable=recomputable)
        self.halted[view] = reason.replace(VIEW, view)
        if recomputable:
            self.to_recompute.add(view)
        for over in [name for name, follower in self._followers.items() if view in follower.reads]:
            self._halt(over, because_it_reads(view, reason), recomputable=recomputable)

    def _source_failed(self, source: str, error: ViewkeeperError) -> None:
        """The source will not go on. If its changes are lost so are the views over it; else they wait for a repair."""
        if not isinstance(error, PositionLost):
            raise error
        for view in [view for view in self.views.values() if any(r.source == source for r in view.relations.values())]:
            self._halt(view.name, error.detail)
        self.channels.pop(source).close()
        for place in [place for place in self._in_progress if place[0] == source]:
            self._done(place)
        # What is left must not wait there for parts of global transactions.
        for view in tuple(self.views.values()):
            self._start_again(view.how)

    # --- beginning again ---

    def _start_again(self, how: Maintenance) -> None:
        """The algorithm of a view starts at the last commit, with everything that was delivered since."""
        name = how.view.name
        self._contents.pop(name, None)
        self._alignment.start_again(name)
        self.views[name] = view = self._maintained(how)
        for transaction in self._in_progress.values():
            if self.views.get(name) is view:
                self._guarded(name, partial(view.deliver, transaction))
        if self.views.get(name) is view:
            self._guarded(name, view.work)

    def _give_up(self, given: Sequence[GivenUp]) -> bool:
        """The parts of these that are here need no others from now on; whether there is any."""
        for place in [place for one in given for place in one.arrived]:
            self._in_progress[place] = self._missing.part_at(place)
        for view in tuple(self.views.values()) if given else ():
            self._start_again(view.how)
        return bool(given)

    def _do_without_quiet(self) -> bool:
        """If no state has come for too long, views that wait for something go over to an algorithm that need not."""
        waited = max((view.waited for view in self.views.values()), default=0)
        if waited < self._most_behind_answers:
            return False
        successors = {name: without_quiet(one.how, alone=len(self.views) == 1) for name, one in self.views.items()}
        for name, how in successors.items():
            if how is not None:
                self.went_over[name] = (
                    f"{self.views[name].how.algorithm} came to no state while {waited} transactions came: "
                    f"{how.algorithm} has taken over"
                )
                self._start_again(how)
        for view in self.views.values():
            view.new_state()
        return any(successors.values())

    def _force_overdue(self) -> bool:
        """Views whose interval has passed since the oldest transaction came that is part of no state."""
        overdue = [name for name, seconds in self._due().items() if seconds <= 0]
        for name in overdue:
            self._forced[name] = monotonic()
            if name in self.views:
                self._guarded(name, self.views[name].force)
        return bool(overdue)

    def _due(self) -> dict[str, float]:
        """The seconds until each view with an interval is to be forced to a state; none if nothing waits for one."""
        now, oldest = monotonic(), next(iter(self._since.values()), None)
        return {
            name: max(oldest, self._forced.get(name, oldest)) + view.interval - now
            for name, view in self.views.items()
            if view.interval and oldest is not None
        }

    def _seconds_to_the_next_state(self) -> float:
        put_off = [self._next_commit - monotonic()] if self._put_off else []
        return max(min([ADVANCE_EVERY, *put_off, *self._due().values()]), 0)

    # --- what the algorithms say ---

    def _ask(self, view: str, run: object, query: Query, reply: Callable[[Any], None]) -> None:
        def answered(fetched: list[Any]) -> None:
            if self._runs.get(view) is run:
                # The conditions of the join are evaluated here: what fails in them is this view's affair.
                self._guarded(view, lambda: reply(query.over(fetched)))

        fetches = query.fetches()
        if query.size() == 0 or all(fetch.keys == () for fetch in fetches):
            # Nothing joins with nothing, nor with NULL: that needs no source.
            nothing = [self._make_zset(fetch.columns, []) for fetch in fetches]
            self._instant.append(lambda: answered(nothing))
        elif len(fetches) > 1 and not isinstance(query, LocalSweep):
            self.channels[query.source].ask(query, fetches, answered, self._learner(view))
        else:
            question = Unknown(self._known, fetches, self._make_zset)
            if question.asked:
                self.channels[query.source].ask(
                    query, question.asked, lambda fetched: answered(question.completed(fetched)), self._learner(view)
                )
            else:
                self._instant.append(lambda: answered(question.completed([])))

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

    def _commit(self) -> bool:
        self._put_off = self._alignment.has_changes() and self._rests()
        changes = [] if self._put_off else self._alignment.changes()
        if not changes:
            return False
        begin = monotonic()
        if self._one_state:
            changes = [merged(changes)]
        for name, follower in tuple(self._followers.items()):
            if name not in self._followers:
                # It reads one that was halted just now.
                continue
            try:
                changes = follower.follow(changes)
            except Exception as error:
                if may_pass(error):
                    raise
                self._halt(name, as_viewkeeper_error(error, f"maintaining {name}").detail)
        size = self._states_per_commit or len(changes)
        for first in range(0, len(changes), size):
            part = changes[first : first + size]
            self._store.commit(self.name, part, partial(self._figures, part))
            self._refresh_seconds = self._seconds_of(part)
            if self._recorder is not None:
                self._recorder.installed(self.name, part)
            self.commits += 1
            self.states += len(part)
            for change in part:
                self.vector.update(change.vector)
                for transaction in change.transactions:
                    self._done((transaction.source, transaction.position))
        if len(changes) >= MANY_STATES and not self._states_per_commit:
            now = monotonic()
            self._next_commit = now + min(REST * (now - begin), LONGEST_REST)
        self._most_in_progress = min(2 * self._most_in_progress, MOST_IN_PROGRESS)
        for one in self.views.values():
            one.new_state()
        for view, rows in self._last.items():
            # Added up first: each sum with a view copies it.
            new = (delta for change in changes for delta in change.deltas.get(view, ()))
            self._last[view] = rows + self._make_zset(
                rows.columns, (entry for delta in new for entry in delta.weights())
            )
        # On Spark a sum would grow with every state: the stored view is read again instead.
        for held in (self._contents, self._last):
            for view in [view for view, rows in held.items() if not getattr(rows, "in_memory", True)]:
                del held[view]
        return True

    def _rests(self) -> bool:
        """Whether the next commit is not yet to be made."""
        full = any(rows >= self._most_in_progress for rows in self._rows_in_progress.values())
        return not full and monotonic() < self._next_commit

    def _seconds_of(self, changes: Sequence[GroupChange]) -> float:
        """Since the first transaction of these was delivered."""
        now = monotonic()
        places = [(one.source, one.position) for change in changes for one in change.transactions]
        return now - min((self._since.get(place, now) for place in places), default=now)

    def _figures(self, changes: Sequence[GroupChange]) -> dict[str, Any]:
        """What a commit is told to remember of how it came about."""
        queries = sum(channel.traffic.queries for channel in self.channels.values())
        since_last, self._queries_told = queries - self._queries_told, queries
        return {
            "transactions": sum(len(change.transactions) for change in changes),
            "states": len(changes),
            "queries": since_last,
            "seconds": round(self._seconds_of(changes), 4),
        }

    def _done(self, place: Place) -> None:
        source, position = place
        self._rows_in_progress[source] -= rows_in(self._in_progress.pop(place))
        self._missing.done(place)
        self._since.pop(place, None)
        # Almost always the oldest: a source's transactions become part of states in their order.
        self._in_progress_of[source].remove(position)
