"""What is missing or risky for capture at a server, each with the statement that mends it."""

from collections.abc import Iterator

from psycopg import sql

from viewkeeper.sources.base import Finding
from viewkeeper.sources.postgres.catalog import Table, Tables
from viewkeeper.sources.postgres.connections import Connection
from viewkeeper.sources.postgres.watch import published_among

OLDEST = 130000
"""pg_current_snapshot() came with PostgreSQL 13."""


def findings(connection: Connection, tables: Tables, name: str) -> list[Finding]:
    """Of the server, of the tables, then of what `install` makes."""
    return [*_server(connection, name), *_tables(connection, tables, name), *_objects(connection, tables, name)]


def missing(connection: Connection, tables: Tables, name: str) -> list[Finding]:
    """What keeps capture from working."""
    return [finding for finding in findings(connection, tables, name) if finding.fatal]


def _text(statement: sql.Composable) -> str:
    return statement.as_string()


def _server(connection: Connection, name: str) -> Iterator[Finding]:
    row = connection.execute(
        "SELECT pg_is_in_recovery(), current_setting('wal_level'), current_setting('max_replication_slots')::int,"
        " current_setting('max_wal_senders')::int, current_setting('server_encoding'),"
        " current_setting('max_slot_wal_keep_size'), (SELECT count(*) FROM pg_replication_slots),"
        " (SELECT count(*) FROM pg_stat_replication), current_user,"
        " (SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user),"
        " EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = %s)",
        (name,),
    ).fetchone()
    assert row is not None, "a SELECT without FROM has one row"
    standby, level, slots, senders, encoding, keep, slots_used, senders_used, user, may_replicate, exists = row
    if connection.info.server_version < OLDEST:
        version = connection.info.server_version // 10000
        yield Finding(f"the server is PostgreSQL {version}", "upgrade it to PostgreSQL 13 or later")
    if standby:
        yield Finding(
            "the server is a standby, whose snapshots do not tell which transactions are running",
            "give the URL of the primary, or add target_session_attrs=read-write to it",
        )
    if level != "logical":
        yield Finding(f"wal_level is {level}", "ALTER SYSTEM SET wal_level = 'logical', then restart the server")
    if not exists and slots_used >= slots:
        yield Finding(
            f"all {slots} replication slots are in use",
            f"ALTER SYSTEM SET max_replication_slots = {slots + 5}, then restart the server; or drop an idle one",
        )
    if senders_used >= senders:
        yield Finding(
            f"all {senders} WAL senders are in use",
            f"ALTER SYSTEM SET max_wal_senders = {senders + 5}, then restart the server",
        )
    if not may_replicate:
        yield Finding(
            f"the role {user} may not replicate",
            _text(sql.SQL("ALTER ROLE {} REPLICATION").format(sql.Identifier(user))),
        )
    if encoding == "SQL_ASCII":
        yield Finding(
            "the database has the encoding SQL_ASCII, so that its texts may be anything",
            "make a database with the encoding UTF8 and move the tables there",
        )
    if keep == "-1":
        yield Finding(
            "max_slot_wal_keep_size is not set: if viewkeeper is away for long, kept WAL can fill the server's disk",
            "ALTER SYSTEM SET max_slot_wal_keep_size = '10GB', then SELECT pg_reload_conf()",
            fatal=False,
        )


def _tables(connection: Connection, tables: Tables, name: str) -> Iterator[Finding]:
    published = published_among(connection, tables.all(), name)
    rows = connection.execute(
        "SELECT c.oid::int8, current_user, has_table_privilege(c.oid, 'SELECT'),"
        " pg_has_role(c.relowner, 'USAGE'), pg_get_userbyid(c.relowner), c.relreplident::text"
        " FROM pg_class c WHERE c.oid = ANY (%s::int8[]::oid[])",
        ([table.oid for table in tables.all()],),
    )
    privileges = {row[0]: row[1:] for row in rows}
    for table in tables.all():
        if table.oid not in privileges:
            yield Finding(f"{table.relation.name} was dropped", "open the source again", fatal=False)
            continue
        user, may_select, is_owner, owner, identity = privileges[table.oid]
        fatal = table is not tables.mark
        if not may_select and fatal:
            grant = sql.SQL("GRANT SELECT ON {} TO {}").format(table.quoted, sql.Identifier(user))
            yield Finding(f"the role {user} may not read {table.relation.name}", _text(grant))
        if table.row_security:
            mend = sql.SQL("ALTER ROLE {} BYPASSRLS").format(sql.Identifier(user))
            yield Finding(f"row level security hides rows of {table.relation.name} from the role {user}", _text(mend))
        as_owner = "" if is_owner else f" (as {owner}, who owns the table)"
        if identity != "f":
            mend = sql.SQL("ALTER TABLE ONLY {} REPLICA IDENTITY FULL").format(table.quoted)
            yield Finding(f"the replica identity of {table.relation.name} is not FULL", _text(mend) + as_owner, fatal)
        if table.oid not in published:
            yield Finding(
                f"{table.relation.name} is not in the publication {name}",
                _publish(connection, table, name) + as_owner,
                fatal,
            )
        for column in table.generated:
            yield Finding(
                f"{table.relation.name}.{column} is generated: it is not in the stream, and is left out",
                "compute it in the view instead",
                fatal=False,
            )


def _publish(connection: Connection, table: Table, name: str) -> str:
    there = connection.execute("SELECT FROM pg_publication WHERE pubname = %s", (name,)).fetchone() is not None
    text = "ALTER PUBLICATION {} ADD TABLE ONLY {}" if there else "CREATE PUBLICATION {} FOR TABLE ONLY {}"
    return _text(sql.SQL(text).format(sql.Identifier(name), table.quoted))


def _objects(connection: Connection, tables: Tables, name: str) -> Iterator[Finding]:
    publication = connection.execute(
        "SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate FROM pg_publication WHERE pubname = %s", (name,)
    ).fetchone()
    if publication is None and not tables.all():
        yield Finding(f"there is no publication {name}", f"CREATE PUBLICATION {name}")
    if publication is None and not _may_create(connection):
        user, database = connection.info.user, connection.info.dbname
        grant = sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(sql.Identifier(database), sql.Identifier(user))
        yield Finding(f"the role {user} may not make a publication", _text(grant), fatal=False)
    if publication is not None and not publication[0]:
        mend = sql.SQL("ALTER PUBLICATION {} SET (publish = 'insert, update, delete, truncate')")
        yield Finding(f"the publication {name} leaves out kinds of changes", _text(mend.format(sql.Identifier(name))))
    slot = connection.execute(
        "SELECT wal_status, active_pid, plugin, database = current_database() FROM pg_replication_slots"
        " WHERE slot_name = %s",
        (name,),
    ).fetchone()
    create = f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')"
    replace = f"SELECT pg_drop_replication_slot('{name}'); {create}"
    if slot is None:
        yield Finding(f"there is no replication slot {name}", create)
    elif slot[2] != "pgoutput" or not slot[3]:
        yield Finding(f"the replication slot {name} is for another plugin or database", replace)
    elif slot[0] == "lost":
        yield Finding(
            f"the replication slot {name} has lost WAL that it needed (max_slot_wal_keep_size)",
            f"{replace}; then reload the views",
        )
    elif slot[1] is not None:
        yield Finding(
            f"the replication slot {name} is being followed, by process {slot[1]} of the server",
            f"if it is not this warehouse: SELECT pg_terminate_backend({slot[1]})",
            fatal=False,
        )


def _may_create(connection: Connection) -> bool:
    row = connection.execute("SELECT has_database_privilege(current_database(), 'CREATE')").fetchone()
    return bool(row and row[0])
