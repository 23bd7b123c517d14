"""Parts of global transactions that do not come: named, given up on request or after a time, and never in silence."""

from collections.abc import Collection
from dataclasses import replace

import pytest
from live_shop import Recorder, resumed
from test_global_transactions import Accounts

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.checker.history import History, State
from viewkeeper.checker.judge import check
from viewkeeper.checker.judgement import Reason
from viewkeeper.levels import Level
from viewkeeper.mediator.mediator import Mediator
from viewkeeper.mediator.waits import ASKED, TIMEOUT, GivenUp, Wait
from viewkeeper.messages import Change, GlobalPart

whole_ones = pytest.mark.parametrize("algorithm", ["batched-sweep", "g-strobe"])


class Remembered:
    """A wait store in memory."""

    def __init__(self) -> None:
        self.held: tuple[Wait, ...] = ()
        self.to_give_up: list[Wait] = []
        self.gone: dict[str, GivenUp] = {}

    def waits(self, group: str) -> Collection[Wait]:
        return self.held

    def note_waits(self, group: str, waits: Collection[Wait]) -> None:
        self.held = tuple(waits)

    def asked(self, group: str) -> Collection[Wait]:
        return self.to_give_up

    def forget_asked(self, group: str) -> None:
        self.to_give_up = []

    def given_up(self, group: str) -> Collection[GivenUp]:
        return list(self.gone.values())

    def note_given_up(self, group: str, given: GivenUp) -> None:
        self.gone[given.key] = given

    def forget_given_up(self, group: str, given: GivenUp) -> None:
        del self.gone[given.key]


class Kept:
    """Accounts at two sources, a view over both, and runs that go on where the last one ended."""

    def __init__(self, algorithm: str, give_up_after: float | None = None) -> None:
        self.accounts = Accounts()
        self.plan = replace(self.accounts.plan_for(algorithm), give_up_after=give_up_after)
        self.base = self.accounts.contents()
        self.store = self.accounts.start(self.plan)
        self.first = self.store.contents["v"]
        self.remembered = Remembered()
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
def test_a_part_that_is_missing_is_named(algorithm: str) -> None:
    kept = Kept(algorithm)
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
def test_an_id_that_is_used_again_waits_for_its_own_part(algorithm: str) -> None:
    kept = Kept(algorithm)
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
def test_two_parts_of_one_source_are_counted(algorithm: str) -> None:
    kept = Kept(algorithm)
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
def test_a_wait_that_is_given_up_on_request(algorithm: str, restarted: bool) -> None:
    """The half is shown with what waited for it, the late part by itself; then all is whole again, and so is the next
    transaction with that id. The checker calls it weak."""
    kept = Kept(algorithm)
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


def test_a_part_that_came_before_the_wait_is_given_up_is_shown_with_the_others() -> None:
    kept = Kept("batched-sweep")
    kept.accounts.raised("shop", 0, "t1")
    kept.remembered.to_give_up = list(kept.catch_up())
    kept.accounts.raised("crm", 0, "t1")
    # The stream with the other part begins first, and nothing is under way while the missing one is on its way.
    kept.accounts.crm.batch = 1
    assert kept.catch_up() == ()
    assert kept.remembered.gone == {}
    assert kept.judged() == (Level.COMPLETE, None)


@whole_ones
def test_a_wait_is_given_up_after_its_time(algorithm: str) -> None:
    kept = Kept(algorithm, give_up_after=0.0)
    kept.accounts.raised("shop", 0, "t1")
    kept.accounts.raised("shop", 1)
    assert kept.catch_up() == ()
    assert {(0, 1, 0), (1, 1, 0)} <= kept.shown()
    (given,) = kept.remembered.gone.values()
    assert given.why == TIMEOUT
    assert kept.judged() == (Level.WEAK, Reason.INCOMPLETE_GLOBAL_TRANSACTION)


def test_a_source_that_cannot_be_reached_is_not_given_up() -> None:
    """Its part may be there: nobody can know."""
    kept = Kept("batched-sweep", give_up_after=0.0)
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


def test_what_was_captured_together_is_given_up_together() -> None:
    """shop has parts of t1 and t2 in one transaction; the part of t2 from crm does not come."""
    kept = Kept("batched-sweep")
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


def test_a_view_that_does_not_keep_transactions_whole_waits_for_nothing() -> None:
    kept = Kept("t-strobe")
    kept.accounts.raised("shop", 0, "t1")
    assert kept.catch_up() == ()
    assert (0, 1, 0) in kept.shown()


def test_a_run_that_is_at_work_is_asked_to_give_up() -> None:
    kept = Kept("batched-sweep")
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
