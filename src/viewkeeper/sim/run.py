"""Runs a scenario: builds its world, lets the scheduler pick every event from the seed, records the history."""

from collections.abc import Callable

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algorithms.registry import algorithm, key_information, prepare
from viewkeeper.checker.history import History
from viewkeeper.clock import Random, seeded
from viewkeeper.levels import Level
from viewkeeper.sim.live_run import LiveSimulation
from viewkeeper.sim.outcome import Run, ViewRun
from viewkeeper.sim.scenario import Scenario
from viewkeeper.sim.setting import Setting, parsed, random_setting
from viewkeeper.sim.trace import Observer
from viewkeeper.sim.warehouse import SimulatedWarehouse
from viewkeeper.sim.world import Event, Happening, World
from viewkeeper.sources.memory import MemorySource
from viewkeeper.sql.decompose import decompose


def simulate(scenario: Scenario, observer: Observer | None = None) -> Run:
    """One run from its seed."""
    kind = LiveSimulation if scenario.live else Simulation
    simulation = kind(scenario, random_setting(scenario), observer or Observer())
    return simulation.run(RandomScheduler(seeded(scenario.seed + 1)).choose)


def promised_level(scenario: Scenario) -> Level:
    """The level that the algorithm promises in this scenario."""
    chosen = algorithm(scenario.algorithm)
    if scenario.joint_queries:
        return Level.NONE
    return chosen.out_of_order if scenario.out_of_order else chosen.levels[scenario.transactions]


class Simulation:
    """A scenario set up and ready: the world around, the algorithm inside."""

    def __init__(self, scenario: Scenario, setting: Setting, observer: Observer, command: str | None = None) -> None:
        view = self._view = parsed(setting.sql, tuple(setting.relations.values()))
        chosen = algorithm(scenario.algorithm)
        self._setting = setting
        self._meta = {"algorithm": scenario.algorithm, "command": command or scenario.command()}
        maintained, local_views = view, None
        if scenario.multi_relation:
            parts = decompose(view, keys=chosen.needs_keys)
            maintained, local_views = parts.assembly, parts.local_views
        plan, queue, process = prepare(
            scenario.algorithm,
            maintained,
            scenario.transactions,
            wrapped=scenario.multi_relation,
            options=dict(scenario.options),
        )
        sources = {
            name: MemorySource(name, [r for r in setting.relations.values() if r.source == name], setting.rows)
            for name in dict.fromkeys(relation.source for relation in setting.relations.values())
        }
        self.world = World(
            sources,
            {name: parts.copy() for name, parts in setting.script.items()},
            local_views=local_views,
            out_of_order=scenario.out_of_order,
            whole_transactions=scenario.whole_transactions,
            parts_together=not scenario.crossing,
            wrapper_batch=scenario.wrapper_batch,
            joint_queries=scenario.joint_queries,
            observer=observer,
        )
        contents = dict(setting.rows)
        for source, views in (local_views or {}).items():
            for local in views:
                contents[f"{source}.{local.name}"] = JoinPlan(local).evaluate(setting.rows)
        self.warehouse = self.world.warehouse = SimulatedWarehouse(
            plan,
            queue,
            process,
            plan.evaluate(contents),
            view.columns,
            tuple(sources),
            send=self.world.send,
            observer=observer,
            interval=int(dict(scenario.options).get("interval", 0)),
            key_information=key_information(scenario.algorithm, plan, scenario.transactions)
            if scenario.key_information
            else None,
        )

    def run(self, choose: Callable[[list[Event]], Event]) -> Run:
        """Let events happen until none is left."""
        while events := self.world.enabled():
            self.world.perform(choose(events))
        return self.result()

    def result(self) -> Run:
        return Run((ViewRun("v", self._history()),), self.warehouse.messages, self.world.local_queries)

    def _history(self) -> History:
        return History.of(
            view=self._view,
            rows=self._setting.rows,
            deliveries=self.world.deliveries,
            states=self.warehouse.states,
            meta=self._meta,
        )


class RandomScheduler:
    """Picks the next event at random, in moods: bursts of commits, quiet spells, slow answers, evenly."""

    _MOODS: tuple[dict[Happening, float], ...] = (
        {},
        {Happening.COMMIT: 6.0},
        {Happening.COMMIT: 0.0},
        {Happening.ANSWER: 0.2, Happening.DATABASE_ANSWERS: 0.3},
        {Happening.DELIVER: 0.2, Happening.WRAPPER_RECEIVES: 0.3, Happening.CAPTURE: 0.2, Happening.STEP: 0.3},
    )

    def __init__(self, random: Random) -> None:
        self._random = random
        self._mood: dict[Happening, float] = {}
        self._left = 0

    def choose(self, events: list[Event]) -> Event:
        if self._left == 0:
            self._mood = self._random.choice(self._MOODS)
            self._left = self._random.randint(1, 25)
        self._left -= 1
        weights = [self._mood.get(event.happening, _usual(event)) for event in events]
        if not any(weights):
            return self._random.choice(events)
        return self._random.choices(events, weights)[0]


def _usual(event: Event) -> float:
    """How often an event comes where the mood says nothing."""
    return 0.1 if event.happening is Happening.RESTART else 1.0
