"""Following the commits of a database in a thread of its own.

    Piece(start, end, exact)        the changes after `start` up to `end`: one transaction if exact, else maybe several

Commits can be distinguished only while the -wal file still holds them. So the file is followed at once, however slowly
the changes themselves are read. A state of the database is held open from one look to the next: while it is, the file
cannot be written from its beginning again. It would grow without bound under writers that never rest, so beyond some
size nothing is held for a moment now and then. Nothing at all is held in other journal modes, where it would hold up
writers.
"""

import sqlite3
import threading
from array import array
from bisect import bisect_right
from pathlib import Path

from viewkeeper.clock import monotonic
from viewkeeper.sources.sqlite.connections import Database
from viewkeeper.sources.sqlite.installation import WAL, Installation, journal_mode
from viewkeeper.sources.sqlite.known_ends import KnownEnds, Piece
from viewkeeper.sources.sqlite.wal import WalCommits

LOOK_EVERY = 0.004
LONGEST_LOOK = 0.04
"""Seconds between two looks: the longer, the more commits the last one has found, for each look costs as much as
several commits."""
REST_EVERY = 0.1
"""Seconds without a change after which another state is held, one that is in nobody's way."""
HELD_FRAMES = 2000
"""The frames in the -wal file beyond which it is given chances to begin anew. SQLite itself tries from 1000 on."""
CHANCE = 0.02
LONGEST_CHANCE = 0.2
BETWEEN_CHANCES = 0.05
MOST_PIECES = 1_000_000
PIECES_AT_ONCE = 4_000
"""Pieces that are given out at once, however many there are."""


class CommitTail:
    """The commits from now on, and those that the -wal file still holds."""

    def __init__(self, database: Database, installation: Installation, known_ends: KnownEnds) -> None:
        self._database, self._installation, self._known_ends = database, installation, known_ends
        self._commits = WalCommits(Path(f"{database.path}-wal"), installation.names.mark)
        self._changed = threading.Condition()
        self._ends, self._exact = array("q"), bytearray()
        """the ends of the pieces, each of which begins where the one before it ends, and which of them are exact"""
        self._start = 0
        """where the first piece begins"""
        self._head = 0
        self._waiting: list[threading.Event] = []
        """what tells those that wait for changes to stop"""
        self._error: Exception | None = None
        self._stop = threading.Event()
        # Two, since the next state is shown before the last one is let go.
        self._connections = [database.connect() for _ in range(2)]
        self._held: int | None = None
        self._in_wal = False
        self._let_at = monotonic()
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

    def pieces_behind(self, last: int, patience: float, stop: threading.Event) -> list[Piece]:
        """The next pieces after a number, without a gap; none if there is no change in time, or before it is to
        stop."""
        with self._changed:
            self._waiting.append(stop)
            try:
                self._changed.wait_for(
                    lambda: self._head > last or self._error is not None or stop.is_set(), timeout=patience
                )
            finally:
                self._waiting.remove(stop)
            if self._head <= last:
                if self._error is not None:
                    raise self._error
                return []
            place = bisect_right(self._ends, last)
            pieces = [self._piece(number) for number in range(place, min(place + PIECES_AT_ONCE, len(self._ends)))]
        first = pieces[0]
        if first.start > last:
            pieces.insert(0, Piece(last, first.start, exact=False))
        elif first.start < last:
            pieces[0] = Piece(last, first.end, exact=False)
        return self._known_ends.cut(pieces)

    def _piece(self, number: int) -> Piece:
        start = self._ends[number - 1] if number else self._start
        return Piece(start, self._ends[number], exact=bool(self._exact[number]))

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
                self._add(floor, self._head, self._root(self._connections[0]), held=False)
            self._settle(0)
            if not self._in_wal:
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
        rested, found = monotonic(), 0
        while not self._stop.wait(min(LOOK_EVERY * max(found, 1), LONGEST_LOOK)):
            if any(stop.is_set() for stop in tuple(self._waiting)):
                with self._changed:
                    self._changed.notify_all()
            found = self._look()
            if found:
                rested = monotonic()
            elif monotonic() - rested > REST_EVERY:
                self._database.same_file()
                self._rest()
                rested = monotonic()

    def _look(self) -> int:
        """How many commits are new."""
        found = self._go_on()
        if found and self._in_wal and self._commits.frames_read > HELD_FRAMES:
            self._let_begin_anew()
        return found

    def _go_on(self) -> int:
        """Hold the next state; how many commits are new. The one before is let go only when the next one is there."""
        before = self._held
        last, other = self._head, 0 if before is None else 1 - before
        head = self._show(other)
        if head == last:
            self._end_of_state(other)
            self._held = before
            return 0
        found = self._add(last, head, self._root(self._connections[other]), held=before is not None)
        if before is not None:
            self._end_of_state(before)
        if not self._in_wal:
            self._release()
        return found

    def _let_begin_anew(self) -> None:
        """Hold nothing for a moment: once all of the file is in the database, the next writer begins it again. Others
        write meanwhile, but hardly so much that the file is filled twice."""
        if monotonic() - self._let_at < BETWEEN_CHANCES:
            return
        if self._held is not None:
            # Most of it goes into the database while a state is held still: what is written after that is little, and
            # that is what has to be checked frame by frame.
            self._write_back(1 - self._held)
            self._go_on()
        self._release()
        self._write_back(0)
        # The longer the file, the longer: it takes a moment in which nobody at all reads from it.
        self._let_at = end = monotonic() + min(CHANCE * self._commits.frames_read / HELD_FRAMES, LONGEST_CHANCE)
        while monotonic() < end and not self._commits.began_anew() and not self._stop.wait(CHANCE / 20):
            pass
        self._next_state(0, held=False)

    def _write_back(self, which: int) -> int:
        """Have the -wal file written to the database, as far as nobody is held up; the frames that are in it."""
        _, frames, _ = self._connections[which].execute("PRAGMA main.wal_checkpoint(PASSIVE)").fetchone()
        return int(frames)

    def _rest(self) -> None:
        """Nobody changes what is captured: hold a state that is in nobody's way.

        When all of the file is in the database, a new state needs nothing of the file, and others may do with it what
        they like.
        """
        before = self._held
        if not self._in_wal:
            self._in_wal = journal_mode(self._connections[0]) == WAL
            return
        other = 0 if before is None else 1 - before
        if self._write_back(other) > HELD_FRAMES:
            self._let_begin_anew()
            return
        self._next_state(other, held=before is not None)
        if before is not None:
            self._end_of_state(before)

    def _next_state(self, which: int, *, held: bool) -> None:
        last, head = self._head, self._show(which)
        if head == last:
            self._settle(which)
        else:
            self._add(last, head, self._root(self._connections[which]), held=held)

    def _settle(self, which: int) -> None:
        self._commits.settle(int(self._connections[which].execute("PRAGMA main.schema_version").fetchone()[0]))

    def _show(self, which: int) -> int:
        """Begin to hold a state; its head."""
        connection = self._connections[which]
        with self._known_ends.looking():
            connection.execute("BEGIN")
            self._held = which
            return self._installation.head(connection)

    def _end_of_state(self, which: int) -> None:
        self._connections[which].execute("COMMIT")

    def _release(self) -> None:
        if self._held is not None:
            self._end_of_state(self._held)
            self._held = None

    def _add(self, last: int, head: int, root: int, *, held: bool) -> int:
        """Take the commits after one number up to another; how many they are."""
        if self._in_wal:
            found = self._commits.between(last, head, root, held=held)
        else:
            found = [(head, False)]
        with self._changed:
            if not self._ends:
                self._start = last
            self._ends.extend(end for end, _ in found)
            self._exact.extend(exact for _, exact in found)
            self._head = head
            self._drop(len(self._ends) - MOST_PIECES)
            self._changed.notify_all()
        return len(found)

    def _drop(self, count: int) -> None:
        if count > 0:
            self._start = self._ends[count - 1]
            del self._ends[:count], self._exact[:count]

    def _root(self, connection: sqlite3.Connection) -> int:
        """The page of `head`; a VACUUM may move it."""
        found = connection.execute(
            "SELECT rootpage FROM main.sqlite_master WHERE name = ?", (self._installation.names.head_name,)
        ).fetchone()
        return int(found[0])

    def _close_connections(self) -> None:
        for connection in self._connections:
            connection.close()
