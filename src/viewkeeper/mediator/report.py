"""What a mediator is doing, as plain data: for a live table, a status file, a benchmark."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from viewkeeper.mediator.waits import GivenUp, Wait
from viewkeeper.messages import Position, Vector


@dataclass(frozen=True)
class SourceReport:
    """One source: how far its stream has come, and what is the matter if it cannot be reached."""

    name: str
    upto: Position
    waiting: int
    """events that the slowest group has not taken yet"""
    trouble: str | None = None
    unreachable_for: float = 0.0
    attempts: int = 0
    retry_in: float = 0.0
    """seconds until it is tried again"""
    retained: int | None = None
    """bytes that the source keeps for us, where it can say"""
    failure: str | None = None
    """why it will not go on by itself"""
    transactions: int = 0
    """that have come and concern a group; each is counted once, however many groups take it"""


@dataclass(frozen=True)
class GroupReport:
    """One group: what it has done, and what went over its channels."""

    name: str
    views: tuple[str, ...]
    vector: Vector
    states: int
    commits: int
    in_progress: int
    """transactions that are taken and not part of a state yet"""
    transactions: int
    merged: int
    """of these, such that may be several which the capture could not tell apart"""
    queries: int
    messages: int
    rows_sent: int
    rows_received: int
    failure: str | None = None
    went_over: Mapping[str, str] = field(default_factory=dict)
    """views that waited too long for quiet or for each other, and what maintains them now"""
    behind: Mapping[str, int] = field(default_factory=dict)
    """by source, the transactions that have come and are not part of a committed state yet"""
    refresh_seconds: float | None = None
    """of the last commit: from the delivery of its first transaction until it was made"""
    waits: tuple[Wait, ...] = ()
    """global transactions that it waits for missing parts of"""
    given_up: tuple[GivenUp, ...] = ()
    """those that it has given up waiting for, and whose parts are not all there yet"""
    attempts: int = 0
    """how often it has failed without going well in between"""
    retry_in: float = 0.0
    """seconds until it is tried again, if it has failed"""

    def after(self, before: "GroupReport") -> "GroupReport":
        """This report of a group that began again at its last commit, with what it had done until then."""
        sums = ("states", "commits", "merged", "queries", "messages", "rows_sent", "rows_received")
        counts = {name: getattr(before, name) + getattr(self, name) for name in sums}
        # What was in progress is delivered again.
        transactions = before.transactions - before.in_progress + self.transactions
        return replace(self, **counts, transactions=transactions, went_over={**before.went_over, **self.went_over})


@dataclass(frozen=True)
class ViewReport:
    """One view, as the last commit has it."""

    name: str
    group: str
    """the group whose report is about it; of a summary, that of its facts"""
    state: int
    rows: int
    refreshed: str
    """when its last state was committed"""
    waiting: int = 0
    """changes that were noted for its next refresh"""
    deferred: bool = False
    """whether it is refreshed when somebody asks, or by the clock"""
    selects: bool = False
    """whether readers see only some of `rows`"""
    summary: bool = False


@dataclass(frozen=True)
class Report:
    """A mediator at one moment."""

    sources: tuple[SourceReport, ...]
    groups: tuple[GroupReport, ...]
    halted: Mapping[str, str]
    """views that were halted during this run, and why"""
    views: tuple[ViewReport, ...] = ()

    @property
    def transactions(self) -> int:
        """Of all sources, each counted once: every group over a source counts it as its own too."""
        return sum(source.transactions for source in self.sources)
