"""The tables that are captured: found at the server, checked, and described as relations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pymysql

from viewkeeper.errors import SourceUnfit, UnknownTable, UnsupportedType
from viewkeeper.sources.base import GLOBAL_TX, Request
from viewkeeper.sources.layout import laid_out
from viewkeeper.sources.mysql.charsets import Charsets
from viewkeeper.sources.mysql.connections import DENIED, Server, quoted, run
from viewkeeper.sources.mysql.foreign_keys import acting_keys
from viewkeeper.sources.mysql.types import Column, Declared, column
from viewkeeper.sql.relation import Relation

OWN_PREFIX = "_viewkeeper_"
"""Tables of ours at the server begin like this."""

Place = tuple[str, str]
"""Database and table, as the server spells them."""

COLUMNS = """
    SELECT column_name, data_type, column_type, COALESCE(numeric_precision, 0), COALESCE(numeric_scale, 0),
           COALESCE(character_maximum_length, 0), character_set_name, collation_name, extra
    FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position"""

KEY = """
    SELECT column_name FROM information_schema.key_column_usage
    WHERE table_schema = %s AND table_name = %s AND constraint_name = 'PRIMARY' ORDER BY ordinal_position"""


@dataclass(frozen=True)
class Captured:
    """A captured table, with what its columns are at the server and here."""

    place: Place
    relation: Relation
    columns: tuple[Column | None, ...]
    """those of the relation; None for one that is gone"""
    found: Relation
    """the same with all columns that it has now"""


@dataclass(frozen=True)
class Catalog:
    """Every captured table, by where it is and by the name of its relation."""

    by_place: Mapping[Place, Captured]
    by_name: Mapping[str, Captured]
    any_case: bool = False
    """whether the server takes names in any case for the same"""

    @classmethod
    def of(cls, server: Server, connection: Any, request: Request, mariadb: bool) -> "Catalog":
        found = _Search(server, connection, request, mariadb)
        tables = found.tables()
        return cls({one.place: one for one in tables}, {one.relation.name: one for one in tables}, found.any_case)

    def spelled(self, database: str, table: str) -> Place:
        """A place as the server spells it in its catalog and in the log."""
        return (database.lower(), table.lower()) if self.any_case else (database, table)

    @property
    def databases(self) -> list[str]:
        return sorted({database for database, _ in self.by_place})

    @property
    def tables(self) -> list[str]:
        return sorted({table for _, table in self.by_place})


class _Search:
    """One look at the server's catalog."""

    def __init__(self, server: Server, connection: Any, request: Request, mariadb: bool) -> None:
        self._server, self._connection, self._request, self._mariadb = server, connection, request, mariadb
        self._charsets = Charsets(connection)
        ((cases,),) = run(connection, "SELECT @@lower_case_table_names")
        self.any_case = int(cases) != 0

    def tables(self) -> list[Captured]:
        request = self._request
        ordinary = self._ordinary()
        if request.tables is None:
            named = [name for name in ordinary if name != GLOBAL_TX]
        else:
            named = [name for name in dict.fromkeys(request.tables) if name != GLOBAL_TX]
        for name in request.keys:
            if name not in named:
                raise UnknownTable(f"{request.name} has a key declared for {name}, which is not captured")
        if request.registered:
            named = [
                name for name in named if any(kind == "BASE TABLE" for kind, _ in self._kind_of(*self._place(name)))
            ]
        if GLOBAL_TX in ordinary:
            named.append(GLOBAL_TX)
        captured = []
        for name in named:
            with request.may_refuse(name):
                captured.append(self._captured(name))
        return captured

    def _ordinary(self) -> list[str]:
        rows = run(
            self._connection,
            "SELECT table_name FROM information_schema.tables "
            "WHERE table_schema = %s AND table_type = 'BASE TABLE' ORDER BY table_name",
            self._server.database,
        )
        return [str(name) for (name,) in rows if not str(name).startswith(OWN_PREFIX)]

    def _place(self, name: str) -> Place:
        database, _, table = name.rpartition(".")
        database = database or self._server.database
        return (database.lower(), table.lower()) if self.any_case else (database, table)

    def _kind_of(self, database: str, table: str) -> list[tuple[Any, ...]]:
        """Type and engine of a table; nothing if it is not there, or cannot be seen."""
        return run(
            self._connection,
            "SELECT table_type, engine FROM information_schema.tables WHERE table_schema = %s AND table_name = %s",
            database,
            table,
        )

    def _captured(self, name: str) -> Captured:
        database, table = self._place(name)
        self._check(database, table, name)
        full = f"{self._request.name}.{name}"
        layout = self._request.layout.get(full)
        there: dict[str, Column] = {}
        for row in run(self._connection, COLUMNS, database, table):
            declared = _declared(name, row)
            try:
                there[declared.name] = column(declared, self._charsets, self._mariadb)
            except UnsupportedType:
                # One that was added since, or is of another type now: who reads it is told.
                if layout is None:
                    raise
        key = self._key(database, table, name, tuple(there.values()))
        found = Relation(full, self._request.name, tuple(there), tuple(one.type for one in there.values()), key)
        relation = laid_out(layout, found)
        columns = tuple(None if name in relation.gone else there[name] for name in relation.columns)
        return Captured((database, table), relation, columns, found)

    def _check(self, database: str, table: str, name: str) -> None:
        rows = self._kind_of(database, table)
        source = self._request.name
        if not rows:
            raise UnknownTable(
                f"{source} has no table {name}, or its user may not see it",
                f"GRANT SELECT ON {database}.{table} TO the user of the URL, or name another table",
            )
        ((kind, engine),) = rows
        if kind != "BASE TABLE":
            raise UnknownTable(
                f"{source}.{name} is a {str(kind).lower()}: the log does not have its changes as rows",
                "name the tables that it is made of",
            )
        if self._request.registered:
            # What has become of one table is told to those who read it.
            return
        reason = uncapturable(self._connection, (database, table), engine, self._server.user)
        if reason is not None:
            raise UnknownTable(f"{source}.{name} {reason[0]}", reason[1])

    def _key(self, database: str, table: str, name: str, columns: tuple[Column, ...]) -> tuple[str, ...] | None:
        declared = self._request.keys.get(name)
        if declared is None:
            return tuple(str(key) for (key,) in run(self._connection, KEY, database, table)) or None
        unknown = set(declared) - {one.name for one in columns}
        if unknown:
            raise SourceUnfit(f"the key of {self._request.name}.{name} names {sorted(unknown)}, which it does not have")
        return declared


def uncapturable(connection: Any, place: Place, engine: str | None, user: str) -> tuple[str, str] | None:
    """Why the log does not tell all changes of a table, and what fixes it."""
    database, table = place
    if (engine or "").upper() != "INNODB":
        return f"is kept by {engine}, which has no transactions", f"ALTER TABLE {database}.{table} ENGINE = InnoDB"
    try:
        acting = acting_keys(connection, database, table)
    except pymysql.Error as error:
        if error.args[0] not in DENIED:
            raise
        # What the user may not see cannot be proven safe.
        return (
            "has a definition that the user may not read, so a foreign key could change it without a trace in the log",
            f"GRANT SELECT ON {quoted(database)}.{quoted(table)} TO {quoted(user)}",
        )
    for one in acting:
        return (
            f"is changed by its foreign key {one.constraint} (ON {one.event} {one.action}), "
            "and these changes are missing from the binary log",
            f"ALTER TABLE {quoted(database)}.{quoted(table)} DROP FOREIGN KEY {quoted(one.constraint)}, and add it "
            f"without {one.action}; or capture the tables without it (--table)",
        )
    return None


def _declared(name: str, row: tuple[Any, ...]) -> Declared:
    column_name, kind, full, precision, scale, length, charset, collation, extra = row
    return Declared(
        name,
        str(column_name),
        _text(kind).lower(),
        _text(full),
        int(precision),
        int(scale),
        int(length),
        charset,
        collation,
        extra or "",
    )


def _text(value: str | bytes) -> str:
    # MySQL shows some columns of its catalog as BLOBs.
    return value.decode() if isinstance(value, bytes) else value
