"""A fetch as SQL: the join of its operands at the database, restricted to the shipped keys.

    SELECT r.a, s.b FROM ONLY r, ONLY s WHERE r.k = s.k AND r.a = ANY ($1::text[]::int8[])
    SELECT t.c FROM ONLY t WHERE EXISTS (SELECT FROM ONLY s WHERE t.k = s.l AND s.a = ANY ($1::text[]::int8[]))

Identifiers are quoted by the driver, keys are parameters. Keys restrict by a semi-join, whether they are shipped or are
rows of another fetch: a row comes as often as it is there, however many keys it matches.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from psycopg import sql

from viewkeeper.algebra.zset import Row
from viewkeeper.messages import Fetch
from viewkeeper.sources.postgres.catalog import Column, Table
from viewkeeper.sources.postgres.keys import KeyArray, key_array
from viewkeeper.sources.postgres.types import GONE, ColumnType, row_decoder

_NUMBERS = frozenset({"integer", "decimal", "float"})
_STRINGS = frozenset({"text", "char", "uuid", "other"})


@dataclass(frozen=True)
class Named:
    """A column of an operand."""

    alias: str
    table: Table
    column: Column | None
    """None if it is gone"""

    @property
    def sql(self) -> sql.Composable:
        return sql.SQL("NULL") if self.column is None else sql.Identifier(self.alias, self.column.name)

    @property
    def type(self) -> ColumnType:
        return GONE if self.column is None else self.column.type


@dataclass(frozen=True)
class Statement:
    """A fetch that can be run; `decode` makes rows of what comes."""

    text: sql.Composed
    parameters: tuple[list[str], ...]
    decode: Callable[[Sequence[str | None]], Row]


def statement(fetch: Fetch, tables: Mapping[str, Table]) -> Statement:
    """The SELECT of a fetch; `tables` by the names of their relations."""
    named = named_columns(fetch, tables)
    chosen = sql.SQL(", ").join(named[column].sql for column in fetch.columns)
    text, parameters = _selected(chosen, fetch, named, tables)
    decoders = [named[column].type.decode for column in fetch.columns]
    return Statement(text, parameters, row_decoder("the rows of", fetch.columns, decoders))


def _selected(
    chosen: sql.Composable,
    fetch: Fetch,
    named: Mapping[str, Named],
    tables: Mapping[str, Table],
    more: Sequence[sql.Composable] = (),
) -> tuple[sql.Composed, tuple[list[str], ...]]:
    """SELECT chosen FROM the operands, under the conditions of the fetch and `more`; and the parameters."""
    conditions = [*more, *(one for a, b in fetch.equal if (one := _equality(named[a], named[b])) is not None)]
    parameters: tuple[list[str], ...] = ()
    if fetch.keys is not None:
        matched, parameters = _matching([named[column] for column in fetch.matched], fetch.keys)
        conditions += matched
    elif fetch.among is not None:
        inner = named_columns(fetch.among, tables)
        pairs = [_equality(named[a], inner[b]) for a, b in zip(fetch.matched, fetch.among.columns, strict=True)]
        restricting = [pair for pair in pairs if pair is not None]
        exists, parameters = _selected(sql.SQL(""), fetch.among, inner, tables, restricting)
        conditions.append(sql.SQL("EXISTS ({})").format(exists))
    text = sql.SQL("SELECT {} FROM {}").format(
        chosen,
        sql.SQL(", ").join(
            sql.SQL("ONLY {} AS {}").format(tables[one.relation.name].quoted, sql.Identifier(one.alias))
            for one in fetch.operands
        ),
    )
    if conditions:
        text += sql.SQL(" WHERE ") + sql.SQL(" AND ").join(conditions)
    return text, parameters


def named_columns(fetch: Fetch, tables: Mapping[str, Table]) -> dict[str, Named]:
    """The columns of a fetch's operands by their names, `alias.column`."""
    return {
        full: Named(one.alias, table, column)
        for one in fetch.operands
        for table in (tables[one.relation.name],)
        for full, column in zip((f"{one.alias}.{name}" for name in table.relation.columns), table.columns, strict=True)
    }


def _equality(one: Named, other: Named) -> sql.Composable | None:
    """What both columns are equal by at the database; None if it has no such equality, and more rows may come."""
    families = {one.type.family, other.type.family}
    left, right = one.sql, other.sql
    if families <= _STRINGS:
        if len(families) > 1 or "other" in families:
            left, right = sql.SQL("{}::text").format(left), sql.SQL("{}::text").format(right)
        if one.column is None or other.column is None or one.column.collation != other.column.collation:
            left, right = (sql.SQL('{} COLLATE "C"').format(side) for side in (left, right))
    elif len(families) > 1 and not families <= _NUMBERS:
        return None
    return sql.SQL("{} = {}").format(left, right)


def _matching(columns: Sequence[Named], keys: Sequence[Row]) -> tuple[list[sql.Composable], tuple[list[str], ...]]:
    """The condition that a row has one of the keys, and its parameters."""
    arrays = [
        (named, array)
        for place, named in enumerate(columns)
        if (array := key_array(named.type, [key[place] for key in keys])) is not None
    ]
    if not arrays:
        return [], ()
    possible = [place for place in range(len(keys)) if all(array.texts[place] is not None for _, array in arrays)]
    parameters = tuple([array.texts[place] or "" for place in possible] for _, array in arrays)
    compared = [_compared(named, array) for named, array in arrays]
    shipped = [sql.SQL("%s::text[]::{}[]").format(array.type) for _, array in arrays]
    if len(arrays) == 1:
        return [sql.SQL("{} = ANY ({})").format(compared[0], shipped[0])], parameters
    return [
        sql.SQL("({}) IN (SELECT * FROM unnest({}))").format(sql.SQL(", ").join(compared), sql.SQL(", ").join(shipped))
    ], parameters


def _compared(named: Named, array: KeyArray) -> sql.Composable:
    return sql.SQL("{}::{}").format(named.sql, array.cast) if array.cast else named.sql
