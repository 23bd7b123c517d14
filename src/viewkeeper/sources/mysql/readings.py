"""Readings that are exact at a place of the log, with no lock and no write.

    lower        a place up to which everything is committed for all to see
    START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
    upper        the end of the log
    (wait until the stream has passed upper)

What is visible in the snapshot is in the log before upper, for a transaction is written there before its rows can be
seen. What is up to lower is visible. So if no transaction in (lower, upper] touches what is requested, the snapshot
holds of it exactly what upper does; otherwise it is tried again.

The end of the log does not serve as lower: of a group of transactions that is committed together, the log holds all
before the first can be seen. MariaDB tells up to where rows can be seen (Binlog_snapshot_position outside of a
transaction). MySQL tells the names of the transactions that are committed (gtid_executed).

An XA transaction can be seen a little after MariaDB says so. One up to lower counts as well if it was still among the
prepared ones just before the snapshot.

Where a table never rests, MariaDB's snapshot is taken at its word: it knows its own place in the log. The server keeps
that number in one variable for all connections that ask at the same time, so it must be told several times the same.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pymysql
from pymysql.cursors import SSCursor

from viewkeeper.algebra.zset import Row
from viewkeeper.clock import monotonic
from viewkeeper.errors import SourceUnavailable
from viewkeeper.messages import Fetch, Position
from viewkeeper.sources.base import PATIENCE, Reading
from viewkeeper.sources.mysql.catalog import Captured
from viewkeeper.sources.mysql.connections import Pool, Server, drop, run
from viewkeeper.sources.mysql.history import History, Touch
from viewkeeper.sources.mysql.keys import statement
from viewkeeper.sources.mysql.places import place_in
from viewkeeper.sources.mysql.types import Column, unfit_value

BATCH = 2_000
TRIES = 4
"""Tries before the snapshot is taken at its word, where it can be."""

WORDS = 3
"""How often the same place must be told."""

PAUSE = 0.01
SNAPSHOT = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"


class Readings:
    """Readings from one server, in any number of threads."""

    def __init__(
        self,
        server: Server,
        tables: Mapping[str, Captured],
        mariadb: bool,
        history: History,
        wait_for_stream: Callable[[Position], None],
    ) -> None:
        self._server, self._tables, self._mariadb = server, tables, mariadb
        self._history, self._wait_for_stream = history, wait_for_stream
        self._pool = Pool(server)
        self._word = threading.Lock()
        self._pause = threading.Event()
        self.outcomes: Counter[str] = Counter()
        """how many readings were exact, were tried again, or were taken at the snapshot's word"""

    def close(self) -> None:
        self._pool.close()

    @contextmanager
    def reading(self, fetches: Sequence[Fetch]) -> Iterator[Reading]:
        statements = [statement(fetch, self._tables) for fetch in fetches]
        with self._pool.connection() as connection:
            position = self._snapshot(connection, Touch(fetches))
            lane = _Lane(self._server, connection)
            try:
                rows = tuple(lane.rows(one.text, one.variables, one.columns) for one in statements)
                yield Reading(position, rows, tuple(() for _ in fetches))
            finally:
                lane.end()

    def _snapshot(self, connection: Any, touch: Touch) -> Position:
        """Begin a transaction in which the fetches are exact at a place."""
        deadline = monotonic() + PATIENCE
        tries = 0
        while monotonic() < deadline:
            at_its_word = self._mariadb and tries >= TRIES
            position = self._exact(connection, touch, at_its_word)
            if position is not None:
                self.outcomes["at its word" if at_its_word else "exact"] += 1
                return position
            self.outcomes["again"] += 1
            run(connection, "ROLLBACK")
            tries += 1
            if tries >= TRIES:
                self._pause.wait(PAUSE)
        raise SourceUnavailable(
            f"{self._server.source} changes what is read faster than it can be read",
            "it is tried again; read fewer tables at once, or at a quieter time",
        )

    def _exact(self, connection: Any, touch: Touch, at_its_word: bool) -> Position | None:
        """One try: the place at which a new snapshot is exact, or None."""
        if not self._mariadb:
            return self._exact_by_names(connection, touch)
        lower = visible_place(connection)
        half_done = xa_prepared(connection)
        with self._history.needed(lower):
            run(connection, SNAPSHOT)
            place = self._told(connection) if at_its_word else end_of_log(connection, self._server)
            if place is None:
                return None
            self._wait_for_stream(place)
            passed = self._history.between(lower, place)
            doubtful = self._history.prepared(half_done, lower)
        if passed is None:
            return None
        if at_its_word:
            passed = [one for one in passed if one.xa is not None]
        return None if any(touch.by(one) for one in (*passed, *doubtful)) else place

    def _exact_by_names(self, connection: Any, touch: Touch) -> Position | None:
        """The same with MySQL: of what has passed, everything touching must have been committed before the snapshot."""
        ((executed,),) = run(connection, "SELECT @@global.gtid_executed")
        with self._history.needed(""):
            run(connection, SNAPSHOT)
            upper = end_of_log(connection, self._server)
            self._wait_for_stream(upper)
            passed = self._history.between(None, upper)
        touching = [one for one in passed or () if touch.by(one)]
        if touching:
            names = ",".join(one.gtid or "" for one in touching)
            ((missing,),) = run(connection, "SELECT GTID_SUBTRACT(%s, %s)", names, executed)
            if missing:
                return None
        return None if passed is None else upper

    def _told(self, connection: Any) -> Position | None:
        """The place of the snapshot, if it is told the same several times."""
        # At least our own threads do not ask at the same time.
        with self._word:
            told = {visible_place(connection) for _ in range(WORDS)}
        return told.pop() if len(told) == 1 else None


def visible_place(connection: Any) -> Position:
    """Where MariaDB's snapshot is in the log; outside of a transaction, the place up to which rows can be seen."""
    told = dict(run(connection, "SHOW STATUS LIKE 'Binlog\\_snapshot\\_%'"))
    return place_in(told["Binlog_snapshot_file"], int(told["Binlog_snapshot_position"]))


def xa_prepared(connection: Any) -> set[str]:
    """The XA transactions that are prepared and not yet committed, in the spelling of the log."""
    return {
        f"X'{name[: int(first)].hex()}',X'{name[int(first) :].hex()}',{form}"
        for form, first, _, name in run(connection, "XA RECOVER")
    }


def end_of_log(connection: Any, server: Server) -> Position:
    """The place after everything that is in the log."""
    file, offset = log_status(connection, server)[:2]
    return place_in(file, int(offset))


def log_status(connection: Any, server: Server) -> tuple[Any, ...]:
    """File, offset, databases that are logged and not; SourceUnavailable if there is no log."""
    try:
        rows = run(connection, "SHOW MASTER STATUS")
    except pymysql.ProgrammingError:
        # MySQL 8.4 has only the new name.
        rows = run(connection, "SHOW BINARY LOG STATUS")
    if not rows:
        raise SourceUnavailable(f"{server.source} writes no binary log", "start the server with log_bin (see doctor)")
    return rows[0]


class _Lane:
    """One connection, over which several results come one after another, in batches."""

    def __init__(self, server: Server, connection: Any) -> None:
        self._server, self._connection = server, connection
        self._active: _Result | None = None

    def rows(self, text: str, variables: Mapping[str, str], columns: tuple[Column, ...]) -> Iterator[Sequence[Row]]:
        """The batches of a statement, which is run when the first is requested."""
        with self._server.errors():
            if self._active is not None:
                # Somebody reads two results in turns: the rest of the first is kept in memory.
                self._active.keep_rest()
            for variable, value in variables.items():
                run(self._connection, f"SET @{variable} = %s", value)
            result = self._active = _Result(self._connection, text)
            while batch := result.batch():
                yield parsed(batch, columns)

    def end(self) -> None:
        """Give the rest up, if a reader has left early."""
        if self._active is not None and not self._active.complete:
            self._active.abandon()


class _Result:
    """An unbuffered result."""

    def __init__(self, connection: Any, text: str) -> None:
        self._cursor = connection.cursor(SSCursor)
        self._cursor.execute(text)
        self._kept: Iterator[tuple[Any, ...]] | None = None
        self.complete = False

    def batch(self) -> list[tuple[Any, ...]]:
        if self._kept is not None:
            return list(islice(self._kept, BATCH))
        if self.complete:
            return []
        batch: list[tuple[Any, ...]] = list(self._cursor.fetchmany(BATCH))
        if not batch:
            self._finish()
        return batch

    def keep_rest(self) -> None:
        if not self.complete:
            self._kept = iter(self._cursor.fetchall())
            self._finish()

    def abandon(self) -> None:
        """Close the connection: to read the rest of a large table only to throw it away would take too long."""
        connection, self._cursor.connection = self._cursor.connection, None
        if self._cursor._result is not None:
            # The driver would read the rest when the result is forgotten.
            self._cursor._result.unbuffered_active = False
        connection._result = None
        drop(connection)

    def _finish(self) -> None:
        self.complete = True
        self._cursor.close()


def parsed(batch: Sequence[tuple[Any, ...]], columns: tuple[Column, ...]) -> list[Row]:
    """The values of rows as the driver gives them."""
    if not columns:
        return [()] * len(batch)
    fields = []
    for column, values in zip(columns, zip(*batch, strict=True), strict=True):
        parse = column.parse
        try:
            fields.append(values if parse is None else [None if value is None else parse(value) for value in values])
        except ValueError:
            raise _unfit(column, values) from None
    return list(zip(*fields, strict=True))


def _unfit(column: Column, values: Sequence[Any]) -> Exception:
    assert column.parse is not None
    for value in values:
        try:
            if value is not None:
                column.parse(value)
        except ValueError:
            return unfit_value(column, value)
    raise AssertionError("a value could not be parsed, and now can")
