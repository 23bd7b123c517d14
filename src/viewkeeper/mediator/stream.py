"""The stream of one source, kept until every group has taken it; no threads of its own.

    source ── events ──▶ log ──▶ a subscription per group, each with a place of its own

Who reads the source appends to it (`feed.py` in a thread, the simulator event by event), and answers questions.
"""

import threading
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate

from viewkeeper.algebra.zset import Row
from viewkeeper.errors import PositionLost, ProtocolError, ViewkeeperError
from viewkeeper.messages import Fetch, Position, Transaction
from viewkeeper.sources.base import Batch, Disruption

Event = Transaction | Disruption
Weights = list[tuple[Row, int]]

TRIMMED = 4_096
"""Rows that every subscription has taken and that the log may still hold."""


@dataclass(frozen=True)
class Read:
    """What a reading gave: the rows of each fetch with their weights, exact at a position."""

    position: Position
    rows: tuple[Weights, ...]


class Stream(ABC):
    """The events of one source from a position on, and a place in them for every subscription."""

    def __init__(self, name: str, after: Position | None) -> None:
        self.name = name
        self.upto: Position = after or ""
        """everything up to here has come"""
        self.failure: ViewkeeperError | None = None
        """why there will be no more events, if so"""
        self.begun = False
        """whether the stream has said anything yet, if only that nothing has happened"""
        self.transactions = 0
        """that have come and concern a subscription, each counted once"""
        self._news = threading.Condition()
        self._log: list[Event] = []
        self._rows: list[int] = []
        """for each event of the log, how many rows have come up to its end"""
        self._dropped = 0
        self._dropped_rows = 0
        self._forgotten: Position = after or ""
        self._counted: Position = after or ""
        """up to here transactions are counted"""
        self._subscriptions: list[Subscription] = []

    @abstractmethod
    def ask(self, fetches: Sequence[Fetch], reply: Callable[["Read | ViewkeeperError"], None]) -> None:
        """Read everything that is asked for in one state of the source; the reply comes later."""

    def end(self) -> Position:
        """The place after everything that the source has committed by now."""
        return self.upto

    def ask_end(self, reply: Callable[["Position | ViewkeeperError"], None]) -> None:
        """The same for who must not wait: the reply may come later, or be that the source cannot be reached."""
        reply(self.end())

    def subscribe(
        self, after: Position, wake: Callable[[], None], relations: Collection[str] | None = None
    ) -> "Subscription":
        """A place in the stream, behind a position that the log still reaches back to; more to come calls `wake`.

        It is given everything; `relations` says what concerns it, None: everything."""
        with self._news:
            if after < self._forgotten:
                raise ProtocolError(f"the stream of {self.name} has been read past {after}", "start again")
            place = next((i for i, event in enumerate(self._log) if event.position > after), len(self._log))
            subscription = Subscription(self, after, self._dropped + place, wake, relations)
            self._subscriptions.append(subscription)
            return subscription

    def append(self, batch: Batch) -> None:
        """The next events have come."""
        with self._news:
            if batch.events and batch.events[0].position < self.upto:
                late = batch.events[0].position
                raise ProtocolError(f"{self.name} delivers {late} after everything up to {self.upto}")
            before = self._end_rows
            self._log.extend(batch.events)
            self._rows.extend(before + rows for rows in accumulate(map(rows_in, batch.events)))
            self.transactions += sum(
                any(one.concerned_by(event) for one in self._subscriptions)
                for event in batch.events
                if event.position > self._counted
            )
            self.upto = max(self.upto, batch.upto)
            self._counted = max(self._counted, self.upto)
            self._trim()
            self.begun = True
            self._news.notify_all()
        self._wake()

    def _behind(self) -> int:
        """Events that the slowest subscription has not taken."""
        slowest = min((subscription.place for subscription in self._subscriptions), default=self._end)
        return self._end - slowest

    def _rows_behind(self) -> int:
        """The rows of these."""
        return self._end_rows - self._rows_before(len(self._log) - self._behind())

    def _rows_before(self, place: int) -> int:
        """How many rows have come before a place in the log."""
        return self._rows[place - 1] if place else self._dropped_rows

    @property
    def _end(self) -> int:
        return self._dropped + len(self._log)

    @property
    def _end_rows(self) -> int:
        return self._rows_before(len(self._log))

    def _trim(self) -> None:
        """Forget what every subscription has taken."""
        taken = len(self._log) - self._behind()
        if self._rows_before(taken) - self._dropped_rows > TRIMMED or taken == len(self._log):
            self._forgotten = self._log[taken - 1].position if taken else self._forgotten
            self._dropped_rows = self._rows_before(taken)
            self._dropped += taken
            del self._log[:taken], self._rows[:taken]

    def _begin_again(self, after: Position) -> None:
        """The events after a position, which is no later than any subscription's, are about to be appended again. A
        subscription passes over those that it has taken."""
        self._dropped_rows = self._end_rows
        self._log.clear()
        self._rows.clear()
        self.upto = self._forgotten = after
        self.begun = False
        for subscription in self._subscriptions:
            subscription.place = self._dropped

    def _wake(self) -> None:
        for subscription in tuple(self._subscriptions):
            subscription.wake()


def rows_in(event: Event) -> int:
    """The rows that it changes, by which is counted how much waits; whatever it is, it counts as one at least."""
    return max(len(event.changes), 1) if isinstance(event, Transaction) else 1


def _standing(event: Event, position: Position) -> bool:
    """Whether it holds for who has come as far as this."""
    return isinstance(event, Disruption) and event.standing and (event.until is None or position < event.until)


class Subscription:
    """A group's place in a stream."""

    def __init__(
        self, feed: Stream, after: Position, place: int, wake: Callable[[], None], relations: Collection[str] | None
    ) -> None:
        self.feed = feed
        self._began, self._relations = after, relations
        self.position = after
        """everything up to here has been taken"""
        self.lost: PositionLost | None = None
        """why there is nothing after this position, if so"""
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
        return relations is None or bool(event.parts) or not event.relations.isdisjoint(relations)

    def take(self, most: int | None = None, until: Position | None = None) -> list[Event]:
        """The next events up to a position, or of so many rows at most but one event at least; those of one position
        stay together."""
        feed = self.feed
        with feed._news:
            begin = self.place - feed._dropped
            # The stream may begin before this subscription does: it begins where the first of them does.
            while begin < len(feed._log) and not self._is_new(feed._log[begin]):
                begin += 1
            self.place = feed._dropped + begin
            end = len(feed._log)
            if most is not None:
                end = bisect_right(feed._rows, feed._rows_before(begin) + most, lo=begin)
                end = begin + 1 if end == begin < len(feed._log) and most else end
            while begin < end < len(feed._log) and feed._log[end].position == feed._log[end - 1].position:
                end += 1
            events = feed._log[begin:end]
            if until is not None:
                keep = next((i for i, event in enumerate(events) if event.position > until), len(events))
                del events[keep:]
            self.place += len(events)
            events = [event for event in events if self._is_new(event)]
            at_end = self.place == feed._end
            last = events[-1].position if events else self.position
            self.position = max(self.position, last, min(feed.upto, until or feed.upto) if at_end or until else last)
            feed._trim()
            feed._news.notify_all()
        return events

    def _is_new(self, event: Event) -> bool:
        return event.position > self.position or _standing(event, self.position)

    def cancel(self) -> None:
        with self.feed._news:
            if self in self.feed._subscriptions:
                self.feed._subscriptions.remove(self)
            self.feed._news.notify_all()
