"""One source at work: back-pressure, outages, places in its stream."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from live_memory import LiveMemorySource

from viewkeeper.errors import PositionLost, ProtocolError, SourceUnfit, ViewkeeperError
from viewkeeper.mediator.feed import Feed
from viewkeeper.mediator.stream import TRIMMED, Event, Read, rows_in
from viewkeeper.messages import Change, Fetch, Position, position
from viewkeeper.sources.base import Batch, Disruption
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import Operand
from waiting import until

NUMBERS = Relation("x.numbers", "x", ("n",), ("BIGINT",), ("n",))
ALL = Fetch((Operand(0, "r", NUMBERS),), ("r.n",))


def numbers(count: int = 0) -> LiveMemorySource:
    source = LiveMemorySource("x", NUMBERS)
    write(source, count)
    return source


def write(source: LiveMemorySource, count: int) -> None:
    first = int(source.end())
    for number in range(first, first + count):
        source.commit(Change("x.numbers", (number,), 1))


@contextmanager
def fed(source: LiveMemorySource, after: int = 0, **options: int) -> Iterator[Feed]:
    feed = Feed(source, position(after), **options)
    try:
        yield feed
    finally:
        if feed._reader is None:
            feed.start()
        source.open_gate.set()
        feed.close()


class Replies:
    """What readings have brought."""

    def __init__(self) -> None:
        self.all: list[Read | ViewkeeperError] = []

    def __call__(self, reply: Read | ViewkeeperError) -> None:
        self.all.append(reply)


# --- counting ---


def test_a_transaction_is_counted_once_and_if_it_concerns_a_group() -> None:
    source = numbers(10)
    with fed(source) as feed:
        ahead = feed.subscribe(position(4), lambda: None, {"x.numbers"})
        further = feed.subscribe(position(7), lambda: None, {"x.numbers", "x.letters"})
        feed.subscribe(position(0), lambda: None, {"x.letters"})
        feed.start()
        until(lambda: feed.upto == position(10))
        assert feed.report().transactions == 6
        assert (len(ahead.take()), len(further.take())) == (6, 3)


# --- back-pressure ---


def test_the_log_stays_bounded_while_a_group_is_stuck_and_goes_on_afterwards() -> None:
    source = numbers(5_000)
    source.batch = 100
    with fed(source, most_waiting=500) as feed:
        stuck = feed.subscribe(position(0), lambda: None)
        quick = feed.subscribe(position(0), lambda: None)
        feed.start()
        until(lambda: len(feed._log) >= 500)
        taken = len(quick.take())
        assert taken <= 600
        assert len(feed._log) <= 600, "one batch too many at most"
        assert feed.upto < position(5_000)
        events = []
        while len(events) < 5_000:
            events += stuck.take(100)
            taken += len(quick.take())
            assert len(feed._log) <= 600 + TRIMMED
        assert [int(event.position) for event in events] == list(range(1, 5_001))
        until(lambda: not feed._log or quick.take())


def test_large_transactions_count_by_their_rows() -> None:
    source = LiveMemorySource("x", NUMBERS)
    for number in range(200):
        source.commit(*(Change("x.numbers", (1_000 * number + k,), 1) for k in range(100)))
    source.batch = 2
    with fed(source, most_waiting=1_000) as feed:
        stuck = feed.subscribe(position(0), lambda: None)
        feed.start()
        until(lambda: len(feed._log) >= 10)
        events: list[Event] = []
        while len(events) < 200:
            held = [rows_in(event) for event in tuple(feed._log)]
            assert sum(held) < 1_000 + 2 * 100 + TRIMMED + 100, "one batch too many, and what is about to be forgotten"
            events += stuck.take(350)
        assert [int(event.position) for event in events] == list(range(1, 201))
        assert [int(event.position) for event in stuck.take()] == []


def test_one_transaction_is_taken_however_large_it_is() -> None:
    source = LiveMemorySource("x", NUMBERS)
    source.commit(*(Change("x.numbers", (k,), 1) for k in range(100)))
    source.commit(Change("x.numbers", (100,), 1))
    with fed(source) as feed:
        one = feed.subscribe(position(0), lambda: None)
        feed.start()
        until(lambda: feed.upto == position(2))
        assert one.take(0) == []
        assert [rows_in(event) for event in one.take(7)] == [100]
        assert [rows_in(event) for event in one.take(7)] == [1]


def test_a_reading_under_way_lifts_the_bound() -> None:
    source = numbers(3_000)
    source.batch = 100
    with fed(source, most_waiting=100) as feed:
        stuck = feed.subscribe(position(0), lambda: None)
        feed.start()
        until(lambda: feed.upto >= position(100))
        replies = Replies()
        feed.ask([ALL], replies)
        until(lambda: replies.all, "the answer")
        (answer,) = replies.all
        assert isinstance(answer, Read)
        assert answer.position == position(3_000)
        assert feed.upto >= answer.position
        assert len(stuck.take(until=answer.position)) == 3_000


def test_a_source_that_passes_before_it_tells_everything_does_not_block() -> None:
    class Ahead(LiveMemorySource):
        """It says how far it has come once, and then tells it in small batches."""

        def transactions(self, after: Position | None, stop: threading.Event) -> Iterator[Batch]:
            self.stream_starts(after)
            self.passed(self.end())
            for event in self._events:
                yield Batch([event], event.position)
            stop.wait()

    source = Ahead("x", NUMBERS)
    write(source, 50)
    with fed(source, most_waiting=5) as feed:
        stuck = feed.subscribe(position(0), lambda: None)
        feed.start()
        replies = Replies()
        feed.ask([ALL], replies)
        until(lambda: replies.all, "the answer")
        assert feed.upto == position(50)
        assert len(stuck.take()) == 50


def test_a_subscription_that_is_cancelled_holds_nobody_up() -> None:
    source = numbers(1_000)
    source.batch = 10
    with fed(source, most_waiting=50) as feed:
        stuck = feed.subscribe(position(0), lambda: None)
        quick = feed.subscribe(position(0), lambda: None)
        feed.start()
        until(lambda: feed._behind() >= 50)
        stuck.cancel()
        stuck.cancel()
        taken: list[object] = []
        until(lambda: taken.extend(quick.take()) or len(taken) == 1_000)


# --- places ---


def test_the_source_is_read_again_for_who_needs_what_is_forgotten() -> None:
    with fed(numbers(10), after=3) as feed:
        with pytest.raises(ProtocolError, match="read past"):
            feed.subscribe(position(2), lambda: None)
        first = feed.subscribe(position(3), lambda: None)
        feed.start()
        until(lambda: feed.upto == position(10))
        assert [int(event.position) for event in first.take(4)] == [4, 5, 6, 7]
        late = feed.subscribe(position(5), lambda: None)
        assert [int(event.position) for event in late.take()] == [6, 7, 8, 9, 10]
        first.take()
        assert feed.source.streams == 1
        again = feed.subscribe(position(4), lambda: None)
        assert feed.subscribe(position(10), lambda: None).take() == []
        until(lambda: feed.upto == position(10))
        assert [int(event.position) for event in again.take()] == [5, 6, 7, 8, 9, 10]
        # The others have seen it, and it is counted once.
        assert (feed.source.streams, first.take(), late.take()) == (2, [], [])
        assert feed.report().transactions == 7
        write(feed.source, 2)
        until(lambda: feed.upto == position(12))
        for one in (first, late, again):
            assert [int(event.position) for event in one.take()] == [11, 12]


def test_what_is_not_taken_yet_comes_once_when_the_source_is_read_again() -> None:
    with fed(numbers(10)) as feed:
        slow = feed.subscribe(position(3), lambda: None)
        feed.start()
        until(lambda: feed.upto == position(10))
        assert [int(event.position) for event in slow.take(2)] == [4, 5]
        again = feed.subscribe(position(1), lambda: None)
        until(lambda: feed.upto == position(10))
        assert [int(event.position) for event in slow.take(3)] == [6, 7, 8]
        assert [int(event.position) for event in slow.take()] == [9, 10]
        assert len(again.take()) == 9


def test_a_stream_that_failed_is_read_again_for_who_subscribes() -> None:
    class Refusing(LiveMemorySource):
        refuses = True

        def transactions(self, after: Position | None, stop: threading.Event) -> Iterator[Batch]:
            if self.refuses:
                raise SourceUnfit("the password is wrong")
            yield from super().transactions(after, stop)

    source = Refusing("x", NUMBERS)
    write(source, 3)
    with fed(source) as feed:
        feed.start()
        until(lambda: feed.failure)
        feed.subscribe(position(0), lambda: None).cancel()
        until(lambda: feed.failure)
        assert feed.report().failure == "the password is wrong"
        source.refuses = False
        again = feed.subscribe(position(1), lambda: None)
        until(lambda: feed.upto == position(3))
        assert (len(again.take()), feed.failure, feed.report().failure) == (2, None, None)


def test_events_of_one_position_are_taken_together() -> None:
    class Twins(LiveMemorySource):
        def transactions(self, after: Position | None, stop: threading.Event) -> Iterator[Batch]:
            self.stream_starts(after)
            events = [Disruption(f"x.{name}", position(place), "") for place in (1, 2) for name in "abc"]
            self.passed(position(2))
            yield Batch(events, position(2))
            stop.wait()

    with fed(Twins("x", NUMBERS)) as feed:
        subscription = feed.subscribe(position(0), lambda: None)
        feed.start()
        until(lambda: feed.upto == position(2))
        assert len(subscription.take(1)) == 3
        assert subscription.position == position(1)
        assert len(subscription.take(0)) == 0
        assert len(subscription.take(5)) == 3
        assert subscription.position == position(2)


def test_a_position_is_taken_without_events_too() -> None:
    source = numbers(5)
    with fed(source) as feed:
        subscription = feed.subscribe(position(0), lambda: None)
        feed.start()
        until(lambda: feed.upto == position(5))
        assert len(subscription.take(until=position(3))) == 3
        assert subscription.position == position(3)
        assert len(subscription.take(1)) == 1
        assert subscription.position == position(4)
        subscription.take()
        feed.append(Batch((), position(9)))
        assert subscription.take() == []
        assert subscription.position == position(9)


def test_a_stream_that_goes_back_is_refused() -> None:
    with fed(numbers(5)) as feed:
        feed.start()
        until(lambda: feed.upto == position(5))
        with pytest.raises(ProtocolError, match="after everything up to"):
            feed.append(Batch([Disruption("x.numbers", position(2), "")], position(6)))


# --- outages ---


class Pauses(threading.Event):
    """The stop of a feed that notes how long it was told to wait, and does not."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.all.append(timeout or 0.0)
        return super().wait(0.001)


def test_a_source_out_of_reach_is_tried_again_with_growing_pauses() -> None:
    source = numbers(5)
    source.out_of_reach = True
    with fed(source) as feed:
        pauses = feed._stop = Pauses()
        subscription = feed.subscribe(position(0), lambda: None)
        feed.start()
        until(lambda: len(pauses.all) >= 12)
        assert pauses.all[:9] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15.0]
        assert set(pauses.all[8:]) == {15.0}
        trouble = feed.trouble
        assert trouble is not None
        assert "out of reach" in trouble.reason
        assert trouble.attempts >= 12
        assert feed.report().attempts >= trouble.attempts
        source.out_of_reach = False
        until(lambda: feed.upto == position(5))
        assert feed.trouble is None
        assert len(subscription.take()) == 5
        # The next outage begins with a short pause again.
        before = len(pauses.all)
        source.out_of_reach = True
        until(lambda: len(pauses.all) > before)
        assert pauses.all[before] == 0.1


def test_a_stream_that_ends_is_opened_again_and_tells_nothing_twice() -> None:
    source = numbers(20)
    with fed(source) as feed:
        pauses = feed._stop = Pauses()
        subscription = feed.subscribe(position(0), lambda: None)
        feed.start()
        for _ in range(5):
            until(lambda: feed.upto == source.end())
            source.stream_ends = True
            before = len(pauses.all)
            until(lambda before=before: len(pauses.all) >= before + 2)
            write(source, 10)
            source.stream_ends = False
        until(lambda: feed.upto == position(70))
        assert [int(event.position) for event in subscription.take()] == list(range(1, 71))
        assert source.streams > 5


def test_a_source_that_is_back_is_no_trouble_even_if_it_must_wait() -> None:
    source = numbers(0)
    source.out_of_reach = True
    source.batch = 10
    with fed(source, most_waiting=10) as feed:
        feed.subscribe(position(0), lambda: None)
        feed._stop = Pauses()
        feed.start()
        until(lambda: feed.trouble)
        write(source, 100)
        source.out_of_reach = False
        until(lambda: feed._behind() >= 10)
        assert feed.trouble is None


def test_a_reading_is_tried_again_until_the_source_is_there() -> None:
    source = numbers(3)
    source.out_of_reach = True
    with fed(source) as feed:
        feed._stop = Pauses()
        feed.start()
        replies = Replies()
        feed.ask([ALL], replies)
        until(lambda: feed.trouble and feed.trouble.attempts > 3)
        assert replies.all == []
        source.out_of_reach = False
        until(lambda: replies.all)
        assert replies.all == [Read(position(3), (tuple_rows(3),))]  # type: ignore[arg-type]


def tuple_rows(count: int) -> list[tuple[tuple[int], int]]:
    return [((number,), 1) for number in range(count)]


@pytest.mark.parametrize("error", [SourceUnfit("no such table"), ProtocolError("nonsense")])
def test_a_reading_that_fails_for_good_says_so(error: ViewkeeperError) -> None:
    source = numbers(3)
    source.reading_fails = error
    with fed(source) as feed:
        feed.start()
        replies = Replies()
        feed.ask([ALL], replies)
        until(lambda: replies.all)
        assert replies.all == [error]


def test_any_other_error_of_a_reading_is_explained() -> None:
    source = numbers(3)
    source.reading_fails = KeyError("a bug")
    with fed(source) as feed:
        feed.start()
        replies = Replies()
        feed.ask([ALL], replies)
        until(lambda: replies.all)
        (reply,) = replies.all
        assert isinstance(reply, ProtocolError)
        assert "KeyError('a bug')" in reply.detail


def test_a_position_that_is_lost_ends_the_stream_and_every_reading() -> None:
    source = numbers(9)
    source.acknowledge(position(5))
    with fed(source, after=2) as feed:
        woken = threading.Event()
        feed.subscribe(position(2), woken.set)
        feed.start()
        assert woken.wait(20)
        assert isinstance(feed.failure, PositionLost)
        replies = Replies()
        feed.ask([ALL], replies)
        until(lambda: replies.all)
        assert replies.all == [feed.failure]


def test_a_position_that_is_lost_is_given_up_for_those_that_are_ahead_of_it() -> None:
    source = numbers(9)
    source.acknowledge(position(5))
    with fed(source, after=2) as feed:
        subscriptions = [feed.subscribe(position(number), lambda: None) for number in (2, 3, 6, 2, 7)]
        feed.start()
        until(lambda: feed.upto >= position(9))
        assert feed.failure is None
        assert [one.lost is not None for one in subscriptions] == [True, True, False, True, False]
        assert len(subscriptions[2].take()) == 3
        assert len(subscriptions[4].take()) == 2


def test_any_other_error_of_a_stream_ends_it_and_is_explained() -> None:
    class Broken(LiveMemorySource):
        def transactions(self, after: Position | None, stop: threading.Event) -> Iterator[Batch]:
            raise KeyError("a bug")

    with fed(Broken("x", NUMBERS)) as feed:
        feed.start()
        until(lambda: feed.failure)
        assert isinstance(feed.failure, ProtocolError)
        assert "KeyError('a bug')" in feed.report().failure  # type: ignore[operator]


def test_closing_ends_readings_that_are_out() -> None:
    source = numbers(3)
    source.out_of_reach = True
    feed = Feed(source, position(0))
    feed.start()
    replies = Replies()
    for _ in range(10):
        feed.ask([ALL], replies)
    until(lambda: feed.trouble)
    feed.close()
    assert all(isinstance(reply, ViewkeeperError) for reply in replies.all)
    feed.ask([ALL], replies)
    assert len(replies.all) <= 10, "nobody waits for what is asked of a closed feed"


def test_closing_ends_a_reading_that_waits_for_a_stream_that_does_not_come() -> None:
    class Silent(LiveMemorySource):
        def transactions(self, after: Position | None, stop: threading.Event) -> Iterator[Batch]:
            self.stream_starts(after)
            stop.wait()
            yield from ()

    source = Silent("x", NUMBERS)
    write(source, 3)
    feed = Feed(source, position(0))
    feed.start()
    replies = Replies()
    feed.ask([ALL], replies)
    until(lambda: source.readings)
    feed.close()
    assert [isinstance(reply, ViewkeeperError) for reply in replies.all] == [True]
