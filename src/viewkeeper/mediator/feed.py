"""One source at work: its stream, kept until every group has taken it, and readings of it.

    source ── events ──▶ log ──▶ a subscription per group, each with a place of its own
    source ◀── fetches ── readings, in threads of their own

The log does not grow without bound: while the slowest subscription is far behind, the stream is not read on, and what
happened meanwhile stays where it is durable, at the source. A reading that is under way is the exception: its answer
belongs behind everything that it shows, so that much must come.

A source that cannot be reached is tried again, with growing pauses, for as long as it takes. A group that begins again
at its last commit may need events that the log no longer has, or a stream that has failed: then the source is read
again from there, and the others pass over what they have taken.
"""

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from viewkeeper.clock import monotonic
from viewkeeper.errors import (
    PositionLost,
    ProtocolError,
    SourceError,
    SourceUnavailable,
    ViewkeeperError,
    as_viewkeeper_error,
)
from viewkeeper.mediator.report import SourceReport
from viewkeeper.mediator.stream import Read, Stream, Subscription
from viewkeeper.messages import Fetch, Position
from viewkeeper.sources.base import PATIENCE, Batch, Source

MOST_WAITING = 20_000
"""Rows of transactions that the slowest subscription has not taken, beyond which the source is not read on."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 15.0
READERS = 4


@dataclass(frozen=True)
class Trouble:
    """A source that cannot be reached: why, since when and until when it is let be (on the monotonic clock), and how
    often it was tried."""

    reason: str
    since: float
    attempts: int
    next_try: float


class Feed(Stream):
    """The stream of one source from a position on, and its readings. Start it, and close it."""

    def __init__(self, source: Source, after: Position | None, *, most_waiting: int = MOST_WAITING) -> None:
        super().__init__(source.name, after)
        self.source = source
        self.trouble: Trouble | None = None
        self._failed_before: ViewkeeperError | None = None
        """the failure after which it is read again, until that goes well"""
        self.retained: int | None = None
        self._after = after
        self._most_waiting = most_waiting
        self._readings = 0
        self._stop = threading.Event()
        self._turn = threading.Event()
        """ends one run through the source's stream"""
        self._reader: threading.Thread | None = None
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix=f"reading of {source.name}")

    def start(self) -> None:
        # Before the thread does: a reading must not take the end of an earlier stream for the end of this one.
        self.source.stream_starts(self._after)
        self._reader = threading.Thread(target=self._read, name=f"stream of {self.source.name}", daemon=True)
        self._reader.start()

    def close(self) -> None:
        """Stop; what is under way ends first."""
        self._stop.set()
        with self._news:
            self._turn.set()
            self._news.notify_all()
        self._readers.shutdown(wait=True, cancel_futures=True)
        if self._reader is not None:
            self._reader.join()

    # --- the stream ---

    def subscribe(
        self, after: Position, wake: Callable[[], None], relations: Collection[str] | None = None
    ) -> Subscription:
        self.source.will_start_behind(after)
        with self._news:
            if self._reader is not None and (after < self._forgotten or self.failure is not None):
                self._read_again(after)
            return super().subscribe(after, wake, relations)

    def _read_again(self, after: Position) -> None:
        """Read the source from a position on, or from that of the slowest subscription if it is before."""
        assert self._reader is not None
        for one in self._subscriptions:
            # No transaction may span the place of another group when it comes again.
            self.source.will_start_behind(one.position)
        self._begin_again(min([after, *(one.position for one in self._subscriptions)]))
        self._after = self.upto
        if self.failure is None:
            self._turn.set()
            self._news.notify_all()
            return
        # Its thread has ended, or is about to.
        self._reader.join()
        self._failed_before, self.failure = self.failure, None
        self.start()

    def _next_turn(self) -> Position | None:
        with self._news:
            self._turn = threading.Event()
            if self._stop.is_set():
                self._turn.set()
            return self._after

    def _read(self) -> None:
        pause, attempts, since = FIRST_PAUSE, 0, monotonic()
        while not self._stop.is_set():
            after = self._next_turn()
            try:
                for batch in self.source.transactions(after, self._turn):
                    if not self.begun:
                        self._refuse_positions_ahead()
                    # It is there, even if what it tells has to wait.
                    pause, attempts, self.trouble = FIRST_PAUSE, 0, None
                    self.append(batch)
                if self._turn.is_set():
                    continue
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
        # Whoever sees the failure may wait for this thread with the lock in hand: nothing that follows needs it.
        with self._news:
            self.failure = error
            self.source.stream_broke(error)
            self._news.notify_all()
        self._wake()

    def append(self, batch: Batch) -> None:
        """The next events have come; more of them wait while the slowest subscription is far behind."""
        with self._news:
            if self._turn.is_set():
                # It comes again, if it is still wanted.
                return
            super().append(batch)
            self._after, self._failed_before = self.upto, None
            self._news.wait_for(self._may_read_on)

    def _may_read_on(self) -> bool:
        return self._turn.is_set() or self._readings > 0 or self._rows_behind() < self._most_waiting

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
        trouble, failure = self.trouble, self.failure or self._failed_before
        return SourceReport(
            self.source.name,
            self.upto,
            self._behind(),
            trouble.reason if trouble else None,
            monotonic() - trouble.since if trouble else 0.0,
            trouble.attempts if trouble else 0,
            max(trouble.next_try - monotonic(), 0.0) if trouble else 0.0,
            self.retained,
            failure.detail if failure else None,
            self.transactions,
        )

    def end(self) -> Position:
        return self.source.end()

    def ask_end(self, reply: Callable[["Position | ViewkeeperError"], None]) -> None:
        trouble = self.trouble
        if trouble is not None:
            reply(SourceUnavailable(trouble.reason))
            return
        with suppress(RuntimeError):
            # Closed in the meantime: no reply is expected any more.
            self._readers.submit(self._ask_end, reply)

    def _ask_end(self, reply: Callable[["Position | ViewkeeperError"], None]) -> None:
        try:
            reply(self.end())
        except Exception as error:
            reply(as_viewkeeper_error(error, f"asking {self.source.name} how far it is"))

    # --- readings ---

    def ask(self, fetches: Sequence[Fetch], reply: Callable[["Read | ViewkeeperError"], None]) -> None:
        """Read; the reply comes from another thread. It is tried again while the source cannot be reached."""
        with self._news:
            self._readings += 1
            self._news.notify_all()
        try:
            self._readers.submit(self._ask, tuple(fetches), reply)
        except RuntimeError:
            # Closed in the meantime: no reply is expected any more.
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
