"""When everything that was committed is there: also while others write on, and not a moment before."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from live_shop import THREE_WAY, WITHIN, MemoryStore, Shop, resumed

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.errors import PositionLost, SourceUnavailable, SourceUnfit
from viewkeeper.mediator import stream as stream_module
from viewkeeper.mediator.alignment import GroupChange
from viewkeeper.mediator.mediator import Mediator
from viewkeeper.messages import Change
from viewkeeper.sources.base import Batch
from waiting import until


def order(number: int) -> Change:
    return Change("shop.orders", (number, number % 5, number), 1)


@pytest.mark.parametrize("algorithm", ["batched-sweep", "nested-sweep", "sweep"])
def test_it_returns_although_somebody_writes_on(algorithm: str) -> None:
    shop = Shop()
    plan = shop.group("g", {"a": (THREE_WAY, algorithm)})
    store = shop.start(plan)
    written = iter(range(1_000_000))
    shop.crm.before_reading = lambda: shop.shop.commit(order(next(written)))
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        for _ in range(5):
            shop.shop.commit(order(next(written)))
            reached = mediator.catch_up()
            assert store.vectors["g"]["shop"] >= reached["shop"]
        shop.crm.before_reading = lambda: None
        mediator.catch_up(settled=True)
        assert mediator.report().groups[0].in_progress == 0
    shop.assert_all_right(plan, store)


def test_it_does_not_return_before_the_commit() -> None:
    class Slow(MemoryStore):
        may = threading.Event()

        def commit(self, group: str, changes: Sequence[GroupChange], figures: Callable[[], object]) -> None:
            assert self.may.wait(20)
            super().commit(group, changes, figures)

    shop = Shop()
    plan = shop.group("g", {"a": (WITHIN, "batched-sweep")})
    store = Slow(shop.stored([plan]), [plan])
    shop.shop.commit(order(1))
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        looks: list[int] = []

        def watch() -> None:
            looks.append(len(store.commits))
            if len(looks) == 5:
                store.may.set()

        mediator.catch_up(watch=watch)
        assert store.commits
    assert looks[:5] == [0] * 5


def test_what_is_taken_and_not_delivered_yet_is_neither_caught_up_nor_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between the moment that a group takes events and the moment that it works on them."""
    shop = Shop()
    plan = shop.group("g", {"a": (THREE_WAY, "batched-sweep")})
    store = shop.start(plan)
    between, go_on = threading.Event(), threading.Event()
    real = stream_module.Subscription.take

    def take(self: Any, *args: Any, **options: Any) -> Any:
        events = real(self, *args, **options)
        if events:
            between.set()
            assert go_on.wait(20)
        return events

    monkeypatch.setattr(stream_module.Subscription, "take", take)
    shop.shop.commit(order(1))
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        mediator._start_groups()
        assert between.wait(20)
        (group,) = mediator.groups
        assert group.channels["shop"].subscription.position == shop.shop.end()
        assert not group.caught_up({"shop": shop.shop.end()})
        mediator._acknowledge()
        assert shop.shop.acknowledged < shop.shop.end()
        go_on.set()
        mediator.catch_up()
    shop.assert_all_right(plan, store)


def test_stopping_ends_a_run_and_one_can_still_catch_up() -> None:
    shop = Shop()
    plan = shop.group("g", {"a": (THREE_WAY, "t-strobe")})
    store = shop.start(plan)
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        threading.Timer(0.05, mediator.stop).start()
        mediator.run()
        shop.shop.commit(order(1))
        mediator.catch_up(settled=True)
    shop.assert_all_right(plan, store)


def test_a_mediator_that_was_never_run_leaves_nothing_behind() -> None:
    shop = Shop()
    plan = shop.group("g", {"a": (THREE_WAY, "t-strobe")})
    before = threading.active_count()
    with Mediator(shop.sources, [plan], MemoryZSet, shop.start(plan)):
        pass
    until(lambda: threading.active_count() <= before)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_source_out_of_reach_leaves_its_own_groups_behind(at_once: bool) -> None:
    shop = Shop()
    plans = [shop.group("over_geo", {"a": (THREE_WAY, "sweep")}), shop.group("without", {"b": (WITHIN, "sweep")})]
    store = shop.start(*plans)
    for number in range(20):
        shop.shop.commit(order(number), Change("shop.lines", (number, number, 1), 1))
    shop.geo.out_of_reach = True
    shop.geo.unreachable_end = at_once
    with Mediator(shop.sources, plans, MemoryZSet, store) as mediator:
        until(lambda: mediator.feeds["geo"].trouble)
        with pytest.raises(SourceUnavailable, match="geo"):
            mediator.catch_up(patience=0.01)
        assert store.vectors["without"]["shop"] == shop.shop.end()
        shop.assert_all_right(plans[1], store)
        assert store.contents["b"].size()
        shop.geo.out_of_reach = shop.geo.unreachable_end = False
        mediator.catch_up()
    shop.assert_all_right(plans[0], store)


def test_a_source_with_no_end_may_still_have_to_say_that_its_changes_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop()
    plan = shop.group("g", {"a": (THREE_WAY, "sweep")})
    store = shop.start(plan)
    looked = threading.Event()

    def end() -> str:
        raise SourceUnfit("nothing captures the changes of geo")

    def transactions(after: str | None, stop: threading.Event) -> Iterator[Batch]:
        assert looked.wait(20)
        raise PositionLost("another database is in the place of geo")
        yield

    monkeypatch.setattr(shop.geo, "end", end)
    monkeypatch.setattr(shop.geo, "transactions", transactions)
    looks: list[None] = []

    def watch() -> None:
        looks.append(None)
        if len(looks) == 5:
            looked.set()

    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        mediator.catch_up(watch=watch)
    assert store.halted == {"a": "another database is in the place of geo"}


def test_a_group_whose_changes_are_lost_takes_no_other_along() -> None:
    shop = Shop()
    behind, ahead = shop.group("behind", {"a": (THREE_WAY, "sweep")}), shop.group("ahead", {"b": (WITHIN, "sweep")})
    store = shop.start(behind, ahead)
    for number in range(6):
        shop.shop.commit(order(number), Change("shop.lines", (number, number, 1), 1))
    with Mediator(shop.sources, [ahead], MemoryZSet, store) as mediator:
        mediator.catch_up()
    assert shop.shop.acknowledged == shop.shop.end()
    shop.shop.commit(order(6), Change("shop.lines", (6, 6, 1), 1))
    plans = [behind, resumed(ahead, store)]
    with Mediator(shop.sources, plans, MemoryZSet, store) as mediator:
        mediator.catch_up()
    assert set(store.halted) == {"a"}
    assert "forgotten" in store.halted["a"]
    assert store.vectors["ahead"]["shop"] == shop.shop.end()
    assert store.contents["b"].size() == 7
