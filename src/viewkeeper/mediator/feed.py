"""One source at work: its stream, kept until every group has taken it, and readings of it.

    source ── events ──▶ log ──▶ a subscription per group, each with a place of its own
    source ◀── fetches ── readings, in threads of their own

The log does not grow without bound: while the slowest subscription is far behind, the stream is not read on, and what
happened meanwhile stays where it is durable, at the source. A reading that is under way is the exception: its answer
belongs behind everything that it shows, so that much must come.

A source that cannot be reached is tried again, with growing pauses, for as long as it takes.
"""

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from viewkeeper.algebra.zset import Row
from viewkeeper.clock import monotonic
from viewkeeper.errors import PositionLost, ProtocolError, SourceError, SourceUnavailable, ViewkeeperError
from viewkeeper.mediator.report import SourceReport
from viewkeeper.messages import Fetch, Position, Transaction
from viewkeeper.sources.base import PATIENCE, Batch, Disruption, Source

Event = Transaction | Disruption
Weights = list[tuple[Row, int]]

MOST_WAITING = 20_000
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 15.0
READERS = 4
TRIMMED = 4_096


@dataclass(frozen=True)
class Read:
    """What a reading gave: the rows of each fetch with their weights, exact at a position."""

    position: Position
    rows: tuple[Weights, ...]


@dataclass(frozen=True)
class Trouble:
    """A source that cannot be reached: why, since when and until when it is let be (on the monotonic clock), and how
    often it was tried."""

    reason: str
    since: float
    attempts: int
    next_try: float


class Feed:
    """The stream of one source from a position on, and its readings. Start it, and close it."""

    def __init__(self, source: Source, after: Position | None, *, most_waiting: int = MOST_WAITING) -> None:
        self.source = source
        self.upto: Position = after or ""
        self.trouble: Trouble | None = None
        self.failure: ViewkeeperError | None = None
        """why there will be no more events, if so"""
        self.retained: int | None = None
        self.transactions = 0
        """that have come and concern a subscription, each counted once"""
        self._after = after
        self._most_waiting = most_waiting
        self._news = threading.Condition()
        self.begun = False
        """whether the stream has told anything yet, if only that nothing has happened"""
        self._log: list[Event] = []
        self._dropped = 0
        self._forgotten: Position = after or ""
        self._subscriptions: list[Subscription] = []
        self._readings = 0
        self._stop = threading.Event()
        self._reader = threading.Thread(target=self._read, name=f"stream of {source.name}", daemon=True)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix=f"reading of {source.name}")

    def start(self) -> None:
        # Before the thread does: a reading must not take the end of an earlier stream for the end of this one.
        self.source.stream_starts(self._after)
        self._reader.start()

    def close(self) -> None:
        """Stop; what is under way ends first."""
        self._stop.set()
        with self._news:
            self._news.notify_all()
        self._readers.shutdown(wait=True, cancel_futures=True)
        if self._reader.is_alive():
            self._reader.join()

    # --- the stream ---

    def subscribe(
        self, after: Position, wake: Callable[[], None], relations: Collection[str] | None = None
    ) -> "Subscription":
        """A place in the stream, behind a position that the log still reaches back to; more to come calls `wake`.

        It is given everything; `relations` says what concerns it, None: everything."""
        self.source.will_start_behind(after)
        with self._news:
            if after < self._forgotten:
                raise ProtocolError(f"the stream of {self.source.name} has been read past {after}", "start again")
            place = next((i for i, event in enumerate(self._log) if event.position > after), len(self._log))
            subscription = Subscription(self, after, self._dropped + place, wake, relations)
            self._subscriptions.append(subscription)
            return subscription

    def _read(self) -> None:
        pause, attempts, since = FIRST_PAUSE, 0, monotonic()
        while not self._stop.is_set():
            try:
                for batch in self.source.transactions(self._after, self._stop):
                    if not self.begun:
                        self._refuse_positions_ahead()
                    # It is there, even if what it tells has to wait.
                    pause, attempts, self.trouble = FIRST_PAUSE, 0, None
                    self._append(batch)
                if self._stop.is_set():
                    break
                raise SourceUnavailable(f"the stream of {self.source.name} ended")
            except SourceUnavailable as error:
                self.source.stream_broke(error)
                since = monotonic() if attempts == 0 else since
                attempts += 1
                self.trouble = Trouble(error.detail, since, attempts, monotonic() + pause)
                self._wake()
                self._stop.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            except PositionLost as error:
                if self.begun or not self._leave_behind(error):
                    self._fail(error)
                    return
            except ViewkeeperError as error:
                self._fail(error)
                return
            except Exception as error:
                self._fail(ProtocolError(f"the stream of {self.source.name} failed: {error!r}"))
                return
        self.source.stream_broke(SourceUnavailable("it was stopped"))

    def _leave_behind(self, error: PositionLost) -> bool:
        """Give up those that are farthest behind, if others are not: what these need may still be there."""
        with self._news:
            ahead = [one.position for one in self._subscriptions if one.position > (self._after or "")]
            if not ahead:
                return False
            for one in self._subscriptions:
                if one.position not in ahead:
                    one.lost = error
            self.upto = self._after = self._forgotten = min(ahead)
        self._wake()
        return True

    def _refuse_positions_ahead(self) -> None:
        """The source sees whether it has what the first of all needs. A group may be where it has never come to: it
        was reset or put back from a backup, and views of other groups were reloaded since."""
        ahead = [one for one in self._subscriptions if one.position > self.upto]
        if not ahead:
            return
        end = self.source.end()
        for one in ahead:
            if one.position > end:
                one.lost = PositionLost(
                    f"{self.source.name} has not come as far as {one.position}: it was reset or put back from a backup",
                    "reload the views over it",
                )

    def _fail(self, error: ViewkeeperError) -> None:
        self.failure = error
        self.source.stream_broke(error)
        with self._news:
            self._news.notify_all()
        self._wake()

    def _append(self, batch: Batch) -> None:
        with self._news:
            if batch.events and batch.events[0].position < self.upto:
                late = batch.events[0].position
                raise ProtocolError(f"{self.source.name} tells of {late} after it had told all up to {self.upto}")
            self._log.extend(batch.events)
            self.transactions += sum(
                any(one.concerned_by(event) for one in self._subscriptions) for event in batch.events
            )
            self.upto = self._after = max(self.upto, batch.upto)
            self._trim()
            self.begun = True
            self._news.notify_all()
        self._wake()
        with self._news:
            self._news.wait_for(self._may_read_on)

    def _may_read_on(self) -> bool:
        return self._stop.is_set() or self._readings > 0 or self._behind() < self._most_waiting

    def _behind(self) -> int:
        slowest = min((subscription.place for subscription in self._subscriptions), default=self._end)
        return self._end - slowest

    @property
    def _end(self) -> int:
        return self._dropped + len(self._log)

    def _trim(self) -> None:
        """Forget what every subscription has taken."""
        taken = len(self._log) - self._behind()
        if taken > TRIMMED or taken == len(self._log):
            self._forgotten = self._log[taken - 1].position if taken else self._forgotten
            del self._log[:taken]
            self._dropped += taken

    def _wake(self) -> None:
        for subscription in tuple(self._subscriptions):
            subscription.wake()

    def measure(self) -> None:
        """Ask how much the source keeps for us."""
        try:
            self.retained = self.source.retained() if self.trouble is None else None
        except SourceError:
            self.retained = None

    def wait_until(self, position: Position) -> None:
        """Until the log has everything up to a place; SourceUnavailable if the stream does not get there."""
        self.source.wait_for_stream(position)
        # The source has told it by now, but it may still be on its way into the log.
        with self._news:
            self._news.wait_for(
                lambda: self.upto >= position or self._stop.is_set() or self.failure is not None, PATIENCE
            )
            if self.upto < position:
                raise SourceUnavailable(f"the stream of {self.source.name} has stopped before {position}")

    def report(self) -> SourceReport:
        trouble = self.trouble
        return SourceReport(
            self.source.name,
            self.upto,
            self._behind(),
            trouble.reason if trouble else None,
            monotonic() - trouble.since if trouble else 0.0,
            trouble.attempts if trouble else 0,
            max(trouble.next_try - monotonic(), 0.0) if trouble else 0.0,
            self.retained,
            self.failure.detail if self.failure else None,
            self.transactions,
        )

    # --- readings ---

    def ask(self, fetches: Sequence[Fetch], reply: Callable[["Read | ViewkeeperError"], None]) -> None:
        """Read; the reply comes from another thread. It is tried again while the source cannot be reached."""
        with self._news:
            self._readings += 1
            self._news.notify_all()
        try:
            self._readers.submit(self._ask, tuple(fetches), reply)
        except RuntimeError:
            # Closed in the meantime: nobody waits for the reply any more.
            self._read_done()

    def _ask(self, fetches: tuple[Fetch, ...], reply: Callable[["Read | ViewkeeperError"], None]) -> None:
        result: Read | ViewkeeperError
        try:
            result = self.read_until_there(fetches)
        except ViewkeeperError as error:
            result = error
        except Exception as error:
            result = ProtocolError(f"a reading of {self.source.name} failed: {error!r}")
        finally:
            self._read_done()
        reply(result)

    def _read_done(self) -> None:
        with self._news:
            self._readings -= 1

    def read_until_there(self, fetches: Sequence[Fetch]) -> Read:
        """Read, however long the source cannot be reached; SourceError if it is stopped or will not work."""
        pause = FIRST_PAUSE
        while True:
            try:
                with self.source.reading(fetches) as reading:
                    rows = tuple(
                        [(row, 1) for batch in batches for row in batch] + list(corrections)
                        for batches, corrections in zip(reading.rows, reading.corrections, strict=True)
                    )
                    position = reading.position
                # Until then it counts as under way: what it shows must come, whoever is behind.
                self.wait_until(position)
                return Read(position, rows)
            except SourceUnavailable:
                if self.failure is not None:
                    raise self.failure from None
                if self._stop.wait(pause):
                    raise SourceError(f"reading {self.source.name} was stopped") from None
                pause = min(pause * 2, LONGEST_PAUSE)


def _standing(event: Event, position: Position) -> bool:
    """Whether it holds for who has come as far as this."""
    return isinstance(event, Disruption) and event.standing and (event.until is None or position < event.until)


class Subscription:
    """A group's place in a stream."""

    def __init__(
        self, feed: Feed, after: Position, place: int, wake: Callable[[], None], relations: Collection[str] | None
    ) -> None:
        self.feed = feed
        self._began, self._relations = after, relations
        self.position = after
        """everything up to here has been taken"""
        self.lost: PositionLost | None = None
        """why there is nothing behind this position, if so"""
        self.place = place
        self.wake = wake

    @property
    def waiting(self) -> int:
        """Events that have come and were not taken yet. From any thread."""
        return max(self.feed._end - self.place, 0)

    def concerned_by(self, event: Event) -> bool:
        """Whether it is a transaction behind where this began, and changes a relation of it. A part of a global
        transaction always is one: the others are waited for."""
        if not isinstance(event, Transaction) or event.position <= self._began:
            return False
        relations = self._relations
        return (
            relations is None
            or event.global_id is not None
            or any(change.relation in relations for change in event.changes)
        )

    def take(self, most: int | None = None, until: Position | None = None) -> list[Event]:
        """The next events up to a position, at most so many; those of one position stay together."""
        feed = self.feed
        with feed._news:
            begin = self.place - feed._dropped
            end = len(feed._log) if most is None else min(begin + most, len(feed._log))
            while begin < end < len(feed._log) and feed._log[end].position == feed._log[end - 1].position:
                end += 1
            events = feed._log[begin:end]
            if until is not None:
                keep = next((i for i, event in enumerate(events) if event.position > until), len(events))
                del events[keep:]
            self.place += len(events)
            # The stream may begin before this subscription does: it begins where the first of them does.
            events = [event for event in events if event.position > self.position or _standing(event, self.position)]
            at_end = self.place == feed._end
            last = events[-1].position if events else self.position
            self.position = max(self.position, last, min(feed.upto, until or feed.upto) if at_end or until else last)
            feed._trim()
            feed._news.notify_all()
        return events

    def cancel(self) -> None:
        with self.feed._news:
            if self in self.feed._subscriptions:
                self.feed._subscriptions.remove(self)
            self.feed._news.notify_all()
