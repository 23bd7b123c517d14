"""Transactions that span two sources, over the live mediator: shown whole, or caught by the checker."""

import threading
from dataclasses import replace

import pytest
from live_shop import Recorder, Shop, resumed

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.global_order import GlobalOrder
from viewkeeper.algorithms.registry import Transactions
from viewkeeper.checker.history import History, State
from viewkeeper.checker.judge import check
from viewkeeper.checker.judgement import Judgement
from viewkeeper.clock import seeded
from viewkeeper.levels import Level
from viewkeeper.mediator.group_plan import GroupPlan
from viewkeeper.mediator.mediator import Mediator
from viewkeeper.messages import Change, GlobalPart, Position, position
from viewkeeper.sources.base import as_transaction
from waiting import joined

BOTH = "SELECT o.id AS id, o.amount AS amount, p.region AS region FROM shop.orders o JOIN crm.people p ON o.cust = p.id"
PARTICIPANTS = ("shop", "crm")
ACCOUNTS = 4


class Accounts(Shop):
    """An order and a person each, with a number that global transactions raise on both sides at once."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = {"shop": [0] * ACCOUNTS, "crm": [0] * ACCOUNTS}
        for number in range(ACCOUNTS):
            self.shop.commit(Change("shop.orders", (number, 100 + number, 0), 1))
            self.crm.commit(Change("crm.people", (100 + number, 0), 1))

    def plan_for(self, algorithm: str) -> GroupPlan:
        plan = self.group("g", {"v": (BOTH, algorithm)})
        return replace(plan, views=tuple(replace(how, transactions=Transactions.GLOBAL) for how in plan.views))

    def raised(self, source: str, account: int, global_id: str | None = None) -> None:
        """One more at one source, as a part of a global transaction or alone."""
        now = self.numbers[source][account]
        self.numbers[source][account] += 1
        relation = {"shop": "shop.orders", "crm": "crm.people"}[source]
        row = (lambda n: (account, 100 + account, n)) if source == "shop" else (lambda n: (100 + account, n))
        self.sources[source].commit(
            Change(relation, row(now), -1),
            Change(relation, row(now + 1), 1),
            global_id=global_id,
            participants=PARTICIPANTS if global_id else (),
        )


class Run:
    """A mediator's run that can be judged."""

    def __init__(self, accounts: Accounts, algorithm: str) -> None:
        self.accounts = accounts
        self.plan = accounts.plan_for(algorithm)
        self.base = accounts.contents()
        self.store = accounts.start(self.plan)
        self.first = self.store.contents["v"]
        self.recorder = Recorder()

    def mediator(self) -> Mediator:
        plan = resumed(self.plan, self.store)
        return Mediator(self.accounts.sources, [plan], MemoryZSet, self.store, self.recorder)

    def judgement(self) -> Judgement:
        (how,) = self.plan.views
        vector: dict[str, Position] = dict(self.plan.vector)
        rows, states = self.first, [State(self.first.keep(how.view.columns), dict(vector))]
        for change in self.recorder.changes.get("g", []):
            vector.update(change.vector)
            for delta in change.deltas.get("v", ()):
                rows = rows + delta
            states.append(State(rows.keep(how.view.columns), dict(vector)))
        return check(History.of(how.view, self.base, self.recorder.deliveries["g"], states))

    def shown(self) -> set[tuple[object, ...]]:
        return {row for row, _ in self.store.contents["v"].keep(("id", "amount", "region")).weights()}


@pytest.mark.parametrize("algorithm", ["batched-sweep", "g-strobe"])
def test_a_half_is_not_shown_and_not_waited_for(algorithm: str) -> None:
    run = Run(Accounts(), algorithm)
    before = run.shown()
    with run.mediator() as mediator:
        run.accounts.raised("shop", 0, "t1")
        mediator.catch_up()
        assert run.shown() == before
        # What comes after the half at its source waits with it.
        run.accounts.raised("shop", 1)
        mediator.catch_up()
        assert run.shown() == before
        run.accounts.raised("crm", 0, "t1")
        mediator.catch_up()
        assert run.shown() == before - {(0, 0, 0), (1, 0, 0)} | {(0, 1, 1), (1, 1, 0)}
    assert run.judgement().level >= Level.STRONG


@pytest.mark.parametrize("algorithm", ["batched-sweep", "g-strobe"])
def test_a_half_survives_a_restart_as_nothing(algorithm: str) -> None:
    run = Run(Accounts(), algorithm)
    with run.mediator() as mediator:
        run.accounts.raised("crm", 2)
        run.accounts.raised("shop", 0, "t1")
        mediator.catch_up()
    assert run.accounts.shop.acknowledged < run.accounts.shop.end()
    run.accounts.raised("crm", 0, "t1")
    with run.mediator() as mediator:
        mediator.catch_up()
    assert {(0, 1, 1), (2, 0, 1)} <= run.shown()
    run.accounts.assert_all_right(run.plan, run.store)


def test_t_strobe_shows_a_half_and_the_checker_says_so() -> None:
    run = Run(Accounts(), "t-strobe")
    with run.mediator() as mediator:
        run.accounts.raised("shop", 0, "t1")
        mediator.catch_up()
        assert (0, 1, 0) in run.shown()
        run.accounts.raised("crm", 0, "t1")
        mediator.catch_up()
    judgement = run.judgement()
    assert judgement.level == Level.WEAK
    assert judgement.violations


def test_parts_that_cross_become_one_state() -> None:
    run = Run(Accounts(), "batched-sweep")
    with run.mediator() as mediator:
        for source, order in (("shop", ("t1", "t2")), ("crm", ("t2", "t1"))):
            for name in order:
                run.accounts.raised(source, int(name[1]), name)
        mediator.catch_up()
    (state,) = run.recorder.changes["g"]
    assert len(state.transactions) == 4
    assert run.judgement().level == Level.COMPLETE


def test_parts_that_were_captured_together_become_one_state() -> None:
    """A merged capture of shop holds its parts of t1 and t2: nothing can show one of them without the other."""
    run = Run(Accounts(), "batched-sweep")
    with run.mediator() as mediator:
        changes = [
            Change("shop.orders", (n, 100 + n, amount), sign) for n in (1, 2) for amount, sign in ((0, -1), (1, 1))
        ]
        parts = tuple(GlobalPart(name, PARTICIPANTS) for name in ("t1", "t2"))
        run.accounts.shop.commit_parts(*changes, parts=parts)
        run.accounts.raised("crm", 1, "t1")
        mediator.catch_up()
        assert not run.recorder.changes
        run.accounts.raised("crm", 3)
        run.accounts.raised("crm", 2, "t2")
        mediator.catch_up()
        assert mediator.report().groups[0].merged == 1
    (state,) = run.recorder.changes["g"]
    assert len(state.transactions) == 4
    judgement = run.judgement()
    assert judgement.level == Level.COMPLETE
    assert [sorted({id for one in unit for id in one.global_ids}) for unit in judgement.merged_units] == [["t1", "t2"]]


@pytest.mark.parametrize("algorithm", ["batched-sweep", "g-strobe"])
def test_views_over_different_sources_of_a_group_wait_for_each_part_once(algorithm: str) -> None:
    """A part from a source that one of the views does not read comes when that view has everything else."""
    accounts = Accounts()
    accounts.geo.commit(Change("geo.regions", (0, "north"), 1))
    regions = "SELECT p.id AS id, r.name AS name FROM crm.people p JOIN geo.regions r ON p.region = r.id"
    plan = accounts.group("g", {"v": (BOTH, algorithm), "w": (regions, algorithm)})
    plan = replace(plan, views=tuple(replace(how, transactions=Transactions.GLOBAL) for how in plan.views))
    store = accounts.start(plan)
    everywhere = {"global_id": "t1", "participants": ("shop", "crm", "geo")}
    with Mediator(accounts.sources, [plan], MemoryZSet, store) as mediator:
        accounts.shop.commit(Change("shop.orders", (9, 100, 5), 1), **everywhere)
        accounts.crm.commit(Change("crm.people", (109, 0), 1), **everywhere)
        mediator.catch_up()
        assert store.commits == []
        accounts.geo.commit(Change("geo.regions", (1, "south"), 1), **everywhere)
        mediator.catch_up()
        accounts.crm.commit(Change("crm.people", (110, 1), 1))
        mediator.catch_up()
        assert mediator.report().groups[0].in_progress == 0
    assert (110, "south") in {row for row, _ in store.contents["w"].keep(("id", "name")).weights()}
    accounts.assert_all_right(plan, store)


def under_load(algorithm: str, seed: int, count: int) -> None:
    accounts = Accounts()
    run = Run(accounts, algorithm)
    turn = threading.Lock()

    def writes(part: int) -> None:
        random = seeded(seed * 10 + part)
        for number in range(count):
            account = random.randrange(ACCOUNTS)
            if random.random() < 0.5:
                with turn:
                    sources = random.sample(PARTICIPANTS, 2)
                    accounts.raised(sources[0], account, f"t{part}-{number}")
                    if random.random() < 0.5:
                        threading.Event().wait(random.random() * 0.002)
                    accounts.raised(sources[1], account, f"t{part}-{number}")
            else:
                with turn:
                    accounts.raised(random.choice(PARTICIPANTS), account)

    with run.mediator() as mediator:
        writers = [threading.Thread(target=writes, args=(part,)) for part in range(2)]
        for thread in writers:
            thread.start()
        mediator.catch_up()
        joined(*writers)
        mediator.catch_up()
    accounts.assert_right(run.plan, run.store.vectors["g"], run.store.contents)
    promised = Level.COMPLETE if algorithm == "batched-sweep" else Level.STRONG
    judgement = run.judgement()
    assert judgement.level >= promised, judgement


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("algorithm", ["batched-sweep", "g-strobe"])
def test_global_transactions_are_shown_whole_under_load(algorithm: str, seed: int) -> None:
    under_load(algorithm, seed, count=15)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 140))
@pytest.mark.parametrize("algorithm", ["batched-sweep", "g-strobe"])
def test_global_transactions_are_shown_whole_under_much_load(algorithm: str, seed: int) -> None:
    under_load(algorithm, seed, count=60)


def test_rows_of_one_commit_with_one_id_are_one_part_with_all_participants() -> None:
    rows = ["east,west", "west, east", "east, north, north"]
    marks = [Change("east.global_tx", ("g", "east", participants), 1) for participants in rows]
    one = as_transaction("east", position(1), [marks[0], Change("east.t", (1,), 1), *marks[1:]])
    assert one.parts == (GlobalPart("g", ("east", "west", "north", "north")),)
    order = GlobalOrder(("east", "west"))
    assert order.arrive(one) == []
    other = as_transaction("west", position(1), [Change("west.global_tx", ("g", "west", "east,west"), 1)])
    assert [transaction for unit in order.arrive(other) for transaction in unit] == [one, other]
    # Of what is merged, each row is a part.
    merged = as_transaction("east", position(1), marks[:2], merged=True)
    assert sum(part.count for part in merged.parts) == 2
