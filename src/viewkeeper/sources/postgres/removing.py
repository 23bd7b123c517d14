"""What was put in place at a server, taken away again.

    slot, publication, identities        in this order: a table that is published without an identity refuses writes

What the role of the URL may not take away is told, as statements, with whoever may.
"""

import threading
from collections.abc import Mapping
from typing import Any

from psycopg import errors as pg_errors
from psycopg import sql

from viewkeeper.sources.postgres.catalog import Tables
from viewkeeper.sources.postgres.connections import Connection
from viewkeeper.sources.postgres.memo import read_memo
from viewkeeper.sources.postgres.rights import Rights, by, rights
from viewkeeper.sources.postgres.watch import published_among

_ATTEMPTS = 10


def remove(connection: Connection, tables: Tables, name: str) -> list[str]:
    """Undo `install`; the statements for what is left."""
    held = rights(connection, tables.all(), name)
    left = _remove_slot(connection, name)
    memo = read_memo(connection, name)
    if memo is None:
        return left
    by_hand = _by_hand(connection, tables, name, memo, held)
    drop = sql.SQL("DROP PUBLICATION {}").format(sql.Identifier(name))
    may_drop = True
    try:
        connection.execute(drop)
    except pg_errors.InsufficientPrivilege:
        may_drop = False
        left.append(by(drop, held.publication.owner if held.publication is not None else ""))
    for note in memo["tables"].values():
        left += _restore(connection, note, do=may_drop)
    return left + by_hand


def _by_hand(connection: Connection, tables: Tables, name: str, memo: Mapping[str, Any], held: Rights) -> list[str]:
    """For tables whose identity somebody else has set: what it was before is not known here."""
    published = published_among(connection, tables.all(), name)
    return [
        by(
            sql.SQL("ALTER TABLE ONLY {} REPLICA IDENTITY DEFAULT").format(table.quoted),
            held.doer([table], publishing=False),
            "unless it was FULL before, or has to be for others",
        )
        for table in tables.all()
        if table.oid in published and held.tables[table.oid].identity == "f" and table.shape.name not in memo["tables"]
    ]


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
    return [by(drop, "")]


def _restore(connection: Connection, note: Mapping[str, Any], *, do: bool) -> list[str]:
    """The identity as it was, unless the table is gone, changed it since, or is in another publication."""
    if note["identity"] == "FULL":
        return []
    row = connection.execute(
        "SELECT n.nspname, c.relname, pg_get_userbyid(c.relowner), pg_has_role(c.relowner, 'USAGE'),"
        " EXISTS (SELECT FROM pg_publication_tables p WHERE p.schemaname = n.nspname AND p.tablename = c.relname)"
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
    told = [by(restore, "" if row[3] else row[2])]
    if row[4] or not do:
        return told
    try:
        connection.execute(restore)
    except (pg_errors.InsufficientPrivilege, pg_errors.LockNotAvailable, pg_errors.UndefinedObject):
        return told
    return []
