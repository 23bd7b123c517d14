"""Parts of global transactions that do not come: named, given up on request or after a time, and never in silence."""

import threading
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from live_shop import Recorder, Shop, resumed
from test_global_transactions import Accounts

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.registry import Transactions
from viewkeeper.checker.history import History, State
from viewkeeper.checker.judge import check
from viewkeeper.checker.judgement import Reason
from viewkeeper.errors import PositionLost
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.levels import Level
from viewkeeper.maintenance.incomplete import IncompleteTransactions
from viewkeeper.mediator.mediator import Mediator
from viewkeeper.mediator.waits import ASKED, TIMEOUT, GivenUp, Wait
from viewkeeper.messages import Change, GlobalPart
from waiting import until

whole_ones = pytest.mark.parametrize("algorithm", ["batched-sweep", "g-strobe"])


class Remembered(IncompleteTransactions):
    """The files of a warehouse, for the one group of these tests."""

    @property
    def held(self) -> tuple[Wait, ...]:
        return tuple(self.waits("g"))

    @property
    def to_give_up(self) -> list[Wait]:
        return self.asked("g")

    @to_give_up.setter
    def to_give_up(self, waits: Collection[Wait]) -> None:
        for wait in waits:
            self.ask("g", wait)

    @property
    def gone(self) -> dict[str, GivenUp]:
        return {one.key: one for one in self.given_up("g")}


class Kept:
    """Accounts at two sources, a view over both, and runs that go on where the last one ended."""

    def __init__(self, folder: Path, algorithm: str, give_up_after: float | None = None) -> None:
        self.accounts = Accounts()
        self.plan = replace(self.accounts.plan_for(algorithm), give_up_after=give_up_after)
        self.base = self.accounts.contents()
        self.store = self.accounts.start(self.plan)
        self.first = self.store.contents["v"]
        self.remembered = Remembered(LocalStore(folder))
        self.recorder = Recorder()

    def mediator(self) -> Mediator:
        plan = resumed(self.plan, self.store)
        sources = self.accounts.sources
        return Mediator(sources, [plan], MemoryZSet, self.store, self.recorder, wait_store=self.remembered)

    def catch_up(self) -> tuple[Wait, ...]:
        """What is still waited for at the end."""
        with self.mediator() as mediator:
            mediator.catch_up()
            return mediator.report().groups[0].waits

    def shown(self) -> set[tuple[object, ...]]:
        return {row for row, _ in self.store.contents["v"].keep(("id", "amount", "region")).weights()}

    def judged(self) -> tuple[Level, Reason | None]:
        (how,) = self.plan.views
        vector, rows = dict(self.plan.vector), self.first
        states = [State(rows.keep(how.view.columns), dict(vector))]
        for change in self.recorder.changes.get("g", []):
            vector.update(change.vector)
            for delta in change.deltas.get("v", ()):
                rows = rows + delta
            states.append(State(rows.keep(how.view.columns), dict(vector)))
        seen = {}
        for one in self.recorder.deliveries["g"]:
            seen[one.source, one.position] = one
        judgement = check(History.of(how.view, self.base, seen.values(), states))
        return judgement.level, judgement.violation.reason if judgement.violation else None


@whole_ones
def test_a_part_that_is_missing_is_named(tmp_path: Path, algorithm: str) -> None:
    kept = Kept(tmp_path, algorithm)
    kept.accounts.raised("shop", 0, "t1")
    kept.accounts.raised("shop", 1)
    (wait,) = kept.catch_up()
    assert (wait.id, wait.missing, [source for source, _ in wait.arrived]) == ("t1", ("crm",), ["shop"])
    assert kept.remembered.held == (wait,)
    # The next run knows since when.
    assert kept.catch_up() == (wait,)
    kept.accounts.raised("crm", 0, "t1")
    assert kept.catch_up() == ()
    assert kept.remembered.held == ()
    assert {(0, 1, 1), (1, 1, 0)} <= kept.shown()


@whole_ones
def test_an_id_that_is_used_again_waits_for_its_own_part(tmp_path: Path, algorithm: str) -> None:
    kept = Kept(tmp_path, algorithm)
    for source in ("shop", "crm", "shop"):
        kept.accounts.raised(source, 0, "t1")
    (wait,) = kept.catch_up()
    assert (wait.id, wait.missing) == ("t1", ("crm",))
    # g-strobe installs when everything that was delivered is whole.
    assert ((0, 1, 1) in kept.shown()) == (algorithm == "batched-sweep")
    kept.accounts.raised("crm", 0, "t1")
    assert kept.catch_up() == ()
    assert (0, 2, 2) in kept.shown()
    assert kept.judged()[0] >= Level.STRONG


@whole_ones
def test_two_parts_of_one_source_are_counted(tmp_path: Path, algorithm: str) -> None:
    kept = Kept(tmp_path, algorithm)
    twice = GlobalPart("t1", ("shop", "shop", "crm"))
    row = Change("shop.orders", (7, 100, 1), 1)
    kept.accounts.shop.commit_parts(row, parts=(twice,))
    kept.accounts.crm.commit_parts(Change("crm.people", (109, 0), 1), parts=(twice,))
    (wait,) = kept.catch_up()
    assert wait.missing == ("shop",)
    kept.accounts.shop.commit_parts(replace(row, row=(8, 109, 1)), parts=(twice,))
    assert kept.catch_up() == ()
    assert {(7, 1, 0), (8, 1, 0)} <= kept.shown()


@whole_ones
@pytest.mark.parametrize("restarted", [False, True])
def test_a_wait_that_is_given_up_on_request(tmp_path: Path, algorithm: str, restarted: bool) -> None:
    """The half is shown with what waited for it, the late part by itself; then all is whole again, and so is the next
    transaction with that id. The checker calls it weak."""
    kept = Kept(tmp_path, algorithm)
    kept.accounts.raised("shop", 0, "t1")
    kept.accounts.raised("shop", 1)
    kept.remembered.to_give_up = list(kept.catch_up())
    with kept.mediator() as mediator:
        mediator.catch_up()
        (group,) = mediator.report().groups
        assert group.waits == ()
        (given,) = group.given_up
        assert (given.id, given.missing, given.why) == ("t1", ("crm",), ASKED)
        assert kept.remembered.to_give_up == []
        assert {(0, 1, 0), (1, 1, 0)} <= kept.shown()
        if not restarted:
            kept.accounts.raised("crm", 0, "t1")
            mediator.catch_up()
    if restarted:
        assert list(kept.remembered.gone) == [given.key]
        kept.accounts.raised("crm", 0, "t1")
        assert kept.catch_up() == ()
    assert (0, 1, 1) in kept.shown()
    assert kept.remembered.gone == {}
    assert kept.judged() == (Level.WEAK, Reason.SPLIT_GLOBAL_TRANSACTION)
    kept.accounts.assert_all_right(kept.plan, kept.store)
    kept.accounts.raised("shop", 0, "t1")
    (wait,) = kept.catch_up()
    assert wait.missing == ("crm",)


def test_a_part_that_came_before_the_wait_is_given_up_is_shown_with_the_others(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "batched-sweep")
    kept.accounts.raised("shop", 0, "t1")
    kept.remembered.to_give_up = list(kept.catch_up())
    kept.accounts.raised("crm", 0, "t1")
    # The stream with the other part begins first, and nothing is under way while the missing one is on its way.
    kept.accounts.crm.batch = 1
    assert kept.catch_up() == ()
    assert kept.remembered.gone == {}
    assert kept.judged() == (Level.COMPLETE, None)


@whole_ones
def test_a_wait_is_given_up_after_its_time(tmp_path: Path, algorithm: str) -> None:
    kept = Kept(tmp_path, algorithm, give_up_after=0.0)
    kept.accounts.raised("shop", 0, "t1")
    kept.accounts.raised("shop", 1)
    assert kept.catch_up() == ()
    assert {(0, 1, 0), (1, 1, 0)} <= kept.shown()
    (given,) = kept.remembered.gone.values()
    assert given.why == TIMEOUT
    assert kept.judged() == (Level.WEAK, Reason.INCOMPLETE_GLOBAL_TRANSACTION)


def test_a_source_that_cannot_be_reached_is_not_given_up(tmp_path: Path) -> None:
    """Its part may be there: nobody can know."""
    kept = Kept(tmp_path, "batched-sweep", give_up_after=0.0)
    with kept.mediator() as mediator:
        mediator.catch_up()
        kept.accounts.crm.unreachable_end = True
        kept.accounts.raised("shop", 0, "t1")
        mediator.run(0.3)
        (wait,) = mediator.report().groups[0].waits
        assert wait.missing == ("crm",)
        kept.accounts.crm.unreachable_end = False
        mediator.catch_up()
        assert mediator.report().groups[0].waits == ()
    assert len(kept.remembered.gone) == 1


def test_what_was_captured_together_is_given_up_together(tmp_path: Path) -> None:
    """shop has parts of t1 and t2 in one transaction; the part of t2 from crm does not come."""
    kept = Kept(tmp_path, "batched-sweep")
    changes = [Change("shop.orders", (n, 100 + n, amount), sign) for n in (1, 2) for amount, sign in ((0, -1), (1, 1))]
    parts = tuple(GlobalPart(name, ("shop", "crm")) for name in ("t1", "t2"))
    kept.accounts.shop.commit_parts(*changes, parts=parts)
    kept.accounts.raised("crm", 1, "t1")
    (wait,) = kept.catch_up()
    assert wait.id == "t2"
    kept.remembered.to_give_up = [wait]
    assert kept.catch_up() == ()
    assert {(1, 1, 1), (2, 1, 0)} <= kept.shown()
    assert len(kept.recorder.changes["g"]) == 1
    kept.accounts.raised("crm", 2, "t2")
    assert kept.catch_up() == ()
    assert kept.remembered.gone == {}
    kept.accounts.assert_all_right(kept.plan, kept.store)


def test_a_view_that_does_not_keep_transactions_whole_waits_for_nothing(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "t-strobe")
    kept.accounts.raised("shop", 0, "t1")
    assert kept.catch_up() == ()
    assert (0, 1, 0) in kept.shown()


def test_a_run_that_is_at_work_is_asked_to_give_up(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "batched-sweep")
    with kept.mediator() as mediator:
        kept.accounts.raised("shop", 0, "t1")
        mediator.catch_up()

        def ask_once_it_is_noted() -> None:
            if kept.remembered.held and not kept.remembered.gone:
                kept.remembered.to_give_up = list(kept.remembered.held)
            if (0, 1, 0) in kept.shown():
                mediator.stop()

        mediator.run(60, ask_once_it_is_noted)
    assert (0, 1, 0) in kept.shown()
    assert [given.why for given in kept.remembered.gone.values()] == [ASKED]


def test_a_second_request_is_not_forgotten_with_the_first(tmp_path: Path) -> None:
    """It is written when the first has been read and is not done yet."""
    kept = Kept(tmp_path, "batched-sweep")
    kept.accounts.raised("shop", 0, "t1")
    kept.accounts.raised("crm", 2, "t2")
    one, two = sorted(kept.catch_up(), key=lambda wait: wait.id)
    kept.remembered.to_give_up = [one]
    asked = kept.remembered.asked

    def asked_again(group: str) -> list[Wait]:
        found = asked(group)
        if found == [one]:
            kept.remembered.ask(group, two)
        return found

    kept.remembered.asked = asked_again  # type: ignore[method-assign]
    with kept.mediator() as mediator:
        mediator.run(60, lambda: mediator.stop() if {(0, 1, 0), (2, 0, 1)} <= kept.shown() else None)
    assert sorted(given.id for given in kept.remembered.gone.values()) == ["t1", "t2"]
    assert kept.remembered.to_give_up == []
    assert {(0, 1, 0), (2, 0, 1)} <= kept.shown()


def test_a_wait_is_given_up_while_a_question_is_out(tmp_path: Path) -> None:
    """Under a steady load one always is."""
    kept = Kept(tmp_path, "batched-sweep", give_up_after=0.0)
    kept.plan = replace(kept.plan, most_known=0)
    with kept.mediator() as mediator:
        mediator.catch_up()
        kept.accounts.shop.open_gate.clear()
        kept.accounts.raised("crm", 3)
        until(lambda: kept.accounts.shop.readings)
        kept.accounts.raised("crm", 0, "t1")
        until(lambda: kept.remembered.gone)
        assert (3, 0, 1) not in kept.shown()
        kept.accounts.shop.open_gate.set()
        mediator.catch_up()
    assert [one.why for one in kept.remembered.gone.values()] == [TIMEOUT]
    assert {(0, 0, 1), (3, 0, 1)} <= kept.shown()
    kept.accounts.assert_all_right(kept.plan, kept.store)


def test_waits_that_cross_the_limit_of_what_is_in_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its two parts each source has more transactions than may be in progress."""
    monkeypatch.setattr("viewkeeper.mediator.group.MOST_IN_PROGRESS", 5)
    kept = Kept(tmp_path, "batched-sweep")
    for source, first, last in (("shop", "t1", "u1"), ("crm", "u1", "t1")):
        kept.accounts.raised(source, 0, first)
        for _ in range(10):
            kept.accounts.raised(source, 1)
        kept.accounts.raised(source, 2, last)
    assert kept.catch_up() == ()
    assert {(0, 1, 1), (1, 10, 10), (2, 1, 1)} <= kept.shown()


def test_a_source_that_does_not_answer_holds_up_no_state(tmp_path: Path) -> None:
    """Whether a part has not come is asked there, and nothing waits for the answer."""
    kept = Kept(tmp_path, "batched-sweep", give_up_after=0.0)
    asked, answer = threading.Event(), threading.Event()
    end = kept.accounts.crm.end

    def slow_end() -> str:
        asked.set()
        assert answer.wait(30)
        return end()

    with kept.mediator() as mediator:
        mediator.catch_up()
        kept.accounts.crm.end = slow_end  # type: ignore[method-assign]
        kept.accounts.raised("shop", 0, "t1")
        until(asked.is_set)
        kept.accounts.raised("crm", 3)
        until(lambda: (3, 0, 1) in kept.shown())
        assert not kept.remembered.gone
        answer.set()
        until(lambda: (0, 1, 0) in kept.shown())
    assert len(kept.remembered.gone) == 1


def test_a_source_that_is_out_of_reach_is_not_asked(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "batched-sweep", give_up_after=0.0)
    with kept.mediator() as mediator:
        mediator.catch_up()
        kept.accounts.crm.out_of_reach = kept.accounts.crm.unreachable_end = True
        until(lambda: mediator.feeds["crm"].trouble)
        kept.accounts.raised("shop", 0, "t1")
        until(lambda: mediator.report().groups[0].waits)
        kept.accounts.crm.out_of_reach = kept.accounts.crm.unreachable_end = False
        until(lambda: kept.remembered.gone)


def test_a_wait_for_a_source_that_is_lost_ends(tmp_path: Path) -> None:
    """The views over it are halted; the others neither wait for its parts nor fail."""
    shop = Shop()
    texts = {
        "v1": "SELECT o.id AS id, p.region AS region FROM shop.orders o JOIN crm.people p ON o.cust = p.id",
        "v2": "SELECT o.id AS id, r.name AS name FROM shop.orders o JOIN geo.regions r ON o.cust = r.id",
    }
    plan = shop.group("g", {name: (text, "batched-sweep") for name, text in texts.items()})
    views = tuple(replace(how, transactions=Transactions.GLOBAL) for how in plan.views)
    plan = replace(plan, views=views, give_up_after=0.0)
    store = shop.start(plan)
    remembered = Remembered(LocalStore(tmp_path))
    with Mediator(shop.sources, [plan], MemoryZSet, store, wait_store=remembered) as mediator:
        mediator.catch_up()
        shop.crm.unreachable_end = shop.geo.unreachable_end = True
        shop.shop.commit(Change("shop.orders", (1, 2, 1), 1), global_id="t2", participants=("shop", "geo"))
        shop.shop.commit(Change("shop.orders", (2, 2, 1), 1), global_id="t1", participants=("shop", "crm"))
        until(lambda: len(mediator.report().groups[0].waits) == 2)
        mediator.feeds["crm"].failure = PositionLost("crm has forgotten it", "reload")
        mediator.groups[0].wake()
        until(lambda: mediator.report().halted)
        shop.geo.unreachable_end = False
        mediator.catch_up()
        (group,) = mediator.report().groups
    assert (group.failure, group.waits) == (None, ())
    assert [given.id for given in group.given_up] == ["t2"]
    assert {row[0] for row, _ in store.contents["v2"].keep(("id", "name")).weights()} == {1, 2}
