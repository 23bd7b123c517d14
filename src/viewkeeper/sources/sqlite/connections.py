"""Connections to a database file, and what the driver's errors mean.

    sqlite:///relative/path.db          sqlite:////absolute/path.db

A process that closes a file loses every lock that it has on it, even those of other threads: so nothing here but SQLite
itself ever opens the database or its -shm file.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote as quoted_path
from urllib.parse import unquote, urlsplit

from viewkeeper.errors import BadSourceUrl, SourceError, SourceUnavailable, SourceUnfit, UnknownTable

OLDEST = (3, 37, 0)
BUSY_SECONDS = 10.0
KEPT_CONNECTIONS = 8
_SCHEME = "sqlite"


def quote(name: str) -> str:
    """An identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def database_path(url: str) -> Path:
    """The file that a URL names, from the folder that we are in now."""
    parts = urlsplit(url)
    hint = "write sqlite:///relative/path.db or sqlite:////absolute/path.db"
    if parts.scheme != _SCHEME:
        raise BadSourceUrl(f"this is not a URL of SQLite: it begins with {parts.scheme or 'no scheme'!r}", hint)
    if parts.netloc:
        raise BadSourceUrl("a URL of SQLite has no host: there is something between the second and third slash", hint)
    if parts.query or parts.fragment:
        raise BadSourceUrl(
            "a URL of SQLite has no options", f"{hint}; '?' and '#' in the name of a file are %3F and %23"
        )
    name = unquote(parts.path[1:])
    if not name or name == ":memory:":
        raise BadSourceUrl("only a database in a file can be a source", hint)
    if "\0" in name:
        raise BadSourceUrl("the name of a file cannot hold a NUL character", hint)
    return Path(os.path.abspath(name))


class Database:
    """One database file. Connections are taken and given back; they are used by one thread at a time."""

    def __init__(self, source: str, path: Path) -> None:
        self.source = source
        self.path = path
        if sqlite3.sqlite_version_info < OLDEST:
            raise SourceUnfit(
                f"Python is linked with SQLite {sqlite3.sqlite_version}, and {'.'.join(map(str, OLDEST))} is needed",
                "use a newer Python or a newer libsqlite3",
            )
        self._free: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._closed = False
        self._file = self._identity()

    def _identity(self) -> tuple[int, int]:
        try:
            about = os.stat(self.path)
        except OSError as error:
            raise SourceUnfit(
                f"the database of {self.source} cannot be opened: {self.path}: {error.strerror}",
                "put the file back, or name one that is there and may be read; sqlite:///shop.db is in the current "
                "folder, or in that of viewkeeper.yml if it is named there, and sqlite:////data/shop.db in neither",
            ) from error
        return about.st_dev, about.st_ino

    def same_file(self) -> None:
        """SourceUnavailable if the file that was opened is gone, or another has come in its place."""
        try:
            now = self._identity()
        except SourceUnfit as error:
            raise SourceUnavailable(error.detail, "put the file back") from error
        if now != self._file:
            raise SourceUnavailable(f"the database file of {self.source} was replaced: {self.path}", "open it anew")

    def connect(self, *, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
        """A new connection, outside any transaction; the file must be there."""
        self.same_file()
        with self.explained():
            connection = sqlite3.connect(
                f"file:{quoted_path(str(self.path))}?mode=rw",
                uri=True,
                timeout=busy_seconds,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=64,
            )
            try:
                # Bytes that are no UTF-8 must not end a whole result: they are found when the row is converted.
                connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
                connection.execute("PRAGMA temp_store = MEMORY").close()
                connection.execute("SELECT 1 FROM main.sqlite_master LIMIT 1").fetchall()
            except BaseException:
                connection.close()
                raise
            return connection

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A connection for a while; what goes wrong with it is explained, and it is not used again."""
        self.same_file()
        with self._lock:
            connection = self._free.pop() if self._free else None
        connection = connection or self.connect()
        done = False
        try:
            with self.explained():
                yield connection
                done = not connection.in_transaction
        finally:
            with self._lock:
                keep = done and not self._closed and len(self._free) < KEPT_CONNECTIONS
                if keep:
                    self._free.append(connection)
            if not keep:
                connection.close()

    def let_go(self) -> None:
        """Close what is not in use."""
        with self._lock:
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    def close(self) -> None:
        self._closed = True
        self.let_go()

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what the driver says into what it means for the source."""
        try:
            yield
        except sqlite3.Error as error:
            raise self.explanation(error) from error

    def explanation(self, error: sqlite3.Error) -> SourceError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        what = f"{self.source} ({self.path}): {error}"
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return SourceUnfit(what, "this is not a database of SQLite, or it is damaged: try 'PRAGMA integrity_check'")
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
            return SourceUnfit(what, "let this user write to the database file and to its folder")
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return SourceUnavailable(
                what, f"another connection held its lock for {BUSY_SECONDS:g} seconds: look for an open transaction"
            )
        if code == sqlite3.SQLITE_ERROR:
            return UnknownTable(what, "the table was altered or dropped, or needs a function or collation of its users")
        return SourceUnavailable(what, "look at the disk and at the permissions of the file and its folder")


@contextmanager
def reading_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """One state of the database for everything that is read inside."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        with suppress(sqlite3.Error):  # what was read is read; a connection with a transaction left is not used again
            connection.execute("COMMIT")
