"""What capture needs at the server, put in place.

    ALTER TABLE ... REPLICA IDENTITY FULL; a publication; a logical slot          the latter two have the same name

What was there before, and the shapes of the tables, are kept as the comment of the publication: nothing else is made
in the user's database. Each table is altered in a transaction of its own, so that no two locks are held at once and
nobody can be caught in a deadlock with us. Whether the role may do all of it is asked before (`doctor.obstacles`).
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from psycopg import errors as pg_errors
from psycopg import sql

from viewkeeper.errors import SourceUnavailable, SourceUnfit
from viewkeeper.sources.postgres.catalog import Table, Tables
from viewkeeper.sources.postgres.connections import Connection
from viewkeeper.sources.postgres.memo import read_memo, write_memo
from viewkeeper.sources.postgres.watch import published_among

_IDENTITIES = {"d": "DEFAULT", "f": "FULL", "n": "NOTHING"}
_ATTEMPTS = 10
_LOCK_TIMEOUT = "1s"
_SLOT_TIMEOUT = "60s"


def object_name(identity: str, source: str) -> str:
    """The name of slot and publication: lower case letters, digits and _, at most 63 of them, and nobody else's."""
    plain = re.sub(r"[^a-z0-9_]", "_", f"viewkeeper_{identity}_{source}".lower())
    if plain == f"viewkeeper_{identity}_{source}" and len(plain) <= 63:
        return plain
    return f"{plain[:54]}_{hashlib.sha256(f'{identity} {source}'.encode()).hexdigest()[:8]}"


def install(connection: Connection, tables: Tables, name: str) -> None:
    """Identity before publication, publication before slot: nobody's write fails, and no change is missed."""
    memo = read_memo(connection, name)
    if memo is None:
        # A slot that is older than the publication comes upon changes that it finds none for, and goes no further.
        _drop_slot(connection, name)
        connection.execute(sql.SQL("CREATE PUBLICATION {}").format(sql.Identifier(name)))
        memo = {"viewkeeper": 1, "tables": {}, "begins": None}
    published = published_among(connection, tables.all(), name)
    for table in tables.all():
        note = memo["tables"].get(table.shape.name, {})
        if note.get("shape", {}).get("oid") != table.oid:
            note = _former_identity(connection, table)
        written = table.shape.written()
        if table.oid in published and _identity(connection, table) == "f" and note.get("shape") == written:
            continue
        memo["tables"][table.shape.name] = {**note, "shape": written}
        _install_table(connection, table, name, memo, add=table.oid not in published)
    _install_slot(connection, name, memo)


def _identity(connection: Connection, table: Table) -> str:
    row = connection.execute("SELECT relreplident::text FROM pg_class WHERE oid = %s", (table.oid,)).fetchone()
    if row is None:
        raise SourceUnfit(f"{table.relation.name} was dropped meanwhile", "open the source again")
    return str(row[0])


def _former_identity(connection: Connection, table: Table) -> dict[str, str]:
    """The present replica identity, so that it can be restored."""
    identity = _identity(connection, table)
    if identity != "i":
        return {"identity": _IDENTITIES[identity]}
    row = connection.execute(
        "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " WHERE i.indrelid = %s AND i.indisreplident",
        (table.oid,),
    ).fetchone()
    return {"identity": "DEFAULT"} if row is None else {"identity": "INDEX", "index": row[0]}


def _install_table(connection: Connection, table: Table, name: str, memo: Mapping[str, Any], *, add: bool) -> None:
    for attempt in range(_ATTEMPTS):
        try:
            with connection.transaction():
                # Short, since writers queue up behind a lock that is waited for.
                connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(_LOCK_TIMEOUT)))
                if _identity(connection, table) != "f":
                    connection.execute(sql.SQL("ALTER TABLE ONLY {} REPLICA IDENTITY FULL").format(table.quoted))
                if add:
                    # Waits for those who have written to it: a transaction that began before is streamed incompletely.
                    connection.execute(sql.SQL("LOCK TABLE ONLY {} IN SHARE ROW EXCLUSIVE MODE").format(table.quoted))
                    connection.execute(
                        sql.SQL("ALTER PUBLICATION {} ADD TABLE ONLY {}").format(sql.Identifier(name), table.quoted)
                    )
                write_memo(connection, name, memo)
            return
        except pg_errors.LockNotAvailable:
            if attempt == _ATTEMPTS - 1:
                raise SourceUnavailable(
                    f"{table.relation.name} is in use by a long transaction",
                    "install again when it has ended: SELECT pid, query FROM pg_stat_activity ORDER BY xact_start",
                ) from None


def _drop_slot(connection: Connection, name: str) -> None:
    connection.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", (name,)
    )


def _install_slot(connection: Connection, name: str, memo: dict[str, Any]) -> None:
    row = connection.execute("SELECT wal_status FROM pg_replication_slots WHERE slot_name = %s", (name,)).fetchone()
    if row is not None and row[0] != "lost":
        return
    _drop_slot(connection, name)
    # Written down first: whoever comes with a position from before this has missed something.
    place = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    assert place is not None, "a SELECT without FROM has one row"
    write_memo(connection, name, {**memo, "begins": place[0]})
    # It waits for all transactions that are running.
    connection.execute(sql.SQL("SET statement_timeout = {}; SET lock_timeout = 0").format(sql.Literal(_SLOT_TIMEOUT)))
    try:
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (name,))
    except pg_errors.QueryCanceled:
        raise SourceUnavailable(
            f"the slot {name} could not be made within {_SLOT_TIMEOUT}: a transaction has been running for longer",
            "install again when it has ended: SELECT pid, query FROM pg_stat_activity ORDER BY xact_start",
        ) from None
    finally:
        connection.execute("RESET statement_timeout; RESET lock_timeout")
