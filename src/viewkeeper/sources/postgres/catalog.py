"""The tables that are captured, as the server's catalog describes them, and whether they are still the same.

    Shape     what a table's rows depend on besides the changes of the stream

ALTER TABLE sends nothing through the stream, and its next change may look as before: `ALTER a TYPE int USING a + 1`
rewrites every row and announces the same columns. So a shape also holds what only the catalog tells: the numbers of
the columns, the versions of their entries, the file of the table, the labels of its enums.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from psycopg import sql

from viewkeeper.errors import UnknownTable, UnsupportedType
from viewkeeper.sources.base import GLOBAL_TX, Request
from viewkeeper.sources.layout import VIEW, Alteration, Fits, fits, laid_out, widens
from viewkeeper.sources.postgres.connections import Connection
from viewkeeper.sources.postgres.types import ColumnType, Declared, column_type, numeric
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

RELOAD = f"run 'viewkeeper reload {VIEW}'"
_INTEGERS = (21, 23, 20)
_TEXTS = (1043, 25)
_NUMERIC = 1700
"""pg_type.oid of int2, int4, int8; of varchar and text; of numeric: these never change"""

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
    fits: Fits | None = None
    """whether a value is one of the registered type, where the column is a wider one now"""


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

    def difference(self, later: "Shape") -> list[Alteration]:
        """What was altered so that rows may differ: of the table, or of captured columns; nothing for what leaves them
        as they were, or makes them wider without rewriting the table."""
        if (self.oid, self.name) != (later.oid, later.name):
            return [Alteration(f"{self.name} was renamed, or dropped and made again; {RELOAD}")]
        # VACUUM FULL makes a new file, SET NOT NULL a new version; ALTER TYPE makes both.
        rewritten = self.file != later.file
        found = []
        for name, (number, type_oid, typmod, version, labels) in self.columns.items():
            now = later.columns.get(name)
            if now is None:
                found.append(gone(name))
                continue
            widened = same_or_wider((type_oid, typmod), (now[1], now[2]))
            if number != now[0] or not widened:
                found.append(retyped(name))
            elif list(labels) != list(now[4])[: len(labels)]:
                found.append(_of(name, "has a type whose labels were renamed"))
            elif rewritten and version != now[3]:
                wider = (type_oid, typmod) != (now[1], now[2])
                found.append(_of(name, "was altered and the table rewritten", recomputable=wider))
        return found


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
    columns: tuple[Column | None, ...]
    """those of the relation; None for one that is gone"""
    shape: Shape
    found: Relation
    """the same with all columns that it has now"""

    @property
    def oid(self) -> int:
        return self.shape.oid

    @property
    def quoted(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)

    def column(self, name: str) -> Column | None:
        return self.columns[self.relation.columns.index(name)]


@dataclass(frozen=True)
class Tables:
    """The tables of a source by oid; `mark` is global_tx, where there is one."""

    captured: Mapping[int, Table]
    mark: Table | None

    def all(self) -> list[Table]:
        return [*self.captured.values(), *([self.mark] if self.mark else [])]

    def alone(self, *tables: Table) -> tuple[str, ...]:
        """The relations of these; global_tx is none, all of them need it."""
        return tuple(table.relation.name for table in tables if table is not self.mark)

    def of(self, relation: str) -> Table:
        return next(table for table in self.captured.values() if table.relation.name == relation)


def gone(column: str) -> Alteration:
    """A column that a table no longer has under this name."""
    return _of(column, "was dropped or renamed: put it back")


def retyped(column: str) -> Alteration:
    """A column whose type does not hold what it held."""
    return _of(column, "has another type, or was dropped and made again")


def _of(column: str, what: str, *, recomputable: bool = False) -> Alteration:
    return Alteration(f"the column {column} {what}; {RELOAD}", frozenset({column}), recomputable)


def same_or_wider(before: tuple[int, int], now: tuple[int, int]) -> bool:
    """Whether a type, with its modifier, holds every value of another one as it is."""
    if before == now:
        return True
    (type, typmod), (later, modifier) = before, now
    if type in _INTEGERS and later in _INTEGERS:
        return _INTEGERS.index(later) >= _INTEGERS.index(type)
    if type in _TEXTS and later in _TEXTS:
        return modifier == -1 or (type == later and typmod != -1 and modifier >= typmod)
    if type == later == _NUMERIC and typmod >= 4 and modifier >= 4:
        return widens(numeric(typmod).spark, numeric(modifier).spark)
    return False


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
    if request.registered:
        # Something else is in its place: to those who read it, it is gone.
        rows = {written: row for written, row in rows.items() if _refusal(row) is None}
    for written, row in rows.items():
        if (reason := _refusal(row)) is not None:
            raise UnknownTable(f"{request.name}.{written} cannot be captured: {reason[0]}", reason[1])
    mark = found.get((schema, GLOBAL_TX))
    if mark is not None and _refusal(mark) is not None:
        mark = None
    columns = _columns(connection, [row[0] for row in [*rows.values(), *([mark] if mark else [])]])
    captured = {}
    for written, row in rows.items():
        if written != GLOBAL_TX:
            with request.may_refuse(written):
                captured[row[0]] = _table(request, written, row, columns.get(row[0], []))
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
    layout = request.layout.get(full)
    there: dict[str, Column] = {}
    for c in columns:
        try:
            if not c[5]:
                type = column_type(Declared(*c[7:14]), full, c[1])
                there[c[1]] = Column(c[1], c[0], c[2], c[3], c[4], c[6], tuple(c[14]), type)
        except UnsupportedType:
            # One that was added since, or is of another type now: who reads it is told.
            if layout is None:
                raise
    key = request.keys.get(written) or tuple(primary) or None
    if unknown := set(key or ()) - set(there):
        raise UnknownTable(
            f"{full}: the key has {', '.join(sorted(unknown))}, which is no captured column",
            f"its columns are {', '.join(there)}",
        )
    found = Relation(full, request.name, tuple(there), tuple(column.type.spark for column in there.values()), key)
    relation = laid_out(layout, found)
    kept = tuple(
        replace(there[column], fits=fits(type, there[column].type.spark)) if column not in relation.gone else None
        for column, type in zip(relation.columns, relation.types, strict=True)
    )
    generated = tuple(c[1] for c in columns if c[5])
    shape = _shape(row, columns, relation.there)
    return Table(schema, name, identity, row_security, generated, relation, kept, shape, found)


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
    return {row[0]: _shape(row, columns.get(row[0], []), of[row[0]].relation.there) for row in rows}
