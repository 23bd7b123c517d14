"""Forgetting what is stored elsewhere: rows of the log are deleted, rarely and in short transactions.

Each is over before a writer that waits for the lock has to give up, and only the last one waits for the disk. If the
lock is not to be had for a while, the rows stay until the next time.
"""

import sqlite3
import threading
from contextlib import suppress

from viewkeeper.clock import monotonic
from viewkeeper.errors import StorageFailure
from viewkeeper.sources.sqlite.connections import Database
from viewkeeper.sources.sqlite.forgotten import Forgotten
from viewkeeper.sources.sqlite.installation import Installation, writing

EVERY_ROWS = 10_000
EVERY_SECONDS = 5.0
ROWS_AT_ONCE = 2_000
BUSY_SECONDS = 2.0


class Forgetting:
    """Deletes what was acknowledged, once it is much or old."""

    def __init__(self, database: Database, installation: Installation, forgotten: Forgotten) -> None:
        self._database, self._installation, self._forgotten = database, installation, forgotten
        self._lock = threading.Lock()
        self._last: float | None = None
        self._acknowledged = 0

    def finish(self) -> None:
        """What was acknowledged too soon after the last time, when no more will come."""
        if self._acknowledged:
            self._last = None
            self.up_to(self._acknowledged)

    def up_to(self, number: int) -> None:
        self._acknowledged = max(number, self._acknowledged)
        with self._lock, self._database.explained():
            connection = self._database.connect(busy_seconds=BUSY_SECONDS)
            try:
                if not self._installation.present(connection):
                    return
                floor = self._installation.floor(connection)
                number = min(number, self._installation.head(connection))
                recently = self._last is not None and monotonic() - self._last < EVERY_SECONDS
                if number <= floor or (recently and number - floor < EVERY_ROWS):
                    return
                if floor < self._forgotten.noted:
                    return  # another database is in its place, which has told nobody anything
                # If it cannot be done or noted now, the next time will do.
                with suppress(sqlite3.OperationalError, StorageFailure):
                    self._delete(connection, floor, number)
                    self._forgotten.note(number)
                self._last = monotonic()
            finally:
                connection.close()

    def _delete(self, connection: sqlite3.Connection, floor: int, number: int) -> None:
        names = self._installation.names
        connection.execute("PRAGMA synchronous = NORMAL")
        with writing(connection):
            for one in self._installation.captured(connection):
                if one.current:
                    connection.execute(f"DELETE FROM main.{names.stash(one.number)}")
        while floor < number:
            floor = min(floor + ROWS_AT_ONCE, number)
            if floor == number:
                connection.execute("PRAGMA synchronous = FULL")
            with writing(connection):
                # The last row stays: the next number is counted from it.
                connection.execute(
                    f"DELETE FROM main.{names.log} WHERE seq <= ? AND seq < (SELECT max(seq) FROM main.{names.log})",
                    (floor,),
                )
                connection.execute(f"UPDATE main.{names.meta} SET floor = ?", (floor,))
