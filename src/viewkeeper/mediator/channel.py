"""The FIFO between one source and one group: transactions, and answers in their place among them.

    deliver every transaction up to the position of an answer, then the answer, then what comes after

Between a question and its answer nothing is delivered, for the place of the answer is not known yet. What the group
asks meanwhile waits, and goes as one message with the next reading (section 7 of the Strobe paper): all of its answers
then have one position.
"""

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from viewkeeper.errors import ViewkeeperError
from viewkeeper.mediator.stream import Event, Read, Stream, Subscription, Weights
from viewkeeper.messages import Fetch, Position, Query

Reply = Callable[[list[Any]], None]
"""Takes a Z-set for each fetch of a question."""
Learn = Callable[[Query, int, int], None]
MakeZSet = Callable[[tuple[str, ...], Weights], Any]


@dataclass
class Traffic:
    """What went over the channel."""

    transactions: int = 0
    merged: int = 0
    messages: int = 0
    """readings that were asked for"""
    queries: int = 0
    rows_sent: int = 0
    rows_received: int = 0


@dataclass(frozen=True)
class _Question:
    query: Query
    fetches: tuple[Fetch, ...]
    reply: Reply
    learn: Learn


class Channel:
    """One group's side of one source. Everything but `_answered` runs in the thread of the group."""

    def __init__(
        self,
        feed: Stream,
        after: Position,
        make_zset: MakeZSet,
        wake: Callable[[], None],
        relations: Collection[str] | None = None,
    ) -> None:
        self.feed = feed
        self.subscription: Subscription = feed.subscribe(after, wake, relations)
        self.traffic = Traffic()
        self._make_zset = make_zset
        self._wake = wake
        self._waiting: list[_Question] = []
        self._out: list[_Question] = []
        self._answer: Read | ViewkeeperError | None = None
        self._arrival = threading.Lock()

    @property
    def source(self) -> str:
        return self.feed.name

    @property
    def quiet(self) -> bool:
        """No question is out or waits to be sent."""
        return not self._out and not self._waiting

    def ask(self, query: Query, fetches: tuple[Fetch, ...], reply: Reply, learn: Learn) -> None:
        """A question; it is sent with the next message. `learn` is told how many keys went out and rows came back."""
        self.traffic.queries += 1
        self._waiting.append(_Question(query, fetches, reply, learn))

    def send(self) -> bool:
        """Send what waits, unless an answer is still to come."""
        if self._out or not self._waiting:
            return False
        self._out, self._waiting = self._waiting, []
        fetches = [fetch for question in self._out for fetch in question.fetches]
        self.traffic.messages += 1
        self.traffic.rows_sent += sum(fetch.shipped for fetch in fetches)
        self.feed.ask(fetches, self._answered)
        return True

    def _answered(self, answer: Read | ViewkeeperError) -> None:
        with self._arrival:
            self._answer = answer
        self._wake()

    def receive(self, deliver: Callable[[Event], None], most: int | None) -> bool:
        """Deliver what has come, in its order; whether anything had."""
        if self.subscription.lost is not None:
            raise self.subscription.lost
        if not self._out:
            return self._deliver(self.subscription.take(most), deliver)
        with self._arrival:
            answer = self._answer
        if answer is None:
            return False
        if isinstance(answer, ViewkeeperError):
            self._answer = None
            raise answer
        if self.feed.upto < answer.position:
            return False
        self._answer = None
        self._deliver(self.subscription.take(until=answer.position), deliver)
        out, self._out = self._out, []
        rows = iter(answer.rows)
        for question in out:
            fetched = [self._make_zset(fetch.columns, next(rows)) for fetch in question.fetches]
            received = sum(zset.size() for zset in fetched)
            self.traffic.rows_received += received
            question.learn(question.query, sum(fetch.shipped for fetch in question.fetches), received)
            question.reply(fetched)
        return True

    def _deliver(self, events: list[Event], deliver: Callable[[Event], None]) -> bool:
        for event in events:
            deliver(event)
        return bool(events)

    def close(self) -> None:
        self.subscription.cancel()
