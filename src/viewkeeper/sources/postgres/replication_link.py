"""The replication protocol over one connection: changes come in, what is stored durably goes back.

    w  data                k  keepalive with the place that the server has sent up to
    r  status              "everything before this place is stored": only what was acknowledged

The server sends a keepalive whenever it has caught up and our status is behind, so the place advances on an idle or
otherwise busy server too. It can be asked for at any time.
"""

import selectors
import struct
from collections.abc import Iterator
from contextlib import suppress

import psycopg
from psycopg import pq, sql

from viewkeeper.clock import monotonic
from viewkeeper.errors import PositionLost, SourceUnavailable, SourceUnfit
from viewkeeper.sources.postgres.bell import Bell
from viewkeeper.sources.postgres.connections import Connections

_KEEPALIVE = struct.Struct(">QqB")
_STATUS = struct.Struct(">cQQQqB")
_DATA_HEADER = 25
_DATA, _ALIVE = b"wk"

_SILENCE = 30.0
"""Seconds without a word from the server, though it was asked, after which it is given up."""
_ASK_AFTER = 10.0
"""Seconds without a word after which it is asked."""
_STOPPING = 10
"""So many requests for a reply within a second come only from a server that shuts down. It would wait until all is
stored durably; so we leave."""


class ReplicationLink:
    """START_REPLICATION of a slot, whose publication has the same name.

    `sent` is the place up to which everything has been received.
    """

    def __init__(self, connections: Connections, source: str, slot: str) -> None:
        self._connections, self._source, self._slot = connections, source, slot
        self._connection = connections.replication()
        self._pg = self._connection.pgconn
        self.sent = 0
        self.flushed = 0
        """the place that was confirmed last"""
        self._heard = monotonic()
        self._asked: float | None = None
        self._requests: list[float] = []
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        command = sql.SQL("START_REPLICATION SLOT {} LOGICAL 0/0 (proto_version '1', publication_names {})").format(
            sql.Identifier(self._slot), sql.Literal(sql.Identifier(self._slot).as_string())
        )
        with self._connections.translated():
            result = self._pg.exec_(command.as_bytes(self._connection))
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise self._refused(result)
        self._pg.nonblocking = 1

    def _refused(self, result: pq.abc.PGresult) -> Exception:
        state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
        raw = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or self._pg.error_message
        message = f"{self._source}: {self._connections.without_secrets(raw.decode(errors='replace').strip())}"
        if state == "55006":
            return SourceUnavailable(message, "another session follows this slot; it may be our own, about to end")
        if state in ("55000", "58P01") or "has already been removed" in message:
            return PositionLost(message, "install the source again and reload the views over it")
        if state in ("42704", "42501"):
            return SourceUnfit(message, "`doctor` says what is missing")
        return SourceUnavailable(message)

    def receive(self, timeout: float, bell: Bell) -> Iterator[bytes]:
        """The payloads that have come, after waiting for the first one or for the bell."""
        with self._connections.translated():
            if (message := self._next()) is None:
                self._wait(timeout, bell)
                self._pg.consume_input()
                message = self._next()
            if message is not None:
                self._heard, self._asked = monotonic(), None
            while message is not None:
                if message[0] == _DATA:
                    yield message[_DATA_HEADER:]
                elif message[0] == _ALIVE:
                    self._keepalive(message)
                message = self._next()
        self._check_silence()

    def _next(self) -> bytes | None:
        length, data = self._pg.get_copy_data(1)
        if length == 0:
            return None
        if length < 0:
            raise self._ended()
        return bytes(data)

    def _ended(self) -> Exception:
        result = self._pg.get_result()
        if result is not None and result.status == pq.ExecStatus.FATAL_ERROR:
            return self._refused(result)
        return SourceUnavailable(f"{self._source}: the server ended the stream")

    def _wait(self, timeout: float, bell: Bell) -> None:
        if bell.closed or self._pg.socket < 0:
            raise SourceUnavailable(f"{self._source}: the connection is closed")
        with selectors.DefaultSelector() as selector:
            selector.register(self._pg.socket, selectors.EVENT_READ)
            selector.register(bell.heard, selectors.EVENT_READ)
            selector.select(timeout)
        bell.silence()

    def _keepalive(self, message: bytes) -> None:
        sent, _, reply = _KEEPALIVE.unpack_from(message, 1)
        self.sent = max(self.sent, sent)
        if not reply:
            return
        now = monotonic()
        self._requests = [*(asked for asked in self._requests if now - asked < 1), now]
        if len(self._requests) >= _STOPPING:
            raise SourceUnavailable(f"{self._source}: the server is shutting down", "it is tried again")
        self._status(ask=False)

    def _check_silence(self) -> None:
        now = monotonic()
        if self._asked is not None and now - self._asked > _SILENCE:
            raise SourceUnavailable(f"{self._source}: the server has been silent for {_SILENCE:g} seconds")
        if self._asked is None and now - self._heard > _ASK_AFTER:
            self.ask()

    def ask(self) -> None:
        """Have the server say how far it has come."""
        with self._connections.translated():
            self._asked = self._asked or monotonic()
            self._status(ask=True)

    def confirm(self, lsn: int) -> None:
        """Everything before this place is stored durably."""
        if lsn > self.flushed:
            self.flushed = lsn
            with self._connections.translated():
                self._status(ask=False)

    def _status(self, *, ask: bool) -> None:
        self._pg.put_copy_data(_STATUS.pack(b"r", self.flushed, self.flushed, 0, 0, ask))
        self._pg.flush()

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._connection.close()
