"""The FIFO between a source and a group: every answer stands exactly behind what it shows."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from live_memory import LiveMemorySource

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.clock import seeded
from viewkeeper.errors import SourceUnfit
from viewkeeper.mediator.channel import Channel
from viewkeeper.mediator.feed import Feed
from viewkeeper.messages import Change, Fetch, Transaction, position
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import Operand
from waiting import until

NUMBERS = Relation("x.numbers", "x", ("n",), ("BIGINT",), ("n",))
OPERAND = Operand(0, "r", NUMBERS)


class Everything:
    """A question for all rows of the relation, or for those with some numbers."""

    source = "x"

    def __init__(self, *keys: int) -> None:
        self.keys = keys

    def evaluate(self, contents: Any) -> Any:
        raise NotImplementedError

    def size(self) -> int:
        return 1

    def fetches(self) -> tuple[Fetch, ...]:
        if not self.keys:
            return (Fetch((OPERAND,), ("r.n",)),)
        return (Fetch((OPERAND,), ("r.n",), (), ("r.n",), tuple((key,) for key in self.keys)),)

    def over(self, fetched: Any) -> Any:
        return fetched[0]


class Line:
    """A source, its feed and one channel, and what came over it: positions and answers, in order."""

    def __init__(self, source: LiveMemorySource, feed: Feed, after: int = 0) -> None:
        self.source = source
        self.feed = feed
        self.channel = Channel(feed, position(after), MemoryZSet, lambda: None)
        self.came: list[int | tuple[str, set[int]]] = []
        self.learned: list[tuple[int, int]] = []

    def ask(self, name: str, *keys: int) -> None:
        query = Everything(*keys)

        def reply(fetched: list[MemoryZSet]) -> None:
            self.came.append((name, {row[0] for row, _ in fetched[0].weights()}))

        self.channel.ask(query, query.fetches(), reply, lambda _, keys, rows: self.learned.append((keys, rows)))

    def receive(self, most: int = 1_000) -> bool:
        def deliver(event: Any) -> None:
            assert isinstance(event, Transaction)
            self.came.append(int(event.position))

        return self.channel.receive(deliver, most)


@contextmanager
def line() -> Iterator[Line]:
    source = LiveMemorySource("x", NUMBERS)
    feed = Feed(source, position(0))
    made = Line(source, feed)
    feed.start()
    try:
        yield made
    finally:
        source.open_gate.set()
        made.channel.close()
        feed.close()


def write(source: LiveMemorySource) -> None:
    source.commit(Change("x.numbers", (int(source.end()) + 1,), 1))


def in_place(came: list[int | tuple[str, set[int]]]) -> bool:
    """Transactions in their order, and each answer with exactly the rows of those before it."""
    seen: set[int] = set()
    for one in came:
        if isinstance(one, int):
            assert one == len(seen) + 1
            seen.add(one)
        else:
            assert one[1] == seen, one[0]
    return True


@pytest.mark.parametrize("seed", range(15))
def test_answers_stand_in_their_exact_place(seed: int) -> None:
    random = seeded(seed)
    asked = 0
    with line() as one:
        for _ in range(150):
            match random.choice(("write", "write", "ask", "send", "receive", "receive one", "hold", "let go")):
                case "write":
                    write(one.source)
                case "ask":
                    one.ask(f"question {asked}")
                    asked += 1
                case "send":
                    one.channel.send()
                case "receive":
                    one.receive()
                case "receive one":
                    one.receive(1)
                case "hold":
                    one.source.open_gate.clear()
                case "let go":
                    one.source.open_gate.set()
        one.source.open_gate.set()
        last = int(one.source.end())
        until(lambda: ((one.channel.send(), one.receive()) and one.channel.quiet and last in one.came) or last == 0)
        assert in_place(one.came)
        answered = [each[0] for each in one.came if isinstance(each, tuple)]
        assert answered == [f"question {number}" for number in range(asked)]


def test_between_a_question_and_its_answer_nothing_is_delivered() -> None:
    with line() as one:
        write(one.source)
        until(one.receive)
        one.source.open_gate.clear()
        one.ask("a")
        assert one.channel.send()
        until(lambda: one.source.readings == 1)
        write(one.source)
        until(lambda: one.feed.upto == position(2))
        assert not one.receive()
        one.source.open_gate.set()
        until(one.receive)
        assert one.came == [1, ("a", {1})]
        until(one.receive)
        assert one.came[-1] == 2


def test_what_waits_goes_as_one_message_with_one_position() -> None:
    with line() as one:
        one.source.open_gate.clear()
        one.ask("a")
        assert one.channel.send()
        assert not one.channel.send()
        until(lambda: one.source.readings == 1)
        write(one.source)
        one.ask("b", 1, 2, 3)
        one.ask("c")
        assert not one.channel.send(), "an answer is still to come"
        one.source.open_gate.set()
        until(one.receive)
        assert one.channel.send()
        until(lambda: len(one.came) == 4 or one.receive())
        assert one.came == [("a", set()), 1, ("b", {1}), ("c", {1})]
        assert one.source.readings == 2
        assert [len(asked) for asked in one.source.asked] == [1, 2]
        assert one.channel.quiet
        traffic = one.channel.traffic
        assert (traffic.queries, traffic.messages, traffic.rows_sent, traffic.rows_received) == (3, 2, 3, 2)
        assert one.learned == [(0, 0), (3, 1), (0, 1)]


def test_a_reading_that_fails_is_raised_where_its_answer_would_be() -> None:
    with line() as one:
        one.source.reading_fails = SourceUnfit("no such table")
        one.ask("a")
        one.channel.send()
        with pytest.raises(SourceUnfit):
            until(one.receive)


def test_closing_with_a_question_out_lets_the_feed_go_on() -> None:
    with line() as one:
        one.feed._most_waiting = 5
        one.source.open_gate.clear()
        one.ask("a")
        one.channel.send()
        one.channel.close()
        for _ in range(20):
            write(one.source)
        one.source.open_gate.set()
        until(lambda: one.feed.upto == position(20))
        assert one.feed._log == []
