"""What capture needs at the server, put in place and taken away again.

    ALTER TABLE ... REPLICA IDENTITY FULL; a publication; a logical slot          the latter two have the same name

What was there before, and the shapes of the tables, are kept as the comment of the publication: nothing else is made
in the user's database. Each table is altered in a transaction of its own, so that no two locks are held at once and
nobody can be caught in a deadlock with us.
"""

import hashlib
import json
import re
import threading
from collections.abc import Mapping
from typing import Any

from psycopg import errors as pg_errors
from psycopg import sql

from viewkeeper.errors import SourceUnavailable, SourceUnfit
from viewkeeper.sources.postgres.catalog import Shape, Table, Tables
from viewkeeper.sources.postgres.connections import Connection
from viewkeeper.sources.postgres.snapshots import parse_lsn
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


# --- the memo ---


def read_memo(connection: Connection, publication: str) -> dict[str, Any] | None:
    """What `install` wrote down; None if there is no such publication."""
    row = connection.execute(
        "SELECT obj_description(oid, 'pg_publication') FROM pg_publication WHERE pubname = %s", (publication,)
    ).fetchone()
    if row is None:
        return None
    try:
        memo = json.loads(row[0] or "{}")
    except ValueError:
        memo = {}
    tables = memo.get("tables") if isinstance(memo, dict) else None
    known = isinstance(tables, dict)
    return {"viewkeeper": 1, "tables": tables if known else {}, "begins": memo.get("begins") if known else None}


def _write_memo(connection: Connection, publication: str, memo: Mapping[str, Any]) -> None:
    connection.execute(
        sql.SQL("COMMENT ON PUBLICATION {} IS {}").format(
            sql.Identifier(publication), sql.Literal(json.dumps(memo, sort_keys=True))
        )
    )


def slot_begins(connection: Connection, publication: str) -> int:
    """The place behind which the slot was made; what lies before it came from an earlier slot, or from none."""
    begins = (read_memo(connection, publication) or {"begins": None})["begins"]
    return parse_lsn(begins) if begins else 0


def confirmed_place(connection: Connection, slot: str) -> int:
    """The place behind which the slot goes on: everything before it was said to be stored."""
    row = connection.execute(
        "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s", (slot,)
    ).fetchone()
    return parse_lsn(row[0]) if row is not None and row[0] else 0


def stale_tables(connection: Connection, tables: Tables, publication: str) -> dict[int, str]:
    """The tables that were altered since they were installed, and how."""
    noted = (read_memo(connection, publication) or {"tables": {}})["tables"]
    stale = {}
    for table in tables.captured.values():
        note = noted.get(table.shape.name)
        if note is not None and (reason := Shape(**note["shape"]).difference(table.shape)) is not None:
            stale[table.oid] = reason
    return stale


# --- install ---


def install(connection: Connection, tables: Tables, name: str) -> None:
    """Identity before publication, publication before slot: nobody's write fails, and no change is missed."""
    memo = read_memo(connection, name)
    if memo is None:
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
                _write_memo(connection, name, memo)
            return
        except pg_errors.LockNotAvailable:
            if attempt == _ATTEMPTS - 1:
                raise SourceUnavailable(
                    f"{table.relation.name} is in use by a long transaction",
                    "install again when it has ended: SELECT pid, query FROM pg_stat_activity ORDER BY xact_start",
                ) from None


def _install_slot(connection: Connection, name: str, memo: dict[str, Any]) -> None:
    row = connection.execute("SELECT wal_status FROM pg_replication_slots WHERE slot_name = %s", (name,)).fetchone()
    if row is not None and row[0] == "lost":
        connection.execute("SELECT pg_drop_replication_slot(%s)", (name,))
        row = None
    if row is not None:
        return
    # Written down first: whoever comes with a position from before this has missed something.
    place = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    assert place is not None, "a SELECT without FROM has one row"
    _write_memo(connection, name, {**memo, "begins": place[0]})
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


# --- remove ---


def remove(connection: Connection, name: str) -> list[str]:
    """Slot, publication, then the identities: a table that is published without one would refuse writes."""
    left = _remove_slot(connection, name)
    memo = read_memo(connection, name)
    if memo is None:
        return left
    drop = sql.SQL("DROP PUBLICATION {}").format(sql.Identifier(name))
    try:
        connection.execute(drop)
    except pg_errors.InsufficientPrivilege:
        left.append(drop.as_string())
        return left
    for note in memo["tables"].values():
        left += _restore(connection, note)
    return left


def _remove_slot(connection: Connection, name: str) -> list[str]:
    if connection.execute("SELECT FROM pg_replication_slots WHERE slot_name = %s", (name,)).fetchone() is None:
        return []
    drop = sql.SQL("SELECT pg_drop_replication_slot({})").format(sql.Literal(name))
    for _ in range(_ATTEMPTS):
        try:
            connection.execute(drop)
            return []
        except pg_errors.ObjectInUse:
            # The session that followed it may be about to end.
            threading.Event().wait(0.2)
        except pg_errors.InsufficientPrivilege:
            break
    return [drop.as_string()]


def _restore(connection: Connection, note: Mapping[str, Any]) -> list[str]:
    """The identity as it was, unless the table is gone, changed it since, or is in another publication."""
    if note["identity"] == "FULL":
        return []
    row = connection.execute(
        "SELECT n.nspname, c.relname, EXISTS (SELECT FROM pg_publication_tables p"
        " WHERE p.schemaname = n.nspname AND p.tablename = c.relname)"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s AND c.relreplident = 'f'",
        (note["shape"]["oid"],),
    ).fetchone()
    if row is None:
        return []
    if note["identity"] == "INDEX":
        former: sql.Composable = sql.SQL("USING INDEX {}").format(sql.Identifier(note["index"]))
    else:
        former = sql.SQL("NOTHING" if note["identity"] == "NOTHING" else "DEFAULT")
    restore = sql.SQL("ALTER TABLE ONLY {} REPLICA IDENTITY {}").format(sql.Identifier(row[0], row[1]), former)
    if row[2]:
        return [restore.as_string()]
    try:
        connection.execute(restore)
    except (pg_errors.InsufficientPrivilege, pg_errors.LockNotAvailable, pg_errors.UndefinedObject):
        return [restore.as_string()]
    return []
