"""The tables of a database as far as capture must know them: columns, what names a row, and what is unique.

What is unique matters because INSERT OR REPLACE deletes the rows that are in its way, and by default no trigger hears
of it.
"""

import re
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass

from viewkeeper.errors import UnknownTable, UnsupportedType
from viewkeeper.sources.sqlite.types import StoredType, stored_type

MOST_COLUMNS = 1900
_COLLATIONS = ("BINARY", "NOCASE", "RTRIM")
_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/|\w+|.""", re.S)


@dataclass(frozen=True)
class Column:
    """`fallback` is the default in SQL that OR REPLACE puts in place of a NULL that may not be."""

    name: str
    declared: str
    fallback: str | None = None

    @property
    def type(self) -> StoredType:
        found = stored_type(self.declared)
        assert isinstance(found, StoredType), f"{self.name} was let in with type {self.declared!r}"
        return found


@dataclass(frozen=True)
class UniqueKey:
    """Columns that no two rows (of those that satisfy `where`) share, each with its collation."""

    columns: tuple[tuple[str, str], ...]
    where: str | None = None


@dataclass(frozen=True)
class Table:
    """`rowid` is a name for the rowid that no column hides; None: the table has none, and `primary` names a row."""

    name: str
    columns: tuple[Column, ...]
    rowid: str | None
    primary: UniqueKey | None
    unique: tuple[UniqueKey, ...]


def ordinary_tables(connection: sqlite3.Connection) -> list[str]:
    """The tables of users: no views, no virtual tables and what belongs to them, none of SQLite's and none of ours."""
    listed = connection.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
    ).fetchall()
    return sorted(name for (name,) in listed if not name.lower().startswith(("sqlite_", "_vk_")))


def read_table(connection: sqlite3.Connection, name: str, captured: Collection[str] | None = None) -> Table:
    """A table as it is now; UnknownTable or UnsupportedType if it cannot be captured. Of one that is captured, with
    these columns, others that cannot be are left out."""
    found = connection.execute(
        "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name = ?", (name,)
    ).fetchone()
    if found is None:
        raise UnknownTable(f"there is no table {name}", "a view or a virtual table cannot be captured: name its tables")
    columns, primary = _columns(connection, name, captured)
    indexed, unique = _unique_keys(connection, name)
    if found[0]:
        return Table(name, columns, None, indexed, unique)
    taken = {column.name.lower() for column in columns}
    rowid = next((alias for alias in ("rowid", "_rowid_", "oid") if alias not in taken), None)
    if rowid is None:
        raise UnknownTable(f"columns of table {name} hide its rowid under all three names", "rename one of them")
    key = UniqueKey(tuple((column, "BINARY") for column in primary)) if primary else None
    return Table(name, columns, rowid, key, unique)


def _columns(
    connection: sqlite3.Connection, table: str, captured: Collection[str] | None
) -> tuple[tuple[Column, ...], list[str]]:
    columns, primary = [], []
    listed = connection.execute(
        'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid',
        (table,),
    )
    for name, declared, not_null, default, place in listed.fetchall():
        way_out = stored_type(declared)
        if not isinstance(way_out, StoredType):
            if captured is not None and name not in captured:
                continue
            raise UnsupportedType(
                f"column {name} of table {table} has the type {declared or '(none)'}, whose values cannot be kept "
                "exactly",
                f"{way_out}; or leave the table out: name the others in 'tables'",
            )
        columns.append(Column(name, declared, _fallback(default) if not_null else None))
        if place:
            primary.append((place, name))
    if len(columns) > MOST_COLUMNS:
        raise UnknownTable(
            f"table {table} has {len(columns)} columns, and at most {MOST_COLUMNS} can be captured", "leave it out"
        )
    return tuple(columns), [name for _, name in sorted(primary)]


def _fallback(default: str | None) -> str | None:
    if default is not None and default.startswith('"'):  # SQLite takes it for a string if it is no column
        return "'" + default[1:-1].replace('""', '"').replace("'", "''") + "'"
    return default


def _unique_keys(connection: sqlite3.Connection, table: str) -> tuple[UniqueKey | None, tuple[UniqueKey, ...]]:
    """The primary key if it is an index, and every unique index, that one included."""
    primary, unique = None, []
    listed = connection.execute(
        'SELECT name, origin, partial FROM pragma_index_list(?) WHERE "unique" ORDER BY name', (table,)
    )
    for index, origin, partial in listed.fetchall():
        parts = connection.execute(
            "SELECT name, coll FROM pragma_index_xinfo(?) WHERE key ORDER BY seqno", (index,)
        ).fetchall()
        if any(name is None for name, _ in parts):
            raise UnknownTable(
                f"table {table} has a unique index over an expression ({index}): what INSERT OR REPLACE deletes for it "
                "cannot be captured",
                "make it an index that is not unique, or over a generated column; or leave the table out",
            )
        if strange := {collation for _, collation in parts if collation.upper() not in _COLLATIONS}:
            raise UnknownTable(
                f"unique index {index} of table {table} has a collation of its own: {', '.join(sorted(strange))}",
                f"use {', '.join(_COLLATIONS)}; or leave the table out",
            )
        where = None
        if partial:
            (sql,) = connection.execute("SELECT sql FROM main.sqlite_master WHERE name = ?", (index,)).fetchone()
            where = condition_of_index(sql)
        key = UniqueKey(tuple((name, collation.upper()) for name, collation in parts), where)
        unique.append(key)
        if origin == "pk":
            primary = key
    return primary, tuple(unique)


def condition_of_index(sql: str) -> str:
    """What stands after WHERE in CREATE INDEX: the first WHERE behind the closing parenthesis of its columns."""
    depth, behind = 0, False
    for token in _TOKEN.finditer(sql):
        if token[0] == "(":
            depth += 1
        elif token[0] == ")":
            depth -= 1
            behind = behind or depth == 0
        elif behind and depth == 0 and token[0].upper() == "WHERE":
            # A comment to the end of the line must not hide what is written after it.
            return sql[token.end() :].strip() + "\n"
    raise UnknownTable(f"this index has no condition that can be found: {sql}")
