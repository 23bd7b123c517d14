"""What is put in place at a PostgreSQL server, what is found missing, and how failures are told."""

import threading
from collections.abc import Iterator

import psycopg
import pytest
from exactness import Recorded, read, whole
from postgres_server import PostgresServer
from postgres_tables import TWO_TABLES, Database, a_database

from viewkeeper.errors import BadSourceUrl, SourceError, SourceUnavailable, SourceUnfit, UnknownTable
from viewkeeper.sources.base import Request, Source
from viewkeeper.sources.postgres import installing
from viewkeeper.sources.postgres.installing import object_name
from viewkeeper.sources.postgres.source import PostgresSource

SECRET = "s3cr:et/p@ss w0rd"


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[Database]:
    with a_database(postgres_server, TWO_TABLES) as database:
        yield database


def fatal(source: Source) -> list[str]:
    return [finding.what for finding in source.doctor() if finding.fatal]


def identities(database: Database) -> dict[str, str]:
    rows = database.execute(
        "SELECT relname, relreplident FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    )
    return dict(rows.fetchall())


def left_behind(database: Database) -> tuple[int, int]:
    row = database.execute(
        "SELECT (SELECT count(*) FROM pg_publication), (SELECT count(*) FROM pg_replication_slots)"
    ).fetchone()
    assert row is not None
    return row[0], row[1]


# --- install, doctor, remove ---


def test_opening_changes_nothing_and_names_what_is_missing(database: Database) -> None:
    source = database.source("r", "s")
    assert left_behind(database) == (0, 0)
    assert len(fatal(source)) == 4
    with pytest.raises(SourceUnfit, match="no replication slot") as caught:
        next(source.transactions(None, threading.Event()))
    for statement in (
        'ALTER TABLE ONLY "public"."r" REPLICA IDENTITY FULL',
        'CREATE PUBLICATION "viewkeeper_w1_pg" FOR TABLE ONLY "public"."r"',
        "SELECT pg_create_logical_replication_slot('viewkeeper_w1_pg', 'pgoutput')",
    ):
        assert statement in caught.value.hint
    source.close()


def test_the_statements_of_the_doctor_mend_everything(database: Database) -> None:
    source = database.source("r", "s")
    while found := [finding for finding in source.doctor() if finding.fatal]:
        database.execute(found[0].fix)
    with Recorded(source) as recorded:
        database.execute("INSERT INTO r VALUES (100, 1, 'a')")
        recorded.catch_up()
    assert len(recorded.transactions) == 1
    source.close()


def test_install_is_repeated_without_harm_and_removed_without_a_trace(database: Database) -> None:
    database.execute("CREATE UNIQUE INDEX by_k ON r (id); ALTER TABLE r REPLICA IDENTITY USING INDEX by_k")
    database.execute(
        "ALTER TABLE s REPLICA IDENTITY NOTHING; CREATE TABLE t (a int); ALTER TABLE t REPLICA IDENTITY FULL"
    )
    before = identities(database)
    with database.installed() as source:
        assert fatal(source) == []
        source.install()
        assert identities(database) == {"r": "f", "s": "f", "t": "f"}
        assert left_behind(database) == (1, 1)
        assert source.remove() == []
        assert identities(database) == before
        assert left_behind(database) == (0, 0)
        assert source.remove() == []


def test_a_table_without_a_key_can_be_written_to_all_the_time(database: Database) -> None:
    database.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
    other = PostgresSource(Request("pg", database.url, "w2", ("t",)))
    with database.installed("t") as source:
        database.execute("UPDATE t SET a = a + 1")
        other.install()
        statements = source.remove()
        database.execute("UPDATE t SET a = a + 1")
        assert statements == ['ALTER TABLE ONLY "public"."t" REPLICA IDENTITY DEFAULT;'], "the other one needs it"
        assert other.remove() == []
        database.execute("DELETE FROM t")
    other.close()


def test_install_waits_for_writers_without_standing_in_their_way(database: Database) -> None:
    source = database.source("r", "s")
    with psycopg.connect(database.url) as writer:
        writer.execute("INSERT INTO r VALUES (100, 1, 'under way')")
        installing = threading.Thread(target=source.install)
        installing.start()
        installing.join(0.3)
        assert installing.is_alive()
        writer.execute("UPDATE s SET k = 1 WHERE id = 1")
        writer.execute("UPDATE r SET k = 1 WHERE id = 1")
    installing.join(20)
    assert fatal(source) == []
    source.close()


def test_an_install_that_fails_leaves_no_slot_that_is_older_than_its_publication(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a slot comes upon changes for which there was no publication, and never gets past them."""
    slots = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
    source = database.source()
    source.install()
    name = object_name("w1", "pg")
    database.execute(f"DROP PUBLICATION {name}")
    database.execute("UPDATE r SET v = 'unpublished' WHERE id = 1")

    def locked(*_: object, **__: object) -> None:
        raise SourceUnavailable("r is in use by a long transaction", "")

    with monkeypatch.context() as patched:
        patched.setattr(installing, "_install_table", locked)
        with pytest.raises(SourceUnavailable):
            source.install()
    assert database.execute(slots).fetchone() == (0,)
    source.install()
    assert database.execute(slots).fetchone() == (1,)
    assert fatal(source) == []
    source.remove()
    source.close()


def test_names_of_slots() -> None:
    assert object_name("0f" * 16, "shop") == f"viewkeeper_{'0f' * 16}_shop"
    long = object_name("0f" * 16, "a_source_with_a_very_long_name")
    assert len(long) <= 63
    assert len({object_name("0f" * 16, name) for name in ("Shop", "shop", "sh-op", "sh_op")}) == 4


# --- which tables ---


def test_keys_schemas_and_the_default(database: Database) -> None:
    database.execute("CREATE SCHEMA other; CREATE TABLE other.t (a int, b int, c int GENERATED ALWAYS AS (a) STORED)")
    database.execute('CREATE TABLE "Mixed.Case" (a int, b int, PRIMARY KEY (b, a)); CREATE VIEW v AS SELECT 1')
    database.execute("CREATE TABLE p (a int) PARTITION BY LIST (a); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)")
    source = database.source("other.t", "r", "Mixed.Case", keys={"other.t": ("b",)})
    assert {name: one.key for name, one in source.relations.items()} == {
        "pg.other.t": ("b",),
        "pg.r": ("id",),
        "pg.Mixed.Case": ("b", "a"),
    }
    assert source.relations["pg.other.t"].columns == ("a", "b")
    assert any("other.t.c is generated" in finding.what for finding in source.doctor() if not finding.fatal)
    source.install()
    with Recorded(source) as recorded:
        database.execute('INSERT INTO other.t VALUES (1, 2); INSERT INTO "Mixed.Case" VALUES (1, 2)')
        recorded.read(*map(whole, source.relations.values()))
        recorded.catch_up()
    recorded.check()
    source.close()
    everything = database.source()
    assert sorted(everything.relations) == ["pg.Mixed.Case", "pg.p1", "pg.r", "pg.s"]
    everything.close()


@pytest.mark.parametrize(
    ("script", "table", "reason"),
    [
        ("", "nothing", "no table nothing"),
        ("", "R", "did you mean public.r"),
        ("CREATE VIEW v AS SELECT 1", "v", "it is a view"),
        ("CREATE UNLOGGED TABLE u (a int)", "u", "SET LOGGED"),
        ("CREATE TABLE p (a int) PARTITION BY LIST (a)", "p", "partitioned"),
        ("CREATE TABLE parent (a int); CREATE TABLE child () INHERITS (parent)", "parent", "inherit"),
    ],
)
def test_a_table_that_cannot_be_captured(database: Database, script: str, table: str, reason: str) -> None:
    if script:
        database.execute(script)
    with pytest.raises(UnknownTable, match=reason):
        database.source(table)


# --- roles ---


@pytest.fixture
def role(database: Database) -> Iterator[str]:
    database.execute("DROP ROLE IF EXISTS with_password")
    database.execute(f"CREATE ROLE with_password LOGIN PASSWORD '{SECRET}'")
    yield database.server.url(database.name, "with_password", "s3cr%3Aet%2Fp%40ss%20w0rd")
    database.execute("DROP OWNED BY with_password; DROP ROLE with_password")


def test_a_role_with_few_rights(database: Database, role: str) -> None:
    source = database.source("r", url=role)
    assert "the role with_password may not replicate" in fatal(source)
    assert "the role with_password may not read pg.r" in fatal(source)
    with pytest.raises(SourceUnfit):
        source.install()
    database.execute("ALTER ROLE with_password REPLICATION; GRANT SELECT ON r TO with_password")
    database.execute("ALTER TABLE r ENABLE ROW LEVEL SECURITY")
    hidden = database.source("r", url=role)
    assert any("row level security" in what for what in fatal(hidden))
    database.execute("ALTER TABLE r DISABLE ROW LEVEL SECURITY")
    with database.installed("r"):
        pass
    assert fatal(source) == []
    with Recorded(source) as recorded:
        database.execute("INSERT INTO r VALUES (100, 1, 'a')")
        recorded.read(whole(source.relations["pg.r"]))
    recorded.check()
    left = source.remove()
    assert left == [
        'DROP PUBLICATION "viewkeeper_w1_pg";  -- as keeper',
        'ALTER TABLE ONLY "public"."r" REPLICA IDENTITY DEFAULT;  -- as keeper',
    ]
    source.close()
    hidden.close()


def test_credentials_appear_nowhere(database: Database, role: str) -> None:
    wrong = role.replace("s3cr", "wr0ng")
    nowhere = role.replace(str(database.server.port), "1")
    unknown = role.replace(f"/{database.name}", "/no_such_database")
    messages = []
    for url, kind in (
        (wrong, SourceUnfit),
        (unknown, SourceUnfit),
        (nowhere, SourceUnavailable),
        (role + "?no_such_option=1", BadSourceUrl),
        (role.replace("postgresql", "oracle"), BadSourceUrl),
    ):
        with pytest.raises(kind) as caught:
            database.source("r", url=url)
        assert isinstance(caught.value, SourceError)
        assert caught.value.__cause__ is None
        messages.append(f"{caught.value!s} {caught.value!r}")
    source = database.source("r", url=role)
    messages.append(f"{source!r} {source._connections!r} {source.doctor()}")
    source.close()
    for message in messages:
        assert "s3cr" not in message
        assert "wr0ng" not in message
        assert "w0rd" not in message


def test_a_unix_socket(database: Database) -> None:
    with database.installed("r", url=database.server.socket_url(database.name)) as source, Recorded(source) as recorded:
        database.execute("INSERT INTO r VALUES (100, 1, 'a')")
        recorded.read(whole(source.relations["pg.r"]))
        recorded.catch_up()
    recorded.check()
    assert len(recorded.transactions) == 1


def test_a_locked_table_is_read_when_it_is_free(database: Database) -> None:
    with database.installed("r") as source, Recorded(source) as recorded:
        with psycopg.connect(database.url) as other:
            other.execute("LOCK TABLE r IN ACCESS EXCLUSIVE MODE")
            reading = threading.Thread(target=lambda: recorded.read(whole(source.relations["pg.r"])))
            reading.start()
            reading.join(0.2)
            assert reading.is_alive()
            other.execute("DELETE FROM r WHERE id < 10")
        reading.join(20)
        assert len(recorded.answers[0].bags[0]) == 31
        recorded.catch_up()
    recorded.check()


def test_rows_are_not_given_after_the_reading_has_ended(database: Database) -> None:
    with database.installed("r") as source, Recorded(source):
        with source.reading([whole(source.relations["pg.r"])]) as reading:
            pass
        with pytest.raises(SourceError, match="after it had ended"):
            next(reading.rows[0])
        read(source, whole(source.relations["pg.r"]))
