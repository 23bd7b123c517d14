"""Views that are kept together: one sequence of states, failures that stay where they are, what is asked and stored."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from live_shop import THREE_WAY, WITHIN, MemoryStore, Recorder, Shop, resumed
from py4j.protocol import Py4JNetworkError

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.errors import (
    EngineFailure,
    PositionLost,
    ProtocolError,
    SourceUnavailable,
    SourceUnfit,
    StorageFailure,
    WriterPresent,
)
from viewkeeper.mediator import group as group_module
from viewkeeper.mediator import retries
from viewkeeper.mediator.alignment import GroupChange
from viewkeeper.mediator.group_plan import GroupPlan
from viewkeeper.mediator.maintained import MaintainedView
from viewkeeper.mediator.mediator import Mediator
from viewkeeper.mediator.stream import Subscription, rows_in
from viewkeeper.messages import Change, Transaction, position
from viewkeeper.sources.base import Batch
from waiting import joined, until

ORDERS = "SELECT o.id AS id, o.cust AS cust, o.amount AS amount FROM shop.orders o"
PEOPLE = "SELECT p.id AS id, p.region AS region FROM crm.people p"
REGIONS = "SELECT r.id AS id, r.name AS name FROM geo.regions r"
OVERFLOWS = "SELECT o.id AS id, o.amount * 4611686018427387904 AS big FROM shop.orders o"


def maintain(shop: Shop, plan: GroupPlan, store: MemoryStore, recorder: Recorder | None = None) -> Mediator:
    """Everything that is committed, in a run of its own."""
    with Mediator(shop.sources, [plan], MemoryZSet, store, recorder) as mediator:
        mediator.catch_up()
    return mediator


def under_load(shop: Shop, plan: GroupPlan, store: MemoryStore, count: int = 12) -> Recorder:
    recorder = Recorder()
    with Mediator(shop.sources, [plan], MemoryZSet, store, recorder) as mediator:
        writers = shop.write_all(count)
        mediator.catch_up()
        joined(*writers)
        mediator.catch_up()
    return recorder


def place(transaction: Transaction) -> tuple[str, str]:
    return (transaction.source, transaction.position)


def order(number: int, cust: int | None = 1, amount: int = 1) -> Change:
    return Change("shop.orders", (number, cust, amount), 1)


# --- one sequence of states ---


@pytest.mark.parametrize(
    "algorithm",
    ["sweep", "batched-sweep", "pipelined-sweep", "parallel-sweep", "parallel-pipelined-sweep", "c-t-strobe"],
)
def test_complete_algorithms_give_one_state_per_transaction(algorithm: str) -> None:
    shop = Shop()
    # Wrapped (two relations of the shop), unwrapped over three sources, and over one.
    views = {"within": WITHIN, "three": THREE_WAY, "orders": ORDERS, "people": PEOPLE}
    plan = shop.group("g", {name: (sql, algorithm) for name, sql in views.items()})
    store = shop.start(plan)
    recorder = under_load(shop, plan, store)
    states = recorder.changes["g"]
    assert all(len(state.transactions) == 1 for state in states)
    assert [place(state.transactions[0]) for state in states] == [place(one) for one in recorder.deliveries["g"]]
    shop.assert_all_right(plan, store)


@pytest.mark.parametrize(
    "algorithms",
    [("recompute", "recompute"), ("nested-sweep", "batched-sweep"), ("t-strobe", "c-t-strobe"), ("recompute", "sweep")],
)
def test_views_of_different_pace_meet(algorithms: tuple[str, str]) -> None:
    shop = Shop()
    plan = shop.group("g", {"a": (THREE_WAY, algorithms[0]), "b": (WITHIN, algorithms[1])})
    store = shop.start(plan)
    recorder = under_load(shop, plan, store)
    shop.assert_right(plan, store.vectors["g"], store.contents)
    if "recompute" not in algorithms:
        shop.assert_all_right(plan, store)
    transactions = [one for state in recorder.changes["g"] for one in state.transactions]
    assert sorted(map(place, transactions)) == sorted(map(place, recorder.deliveries["g"])), "each in one state"


def test_states_are_committed_in_portions_of_the_plan() -> None:
    shop = Shop()
    plan = replace(shop.group("g", {"o": (ORDERS, "batched-sweep")}), states_per_commit=3)
    store = shop.start(plan)
    for number in range(20):
        shop.shop.commit(order(number))
    maintain(shop, plan, store)
    assert max(size for _, size in store.commits) <= 3
    assert sum(size for _, size in store.commits) == 20
    shop.assert_all_right(plan, store)


def test_a_group_takes_no_more_than_it_can_work_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_module, "MOST_IN_PROGRESS", 7)
    shop = Shop()
    plan = shop.group("g", {"three": (THREE_WAY, "batched-sweep")})
    store = shop.start(plan)
    under_load(shop, plan, store, count=30)
    shop.assert_all_right(plan, store)


def test_what_has_come_is_swept_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are few sweeps however many transactions there are, though each of these has a state of its own."""
    swept = []
    finish = JoinPlan.finish
    monkeypatch.setattr(JoinPlan, "finish", lambda plan, delta: swept.append(plan) or finish(plan, delta))
    shop = Shop()
    plan = shop.group("g", {"orders": (ORDERS, "batched-sweep"), "within": (WITHIN, "batched-sweep")})
    store = shop.start(plan)
    for number in range(1_000):
        shop.shop.commit(order(number))
    swept.clear()
    maintain(shop, plan, store)
    assert sum(states for _, states in store.commits) == 1_000
    assert len(swept) <= 100
    shop.assert_all_right(plan, store)


def test_a_view_over_views_sweeps_the_states_of_a_commit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    swept = []
    finish = JoinPlan.finish
    monkeypatch.setattr(JoinPlan, "finish", lambda plan, delta: swept.append(plan) or finish(plan, delta))
    shop = Shop()
    plan = shop.group("g", {"orders": (ORDERS, "batched-sweep")}, {"over": "SELECT o.id AS id FROM orders o"})
    store = shop.start(plan)
    for number in range(300):
        shop.shop.commit(order(number))
    swept.clear()
    maintain(shop, plan, store)
    assert sum(states for _, states in store.commits) == 300
    assert len(swept) <= 100
    shop.assert_all_right(plan, store)


def test_what_is_in_progress_is_bounded_by_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_module, "MOST_IN_PROGRESS", 100)
    shop = Shop()
    plan = shop.group("g", {"orders": (ORDERS, "batched-sweep")})
    store = shop.start(plan)
    recorder = Recorder()
    sizes = [30, 1, 250, 99, 1, 1, 60, 60, 400, 100]
    for number, size in enumerate(sizes):
        shop.shop.commit(*(order(1_000 * number + k) for k in range(size)))
    taken: list[int] = []
    take = Subscription.take

    def counted(*given: Any, **named: Any) -> list[Any]:
        events = take(*given, **named)
        taken.append(sum(map(rows_in, events)))
        assert taken[-1] <= 100 or len(events) == 1, "more rows only if they are of one transaction"
        return events

    monkeypatch.setattr(Subscription, "take", counted)
    maintain(shop, plan, store, recorder)
    assert sum(taken) == sum(sizes)
    assert [len(one.changes) for one in recorder.deliveries["g"]] == sizes
    shop.assert_all_right(plan, store)


# --- what is asked, stored and acknowledged ---


def test_no_question_is_sent_for_nothing() -> None:
    shop = Shop()
    plan = shop.group("g", {"v": (f"{THREE_WAY} WHERE o.amount > 100", "batched-sweep")})
    store = shop.start(plan)
    shop.shop.commit(order(1, amount=5))
    shop.shop.commit(order(2, cust=None, amount=500))
    shop.shop.commit(order(3, amount=500), Change("shop.orders", (3, 1, 500), -1))
    mediator = maintain(shop, plan, store)
    assert mediator.report().groups[0].queries == 0
    assert shop.crm.readings == shop.geo.readings == 0
    assert len(store.states["g"]) == 3
    shop.assert_all_right(plan, store)


def test_what_concerns_no_view_gives_no_state_and_is_acknowledged_once_that_is_stored() -> None:
    shop = Shop()
    plan = shop.group("g", {"o": (ORDERS, "batched-sweep"), "p": (PEOPLE, "batched-sweep")})
    store = shop.start(plan)
    for number in range(5):
        shop.shop.commit(Change("shop.lines", (number, 1, 1), 1))
    maintain(shop, plan, store)
    assert store.commits == []
    assert store.vectors["g"]["shop"] == shop.shop.end() == shop.shop.acknowledged
    # The source has forgotten what lay before; the next run starts after it.
    shop.shop.commit(order(1))
    mediator = maintain(shop, resumed(plan, store), store)
    assert not mediator.report().halted
    shop.assert_all_right(plan, store)


def test_a_long_run_notes_now_and_then_how_far_its_sources_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_module, "ADVANCE_EVERY", 0.0)
    shop = Shop()
    plan = shop.group("g", {"o": (ORDERS, "batched-sweep")})
    store = shop.start(plan)
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        mediator.catch_up()
        shop.shop.commit(Change("shop.lines", (1, 1, 1), 1))
        mediator.catch_up()
        until(lambda: store.vectors["g"]["shop"] == shop.shop.end())
    assert store.commits == []


@pytest.mark.parametrize("algorithm", ["batched-sweep", "t-strobe", "nested-sweep", "recompute"])
def test_acknowledgements_never_pass_what_is_stored(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop()
    plans = [shop.group("g", {"v": (WITHIN, algorithm)}), shop.group("h", {"w": (THREE_WAY, "batched-sweep")})]
    store = shop.start(*plans)
    passed: list[str] = []

    for source in shop.sources.values():
        real = source.acknowledge

        def watched(upto: str, real: Callable[[str], None] = real, name: str = source.name) -> None:
            stored = [vector[name] for vector in store.vectors.values() if name in vector]
            if upto > min(stored):
                passed.append(f"{name}: {upto} > {min(stored)}")
            real(upto)

        monkeypatch.setattr(source, "acknowledge", watched)
    with Mediator(shop.sources, plans, MemoryZSet, store) as mediator:
        writers = shop.write_all(40)
        while any(thread.is_alive() for thread in writers):
            mediator._start_groups()
            mediator._acknowledge()
        mediator.catch_up()
        mediator._acknowledge()
    assert passed == []
    assert shop.shop.acknowledged == shop.shop.end()


# --- after a start ---


@pytest.mark.parametrize(
    ("sql", "algorithm"), [(ORDERS, "batched-sweep"), (THREE_WAY, "batched-sweep"), (ORDERS, "sweep")]
)
def test_the_first_commit_after_a_start_is_small_however_much_has_gathered(sql: str, algorithm: str) -> None:
    shop = Shop()
    plan = shop.group("g", {"v": (sql, algorithm)})
    store = shop.start(plan)
    for number in range(4_000):
        shop.shop.commit(order(number, cust=number % 5))
    maintain(shop, plan, store)
    sizes = [states for _, states in store.commits]
    assert sum(sizes) == 4_000
    assert sizes[0] <= group_module.FIRST_IN_PROGRESS
    # It grows: few commits suffice.
    assert len(sizes) <= 8
    shop.assert_right(plan, store.vectors["g"], store.contents)


def test_however_short_the_lives_every_one_of_them_gets_ahead() -> None:
    """Killed after its first commit, again and again."""
    shop = Shop()
    plan = shop.group("g", {"v": (ORDERS, "batched-sweep"), "o": (ORDERS, "sweep")})
    store = shop.start(plan)
    for number in range(600):
        shop.shop.commit(order(number, cust=number % 5))
    lives = 0
    while store.vectors["g"]["shop"] < shop.shop.end():
        lives += 1
        store.fails = lambda number, last=store._attempts + 1: number > last
        with suppress(StorageFailure):
            maintain(shop, resumed(plan, store), store)
        assert len(store.commits) == lives
        assert store.commits[-1][1] <= group_module.FIRST_IN_PROGRESS
    assert lives >= 600 // group_module.FIRST_IN_PROGRESS
    shop.assert_right(plan, store.vectors["g"], store.contents)


# --- commits that fail ---


@pytest.mark.parametrize("algorithm", ["batched-sweep", "t-strobe", "pipelined-sweep", "periodic-c-strobe"])
def test_a_commit_that_fails_loses_nothing(algorithm: str) -> None:
    shop = Shop()
    plan = replace(shop.group("g", {"a": (THREE_WAY, algorithm), "b": (WITHIN, algorithm)}), states_per_commit=2)
    store = shop.start(plan)
    store.fails = lambda number: number in (1, 3)
    failures = 0
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        joined(*shop.write_all(10))
        with pytest.raises(StorageFailure):
            mediator.catch_up()
    for _ in range(4):
        acknowledged = {name: source.acknowledged for name, source in shop.sources.items()}
        assert all(upto <= store.vectors["g"][name] for name, upto in acknowledged.items() if upto)
        recorder = Recorder()
        try:
            maintain(shop, resumed(plan, store), store, recorder)
        except StorageFailure:
            failures += 1
            continue
        break
    assert failures <= 1
    shop.assert_all_right(plan, store)
    places = [place(one) for one in store.transactions["g"]]
    assert len(places) == len(set(places)), "nothing twice"


def test_what_is_not_stored_is_not_in_the_history() -> None:
    shop = Shop()
    plan = shop.group("g", {"o": (ORDERS, "batched-sweep")})
    store, recorder = shop.start(plan), Recorder()
    store.fails = lambda number: True
    shop.shop.commit(order(1))
    with pytest.raises(StorageFailure):
        maintain(shop, plan, store, recorder)
    assert recorder.changes == {}


def test_an_unforeseen_error_ends_the_group_and_says_why() -> None:
    class Broken(MemoryStore):
        def commit(self, group: str, changes: Sequence[GroupChange], figures: Callable[[], object]) -> None:
            raise KeyError("a bug")

    shop = Shop()
    plan = shop.group("g", {"o": (ORDERS, "batched-sweep")})
    shop.shop.commit(order(1))
    with pytest.raises(ProtocolError, match=r"group g failed: KeyError\('a bug'\)"):
        maintain(shop, plan, Broken(shop.stored([plan]), [plan]))


def test_a_group_that_failed_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop()
    plans = [shop.group("bad", {"a": (ORDERS, "batched-sweep")}), shop.group("good", {"b": (ORDERS, "batched-sweep")})]
    store = shop.start(*plans)
    real = store.commit

    def commit(group: str, changes: Sequence[GroupChange], figures: Callable[[], object]) -> None:
        if group == "bad":
            raise StorageFailure("no space for this one")
        real(group, changes, figures)

    monkeypatch.setattr(store, "commit", commit)
    shop.shop.batch = 10
    with Mediator(shop.sources, plans, MemoryZSet, store) as mediator:
        mediator.feeds["shop"]._most_waiting = 20
        watched = threading.Event()

        def writes() -> None:
            if not watched.is_set():
                watched.set()
                for number in range(300):
                    shop.shop.commit(order(number))
            if store.vectors["good"]["shop"] == position(300):
                mediator.stop()

        mediator.run(watch=writes)
    assert store.vectors["good"]["shop"] == position(300)
    assert shop.shop.acknowledged <= position(0), "the group that failed still needs everything"
    assert [group.failure for group in mediator.report().groups] == ["no space for this one", None]


def test_a_group_that_failed_begins_again_at_its_last_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if its source, which another group is ahead at, no longer has its events in the log."""
    monkeypatch.setattr(retries, "FIRST_PAUSE", 0.01)
    shop = Shop()
    plans = [shop.group("bad", {"a": (THREE_WAY, "batched-sweep")}), shop.group("good", {"b": (WITHIN, "sweep")})]
    store, recorder = shop.start(*plans), Recorder()
    real, failed, attempts = store.commit, [0], set[int]()

    def commit(group: str, changes: Sequence[GroupChange], figures: Callable[[], object]) -> None:
        if group == "bad" and failed[0] < 3:
            failed[0] += 1
            raise StorageFailure("no space for this one")
        real(group, changes, figures)

    monkeypatch.setattr(store, "commit", commit)
    shop.shop.batch = shop.crm.batch = shop.geo.batch = 3
    writers: list[threading.Thread] = []

    def look() -> None:
        report = mediator.report()
        attempts.update(group.attempts for group in report.groups)
        if not writers:
            writers.extend(shop.write_all(30))
        ends = {name: source.end() for name, source in shop.sources.items()}
        if not any(one.is_alive() for one in writers) and all(one.caught_up(ends) for one in mediator.groups):
            mediator.stop()

    with Mediator(shop.sources, plans, MemoryZSet, store, recorder) as mediator:
        for feed in mediator.feeds.values():
            feed._most_waiting = 5
        mediator.run(watch=look)
        report = mediator.report()
    assert failed == [3]
    assert attempts >= {0, 1}
    assert max(attempts) <= 3
    assert [group.failure for group in report.groups] == [None, None]
    assert store.failures == {"bad": None, "good": None}
    for plan in plans:
        shop.assert_all_right(plan, store)
        places = [place(one) for one in store.transactions[plan.name]]
        assert len(places) == len(set(places)), "nothing twice"
    # Those that were delivered again are counted once.
    assert report.groups[0].transactions == len(store.transactions["bad"])


def test_a_source_that_refuses_is_tried_again_with_its_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_PAUSE", 0.01)
    shop = Shop()
    plans = [shop.group("g", {"a": (THREE_WAY, "batched-sweep")}), shop.group("h", {"b": (ORDERS, "sweep")})]
    store = shop.start(*plans)
    stream, refused = shop.crm.transactions, []

    def transactions(after: str | None, stop: threading.Event) -> Iterator[Batch]:
        if len(refused) < 2:
            refused.append(after)
            raise SourceUnfit("crm: password authentication failed")
        return stream(after, stop)

    monkeypatch.setattr(shop.crm, "transactions", transactions)
    shop.shop.commit(order(1))
    seen = set()

    def look() -> None:
        report = mediator.report()
        seen.update(group.failure for group in report.groups)
        if len(refused) == 2 and not any(group.failure for group in report.groups):
            ends = {name: source.end() for name, source in shop.sources.items()}
            if all(one.caught_up(ends) for one in mediator.groups):
                mediator.stop()

    with Mediator(shop.sources, plans, MemoryZSet, store) as mediator:
        mediator.run(watch=look)
    assert seen == {None, "crm: password authentication failed"}
    for plan in plans:
        shop.assert_all_right(plan, store)


def test_a_warehouse_that_another_process_took_over_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop()
    plan = shop.group("g", {"o": (ORDERS, "batched-sweep")})
    store = shop.start(plan)
    monkeypatch.setattr(store, "commit", Mock(side_effect=WriterPresent("another process writes")))
    shop.shop.commit(order(1))
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator, pytest.raises(WriterPresent):
        mediator.run()
    assert store.commit.call_count == 1


# --- views that fail ---


def test_a_view_that_fails_is_halted_alone() -> None:
    shop = Shop()
    plan = shop.group("g", {"bad": (OVERFLOWS, "batched-sweep"), "good": (THREE_WAY, "batched-sweep")})
    store = shop.start(plan)
    shop.shop.commit(order(1, amount=1))
    mediator = maintain(shop, plan, store)
    assert not mediator.report().halted
    shop.shop.commit(order(2, amount=2))
    shop.shop.commit(order(3, amount=3))
    mediator = maintain(shop, resumed(plan, store), store)
    assert list(store.halted) == ["bad"]
    assert mediator.report().halted == store.halted
    shop.assert_all_right(plan, store, "bad")
    assert store.contents["bad"].size() == 1, "as it was"
    # And the rest goes on without it.
    shop.shop.commit(order(4))
    maintain(shop, resumed(plan, store), store)
    shop.assert_all_right(plan, store, "bad")


@pytest.mark.parametrize(
    "failure", [Py4JNetworkError("Answer from Java side is empty"), StorageFailure("the disk is full")]
)
def test_what_may_pass_halts_no_view(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop()
    plan = shop.group("g", {"a": (THREE_WAY, "batched-sweep"), "b": (ORDERS, "batched-sweep")})
    store = shop.start(plan)
    shop.shop.commit(order(1))
    with monkeypatch.context() as broken:
        broken.setattr(MaintainedView, "deliver", Mock(side_effect=failure))
        with pytest.raises((EngineFailure, StorageFailure)):
            maintain(shop, plan, store)
    assert store.halted == {}
    maintain(shop, resumed(plan, store), store)
    assert store.contents["b"].size() == 1
    shop.assert_all_right(plan, store)


@pytest.mark.parametrize("algorithm", ["batched-sweep", "t-strobe", "nested-sweep", "recompute", "c-t-strobe"])
def test_a_view_that_fails_where_it_is_joined_is_halted_alone(algorithm: str) -> None:
    shop = Shop()
    bad = f"{THREE_WAY} WHERE o.amount * p.region * 4611686018427387904 > 0"
    within = f"{WITHIN} WHERE o.amount * l.item * 4611686018427387904 > 0"
    plan = shop.group("g", {"bad": (bad, algorithm), "within": (within, algorithm), "good": (THREE_WAY, algorithm)})
    store = shop.start(plan)
    shop.shop.commit(order(1, cust=2, amount=1), Change("shop.lines", (1, 1, 1), 1))
    shop.shop.commit(order(2, cust=2, amount=2), Change("shop.lines", (2, 2, 2), 1))
    mediator = maintain(shop, plan, store)
    assert set(store.halted) == {"bad", "within"}
    assert all("out of the range of BIGINT" in reason for reason in store.halted.values())
    assert mediator.report().groups[0].failure is None
    shop.assert_right(plan, store.vectors["g"], store.contents, "bad", "within")


def test_a_disruption_halts_the_views_over_its_relation() -> None:
    shop = Shop()
    plan = shop.group("g", {"w": (WITHIN, "t-strobe"), "o": (ORDERS, "t-strobe"), "p": (PEOPLE, "t-strobe")})
    store = shop.start(plan)
    shop.shop.commit(order(1))
    shop.shop.disrupt("shop.lines", "it was truncated")
    shop.shop.commit(order(2))
    shop.crm.commit(Change("crm.people", (77, 1), 1))
    maintain(shop, plan, store)
    assert store.halted == {"w": "shop.lines: it was truncated"}
    shop.assert_all_right(plan, store, "w")


def test_a_group_without_views_left_is_caught_up_and_needs_nothing() -> None:
    shop = Shop()
    plans = [shop.group("g", {"bad": (OVERFLOWS, "sweep")}), shop.group("h", {"o": (ORDERS, "sweep")})]
    store = shop.start(*plans)
    shop.shop.commit(order(2, amount=2))
    for number in range(3, 40):
        shop.shop.commit(order(number))
    with Mediator(shop.sources, plans, MemoryZSet, store) as mediator:
        mediator.feeds["shop"]._most_waiting = 5
        mediator.catch_up()
    assert list(store.halted) == ["bad"]
    assert shop.shop.acknowledged == shop.shop.end()
    shop.assert_all_right(plans[1], store)


@pytest.mark.parametrize("algorithm", ["batched-sweep", "g-strobe"])
def test_a_lost_position_halts_the_views_of_that_source_alone(algorithm: str) -> None:
    shop = Shop()
    shop.geo.commit(Change("geo.regions", (9, "nine"), 1))
    plan = shop.group("g", {"three": (THREE_WAY, algorithm), "within": (WITHIN, algorithm), "o": (ORDERS, algorithm)})
    plan = replace(plan, vector={**plan.vector, "geo": position(1)})
    other = shop.group("other", {"r": (REGIONS, algorithm)})
    store = shop.start(plan, other)
    shop.geo.acknowledge(position(3))
    for number in range(5):
        shop.shop.commit(order(number))
        shop.crm.commit(Change("crm.people", (50 + number, 1), 1), global_id=f"t{number}", participants=("crm", "geo"))
    maintain(shop, plan, store)
    assert list(store.halted) == ["three"]
    assert "forgotten" in store.halted["three"]
    shop.assert_right(plan, {**store.vectors["g"], "geo": shop.geo.end()}, store.contents, "three")
    assert store.vectors["g"]["shop"] == shop.shop.end()
    # The vector of the group still has the lost position, of a view that is halted: nobody else is hurt by it.
    shop.geo.commit(Change("geo.regions", (10, "ten"), 1))
    with Mediator(shop.sources, [resumed(plan, store), other], MemoryZSet, store) as mediator:
        mediator.catch_up()
    assert list(store.halted) == ["three"]
    shop.assert_all_right(other, store)


def test_a_reading_that_fails_for_good_fails_the_group_and_nothing_is_lost() -> None:
    shop = Shop()
    plan = shop.group("g", {"three": (THREE_WAY, "batched-sweep")})
    store = shop.start(plan)
    shop.crm.reading_fails = SourceUnfit("no privilege to read people", "grant it")
    shop.shop.commit(order(1))
    with pytest.raises(SourceUnfit, match="no privilege"):
        maintain(shop, plan, store)
    assert store.halted == {}
    shop.crm.reading_fails = None
    maintain(shop, resumed(plan, store), store)
    shop.assert_all_right(plan, store)


def test_a_reading_that_lost_its_position_halts_the_views_over_that_source() -> None:
    shop = Shop()
    plan = shop.group("g", {"three": (THREE_WAY, "sweep"), "o": (ORDERS, "sweep")})
    store = shop.start(plan)
    shop.crm.reading_fails = PositionLost("the copies of crm are gone")
    shop.shop.commit(order(1))
    maintain(shop, plan, store)
    assert store.halted == {"three": "the copies of crm are gone"}
    shop.assert_right(plan, {**store.vectors["g"], "crm": shop.crm.end()}, store.contents, "three")


def test_a_source_out_of_reach_is_said_after_some_patience() -> None:
    shop = Shop()
    plan = shop.group("g", {"three": (THREE_WAY, "batched-sweep")})
    store = shop.start(plan)
    shop.shop.commit(order(1))
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        shop.geo.out_of_reach = True
        until(lambda: mediator.feeds["geo"].trouble)
        with pytest.raises(SourceUnavailable, match="geo cannot be reached"):
            mediator.catch_up(patience=0.05)
        shop.geo.out_of_reach = False
        mediator.catch_up()
    shop.assert_all_right(plan, store)


def test_a_group_that_is_where_its_source_has_never_come_to_is_halted() -> None:
    """The source was put back from a backup, and the views of another group were reloaded since."""
    shop = Shop()
    ahead, other = shop.plan("v", ORDERS, "batched-sweep"), shop.plan("w", WITHIN, "batched-sweep")
    store = shop.start(ahead, other)
    ahead = replace(ahead, vector={**ahead.vector, "shop": position(99)})
    with Mediator(shop.sources, [ahead, other], MemoryZSet, store) as mediator:
        shop.shop.commit(order(1))
        mediator.catch_up()
    assert list(store.halted) == ["v"]
    assert "has not come as far" in store.halted["v"]
    shop.assert_all_right(other, store)
