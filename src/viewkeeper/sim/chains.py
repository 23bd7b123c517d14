"""Chains of relations in which every row meets a partner, and timings from calm to hostile: to count messages by.

r1(k, a, b) ⋈ r2(k, a, b) ⋈ ... ⋈ rn(k, a, b)          on b = a, all of them 0
"""

from collections import deque

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.registry import Transactions
from viewkeeper.messages import Change
from viewkeeper.sim.outcome import Run
from viewkeeper.sim.random_updates import Part
from viewkeeper.sim.run import Simulation
from viewkeeper.sim.scenario import Scenario
from viewkeeper.sim.setting import Setting
from viewkeeper.sim.trace import Observer
from viewkeeper.sim.world import Event, Happening
from viewkeeper.sql.relation import Relation

COLUMNS = ("k", "a", "b")


def chain(relations: int, updates: list[tuple[int, int]], *, rows: int = 2, per_source: int = 1) -> Setting:
    """A chain of relations r1, r2, ... with `rows` rows each. An update (j, +1) inserts a new row into the j-th
    relation, (j, -1) deletes the oldest one that is left."""
    made = {}
    for number in range(1, relations + 1):
        source = f"s{(number - 1) // per_source + 1}"
        made[number] = Relation(f"{source}.r{number}", source, COLUMNS, ("BIGINT",) * 3, ("k",))
    tables = ", ".join(relation.name for relation in made.values())
    joins = " AND ".join(f"r{number}.b = r{number + 1}.a" for number in range(1, relations))
    sql = f"SELECT r1.k AS k FROM {tables}" + (f" WHERE {joins}" if joins else "")
    keys = {number: deque(range(rows)) for number in made}
    newest = dict.fromkeys(made, rows - 1)
    script: dict[str, deque[Part]] = {relation.source: deque() for relation in made.values()}
    for number, count in updates:
        if count > 0:
            newest[number] += 1
            keys[number].append(newest[number])
        key = newest[number] if count > 0 else keys[number].popleft()
        relation = made[number]
        script[relation.source].append(Part(relation.source, (Change(relation.name, (key, 0, 0), count),)))
    return Setting(
        relations={relation.name: relation for relation in made.values()},
        rows={r.name: MemoryZSet(COLUMNS, (((key, 0, 0), 1) for key in range(rows))) for r in made.values()},
        sql=sql,
        script=script,
    )


def run_chain(
    algorithm: str,
    setting: Setting,
    choose: "Timing",
    *,
    multi_relation: bool = False,
    options: tuple[tuple[str, int | bool], ...] = (),
) -> Run:
    """An algorithm over a chain, under a timing."""
    scenario = Scenario(
        algorithm=algorithm,
        seed=0,
        relations=len(setting.relations),
        sources=len(setting.script),
        transactions=Transactions.SINGLE,
        multi_relation=multi_relation,
        options=options,
    )
    return Simulation(scenario, setting, Observer()).run(choose)


class Timing:
    """Picks the event that comes first in `order`; of several, the one at the first source."""

    order: tuple[Happening, ...]

    def __call__(self, events: list[Event]) -> Event:
        return min(events, key=lambda event: self.order.index(event.happening))


INNER = (Happening.DATABASE_ANSWERS, Happening.WRAPPER_RECEIVES)


class Calm(Timing):
    """Every update is over before the next one commits."""

    order = (*INNER, Happening.ANSWER, Happening.DELIVER, Happening.COMMIT)


class Storm(Timing):
    """Everything commits and is delivered before any query is answered."""

    order = (Happening.COMMIT, *INNER, Happening.DELIVER, Happening.ANSWER)


class Hostile(Timing):
    """Before any query is answered, every other source commits one more transaction and has it delivered.

    It begins with one transaction of the first source, to which all the others come.
    """

    def __init__(self) -> None:
        self._owed: deque[Event] = deque([Event(Happening.COMMIT, "s1"), Event(Happening.DELIVER, "s1")])

    def __call__(self, events: list[Event]) -> Event:
        while self._owed:
            owed = self._owed.popleft()
            if owed in events:
                return owed
        answering = next((event for event in events if event.happening is Happening.ANSWER), None)
        if answering is None:
            return min(events, key=lambda event: event.happening is Happening.COMMIT)
        commits = [event.source for event in events if event.happening is Happening.COMMIT and event.source != "s1"]
        for source in commits:
            self._owed += (Event(Happening.COMMIT, source), Event(Happening.DELIVER, source))
        self._owed += (answering, Event(Happening.DELIVER, answering.source))
        return self._owed.popleft()
