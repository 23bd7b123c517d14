"""Runs a scenario over the live mediator's own group, and puts down what has to be judged.

    by commit     every commit of the sources by itself, though a capture merged it     strong, at most, if some were
    by capture    the transactions that the captures delivered                          what the algorithm promises

The history of a view is judged over all sources of its group: its vectors are those of the group, so a state that holds
a part of a global transaction is found though the other part concerns another view only. Blindly it is judged over its
own sources, for there it must be right by itself.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.checker.history import History, HistoryRelation, State
from viewkeeper.clock import seeded
from viewkeeper.mediator.group_plan import GroupPlan
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.mediator.without_quiet import MOST_BEHIND_ANSWERS
from viewkeeper.messages import Change, Transaction, Vector, position
from viewkeeper.sim.live_store import SimulatedStore
from viewkeeper.sim.live_world import LiveWorld
from viewkeeper.sim.outcome import Run, ViewRun
from viewkeeper.sim.scenario import Scenario
from viewkeeper.sim.setting import Setting, parsed
from viewkeeper.sim.trace import GROUP, Observer
from viewkeeper.sim.world import Event
from viewkeeper.sources.memory import MemorySource
from viewkeeper.sql.view import View


class LiveSimulation:
    """A scenario set up and ready: sources and captures around, a group of the mediator inside."""

    def __init__(self, scenario: Scenario, setting: Setting, observer: Observer) -> None:
        self._setting = setting
        self._merge = scenario.merge
        self._meta = {"algorithm": scenario.algorithm, "command": scenario.command()}
        relations = tuple(setting.relations.values())
        self._views = [
            parsed(sql, relations, f"v{number}") for number, sql in enumerate((setting.sql, *setting.more), start=1)
        ]
        views = tuple(_maintenance(view, scenario) for view in self._views)
        sources = {
            name: MemorySource(name, [r for r in relations if r.source == name], setting.rows)
            for name in dict.fromkeys(relation.source for relation in relations)
        }
        plan = GroupPlan(
            GROUP,
            views,
            dict.fromkeys(sources, position(0)),
            most_behind_answers=scenario.without_quiet or MOST_BEHIND_ANSWERS,
        )
        self._sources = plan.sources
        store = SimulatedStore(
            {how.view.name: _stored(how, setting.rows) for how in views},
            {how.view.name: how.view.columns for how in views},
            {source: position(0) for source in plan.sources},
        )
        self.world = LiveWorld(
            sources,
            {name: parts.copy() for name, parts in setting.script.items()},
            plan,
            store,
            merge=scenario.merge,
            restarts=scenario.restarts,
            parts_together=not scenario.crossing,
            random=seeded(scenario.seed + 2),
            observer=observer,
        )

    def run(self, choose: Callable[[list[Event]], Event]) -> Run:
        """Let events happen until none is left."""
        while events := self.world.enabled():
            self.world.perform(choose(events))
        self.world.finish()
        commits = self._concerning(self.world.committed)
        captures = self._concerning(sorted(self.world.committed_captures, key=lambda one: (one.position, one.source)))
        return Run(
            tuple(
                ViewRun(
                    view.name,
                    self._history(view, commits, self._sources),
                    alone=self._history(view, commits, view.sources) if len(self._views) > 1 else None,
                    captured=partial(self._history, view, captures, self._sources) if self._merge else None,
                )
                for view in self._views
            ),
            self.world.messages,
            waiting=self.world.in_progress,
        )

    def _concerning(self, transactions: Iterable[Transaction]) -> list[Transaction]:
        """Those that the group follows: parts of global transactions, and what changes one of its relations."""
        own = (replace(one, changes=self._read(one)) for one in transactions if one.source in self._sources)
        return [one for one in own if one.parts or one.changes]

    def _read(self, transaction: Transaction) -> tuple[Change, ...]:
        """The changes of relations that views of the group read."""
        return tuple(
            change for change in transaction.changes if any(change.relation in view.relations for view in self._views)
        )

    def _history(self, view: View, deliveries: Iterable[Transaction], sources: tuple[str, ...]) -> History:
        delivered = [one for one in deliveries if one.source in sources]
        relations = {
            name: HistoryRelation(relation, self._setting.rows[name])
            for of_group in self._views
            for name, relation in of_group.relations.items()
            if relation.source in sources
        }
        places = {source: [one.position for one in delivered if one.source == source] for source in sources}
        states = [State(state.rows[view.name], _among(places, state.vector)) for state in self.world.store.states]
        return History(view.sql, relations, tuple(delivered), tuple(states), self._meta, parsed=view)


def _among(places: Mapping[str, list[str]], vector: Vector) -> Vector:
    """The vector at transactions of the history: a group also notes how far a source has gone without concerning it."""
    return {
        source: max((place for place in own if place <= vector[source]), default=position(0))
        for source, own in places.items()
    }


def _maintenance(view: View, scenario: Scenario) -> Maintenance:
    return Maintenance(view, scenario.algorithm, scenario.transactions, dict(scenario.options))


def _stored(how: Maintenance, rows: Mapping[str, MemoryZSet]) -> MemoryZSet:
    """The content of a view as it is stored, hidden columns included."""
    contents = dict(rows)
    for source, views in (how.parts.local_views if how.parts else {}).items():
        for local in views:
            contents[f"{source}.{local.name}"] = JoinPlan(local).evaluate(rows)
    return JoinPlan(how.stored).evaluate(contents)
