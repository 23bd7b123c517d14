"""What is written down of the tables of a source, so that what happened while nobody looked is found.

    at the server        the comment of the publication: former identities, shapes, where the slot begins
    in the warehouse     shapes and memberships in the publication, as they were when the source was added

Only its owner may comment on a publication. Where that is somebody else, the notes in the warehouse are what there is.
What an identity was is then the owner's to know, and where the slot begins is told by the slot itself.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from psycopg import sql

from viewkeeper.sources.lake import durable
from viewkeeper.sources.layout import Alteration
from viewkeeper.sources.postgres.catalog import RELOAD, Shape, Tables, shapes
from viewkeeper.sources.postgres.connections import Connection
from viewkeeper.sources.postgres.snapshots import parse_lsn
from viewkeeper.sources.postgres.watch import memberships


class Notes:
    """Shape and membership in the publication of each table, in the folder that the warehouse keeps for a source."""

    def __init__(self, workspace: Path | None) -> None:
        self._path = None if workspace is None else workspace / "tables.json"

    def read(self) -> dict[str, Any]:
        told = durable.read_json(self._path) if self._path is not None else None
        return dict(told) if isinstance(told, dict) else {}

    def write(self, connection: Connection, tables: Tables, publication: str, kept: Collection[str]) -> None:
        """As they are now, but for the relations of `kept`, which stay as they were noted."""
        if self._path is None:
            return
        before, members = self.read(), memberships(connection, publication)
        now = {}
        for table in tables.captured.values():
            name, note = table.shape.name, {"shape": table.shape.written(), "member": members.get(table.oid)}
            now[name] = before.get(name, note) if table.relation.name in kept else note
        if now != before:
            durable.replace(self._path, now)


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


def write_memo(connection: Connection, publication: str, memo: Mapping[str, Any]) -> None:
    """Where the publication is somebody else's, nothing: the notes in the warehouse stand for it."""
    ours = connection.execute(
        "SELECT pg_has_role(pubowner, 'USAGE') FROM pg_publication WHERE pubname = %s", (publication,)
    ).fetchone()
    if ours is not None and ours[0]:
        comment = sql.Literal(json.dumps(memo, sort_keys=True))
        connection.execute(sql.SQL("COMMENT ON PUBLICATION {} IS {}").format(sql.Identifier(publication), comment))


def slot_begins(connection: Connection, publication: str) -> int:
    """The place after which the slot was made; what lies before it came from an earlier slot, or from none.

    0 if it is not written down. Whoever then comes with a place from an earlier slot is before `confirmed_place`.
    """
    begins = (read_memo(connection, publication) or {"begins": None})["begins"]
    return parse_lsn(begins) if begins else 0


def confirmed_place(connection: Connection, slot: str) -> int:
    """The place after which the slot goes on: everything before it was said to be stored."""
    row = connection.execute(
        "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s", (slot,)
    ).fetchone()
    return parse_lsn(row[0]) if row is not None and row[0] else 0


def stale_tables(
    connection: Connection, tables: Tables, publication: str, notes: Notes
) -> dict[int, tuple[Alteration, ...]]:
    """The tables that were altered since they were installed or added, or not published all the time, and how."""
    memo = (read_memo(connection, publication) or {"tables": {}})["tables"]
    noted, members = notes.read(), memberships(connection, publication)
    stale = {}
    for oid, table in tables.captured.items():
        name = table.shape.name
        found: list[Alteration] = []
        if name in noted and noted[name]["member"] != members.get(oid):
            found.append(Alteration(f"it was taken out of the publication {publication}; {RELOAD}"))
        for note in (memo.get(name), noted.get(name)):
            if note is not None:
                found += Shape(**note["shape"]).difference(table.shape)
        if found:
            stale[oid] = tuple(dict.fromkeys(found))
    return stale


def altered_tables(
    connection: Connection, tables: Tables, publication: str, notes: Notes
) -> dict[str, tuple[Alteration, ...]]:
    """The relations that are not as they were when they were added, or opened, and how."""
    now = shapes(connection, tables.captured.values())
    stale = stale_tables(connection, tables, publication, notes)
    found = {}
    for oid, table in tables.captured.items():
        later = table.shape.difference(now[oid]) if oid in now else [Alteration("it was dropped; put it back")]
        if several := (*stale.get(oid, ()), *later):
            found[table.relation.name] = tuple(dict.fromkeys(several))
    return found
