"""Theorems 1 to 4 of the multi-relation wrapper paper, as properties of random views, contents and interleavings."""

import pytest

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.registry import Transactions
from viewkeeper.clock import seeded
from viewkeeper.messages import Transaction
from viewkeeper.sim.chains import Calm, Storm, chain, run_chain
from viewkeeper.sim.random_updates import random_script
from viewkeeper.sim.random_views import random_relations, random_rows, random_view
from viewkeeper.sim.run import RandomScheduler, Simulation, random_setting
from viewkeeper.sim.scenario import Scenario
from viewkeeper.sim.trace import Observer
from viewkeeper.sql.decompose import decompose

SEEDS = range(40)


def random_world(seed):
    random = seeded(seed)
    relations = random_relations(random, 3 + seed % 3, 2, keyless=seed % 2 == 0)
    rows = {name: random_rows(random, relation) for name, relation in relations.items()}
    view = random_view(random, relations, self_join=seed % 4 == 0)
    script = random_script(random, relations, rows, updates=6, transactions=Transactions.LOCAL, crossing=False)
    return view, rows, script


def apply(rows, changes):
    after = dict(rows)
    for change in changes:
        after[change.relation] += MemoryZSet(after[change.relation].columns, [(change.row, change.count)])
    return after


def local_contents(parts, rows):
    return {
        f"{source}.{view.name}": JoinPlan(view).evaluate(rows)
        for source, views in parts.local_views.items()
        for view in views
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_theorem_1_delta_v_from_delta_is_equals_delta_v_from_delta_r(seed):
    view, rows, script = random_world(seed)
    plan, parts = JoinPlan(view), decompose(view)
    assembly = JoinPlan(parts.assembly)
    for part in [part for parts_of_source in script.values() for part in parts_of_source]:
        after = apply(rows, part.changes)
        direct = plan.evaluate(after) - plan.evaluate(rows)
        before_local, after_local = local_contents(parts, rows), local_contents(parts, after)
        changed = {name for name in before_local if before_local[name] != after_local[name]}
        assert all(name.startswith(f"{part.source}.") for name in changed), "ΔIS stays at the source of ΔR"
        through_wrapper = assembly.evaluate(after_local) - assembly.evaluate(before_local)
        assert through_wrapper == direct
        rows = after


class OrderWatcher(Observer):
    """Whether each answer shows exactly the ΔIS that left before it."""

    def __init__(self) -> None:
        self.simulation: Simulation
        self.delivered_positions: dict[str, int] = {}
        self.contents: dict[tuple[str, int], dict[str, MemoryZSet]] = {}
        self.answers = 0

    def committed(self, transaction: Transaction) -> None:
        source = self.simulation.world._sources[transaction.source]
        self.contents[transaction.source, int(transaction.position)] = dict(source.contents)

    def delivered(self, transaction: Transaction) -> None:
        self.delivered_positions[transaction.source] = int(transaction.position)

    def answer_delivered(self, ticket: int, query: object, rows: MemoryZSet) -> None:
        reflected = self.delivered_positions.get(query.source, 0)
        plan = self.simulation.world._wrappers[query.source]._plans[query.hop.operand.relation.name]
        expected = query.evaluate(
            {query.hop.operand.relation.name: plan.evaluate(self.contents[query.source, reflected])}
        )
        assert rows == expected, "the answer reflects other updates than those that left before it"
        self.answers += 1


@pytest.mark.parametrize("seed", SEEDS)
def test_theorem_2_each_answer_reflects_exactly_what_left_before_it(seed):
    scenario = Scenario(
        "sweep",
        seed,
        relations=4,
        updates=14,
        transactions=Transactions.LOCAL,
        multi_relation=True,
        keyless=seed % 2 == 0,
    )
    watcher = OrderWatcher()
    setting = random_setting(scenario)
    simulation = watcher.simulation = Simulation(scenario, setting, watcher)
    for name, source in simulation.world._sources.items():
        watcher.contents[name, 0] = dict(source.contents)
    simulation.run(RandomScheduler(seeded(seed)).choose)
    assert watcher.answers > 0 or all(len(r.operands) == 1 for r in [simulation.warehouse.plan])


@pytest.mark.parametrize("relations", [2, 3, 4, 5])
@pytest.mark.parametrize(("timing", "most"), [(Calm, 12), (Storm, 6)])
def test_theorem_3_no_waiting_without_end(relations, timing, most):
    """ΔIS takes one local query, however many relations the source has; updates that wait together share them."""
    updates = [(number % relations + 1, 1) for number in range(12)]
    setting = chain(relations, updates, per_source=relations)
    run = run_chain("sweep", setting, timing(), multi_relation=True)
    assert run.local_queries <= most
    assert len(run.history.deliveries) == 12


@pytest.mark.parametrize("seed", SEEDS)
def test_theorem_4_the_order_of_receipt_does_not_affect_the_final_view(seed):
    scenario = Scenario("sweep", seed, relations=4, updates=10, transactions=Transactions.LOCAL, multi_relation=True)
    setting = random_setting(scenario)
    finals = set()
    for order in range(5):
        simulation = Simulation(scenario, setting, Observer())
        run = simulation.run(RandomScheduler(seeded(1000 * seed + order)).choose)
        finals.add(run.history.states[-1].rows.fingerprint())
    assert len(finals) == 1
