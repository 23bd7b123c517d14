"""The world around a group of the live mediator: sources that commit, captures that follow them, restarts.

    source ── commits ──▶ capture ── transactions ──▶ Stream ──▶ Channel ──▶ Group ──▶ store
    source ◀── fetches ── Stream ◀── Channel ◀── Group                readings are exact at a position

Stream, Channel and Group are the mediator's own; nothing here does their work. A merging capture delivers several
commits as one transaction, as those of SQLite and of files do; it never spans the position of a reading, nor one that a
group starts from. A restart takes a new group from what the store has: transactions come again from its vector, perhaps
merged in another way, and questions that were out are lost.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as with_default

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.clock import Random
from viewkeeper.errors import ViewkeeperError
from viewkeeper.mediator.alignment import Place
from viewkeeper.mediator.group import Group
from viewkeeper.mediator.group_plan import GroupPlan
from viewkeeper.mediator.stream import Read, Stream
from viewkeeper.messages import Change, Fetch, Transaction, position
from viewkeeper.sim.live_store import Crash, Crashed, SimulatedStore
from viewkeeper.sim.outcome import Messages
from viewkeeper.sim.random_updates import Part, Script
from viewkeeper.sim.trace import GROUP, Observer
from viewkeeper.sim.world import Event, Happening
from viewkeeper.sources.base import GLOBAL_TX, Batch, as_transaction
from viewkeeper.sources.memory import MemorySource

Reply = Callable[[Read | ViewkeeperError], None]


class SimulatedStream(Stream):
    """A stream to which the world appends; questions wait in it until the source reads for them."""

    def __init__(self, name: str, after: str) -> None:
        super().__init__(name, after)
        self.questions: deque[tuple[Sequence[Fetch], Reply]] = deque()
        self.replies: deque[tuple[Read, Reply]] = deque()

    def ask(self, fetches: Sequence[Fetch], reply: Reply) -> None:
        self.questions.append((tuple(fetches), reply))


@dataclass
class _Site:
    """A source, everything that it has committed, and how far its capture has come."""

    source: MemorySource
    script: deque[Part]
    commits: list[Part] = with_default(default_factory=list)
    captured: int = 0
    read_at: set[int] = with_default(default_factory=set)
    """positions of readings that the capture has not reached"""

    def transaction(self, first: int, last: int) -> Transaction:
        """The commits numbered first to last, as a capture delivers them."""
        changes: list[Change] = []
        for part in self.commits[first - 1 : last]:
            if part.global_id is not None:
                mark = (part.global_id, part.source, ",".join(part.participants))
                changes.append(Change(f"{part.source}.{GLOBAL_TX}", mark, 1))
            changes += part.changes
        return as_transaction(self.source.name, position(last), changes, merged=first < last)


class LiveWorld:
    """Everything around a group. `perform` lets one event happen."""

    def __init__(
        self,
        sources: Mapping[str, MemorySource],
        script: Script,
        plan: GroupPlan,
        store: SimulatedStore,
        *,
        merge: bool = False,
        restarts: int = 0,
        parts_together: bool = True,
        random: Random,
        observer: Observer,
    ) -> None:
        self.store = store
        self.messages = Messages()
        self.committed: list[Transaction] = []
        """the commits of all sources in their order, each by itself"""
        self.committed_captures: list[Transaction] = []
        """what the captures delivered and the group committed, in its order"""
        self._captures: dict[Place, Transaction] = {}
        self._sites = {name: _Site(source, script[name]) for name, source in sources.items()}
        self._plan = plan
        self._merge = merge
        self._restarts = restarts
        self._parts_together = parts_together
        self._random = random
        self._observer = observer
        self._streams: dict[str, SimulatedStream] = {}
        self._start()

    @property
    def in_progress(self) -> int:
        """Transactions that were delivered and are part of no state."""
        return self._group.report().in_progress

    def _start(self) -> None:
        """The warehouse begins to work, from what is stored."""
        vector = dict(self.store.vector)
        self._streams = {source: SimulatedStream(source, vector[source]) for source in self._plan.sources}
        for source in self._streams:
            site = self._sites[source]
            site.captured = int(vector[source])
            site.read_at.clear()
        self._group = Group(self._started_at(vector), self._streams, MemoryZSet, self.store)
        self._stirred = True

    def _started_at(self, vector: Mapping[str, str]) -> GroupPlan:
        plan = self._plan
        return GroupPlan(plan.name, plan.views, vector, most_behind_answers=plan.most_behind_answers)

    # --- events ---

    def enabled(self) -> list[Event]:
        """What can happen next, in a fixed order."""
        events = []
        for name, site in self._sites.items():
            if site.script and self._can_commit(site.script[0]):
                events.append(Event(Happening.COMMIT, name))
            stream = self._streams.get(name)
            if stream is None:
                continue
            if site.captured < len(site.commits):
                events.append(Event(Happening.CAPTURE, name))
            if stream.questions:
                events.append(Event(Happening.ANSWER, name))
            if stream.replies:
                events.append(Event(Happening.DELIVER_ANSWER, name))
        if self._stirred:
            events.append(Event(Happening.STEP, GROUP))
        if self._restarts:
            events.append(Event(Happening.RESTART, GROUP))
        return events

    def perform(self, event: Event) -> None:
        """Let one event happen."""
        match event.happening:
            case Happening.COMMIT:
                self._commit(self._sites[event.source].script[0])
            case Happening.CAPTURE:
                self._capture(event.source)
            case Happening.ANSWER:
                self._read(event.source)
            case Happening.DELIVER_ANSWER:
                read, reply = self._streams[event.source].replies.popleft()
                self._observer.reply_delivered(event.source, read.position)
                reply(read)
                self._stirred = True
            case Happening.STEP:
                self._step()
            case Happening.RESTART:
                self._restart(self._random.choice(tuple(Crash)))

    def _can_commit(self, part: Part) -> bool:
        """A global transaction commits everywhere at once: it waits until it is next at every participant."""
        if part.global_id is None or not self._parts_together:
            return True
        heads = [self._sites[participant].script for participant in part.participants]
        return all(head and head[0].global_id == part.global_id for head in heads)

    def _commit(self, part: Part) -> None:
        together = part.global_id is not None and self._parts_together
        for source in part.participants if together else (part.source,):
            site = self._sites[source]
            own = site.script.popleft()
            site.source.commit(own.changes)
            site.commits.append(own)
            transaction = site.transaction(len(site.commits), len(site.commits))
            self.committed.append(transaction)
            self._observer.committed(transaction)

    def _capture(self, source: str) -> None:
        """The capture delivers the next commit, or several as one."""
        site = self._sites[source]
        first = last = site.captured + 1
        if self._merge:
            furthest = min([len(site.commits), *(place for place in site.read_at if place > site.captured)])
            last = self._random.randint(first, furthest)
        transaction = self._captures[source, position(last)] = site.transaction(first, last)
        site.captured = last
        self._observer.captured(transaction, last - first + 1)
        self._streams[source].append(Batch([transaction], transaction.position))
        self._stirred = True

    def _read(self, source: str) -> None:
        """The source reads for a message, all of it in the state that it is in."""
        site, stream = self._sites[source], self._streams[source]
        fetches, reply = stream.questions.popleft()
        now = len(site.commits)
        site.read_at.add(now)
        rows = site.source.read(fetches)
        self._observer.read(source, fetches, rows)
        stream.replies.append((Read(position(now), tuple(list(zset.weights()) for zset in rows)), reply))

    def _step(self) -> None:
        states = len(self.store.states)
        try:
            self._stirred = self._group.step()
        except Crashed:
            self._restarts -= 1
            self._new_states(states)
            self._new_life(self.store.crash or Crash.KILLED)
            return
        self._new_states(states)

    def _new_states(self, since: int) -> None:
        for number in range(since, len(self.store.states)):
            self._observer.new_state(number, self.store.states[number])
        new = self.store.places[len(self.committed_captures) :]
        self.committed_captures += [self._captures[place] for place in new]

    def _restart(self, crash: Crash) -> None:
        if crash in (Crash.BEFORE_COMMIT, Crash.AFTER_COMMIT):
            # It happens in the step that commits next; another one may come before.
            if self.store.crash is None and self._stirred:
                self.store.crash = crash
                return
            crash = Crash.KILLED
        if crash is Crash.STOPPED:
            self._stop()
        self._restarts -= 1
        self._new_life(crash)

    def _stop(self) -> None:
        stopping = threading.Event()
        stopping.set()
        self._group.run(stopping)
        if self._group.failure is not None:
            raise self._group.failure

    def _new_life(self, crash: Crash) -> None:
        self._count_messages()
        self.store.crash = None
        self._observer.restarted(crash, self.store.vector)
        self._start()

    def _count_messages(self) -> None:
        for channel in self._group.channels.values():
            self.messages.queries += channel.traffic.queries
            self.messages.answers += channel.traffic.messages
            self.messages.rows += channel.traffic.rows_sent + channel.traffic.rows_received

    def finish(self) -> None:
        """Nothing can happen any more."""
        self._count_messages()
