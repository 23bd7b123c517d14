"""PostgreSQL as a source.

    postgresql://user:password@host:port/database        postgresql:///database?host=/folder/of/the/socket

The stream comes from a logical slot, a reading from one snapshot. Bare table names are in the default schema of the
role (`search_path`). A table that is named later is captured from its installation on: `install` returns when no
transaction is under way that began before, so that a reading afterwards misses nothing.
"""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from viewkeeper.errors import PositionLost, SourceUnfit
from viewkeeper.messages import Fetch, Position
from viewkeeper.sources.base import PATIENCE, Batch, Finding, Reading, Request, Source, refuse_obstacles, statements
from viewkeeper.sources.layout import Alteration
from viewkeeper.sources.postgres.catalog import RELOAD, registered
from viewkeeper.sources.postgres.connections import Connection, Connections
from viewkeeper.sources.postgres.doctor import findings, missing, obstacles, shortcut
from viewkeeper.sources.postgres.installing import install, object_name
from viewkeeper.sources.postgres.memo import Notes, altered_tables, slot_begins, stale_tables
from viewkeeper.sources.postgres.readings import Readings
from viewkeeper.sources.postgres.removing import remove
from viewkeeper.sources.postgres.snapshots import Retained, lsn_of, parse_lsn, position_of
from viewkeeper.sources.postgres.stream import Stream, Wishes
from viewkeeper.sources.postgres.watch import nudge
from viewkeeper.sql.relation import Relation

_NUDGE_AFTER = 0.05
"""Seconds after which WAL that nobody has flushed is flushed by us."""


class PostgresSource(Source):
    """One database of a PostgreSQL server, version 13 or later."""

    def __init__(self, request: Request, workspace: Path | None = None) -> None:
        super().__init__()
        self.name = request.name
        self._notes = Notes(workspace)
        self._request = request
        self._slot = object_name(request.identity, request.name)
        self._connections = Connections(request.name, request.url)
        self._retained = Retained()
        self._wishes = Wishes()
        try:
            with self._connections.plain() as connection:
                self._register(connection)
        except BaseException:
            self.close()
            raise

    def _register(self, connection: Connection) -> None:
        """Take the tables as they are now."""
        self._tables = registered(connection, self._request)
        self.relations = {table.relation.name: table.relation for table in self._tables.captured.values()}
        self.global_transactions = self._tables.mark is not None
        self._readings = Readings(
            self.name,
            self._connections,
            self._tables,
            self._slot,
            self._retained,
            reach=lambda lsn: self.wait_for_stream(position_of(lsn)),
            passed=lambda: lsn_of(self._passed),
        )

    @property
    def found(self) -> Mapping[str, Relation]:
        return {name: self._tables.of(name).found for name in self.relations}

    # --- what is at the server ---

    def doctor(self) -> list[Finding]:
        with self._connections.plain() as connection:
            return findings(connection, self._tables, self._slot)

    def obstacles(self) -> list[Finding]:
        with self._connections.plain() as connection:
            return obstacles(connection, self._tables, self._slot)

    def install(self) -> None:
        with self._connections.plain() as connection:
            self._register(connection)
            self._refuse_obstacles(connection)
            install(connection, self._tables, self._slot)

    def _refuse_obstacles(self, connection: Connection) -> None:
        found = obstacles(connection, self._tables, self._slot)
        hint = f"run these first, then install it again:{statements(found)}"
        if simpler := shortcut(connection, self._tables, self._slot):
            hint += f"\nor these, and installing does all of it:{simpler}"
        refuse_obstacles(self.name, found, hint)

    def note(self, kept: Collection[str] = ()) -> None:
        with self._connections.plain() as connection:
            self._notes.write(connection, self._tables, self._slot, kept)

    def altered(self) -> Mapping[str, Sequence[Alteration]]:
        with self._connections.plain() as connection:
            return altered_tables(connection, self._tables, self._slot, self._notes)

    def remove(self) -> list[str]:
        with self._connections.plain() as connection:
            return remove(connection, self._tables, self._slot)

    def retained(self) -> int | None:
        with self._connections.plain() as connection:
            row = connection.execute(
                "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), restart_lsn)::int8 FROM pg_replication_slots"
                " WHERE slot_name = %s",
                (self._slot,),
            ).fetchone()
        return None if row is None or row[0] is None else int(row[0])

    def estimated_rows(self, relation: str) -> int | None:
        """What the last ANALYZE or VACUUM counted; nothing before the first."""
        table = next(one for one in self._tables.captured.values() if one.relation.name == relation)
        with self._connections.plain() as connection:
            row = connection.execute(
                "SELECT c.reltuples::int8 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
                " WHERE n.nspname = %s AND c.relname = %s",
                (table.schema, table.name),
            ).fetchone()
        return None if row is None or row[0] < 0 else int(row[0])

    # --- the stream ---

    def end(self) -> Position:
        with self._connections.plain() as connection:
            row = connection.execute(
                "SELECT pg_current_wal_insert_lsn()::text, pg_current_wal_insert_lsn() > pg_current_wal_flush_lsn()"
            ).fetchone()
        assert row is not None, "a SELECT without FROM has one row"
        if row[1]:
            self._nudge()
        return position_of(parse_lsn(row[0]))

    def transactions(self, after: Position | None, stop: threading.Event) -> Iterator[Batch]:
        # Not from `after` on: what came before it and is not visible yet has to come again first.
        self.stream_starts(None)
        unfit = self._check_slot(after)
        with self._connections.plain() as connection:
            stale = stale_tables(connection, self._tables, self._slot, self._notes)
        told = {oid: (*stale.get(oid, ()), *unfit.get(oid, ())) for oid in {*unfit, *stale}}
        stream = Stream(self.name, self._connections, self._tables, self._slot, self._retained, self._wishes, told)
        yield from stream.batches(lsn_of(after or ""), stop, self.passed)

    def _check_slot(self, after: Position | None) -> dict[int, list[Alteration]]:
        """PositionLost unless the slot still has what lies behind `after`, SourceUnfit unless what all tables need is
        in place; and the tables that lack something of their own, with what it is."""
        with self._connections.plain() as connection:
            slot = connection.execute(
                "SELECT wal_status FROM pg_replication_slots WHERE slot_name = %s", (self._slot,)
            ).fetchone()
            begins = slot_begins(connection, self._slot)
            lacking = missing(connection, self._tables, self._slot)
        if slot is not None and slot[0] == "lost":
            raise PositionLost(
                f"the slot {self._slot} of {self.name} has lost WAL that it needed",
                "install the source again and reload the views over it; a larger max_slot_wal_keep_size keeps more",
            )
        if after is not None and (slot is None or lsn_of(after) <= begins):
            raise PositionLost(
                f"{self.name} no longer has the changes after {after}: the slot {self._slot} "
                + ("was made later" if slot else "is gone"),
                "install the source again and reload the views over it",
            )
        if after is not None and after > self.end():
            raise PositionLost(
                f"{self.name} has not come as far as {after}: it is another server, or was restored from a backup",
                "install the source again and reload the views over it",
            )
        if common := [finding for finding in lacking if not finding.relations]:
            raise SourceUnfit(
                f"{self.name} cannot be captured: " + "; ".join(finding.what for finding in common),
                f"install it, or run:{statements(lacking)}",
            )
        oids = {table.relation.name: oid for oid, table in self._tables.captured.items()}
        unfit: dict[int, list[Alteration]] = {}
        for finding in lacking:
            reason = f"{finding.what}; {RELOAD}, which fixes it where the role may, or run {finding.fix} first"
            for relation in finding.relations:
                unfit.setdefault(oids[relation], []).append(Alteration(reason))
        return unfit

    def acknowledge(self, position: Position) -> None:
        self._wishes.stored = max(self._wishes.stored, lsn_of(position))
        self._wishes.bell.ring()

    def wait_for_stream(self, position: Position, patience: float = PATIENCE) -> None:
        self._wishes.reach = max(self._wishes.reach, lsn_of(position))
        self._wishes.bell.ring()
        with self._progress:
            self._progress.wait_for(
                lambda: self._passed >= position or self._broken is not None, timeout=min(_NUDGE_AFTER, patience)
            )
            late = self._passed < position and self._broken is None
        if late:
            self._nudge()
        super().wait_for_stream(position, patience)

    def _nudge(self) -> None:
        with self._connections.plain() as connection:
            nudge(connection)

    # --- readings ---

    def reading(self, fetches: Sequence[Fetch]) -> AbstractContextManager[Reading]:
        return self._readings.reading(fetches)

    def close(self) -> None:
        self._connections.close()
        self._wishes.bell.close()
