"""A database file of SQLite as a source.

    position of a reading  =  the last number of the log, read in the same transaction

so a reading is exact with no further ado. It needs nothing from the users of the database: whatever program writes to
it runs our triggers. Their writes are never made to fail: what we write is short and rare (an acknowledgement at most
every few seconds), and waits for them. Three things are for them to know: while capture is installed, ALTER TABLE ...
DROP COLUMN is refused by SQLite; a transaction that begins by reading and writes later without BEGIN IMMEDIATE can be
refused after any commit of somebody else, ours included; and sqlite3_blob_write calls no trigger.
"""

import sqlite3
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from viewkeeper.algebra.zset import Row
from viewkeeper.errors import PositionLost, SourceUnfit, UnknownTable, UnsupportedType, ViewkeeperError
from viewkeeper.messages import Fetch, Position, position
from viewkeeper.sources.base import GLOBAL_TX, Batch, Finding, Reading, Request, Source
from viewkeeper.sources.layout import Alteration, widens
from viewkeeper.sources.sqlite.acknowledging import Forgetting
from viewkeeper.sources.sqlite.catalog import Catalog, known_types
from viewkeeper.sources.sqlite.change_tables import Names
from viewkeeper.sources.sqlite.commit_tail import CommitTail
from viewkeeper.sources.sqlite.connections import Database, database_path, quote, reading_transaction
from viewkeeper.sources.sqlite.fetching import ROWS_AT_ONCE, Statement
from viewkeeper.sources.sqlite.forgotten import Forgotten
from viewkeeper.sources.sqlite.installation import WAL, Captured, Installation, journal_mode
from viewkeeper.sources.sqlite.known_ends import KnownEnds
from viewkeeper.sources.sqlite.log_stream import Logged, LogStream
from viewkeeper.sources.sqlite.types import Misfit, StoredType, canonical
from viewkeeper.sql.relation import Relation

SMALL = 64 << 20
"""Bytes of a database whose rows are counted sooner than a guess at them is corrected."""
REST = 0.1
"""Seconds after which a stream without changes looks whether a table was altered."""


@dataclass(frozen=True)
class Checked:
    """What is captured as of a version of the schema, and why tables no longer are, by number."""

    version: int
    captured: Sequence[Captured]
    flaws: Mapping[int, Sequence[Alteration]]


class SqliteSource(Source):
    """`sqlite:///relative/path.db` or `sqlite:////absolute/path.db`."""

    def __init__(self, request: Request, workspace: Path | None = None) -> None:
        super().__init__()
        self.name = request.name
        self._request = request
        self._database = Database(request.name, database_path(request.url))
        self._installation = Installation(Names(f"{request.identity}_{request.name}"))
        self._tail: CommitTail | None = None
        self._tail_lock = threading.Lock()
        self._forgotten = Forgotten(workspace)
        self._forgetting = Forgetting(self._database, self._installation, self._forgotten)
        self._known_ends = KnownEnds()
        self._checked: Checked | None = None
        with self._database.connection() as connection, reading_transaction(connection):
            self._describe(connection)

    def _describe(self, connection: sqlite3.Connection) -> None:
        captured = {one.name: one for one in self._check(connection).captured if one.current}
        self._catalog = Catalog(self._request, connection, captured)
        self.relations = self._catalog.relations
        self.global_transactions = f"{self.name}.{GLOBAL_TX}" in self._catalog.table_of

    @property
    def found(self) -> Mapping[str, Relation]:
        return self._catalog.found

    # --- is all well? ---

    def doctor(self) -> list[Finding]:
        findings = []
        with self._database.connection() as connection:
            if told := _refuses_writes(connection):
                findings.append(
                    Finding(
                        f"the database {self._database.path} cannot be written: {told}",
                        f"chmod u+w '{self._database.path}' and its folder, or mount it writable",
                    )
                )
            with reading_transaction(connection):
                plan = self._installation.plan(connection, self._catalog.tables)
                if plan:
                    what, fatal = self._lacking(connection)
                    findings.append(Finding(what, ";\n".join(["BEGIN IMMEDIATE", *plan, "COMMIT"]) + ";", fatal))
                mode = journal_mode(connection)
            if mode != WAL:
                findings.append(
                    Finding(
                        f"the journal mode is {mode}: transactions cannot be distinguished, and readers block writers",
                        "PRAGMA journal_mode = WAL;",
                        fatal=False,
                    )
                )
        return findings

    def _lacking(self, connection: sqlite3.Connection) -> tuple[str, bool]:
        """What is not captured, and whether it is needed."""
        checked = self._check(connection)
        if not checked.captured:
            return f"nothing captures the changes of {self._database.path}", True
        known = {one.name for one in checked.captured if one.current}
        told = [flaw.reason.partition(";")[0] for several in checked.flaws.values() for flaw in several]
        told += [f"table {table.name} is not captured" for table in self._catalog.tables if table.name not in known]
        added = "columns were added or tables left out since capture was installed; a view that names one captures it"
        return ("; ".join(told), True) if told else (added, False)

    def _check(self, connection: sqlite3.Connection) -> Checked:
        """What is captured in this state of the database; looked up only if the schema has changed."""
        (version,) = connection.execute("PRAGMA main.schema_version").fetchone()
        checked = self._checked
        if checked is None or checked.version != version:
            captured = self._installation.captured(connection)
            flaws = {one.number: self._installation.flaws(connection, one) for one in captured if one.current}
            checked = Checked(version, captured, {number: flaw for number, flaw in flaws.items() if flaw})
            self._checked = checked
        return checked

    def _fit(self, connection: sqlite3.Connection) -> Checked:
        """What is captured; SourceUnfit if something that was asked for is not."""
        checked = self._check(connection)
        current = {one.name for one in checked.captured if one.current}
        missing = [name for name in self._catalog.table_of.values() if name not in current]
        if missing or not checked.captured:
            raise self._not_captured(missing)
        return checked

    def _not_captured(self, missing: Sequence[str]) -> SourceUnfit:
        return SourceUnfit(
            f"the changes of {self.name} are not captured: {', '.join(missing) or 'nothing is installed'}",
            "install capture; 'doctor' shows the statements that this takes",
        )

    # --- installing ---

    def install(self) -> None:
        with self._database.connection() as connection:
            self._installation.put(connection, self._catalog.tables)
            if self._installation.floor(connection) < self._forgotten.noted:
                self._forgotten.begin_anew(self._installation.begin_anew(connection))
            self._checked = None
            with reading_transaction(connection):
                self._describe(connection)

    def remove(self) -> list[str]:
        self._stop_tail()
        with self._database.connection() as connection:
            former = self._installation.take_away(connection)
        self._checked = None
        self._database.let_go()
        if former is None:
            return []
        statement = f"PRAGMA journal_mode = {former.upper()};"
        with self._database.connection() as connection:
            # SQLite allows it only while nobody else has the database open.
            with suppress(sqlite3.OperationalError):
                connection.execute("PRAGMA busy_timeout = 500")
                connection.execute(f"PRAGMA main.journal_mode = {former}").fetchone()
            changed = journal_mode(connection) == former
        self._database.let_go()
        return [] if changed else [statement]

    # --- the stream ---

    def end(self) -> Position:
        with self._database.connection() as connection, reading_transaction(connection):
            self._fit(connection)
            return position(self._installation.head(connection))

    def transactions(self, after: Position | None, stop: threading.Event) -> Iterator[Batch]:
        with self._database.connection() as connection, reading_transaction(connection):
            if after is not None and not self._check(connection).captured:
                raise PositionLost(
                    f"nothing captures the changes of {self._database.path} any more: another database is in its "
                    "place, or what was installed in it was taken away",
                    "reload the views over it, which installs capture again",
                )
            self._fit(connection)
            last = self._start(connection, after)
        self.stream_starts(after)
        stream = LogStream(self.name, self._installation.names)
        told = stream.disrupt(*self._log_of(stream, last, last)[1:], last)
        self.passed(position(last))
        yield Batch(told, position(last))
        while not stop.is_set():
            tail = self._running_tail()
            pieces = tail.pieces_behind(last, REST, stop)
            if stop.is_set():
                return
            if not pieces and (told := stream.disrupt(*self._log_of(stream, last, last)[1:], last)):
                yield Batch(told, position(last))
            for portion in stream.portions(pieces):
                rows, flaws, logged = self._log_of(stream, last, portion[-1].end)
                told = stream.disrupt(flaws, logged, portion[0].end)
                batch = stream.batch(portion, rows, logged)
                last = portion[-1].end
                self.passed(batch.upto)
                yield Batch([*told, *batch.events], batch.upto)
                if stop.is_set():
                    return

    def _log_of(
        self, stream: LogStream, start: int, end: int
    ) -> tuple[Sequence[Row], Mapping[int, Sequence[Alteration]], Mapping[int, Logged]]:
        """Rows of the log, what is wrong with tables in the same state of the database, and how rows are read."""
        with self._database.connection() as connection, reading_transaction(connection):
            checked = self._check(connection)
            rows = stream.rows(connection, start, end)
        wanted = {table: relation for relation, table in self._catalog.table_of.items()}
        logged = {one.number: self._logged(one, wanted[one.name]) for one in checked.captured if one.name in wanted}
        return rows, checked.flaws, logged

    def _logged(self, captured: Captured, relation: str) -> Logged:
        """How rows are read that were captured so; not at all, if a column has another type since."""
        names, types = tuple(column for column, _ in captured.columns), known_types(captured.columns)
        told = self._catalog.relations.get(relation)
        columns = names if told is None else told.columns
        known = dict(zip(names, (type.spark for type in types), strict=True))
        now = {} if told is None else dict(zip(told.columns, told.types, strict=True))
        alike = all(widens(known[column], type) for column, type in now.items() if column in known)
        places = tuple(names.index(column) if column in known else None for column in columns)
        return Logged(relation, names, types if captured.current or alike else None, places)

    def _start(self, connection: sqlite3.Connection, after: Position | None) -> int:
        floor, head = self._installation.floor(connection), self._installation.head(connection)
        self._forgotten.check(self.name, floor)
        if after is None:
            return floor
        if not (after.isascii() and after.isdigit() and floor <= int(after) <= head):
            raise PositionLost(
                f"{self.name} no longer has the changes after {after}: its log is from {position(floor)} to "
                f"{position(head)}",
                "reload the views over it",
            )
        return int(after)

    def _running_tail(self) -> CommitTail:
        """The thread that follows the commits; it goes on when a stream ends, so that the next one knows them too."""
        with self._tail_lock:
            if self._tail is not None and self._tail.broken:
                self._tail.close()
                self._tail = None
            if self._tail is None:
                self._tail = CommitTail(self._database, self._installation, self._known_ends)
            return self._tail

    def _stop_tail(self) -> None:
        with self._tail_lock:
            if self._tail is not None:
                self._tail.close()
                self._tail = None

    # --- readings ---

    @contextmanager
    def reading(self, fetches: Sequence[Fetch]) -> Iterator[Reading]:
        statements = [Statement(fetch, number, self._catalog.absent) for number, fetch in enumerate(fetches)]
        with self._database.connection() as connection:
            for statement in statements:
                statement.ship_keys(connection)
            with reading_transaction(connection):
                here = self._place(connection)
                self._check_tables(connection, fetches)
                rows = tuple(self._rows(connection, statement) for statement in statements)
                try:
                    yield Reading(here, rows, tuple(() for _ in fetches))
                finally:
                    for one in rows:
                        one.close()
            for statement in statements:
                statement.forget_keys(connection)

    def _place(self, connection: sqlite3.Connection) -> Position:
        """The position of the state that is shown from now on."""
        with self._known_ends.looking():
            if not self._installation.present(connection):
                raise self._not_captured(())
            head = self._installation.head(connection)
            self._known_ends.note(head)
        return position(head)

    def _check_tables(self, connection: sqlite3.Connection, fetches: Sequence[Fetch]) -> None:
        """UnknownTable if a table is no longer what it was: its rows would not be those that the stream tells of."""
        checked = self._fit(connection)
        asked = {self._catalog.table_of[operand.relation.name] for fetch in fetches for operand in fetch.reads}
        for one in checked.captured:
            for flaw in checked.flaws.get(one.number, ()) if one.name in asked else ():
                if flaw.columns is None or self._reads(fetches, one.name, flaw.columns):
                    raise UnknownTable(
                        f"{self.name}: {flaw.reason.partition(';')[0]}", "install capture again and reload its views"
                    )

    def _reads(self, fetches: Sequence[Fetch], table: str, columns: frozenset[str]) -> bool:
        """Whether something is asked of columns that the table had when it was opened."""
        return any(
            f"{operand.alias}.{column}" in (*part.columns, *part.matched)
            for fetch in fetches
            for part in fetch.parts
            for operand in part.operands
            if self._catalog.table_of[operand.relation.name] == table
            for column in columns - self._catalog.absent[operand.relation.name]
        )

    def _rows(self, connection: sqlite3.Connection, statement: Statement) -> Generator[Sequence[Row]]:
        fetch = statement.fetch
        types: dict[str, StoredType] = {}
        for operand in fetch.operands:
            types.update(zip(operand.columns, self._catalog.types[operand.relation.name], strict=True))
        wanted = [types[column] for column in fetch.columns]
        with self._database.explained():
            cursor = connection.execute(statement.sql(self._catalog.table_of))
            try:
                while rows := cursor.fetchmany(ROWS_AT_ONCE):
                    try:
                        yield canonical(wanted, rows) if wanted else [()] * len(rows)
                    except Misfit as misfit:
                        raise self._misfit(connection, fetch, misfit) from None
            finally:
                cursor.close()

    def _misfit(self, connection: sqlite3.Connection, fetch: Fetch, misfit: Misfit) -> UnsupportedType:
        """Which value it is; its rowid is found by another statement in the same state of the database."""
        asked = fetch.columns[misfit.column]
        operand = next(operand for operand in fetch.operands if asked in operand.columns)
        column = operand.relation.columns[operand.columns.index(asked)]
        name = self._catalog.table_of[operand.relation.name]
        table = next((table for table in self._catalog.tables if table.name == name), None)
        row = ""
        if table is not None and table.rowid:
            value, place = misfit.value, quote(column)
            if isinstance(value, str):  # it may be no UTF-8
                value, place = value.encode(errors="surrogateescape"), f"CAST({place} AS BLOB)"
            found = connection.execute(
                f"SELECT {table.rowid} FROM main.{quote(name)} WHERE {place} IS ? LIMIT 1", (value,)
            ).fetchone()
            row = f" (rowid {found[0]})" if found else ""
        return UnsupportedType(
            f"table {name} of {self.name} holds {misfit} in column {column}{row}",
            "correct the value, or declare the column with a type that fits its values",
        )

    # --- letting go ---

    def will_start_behind(self, position: Position) -> None:
        if position.isascii() and position.isdigit():
            with self._known_ends.looking():
                self._known_ends.note(int(position))

    def acknowledge(self, position: Position) -> None:
        last = int(position)
        self._forgetting.up_to(last)
        # Until then a stream may begin again at any place that somebody has read up to.
        self._known_ends.forget(last)
        with self._tail_lock:
            if self._tail is not None:
                self._tail.forget(last)

    def retained(self) -> int | None:
        """About the bytes of the log: its numbers, and what its last rows take."""
        with self._database.connection() as connection:
            if not self._installation.present(connection):
                return None
            return self._installation.retained(connection)

    def estimated_rows(self, relation: str) -> int | None:
        """Counted, if the database is small. Else by the first and the last rowid, which are found without a scan: as
        if no row in between had gone."""
        name = self._catalog.table_of.get(relation)
        table = next((one for one in self._catalog.tables if one.name == name), None)
        if table is None:
            return None
        place = f"main.{quote(table.name)}"
        with self._database.connection() as connection:
            pages, bytes = (connection.execute(f"PRAGMA {one}").fetchone()[0] for one in ("page_count", "page_size"))
            if pages * bytes <= SMALL:
                return int(connection.execute(f"SELECT COUNT(*) FROM {place}").fetchone()[0])
            if table.rowid is None:
                return None
            # One at a time: SQLite looks up a lone MIN or MAX, and scans the table for both.
            first, last = (
                connection.execute(f"SELECT {function}({table.rowid}) FROM {place}").fetchone()[0]
                for function in ("MIN", "MAX")
            )
        return 0 if last is None else last - first + 1

    def close(self) -> None:
        self._stop_tail()
        with suppress(ViewkeeperError):  # the database may be out of reach; then the log is a little longer
            self._forgetting.finish()
        self._database.close()


def _refuses_writes(connection: sqlite3.Connection) -> str | None:
    """Why the database cannot be written; a lock that somebody holds is no reason."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return None
        return str(error)
    return None
