"""Connections to one server, and its errors in our words.

    mariadb://user:password@host:port/database?unix_socket=/path&ssl_ca=/path

No error of the driver leaves this package, and no password is ever in one of ours.
"""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pymysql
from pymysql.connections import Connection
from pymysql.converters import encoders

from viewkeeper.errors import BadSourceUrl, SourceError, SourceUnavailable, SourceUnfit, UnknownTable

SCHEMES = ("mariadb", "mysql")
OPTIONS = ("unix_socket", "ssl_ca")
CONNECT_TIMEOUT = 10
IDLE = 8
"""Connections that are kept open for the next reading."""

SESSION = (
    # The same text for the same value, whatever the server's settings are.
    "SET SESSION time_zone = '+00:00', sql_mode = '', net_write_timeout = 3600, "
    "transaction_isolation = 'REPEATABLE-READ'"
)
SESSION_BEFORE_11 = SESSION.replace("transaction_isolation", "tx_isolation")

DENIED = {1044, 1045, 1142, 1143, 1227, 1251, 1698, 1820, 1862, 3118, 3159}
UNKNOWN_DATABASE = 1049
UNKNOWN_TABLE = {1051, 1146}
UNKNOWN_VARIABLE = 1193


@dataclass(frozen=True)
class Server:
    """Where a source is, and who asks."""

    source: str
    host: str
    port: int
    user: str
    database: str
    password: str = field(repr=False)
    options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, source: str, url: str) -> "Server":
        form = "write mariadb://user:password@host:3306/database, with %40 for an @ in a password"
        try:
            parts = urlsplit(url)
            port = parts.port or 3306
            options = parse_qs(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        except ValueError:
            # The reason of a parser could quote the password.
            raise BadSourceUrl(f"the URL of {source} cannot be read", form) from None
        if parts.scheme not in SCHEMES:
            raise BadSourceUrl(f"the URL of {source} does not begin with mariadb:// or mysql://", form)
        database = unquote(parts.path.removeprefix("/"))
        if not database or "/" in database:
            raise BadSourceUrl(f"the URL of {source} names no database", form)
        if parts.username is None:
            raise BadSourceUrl(f"the URL of {source} names no user", form)
        for option, values in options.items():
            if option not in OPTIONS or len(values) > 1 or not values[0]:
                raise BadSourceUrl(
                    f"the URL of {source} has an option {option!r} that means nothing",
                    f"the options are {' and '.join(OPTIONS)}, each once",
                )
        return cls(
            source,
            parts.hostname or "localhost",
            port,
            unquote(parts.username),
            database,
            unquote(parts.password or ""),
            {option: values[0] for option, values in options.items()},
        )

    @property
    def settings(self) -> dict[str, Any]:
        """What the driver wants to know."""
        settings: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "database": self.database,
            "charset": "utf8mb4",
            "autocommit": True,
            "connect_timeout": CONNECT_TIMEOUT,
        }
        if "unix_socket" in self.options:
            settings["unix_socket"] = self.options["unix_socket"]
        if "ssl_ca" in self.options:
            settings["ssl"] = {"ca": self.options["ssl_ca"]}
        return settings

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Errors of the driver, as ours."""
        try:
            yield
        except (pymysql.Error, OSError, struct.error) as error:
            raise self.translated(error) from None

    def translated(self, error: BaseException) -> SourceError:
        """What happened, where, and whether trying again makes sense."""
        number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        text = str(error.args[1]) if len(error.args) > 1 else str(error)
        if self.password:
            text = text.replace(self.password, "***")
        what = f"{self.source}: {text}"
        if isinstance(error, pymysql.Error):
            if number in DENIED:
                return SourceUnfit(what, "check user and password in the URL, and the grants of that user (doctor)")
            if number == UNKNOWN_DATABASE:
                return BadSourceUrl(what, "name a database that is there")
            if number in UNKNOWN_TABLE:
                return UnknownTable(what, "name tables that are there")
            if not isinstance(error, pymysql.OperationalError | pymysql.InterfaceError):
                return SourceError(what)
        return SourceUnavailable(
            what, "see whether the server runs and accepts connections, and whether host and port of the URL are right"
        )

    def opened(self, factory: type[Connection], **settings: Any) -> Any:
        """A bare connection. Over a unix socket it is opened here: the driver would not close it if that failed."""
        connection = factory(**settings, defer_connect=True)
        path = settings.get("unix_socket")
        if path is None:
            connection.connect()
            return connection
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            channel.settimeout(CONNECT_TIMEOUT)
            channel.connect(path)
        except BaseException:
            channel.close()
            raise
        connection._secure = True
        connection.connect(channel)
        return connection

    def connect(self, factory: type[Connection] = Connection, **more: Any) -> Any:
        """A new connection whose session is set up; values come back as text or bytes, just as the server sent them."""
        with self.errors():
            connection = self.opened(factory, **{**self.settings, "conv": encoders, **more})
            try:
                try:
                    run(connection, SESSION)
                except pymysql.Error as error:
                    if error.args[0] != UNKNOWN_VARIABLE:
                        raise
                    run(connection, SESSION_BEFORE_11)
            except BaseException:
                connection.close()
                raise
            return connection


def run(connection: Any, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return list(cursor.fetchall())


class Pool:
    """Connections for readings: each is used by one thread at a time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._idle: list[Any] = []
        self._lock = Lock()
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """A connection outside of any transaction; one on which something failed is not used again."""
        connection = self._take()
        healthy = False
        try:
            with self._server.errors():
                yield connection
                if connection.open:
                    run(connection, "ROLLBACK")
                    healthy = True
        finally:
            with self._lock:
                keep = healthy and not self._closed and len(self._idle) < IDLE
                if keep:
                    self._idle.append(connection)
            if not keep:
                drop(connection)

    def _take(self) -> Any:
        while True:
            with self._lock:
                if not self._idle:
                    break
                connection = self._idle.pop()
            try:
                connection.ping(reconnect=False)
                return connection
            except (pymysql.Error, OSError):
                drop(connection)
        return self._server.connect()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            drop(connection)


def drop(connection: Any) -> None:
    """Close a connection, whatever state it is in."""
    # Not close(): that says goodbye, and would first read the rest of an unbuffered result.
    connection._force_close()


def quoted(name: str) -> str:
    """An identifier in a statement."""
    return "`" + name.replace("`", "``") + "`"
