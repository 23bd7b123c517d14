"""What advice rests on: a few facts of a view, one class for each way in which views are kept."""

from dataclasses import dataclass

from viewkeeper.algebra.adaptive import MOST_ROWS
from viewkeeper.algorithms.registry import Transactions
from viewkeeper.levels import Level
from viewkeeper.planner.self_maintained.automatic import REMOTE, Decision

_ASKED, _STORED = Decision(REMOTE, ()), Decision("viewcache", ())


@dataclass(frozen=True)
class JoinedRelation:
    """One relation of a join, as the changes of the others find it."""

    name: str
    source: str
    database: bool = True
    """whether its source is a database, which answers at once; else a question takes a job"""
    key: tuple[str, ...] | None = ("id",)
    ways: tuple[tuple[str, ...], ...] = (("id",),)
    """the columns by which it is looked up, in each way that there is; empty ones mean that all of it is read"""
    key_can_be_declared: bool = True
    """if it has none: whether nothing is stored that rests on that"""
    transactions_per_hour: float | None = None
    """of its source"""
    quote: str = '"'
    """what its source writes around names that are words of SQL"""

    @property
    def table(self) -> str:
        """Its name at the source."""
        return self.name.partition(".")[2]

    def is_key(self, columns: tuple[str, ...]) -> bool:
        """Whether at most one row has given values in these columns."""
        return self.key is not None and set(self.key) <= set(columns)


@dataclass(frozen=True)
class AskingJoin:
    """A join whose sources are queried."""

    view: str
    relations: tuple[JoinedRelation, ...]
    algorithm: str = "batched-sweep"
    level: Level = Level.COMPLETE
    transactions: Transactions = Transactions.LOCAL
    asked_algorithm: str | None = None
    asked_level: str | None = None
    """the property 'consistency'; None if it is left to viewkeeper"""
    wrapped: bool = False
    """whether relations of one source are joined there"""
    automatic: Decision = _ASKED
    """what 'storage' = 'auto' would choose, if no algorithm were requested"""
    sizes_known: bool = False
    """whether that rests on sizes; else it may choose otherwise once the relations are read"""
    room: int | None = None
    """bytes that this would take, about; None: not known"""
    only_spark: str | None = None
    """an expression that only Spark evaluates, if there is one"""
    rows: int | None = None
    """of the view; None: not known"""
    halted: str | None = None

    @property
    def large(self) -> bool:
        """Whether reading all of the view takes Spark."""
        return (self.rows or 0) > MOST_ROWS

    @property
    def keyless(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.name for one in self.relations if one.key is None))

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.source for one in self.relations))


@dataclass(frozen=True)
class StoringJoin:
    """A self-maintained view: no source is queried."""

    view: str
    storage: str
    relations: tuple[JoinedRelation, ...]
    level: Level = Level.COMPLETE
    asked_level: str | None = None
    outer: bool = False
    created: bool = True
    automatic: Decision = _STORED
    """what 'storage' = 'auto' would choose, with the sizes that are known"""
    sizes_known: bool = False
    bytes: int | None = None
    """of everything that is stored for it"""
    only_spark: str | None = None
    halted: str | None = None


@dataclass(frozen=True)
class ExtremeFacts:
    """MIN, MAX or COUNT(DISTINCT) of a summary."""

    called: str
    node: str
    """the hidden table that serves it"""
    recomputed: bool = False
    rows: int | None = None
    """of that table"""


@dataclass(frozen=True)
class MemberFacts:
    """A table of a family, and the member that it is computed from."""

    table: str
    rows: int
    above: str
    above_rows: int


@dataclass(frozen=True)
class HierarchyFacts:
    """A hierarchy that is not declared: with it a table would be computed from a smaller one."""

    table: str
    relation: str
    columns: tuple[str, str]
    """the first would determine the second"""
    above: str
    """what the table would be computed from"""
    cost_now: float
    """rows, once more for each join"""
    cost_then: float


@dataclass(frozen=True)
class SummarizedFacts:
    """A summary, a family, or a hidden table of theirs."""

    view: str
    fact: str
    level: Level = Level.STRONG
    continuous: bool = True
    manual: bool = False
    fact_rows: int | None = None
    """if the facts are stored"""
    seconds: float | None = None
    """that a refresh takes, if there was one to learn from"""
    transactions_per_hour: float | None = None
    """of the source of the fact"""
    waiting: int = 0
    """changes and rows of summary-deltas that wait for a refresh"""
    extremes: tuple[ExtremeFacts, ...] = ()
    members: tuple[MemberFacts, ...] = ()
    hierarchies: tuple[HierarchyFacts, ...] = ()
    halted: str | None = None


Situation = AskingJoin | StoringJoin | SummarizedFacts
