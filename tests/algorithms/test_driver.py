"""The driver: what each effect does."""

import pytest

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.driver import Driver
from viewkeeper.algorithms.effects import Install, Join, Next, NextBatch, ReadView, Spawn
from viewkeeper.algorithms.update_queue import UpdateQueue
from viewkeeper.errors import ProtocolError
from viewkeeper.messages import Change, Transaction, ViewDelta, position
from viewkeeper.sim.script import parse_relation
from viewkeeper.sql.parse import parse_view

RELATION, _ = parse_relation("x.r1(a*, b):")
VIEW = parse_view("SELECT r1.a AS a FROM x.r1", {"x.r1": RELATION})


class Ask:
    """A query as far as the driver cares."""

    source = "x"

    def __init__(self, name: str) -> None:
        self.name = name


class Bench:
    """A driver whose world is lists."""

    def __init__(self, algorithm) -> None:
        self.sent, self.installed = {}, []
        self.queue = UpdateQueue(VIEW)
        self.driver = Driver(
            algorithm,
            self.queue,
            send=lambda ticket, query: self.sent.update({query.name: ticket}),
            install=self.installed.extend,
            read_view=lambda: "the view",
        )

    def deliver(self, number: int) -> None:
        self.driver.deliver(Transaction("x", position(number), (Change("x.r1", (number, 0), 1),)))


def test_next_blocks_until_an_update_is_there_and_answers_carry_what_was_delivered():
    seen = []

    def algorithm():
        u = yield Next()
        seen.append(u.seq)
        answer = yield Ask("q")
        seen.append((answer.rows, answer.seq))

    bench = Bench(algorithm())
    assert seen == []
    bench.deliver(1)
    bench.deliver(2)
    bench.driver.answer(bench.sent["q"], "rows")
    assert seen == [1, ("rows", 2)], "the answer came after two deliveries"


def test_next_batch_takes_what_is_there_up_to_its_limit():
    sizes = []

    def algorithm():
        while True:
            batch = yield NextBatch(2)
            sizes.append(len(batch))
            yield Ask(f"q{len(sizes)}")

    bench = Bench(algorithm())
    for number in range(1, 5):
        bench.deliver(number)
    bench.driver.answer(bench.sent["q1"], None)
    bench.driver.answer(bench.sent["q2"], None)
    assert sizes == [1, 2, 1]


def test_spawned_processes_run_beside_each_other_and_are_joined():
    results = []

    def child(name):
        answer = yield Ask(name)
        return f"{name}={answer.rows}"

    def algorithm():
        a = yield Spawn(child("a"))
        b = yield Spawn(child("b"))
        results.extend((yield Join(a, b)))

    bench = Bench(algorithm())
    assert set(bench.sent) == {"a", "b"}, "both queries are out at once"
    bench.driver.answer(bench.sent["b"], 2)
    assert results == []
    bench.driver.answer(bench.sent["a"], 1)
    assert results == ["a=1", "b=2"]


def test_joining_nothing_or_what_is_done_does_not_wait():
    reached = []

    def done():
        return 7
        yield

    def algorithm():
        handle = yield Spawn(done())
        reached.append((yield Join(handle)))
        reached.append((yield Join()))

    Bench(algorithm())
    assert reached == [[7], []]


def test_install_and_read_view():
    def algorithm():
        view = yield ReadView()
        yield Install(ViewDelta(view, ()), ViewDelta("second", ()))

    bench = Bench(algorithm())
    assert [delta.delta for delta in bench.installed] == ["the view", "second"]


def test_an_answer_that_nobody_asked_for_is_an_error():
    def algorithm():
        yield Next()

    bench = Bench(algorithm())
    with pytest.raises(ProtocolError, match="query 5"):
        bench.driver.answer(5, MemoryZSet(("a",)))
