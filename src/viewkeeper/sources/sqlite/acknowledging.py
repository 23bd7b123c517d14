"""Forgetting what is stored elsewhere: rows of the log are deleted, rarely and in short transactions.

Each is over before a writer that waits for the lock has to give up, and none waits for the disk. If the lock is not to
be had for a while, the rows stay until the next time.
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

    def up_to(self, number: int) -> None:
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
                with suppress(StorageFailure):  # it is noted the next time
                    self._forgotten.note(floor)
                connection.execute("PRAGMA synchronous = NORMAL")
                with suppress(sqlite3.OperationalError):
                    self._delete(connection, floor, number)
                self._last = monotonic()
            finally:
                connection.close()

    def _delete(self, connection: sqlite3.Connection, floor: int, number: int) -> None:
        names = self._installation.names
        with writing(connection):
            for one in self._installation.captured(connection):
                if one.current:
                    connection.execute(f"DELETE FROM main.{names.stash(one.number)}")
        while floor < number:
            floor = min(floor + ROWS_AT_ONCE, number)
            with writing(connection):
                # The last row stays: the next number is counted from it.
                connection.execute(
                    f"DELETE FROM main.{names.log} WHERE seq <= ? AND seq < (SELECT max(seq) FROM main.{names.log})",
                    (floor,),
                )
                connection.execute(f"UPDATE main.{names.meta} SET floor = ?", (floor,))
