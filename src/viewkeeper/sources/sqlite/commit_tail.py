"""Following the commits of a database in a thread of its own.

    Piece(start, end, exact)        the changes behind `start` up to `end`: one transaction if exact, else maybe several

Commits can be told apart only while the -wal file still holds them. So the file is followed at once, however slowly
the changes themselves are read. A state of the database is held open from one look to the next: while it is, the file
cannot be written from its beginning again. It would grow without bound under writers that never rest, so beyond some
size nothing is held between two looks, and when nobody writes nothing is held either: somebody may want a checkpoint.
"""

import os
import sqlite3
import threading
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

from viewkeeper.clock import monotonic
from viewkeeper.sources.sqlite.connections import Database
from viewkeeper.sources.sqlite.installation import WAL, Installation, journal_mode
from viewkeeper.sources.sqlite.wal import WalCommits

LOOK_EVERY = 0.003
HELD_AT_REST = 0.1
"""Seconds without a change after which nothing is held any more."""
HELD_BYTES = 16 << 20
"""The size of the -wal file up to which a state is held between two looks."""
MOST_PIECES = 1_000_000


@dataclass(frozen=True)
class Piece:
    start: int
    end: int
    exact: bool


class CommitTail:
    """The commits from now on, and those that the -wal file still holds."""

    def __init__(self, database: Database, installation: Installation) -> None:
        self._database, self._installation = database, installation
        self._wal_path = Path(f"{database.path}-wal")
        self._commits = WalCommits(self._wal_path, installation.names.mark)
        self._changed = threading.Condition()
        self._ends: list[int] = []
        self._pieces: list[Piece] = []
        self._head = 0
        self._error: Exception | None = None
        self._stop = threading.Event()
        # Two, since the next state is shown before the last one is let go.
        self._connections = [database.connect() for _ in range(2)]
        self._held: int | None = None
        self._in_wal = False
        try:
            self._begin()
        except BaseException:
            self._close_connections()
            raise
        self._thread = threading.Thread(target=self._run, name=f"commits of {database.source}", daemon=True)
        self._thread.start()

    # --- for the one who reads the changes ---

    @property
    def broken(self) -> bool:
        return self._error is not None

    def pieces_behind(self, last: int, patience: float) -> list[Piece]:
        """The pieces behind a number, without a gap; none if there is no change in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._head > last or self._error is not None, timeout=patience)
            if self._head <= last:
                if self._error is not None:
                    raise self._error
                return []
            place = bisect_right(self._ends, last)
            pieces = self._pieces[place:]
        first = pieces[0]
        if first.start > last:
            return [Piece(last, first.start, exact=False), *pieces]
        if first.start < last:
            pieces[0] = Piece(last, first.end, exact=False)
        return pieces

    def forget(self, last: int) -> None:
        """Nothing up to this number will be asked for again."""
        with self._changed:
            self._drop(bisect_right(self._ends, last))

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    # --- the thread ---

    def _begin(self) -> None:
        """What the file holds now was committed before: it may still tell where."""
        with self._database.explained():
            self._in_wal = journal_mode(self._connections[0]) == WAL
            self._head = self._show(0)
            floor = self._installation.floor(self._connections[0])
            if self._head > floor:
                self._add(floor, self._head, held=False)
            self._commits.settle()
            self._release()

    def _run(self) -> None:
        try:
            with self._database.explained():
                self._follow()
        except Exception as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()
        finally:
            self._close_connections()

    def _follow(self) -> None:
        changed = checked = monotonic()
        while not self._stop.wait(LOOK_EVERY):
            if self._look():
                changed = monotonic()
                continue
            now = monotonic()
            if now - changed > HELD_AT_REST:
                self._release()
            if now - checked > HELD_AT_REST:
                checked = now
                self._database.same_file()
                self._rest()

    def _look(self) -> bool:
        """Whether there is something new. The state that was held is let go only when the next one is there."""
        before = self._held
        last, other = self._head, 0 if before is None else 1 - before
        head = self._show(other)
        if head == last:
            self._end_of_state(other)
            self._held = before
            return False
        self._add(last, head, held=before is not None)
        if before is not None:
            self._end_of_state(before)
        if not self._in_wal or self._wal_size() > HELD_BYTES:
            self._release()
        return True

    def _rest(self) -> None:
        """Nobody writes: find out where the file stands, so that what comes next is known to be next."""
        if self._held is not None:
            return
        if not self._in_wal:
            self._in_wal = journal_mode(self._connections[0]) == WAL
            return
        if self._show(0) == self._head:
            self._commits.settle()
        self._release()

    def _show(self, which: int) -> int:
        """Begin to hold a state; its head."""
        connection = self._connections[which]
        connection.execute("BEGIN")
        self._held = which
        return self._installation.head(connection)

    def _end_of_state(self, which: int) -> None:
        self._connections[which].execute("COMMIT")

    def _release(self) -> None:
        if self._held is not None:
            self._end_of_state(self._held)
            self._held = None

    def _wal_size(self) -> int:
        try:
            return os.stat(self._wal_path).st_size
        except OSError:
            return 0

    def _add(self, last: int, head: int, *, held: bool) -> None:
        assert self._held is not None
        connection = self._connections[self._held]
        if self._in_wal:
            found = self._commits.between(last, head, lambda: self._root(connection), held=held)
        else:
            found = [(head, False)]
        pieces = []
        for end, exact in found:
            pieces.append(Piece(last, end, exact))
            last = end
        with self._changed:
            self._pieces += pieces
            self._ends += [piece.end for piece in pieces]
            self._head = head
            self._drop(len(self._pieces) - MOST_PIECES)
            self._changed.notify_all()

    def _drop(self, count: int) -> None:
        if count > 0:
            del self._pieces[:count], self._ends[:count]

    def _root(self, connection: sqlite3.Connection) -> int:
        """The page of `head`; a VACUUM may move it."""
        found = connection.execute(
            "SELECT rootpage FROM main.sqlite_master WHERE name = ?", (self._installation.names.head_name,)
        ).fetchone()
        return int(found[0])

    def _close_connections(self) -> None:
        for connection in self._connections:
            connection.close()
