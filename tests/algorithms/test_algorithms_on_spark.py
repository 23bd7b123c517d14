"""The production algorithms over the engine that goes by size: no state depends on where a delta is computed."""

from itertools import pairwise

import pytest

from run_size import some
from viewkeeper.algebra.adaptive import Engines
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.registry import Transactions, prepare
from viewkeeper.clock import seeded
from viewkeeper.sim.run import RandomScheduler, random_setting, simulate
from viewkeeper.sim.scenario import Scenario
from viewkeeper.sim.trace import Observer
from viewkeeper.sim.warehouse import SimulatedWarehouse
from viewkeeper.sim.world import World
from viewkeeper.sources.memory import MemorySource
from viewkeeper.sql.parse import parse_view


class AnsweringSource(MemorySource):
    """A source whose answers are computed by the engine of the query."""

    def __init__(self, name, relations, rows, make_zset):
        super().__init__(name, relations, rows)
        self._make_zset = make_zset

    def answer(self, query):
        return query.evaluate(
            {name: self._make_zset(held.columns, held.weights()) for name, held in self.contents.items()}
        )


class Writer(Observer):
    """Computes every state when it is installed, as a warehouse that stores it does."""

    def installed(self, delta, number, view):
        view.size()


def states(scenario, make_zset):
    """The states of a run, as the simulator makes them, with every Z-set of the algorithm from `make_zset`."""
    setting = random_setting(scenario)
    view = parse_view(setting.sql, setting.relations, name="v")
    plan, queue, process = prepare(scenario.algorithm, view, scenario.transactions, options=dict(scenario.options))
    queue.make_zset = make_zset
    sources = {
        name: AnsweringSource(
            name, [r for r in setting.relations.values() if r.source == name], setting.rows, make_zset
        )
        for name in dict.fromkeys(relation.source for relation in setting.relations.values())
    }
    observer = Writer()
    world = World(sources, {name: parts.copy() for name, parts in setting.script.items()}, observer=observer)
    initial = plan.evaluate(setting.rows)
    warehouse = world.warehouse = SimulatedWarehouse(
        plan, queue, process, make_zset(initial.columns, initial.weights()), view.columns, tuple(sources),
        send=world.send, observer=observer,
    )  # fmt: skip
    scheduler = RandomScheduler(seeded(scenario.seed + 1))
    while events := world.enabled():
        world.perform(scheduler.choose(events))
    return [(dict(state.rows.weights()), dict(state.vector)) for state in warehouse.states], warehouse.messages


@pytest.mark.parametrize(
    ("algorithm", "most_rows", "features"),
    [
        ("sweep", 0, {"seed": 54, "relations": 3, "updates": 3}),
        ("batched-sweep", 1, {"seed": 49, "relations": 3, "transactions": Transactions.LOCAL}),
        ("strobe", 0, {"seed": 16, "relations": 3}),
    ],
)
def test_every_state_is_the_same(spark, algorithm, most_rows, features):
    scenario = Scenario(algorithm=algorithm, **{"updates": 4, **features})
    sessions = []

    def session():
        sessions.append(spark)
        return spark

    on_spark, asked = states(scenario, Engines(session, most_rows).zset)
    in_memory, expected = states(scenario, MemoryZSet)
    assert on_spark == in_memory
    assert asked == expected
    assert len(sessions) >= 8, "the deltas went through Spark"
    simulated = simulate(scenario).history.states
    assert [rows for rows, _ in in_memory] == [dict(state.rows.weights()) for state in simulated]
    assert sum(one != next for (one, _), (next, _) in pairwise(in_memory)) >= 3, "the view changed"


@pytest.mark.parametrize("algorithm", ["batched-sweep", "sweep", "t-strobe"])
@pytest.mark.parametrize("seed", some(range(100, 106), 2))
def test_every_state_is_the_same_in_arrow(algorithm, seed):
    """With no row held in Python and none in Spark."""

    def no_session():
        raise AssertionError("Spark is started")

    scenario = Scenario(algorithm=algorithm, seed=seed, relations=3, updates=6, transactions=Transactions.LOCAL)
    in_arrow, asked = states(scenario, Engines(no_session, most_rows=0, most_bytes=1 << 30).zset)
    in_memory, expected = states(scenario, MemoryZSet)
    assert in_arrow == in_memory
    assert asked == expected
