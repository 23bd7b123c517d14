"""Virtual time: how long after a commit at a source the view shows it.

    source ── transactions, answers ── delay ──▶ warehouse          one FIFO per source
    warehouse ── queries ── delay ──▶ source                        one FIFO per source; `service` per query

    latency of t  =  when a state with t is installed  -  when t was committed

The clock is the time of the next event, so figures depend on the seed and on nothing else: no machine is fast or slow.
The algorithms are the production ones, in their driver. As over real sources, a query that ships no rows is answered
without its source. Computing and committing at the warehouse takes no time here; it takes the same for all of them.

The view is a chain r1 ⋈ r2 ⋈ ... ⋈ rn, each relation at a source of its own. A transaction replaces one row.
"""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.driver import Driver, Ticket
from viewkeeper.algorithms.registry import Transactions, prepare
from viewkeeper.clock import seeded
from viewkeeper.messages import Change, Query, Transaction, ViewDelta
from viewkeeper.sources.memory import MemorySource
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation

COLUMNS = ("k", "a", "b", "v")


@dataclass(frozen=True)
class Load:
    """What the sources do, and how far away they are. Times are in seconds."""

    relations: int = 3
    updates: int = 300
    rate: float = 10.0
    """transactions per second over all sources, at random moments; 0: all of them at once"""
    delay: float = 0.010
    """one way; each message takes half as long to half as long again"""
    service: float = 0.0005
    """of a source, per query"""
    rows: int = 20
    """of each relation"""
    unmatched: float = 0.0
    """the share of rows without a partner in the next relation"""
    even: bool = False
    """whether every message takes `delay`, and transactions come at even distances"""
    seed: int = 1


@dataclass
class Timing:
    """What a run took."""

    latencies: list[float] = field(default_factory=list)
    """of each transaction, in the order of their commits"""
    queries: int = 0
    states: int = 0
    seconds: float = 0.0
    """until the last state"""

    def quantile(self, share: float) -> float:
        """The latency that this share of the transactions does not exceed."""
        ordered = sorted(self.latencies)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]

    @property
    def falls_behind(self) -> bool:
        """Whether they come faster than they are maintained: the last quarter waits twice as long as the second."""
        quarter = len(self.latencies) // 4
        early, late = self.latencies[quarter : 2 * quarter], self.latencies[-quarter:]
        return quarter > 0 and sum(late) > 2 * sum(early)


def timed(algorithm: str, load: Load, options: Mapping[str, int | bool] | None = None) -> Timing:
    """One run."""
    return World(algorithm, load, options).run()


def chain_of(load: Load) -> tuple[dict[str, Relation], dict[str, MemoryZSet], str]:
    """The relations of a load, their rows at the start, and the view over them."""
    random = seeded(load.seed)
    relations = {
        f"s{number}.r{number}": Relation(f"s{number}.r{number}", f"s{number}", COLUMNS, ("BIGINT",) * 4, ("k",))
        for number in range(1, load.relations + 1)
    }
    rows = {
        name: MemoryZSet(
            COLUMNS, [((k, k, -1 if random.random() < load.unmatched else k, 0), 1) for k in range(load.rows)]
        )
        for name in relations
    }
    numbers = range(1, load.relations + 1)
    columns = ", ".join(["r1.k AS k", *(f"r{number}.v AS v{number}" for number in numbers)])
    joins = " AND ".join(f"r{number}.b = r{number + 1}.a" for number in numbers[:-1])
    return relations, rows, f"SELECT {columns} FROM {', '.join(relations)}" + (f" WHERE {joins}" if joins else "")


class World:
    """Sources, channels and the warehouse, by a list of events."""

    def __init__(self, algorithm: str, load: Load, options: Mapping[str, int | bool] | None = None) -> None:
        self._load = load
        self._random = seeded(load.seed + 1)
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        relations, rows, sql = chain_of(load)
        self._sources = {
            relation.source: MemorySource(relation.source, [relation], rows) for relation in relations.values()
        }
        self._arrived: dict[tuple[str, str], float] = {}
        """when the last message of a channel arrives"""
        self._free = dict.fromkeys(self._sources, 0.0)
        self._committed: dict[tuple[str, str], float] = {}
        self._shown: dict[tuple[str, str], float] = {}
        self._timing = Timing()
        plan, queue, process = prepare(
            algorithm, parse_view(sql, relations, name="v"), Transactions.SINGLE, options=options
        )
        self._plan = plan
        self.view: Any = plan.evaluate(rows)
        self._driver = Driver(process, queue, send=self._send, install=self._install, read_view=lambda: self.view)

    def run(self) -> Timing:
        """Let everything happen, in the order of its time."""
        moment = 0.0
        for _ in range(self._load.updates):
            if self._load.rate:
                moment += 1 / self._load.rate if self._load.even else self._random.expovariate(self._load.rate)
            self._at(moment, self._commit)
        while self._events:
            self._now, _, happen = heapq.heappop(self._events)
            happen()
        timing = self._timing
        timing.latencies = [self._shown[place] - committed for place, committed in self._committed.items()]
        timing.seconds = self._now
        return timing

    def recomputed(self) -> Any:
        """The view over the sources as they are."""
        contents = {name: rows for source in self._sources.values() for name, rows in source.contents.items()}
        return self._plan.evaluate(contents)

    def _at(self, moment: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (moment, next(self._numbers), happen))

    def _over(self, direction: str, source: str, happen: Callable[[], None]) -> None:
        """A message goes over a channel: it does not overtake the one before it."""
        takes = self._load.delay * (1.0 if self._load.even else self._random.uniform(0.5, 1.5))
        arrives = max(self._arrived.get((direction, source), 0.0), self._now + takes)
        self._arrived[direction, source] = arrives
        self._at(arrives, happen)

    # --- sources ---

    def _commit(self) -> None:
        """A random row of a random relation gets a new value."""
        source = self._random.choice(list(self._sources.values()))
        ((name, held),) = source.contents.items()
        row = self._random.choice(sorted(row for row, _ in held.weights()))
        new = (*row[:-1], row[-1] + 1)
        transaction = source.commit((Change(name, row, -1), Change(name, new, 1)))
        self._committed[source.name, transaction.position] = self._now
        self._over("up", source.name, lambda: self._driver.deliver(transaction))

    def _serve(self, ticket: Ticket, query: Query) -> None:
        """A query has reached its source, and waits for its turn there."""
        begin = max(self._now, self._free[query.source])
        self._free[query.source] = begin + self._load.service
        self._at(self._free[query.source], lambda: self._answer(ticket, query))

    def _answer(self, ticket: Ticket, query: Query) -> None:
        rows = self._sources[query.source].answer(query)
        self._over("up", query.source, lambda: self._driver.answer(ticket, rows))

    # --- the warehouse ---

    def _send(self, ticket: Ticket, query: Query) -> None:
        if query.size() == 0:
            nothing = self._sources[query.source].answer(query)
            self._at(self._now, lambda: self._driver.answer(ticket, nothing))
            return
        self._timing.queries += 1
        self._over("down", query.source, lambda: self._serve(ticket, query))

    def _install(self, deltas: tuple[ViewDelta, ...]) -> None:
        self._timing.states += len(deltas)
        for delta in deltas:
            self.view = self.view + delta.delta
            for transaction in delta.transactions:
                self._shown[_place(transaction)] = self._now


def _place(transaction: Transaction) -> tuple[str, str]:
    return (transaction.source, transaction.position)
