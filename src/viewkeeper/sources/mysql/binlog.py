"""The stream: row events of the binary log, put together to transactions.

    GTID  TABLE_MAP  ROWS ...  XID                 one transaction; its position is the end of the XID
    GTID  ROWS ...  XA PREPARE   ...   XA COMMIT   its rows are held until XA COMMIT, and its position is there

The library speaks the protocol of a replica and frames events. It is told to give up when the connection is lost: its
own way, to begin again where it first began, would send everything twice.
"""

import logging
import select
import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import (
    GtidEvent,
    HeartbeatLogEvent,
    NotImplementedEvent,
    QueryEvent,
    RotateEvent,
    XAPrepareEvent,
    XidEvent,
)
from pymysqlreplication.exceptions import MalformedBinLogEvent, StatusVariableMismatch
from pymysqlreplication.row_event import DeleteRowsEvent, PartialUpdateRowsEvent, UpdateRowsEvent, WriteRowsEvent

from viewkeeper.algebra.zset import Row
from viewkeeper.clock import monotonic
from viewkeeper.errors import PositionLost, SourceError, SourceUnavailable, SourceUnfit
from viewkeeper.messages import Change, Position, Transaction
from viewkeeper.sources.base import Batch, Disruption, as_transaction
from viewkeeper.sources.layout import VIEW, Alteration, misfit
from viewkeeper.sources.mysql.catalog import Catalog
from viewkeeper.sources.mysql.connections import Server
from viewkeeper.sources.mysql.history import Passed
from viewkeeper.sources.mysql.places import Reached
from viewkeeper.sources.mysql.row_images import RowImages
from viewkeeper.sources.mysql.statements import Concerned, concerned, savepoint, xa
from viewkeeper.sources.mysql.types import leaves_values

HEARTBEAT = 0.1
"""Seconds after which the server tells an idle stream how far its log is."""

SILENCE = 30
"""Seconds without even a heartbeat, after which the connection is taken for lost."""

BATCH = 500
LOST = 1236
COMPRESSED = {
    40: "binlog_transaction_compression",
    **dict.fromkeys((165, 166, 167, 168, 169, 170, 171), "log_bin_compress"),
}
"""Events that hold other events compressed, and the variable that does it."""

_BETWEEN = (XidEvent, QueryEvent, XAPrepareEvent, RotateEvent, HeartbeatLogEvent)
"""Events after which there may be nothing for a while."""


_GONE = ("ould not find", "purged", "impossible position", "position > file size", "bogus data", "incorrect position")
"""What a server says of a place that its log does not have; the latter, of a log that was reset and begun again."""


STRICT = 1 << 21 | 1 << 22
"""STRICT_TRANS_TABLES and STRICT_ALL_TABLES, in the sql_mode of a statement"""


def _altered(column: str, how: str) -> Alteration:
    return Alteration(f"the column {column} {how}; run 'viewkeeper reload {VIEW}'", frozenset({column}))


class StreamConnection(Connection):  # type: ignore[misc]
    """A connection that knows whether something has arrived."""

    def arrived(self) -> bool:
        """Whether reading would find bytes without waiting."""
        self._sock.settimeout(0)
        try:
            return bool(self._rfile.peek(1))
        except ssl.SSLWantReadError:
            return False
        finally:
            self._sock.settimeout(self._read_timeout)

    def wait(self, seconds: float) -> bool:
        """Until something happens (bytes, or the end of the connection); False if the time is up."""
        return bool(select.select([self._sock], [], [], seconds)[0])


@dataclass
class Start:
    """Where a stream begins, in the server's own words: a file and offset, or a GTID position of MariaDB."""

    file: str
    offset: int
    gtid: str | None


@dataclass
class _Open:
    """The transaction that is being read."""

    changes: list[Change] = field(default_factory=list)
    broken: list[tuple[str, Alteration, Position | None]] = field(default_factory=list)
    """relation, what became of it, and where; None: where the transaction ends"""
    savepoints: list[tuple[str, int]] = field(default_factory=list)
    gtid: str | None = None


class BinlogStream:
    """One run through the log, in one thread."""

    def __init__(self, server: Server, catalog: Catalog, mariadb: bool, server_id: int, start: Start) -> None:
        self._server, self._catalog = server, catalog
        self._connections = 0
        self._connection: StreamConnection | None = None
        self._reached = Reached()
        self._reached.file(start.file)
        self._reached.carried = start.offset >> 32 << 32
        self._images: dict[int, RowImages | None] = {}
        self._charsets: dict[tuple[str, str], str | None] = {}
        self._recoded: set[tuple[str, str]] = set()
        self._open = _Open()
        self._prepared: dict[str, list[Change]] = {}
        self.events: list[Transaction | Disruption] = []
        self.passed: list[Passed] = []
        self.upto: Position = ""
        # The library warns that it connects again, which it is not let to.
        logging.getLogger("pymysqlreplication").setLevel(logging.CRITICAL)
        self._reader = BinLogStreamReader(
            connection_settings={**server.settings, "read_timeout": SILENCE},
            pymysql_wrapper=self._connect,
            server_id=server_id,
            blocking=True,
            resume_stream=True,
            is_mariadb=mariadb,
            auto_position=start.gtid,
            log_file=start.file,
            log_pos=start.offset,
            only_schemas=catalog.databases,
            only_tables=catalog.tables,
            only_events=[*self._handlers(), *([] if mariadb else [GtidEvent])],
            filter_non_implemented_events=False,
            freeze_schema=True,
            slave_heartbeat=HEARTBEAT,
            enable_logging=False,
        )
        self._handle = {**self._handlers(), GtidEvent: self._gtid}

    def _handlers(self) -> Mapping[type, Any]:
        return {
            WriteRowsEvent: self._write,
            UpdateRowsEvent: self._update,
            DeleteRowsEvent: self._delete,
            PartialUpdateRowsEvent: self._partial,
            XidEvent: self._commit,
            QueryEvent: self._query,
            XAPrepareEvent: self._xa_prepare,
            RotateEvent: self._rotate,
            HeartbeatLogEvent: self._heartbeat,
            NotImplementedEvent: self._unknown,
        }

    def _connect(self, **settings: Any) -> Any:
        """The library opens two connections: the stream, then one for the catalog. A third means that one was lost."""
        self._connections += 1
        if self._connections > 2:
            raise SourceUnavailable(f"{self._server.source}: the connection of the stream was lost")
        if self._connections == 1:
            self._connection = self._server.opened(StreamConnection, **settings)
            return self._connection
        return self._server.opened(Connection, **settings)

    def close(self) -> None:
        try:
            self._reader.close()
        except (pymysql.Error, OSError):
            pass
        finally:
            if self._connection is not None:
                self._connection._force_close()

    def batches(self, stop: threading.Event) -> Iterator[Batch]:
        """What comes, as soon as nothing more is there or a batch is full; `passed` are all of its transactions."""
        told, heard = "", monotonic()
        while not stop.is_set():
            try:
                waiting = self._read(stop)
            except pymysql.Error as error:
                raise self._failure(error) from None
            except (OSError, MalformedBinLogEvent, StatusVariableMismatch) as error:
                raise self._server.translated(error) from None
            if waiting is not None:
                heard = monotonic()
            elif monotonic() - heard > SILENCE:
                raise SourceUnavailable(f"{self._server.source} has been silent for {SILENCE} seconds")
            if self.upto > told and (not waiting or len(self.events) >= BATCH):
                told = self.upto
                yield Batch(tuple(self.events), told)
                self.events, self.passed = [], []

    def _read(self, stop: threading.Event) -> bool | None:
        """Read what has arrived; whether more is there, None if nothing came for a while."""
        connection = self._connection
        if connection is not None and not connection.arrived() and not connection.wait(HEARTBEAT):
            return None
        for _ in range(BATCH):
            event = self._reader.fetchone()
            if event is None:
                raise SourceUnavailable(f"{self._server.source} has ended the stream")
            self._handle[type(event)](event)
            assert self._connection is not None
            # The rest of a transaction is on its way.
            if type(event) in _BETWEEN and not self._connection.arrived():
                return False
            if stop.is_set():
                break
        return True

    def _failure(self, error: pymysql.Error) -> SourceError:
        text = str(error.args[1]) if len(error.args) > 1 else ""
        if error.args and error.args[0] == LOST and any(sign in text for sign in _GONE):
            return PositionLost(
                f"{self._server.source}: the changes after this position are gone from the binary log ({text})",
                "reload the views of this source, and let the server keep its logs longer",
            )
        return self._server.translated(error)

    # --- events ---

    def _write(self, event: Any) -> None:
        name, rows = self._rows(event)
        self._open.changes += [Change(name, row, 1) for row in rows]

    def _delete(self, event: Any) -> None:
        name, rows = self._rows(event)
        self._open.changes += [Change(name, row, -1) for row in rows]

    def _update(self, event: Any) -> None:
        name, rows = self._rows(event, event.columns_present_bitmap2)
        # Before and after take turns.
        self._open.changes += [Change(name, row, 1 if number & 1 else -1) for number, row in enumerate(rows)]

    def _partial(self, event: Any) -> None:
        self._break(event.schema, event.table, "an update that logs parts of values (binlog_row_value_options)")

    def _rows(self, event: Any, also_present: bytes | None = None) -> tuple[str, list[Row]]:
        """The relation and the rows of an event; none if the event cannot be used, and then the relation is broken."""
        captured = self._catalog.by_place.get(self._catalog.spelled(event.schema, event.table))
        if captured is None:
            # A table of the same name in another captured database.
            return "", []
        name = captured.relation.name
        table_id = event.table_id
        if table_id not in self._images:
            columns = [
                column if column is None or self._same_charset(name, column.name, event.columns) else None
                for column in captured.columns
            ]
            images = self._images[table_id] = RowImages.of(captured.relation, columns, event.columns)
            if images is None:
                self._break(event.schema, event.table, "binlog_row_metadata was not FULL")
        images = self._images[table_id]
        if images is None:
            return name, []
        recoded = [column for relation, column in self._recoded if relation == name]
        for column in (*images.missing, *recoded):
            self._open.broken.append((name, _altered(column, "had another type, or was not there"), None))
        for present in (event.columns_present_bitmap, also_present):
            if present is not None and int.from_bytes(present, "little") & images.everything != images.everything:
                self._break(event.schema, event.table, "rows were logged in part (binlog_row_image of a session)")
                return name, []

        def unfit(number: int, value: object) -> None:
            column, type = captured.relation.columns[number], captured.relation.types[number]
            self._open.broken.append((name, misfit(name, column, type, value), None))

        return name, images.rows(event.packet.read(event.event_size - event.packet.read_bytes), unfit)

    def _same_charset(self, relation: str, column: str, logged: list[Any]) -> bool:
        """Whether the texts of a column are logged as they were when it was first met; its decoder is that of then."""
        found = next((getattr(one, "character_set_name", None) for one in logged if one.name == column), None)
        same = self._charsets.setdefault((relation, column), found) == found
        if not same:
            self._recoded.add((relation, column))
        return same

    def _break(self, database: str, table: str | None, reason: str, at: Position | None = None) -> None:
        """From a place on (None: the end of the open transaction) the stream no longer tells what relations hold."""
        database, name = self._catalog.spelled(database, table or "")
        for place, captured in self._catalog.by_place.items():
            if place[0] == database and (table is None or place[1] == name):
                found = Alteration(f"{reason}; run 'viewkeeper reload {VIEW}'")
                self._open.broken.append((captured.relation.name, found, at))

    def _break_columns(self, one: Concerned, strict: bool, at: Position) -> None:
        """A statement has altered columns of a table; those that keep every value go on."""
        captured = self._catalog.by_place.get(self._catalog.spelled(one.database, one.table or ""))
        if captured is None:
            return
        registered = dict(zip(captured.relation.columns, captured.relation.types, strict=True))
        spelled = {column.lower(): column for column in registered}
        for name, written in one.columns or ():
            column = spelled.get(name.lower())
            if column is None or leaves_values(registered[column], written, strict=strict):
                continue
            told = _altered(column, "was altered" if written else "was dropped or renamed: put it back first")
            self._open.broken.append((captured.relation.name, told, at))

    def _commit(self, event: Any) -> None:
        self._end(self._reached.at(event.packet.log_pos), self._open.changes)

    def _end(self, position: Position, changes: list[Change], xa: str | None = None) -> None:
        """A transaction is complete, with these changes."""
        done, self._open = self._open, _Open()
        for relation, found, at in dict.fromkeys(done.broken):
            self.events.append(Disruption.of(relation, at or position, found))
        if changes:
            self.events.append(as_transaction(self._server.source, position, changes))
            self.passed.append(Passed(position, changes, done.gtid, xa))
        self.upto = max(self.upto, position)

    def _query(self, event: Any) -> None:
        statement = event.query.strip()
        word = statement[:9].upper()
        if word == "BEGIN":
            return
        position = self._reached.at(event.packet.log_pos)
        if word == "COMMIT":
            self._end(position, self._open.changes)
        elif word == "ROLLBACK":
            self._end(position, [])
        elif mark := savepoint(statement):
            self._savepoint(*mark)
        elif part := xa(statement):
            self._xa(*part, position)
        else:
            database = event.schema.decode() if isinstance(event.schema, bytes) else event.schema
            for one in concerned(statement, database):
                if one.columns is None:
                    self._break(one.database, one.table, one.how, position)
                else:
                    self._break_columns(one, bool(getattr(event, "sql_mode", 0) & STRICT), position)

    def _savepoint(self, back: bool, name: str) -> None:
        """Savepoints are in the log only if other engines took part; then what was rolled back is there as well."""
        marks = self._open.savepoints
        if not back:
            marks.append((name, len(self._open.changes)))
            return
        for number in range(len(marks) - 1, -1, -1):
            if marks[number][0].lower() == name.lower():
                del self._open.changes[marks[number][1] :]
                del marks[number + 1 :]
                return

    def _xa_prepare(self, event: Any) -> None:
        position = self._reached.at(event.packet.log_pos)
        if event.one_phase:
            self._end(position, self._open.changes)
            return
        name = f"X'{event.xid_gtrid.hex()}',X'{event.xid_bqual.hex()}',{event.xid_format_id}"
        self._prepared[name] = self._open.changes
        self._end(position, [])

    def _xa(self, verb: str, name: str, position: Position) -> None:
        if verb not in ("COMMIT", "ROLLBACK"):
            return
        known = name in self._prepared
        changes = self._prepared.pop(name, [])
        if verb == "COMMIT" and not known:
            for database in self._catalog.databases:
                self._break(database, None, "an XA transaction was committed that was prepared before the stream began")
        self._end(position, changes if verb == "COMMIT" else [], name)

    def _gtid(self, event: Any) -> None:
        self._open.gtid = event.gtid

    def _rotate(self, event: Any) -> None:
        self._reached.file(event.next_binlog)
        if event.timestamp:
            self._settle(self._reached.at(event.position))
            self._images.clear()

    def _heartbeat(self, event: Any) -> None:
        """The server has sent all that there is: between transactions, its place is ours."""
        self._reached.file(event.ident.rstrip("\0"))
        self._settle(self._reached.at(event.packet.log_pos))

    def _settle(self, position: Position) -> None:
        if self._open.broken:
            # A statement that stands alone has no event that ends it.
            self._end(position, [])
        self.upto = max(self.upto, position)

    def _unknown(self, event: Any) -> None:
        variable = COMPRESSED.get(event.event_type)
        if variable is not None:
            raise SourceUnfit(
                f"{self._server.source} compresses its binary log, which cannot be read here",
                f"SET GLOBAL {variable} = OFF, then reload the views of this source",
            )
