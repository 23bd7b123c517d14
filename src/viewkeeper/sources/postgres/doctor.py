"""What is missing or risky for capture at a server, each with the statement that fixes it.

The statements can be run as they are, from the first to the last: what has to be there before comes before. Where
another role has to run one than that of the URL, a comment after it says which.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from psycopg import sql

from viewkeeper.sources.base import Finding
from viewkeeper.sources.postgres.catalog import Table, Tables
from viewkeeper.sources.postgres.connections import Connection
from viewkeeper.sources.postgres.rights import SUPERUSER, Rights, by, rights
from viewkeeper.sources.postgres.watch import partly_published, published_among

OLDEST = 130000
"""pg_current_snapshot() came with PostgreSQL 13."""


@dataclass(frozen=True)
class _Found:
    """A finding, and whether it hinders `install`, which has only the rights of the role of the URL."""

    finding: Finding
    hinders: bool


def findings(connection: Connection, tables: Tables, name: str) -> list[Finding]:
    """Of the server, of the tables, then of what `install` makes."""
    return [found.finding for found in _all(connection, tables, name)]


def missing(connection: Connection, tables: Tables, name: str) -> list[Finding]:
    """What keeps capture from working."""
    return [finding for finding in findings(connection, tables, name) if finding.fatal]


def obstacles(connection: Connection, tables: Tables, name: str) -> list[Finding]:
    """What `install` needs and cannot fix."""
    return [found.finding for found in _all(connection, tables, name) if found.hinders]


def shortcut(connection: Connection, tables: Tables, name: str) -> str:
    """The statements after which `install` may do everything, where one role owns what is not ours; else ''."""
    held = rights(connection, tables.all(), name)
    owned = [*held.tables.values(), *([held.publication] if held.publication else [])]
    owners = {one.owner for one in owned if not one.ours}
    if len(owners) != 1:
        return ""
    grant = sql.SQL("GRANT {} TO {}").format(sql.Identifier(*owners), sql.Identifier(held.user))
    lines = [by(grant, SUPERUSER), *held.grant_to_create("").splitlines()]
    return "".join(f"\n    {line}" for line in lines)


def _all(connection: Connection, tables: Tables, name: str) -> Iterator[_Found]:
    held = rights(connection, tables.all(), name)
    slot = connection.execute(
        "SELECT wal_status, active_pid, plugin, database = current_database() FROM pg_replication_slots"
        " WHERE slot_name = %s",
        (name,),
    ).fetchone()
    yield from (_Found(finding, finding.fatal) for finding in _server(connection, name))
    yield from (_Found(finding, finding.fatal) for finding in _reading(tables, held))
    yield from _identities(tables, held)
    yield from _publication(connection, tables, held, name, following=slot is not None)
    yield from _slot(slot, name, held)


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
            "the server is a standby, whose snapshots do not show which transactions are running",
            "give the URL of the primary, or add target_session_attrs=read-write to it",
        )
    restart = "then restart the server"
    if level != "logical":
        yield Finding(f"wal_level is {level}", by("ALTER SYSTEM SET wal_level = 'logical'", SUPERUSER, restart))
    if not exists and slots_used >= slots:
        yield Finding(
            f"all {slots} replication slots are in use",
            by(f"ALTER SYSTEM SET max_replication_slots = {slots + 5}", SUPERUSER, f"{restart}; or drop an idle one"),
        )
    if senders_used >= senders:
        yield Finding(
            f"all {senders} WAL senders are in use",
            by(f"ALTER SYSTEM SET max_wal_senders = {senders + 5}", SUPERUSER, restart),
        )
    if not may_replicate:
        yield Finding(
            f"the role {user} may not replicate",
            by(sql.SQL("ALTER ROLE {} REPLICATION").format(sql.Identifier(user)), SUPERUSER),
        )
    if encoding == "SQL_ASCII":
        yield Finding(
            "the database has the encoding SQL_ASCII, so that its texts may be anything",
            "make a database with the encoding UTF8 and move the tables there",
        )
    if keep == "-1":
        yield Finding(
            "max_slot_wal_keep_size is not set: if viewkeeper is away for long, kept WAL can fill the server's disk",
            by("ALTER SYSTEM SET max_slot_wal_keep_size = '10GB'; SELECT pg_reload_conf()", SUPERUSER),
            fatal=False,
        )


def _reading(tables: Tables, held: Rights) -> Iterator[Finding]:
    user = sql.Identifier(held.user)
    for table in tables.all():
        of_table = held.tables.get(table.oid)
        if of_table is None:
            yield Finding(f"{table.relation.name} was dropped", "open the source again", fatal=False)
            continue
        if not of_table.may_select and table is not tables.mark:
            grant = sql.SQL("GRANT SELECT ON {} TO {}").format(table.quoted, user)
            yield Finding(
                f"the role {held.user} may not read {table.relation.name}",
                by(grant, of_table.owner),
                relations=tables.alone(table),
            )
        if table.row_security:
            yield Finding(
                f"row level security hides rows of {table.relation.name} from the role {held.user}",
                by(sql.SQL("ALTER ROLE {} BYPASSRLS").format(user), SUPERUSER),
                relations=tables.alone(table),
            )
        for column in table.generated:
            yield Finding(
                f"{table.relation.name}.{column} is generated: it is not in the stream, and is left out",
                "compute it in the view instead",
                fatal=False,
            )


def _identities(tables: Tables, held: Rights) -> Iterator[_Found]:
    for table in tables.all():
        if table.oid in held.tables and held.tables[table.oid].identity != "f":
            doer = held.doer([table], publishing=False)
            fix = by(sql.SQL("ALTER TABLE ONLY {} REPLICA IDENTITY FULL").format(table.quoted), doer)
            what = f"the replica identity of {table.relation.name} is not FULL"
            fatal = table is not tables.mark
            yield _Found(Finding(what, fix, fatal, tables.alone(table)), hinders=bool(doer))


def _publication(
    connection: Connection, tables: Tables, held: Rights, name: str, *, following: bool
) -> Iterator[_Found]:
    """All tables that are to be published, in one statement: the second CREATE PUBLICATION would fail."""
    published = published_among(connection, tables.all(), name)
    lacking = [table for table in tables.all() if table.oid in held.tables and table.oid not in published]
    partly = [table for table in lacking if table.oid in partly_published(connection, name)]
    if lacking or (held.publication is None and not tables.all()):
        doer = held.doer(lacking, publishing=True)
        publication = sql.Identifier(name)
        text = "ALTER PUBLICATION {} ADD TABLE {}" if held.publication else "CREATE PUBLICATION {}"
        text += " FOR TABLE {}" if lacking and not held.publication else ""
        publish = sql.SQL(text).format(publication, _listed(lacking))
        if partly:
            drop = sql.SQL("ALTER PUBLICATION {} DROP TABLE {}; ").format(publication, _listed(partly))
            publish = drop + publish
        if following and lacking:
            # Of a transaction that has begun, the slot would tell only what it writes from then on.
            lock = sql.SQL("BEGIN; LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE; ").format(_listed(lacking))
            publish = lock + publish + sql.SQL("; COMMIT")
        grant = held.grant_to_create(doer)
        names = [table.relation.name for table in lacking]
        what = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} not published"
        what += " (a row filter or a list of columns leaves changes out)" if partly else ""
        yield _Found(
            Finding(
                what if lacking else f"there is no publication {name}",
                f"{grant}\n{by(publish, doer)}" if grant else by(publish, doer),
                fatal=not lacking or any(table is not tables.mark for table in lacking),
                relations=tables.alone(*lacking) if held.publication else (),
            ),
            hinders=bool(doer or grant or partly),
        )
    whole = connection.execute(
        "SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate FROM pg_publication WHERE pubname = %s", (name,)
    ).fetchone()
    if whole is not None and not whole[0]:
        fix = sql.SQL("ALTER PUBLICATION {} SET (publish = 'insert, update, delete, truncate')")
        yield _Found(
            Finding(
                f"the publication {name} leaves out kinds of changes",
                by(fix.format(sql.Identifier(name)), held.doer([], publishing=True)),
            ),
            hinders=True,
        )


def _listed(tables: Iterable[Table]) -> sql.Composable:
    return sql.SQL(", ").join(sql.SQL("ONLY {}").format(table.quoted) for table in tables)


def _slot(slot: tuple[str | None, int | None, str, bool] | None, name: str, held: Rights) -> Iterator[_Found]:
    create = f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')"
    replace = f"SELECT pg_drop_replication_slot('{name}'); {create}"
    if slot is None:
        fix = by(create, held.user, "after all others; or --install does it")
        yield _Found(Finding(f"there is no replication slot {name}", fix), hinders=False)
    elif slot[2] != "pgoutput" or not slot[3]:
        what = f"the replication slot {name} is for another plugin or database"
        yield _Found(Finding(what, by(replace, held.user)), hinders=True)
    elif held.publication is None:
        what = f"the replication slot {name} is older than its publication, and cannot go on"
        yield _Found(Finding(what, by(replace, held.user, "after all others; then reload the views")), hinders=False)
    elif slot[0] == "lost":
        what = f"the replication slot {name} has lost WAL that it needed (max_slot_wal_keep_size)"
        yield _Found(Finding(what, by(replace, held.user, "then reload the views")), hinders=False)
    elif slot[1] is not None:
        what = f"the replication slot {name} is being followed, by process {slot[1]} of the server"
        fix = f"if it is not this warehouse: SELECT pg_terminate_backend({slot[1]})"
        yield _Found(Finding(what, fix, fatal=False), hinders=False)
