"""Readings: rows of one snapshot, exact at a place of the stream.

    place      the WAL insert position, taken right after the snapshot: what the snapshot shows was written before it
    unseen     transactions written before the place that the snapshot does not show yet

When the stream has passed the place, all of them are known. For a fetch of one relation their changes are corrections.
A join cannot be corrected so simply: either the unseen ones lie after all that is shown, then the place moves before
them; or a new snapshot is taken.

Tables are locked before the snapshot, since one taken before a TRUNCATE would show no rows at all after it; ACCESS
SHARE conflicts only with what rewrites or drops a table. We never wait for a lock while we hold one, so that we are in
no deadlock, whose victim could be somebody else.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from psycopg import errors as pg_errors
from psycopg import sql

from viewkeeper.algebra.zset import Row
from viewkeeper.clock import monotonic
from viewkeeper.errors import SourceError, SourceUnavailable, SourceUnfit
from viewkeeper.messages import Fetch
from viewkeeper.sources.base import PATIENCE, Reading
from viewkeeper.sources.postgres.catalog import Table, Tables
from viewkeeper.sources.postgres.connections import Connection, Connections
from viewkeeper.sources.postgres.fetch_sql import Statement, statement
from viewkeeper.sources.postgres.snapshots import Retained, Snapshot, Streamed, parse_lsn, position_of
from viewkeeper.sources.postgres.watch import alterations

_BATCH = 5000
_LOCK_PATIENCE = 10.0
_PAUSE = 0.02

# Cheap to read and to compare; where it differs the shapes are compared.
_ENUMS = "(SELECT string_agg(e.xmin::text, ',' ORDER BY e.oid) FROM pg_enum e)"
_VERSIONS = """
SELECT c.oid::int8::text, concat_ws(' ', c.xmin, c.relfilenode,
    (SELECT string_agg(concat(a.attnum, ':', a.xmin), ',' ORDER BY a.attnum)
     FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0),
    (SELECT string_agg(r.xmin::text, ',' ORDER BY r.oid) FROM pg_publication_rel r WHERE r.prrelid = c.oid), {enums})
FROM pg_class c WHERE c.oid IN ({oids})
"""


@dataclass(frozen=True)
class _Taken:
    """A snapshot and its place."""

    snapshot: Snapshot
    place: int
    versions: Mapping[int, str]


class Readings:
    """Takes readings on connections of their own, from any number of threads."""

    def __init__(
        self,
        source: str,
        connections: Connections,
        tables: Tables,
        publication: str,
        retained: Retained,
        reach: Callable[[int], None],
        passed: Callable[[], int],
    ) -> None:
        self._source, self._connections, self._publication = source, connections, publication
        self._retained, self._reach, self._passed = retained, reach, passed
        self._tables = {table.relation.name: table for table in tables.captured.values()}
        self._checked: dict[int, str] = {}
        """the versions at which a table was found to be as captured"""

    @contextmanager
    def reading(self, fetches: Sequence[Fetch]) -> Iterator[Reading]:
        names = {one.relation.name for fetch in fetches for one in fetch.reads}
        tables = [self._tables[name] for name in sorted(names)]
        with self._connections.raw() as connection:
            deadline = monotonic() + PATIENCE
            while (exact := self._exact(connection, fetches, tables)) is None:
                connection.execute("ROLLBACK")
                if monotonic() > deadline:
                    raise SourceUnavailable(
                        f"{self._source}: every attempt to join {', '.join(sorted(names))} met commits under way",
                        "it is tried again; see whether commits wait for a synchronous standby",
                    )
            position, corrections = exact
            opened = [_Rows(self._connections, connection, number, fetch) for number, fetch in enumerate(fetches)]
            # All in one round trip.
            with connection.pipeline() if len(opened) > 1 else nullcontext():
                for rows in opened:
                    rows.open(statement(rows.fetch, self._tables))
            yield Reading(position_of(position), tuple(rows.batches() for rows in opened), corrections)
            for rows in opened:
                rows.closed = True
            connection.execute("ROLLBACK")

    def _exact(
        self, connection: Connection, fetches: Sequence[Fetch], tables: Sequence[Table]
    ) -> tuple[int, tuple[Sequence[tuple[Row, int]], ...]] | None:
        """The place and the corrections at which a new snapshot is exact; None if this one has none."""
        began = self._passed()
        number = self._retained.open(began)
        try:
            taken = self._take(connection, tables)
            self._check(tables, taken.versions)
            self._reach(taken.place)
            near = self._retained.touching([table.relation.name for table in tables])
            near = [one for one in near if one.end <= taken.place]
        finally:
            self._retained.close(number)
        self._retained.observe(taken.snapshot)
        unseen = {one.end for one in near if not taken.snapshot.shows(one.xid)}
        joined = {one.relation.name for fetch in fetches if len(fetch.reads) > 1 for one in fetch.reads}
        place = latest_exact_place(
            [one for one in near if not joined.isdisjoint(one.relations)], unseen, began, taken.place
        )
        if place is None:
            return None
        # What should be seen and is not is added; what is seen and lies behind the place is taken away.
        signed = [(one, 1) for one in near if one.end in unseen and one.end <= place]
        signed += [(one, -1) for one in near if one.end not in unseen and one.end > place]
        return place, tuple(self._corrections(fetch, signed) for fetch in fetches)

    def _take(self, connection: Connection, tables: Sequence[Table]) -> _Taken:
        deadline = monotonic() + _LOCK_PATIENCE
        while True:
            try:
                return self._try_to_take(connection, tables)
            except pg_errors.LockNotAvailable:
                connection.execute("ROLLBACK")
                if monotonic() > deadline:
                    raise
                threading.Event().wait(_PAUSE)

    def _try_to_take(self, connection: Connection, tables: Sequence[Table]) -> _Taken:
        """All in one round trip; the first statement that needs a snapshot takes it."""
        script: list[sql.Composable] = [sql.SQL("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")]
        if tables:
            locked = sql.SQL(", ").join(sql.SQL("ONLY {}").format(table.quoted) for table in tables)
            script.append(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE NOWAIT").format(locked))
        script.append(sql.SQL("SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text"))
        oids = sql.SQL(", ").join([sql.Literal(0), *(sql.Literal(table.oid) for table in tables)])
        has_enums = any(column.labels for table in tables for column in table.columns if column is not None)
        script.append(sql.SQL(_VERSIONS).format(enums=sql.SQL(_ENUMS if has_enums else "NULL"), oids=oids))
        cursor = connection.execute(sql.SQL("; ").join(script))
        for _ in script[2:]:
            cursor.nextset()
        ((snapshot, place),) = cursor.fetchall()
        cursor.nextset()
        return _Taken(Snapshot.parse(snapshot), parse_lsn(place), {int(oid): text for oid, text in cursor.fetchall()})

    def _check(self, tables: Sequence[Table], versions: Mapping[int, str]) -> None:
        """SourceUnfit if a table is no longer what is captured; the lock keeps it as it is while we read."""
        unsure = [table for table in tables if self._checked.get(table.oid) != versions.get(table.oid, "")]
        if not unsure:
            return
        with self._connections.plain() as connection:
            altered = alterations(connection, unsure, self._publication)
        for table in unsure:
            if found := altered.get(table.oid):
                raise SourceUnfit(
                    f"{table.relation.name} cannot be read as it is captured: {found[0].reason.partition(';')[0]}",
                    "install the source again, open it again and reload the views over the table",
                )
            self._checked[table.oid] = versions.get(table.oid, "")

    def _corrections(self, fetch: Fetch, signed: Sequence[tuple[Streamed, int]]) -> list[tuple[Row, int]]:
        """The rows of a fetch of one relation that transactions add, or take away; a join needs none."""
        if len(fetch.reads) > 1 or not signed:
            return []
        (operand,) = fetch.operands
        place = {name: number for number, name in enumerate(operand.columns)}
        columns = [place[name] for name in fetch.columns]
        equal = [(place[a], place[b]) for a, b in fetch.equal]
        wanted = _key_filter([place[name] for name in fetch.matched], fetch.keys)
        return [
            (tuple([change.row[number] for number in columns]), sign * change.count)
            for one, sign in signed
            for change in one.transaction.changes
            if change.relation == operand.relation.name
            and wanted(change.row)
            and all(change.row[a] is not None and change.row[a] == change.row[b] for a, b in equal)
        ]


def latest_exact_place(near: Sequence[Streamed], unseen: Collection[int], began: int, place: int) -> int | None:
    """The latest place at which a join is exact: no unseen transaction before it, no seen one after it.

    It may not lie before `began`, the place that the stream had passed when the reading was requested.
    """
    first = min((one.end for one in near if one.end in unseen), default=None)
    if first is None:
        return place
    if first <= began or any(one.end > first for one in near if one.end not in unseen):
        return None
    return first - 1


def _key_filter(columns: Sequence[int], keys: Sequence[Row] | None) -> Callable[[Row], bool]:
    """Whether a row has one of the keys. Floats are left to the caller: their equality is not Python's."""
    if keys is None or any(isinstance(value, float) for key in keys for value in key):
        return lambda row: True
    known = frozenset(keys)
    return lambda row: tuple([row[number] for number in columns]) in known


class _Rows:
    """The rows of one fetch, from a cursor at the server."""

    def __init__(self, connections: Connections, connection: Connection, number: int, fetch: Fetch) -> None:
        self._connections, self._connection, self.fetch = connections, connection, fetch
        self._cursor = sql.Identifier(f"viewkeeper_{number}")
        self._decode: Callable[[Sequence[str | None]], Row] = tuple
        self.closed = False

    def open(self, select: Statement) -> None:
        if self.fetch.keys == ():
            return
        self._decode = select.decode
        declare = sql.SQL("DECLARE {} NO SCROLL CURSOR FOR ").format(self._cursor)
        self._connection.execute(declare + select.text, select.parameters or None)

    def batches(self) -> Iterator[Sequence[Row]]:
        if self.fetch.keys == ():
            return
        more = sql.SQL("FETCH FORWARD {} FROM {}").format(sql.Literal(_BATCH), self._cursor)
        size = _BATCH
        while size == _BATCH:
            if self.closed:
                raise SourceError("the rows of a reading were requested after it had ended")
            with self._connections.translated():
                texts = self._connection.execute(more).fetchall()
            size = len(texts)
            if texts:
                yield [self._decode(row) for row in texts]
