"""The rest between two commits: under a steady load there are fewer of them, and a lone transaction waits for none."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from live_shop import MemoryStore, Shop

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.mediator import group as group_module
from viewkeeper.mediator.alignment import GroupChange
from viewkeeper.mediator.group import Group
from viewkeeper.mediator.stream import Stream
from viewkeeper.messages import Change, Fetch, Transaction, position
from viewkeeper.sources.base import Batch

ORDERS = "SELECT o.id AS id, o.cust AS cust, o.amount AS amount FROM shop.orders o"
SECONDS = 0.1
"""that a commit takes, on the clock of the test"""


class Slow(MemoryStore):
    """A store whose commits take their time, on a clock of its own."""

    time = 0.0

    def commit(self, group: str, changes: Sequence[GroupChange], figures: Callable[[], object]) -> None:
        self.time += SECONDS
        super().commit(group, changes, figures)


class Delivered(Stream):
    """A stream that is given what it brings."""

    def ask(self, fetches: Sequence[Fetch], reply: Callable[[Any], None]) -> None:
        raise AssertionError("a view over one relation asks nothing")

    def orders(self, count: int) -> None:
        """So many transactions, of one order each."""
        first = int(self.upto)
        made = [
            Transaction("shop", position(number), (Change("shop.orders", (number, 1, 1), 1),))
            for number in range(first + 1, first + count + 1)
        ]
        self.append(Batch(made, made[-1].position))


class Steps:
    """A group that takes a step when it is asked to, its stream, and its store, whose clock it goes by."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        shop = Shop()
        plan = shop.plan("g", ORDERS, "batched-sweep")
        self.store = Slow(shop.start(plan).contents, [plan])
        monkeypatch.setattr(group_module, "monotonic", lambda: self.store.time)
        self.stream = Delivered("shop", plan.vector["shop"])
        self.group = Group(plan, {"shop": self.stream}, MemoryZSet, self.store)

    def deliver(self, count: int) -> None:
        self.stream.orders(count)
        self.group.step()

    @property
    def commits(self) -> list[int]:
        """The states of each commit."""
        return [states for _, states in self.store.commits]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(monkeypatch)


def test_after_a_commit_of_many_states_the_next_is_put_off(steps: Steps) -> None:
    steps.deliver(group_module.MANY_STATES)
    steps.deliver(1)
    steps.deliver(1)
    assert steps.commits == [group_module.MANY_STATES]
    assert not steps.group.caught_up({"shop": steps.stream.upto})
    steps.store.time += group_module.REST * SECONDS
    steps.group.step()
    assert steps.commits == [group_module.MANY_STATES, 2]
    assert steps.group.caught_up({"shop": steps.stream.upto}, settled=True)


def test_after_a_commit_of_few_states_the_next_follows_at_once(steps: Steps) -> None:
    steps.deliver(group_module.MANY_STATES - 1)
    steps.deliver(1)
    assert steps.commits == [group_module.MANY_STATES - 1, 1]


def test_a_commit_is_not_put_off_when_as_much_is_in_progress_as_may_be(steps: Steps) -> None:
    steps.deliver(group_module.MANY_STATES)
    steps.deliver(2 * group_module.FIRST_IN_PROGRESS)
    assert steps.commits == [group_module.MANY_STATES, 2 * group_module.FIRST_IN_PROGRESS]


def test_what_was_put_off_is_committed_when_the_group_is_stopped(steps: Steps) -> None:
    steps.deliver(group_module.MANY_STATES)
    steps.deliver(1)
    stop = threading.Event()
    stop.set()
    steps.group.run(stop)
    assert steps.group.failure is None
    assert steps.commits == [group_module.MANY_STATES, 1]
