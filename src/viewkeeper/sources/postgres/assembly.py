"""From the messages of a slot to transactions and disruptions, in commit order.

    position of a transaction  =  the LSN right behind its commit record

A reading takes the insert LSN after its snapshot. A commit record that was written by then ends at or before it, a
later one begins there: so `position <= insert LSN` is exactly "written before". The record's beginning, which
PostgreSQL calls the commit LSN, would need `<` instead.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from viewkeeper.errors import UnsupportedType
from viewkeeper.messages import Change, Transaction
from viewkeeper.sources.base import Disruption, as_transaction
from viewkeeper.sources.postgres.catalog import Table, Tables
from viewkeeper.sources.postgres.pgoutput import (
    Begin,
    Commit,
    RelationMessage,
    RowMessage,
    Truncate,
    Values,
    decode,
)
from viewkeeper.sources.postgres.snapshots import Streamed, position_of
from viewkeeper.sources.postgres.types import row_decoder

Reader = Callable[[Values], tuple[object, ...]]


@dataclass
class Completed:
    """What one commit says: at most one transaction, and the relations that it disrupts."""

    end: int
    streamed: Streamed | None
    disruptions: list[Disruption] = field(default_factory=list)

    def events(self) -> list[Transaction | Disruption]:
        """Disruptions first: without the changes of such a relation the transaction is not whole."""
        return [*self.disruptions, *([self.streamed.transaction] if self.streamed else [])]


class Assembler:
    """Takes payloads one by one. `altered` says how a table differs from what is captured, by the catalog."""

    def __init__(self, source: str, tables: Tables, altered: Callable[[Table], str | None]) -> None:
        self._source = source
        self._tables = {table.oid: table for table in tables.all()}
        self._altered = altered
        self._readers: dict[int, Reader] = {}
        self._lost: set[int] = set()
        """tables whose changes are no longer understood"""
        self._xid = 0
        self._changes: list[Change] = []
        self._disrupted: dict[str, str] = {}

    def lose(self, oid: int) -> None:
        """From here on the changes of a table mean nothing."""
        self._lost.add(oid)

    @property
    def lost(self) -> set[str]:
        """The relations whose changes are no longer understood."""
        return {self._tables[oid].relation.name for oid in self._lost}

    def feed(self, payload: bytes) -> Completed | None:
        """A completed transaction, when its commit comes."""
        message = decode(payload)
        if isinstance(message, RowMessage):
            table = self._tables.get(message.oid)
            if table is not None and message.oid not in self._lost:
                self._row(table, message)
        elif isinstance(message, Begin):
            self._xid, self._changes, self._disrupted = message.xid, [], {}
        elif isinstance(message, Commit):
            return self._completed(message)
        elif isinstance(message, RelationMessage):
            table = self._tables.get(message.oid)
            if table is not None and message.oid not in self._lost:
                self._relation(table, message)
        elif isinstance(message, Truncate):
            for oid in message.oids:
                if oid in self._tables and oid not in self._lost:
                    self._disrupt(self._tables[oid], "it was truncated")
        return None

    def _row(self, table: Table, message: RowMessage) -> None:
        if message.incomplete:
            self._disrupt(
                table, "its replica identity is not FULL, so a change did not say which row it was", lost=True
            )
            return
        name, reader = table.relation.name, self._readers[message.oid]
        try:
            if message.old is not None:
                self._changes.append(Change(name, reader(message.old), -1))
            if message.new is not None:
                self._changes.append(Change(name, reader(message.new), 1))
        except UnsupportedType as error:
            self._disrupt(table, error.detail, lost=True)

    def _relation(self, table: Table, message: RelationMessage) -> None:
        reason = _mismatch(table, message) or self._altered(table)
        if reason is not None:
            self._disrupt(table, reason, lost=True)
            return
        places = [column.name for column in message.columns]
        self._readers[table.oid] = _reader(table, [places.index(column.name) for column in table.columns])

    def _disrupt(self, table: Table, reason: str, *, lost: bool = False) -> None:
        if lost:
            self._lost.add(table.oid)
        self._disrupted.setdefault(table.relation.name, reason)

    def _completed(self, commit: Commit) -> Completed:
        position = position_of(commit.end)
        changes = self._changes
        if self._disrupted:
            changes = [change for change in changes if change.relation not in self._disrupted]
        transaction = as_transaction(self._source, position, changes)
        disruptions = [Disruption(name, position, reason) for name, reason in self._disrupted.items()]
        if not transaction.changes and not transaction.parts:
            return Completed(commit.end, None, disruptions)
        touched = frozenset({change.relation for change in transaction.changes})
        streamed = Streamed(self._xid, commit.start, commit.end, transaction, touched)
        return Completed(commit.end, streamed, disruptions)


def _mismatch(table: Table, message: RelationMessage) -> str | None:
    """Why rows of the stream cannot be read as rows of the captured relation; columns that were added do no harm."""
    if message.identity != "f":
        return "its replica identity is not FULL"
    if (message.schema, message.name) != (table.schema, table.name):
        return f"it was renamed to {message.schema}.{message.name}"
    now = {column.name: column for column in message.columns}
    for column in table.columns:
        if column.name not in now:
            return f"column {column.name} was dropped or renamed, or is left out of the publication"
        if (now[column.name].type_oid, now[column.name].typmod) != (column.type_oid, column.typmod):
            return f"column {column.name} has another type"
    return None


def _reader(table: Table, places: Sequence[int]) -> Reader:
    """From a row of the stream to one of the relation."""
    types = [column.type for column in table.columns]
    decoded = row_decoder(table.relation.name, table.relation.columns, [one.decode for one in types])
    if list(places) == list(range(len(places))):
        # The stream may have more columns behind ours.
        return lambda values: decoded(values[: len(places)])
    return lambda values: decoded([values[place] for place in places])
