"""What `explain` tells: data, for programs; `viewkeeper explain` shows it to people."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.explaining.explanation import InWords
from viewkeeper.explaining.storage_explanation import SelfMaintained
from viewkeeper.planner.overview import Told
from viewkeeper.planner.summaries.ways import Way


@dataclass(frozen=True)
class Step:
    """A relation that a change is joined with, on its way to the view."""

    relation: str
    source: str
    """who is asked; empty if it is a view of the warehouse"""
    conditions: tuple[str, ...]
    by: tuple[str, ...] = ()
    """the columns by which it is looked up; none if all of it is read"""
    at_most_one: bool = False
    """whether these have its key, so that a row meets at most one of it"""
    together: bool = False
    """whether its rows come with the answer to an earlier step: no message of its own is sent for it"""


@dataclass(frozen=True)
class Sweep:
    """From a change of one relation to a change of the view."""

    start: str
    steps: tuple[Step, ...]
    inside: int = 0
    """how many of the steps, the first ones, are at its own source, and joined there"""

    @property
    def messages(self) -> tuple[Step, ...]:
        """The steps for which a message is sent."""
        return tuple(step for step in self.steps if not step.together)

    @property
    def messages_inside(self) -> int:
        """How many of these messages go to its own source, for what is joined there."""
        return sum(not step.together for step in self.steps[: self.inside])


@dataclass(frozen=True)
class Column:
    """A stored column."""

    name: str
    type: str
    holds: str
    """such as SUM(qty)"""
    hidden: bool


@dataclass(frozen=True)
class Shown:
    """A column that readers see, and how it is computed from stored ones."""

    name: str
    sql: str


@dataclass(frozen=True)
class Serving:
    """A table that is stored for others, or serves them besides."""

    table: str
    why: str
    hidden: bool
    stored: bool
    rows: int | None


@dataclass(frozen=True)
class Choice:
    """What a summary-delta could be computed from, and what that would cost: rows, once more for each join, and a part
    for each function that has to be carried for it."""

    above: str
    joins: tuple[str, ...]
    expected_rows: float
    cost: float
    chosen: bool


@dataclass(frozen=True)
class Statements:
    """The SQL of one table."""

    prepared: Mapping[str, str]
    """the views of figure 6, by name"""
    summary_delta: str
    """while only facts change"""
    with_changed_dimensions: str | None
    """when all dimensions that are joined change too; None if none is"""
    refresh: str


@dataclass(frozen=True)
class Table:
    """One table of a lattice."""

    table: str
    hidden: bool
    stored: bool
    group_by: tuple[str, ...]
    rows: int | None
    columns: tuple[Column, ...]
    computed: tuple[Shown, ...]
    """columns that are computed when they are read"""
    having: str | None
    parents: tuple[Way, ...]
    children: tuple[Way, ...]
    not_relied_upon: tuple[Way, ...]
    """from what else it could be computed if every foreign key found its row"""
    served_by: tuple[Serving, ...]
    choices: tuple[Choice, ...]
    why: str
    """why the chosen one"""
    statements: Statements
    recomputed: tuple[str, ...]
    """what becomes of it when an extreme is deleted"""
    expected_rows: float
    """of its next summary-delta"""
    last: Mapping[str, Any] | None
    """the figures of the last refresh, and the optimizations that applied; None if there was none, or it is past the
    retention"""


@dataclass(frozen=True)
class LatticeFacts:
    """What all tables of a lattice have in common."""

    name: str
    fact: str
    dimensions: tuple[str, ...]
    core_stored: bool
    recomputed: str
    """when all tables are recomputed"""
    refreshes: int
    """how many the figures below are averages of"""
    usual_changes: float | None
    propagate_seconds: float | None
    refresh_seconds: float | None
    recompute_seconds: float | None
    waiting_changes: int
    """changes that were noted, and not propagated yet"""
    waiting_rows: int
    """rows of summary-deltas that wait for a refresh"""
    last_refresh: Told | None
    last_propagation: Told | None
    hierarchies: tuple[str, ...] = ()
    """such as retail.days: day → month → year, one for each way down"""


@dataclass(frozen=True)
class Explanation:
    """A view, explained."""

    view: str
    kind: str
    """join, self-maintained, summary or family; or hidden, for a table that serves summaries; or loaded, if nothing
    maintains it"""
    created: bool
    """whether it is stored; else it is as it would be"""
    sql: str | None
    group: str
    algorithm: str | None
    level: str | None
    refresh: str
    sources: tuple[str, ...]
    relations: tuple[str, ...]
    rows: int | None
    state: int | None
    halted: str | None
    """why it is not maintained any more, if so"""
    sweeps: tuple[Sweep, ...] = ()
    """of a join: the order in which each change is joined"""
    lattice: LatticeFacts | None = None
    tables: tuple[Table, ...] = field(default=())
    """of a summary itself; of a family its members"""
    storage_asked: str | None = None
    """what its property says"""
    storage: str | None = None
    """of a join: remote if sources are queried, else what is stored for it"""
    storage_reasons: tuple[str, ...] = ()
    """why so"""
    self_maintained: SelfMaintained | None = None
    in_words: InWords = field(default_factory=InWords)
    """how it is kept, why so, what a change costs, and what could be changed"""
