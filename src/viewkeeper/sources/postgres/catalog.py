"""The tables that are captured, as the server's catalog describes them, and whether they are still the same.

    Shape     what a table's rows depend on besides the changes of the stream

ALTER TABLE sends nothing through the stream, and its next change may look as before: `ALTER a TYPE int USING a + 1`
rewrites every row and announces the same columns. So a shape also holds what only the catalog tells: the numbers of
the columns, the versions of their entries, the file of the table, the labels of its enums.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from psycopg import sql

from viewkeeper.errors import UnknownTable
from viewkeeper.sources.base import GLOBAL_TX, Request
from viewkeeper.sources.postgres.connections import Connection
from viewkeeper.sources.postgres.types import ColumnType, Declared, column_type
from viewkeeper.sql.relation import Relation

_DESCRIBE = """
SELECT c.oid::int8, n.nspname, c.relname, c.relkind::text, c.relpersistence::text, c.relreplident::text,
       c.relfilenode::int8, EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid),
       row_security_active(c.oid),
       ARRAY(SELECT a.attname::text FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)
             JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
             WHERE i.indrelid = c.oid AND i.indisprimary ORDER BY k.place)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
"""

_COLUMNS = """
SELECT a.attrelid::int8, a.attnum::int4, a.attname, a.atttypid::int8, a.atttypmod, a.attcollation::int8,
       a.attgenerated::text, a.xmin::text, format_type(a.atttypid, a.atttypmod),
       b.typname, b.typnamespace = 'pg_catalog'::regnamespace, b.typtype::text, b.typmod, e.typname, e.typtype::text,
       ARRAY(SELECT enumlabel::text FROM pg_enum WHERE enumtypid IN (b.oid, e.oid) ORDER BY oid)
FROM pg_attribute a
CROSS JOIN LATERAL (
    WITH RECURSIVE chain AS (
        SELECT t.*, a.atttypmod AS typmod FROM pg_type t WHERE t.oid = a.atttypid
        UNION ALL
        SELECT t.*, chain.typtypmod FROM chain JOIN pg_type t ON t.oid = chain.typbasetype WHERE chain.typtype = 'd'
    ) SELECT * FROM chain WHERE typtype <> 'd'
) b
LEFT JOIN pg_type e ON e.oid = b.typelem AND b.typcategory = 'A'
WHERE a.attrelid = ANY (%s::int8[]::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""

_KINDS = {"p": "partitioned", "f": "a foreign table", "v": "a view", "m": "a materialized view", "S": "a sequence"}


@dataclass(frozen=True)
class Column:
    """A captured column; `labels` of an enum, in the order in which they were made."""

    name: str
    number: int
    type_oid: int
    typmod: int
    collation: int
    version: str
    labels: tuple[str, ...]
    type: ColumnType


@dataclass(frozen=True)
class Shape:
    """What the rows of a table depend on; it can be written down and compared with a later one."""

    oid: int
    name: str
    file: int
    columns: Mapping[str, Sequence[Any]]
    """number, type, typmod, version, labels by name"""

    def written(self) -> dict[str, Any]:
        return asdict(self)

    def difference(self, later: "Shape") -> str | None:
        """What was altered so that rows may differ; None for what leaves all captured columns as they were."""
        if (self.oid, self.name) != (later.oid, later.name):
            return f"{self.name} was renamed, or dropped and made again"
        for name, (number, type_oid, typmod, version, labels) in self.columns.items():
            now = later.columns.get(name)
            if now is None:
                return f"column {name} was dropped or renamed"
            if (number, type_oid, typmod) != tuple(now[:3]):
                return f"column {name} has another type, or was dropped and made again"
            if list(labels) != list(now[4])[: len(labels)]:
                return f"labels of the type of column {name} were renamed"
            # VACUUM FULL makes a new file, SET NOT NULL a new version; ALTER TYPE makes both.
            if self.file != later.file and version != now[3]:
                return f"column {name} was altered and the table rewritten"
        return None


@dataclass(frozen=True)
class Table:
    """A table at the server. `relation` and `columns` are what is captured of it."""

    schema: str
    name: str
    identity: str
    """pg_class.relreplident"""
    row_security: bool
    generated: tuple[str, ...]
    relation: Relation
    columns: tuple[Column, ...]
    shape: Shape

    @property
    def oid(self) -> int:
        return self.shape.oid

    @property
    def quoted(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)

    def column(self, name: str) -> Column:
        return self.columns[self.relation.columns.index(name)]


@dataclass(frozen=True)
class Tables:
    """The tables of a source by oid; `mark` is global_tx, where there is one."""

    captured: Mapping[int, Table]
    mark: Table | None

    def all(self) -> list[Table]:
        return [*self.captured.values(), *([self.mark] if self.mark else [])]

    def of(self, relation: str) -> Table:
        return next(table for table in self.captured.values() if table.relation.name == relation)


def registered(connection: Connection, request: Request) -> Tables:
    """The tables that a request names; UnknownTable or UnsupportedType for one that cannot be captured."""
    found = {
        (row[1], row[2]): row
        for row in connection.execute(
            _DESCRIBE + "WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND n.nspname NOT LIKE 'pg\\_%%'"
            " AND n.nspname <> 'information_schema'",
            (),
        )
    }
    schema = connection.execute("SELECT current_schema()").fetchone()[0]  # type: ignore[index]
    if request.tables is None:
        chosen = {
            name: (schema, name)
            for (where, name), row in sorted(found.items())
            if where == schema and _refusal(row) is None and name != GLOBAL_TX
        }
    else:
        places = {written: _place(request, written, schema, found) for written in request.tables}
        chosen = {written: place for written, place in places.items() if place is not None}
    rows = {written: found[place] for written, place in chosen.items()}
    for written, row in rows.items():
        if (reason := _refusal(row)) is not None:
            raise UnknownTable(f"{request.name}.{written} cannot be captured: {reason[0]}", reason[1])
    mark = found.get((schema, GLOBAL_TX))
    if mark is not None and _refusal(mark) is not None:
        mark = None
    columns = _columns(connection, [row[0] for row in [*rows.values(), *([mark] if mark else [])]])
    captured = {
        row[0]: _table(request, written, row, columns.get(row[0], []))
        for written, row in rows.items()
        if written != GLOBAL_TX
    }
    return Tables(captured, _mark(request, mark, columns) if mark else None)


def _place(request: Request, written: str, schema: str, found: Mapping[tuple[str, str], Any]) -> tuple[str, str] | None:
    """Schema and name of a table as a user wrote it: a bare name is in the default schema. None if it is gone."""
    before, _, behind = written.partition(".")
    for place in ((schema, written), (before, behind)):
        if place in found:
            return place
    if request.registered:
        return None
    near = sorted(f"{where}.{name}" for where, name in found if name.lower() == (behind or before).lower())
    raise UnknownTable(
        f"{request.name} has no table {written}" + (f" in its default schema, {schema}" if not behind else ""),
        f"did you mean {', '.join(near)}?"
        if near
        else "tables are written as in pg_class, with their upper and lower case",
    )


def _refusal(row: Sequence[Any]) -> tuple[str, str] | None:
    """Why a table cannot be captured, and what to do."""
    kind, persistence, has_children = row[3], row[4], row[7]
    if kind == "p":
        return "it is partitioned, and ATTACH and DETACH change its rows unnoticed", "name its partitions as tables"
    if kind != "r":
        return f"it is {_KINDS.get(kind, 'no table')}", "name the tables below it"
    if persistence == "u":
        return "it is unlogged, so its changes are not in the WAL", f'ALTER TABLE "{row[1]}"."{row[2]}" SET LOGGED'
    if persistence == "t":
        return "it is temporary", "name a permanent table"
    if has_children:
        return "other tables inherit from it, and its rows include theirs", "name the tables that inherit from it"
    return None


def _columns(connection: Connection, oids: Iterable[int]) -> dict[int, list[tuple[Any, ...]]]:
    columns: dict[int, list[tuple[Any, ...]]] = {}
    for row in connection.execute(_COLUMNS, (list(oids),)):
        columns.setdefault(row[0], []).append(row[1:])
    return columns


def _table(request: Request, written: str, row: Sequence[Any], columns: Sequence[Sequence[Any]]) -> Table:
    _, schema, name, _, _, identity, _, _, row_security, primary = row
    full = f"{request.name}.{written}"
    kept = tuple(
        Column(c[1], c[0], c[2], c[3], c[4], c[6], tuple(c[14]), column_type(Declared(*c[7:14]), full, c[1]))
        for c in columns
        if not c[5]
    )
    names = tuple(column.name for column in kept)
    key = request.keys.get(written) or tuple(primary) or None
    if unknown := set(key or ()) - set(names):
        raise UnknownTable(
            f"{full}: the key has {', '.join(sorted(unknown))}, which is no captured column",
            f"its columns are {', '.join(names)}",
        )
    relation = Relation(full, request.name, names, tuple(column.type.spark for column in kept), key)
    generated = tuple(c[1] for c in columns if c[5])
    return Table(schema, name, identity, row_security, generated, relation, kept, _shape(row, columns, names))


def _shape(row: Sequence[Any], columns: Sequence[Sequence[Any]], names: Sequence[str]) -> Shape:
    of = {c[1]: [c[0], c[2], c[3], c[6], list(c[14])] for c in columns if c[1] in names}
    return Shape(row[0], f"{row[1]}.{row[2]}", row[6], of)


def _mark(request: Request, row: Sequence[Any], columns: Mapping[int, list[tuple[Any, ...]]]) -> Table | None:
    """global_tx with its three columns in order; a table of that name without them is not one."""
    by_name = {c[1]: c for c in columns.get(row[0], [])}
    wanted = ("gid", "source", "participants")
    if not by_name.keys() >= set(wanted):
        return None
    return _table(request, GLOBAL_TX, row, [by_name[name] for name in wanted])


def shapes(connection: Connection, tables: Iterable[Table]) -> dict[int, Shape]:
    """The present shapes of tables by oid; one that was dropped is missing."""
    of = {table.oid: table for table in tables}
    rows = connection.execute(_DESCRIBE + "WHERE c.oid = ANY (%s::int8[]::oid[])", (list(of),)).fetchall()
    columns = _columns(connection, of)
    return {row[0]: _shape(row, columns.get(row[0], []), of[row[0]].relation.columns) for row in rows}
