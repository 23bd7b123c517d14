"""What capture needs at a server, what is missing, and the statements that fix it.

Settings that a running server can change are set by `install`, if the user may; what they were is kept in a table of
ours in the user's database, and `remove` puts it back.
"""

import re
from collections.abc import Iterator
from typing import Any

import pymysql

from viewkeeper.errors import SourceUnavailable, SourceUnfit
from viewkeeper.sources.base import GLOBAL_TX, Finding
from viewkeeper.sources.layout import VIEW
from viewkeeper.sources.mysql.catalog import OWN_PREFIX, Catalog, uncapturable
from viewkeeper.sources.mysql.connections import Server, quoted, run
from viewkeeper.sources.mysql.readings import log_status

NEEDED = {"binlog_format": "ROW", "binlog_row_image": "FULL", "binlog_row_metadata": "FULL"}
"""Settings that a running server can change; each for the sessions that begin afterwards."""

UNREADABLE = {"log_bin_compress": "OFF", "binlog_transaction_compression": "OFF"}
"""Settings that write what cannot be read here; MariaDB has one, MySQL the other."""

SHORT = 86_400
"""Seconds of log below which a source that rests for a day loses its place."""

EVERYTHING = "ALL PRIVILEGES"


class Doctor:
    """Looks at one server; `identity` names what is ours there."""

    def __init__(self, server: Server, catalog: Catalog, mariadb: bool, identity: str) -> None:
        self._server, self._catalog, self._mariadb = server, catalog, mariadb
        self._kept = quoted(OWN_PREFIX + re.sub(r"\W", "_", identity)[:40])

    def findings(self, connection: Any) -> list[Finding]:
        return [
            *self._log(connection),
            *self._settings(connection),
            *self._grants(connection),
            *self._filters(connection),
            *self._tables(connection),
            *self._keeping(connection),
        ]

    def obstacles(self, connection: Any) -> list[Finding]:
        """What `install` cannot fix. Whether the user may set what it sets is found when it does."""
        looks = (self._log, self._grants, self._filters, self._tables)
        return [finding for look in looks for finding in look(connection) if finding.fatal]

    def _log(self, connection: Any) -> Iterator[Finding]:
        if variable(connection, "log_bin") in (None, "OFF", "0"):
            yield Finding(
                "the server writes no binary log",
                "in the server's option file, under [mysqld]: log_bin = binlog, server_id = 1; then restart it",
            )
        if not self._mariadb and variable(connection, "gtid_mode") != "ON":
            yield Finding(
                "gtid_mode is not ON: MySQL then does not show which transactions are committed",
                "SET PERSIST enforce_gtid_consistency = ON, and gtid_mode = OFF_PERMISSIVE, ON_PERMISSIVE, ON in turn",
            )

    def _settings(self, connection: Any) -> Iterator[Finding]:
        for name, wanted in NEEDED.items():
            value = variable(connection, name)
            if value is None:
                yield Finding(f"the server has no {name}", "use MariaDB 10.5 or MySQL 8.0, or later ones")
            elif value.upper() != wanted:
                yield Finding(
                    f"{name} is {value}",
                    f"SET GLOBAL {name} = {wanted} (and {name} = {wanted} in the server's option file)",
                )
        for name, wanted in UNREADABLE.items():
            value = variable(connection, name)
            if value not in (None, wanted, "0"):
                yield Finding(f"{name} is {value}: compressed events cannot be read", f"SET GLOBAL {name} = {wanted}")

    def _grants(self, connection: Any) -> Iterator[Finding]:
        texts = [str(grant).upper() for (grant,) in run(connection, "SHOW GRANTS")]
        everywhere = " ".join(text.split(" TO ")[0] for text in texts if " ON *.* " in text)
        if EVERYTHING not in everywhere:
            monitor = ("BINLOG MONITOR",) if self._mariadb else ("REPLICATION CLIENT",)
            for privilege in ("REPLICATION SLAVE", *monitor):
                if privilege not in everywhere:
                    yield Finding(
                        f"the user {self._server.user} has no {privilege}",
                        f"GRANT {privilege} ON *.* TO {quoted(self._server.user)}",
                    )
        for (database, table), captured in self._catalog.by_place.items():
            place = f"{quoted(database)}.{quoted(table)}"
            try:
                run(connection, f"SELECT * FROM {place} LIMIT 0")
            except pymysql.Error:
                yield Finding(
                    f"the user {self._server.user} may not read {database}.{table}, or it is gone",
                    f"GRANT SELECT ON {place} TO {quoted(self._server.user)}",
                    relations=self._alone(captured.relation.name),
                )

    def _alone(self, relation: str) -> tuple[str, ...]:
        """global_tx is needed by all."""
        return () if relation.endswith(f".{GLOBAL_TX}") else (relation,)

    def _filters(self, connection: Any) -> Iterator[Finding]:
        try:
            status = log_status(connection, self._server)
        except (pymysql.Error, SourceUnavailable):
            # Told above: there is no log, or it may not be looked at.
            return
        only, never = (set(str(names or "").split(",")) - {""} for names in status[2:4])
        for database in self._catalog.databases:
            if (only and database not in only) or database in never:
                yield Finding(
                    f"the binary log leaves out the database {database}",
                    "take binlog_do_db and binlog_ignore_db out of the server's option file, and restart it",
                )
        updates = ("log_slave_updates", "log_replica_updates")
        if any(variable(connection, name) == "OFF" for name in updates) and self._is_replica(connection):
            yield Finding(
                "log_slave_updates is OFF, and this server is a replica: its log lacks what it receives",
                "in its option file: log_slave_updates = ON; or name the primary in the URL",
                fatal=False,
            )

    def _is_replica(self, connection: Any) -> bool:
        """Whether the server follows another one; who may not ask for more is told whether it does now."""
        for statement in ("SHOW ALL SLAVES STATUS",) if self._mariadb else ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS"):
            try:
                return bool(run(connection, statement))
            except pymysql.Error:
                continue
        running = run(connection, "SHOW GLOBAL STATUS LIKE 'Slave\\_running'")
        return bool(running) and str(running[0][1]).upper() == "ON"

    def _tables(self, connection: Any) -> Iterator[Finding]:
        for place, captured in self._catalog.by_place.items():
            rows = run(
                connection,
                "SELECT engine FROM information_schema.tables WHERE table_schema = %s AND table_name = %s",
                *place,
            )
            reason = uncapturable(connection, place, rows[0][0], self._server.user) if rows else None
            if reason is not None:
                what = f"{place[0]}.{place[1]} {reason[0]}"
                yield Finding(what, reason[1], relations=self._alone(captured.relation.name))

    def _keeping(self, connection: Any) -> Iterator[Finding]:
        seconds = float(variable(connection, "binlog_expire_logs_seconds") or 0)
        seconds = seconds or 86_400 * float(variable(connection, "expire_logs_days") or 0)
        if 0 < seconds < SHORT:
            yield Finding(
                f"the server keeps its binary log for {seconds:g} seconds: a warehouse that rests longer must reload",
                f"SET GLOBAL binlog_expire_logs_seconds = {7 * SHORT}",
                fatal=False,
            )
        if variable(connection, "sync_binlog") != "1":
            yield Finding(
                "sync_binlog is not 1: after a crash of its machine the server may lack what a view already shows",
                "SET GLOBAL sync_binlog = 1",
                fatal=False,
            )

    # --- what is installed ---

    def install(self, connection: Any) -> None:
        """Set what can be set; SourceUnfit with the statements if something is missing then."""
        changed = {
            name: value
            for name, wanted in {**NEEDED, **UNREADABLE}.items()
            if (value := variable(connection, name)) is not None and value.upper() != wanted
        }
        if changed:
            try:
                # First kept, then changed: whatever happens in between, it can be put back.
                run(
                    connection,
                    f"CREATE TABLE IF NOT EXISTS {self._kept} (name VARCHAR(64) PRIMARY KEY, value VARCHAR(64))",
                )
                for name, value in changed.items():
                    run(connection, f"INSERT IGNORE INTO {self._kept} VALUES (%s, %s)", name, value)
                    run(connection, f"SET GLOBAL {name} = {NEEDED.get(name) or UNREADABLE[name]}")
            except pymysql.Error:
                self._forget_what_did_not_change(connection)
        self.check(connection)

    def check(self, connection: Any) -> None:
        """SourceUnfit, with everything that is missing for all tables."""
        missing = [finding for finding in self.findings(connection) if finding.fatal and not finding.relations]
        if missing:
            raise SourceUnfit(
                f"{self._server.source}: " + "; ".join(finding.what for finding in missing),
                "; ".join(finding.fix for finding in missing),
            )

    def unfit_tables(self, connection: Any) -> dict[str, str]:
        """The relations of which the log does not have all changes, or that cannot be read, and what fixes it."""
        return {
            relation: f"{finding.what}; run {finding.fix}, then 'viewkeeper reload {VIEW}'"
            for finding in (*self._grants(connection), *self._tables(connection))
            for relation in finding.relations
            if finding.fatal
        }

    def _forget_what_did_not_change(self, connection: Any) -> None:
        try:
            for name, value in run(connection, f"SELECT name, value FROM {self._kept}"):
                if variable(connection, name) == value:
                    run(connection, f"DELETE FROM {self._kept} WHERE name = %s", name)
            if not run(connection, f"SELECT 1 FROM {self._kept} LIMIT 1"):
                run(connection, f"DROP TABLE {self._kept}")
        except pymysql.Error:
            # There is no such table: it could not even be made.
            return

    def remove(self, connection: Any) -> list[str]:
        """Put settings back; the statements for what may not be put back."""
        rows = run(
            connection,
            "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s",
            self._server.database,
            self._kept.strip("`"),
        )
        if not rows:
            return []
        left = []
        for name, value in run(connection, f"SELECT name, value FROM {self._kept} ORDER BY name"):
            if variable(connection, name) in (NEEDED.get(name), UNREADABLE.get(name)):
                statement = f"SET GLOBAL {name} = {value}"
                try:
                    run(connection, statement)
                except pymysql.Error:
                    left.append(statement)
        statement = f"DROP TABLE {quoted(self._server.database)}.{self._kept}"
        try:
            run(connection, statement)
        except pymysql.Error:
            left.append(statement)
        return left


def variable(connection: Any, name: str) -> str | None:
    """A setting of the server, None if it has no such."""
    rows = run(connection, "SHOW GLOBAL VARIABLES LIKE %s", name.replace("_", "\\_"))
    return str(rows[0][1]) if rows else None
