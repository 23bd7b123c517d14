"""Putting capture in place, finding out whether it is still sound, and taking it away.

Everything is put in place in one transaction, so it is there whole or not at all. The log begins at the microseconds
since 1970: a position from before a removal is then behind the beginning, and known to be lost.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from viewkeeper.clock import now
from viewkeeper.errors import SourceError
from viewkeeper.sources.layout import VIEW, Alteration, widens
from viewkeeper.sources.sqlite.change_tables import BASE, Capture, Names, base_tables, set_head
from viewkeeper.sources.sqlite.connections import quote
from viewkeeper.sources.sqlite.tables import Table, read_table
from viewkeeper.sources.sqlite.types import StoredType, stored_type

WAL = "wal"


@dataclass(frozen=True)
class Captured:
    """A table that is captured, with the columns (name and declared type) that it had when capture began.

    One that is not `current` was captured under this number until it was altered and capture was installed again.
    """

    number: int
    name: str
    columns: tuple[tuple[str, str], ...]
    current: bool

    @property
    def names(self) -> frozenset[str]:
        return frozenset(column for column, _ in self.columns)


def journal_mode(connection: sqlite3.Connection) -> str:
    return str(connection.execute("PRAGMA main.journal_mode").fetchone()[0]).lower()


class Installation:
    """What a warehouse has put into a database."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def present(self, connection: sqlite3.Connection) -> bool:
        found = connection.execute(
            "SELECT 1 FROM main.sqlite_master WHERE name = ?", (self.names.meta_name,)
        ).fetchone()
        return found is not None

    def captured(self, connection: sqlite3.Connection) -> list[Captured]:
        """Every table that is or was captured."""
        if not self.present(connection):
            return []
        listed = connection.execute(
            f"SELECT number, name, columns, current FROM main.{self.names.tables} ORDER BY number"
        )
        return [
            Captured(number, name, tuple((column, declared) for column, declared in json.loads(columns)), bool(current))
            for number, name, columns, current in listed.fetchall()
        ]

    def head(self, connection: sqlite3.Connection) -> int:
        """The last number of the log."""
        return int(connection.execute(f"SELECT seq FROM main.{self.names.head}").fetchone()[0])

    def floor(self, connection: sqlite3.Connection) -> int:
        """The number up to which the log was forgotten."""
        return int(connection.execute(f"SELECT floor FROM main.{self.names.meta}").fetchone()[0])

    def retained(self, connection: sqlite3.Connection) -> int:
        """About the bytes of the log, from those of its last rows."""
        columns = [row[1] for row in connection.execute(f"PRAGMA main.table_info({self.names.log})").fetchall()]
        size = " + ".join(f"ifnull(length(CAST({column} AS BLOB)), 0)" for column in columns)
        row = connection.execute(
            f"SELECT avg({size}) FROM (SELECT * FROM main.{self.names.log} ORDER BY seq DESC LIMIT 100)"
        ).fetchone()
        (first,) = connection.execute(f"SELECT min(seq) FROM main.{self.names.log}").fetchone()
        return int((self.head(connection) - first + 1) * row[0])

    # --- is it sound? ---

    def flaws(self, connection: sqlite3.Connection, captured: Captured) -> list[Alteration]:
        """Why a table, or a column of it, is no longer captured as it was; nothing if it is."""
        try:
            table = read_table(connection, captured.name, captured.names)
        except SourceError as error:
            return [_flaw(error.detail)]
        there = {column.name: column for column in table.columns}
        found, known = [], []
        for place, (name, declared) in enumerate(captured.columns):
            column = there.get(name)
            if column is None:
                found.append(_flaw(f"table {captured.name} no longer has the column {name}: put it back", name))
                # SQLite lets a column go only with its triggers, and renames it in them.
                column = table.columns[place] if place < len(table.columns) else None
                if column is None or column.name in captured.names:
                    return [_flaw(f"table {captured.name} no longer has the column {name}")]
            elif not _keeps(declared, column.declared):
                had = f"column {name} of table {captured.name} had the type {declared}, and now {column.declared}"
                found.append(_flaw(had, name))
            known.append(column)
        try:
            wanted = Capture(self.names, captured.number, replace(table, columns=tuple(known))).triggers()
        except KeyError:
            return [_flaw(f"a unique index of table {captured.name} has a column that is not captured")]
        for name, sql in wanted.items():
            trigger = connection.execute(
                "SELECT sql FROM main.sqlite_master WHERE type = 'trigger' AND name = ?", (name,)
            ).fetchone()
            if trigger is None:
                return [_flaw(f"triggers of table {captured.name} are missing: the table or a trigger was dropped")]
            if trigger[0] != sql:
                return [_flaw(f"what is unique in table {captured.name} has changed, or a trigger was altered")]
        return found

    # --- putting in place ---

    def plan(self, connection: sqlite3.Connection, tables: Sequence[Table]) -> list[str]:
        """The statements that are missing for capture of exactly these tables."""
        statements: list[str] = []
        fresh = not self.present(connection)
        known = self.captured(connection)
        wide = 0
        if fresh:
            statements += base_tables(self.names, _now())
            mode = journal_mode(connection)
            statements.append(f"INSERT INTO {self.names.meta} SELECT '{mode}', seq FROM {self.names.head}")
        else:
            wide = len(connection.execute(f"PRAGMA main.table_info({self.names.log})").fetchall()) - 3
        current = {one.name: one for one in known if one.current}
        number = max((one.number for one in known), default=0)
        for name, one in current.items():
            if name not in {table.name for table in tables}:
                statements += self._retire(one.number)
        for table in tables:
            columns = tuple((column.name, column.declared) for column in table.columns)
            before = current.get(table.name)
            flaws = self.flaws(connection, before) if before else []
            if before and before.columns == columns and not flaws:
                continue
            if before:
                statements += self._retire(before.number)
            for place in range(wide, len(columns)):
                statements.append(f"ALTER TABLE {self.names.log} ADD COLUMN c{place}")
            wide = max(wide, len(columns))
            number += 1
            statements.append(
                f"INSERT INTO {self.names.tables} VALUES "
                f"({number}, {literal(table.name)}, {literal(json.dumps(columns))}, 1)"
            )
            statements += Capture(self.names, number, table).statements()
            captured_since = before is not None and all(flaw.columns is not None for flaw in flaws)
            if any(one.name == table.name for one in known) and not captured_since:
                # What happened to it meanwhile is not in the log: whoever follows the log must be told.
                statements.append(f"INSERT INTO {self.names.log} (tbl, sign) VALUES ({number}, 0)")
                statements.append(set_head(self.names))
        return statements

    def _retire(self, number: int) -> Iterator[str]:
        yield from self._drop_capture(number)
        yield f"UPDATE {self.names.tables} SET current = 0 WHERE number = {number}"

    def _drop_capture(self, number: int) -> Iterator[str]:
        for trigger in self.names.triggers(number):
            yield f"DROP TRIGGER IF EXISTS {quote(trigger)}"
        yield f"DROP TABLE IF EXISTS {self.names.stash(number)}"

    def put(self, connection: sqlite3.Connection, tables: Sequence[Table]) -> None:
        """Put in place what is missing, and only then leave a journal mode that tells no transactions apart."""
        with writing(connection):
            for statement in self.plan(connection, tables):
                connection.execute(statement)
        if journal_mode(connection) != WAL:
            connection.execute("PRAGMA main.journal_mode = WAL").fetchone()

    def begin_anew(self, connection: sqlite3.Connection) -> int:
        """Let the log begin now, so that positions from before are known to be lost; where it begins."""
        with writing(connection):
            begin = max(_now(), self.head(connection) + 1)
            connection.execute(f"DELETE FROM main.{self.names.log}")
            connection.execute(f"INSERT INTO main.{self.names.log} (seq, tbl, sign) VALUES (?, ?, 0)", (begin, BASE))
            connection.execute(set_head(self.names))
            connection.execute(f"UPDATE main.{self.names.meta} SET floor = ?", (begin,))
        return begin

    # --- taking away ---

    def take_away(self, connection: sqlite3.Connection) -> str | None:
        """Drop everything; the journal mode to which the database should go back, if another is in force."""
        with writing(connection):
            if not self.present(connection):
                return None
            (former,) = connection.execute(f"SELECT former FROM main.{self.names.meta}").fetchone()
            for one in self.captured(connection):
                for statement in self._drop_capture(one.number):
                    connection.execute(statement)
            for name in (self.names.log, self.names.head, self.names.tables, self.names.meta):
                connection.execute(f"DROP TABLE main.{name}")
            others = connection.execute(
                r"SELECT name FROM main.sqlite_master WHERE type = 'table' AND name LIKE '\_vk\_%\_meta' ESCAPE '\'"
            ).fetchall()
            if others:
                # Another warehouse needs the mode that is in force; the last one to go restores the first.
                if former != WAL:
                    connection.execute(f"UPDATE main.{quote(others[0][0])} SET former = ?", (former,))
                return None
        return former if former != journal_mode(connection) else None


def _flaw(reason: str, column: str | None = None) -> Alteration:
    told = f"{reason}; then run 'viewkeeper reload {VIEW}'" if column else f"{reason}; run 'viewkeeper reload {VIEW}'"
    return Alteration(told, None if column is None else frozenset({column}))


def _keeps(before: str, now: str) -> bool:
    """Whether a declared type stands for values that another one holds too."""
    one, other = stored_type(before), stored_type(now)
    if isinstance(one, StoredType) and isinstance(other, StoredType):
        return widens(one.spark, other.spark)
    return before == now


def _now() -> int:
    """Microseconds since 1970."""
    return int(now().timestamp() * 1_000_000)


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that has the write lock from its beginning: it waits for others, and never fails half-way."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
