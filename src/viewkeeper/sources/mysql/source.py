"""MariaDB and MySQL: `mariadb://user:password@host:port/database`, or mysql:// (the server itself says which it is)."""

import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any

from viewkeeper.errors import PositionLost
from viewkeeper.messages import Fetch, Position
from viewkeeper.sources.base import GLOBAL_TX, Batch, Disruption, Finding, Reading, Request, Source
from viewkeeper.sources.mysql.binlog import BinlogStream, Start
from viewkeeper.sources.mysql.catalog import Catalog
from viewkeeper.sources.mysql.connections import Server, drop, run
from viewkeeper.sources.mysql.doctor import Doctor
from viewkeeper.sources.mysql.history import History
from viewkeeper.sources.mysql.places import number_of, split
from viewkeeper.sources.mysql.readings import Readings, end_of_log, visible_place
from viewkeeper.sql.relation import Relation


class MySqlSource(Source):
    """One database of a MariaDB or MySQL server."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self.name = request.name
        self._server = Server.of(request.name, request.url)
        self._identity = f"{request.identity}_{request.name}"
        with self._connection() as connection:
            ((version,),) = run(connection, "SELECT VERSION()")
            self.mariadb = "mariadb" in version.lower()
            self._catalog = Catalog.of(self._server, connection, request, self.mariadb)
        self.relations = {
            name: captured.relation
            for name, captured in self._catalog.by_name.items()
            if name != f"{request.name}.{GLOBAL_TX}"
        }
        self.global_transactions = f"{request.name}.{GLOBAL_TX}" in self._catalog.by_name
        self._history = History()
        self.readings = Readings(self._server, self._catalog.by_name, self.mariadb, self._history, self.wait_for_stream)
        self._doctor = Doctor(self._server, self._catalog, self.mariadb, self._identity)

    @property
    def found(self) -> Mapping[str, Relation]:
        return {name: self._catalog.by_name[name].found for name in self.relations}

    def __repr__(self) -> str:
        return f"MySqlSource({self.name!r}, {self._server.database!r} at {self._server.host})"

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        connection = self._server.connect()
        try:
            with self._server.errors():
                yield connection
        finally:
            drop(connection)

    def doctor(self) -> list[Finding]:
        with self._connection() as connection:
            return self._doctor.findings(connection)

    def obstacles(self) -> list[Finding]:
        with self._connection() as connection:
            return self._doctor.obstacles(connection)

    def install(self) -> None:
        with self._connection() as connection:
            self._doctor.install(connection)

    def remove(self) -> list[str]:
        with self._connection() as connection:
            return self._doctor.remove(connection)

    def estimated_rows(self, relation: str) -> int | None:
        """What the statistics of the server say."""
        schema, table = self._catalog.by_name[relation].place
        with self._connection() as connection:
            found = run(
                connection,
                "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
                schema,
                table,
            )
        return int(found[0][0]) if found and found[0][0] is not None else None

    def end(self) -> Position:
        with self._connection() as connection:
            return end_of_log(connection, self._server)

    def transactions(self, after: Position | None, stop: threading.Event) -> Iterator[Batch]:
        """The stream behind a position; None is the end of the log as it is now, for the log itself is the capture."""
        with self._connection() as connection:
            self._doctor.check(connection)
            after, begin = self._beginning(connection, after)
            # Looked at behind the place where the stream begins: what was altered before it is not in the stream.
            unfit = self._doctor.unfit_tables(connection)
            start = self._start(connection, begin)
        self._history.begin(begin)
        self.stream_starts(begin)
        with closing(BinlogStream(self._server, self._catalog, self.mariadb, self._server_id(), start)) as stream:
            begun = False
            told = [Disruption(relation, after, reason, standing=True) for relation, reason in unfit.items()]
            if told:
                yield Batch(told, after)
            for batch in stream.batches(stop):
                self._history.add(stream.passed)
                self.passed(batch.upto)
                if batch.upto > after or (batch.upto == after and not begun):
                    begun = True
                    yield Batch(tuple(event for event in batch.events if event.position > after), batch.upto)

    def _beginning(self, connection: Any, after: Position | None) -> tuple[Position, Position]:
        """Where the stream is told from, and where it is read from.

        A reading looks at what was committed since its `lower`, which on a server at rest is before the end of the
        log: so the stream is read from there.
        """
        end = end_of_log(connection, self._server)
        if after is None:
            after = end
        if after > end:
            raise PositionLost(
                f"{self.name} has no position {after}: its binary log ends at {end}, so it was reset",
                "reload the views of this source",
            )
        begin = min(after, visible_place(connection)) if self.mariadb else after
        return after, begin

    def _start(self, connection: Any, begin: Position) -> Start:
        number, offset = split(begin)
        files = {number_of(row[0]): str(row[0]) for row in run(connection, "SHOW BINARY LOGS")}
        gone = PositionLost(
            f"{self.name} no longer has the changes after {begin}: its binary log begins with file {min(files)}",
            "reload the views of this source, and let the server keep its logs longer (binlog_expire_logs_seconds)",
        )
        if number not in files:
            raise gone
        if not self.mariadb:
            return Start(files[number], offset, None)
        # To the library a file and an offset mean nothing with MariaDB.
        ((gtid,),) = run(connection, "SELECT BINLOG_GTID_POS(%s, %s)", files[number], offset)
        if gtid is None:
            raise gone
        return Start(files[number], offset, gtid)

    def _server_id(self) -> int:
        """A number of our own among the replicas: a server ends the stream of another replica with the same."""
        return zlib.crc32(self._identity.encode()) | 1 << 31

    def reading(self, fetches: Sequence[Fetch]) -> AbstractContextManager[Reading]:
        return self.readings.reading(fetches)

    def acknowledge(self, position: Position) -> None:
        """Nothing: the log is the server's own, and it is kept as long as the server was told to."""

    def close(self) -> None:
        self.readings.close()
