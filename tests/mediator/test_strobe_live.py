"""What the Strobe family relies on live: declared single updates, the view's own keys, and an interval."""

from dataclasses import replace
from typing import Any

import pytest
from live_shop import THREE_WAY, MemoryStore, Recorder, Shop, resumed

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.registry import Transactions
from viewkeeper.checker.history import History, State
from viewkeeper.checker.judge import check
from viewkeeper.levels import Level
from viewkeeper.mediator import group as group_module
from viewkeeper.mediator.choice import promised
from viewkeeper.mediator.feed import Feed
from viewkeeper.mediator.group import Group
from viewkeeper.mediator.group_plan import GroupPlan
from viewkeeper.mediator.mediator import Mediator
from viewkeeper.messages import Change, Transaction
from waiting import joined

ALL_COLUMNS = """SELECT o.id AS o_id, o.cust AS cust, o.amount AS amount, p.id AS p_id, p.region AS region,
    r.name AS name FROM shop.orders o JOIN crm.people p ON o.cust = p.id JOIN geo.regions r ON p.region = r.id"""


def single(shop: Shop, algorithm: str, sql: str = THREE_WAY, **options: Any) -> GroupPlan:
    plan = shop.plan("v", sql, algorithm)
    (how,) = plan.views
    return replace(plan, views=(replace(how, transactions=Transactions.SINGLE, options=options or None),))


def order(number: int, cust: int, amount: int = 5, count: int = 1) -> Change:
    return Change("shop.orders", (number, cust, amount), count)


def history_of(plan: GroupPlan, first: MemoryZSet, base: dict[str, MemoryZSet], recorder: Recorder) -> History:
    (how,) = plan.views
    rows, vector = first, dict(plan.vector)
    states = [State(rows.keep(how.view.columns), dict(vector))]
    for change in recorder.changes.get("v", ()):
        vector.update(change.vector)
        for delta in change.deltas.get("v", ()):
            rows = rows + delta
        states.append(State(rows.keep(how.view.columns), dict(vector)))
    return History.of(how.view, base, recorder.deliveries.get("v", ()), states)


def write_single_updates(shop: Shop, count: int) -> None:
    """Orders come, change and go, and so do people: one row at a time."""
    for number in range(1, count):
        shop.shop.commit(order(number, number % 5))
        if number % 4 == 2:
            shop.shop.commit(order(number - 1, (number - 1) % 5, count=-1))
        if number % 4 == 0:
            shop.shop.commit(order(number, number % 5, count=-1), order(number, (number + 1) % 5, 9))
        if number % 5 == 0:
            shop.crm.commit(Change("crm.people", (number % 5, 0), -1), Change("crm.people", (number % 5, 1), 1))
            shop.crm.commit(Change("crm.people", (number % 5, 1), -1))
            shop.crm.commit(Change("crm.people", (number % 5, 0), 1))


@pytest.mark.parametrize(("algorithm", "level"), [("strobe", Level.STRONG), ("c-strobe", Level.COMPLETE)])
def test_over_single_updates_they_reach_what_the_paper_says(algorithm: str, level: Level) -> None:
    shop = Shop()
    shop.crm.commit(Change("crm.people", (0, 0), -1))
    shop.crm.commit(Change("crm.people", (0, 0), 1))
    plan = single(shop, algorithm, ALL_COLUMNS)
    assert promised(plan.views[0]) is level
    base, store, recorder = shop.contents(), MemoryStore(shop.stored([plan])), Recorder()
    first = store.contents["v"]
    with Mediator(shop.sources, [plan], MemoryZSet, store, recorder) as mediator:
        mediator._start_groups()
        write_single_updates(shop, 30)
        mediator.catch_up()
    assert store.halted == {}
    assert check(history_of(plan, first, base, recorder)).level >= level
    shop.assert_right(plan, {source: shop.sources[source].end() for source in plan.sources}, store.contents)


@pytest.mark.parametrize("algorithm", ["strobe", "c-strobe"])
@pytest.mark.parametrize(
    "changes",
    [
        (order(1, 1), order(2, 1)),
        (order(0, 1, count=-1), order(3, 1), order(4, 1)),
    ],
    ids=["two insertions", "a modification and an insertion"],
)
def test_a_larger_transaction_than_was_declared_halts_the_view(algorithm: str, changes: tuple[Change, ...]) -> None:
    shop = Shop()
    shop.shop.commit(order(0, 1))
    plan = single(shop, algorithm)
    store = shop.start(plan)
    before = store.contents["v"]
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        shop.shop.commit(*changes)
        shop.shop.commit(order(9, 1))
        mediator.catch_up()
    assert "shop is declared to commit single updates, and its transaction at" in store.halted["v"]
    assert "t-strobe" in store.halted["v"]
    assert store.contents["v"] == before, "none of it is shown"


def test_what_is_no_larger_than_declared_to_the_view_does_not_halt_it() -> None:
    shop = Shop()
    plan = single(shop, "strobe")
    store = shop.start(plan)
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        shop.shop.commit(order(1, 1), Change("shop.lines", (1, 1, 1), 1))
        shop.shop.commit(order(2, 1), order(2, 1, count=-1))
        # Several that the capture could not tell apart: one state, and no promise of the source is broken.
        shop.shop._events.append(
            Transaction("shop", f"{len(shop.shop._events) + 1:020d}", (order(3, 1), order(4, 2)), merged=True)
        )
        for row in ((3, 1, 5), (4, 2, 5)):
            shop.shop.contents["shop.orders"] += MemoryZSet(("id", "cust", "amount"), [(row, 1)])
        mediator.catch_up()
    assert store.halted == {}
    shop.assert_all_right(plan, store)


@pytest.mark.parametrize("algorithm", ["t-strobe", "c-t-strobe", "batched-sweep"])
def test_who_does_not_rely_on_it_goes_on(algorithm: str) -> None:
    shop = Shop()
    plan = single(shop, algorithm)
    store = shop.start(plan)
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        shop.shop.commit(order(1, 1), order(2, 1))
        mediator.catch_up()
    assert store.halted == {}
    shop.assert_all_right(plan, store)


# --- key information ---


@pytest.mark.parametrize("algorithm", ["t-strobe", "g-strobe", "c-t-strobe", "periodic-c-strobe"])
def test_after_a_restart_the_view_itself_answers(algorithm: str) -> None:
    """Nothing was asked in this run: the rows of people and regions are known from the stored view alone."""
    shop = Shop()
    shop.shop.commit(order(1, 1))
    plan = shop.plan("v", ALL_COLUMNS, algorithm)
    store = shop.start(plan)
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        shop.shop.commit(order(2, 1))
        mediator.catch_up()
        assert mediator.report().groups[0].queries == 0
        shop.shop.commit(order(3, 2))
        mediator.catch_up()
        assert mediator.report().groups[0].queries > 0, "the view has nothing of that customer"
    asked = shop.crm.readings + shop.geo.readings
    with Mediator(shop.sources, [resumed(plan, store)], MemoryZSet, store) as mediator:
        shop.shop.commit(order(4, 2), order(5, 1))
        mediator.catch_up()
    assert shop.crm.readings + shop.geo.readings == asked
    shop.assert_all_right(plan, store)


def test_what_changes_while_it_is_known_is_not_out_of_date() -> None:
    shop = Shop()
    shop.shop.commit(order(1, 1))
    plan = shop.plan("v", ALL_COLUMNS, "t-strobe")
    store = shop.start(plan)
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        mediator.catch_up()
        shop.geo.commit(Change("geo.regions", (1, "r1"), -1), Change("geo.regions", (1, "changed"), 1))
        shop.shop.commit(order(2, 1))
        shop.crm.commit(Change("crm.people", (1, 1), -1), Change("crm.people", (1, 2), 1))
        shop.shop.commit(order(3, 1))
        shop.crm.commit(Change("crm.people", (1, 2), -1))
        shop.shop.commit(order(4, 1))
        mediator.catch_up()
    shop.assert_all_right(plan, store)


# --- an interval ---


def test_an_interval_forces_a_state_while_questions_are_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Periodic C-Strobe with a period that never comes: only time makes a state, and what came later is not in it."""
    shop = Shop()
    plan = shop.plan("v", THREE_WAY, "periodic-c-strobe")
    plan = replace(plan, views=(replace(plan.views[0], options={"period": 10_000, "interval": 5}),))
    store = shop.start(plan)
    clock = 100.0
    monkeypatch.setattr(group_module, "monotonic", lambda: clock)
    # The question stays out.
    monkeypatch.setattr(Feed, "ask", lambda *_: None)
    feeds = {name: Feed(source, plan.vector[name]) for name, source in shop.sources.items()}
    group = Group(plan, feeds, MemoryZSet, store)
    forced: list[float] = []
    real = group.views["v"].driver.force
    monkeypatch.setattr(group.views["v"].driver, "force", lambda: (forced.append(clock), real()))
    shop.shop.commit(order(1, 1))
    (delivered,) = [event for event in shop.shop._events if isinstance(event, Transaction)]
    group._deliver(delivered)
    group.step()
    assert group._seconds_to_the_next_state() == 5
    clock = 104.0
    group.step()
    assert forced == []
    clock = 105.0
    group.step()
    assert forced == [105.0]
    assert group._seconds_to_the_next_state() == 5, "it is tried again, and not all the time"
    group.close()


def test_under_a_stream_without_a_pause_an_interval_makes_states() -> None:
    shop = Shop()
    plan = shop.plan("v", THREE_WAY, "periodic-c-strobe")
    plan = replace(plan, views=(replace(plan.views[0], options={"period": 10_000, "interval": 1}),))
    base, store, recorder = shop.contents(), shop.start(plan), Recorder()
    first = store.contents["v"]
    with Mediator(shop.sources, [plan], MemoryZSet, store, recorder) as mediator:
        mediator._start_groups()
        joined(*shop.write_all(20))
        mediator.catch_up()
    shop.assert_all_right(plan, store)
    assert check(history_of(plan, first, base, recorder)).level >= Level.STRONG
