"""A PostgreSQL source whose URL has a role that owns nothing: what the owner runs, what is left for the role itself."""

import re
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from exactness import Recorded, whole
from postgres_server import PostgresServer
from postgres_tables import Database, a_database

from viewkeeper.errors import PositionLost, SourceUnfit
from viewkeeper.messages import Position
from viewkeeper.sources.base import Disruption, Request, Source
from viewkeeper.sources.postgres.source import PostgresSource

ROLES = ("shop_app", "shop_other", "shop_keeper")
TABLES = """
CREATE TABLE r (id int PRIMARY KEY, v text); CREATE TABLE s (id int PRIMARY KEY, k int);
INSERT INTO r VALUES (1, 'one'); INSERT INTO s VALUES (1, 10);
ALTER TABLE r OWNER TO shop_app; ALTER TABLE s OWNER TO shop_app;
GRANT SELECT ON r, s TO shop_keeper;
GRANT CREATE ON DATABASE shop TO shop_app;
"""


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[Database]:
    with postgres_server.connect() as admin:
        for role in ROLES:
            admin.execute(f"DROP ROLE IF EXISTS {role}".encode())
            admin.execute(f"CREATE ROLE {role} LOGIN".encode())
        admin.execute("ALTER ROLE shop_keeper REPLICATION")
    try:
        with a_database(postgres_server, TABLES) as database:
            yield database
    finally:
        with postgres_server.connect() as admin:
            for role in ROLES:
                admin.execute(f"DROP ROLE {role}".encode())


def opened(database: Database, *tables: str, workspace: Path | None = None) -> PostgresSource:
    url = database.server.url(database.name, "shop_keeper")
    return PostgresSource(Request("pg", url, "w1", tables or ("r", "s")), workspace)


def run_as(database: Database, role: str, *statements: str) -> None:
    url = database.server.url(database.name, role) if role else database.url
    with psycopg.connect(url, autocommit=True) as session:
        for statement in statements:
            session.execute(statement.encode())


def told(text: str) -> list[tuple[str, str]]:
    """The statements of a hint, each with the role that has to run it; '' for a superuser."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    found = [(line, re.search(r"-- as (a superuser|\w+)", line)) for line in lines]
    return [(line, role[1].replace("a superuser", "") if role else "shop_keeper") for line, role in found]


def run_told(database: Database, text: str) -> None:
    """Word for word, comments and all."""
    for statement, role in told(text):
        run_as(database, role, statement)


def hint_of_install(source: Source) -> str:
    with pytest.raises(SourceUnfit) as caught:
        source.install()
    return caught.value.hint.split("\nor these")[0]


def at_the_server(database: Database) -> tuple[Any, ...]:
    row = database.execute(
        "SELECT (SELECT count(*) FROM pg_publication), (SELECT count(*) FROM pg_replication_slots),"
        " (SELECT string_agg(relreplident::text, '' ORDER BY relname) FROM pg_class"
        "  WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace)"
    ).fetchone()
    assert row is not None
    return tuple(row)


UNTOUCHED = (0, 0, "dd")


def follows(database: Database, source: Source) -> None:
    with Recorded(source) as recorded:
        database.execute("INSERT INTO r VALUES (100, 'new'); UPDATE s SET k = k + 1")
        recorded.read(*map(whole, source.relations.values()))
        recorded.catch_up()
    recorded.check()
    assert recorded.transactions


def disruptions(source: Source, after: Position) -> list[Disruption]:
    """Of the first batches, which say that the stream has begun."""
    stop, found = threading.Event(), []
    for batch in source.transactions(after, stop):
        found += [event for event in batch.events if isinstance(event, Disruption)]
        if batch.upto >= source.end() or found:
            stop.set()
    return found


def test_the_owner_runs_what_install_tells_and_the_role_does_the_rest(database: Database) -> None:
    with closing(opened(database)) as source:
        hint = hint_of_install(source)
        assert at_the_server(database) == UNTOUCHED, "nothing is left behind"
        assert told(hint) == [
            ('ALTER TABLE ONLY "public"."r" REPLICA IDENTITY FULL;  -- as shop_app', "shop_app"),
            ('ALTER TABLE ONLY "public"."s" REPLICA IDENTITY FULL;  -- as shop_app', "shop_app"),
            (
                'CREATE PUBLICATION "viewkeeper_w1_pg" FOR TABLE ONLY "public"."r", ONLY "public"."s";  -- as shop_app',
                "shop_app",
            ),
        ]
        run_told(database, hint)
        source.install()
        source.install()
        assert [finding for finding in source.doctor() if finding.fatal] == []
        follows(database, source)
        left = source.remove()
    assert at_the_server(database) == (1, 0, "ff")
    assert left[0] == 'DROP PUBLICATION "viewkeeper_w1_pg";  -- as shop_app'
    assert 'ALTER TABLE ONLY "public"."r" REPLICA IDENTITY DEFAULT;  -- as shop_app, unless it was FULL' in left[1]
    run_as(database, "shop_app", *left)
    assert at_the_server(database) == UNTOUCHED


def test_what_the_doctor_tells_is_enough_without_install(database: Database) -> None:
    with closing(opened(database)) as source:
        run_told(database, "\n".join(f"    {line}" for found in source.doctor() for line in found.fix.splitlines()))
        assert [finding for finding in source.doctor() if finding.fatal] == []
        follows(database, source)


def test_a_table_that_is_added_later_is_captured_whole(database: Database) -> None:
    with closing(opened(database, "r")) as source:
        run_told(database, hint_of_install(source))
        source.install()
    with closing(opened(database)) as source, psycopg.connect(database.url) as writer:
        writer.execute("INSERT INTO s VALUES (2, 20)")
        hint = hint_of_install(source)
        assert "BEGIN; LOCK TABLE ONLY" in hint
        adding = threading.Thread(target=run_told, args=(database, hint))
        adding.start()
        adding.join(0.2)
        assert adding.is_alive(), "it waits for whoever has written to the table"
        writer.commit()
        adding.join(20)
        source.install()
        follows(database, source)


def test_a_role_that_is_given_that_of_the_owner_installs_and_removes_everything(database: Database) -> None:
    with closing(opened(database)) as source:
        with pytest.raises(SourceUnfit) as caught:
            source.install()
        simpler = caught.value.hint.split("\nor these")[1]
        run_told(database, simpler)
        assert [statement.partition(";")[0] for statement, _ in told(simpler)] == [
            'GRANT "shop_app" TO "shop_keeper"',
            'GRANT CREATE ON DATABASE "shop" TO "shop_keeper"',
        ]
        source.install()
        follows(database, source)
        assert source.remove() == []
    assert at_the_server(database) == UNTOUCHED


def test_tables_of_several_owners_and_an_owner_who_may_not_publish(database: Database) -> None:
    database.execute("ALTER TABLE s OWNER TO shop_other; REVOKE CREATE ON DATABASE shop FROM shop_app")
    with closing(opened(database)) as source:
        statements = told(hint_of_install(source))
        assert [role for _, role in statements] == ["shop_app", "shop_other", ""]
    with closing(opened(database, "r")) as source:
        hint = hint_of_install(source)
        assert 'GRANT CREATE ON DATABASE "shop" TO "shop_app";  -- as keeper' in hint
        run_told(database, hint)
        source.install()


def test_a_table_that_is_published_in_part_is_not_published(database: Database) -> None:
    if database.owner.info.server_version < 150000:
        pytest.skip("row filters and lists of columns came with PostgreSQL 15")
    with closing(opened(database)) as source:
        statements = [statement for statement, _ in told(hint_of_install(source))]
        in_part = statements.pop().replace('ONLY "public"."s"', "s WHERE (id > 5)").replace('"r"', '"r" (id)')
        run_as(database, "shop_app", *statements, in_part)
        hint = hint_of_install(source)
        assert "DROP TABLE" in hint
        run_told(database, hint)
        source.install()
        follows(database, source)
        run_as(database, "shop_app", 'ALTER PUBLICATION "viewkeeper_w1_pg" SET TABLE ONLY r, s WHERE (id > 5)')
        told_of = disruptions(source, source.end())
        assert {one.relation for one in told_of} == {"pg.s"}, "the other table goes on"
        assert any("pg.s is not published (a row filter" in one.reason for one in told_of)


# --- what happened while nobody looked ---


@pytest.fixture
def prepared(database: Database, tmp_path: Path) -> Path:
    """The owner has run everything, the role has made the slot and noted the tables; the folder with its notes."""
    with closing(opened(database, workspace=tmp_path)) as source:
        run_told(database, hint_of_install(source))
        source.install()
        source.note()
        follows(database, source)
    return tmp_path


def test_a_table_that_was_altered_meanwhile_is_told(database: Database, prepared: Path) -> None:
    with closing(opened(database, workspace=prepared)) as source:
        assert source.altered() == {}
        place = source.end()
        # The same name and the same type, and other values, which are not in the stream.
        database.execute("ALTER TABLE s ALTER k TYPE int USING k * 2 + 0")
    with closing(opened(database, workspace=prepared)) as source:
        assert source.altered().keys() == {"pg.s"}
        assert {found.relation for found in disruptions(source, place)} == {"pg.s"}
        source.note(kept=["pg.s"])
        assert source.altered().keys() == {"pg.s"}, "what is kept is as it was noted"
        source.note()
        assert source.altered() == {}


def test_a_table_that_was_not_published_all_the_time_is_told(database: Database, prepared: Path) -> None:
    with closing(opened(database, workspace=prepared)) as source:
        place = source.end()
        publication = 'ALTER PUBLICATION "viewkeeper_w1_pg"'
        run_as(database, "shop_app", f"{publication} DROP TABLE r")
        database.execute("INSERT INTO r VALUES (200, 'unpublished')")
        run_as(database, "shop_app", f"{publication} ADD TABLE ONLY r")
        assert {found.relation for found in disruptions(source, place)} == {"pg.r"}


def test_a_slot_that_was_made_again_is_told(database: Database, prepared: Path) -> None:
    with closing(opened(database, workspace=prepared)) as source:
        place = source.end()
        slot = "viewkeeper_w1_pg"
        run_as(database, "shop_keeper", f"SELECT pg_drop_replication_slot('{slot}')")
        database.execute("INSERT INTO r VALUES (200, 'between')")
        run_as(database, "shop_keeper", f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")
        with pytest.raises(PositionLost):
            disruptions(source, place)


def test_a_publication_that_was_dropped_is_made_again_with_its_slot(database: Database) -> None:
    run_as(database, "", "GRANT shop_app TO shop_keeper", "GRANT CREATE ON DATABASE shop TO shop_keeper")
    with closing(opened(database)) as source:
        source.install()
        run_as(database, "shop_app", "UPDATE s SET k = 0")
        run_as(database, "shop_keeper", 'DROP PUBLICATION "viewkeeper_w1_pg"')
        database.execute("INSERT INTO r VALUES (200, 'unpublished')")
        assert any("older than its publication" in finding.what for finding in source.doctor())
        source.install()
        follows(database, source)
