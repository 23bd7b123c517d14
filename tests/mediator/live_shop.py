"""A shop over three live sources in memory: writers, views, and a store that keeps every state."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from live_memory import LiveMemorySource

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.registry import Transactions
from viewkeeper.clock import seeded
from viewkeeper.errors import StorageFailure
from viewkeeper.mediator.alignment import GroupChange
from viewkeeper.mediator.group_plan import GroupPlan
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.messages import Change, Position, Transaction, Vector
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import View

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
    """States in memory, every one of them kept with its vector; `fails` says which commits do."""

    def __init__(self, contents: dict[str, MemoryZSet], plans: Sequence[GroupPlan] = ()) -> None:
        self.contents = contents
        self.vectors: dict[str, dict[str, Position]] = {plan.name: dict(plan.vector) for plan in plans}
        self.states: dict[str, list[tuple[dict[str, Position], dict[str, MemoryZSet]]]] = {}
        self.commits: list[tuple[str, int]] = []
        self.transactions: dict[str, list[Transaction]] = {}
        self.halted: dict[str, str] = {}
        self.failures: dict[str, str | None] = {}
        self.fails: Callable[[int], bool] = lambda number: False
        self._attempts = 0
        self._lock = threading.Lock()

    def commit(self, group: str, changes: Sequence[GroupChange], figures: Callable[[], object]) -> None:
        with self._lock:
            self._attempts += 1
            if self.fails(self._attempts):
                raise StorageFailure("the disk is full")
            self.commits.append((group, len(changes)))
            vector = self.vectors.setdefault(group, {})
            for change in changes:
                vector.update(change.vector)
                for view, deltas in change.deltas.items():
                    for delta in deltas:
                        self.contents[view] = self.contents[view] + delta
                self.states.setdefault(group, []).append((dict(vector), dict(self.contents)))
                self.transactions.setdefault(group, []).extend(change.transactions)

    def advance(self, group: str, vector: Vector) -> None:
        with self._lock:
            self.vectors.setdefault(group, {}).update(vector)

    def read(self, view: str) -> Any:
        return self.contents[view]

    def halt(self, group: str, view: str, reason: str, *, recomputable: bool = False) -> None:
        self.halted[view] = reason

    def failed(self, group: str, reason: str | None) -> None:
        self.failures[group] = reason


class Recorder:
    def __init__(self) -> None:
        self.deliveries: dict[str, list[Transaction]] = {}
        self.changes: dict[str, list[GroupChange]] = {}

    def delivered(self, group: str, transaction: Transaction) -> None:
        self.deliveries.setdefault(group, []).append(transaction)

    def installed(self, group: str, changes: Sequence[GroupChange]) -> None:
        self.changes.setdefault(group, []).extend(changes)

    def began_again(self, group: str, vector: Vector) -> None:
        known = self.deliveries.get(group, [])
        self.deliveries[group] = [one for one in known if one.position <= vector[one.source]]


def as_relation(view: View) -> Relation:
    """A view as something that other views are over."""
    return Relation(view.name, "", view.columns, tuple(output.expression.type for output in view.output))


def resumed(plan: GroupPlan, store: MemoryStore) -> GroupPlan:
    """The plan of a new run: what is not halted, at the stored vector."""
    return replace(
        plan,
        views=tuple(how for how in plan.views if how.view.name not in store.halted),
        derived=tuple(view for view in plan.derived if view.name not in store.halted),
        vector=dict(store.vectors[plan.name]),
    )


class Shop:
    """Three sources, random writers, and views over them."""

    def __init__(self) -> None:
        self.shop = LiveMemorySource("shop", ORDERS, LINES)
        self.crm = LiveMemorySource("crm", PEOPLE)
        self.geo = LiveMemorySource("geo", REGIONS)
        self._live: dict[int, dict[str, list[tuple[Any, ...]]]] = {}
        self.sources = {"shop": self.shop, "crm": self.crm, "geo": self.geo}
        for number in range(3):
            self.geo.commit(Change("geo.regions", (number, f"r{number}"), 1))
        for number in range(5):
            self.crm.commit(Change("crm.people", (number, number % 3), 1))

    def plan(self, name: str, sql: str, algorithm: str, **rest: Any) -> GroupPlan:
        view = parse_view(f"CREATE MATERIALIZED VIEW {name} AS {sql}", CATALOG)
        how = Maintenance(view, algorithm, Transactions.LOCAL)
        return GroupPlan(name, (how,), {source: self.sources[source].end() for source in view.sources}, **rest)

    def group(self, name: str, views: dict[str, tuple[str, str]], derived: dict[str, str] | None = None) -> GroupPlan:
        """A group of views, each with its definition and its algorithm, and of views over these."""
        hows = tuple(
            Maintenance(parse_view(f"CREATE MATERIALIZED VIEW {view} AS {sql}", CATALOG), algorithm)
            for view, (sql, algorithm) in views.items()
        )
        known = {how.view.name: as_relation(how.view) for how in hows}
        over = []
        for view, sql in (derived or {}).items():
            over.append(parse_view(f"CREATE MATERIALIZED VIEW {view} AS {sql}", known))
            known[view] = as_relation(over[-1])
        sources = dict.fromkeys(source for how in hows for source in how.view.sources)
        return GroupPlan(name, hows, {source: self.sources[source].end() for source in sources}, tuple(over))

    def start(self, *plans: GroupPlan) -> MemoryStore:
        """A store with the views as they are now."""
        contents = self.stored(plans)
        for plan in plans:
            shown = self.shown(plan, plan.vector) if plan.derived else {}
            contents |= {view.name: shown[view.name] for view in plan.derived}
        return MemoryStore(contents, plans)

    def shown(self, plan: GroupPlan, vector: Vector, *but: str) -> dict[str, MemoryZSet]:
        """The views of a group as they are shown at a vector, by computing them."""
        contents: dict[str, MemoryZSet] = {}
        for source, place in vector.items():
            contents |= self.sources[source].at(place)
        shown = {how.view.name: JoinPlan(how.view).evaluate(contents) for how in plan.views if how.view.name not in but}
        for view in plan.derived:
            if view.name not in but:
                shown[view.name] = JoinPlan(view).evaluate(shown)
        return shown

    def assert_right(self, plan: GroupPlan, vector: Vector, contents: dict[str, MemoryZSet], *but: str) -> None:
        """The stored views are what computing them at their vector gives."""
        for view, rows in self.shown(plan, vector, *but).items():
            assert dict(contents[view].keep(rows.columns).weights()) == dict(rows.weights()), (view, vector)

    def assert_all_right(self, plan: GroupPlan, store: MemoryStore, *but: str) -> None:
        """So are all states, and the last one is at the end of the sources."""
        for vector, contents in store.states.get(plan.name, []):
            self.assert_right(plan, vector, contents, *but)
        self.assert_right(plan, {source: self.sources[source].end() for source in plan.sources}, store.contents, *but)

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

    def writer(self, source: str, seed: int, count: int, first: int = 0) -> Callable[[], None]:
        def write() -> None:
            random = seeded(seed + first)
            live = self._live.setdefault(seed, {name: [] for name in self.sources[source].relations})
            for number in range(first, first + count):
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

    def write_all(self, count: int, first: int = 0) -> list[threading.Thread]:
        writers = [
            threading.Thread(target=self.writer(source, seed, count, first))
            for seed, source in enumerate(("shop", "shop", "crm", "geo"), start=1)
        ]
        for thread in writers:
            thread.start()
        return writers
