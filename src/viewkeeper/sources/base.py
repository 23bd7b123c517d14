"""What a source is: one small protocol that every kind of database keeps.

    reading(fetches)        rows, and the exact place in the stream that they belong to
    transactions(after)     the stream itself, in commit order

The papers assume a source that handles one event at a time. Here a reading says which transactions it reflects (all up
to its position, none after it), and whoever delivers the stream puts the answer in its place.

A source is used by several threads: one runs through `transactions`, any number of others read. A reading may wait
until the stream has passed a place, so `transactions` must be running meanwhile.
"""

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from viewkeeper.algebra.zset import Row
from viewkeeper.errors import SourceUnavailable, SourceUnfit, UnknownTable, UnsupportedType, ViewkeeperError
from viewkeeper.messages import Change, Fetch, GlobalPart, Position, Transaction
from viewkeeper.sources.layout import Alteration
from viewkeeper.sql.relation import Relation

GLOBAL_TX = "global_tx"
"""The table `global_tx(gid, source, participants)`: a row in it makes its transaction a part of a global one."""

PATIENCE = 30.0
"""Seconds that a reading waits for the stream."""


@dataclass(frozen=True)
class Disruption:
    """From here on the stream does not tell what becomes of a relation: TRUNCATE, an altered column, a dropped one."""

    relation: str
    position: Position
    reason: str
    standing: bool = False
    """whether it holds for everyone, wherever they are in the stream: the relation is not what was registered"""
    until: Position | None = None
    """if it is standing: but for those who have come as far as this, where the relation was registered anew"""
    columns: frozenset[str] | None = None
    """those that it is about: who reads none of them goes on; None: all of them"""
    recomputable: bool = False
    """whether it is over once the views are computed again from the source as it is, which is done at once"""

    @classmethod
    def of(
        cls, relation: str, position: Position, found: Alteration, *, standing: bool = False, until: str | None = None
    ) -> "Disruption":
        return cls(relation, position, found.reason, standing, until, found.columns, found.recomputable)


@dataclass(frozen=True)
class Batch:
    """The next events of a stream in commit order, and the place up to which it is now complete.

    A batch without events says that nothing happened up to `upto`.
    """

    events: Sequence[Transaction | Disruption]
    upto: Position


@dataclass(frozen=True)
class Reading:
    """The rows of each fetch, in batches, exact at `position`; `corrections` are signed rows to be added to them."""

    position: Position
    rows: tuple[Iterator[Sequence[Row]], ...]
    corrections: tuple[Sequence[tuple[Row, int]], ...]


@dataclass(frozen=True)
class Finding:
    """What `doctor` found: something that is missing or risky, and the statement that fixes it."""

    what: str
    fix: str
    fatal: bool = True
    """whether capture is impossible as it is; if not, it is a warning"""
    relations: tuple[str, ...] = ()
    """those that alone it is about, if so: the others can be captured"""


def statements(findings: Iterable[Finding]) -> str:
    """What fixes findings, each once and indented, as the end of a hint."""
    fixes = dict.fromkeys(finding.fix for finding in findings)
    return "".join(f"\n    {line}" for fix in fixes for line in fix.splitlines())


def refuse_obstacles(source: str, found: Sequence[Finding], hint: str = "") -> None:
    """SourceUnfit if something is in the way of installing; nothing has been changed then."""
    if found:
        raise SourceUnfit(
            f"{source} cannot be installed as the user of its URL: " + "; ".join(finding.what for finding in found),
            hint or f"run these first, then install it again:{statements(found)}",
        )


@dataclass(frozen=True)
class Request:
    """What a user said of a source. `identity` is the warehouse's: what is installed at the source carries it."""

    name: str
    url: str = field(repr=False)
    """with the password, if there is one"""
    identity: str
    tables: tuple[str, ...] | None = None
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    layout: Mapping[str, Relation] = field(default_factory=dict)
    """the relations as they were registered, by full name: rows of them have these columns, whatever was added"""
    registered: bool = False
    """whether the tables are those that were there when the source was added. One that is gone is then left out, and
    whoever reads it is told; without that, it is a mistake of the user to name it."""
    refused: dict[str, ViewkeeperError] | None = field(default=None, repr=False, compare=False)
    """takes up the tables that cannot be captured, and why: they are left out; None: the first of them is an error"""

    @contextmanager
    def may_refuse(self, table: str) -> Iterator[None]:
        """Around the look at a table, if it may be left out."""
        try:
            yield
        except (UnsupportedType, UnknownTable, SourceUnfit) as error:
            if self.refused is None:
                raise
            self.refused[table] = error


class Source(ABC):
    """One autonomous database, lake or folder. Making one connects to it, and changes nothing there."""

    name: str
    relations: Mapping[str, Relation]
    """by full name, `source.table`"""
    global_transactions: bool = False
    """whether it has the table `global_tx`, so that its transactions may be parts of global ones"""

    def __init__(self) -> None:
        self._progress = threading.Condition()
        self._passed: Position = ""
        self._broken: Exception | None = None

    @property
    def found(self) -> Mapping[str, Relation]:
        """The relations as they are at the source now, with all columns that can be captured."""
        return self.relations

    # --- what a kind of source provides ---

    @abstractmethod
    def doctor(self) -> list[Finding]:
        """What is missing or risky for capture, as things are; nothing if all is well."""

    @abstractmethod
    def install(self) -> None:
        """Put in place what capture needs. Again is harmless."""

    def obstacles(self) -> list[Finding]:
        """What `install` needs and cannot put in place by itself, where that can be told before."""
        return []

    def note(self, kept: Collection[str] = ()) -> None:  # noqa: B027 (most have it written down at the source)
        """Its relations are remembered as they are now, but for those of `kept`: those are remembered already."""

    def altered(self) -> Mapping[str, Sequence[Alteration]]:
        """The relations that are not as they were when they were noted, beyond their columns and types, and how."""
        return {}

    @abstractmethod
    def remove(self) -> list[str]:
        """Undo `install`; the statements that somebody else must run, if there is something it may not undo."""

    @abstractmethod
    def end(self) -> Position:
        """The place after everything that is committed now."""

    @abstractmethod
    def transactions(self, after: Position | None, stop: threading.Event) -> Iterator[Batch]:
        """The stream behind a position (None: from where capture began), until `stop`; it waits for what comes.

        PositionLost if the source no longer has it, SourceUnavailable if the connection fails: then it is called again.
        It says `passed` before it yields a batch, and yields one as soon as it has begun, if only to say so.
        """

    @abstractmethod
    def reading(self, fetches: Sequence[Fetch]) -> AbstractContextManager[Reading]:
        """Read everything that is asked for in one state of the source; SourceUnavailable if the connection fails."""

    @abstractmethod
    def acknowledge(self, position: Position) -> None:
        """Everything up to here is stored durably elsewhere: the source may forget its record of it."""

    @abstractmethod
    def close(self) -> None:
        """Let go of connections."""

    def will_start_behind(self, position: Position) -> None:  # noqa: B027 (most tell every transaction apart)
        """Somebody's view is at this position: no transaction of the stream may span it, merged ones included."""

    def reach(self) -> None:
        """SourceError if it cannot be reached now; nothing is changed, here or there."""
        self.end()

    def retained(self) -> int | None:
        """The bytes that the source keeps for us, where it can say."""
        return None

    def estimated_rows(self, relation: str) -> int | None:
        """How many rows a relation has, where the source can say without counting them."""
        return None

    # --- how a reading waits for the stream ---

    def passed(self, position: Position) -> None:
        """The stream is complete up to here."""
        with self._progress:
            self._passed = max(self._passed, position)
            self._broken = None
            self._progress.notify_all()

    def stream_broke(self, error: Exception) -> None:
        """The stream has ended; whoever waits for it need not."""
        with self._progress:
            self._broken = error
            self._progress.notify_all()

    def stream_starts(self, after: Position | None) -> None:
        """The stream begins after this position; what was said of an earlier one no longer counts."""
        with self._progress:
            self._passed, self._broken = after or "", None

    def wait_for_stream(self, position: Position, patience: float = PATIENCE) -> None:
        """Until the stream is complete up to a place; SourceUnavailable if it breaks or does not get there."""
        with self._progress:
            there = self._progress.wait_for(
                lambda: self._passed >= position or self._broken is not None, timeout=patience
            )
            if self._passed >= position:
                return
        if not there:
            raise SourceUnavailable(
                f"the changes of {self.name} have not come as far as {position} within {patience:g} seconds",
                "look at the load and the connections of the database",
            )
        raise SourceUnavailable(f"the stream of {self.name} broke: {self._broken}")


def _united(parts: Iterable[tuple[str, tuple[str, ...]]]) -> list[tuple[str, tuple[str, ...]]]:
    """One of each id, with all participants: each as often as the part that lists it most often does."""
    named: dict[str, Counter[str]] = {}
    for gid, participants in parts:
        named[gid] = named.get(gid, Counter()) | Counter(participants)
    return [(gid, tuple(participants.elements())) for gid, participants in named.items()]


def as_transaction(
    source: str, position: Position, changes: Iterable[Change], *, merged: bool = False, looks: bool = False
) -> Transaction:
    """A transaction of a source; a row that it inserts into `global_tx` makes it a part of a global one.

    The columns of that row are gid, source and participants, whose names are separated by commas. `merged`: it may be
    several transactions; `looks`: it is the difference of two looks at the source, which is several if it has several
    ids. Then every row is a part; else rows with one id are one, with the participants of all of them.
    """
    mark = f"{source}.{GLOBAL_TX}"
    changes = tuple(changes)
    if all(change.relation != mark for change in changes):
        return Transaction(source, position, changes, (), merged)
    rest: list[Change] = []
    counts: dict[tuple[str, tuple[str, ...]], int] = {}
    for change in changes:
        if change.relation != mark:
            rest.append(change)
        elif change.count > 0:
            participants = tuple(name.strip() for name in str(change.row[2] or "").split(",") if name.strip())
            part = (str(change.row[0]), participants)
            counts[part] = counts.get(part, 0) + change.count
    if not (merged or looks):
        counts = dict.fromkeys(_united(counts), 1)
    parts = tuple(GlobalPart(gid, participants, count) for (gid, participants), count in counts.items())
    several = looks and sum(counts.values()) > 1
    return Transaction(source, position, tuple(rest), parts, merged or several)
