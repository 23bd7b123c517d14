"""Streams without a pause: what waits for quiet goes over to what does not, and says so."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from live_shop import THREE_WAY, WITHIN, Recorder, Shop, resumed

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.registry import ALGORITHMS, Transactions
from viewkeeper.mediator.group_plan import GroupPlan
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.mediator.mediator import Mediator
from viewkeeper.mediator.without_quiet import without_quiet
from viewkeeper.messages import Change
from waiting import until

ONE_SOURCE = (
    "SELECT o.id AS o_id, o.amount AS amount, l.item AS item FROM shop.orders o JOIN shop.lines l ON l.ord = o.id"
)
LIMIT = 25


@contextmanager
def without_a_pause(shop: Shop, mediator: Mediator, *, crm_every: int = 5) -> Iterator[None]:
    """Before a source reads, somebody has written to the shop: it is never quiet."""
    number = 0
    turn = threading.Lock()

    def write() -> None:
        nonlocal number
        with turn:
            number += 1
            changes = [
                Change("shop.orders", (number, number % 5, number), 1),
                Change("shop.lines", (number, number, number % 3), 1),
            ]
            if number > 3 and number % 4 == 0:
                changes.append(Change("shop.orders", (number - 3, (number - 3) % 5, number - 3), -1))
            shop.shop.commit(*changes)
            if number % crm_every == 0:
                shop.crm.commit(Change("crm.people", (number, number % 3), 1))
            written = shop.shop.end()
        until(lambda: mediator.feeds["shop"].upto >= written)

    for source in shop.sources.values():
        source.before_reading = write
    write()
    try:
        yield
    finally:
        for source in shop.sources.values():
            source.before_reading = lambda: None


Views = dict[str, tuple[str, str]]


def plan_for(
    shop: Shop, views: Views, limit: int = LIMIT, transactions: Transactions = Transactions.LOCAL
) -> GroupPlan:
    plan = shop.group("g", views)
    hows = tuple(replace(how, transactions=transactions) for how in plan.views)
    # What is known would bring quiet.
    return replace(plan, views=hows, most_behind_answers=limit, most_known=0)


@pytest.mark.parametrize(
    ("algorithm", "transactions", "views", "successor"),
    [
        ("strobe", Transactions.LOCAL, [THREE_WAY], "periodic-c-strobe"),
        ("strobe", Transactions.LOCAL, [WITHIN], "periodic-c-strobe"),
        ("t-strobe", Transactions.LOCAL, [THREE_WAY], "periodic-c-strobe"),
        ("t-strobe", Transactions.LOCAL, [WITHIN], "periodic-c-strobe"),
        ("t-strobe", Transactions.LOCAL, [THREE_WAY, WITHIN], "batched-sweep"),
        ("g-strobe", Transactions.GLOBAL, [WITHIN], "batched-sweep"),
        ("eca", Transactions.LOCAL, [ONE_SOURCE], "batched-sweep"),
        ("eca", Transactions.LOCAL, [ONE_SOURCE, ONE_SOURCE], "batched-sweep"),
    ],
    ids=lambda value: str(len(value)) if isinstance(value, list) else value,
)
def test_states_come_although_it_is_never_quiet(
    algorithm: str, transactions: Transactions, views: list[str], successor: str
) -> None:
    shop = Shop()
    numbered = {f"v{number}": (sql, algorithm) for number, sql in enumerate(views)}
    plan = plan_for(shop, numbered, transactions=transactions)
    store, recorder = shop.start(plan), Recorder()
    with Mediator(shop.sources, [plan], MemoryZSet, store, recorder) as mediator:
        with without_a_pause(shop, mediator):
            mediator._start_groups()
            until(lambda: mediator.groups[0].went_over, "a change")
            until(lambda: len(store.states.get("g", [])) >= 3, "a state")
        mediator.catch_up()
        (report,) = mediator.report().groups
    assert set(report.went_over) == {how.view.name for how in plan.views}
    for said in report.went_over.values():
        assert said.startswith(f"{algorithm} came to no state while ")
        assert said.endswith(f": {successor} has taken over")
    shop.assert_all_right(plan, store)
    places = [(one.source, one.position) for one in store.transactions["g"]]
    assert len(places) == len(set(places)) == len(recorder.deliveries["g"])
    assert store.contents["v0"].size() > 0
    # What is stored has kept its form: the next run begins with the view's own algorithm.
    shop.crm.commit(Change("crm.people", (1_000, 1), 1))
    with Mediator(shop.sources, [resumed(plan, store)], MemoryZSet, store) as mediator:
        mediator.catch_up()
        assert mediator.report().groups[0].went_over == {}
    shop.assert_all_right(plan, store)


def test_without_going_over_there_would_be_no_state() -> None:
    """The stream of these tests is one that never lets go of what is asked at the shop."""
    shop = Shop()
    plan = plan_for(shop, {"a": (ONE_SOURCE, "eca")}, limit=1_000_000)
    store = shop.start(plan)
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        with without_a_pause(shop, mediator):
            mediator._start_groups()
            until(lambda: int(shop.shop.end()) > 8 * LIMIT)
            assert store.commits == []
        mediator.catch_up()
    shop.assert_all_right(plan, store)


@pytest.mark.parametrize("algorithm", ["strobe", "t-strobe", "eca"])
def test_a_backlog_is_no_reason_to_go_over(algorithm: str) -> None:
    shop = Shop()
    plan = plan_for(shop, {"a": (ONE_SOURCE, algorithm)})
    store = shop.start(plan)
    for number in range(10 * LIMIT):
        shop.shop.commit(Change("shop.orders", (number, 1, number), 1))
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        mediator.catch_up()
        assert mediator.report().groups[0].went_over == {}
    shop.assert_all_right(plan, store)


def test_the_other_views_of_the_group_stay_as_they_are() -> None:
    shop = Shop()
    views = {"a": (THREE_WAY, "t-strobe"), "b": (WITHIN, "batched-sweep")}
    plan = shop.group("g", views, {"c": "SELECT a.o_id AS id FROM a"})
    plan = replace(plan, most_behind_answers=LIMIT, most_known=0)
    store = shop.start(plan)
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        with without_a_pause(shop, mediator):
            mediator._start_groups()
            until(lambda: mediator.groups[0].went_over, "a change")
            until(lambda: len(store.states.get("g", [])) >= 3, "a state")
        mediator.catch_up()
        assert set(mediator.report().groups[0].went_over) == {"a"}
    shop.assert_all_right(plan, store)


@pytest.mark.parametrize("name", [name for name, one in ALGORITHMS.items() if not (one.needs_quiet or one.needs_pause)])
def test_what_does_not_wait_has_no_successor(name: str) -> None:
    shop = Shop()
    (how,) = shop.group("g", {"a": (THREE_WAY, name)}).views
    assert without_quiet(how, alone=True) is None


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("name", ["strobe", "t-strobe", "nested-sweep"])
def test_one_that_shows_parts_of_global_transactions_is_not_followed_by_one_that_waits_for_them(
    name: str, alone: bool
) -> None:
    (how,) = Shop().group("g", {"a": (THREE_WAY, name)}).views
    successor = without_quiet(replace(how, transactions=Transactions.GLOBAL), alone=alone)
    assert successor is not None
    assert not ALGORITHMS[successor.algorithm].whole_global_transactions


def test_a_successor_promises_no_less_and_stores_the_same() -> None:
    shop = Shop()
    for name, one in ALGORITHMS.items():
        for transactions in one.levels if (one.needs_quiet or one.needs_pause) and not one.baseline else ():
            sql = ONE_SOURCE if one.one_source else WITHIN
            (how,) = shop.group("g", {"a": (sql, name)}).views
            how = replace(how, transactions=transactions)
            for alone in (True, False):
                successor = without_quiet(how, alone=alone)
                assert isinstance(successor, Maintenance)
                assert ALGORITHMS[successor.algorithm].levels[transactions] >= one.levels[transactions]
                assert successor.stored == how.stored


def test_views_whose_states_never_meet_go_over_together() -> None:
    shop = Shop()
    plan = plan_for(shop, {"a": (THREE_WAY, "nested-sweep"), "b": (WITHIN, "nested-sweep")}, limit=1)
    store = shop.start(plan)
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        with without_a_pause(shop, mediator):
            mediator._start_groups()
            until(lambda: mediator.groups[0].went_over)
        mediator.catch_up()
        assert set(mediator.report().groups[0].went_over) == {"a", "b"}
    shop.assert_all_right(plan, store)


def nested_alone(shop: Shop, updates: int) -> GroupPlan:
    plan = plan_for(shop, {"a": (THREE_WAY, "nested-sweep")})
    return replace(plan, views=tuple(replace(how, options={"updates": updates}) for how in plan.views))


def test_a_lone_view_of_nested_sweep_goes_over_when_its_round_is_too_long() -> None:
    shop = Shop()
    plan = nested_alone(shop, 4_096)
    store = shop.start(plan)
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        with without_a_pause(shop, mediator, crm_every=1):
            mediator._start_groups()
            until(lambda: mediator.groups[0].went_over, "a change")
            until(lambda: len(store.states.get("g", [])) >= 3, "a state")
        mediator.catch_up()
        (said,) = mediator.report().groups[0].went_over.values()
    assert said.startswith("nested-sweep came to no state while ")
    assert said.endswith(": batched-sweep has taken over")
    shop.assert_all_right(plan, store)


def test_a_short_round_of_nested_sweep_ends_by_itself() -> None:
    shop = Shop()
    plan = nested_alone(shop, 4)
    store, recorder = shop.start(plan), Recorder()
    with Mediator(shop.sources, [plan], MemoryZSet, store, recorder) as mediator:
        with without_a_pause(shop, mediator, crm_every=1):
            mediator._start_groups()
            until(lambda: len(store.states.get("g", [])) >= 10, "a state")
        mediator.catch_up()
        assert mediator.report().groups[0].went_over == {}
    assert max(len(change.transactions) for change in recorder.changes["g"]) == 4
    shop.assert_all_right(plan, store)


def test_a_backlog_is_no_reason_for_nested_sweep_to_go_over() -> None:
    """It comes from one source while the other has answered already."""
    shop = Shop()
    plan = nested_alone(shop, 64)
    store = shop.start(plan)
    for number in range(10 * LIMIT):
        shop.shop.commit(Change("shop.orders", (number, 1, number), 1))
        shop.crm.commit(Change("crm.people", (100 + number, 1), 1))
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        mediator.catch_up()
        assert mediator.report().groups[0].went_over == {}
    shop.assert_all_right(plan, store)
