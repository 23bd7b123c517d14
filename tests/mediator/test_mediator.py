"""The live mediator over sources in memory, while other threads write."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from live_memory import LiveMemorySource

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.registry import Transactions
from viewkeeper.checker.history import History, State
from viewkeeper.checker.judge import check
from viewkeeper.clock import seeded
from viewkeeper.levels import Level
from viewkeeper.mediator.alignment import GroupChange
from viewkeeper.mediator.group import GroupPlan
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.mediator.mediator import Mediator
from viewkeeper.messages import Change, Transaction
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation

ORDERS = Relation("shop.orders", "shop", ("id", "cust", "amount"), ("BIGINT", "BIGINT", "BIGINT"), ("id",))
LINES = Relation("shop.lines", "shop", ("id", "ord", "item"), ("BIGINT", "BIGINT", "BIGINT"), ("id",))
PEOPLE = Relation("crm.people", "crm", ("id", "region"), ("BIGINT", "BIGINT"), ("id",))
REGIONS = Relation("geo.regions", "geo", ("id", "name"), ("BIGINT", "STRING"), ("id",))
CATALOG = {relation.name: relation for relation in (ORDERS, LINES, PEOPLE, REGIONS)}

THREE_WAY = """SELECT o.id AS o_id, o.amount AS amount, p.id AS p_id, r.name AS region FROM shop.orders o
    JOIN crm.people p ON o.cust = p.id JOIN geo.regions r ON p.region = r.id"""
WITHIN = """SELECT o.id AS o_id, l.item AS item, p.region AS region FROM shop.orders o
    JOIN shop.lines l ON l.ord = o.id JOIN crm.people p ON o.cust = p.id"""


class MemoryStore:
    """States in memory; optionally slow or failing."""

    def __init__(self, contents: dict[str, MemoryZSet]) -> None:
        self.contents = contents
        self.commits: list[tuple[str, int]] = []
        self.halted: dict[str, str] = {}
        self._lock = threading.Lock()

    def commit(self, group: str, changes: Sequence[GroupChange]) -> None:
        with self._lock:
            self.commits.append((group, len(changes)))
            for change in changes:
                for view, deltas in change.deltas.items():
                    for delta in deltas:
                        self.contents[view] = self.contents[view] + delta

    def read(self, view: str) -> Any:
        return self.contents[view]

    def halt(self, group: str, view: str, reason: str) -> None:
        self.halted[view] = reason


class Recorder:
    def __init__(self) -> None:
        self.deliveries: dict[str, list[Transaction]] = {}
        self.changes: dict[str, list[GroupChange]] = {}

    def delivered(self, group: str, transaction: Transaction) -> None:
        self.deliveries.setdefault(group, []).append(transaction)

    def installed(self, group: str, changes: Sequence[GroupChange]) -> None:
        self.changes.setdefault(group, []).extend(changes)


class Shop:
    """Three sources, random writers, and views over them."""

    def __init__(self) -> None:
        self.shop = LiveMemorySource("shop", ORDERS, LINES)
        self.crm = LiveMemorySource("crm", PEOPLE)
        self.geo = LiveMemorySource("geo", REGIONS)
        self.sources = {"shop": self.shop, "crm": self.crm, "geo": self.geo}
        for number in range(3):
            self.geo.commit(Change("geo.regions", (number, f"r{number}"), 1))
        for number in range(5):
            self.crm.commit(Change("crm.people", (number, number % 3), 1))

    def plan(self, name: str, sql: str, algorithm: str, **rest: Any) -> GroupPlan:
        view = parse_view(f"CREATE MATERIALIZED VIEW {name} AS {sql}", CATALOG)
        how = Maintenance(view, algorithm, Transactions.LOCAL)
        return GroupPlan(name, (how,), {source: self.sources[source].end() for source in view.sources}, **rest)

    def contents(self) -> dict[str, MemoryZSet]:
        return {name: rows for source in self.sources.values() for name, rows in source.contents.items()}

    def stored(self, plans: Sequence[GroupPlan]) -> dict[str, MemoryZSet]:
        made = {}
        for plan in plans:
            for how in plan.views:
                contents = self.contents()
                for source, views in (how.parts.local_views if how.parts else {}).items():
                    for local in views:
                        contents[f"{source}.{local.name}"] = JoinPlan(local).evaluate(contents)
                made[how.view.name] = JoinPlan(how.stored).evaluate(contents)
        return made

    def writer(self, source: str, seed: int, count: int) -> Callable[[], None]:
        def write() -> None:
            random = seeded(seed)
            live: dict[str, list[tuple[Any, ...]]] = {name: [] for name in self.sources[source].relations}
            for number in range(count):
                changes: list[Change] = []
                for _ in range(random.randint(1, 3)):
                    relation = random.choice(list(live))
                    rows = live[relation]
                    if rows and random.random() < 0.4:
                        changes.append(Change(relation, rows.pop(random.randrange(len(rows))), -1))
                    else:
                        key = seed * 100_000 + number * 10 + len(changes)
                        row = {
                            "shop.orders": (key, random.randrange(6), random.randrange(9)),
                            "shop.lines": (key, seed * 100_000 + random.randrange(max(number, 1)) * 10, number),
                            "crm.people": (key % 7 + 10 * seed, random.randrange(3)),
                            "geo.regions": (key % 5 + 100 * seed, f"x{number}"),
                        }[relation]
                        if row[0] not in [other[0] for other in rows]:
                            rows.append(row)
                            changes.append(Change(relation, row, 1))
                self.sources[source].commit(*changes)

        return write

    def write_all(self, count: int) -> list[threading.Thread]:
        writers = [
            threading.Thread(target=self.writer(source, seed, count))
            for seed, source in enumerate(("shop", "shop", "crm", "geo"), start=1)
        ]
        for thread in writers:
            thread.start()
        return writers


@pytest.mark.parametrize(
    ("algorithm", "sql"),
    [
        (algorithm, sql)
        for algorithm in (
            "sweep", "batched-sweep", "nested-sweep", "parallel-sweep", "pipelined-sweep",
            "t-strobe", "g-strobe", "c-t-strobe", "periodic-c-strobe", "strobe", "c-strobe", "recompute",
        )
        for sql in (THREE_WAY, WITHIN)
    ],
    ids=lambda value: value if "SELECT" not in value else ("three-way" if value is THREE_WAY else "within"),
)  # fmt: skip
def test_a_live_run_reaches_what_its_algorithm_promises(algorithm: str, sql: str) -> None:
    shop = Shop()
    plan = shop.plan("v", sql, algorithm)
    (how,) = plan.views
    base, store, recorder = shop.contents(), MemoryStore(shop.stored([plan])), Recorder()
    first = store.contents["v"]
    with Mediator(shop.sources, [plan], MemoryZSet, store, recorder) as mediator:
        writers = shop.write_all(20)
        mediator.catch_up()
        for thread in writers:
            thread.join()
        mediator.catch_up()
    final = JoinPlan(how.view).evaluate(shop.contents())
    assert dict(store.contents["v"].keep(how.view.columns).weights()) == dict(final.weights())

    rows, states, vector = first, [State(first.keep(how.view.columns), dict(plan.vector))], dict(plan.vector)
    for change in recorder.changes["v"]:
        vector.update(change.vector)
        for delta in change.deltas.get("v", ()):
            rows = rows + delta
        states.append(State(rows.keep(how.view.columns), dict(vector)))
    from viewkeeper.algorithms.registry import ALGORITHMS

    promised = ALGORITHMS[algorithm].levels[Transactions.LOCAL]
    judgement = check(History.of(how.view, base, recorder.deliveries["v"], states))
    assert judgement.level >= promised, judgement
    assert promised >= Level.CONVERGENT
