"""Connections to a PostgreSQL server, and its errors as ours.

The sessions of the stream and of readings pin the settings on which the text of a value depends. Credentials stay
here: no error repeats a URL or a password, and no error of the driver leaves the plugin.
"""

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import errors as pg_errors
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.string import TextLoader

from viewkeeper.clock import monotonic
from viewkeeper.errors import BadSourceUrl, SourceError, SourceUnavailable, SourceUnfit

Connection = psycopg.Connection[Any]

# What the text of a value depends on.
_TEXT_FORMS = {
    "timezone": "UTC",
    "datestyle": "ISO,YMD",
    "intervalstyle": "iso_8601",
    "bytea_output": "hex",
    "extra_float_digits": "1",
}
# What a role or a database may have set otherwise, and would cut a reading short or falsify it.
_SESSION = {
    **_TEXT_FORMS,
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "lock_timeout": "10s",
    # An error instead of rows that are left out silently.
    "row_security": "off",
    "default_transaction_read_only": "off",
    # Whole results are read, so the plan for the whole is the best one.
    "cursor_tuple_fraction": "1",
    "jit": "off",
    # Our own marks in the WAL need to be on this disk, not on a standby.
    "synchronous_commit": "local",
}
# A consumer may take its time over a batch.
_REPLICATION = {**_TEXT_FORMS, "wal_sender_timeout": "10min"}

_DEFAULTS = {
    "connect_timeout": "10",
    "application_name": "viewkeeper",
    # A peer that vanished without a word is noticed within half a minute.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
}

_IDLE_CHECK = 1.0
"""Seconds after which a connection is tried before it is used again."""

# libpq gives no SQLSTATE when a connection is refused, only text.
_NO_RETRY = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|(role|database) \"[^\"]*\" does not exist"
    r"|permission denied for database|is not permitted to log in|must be superuser or replication role"
    r"|permission denied to start WAL sender|invalid port number",
)


def _raw_adapters() -> AdaptersMap:
    """Every value as the text that the server sends."""
    raw = AdaptersMap(psycopg.adapters)
    for info in psycopg.adapters.types:
        for oid in (info.oid, info.array_oid):
            if oid:
                raw.register_loader(oid, TextLoader)
    return raw


RAW = _raw_adapters()


class Connections:
    """The connections of one source: a pool of plain ones, a pool of those that give raw text."""

    def __init__(self, source: str, url: str) -> None:
        self._source = source
        self._parameters = _parsed(source, url)
        self._secrets = _secrets(self._parameters)
        self._lock = threading.Lock()
        self._idle: dict[bool, list[tuple[Connection, float]]] = {False: [], True: []}
        self._closed = False

    @property
    def database(self) -> str:
        return str(self._parameters.get("dbname", ""))

    # --- borrowing ---

    @contextmanager
    def plain(self) -> Iterator[Connection]:
        """A connection in autocommit mode, with the driver's own values."""
        with self._borrowed(raw=False) as connection:
            yield connection

    @contextmanager
    def raw(self) -> Iterator[Connection]:
        """A connection in autocommit mode that gives every value as text."""
        with self._borrowed(raw=True) as connection:
            yield connection

    @contextmanager
    def _borrowed(self, *, raw: bool) -> Iterator[Connection]:
        connection = self._take(raw)
        try:
            with self.translated():
                yield connection
        except BaseException:
            # Its state is unknown, and the others may have lost their server as well.
            _closed(connection)
            self._drop_idle()
            raise
        if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            _closed(connection)
            return
        with self._lock:
            if not self._closed:
                self._idle[raw].append((connection, monotonic()))
                return
        _closed(connection)

    def _take(self, raw: bool) -> Connection:
        while True:
            with self._lock:
                if not self._idle[raw]:
                    break
                connection, since = self._idle[raw].pop()
            if monotonic() - since < _IDLE_CHECK:
                return connection
            try:
                connection.execute("")
                return connection
            except psycopg.Error:
                _closed(connection)
        return self._connected(_SESSION, context=RAW if raw else None)

    def replication(self) -> Connection:
        """A new connection that speaks the replication protocol."""
        return self._connected(_REPLICATION, replication="database")

    def _connected(self, settings: Mapping[str, str], **more: Any) -> Connection:
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        given = {**self._parameters, "client_encoding": "UTF8"}
        given["options"] = f"{given.get('options') or ''} {options}".strip()
        with self.translated():
            # Without prepared statements: the same text may have other types later, and poolers do not keep them.
            return psycopg.Connection.connect(autocommit=True, prepare_threshold=None, **given, **more)

    def _drop_idle(self) -> None:
        with self._lock:
            dropped = [connection for pool in self._idle.values() for connection, _ in pool]
            for pool in self._idle.values():
                pool.clear()
        for connection in dropped:
            _closed(connection)

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._drop_idle()

    # --- errors ---

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Errors of the driver as errors of a source."""
        try:
            yield
        except psycopg.Error as error:
            raise self.as_ours(error) from None
        except OSError as error:
            raise SourceUnavailable(f"{self._source}: {self.without_secrets(str(error))}") from None

    def as_ours(self, error: psycopg.Error) -> SourceError:
        text = self.without_secrets(str(error).strip())
        what = f"{self._source}: {text}"
        state = error.sqlstate or ""
        if isinstance(error, pg_errors.InsufficientPrivilege):
            return SourceUnfit(what, "`doctor` says which privileges are missing")
        if isinstance(error, pg_errors.LockNotAvailable):
            return SourceUnavailable(what, "a table is locked by another session for long: see pg_stat_activity")
        if isinstance(error, pg_errors.UndefinedTable | pg_errors.UndefinedColumn):
            return SourceUnfit(what, "the table was altered: open the source again and reload the views over it")
        if not state and isinstance(error, psycopg.OperationalError) and _NO_RETRY.search(text):
            return SourceUnfit(what, "correct the URL of the source, or the server's roles and pg_hba.conf")
        transient = state[:2] in ("", "08", "40", "53", "57", "58") or state in ("55006", "55P03")
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and transient:
            return SourceUnavailable(
                what,
                "see whether the server runs and accepts connections, and whether host and port of the URL are right",
            )
        return SourceError(what)

    def without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def _parsed(source: str, url: str) -> dict[str, Any]:
    hint = "postgresql://user:password@host:port/database, or postgresql:///database?host=/folder/of/the/socket"
    if not url.startswith(("postgresql://", "postgres://")):
        raise BadSourceUrl(f"the URL of {source} does not begin with postgresql://", hint)
    try:
        parameters: dict[str, Any] = conninfo_to_dict(url)
    except (psycopg.Error, UnicodeError):
        # The driver's message repeats the URL.
        raise BadSourceUrl(
            f"the URL of {source} cannot be read, or has an option that libpq does not know", hint
        ) from None
    return {**_DEFAULTS, **parameters}


def _secrets(parameters: Mapping[str, Any]) -> list[str]:
    secrets = {str(parameters[name]) for name in ("password", "sslpassword") if parameters.get(name)}
    return sorted(secrets | {quote(secret, safe="") for secret in secrets}, key=len, reverse=True)


def _closed(connection: Connection) -> None:
    with suppress(psycopg.Error):
        connection.close()
