"""A look at the server: the present snapshot and place, and what became of the captured tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.sources.layout import Alteration
from viewkeeper.sources.postgres.catalog import RELOAD, Table, shapes
from viewkeeper.sources.postgres.connections import Connection
from viewkeeper.sources.postgres.snapshots import Snapshot, parse_lsn

# A row filter and a list of columns came with PostgreSQL 15: a table that has one is published in part, which is not.
_PUBLISHED = """
SELECT c.oid::int8 FROM pg_class c
WHERE c.oid = ANY (%s::int8[]::oid[]) AND EXISTS (
    SELECT FROM pg_publication p LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid
    WHERE p.pubname = %s AND (p.puballtables OR (r.prrelid = c.oid
        AND to_jsonb(r) ->> 'prqual' IS NULL AND to_jsonb(r) ->> 'prattrs' IS NULL)))
"""
_PARTLY = """
SELECT r.prrelid::int8 FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
WHERE p.pubname = %s AND num_nonnulls(to_jsonb(r) ->> 'prqual', to_jsonb(r) ->> 'prattrs') > 0
"""


@dataclass(frozen=True)
class Look:
    """`altered` says for each table that is no longer what is captured, by oid, in which way."""

    snapshot: Snapshot
    place: int
    altered: Mapping[int, Sequence[Alteration]]


def look(connection: Connection, tables: Iterable[Table], publication: str) -> Look:
    """The catalog is read first, so that everything it shows was committed before `place`."""
    tables = list(tables)
    altered = alterations(connection, tables, publication)
    row = connection.execute("SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text").fetchone()
    assert row is not None, "a SELECT without FROM has one row"
    return Look(Snapshot.parse(row[0]), parse_lsn(row[1]), altered)


def nudge(connection: Connection) -> None:
    """Have the server flush its WAL, and go on a little: only what is flushed is streamed.

    The WAL of an asynchronous commit, or of a transaction that is under way, may be written and stay unflushed on an
    idle server. A commit of our own, which writes to no table, flushes everything before it.
    """
    connection.execute("SELECT pg_logical_emit_message(true, 'viewkeeper', '')")


def alterations(connection: Connection, tables: Iterable[Table], publication: str) -> dict[int, list[Alteration]]:
    """What became of tables that differ from what is captured."""
    tables = list(tables)
    now = shapes(connection, tables)
    published = published_among(connection, tables, publication)
    altered = {}
    for table in tables:
        if table.oid not in now:
            altered[table.oid] = [Alteration(f"it was dropped; put it back, then {RELOAD}")]
        elif found := table.shape.difference(now[table.oid]):
            altered[table.oid] = found
        elif table.oid not in published:
            partly = f"it was taken out of the publication {publication}, or is in it only in part; {RELOAD}"
            altered[table.oid] = [Alteration(partly)]
    return altered


def published_among(connection: Connection, tables: Iterable[Table], publication: str) -> set[int]:
    """Which tables a publication has, whole, by oid."""
    oids = [table.oid for table in tables]
    return {oid for (oid,) in connection.execute(_PUBLISHED, (oids, publication))}


def memberships(connection: Connection, publication: str) -> dict[int, int]:
    """For each table that a publication names, by oid, a number: another one once it was taken out and put back."""
    rows = connection.execute(
        "SELECT r.prrelid::int8, r.oid::int8 FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid"
        " WHERE p.pubname = %s",
        (publication,),
    )
    return dict(rows.fetchall())


def partly_published(connection: Connection, publication: str) -> set[int]:
    """The tables of which a publication has some rows or columns only, by oid."""
    return {oid for (oid,) in connection.execute(_PARTLY, (publication,))}
