"""The tables of a source that were asked for, as relations."""

import sqlite3
from collections.abc import Mapping
from dataclasses import replace

from viewkeeper.errors import SourceError, UnknownTable, did_you_mean
from viewkeeper.sources.base import GLOBAL_TX, Request
from viewkeeper.sources.layout import laid_out
from viewkeeper.sources.sqlite.connections import quote
from viewkeeper.sources.sqlite.installation import Captured
from viewkeeper.sources.sqlite.tables import Table, ordinary_tables, read_table
from viewkeeper.sources.sqlite.types import ABSENT, StoredType, stored_type
from viewkeeper.sql.relation import Relation


def known_types(columns: tuple[tuple[str, str], ...]) -> tuple[StoredType, ...]:
    """The types of columns that were let in."""
    types = (stored_type(declared) for _, declared in columns)
    return tuple(type for type in types if isinstance(type, StoredType))


class Catalog:
    """What was requested. A table that is captured has the columns with which it is, even if others were added."""

    def __init__(self, request: Request, connection: sqlite3.Connection, captured: Mapping[str, Captured]) -> None:
        self._request = request
        self.tables: list[Table] = []
        """as they are now, those that are there and can be captured"""
        self.relations: dict[str, Relation] = {}
        self.found: dict[str, Relation] = {}
        """the same with all columns that they have now"""
        self.table_of: dict[str, str] = {}
        """by the name of a relation; global_tx is among them"""
        self.types: dict[str, tuple[StoredType, ...]] = {}
        self.absent: dict[str, frozenset[str]] = {}
        """the columns of each relation that its table no longer has"""
        for name in self._wanted(connection, captured):
            with request.may_refuse(name):
                table = self._table(connection, name, captured.get(name))
                if table is not None:
                    self.tables.append(table)
                self._add(name, table, captured.get(name))

    def _wanted(self, connection: sqlite3.Connection, captured: Mapping[str, Captured]) -> list[str]:
        """The names of the tables, as the database spells them."""
        there = ordinary_tables(connection)
        spelled = {name.lower(): name for name in [*captured, *there]}
        if self._request.tables is None:
            return sorted(spelled.values())
        wanted = []
        for name in self._request.tables:
            if name.lower() not in spelled:
                if self._request.registered:
                    continue
                raise UnknownTable(
                    f"{self._request.name} has no table {name}",
                    f"{did_you_mean(name, there)}it has: {', '.join(there) or 'no tables at all'}",
                )
            wanted.append(spelled[name.lower()])
        if GLOBAL_TX in spelled:
            wanted.append(spelled[GLOBAL_TX])
        return list(dict.fromkeys(wanted))

    def _table(self, connection: sqlite3.Connection, name: str, captured: Captured | None) -> Table | None:
        """None for one that was captured and no longer can be: the stream and the doctor say so."""
        try:
            table = read_table(connection, name, None if captured is None else captured.names)
            connection.execute(f"SELECT * FROM main.{quote(name)} LIMIT 0").close()
        except (SourceError, sqlite3.Error):
            if captured is None:
                raise
            return None
        return table

    def _add(self, name: str, table: Table | None, captured: Captured | None) -> None:
        if captured is not None:
            columns = captured.columns
        else:
            assert table is not None, f"{name} is neither there nor captured"
            columns = tuple((column.name, column.declared) for column in table.columns)
        full = f"{self._request.name}.{name}"
        self.table_of[full] = name
        known = dict(zip((column for column, _ in columns), known_types(columns), strict=True))
        if captured is not None and table is not None:
            there = {column.name for column in table.columns}
            known = {column: type for column, type in known.items() if column in there}
        layout = self._request.layout.get(full)
        names = tuple(known) if layout is None else layout.columns
        self.types[full] = tuple(known.get(column, ABSENT) for column in names)
        self.absent[full] = frozenset(names) - known.keys()
        if name.lower() != GLOBAL_TX:
            key = self._key(name, tuple(known), table)
            types = tuple(type.spark for type in known.values())
            captured_now = Relation(full, self._request.name, tuple(known), types, key)
            self.relations[full] = laid_out(layout, captured_now)
            self.found[full] = self._found(captured_now, table)

    @staticmethod
    def _found(relation: Relation, table: Table | None) -> Relation:
        """With the columns that were added since it is captured."""
        more = [column for column in (table.columns if table else ()) if column.name not in relation.columns]
        columns = (*relation.columns, *(column.name for column in more))
        return replace(relation, columns=columns, types=(*relation.types, *(column.type.spark for column in more)))

    def _key(self, name: str, columns: tuple[str, ...], table: Table | None) -> tuple[str, ...] | None:
        declared = next((key for one, key in self._request.keys.items() if one.lower() == name.lower()), None)
        if declared is not None:
            spelled = {column.lower(): column for column in columns}
            if missing := [column for column in declared if column.lower() not in spelled]:
                raise UnknownTable(
                    f"the key that was given for table {name} has columns that it has not: {', '.join(missing)}",
                    f"its columns are {', '.join(columns)}",
                )
            return tuple(spelled[column.lower()] for column in declared)
        if table is None or table.primary is None:
            return None
        return tuple(column for column, _ in table.primary.columns)
