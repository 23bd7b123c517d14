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
from viewkeeper.sources.layout import Alteration, fits, misfit
from viewkeeper.sources.postgres.catalog import RELOAD, Table, Tables, gone, retyped, same_or_wider
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
from viewkeeper.sources.postgres.types import numeric, row_decoder

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
    """Takes payloads one by one. `altered` says how a table differs from what is captured, by the catalog.

    A fault of a change is reported at its place: a view that a reload has taken past it is not concerned.
    """

    def __init__(self, source: str, tables: Tables, altered: Callable[[Table], Sequence[Alteration]]) -> None:
        self._source = source
        self._tables = {table.oid: table for table in tables.all()}
        self._altered = altered
        self._readers: dict[int, Reader | Alteration] = {}
        """how the rows of a table are read since it was last announced, or why they cannot be"""
        self._in_part: dict[int, list[Alteration]] = {}
        """the columns of which its rows say nothing, or nothing that is sure"""
        self._lost: set[int] = set()
        """tables whose changes mean nothing any more"""
        self._xid = 0
        self._changes: list[Change] = []
        self._disrupted: dict[tuple[str, frozenset[str] | None], Alteration] = {}

    def lose(self, oid: int) -> None:
        """From here on the changes of a table mean nothing."""
        self._lost.add(oid)

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
                    self._disrupt(self._tables[oid], Alteration(f"it was truncated; {RELOAD}"))
        return None

    def _row(self, table: Table, message: RowMessage) -> None:
        if message.incomplete:
            self._disrupt(table, _not_full("so a change did not say which row it was"))
            return
        name, reader = table.relation.name, self._readers[message.oid]
        if isinstance(reader, Alteration):
            self._disrupt(table, reader)
            return
        for one in self._in_part.get(message.oid, ()):
            self._disrupt(table, one)
        try:
            if message.old is not None:
                self._changes.append(Change(name, reader(message.old), -1))
            if message.new is not None:
                self._changes.append(Change(name, reader(message.new), 1))
        except UnsupportedType as error:
            self._disrupt(table, Alteration(f"{error.detail}; correct it, then {RELOAD}"))

    def _relation(self, table: Table, message: RelationMessage) -> None:
        found = [*_mismatches(table, message), *self._altered(table)]
        whole = [one for one in found if one.columns is None]
        self._in_part[table.oid] = [one for one in found if one.columns is not None]
        self._readers[table.oid] = whole[0] if whole else self._reader(table, message)

    def _reader(self, table: Table, message: RelationMessage) -> Reader:
        """From a row of the stream to one of the relation."""
        logged = {column.name: (place, column) for place, column in enumerate(message.columns)}
        unsure = frozenset[str]().union(*(one.columns or () for one in self._in_part[table.oid]))
        columns = [
            column if column is not None and column.name in logged and column.name not in unsure else None
            for column in table.columns
        ]
        places = [None if column is None else logged[column.name][0] for column in columns]
        decoders = [str if column is None else column.type.decode for column in columns]
        decoded = row_decoder(table.relation.name, table.relation.columns, decoders)
        checked = []
        for place, (column, type) in enumerate(zip(columns, table.relation.types, strict=True)):
            if column is not None:
                now = logged[column.name][1]
                # More digits than when it was opened; a wider integer is told by the catalog, which was rewritten.
                is_wider = (now.type_oid, now.typmod) != (column.type_oid, column.typmod) and now.typmod >= 4
                check = fits(type, numeric(now.typmod).spark) if is_wider and type[:7] == "DECIMAL" else column.fits
                if check is not None:
                    checked.append((place, check))
        if places == list(range(len(places))) and not checked:
            # The stream may have more columns behind ours.
            return lambda values: decoded(values[: len(places)])

        def read(values: Values) -> tuple[object, ...]:
            row = decoded([None if place is None else values[place] for place in places])
            for place, check in checked:
                if not check(row[place]):
                    name, type = table.relation.columns[place], table.relation.types[place]
                    self._disrupt(table, misfit(table.relation.name, name, type, row[place]))
                    row = (*row[:place], None, *row[place + 1 :])
            return row

        return read

    def _disrupt(self, table: Table, found: Alteration) -> None:
        self._disrupted.setdefault((table.relation.name, found.columns), found)

    def _completed(self, commit: Commit) -> Completed:
        position = position_of(commit.end)
        changes = self._changes
        if broken := {name for name, columns in self._disrupted if columns is None}:
            changes = [change for change in changes if change.relation not in broken]
        transaction = as_transaction(self._source, position, changes)
        disruptions = [Disruption.of(name, position, one) for (name, _), one in self._disrupted.items()]
        if not transaction.changes and not transaction.parts:
            return Completed(commit.end, None, disruptions)
        touched = frozenset({change.relation for change in transaction.changes})
        streamed = Streamed(self._xid, commit.start, commit.end, transaction, touched)
        return Completed(commit.end, streamed, disruptions)


def _not_full(so: str) -> Alteration:
    return Alteration(f"its replica identity is not FULL, {so}; {RELOAD}, which sets it")


def _mismatches(table: Table, message: RelationMessage) -> list[Alteration]:
    """What rows of the stream do not tell of rows of the relation; columns that were added do no harm."""
    if message.identity != "f":
        return [_not_full("so changes do not say which row they are of")]
    if (message.schema, message.name) != (table.schema, table.name):
        return [Alteration(f"it was renamed to {message.schema}.{message.name}; rename it back, then {RELOAD}")]
    now = {column.name: column for column in message.columns}
    found = []
    for column in table.columns:
        if column is not None and column.name not in now:
            found.append(gone(column.name))
        elif column is not None:
            logged = now[column.name]
            types = (logged.type_oid, logged.typmod), (column.type_oid, column.typmod)
            # What was written before it was widened, or is while we follow.
            if not (same_or_wider(*types) or same_or_wider(*reversed(types))):
                found.append(retyped(column.name))
    return found
