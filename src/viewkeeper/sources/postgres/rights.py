"""Who may do what capture needs: the role of the URL, the owner of the tables, or only a superuser.

    REPLICA IDENTITY      the owner of the table
    a new publication     the owner of every table in it, with CREATE on the database
    a table more in it    the owner of the table and of the publication

Whoever has the role of an owner is one too, and a superuser is everybody.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from psycopg import sql

from viewkeeper.sources.postgres.catalog import Table
from viewkeeper.sources.postgres.connections import Connection

SUPERUSER = "a superuser"


@dataclass(frozen=True)
class Owned:
    """A table or publication: who owns it, and whether the role of the URL is as good as its owner."""

    owner: str
    ours: bool
    owner_may_create: bool
    """whether the owner may make a publication in this database"""


@dataclass(frozen=True)
class TableRights(Owned):
    may_select: bool
    identity: str
    """pg_class.relreplident"""


@dataclass(frozen=True)
class Rights:
    """What the role of the URL may do. `tables` by oid: one that was dropped is missing."""

    user: str
    database: str
    database_owner: str
    may_create: bool
    tables: Mapping[int, TableRights]
    publication: Owned | None

    def doer(self, tables: Iterable[Table], *, publishing: bool) -> str:
        """Who may alter all these tables, and publish them; '' for the role of the URL itself."""
        owned: list[Owned] = [self.tables[table.oid] for table in tables]
        if publishing and self.publication is not None:
            owned.append(self.publication)
        if all(one.ours for one in owned):
            return ""
        owners = {one.owner for one in owned}
        return owners.pop() if len(owners) == 1 else SUPERUSER

    def grant_to_create(self, doer: str) -> str:
        """The statement without which `doer` may not make a publication; '' if there is none, or no need."""
        may = self.may_create or doer == SUPERUSER
        if doer not in ("", SUPERUSER):
            may = any(one.owner_may_create for one in self.tables.values() if one.owner == doer)
        if self.publication is not None or may:
            return ""
        grant = sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(
            sql.Identifier(self.database), sql.Identifier(doer or self.user)
        )
        return by(grant, self.database_owner)


def rights(connection: Connection, tables: Iterable[Table], publication: str) -> Rights:
    """As things are now."""
    row = connection.execute(
        "SELECT current_user, datname, pg_get_userbyid(datdba), has_database_privilege(oid, 'CREATE')"
        " FROM pg_database WHERE datname = current_database()"
    ).fetchone()
    assert row is not None, "the database that one is connected to is there"
    found = connection.execute(
        "SELECT c.oid::int8, pg_get_userbyid(c.relowner), pg_has_role(c.relowner, 'USAGE'),"
        " has_database_privilege(c.relowner, current_database(), 'CREATE'),"
        " has_table_privilege(c.oid, 'SELECT'), c.relreplident::text"
        " FROM pg_class c WHERE c.oid = ANY (%s::int8[]::oid[])",
        ([table.oid for table in tables],),
    )
    of_tables = {oid: TableRights(*rest) for oid, *rest in found}
    owned = connection.execute(
        "SELECT pg_get_userbyid(pubowner), pg_has_role(pubowner, 'USAGE') FROM pg_publication WHERE pubname = %s",
        (publication,),
    ).fetchone()
    user, database, database_owner, may_create = row
    owned_one = None if owned is None else Owned(owned[0], owned[1], owner_may_create=True)
    return Rights(user, database, database_owner, may_create, of_tables, owned_one)


def by(statement: sql.Composable | str, doer: str, more: str = "") -> str:
    """A statement that can be pasted as it is, with whoever has to run it after it, as a comment."""
    text = statement if isinstance(statement, str) else statement.as_string()
    told = ", ".join(part for part in (f"as {doer}" if doer else "", more) if part)
    return f"{text};" + (f"  -- {told}" if told else "")
