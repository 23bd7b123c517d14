"""What capture needs at MariaDB: told, put in place, and put back; and the small parts that need no server."""

from collections.abc import Iterator
from typing import Any

import pymysql
import pytest
from mariadb_server import MariaDb, Session

from viewkeeper.errors import PositionLost, SourceUnfit
from viewkeeper.messages import Change, Fetch
from viewkeeper.sources.base import Request
from viewkeeper.sources.mysql.binlog import LOST, BinlogStream
from viewkeeper.sources.mysql.connections import Server
from viewkeeper.sources.mysql.history import KEEP, History, Passed, Touch
from viewkeeper.sources.mysql.places import Reached, place, split
from viewkeeper.sources.mysql.source import MySqlSource
from viewkeeper.sources.mysql.statements import concerned, savepoint, xa
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import Operand

DATABASE = "doctor_test"
NEEDED = {"binlog_format": "ROW", "binlog_row_image": "FULL", "binlog_row_metadata": "FULL"}


@pytest.fixture
def root(mariadb: MariaDb) -> Iterator[Session]:
    with mariadb.root() as session:
        session.execute(f"CREATE OR REPLACE DATABASE {DATABASE}")
        session.execute(f"USE {DATABASE}")
        session.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        yield session
        for name, value in NEEDED.items():
            session.execute(f"SET GLOBAL {name} = {value}")
        session.execute("SET GLOBAL log_bin_compress = OFF")
        session.execute("DROP USER IF EXISTS plain")


def source_of(mariadb: MariaDb, **who: str) -> MySqlSource:
    return MySqlSource(Request("s", mariadb.url(DATABASE, **who), "doctor"))


def fatal(source: MySqlSource) -> list[str]:
    return [finding.fix for finding in source.doctor() if finding.fatal]


def settings(root: Session) -> dict[str, str]:
    names = (*NEEDED, "log_bin_compress")
    return {name: root.execute(f"SHOW GLOBAL VARIABLES LIKE '{name}'")[0][1] for name in names}


def test_a_fit_server_has_no_fatal_findings(mariadb: MariaDb, root: Session) -> None:
    source = source_of(mariadb)
    assert fatal(source) == []
    before = root.execute("SHOW TABLES")
    source.install()
    assert root.execute("SHOW TABLES") == before
    assert source.remove() == []
    source.close()


def test_only_a_replica_is_warned_of_what_its_log_lacks(mariadb: MariaDb, root: Session) -> None:
    def warned() -> list[str]:
        found = [finding for finding in source.doctor() if "log_slave_updates" in finding.what]
        assert not any(finding.fatal for finding in found)
        return [finding.fix for finding in found]

    assert root.execute("SHOW GLOBAL VARIABLES LIKE 'log_slave_updates'")[0][1] == "OFF"
    source = source_of(mariadb)
    assert warned() == []
    root.execute("CHANGE MASTER 'elsewhere' TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1, MASTER_USER = 'nobody'")
    try:
        assert warned() == ["in its option file: log_slave_updates = ON; or name the primary in the URL"]
    finally:
        root.execute("RESET SLAVE 'elsewhere' ALL")
    assert warned() == []
    source.close()


def test_settings_are_put_in_place_and_put_back(mariadb: MariaDb, root: Session) -> None:
    wrong = {
        "binlog_format": "MIXED",
        "binlog_row_image": "MINIMAL",
        "binlog_row_metadata": "NO_LOG",
        "log_bin_compress": "ON",
    }
    for name, value in wrong.items():
        root.execute(f"SET GLOBAL {name} = {value}")
    source = source_of(mariadb)
    assert len(fatal(source)) == 4
    with pytest.raises(SourceUnfit, match="binlog_format is MIXED") as unfit:
        next(iter(source.transactions(None, None)))  # type: ignore[arg-type]
    assert "SET GLOBAL binlog_format = ROW" in unfit.value.hint
    source.install()
    source.install()
    assert fatal(source) == []
    assert settings(root) == {**NEEDED, "log_bin_compress": "OFF"}
    assert source_of(mariadb).relations.keys() == {"s.t"}, "our own table is not captured"
    assert source.remove() == []
    assert settings(root) == wrong
    assert root.execute("SHOW TABLES") == [("t",)]
    source.close()


def test_a_user_who_may_not_is_told_what_to_ask_for(mariadb: MariaDb, root: Session) -> None:
    root.execute("CREATE USER plain IDENTIFIED BY 'pw'")
    root.execute(f"GRANT SELECT ON {DATABASE}.t TO plain")
    root.execute("SET GLOBAL binlog_format = MIXED")
    source = source_of(mariadb, user="plain", password="pw")
    fixes = fatal(source)
    assert fixes == [
        "SET GLOBAL binlog_format = ROW (and binlog_format = ROW in the server's option file)",
        "GRANT REPLICATION SLAVE ON *.* TO `plain`",
        "GRANT BINLOG MONITOR ON *.* TO `plain`",
    ]
    with pytest.raises(SourceUnfit) as unfit:
        source.install()
    assert all(fix in unfit.value.hint for fix in fixes)
    with pytest.raises(SourceUnfit):
        source.end()
    assert root.execute("SHOW TABLES") == [("t",)]
    root.execute("SET GLOBAL binlog_format = ROW")
    root.execute("GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO plain")
    source.install()
    assert source.end()
    source.close()


def test_a_foreign_key_that_is_added_later_is_found(mariadb: MariaDb, root: Session) -> None:
    root.execute("CREATE TABLE child (id INT PRIMARY KEY, t INT)")
    source = source_of(mariadb)
    root.execute("ALTER TABLE child ADD CONSTRAINT cut FOREIGN KEY (t) REFERENCES t (id) ON UPDATE SET NULL")
    (fix,) = fatal(source)
    assert fix.startswith(f"ALTER TABLE `{DATABASE}`.`child` DROP FOREIGN KEY `cut`")
    source.close()


# --- parts ---


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ("TRUNCATE t", [("d", "t")]),
        ("TRUNCATE TABLE `x`.`t`", [("d", "TABLE"), ("x", "t")]),
        ("drop table if exists `a``b`, c /* generated by server */", ["a`b", "c"]),
        ("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES p (id)", [("d", "t")]),
        ("ALTER TABLE t RENAME TO x.u", [("d", "t"), ("x", "u")]),
        ("ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE t", [("d", "p"), ("d", "t")]),
        ("RENAME TABLE t TO x.u, a TO b", [("d", "t"), ("x", "u"), ("d", "a"), ("d", "b")]),
        ("CREATE OR REPLACE TABLE t AS SELECT * FROM u", [("d", "t")]),
        ("DROP DATABASE `x`", [("x", None)]),
        # Names in a session with ANSI_QUOTES; quotes in comments, comments in names.
        ('TRUNCATE "t"', [("d", "t")]),
        ('ALTER TABLE "x"."t" ADD b INT COMMENT "u"', [("x", "t")]),
        ('DROP DATABASE "x"', [("x", None)]),
        ("/* it's */ TRUNCATE t /* don't */", [("d", "t")]),
        ("--\nTRUNCATE t", [("d", "t")]),
        ("ALTER TABLE `o'x` ADD b INT COMMENT 'it''s'", [("d", "o'x")]),
        ("TRUNCATE `a#b`", [("d", "a#b")]),
        ("/*!40101 ALTER TABLE t ADD b INT */", [("d", "t")]),
        ("CREATE TABLE t (a INT)", []),
        ("CREATE INDEX i ON t (a)", []),
        ("ALTER USER t IDENTIFIED BY 'x'", []),
        ("DELETE FROM x.t WHERE a = 'u'", [("x", "t")]),
        ("SET STATEMENT a = 1 FOR UPDATE t SET a = 1", [("d", "t")]),
    ],
)
def test_statements_name_the_tables_that_they_change(statement: str, tables: list[Any]) -> None:
    found = {(one.database, one.table) for one in concerned(statement, "d")}
    assert {pair if isinstance(pair, tuple) else ("d", pair) for pair in tables} <= found
    if not tables:
        assert not found


def test_savepoints_and_xa_are_understood() -> None:
    assert savepoint("SAVEPOINT `a b`") == (False, "a b")
    assert savepoint("ROLLBACK TO `x`") == (True, "x")
    assert savepoint("ROLLBACK") is None
    assert xa("XA COMMIT X'7831',X'62',1") == ("COMMIT", "X'7831',X'62',1")
    assert xa("INSERT INTO xa VALUES (1)") is None


def test_places_are_carried_past_four_gibibytes() -> None:
    assert split(place(12, 4711)) == (12, 4711)
    with pytest.raises(PositionLost):
        split("0/16B3748")
    reached = Reached()
    reached.file("binlog.000007")
    assert reached.at(2**32 - 5) == place(7, 2**32 - 5)
    assert reached.at(100) == place(7, 2**32 + 100)
    reached.file("binlog.000008")
    assert reached.at(4) == place(8, 4)


def relation(name: str) -> Relation:
    return Relation(f"s.{name}", "s", ("id", "k"), ("INT", "INT"), ("id",))


def test_a_change_touches_a_fetch_unless_keys_tell_otherwise() -> None:
    a, b = Operand(0, "a", relation("a")), Operand(1, "b", relation("b"))

    def touched(fetch: Fetch, name: str, *row: int) -> bool:
        return Touch([fetch]).by(Passed("1", [Change(f"s.{name}", row, 1)]))

    keyed = Fetch((a, b), a.columns, (("a.k", "b.id"),), ("a.k",), ((1,),))
    assert touched(keyed, "a", 7, 1)
    assert not touched(keyed, "a", 1, 7)
    assert touched(keyed, "b", 1, 7)
    assert not touched(keyed, "b", 7, 1)
    assert not touched(keyed, "c", 1, 1)
    loose = Fetch((a, b), a.columns, (), ("a.k",), ((1,),))
    assert touched(loose, "b", 7, 7)
    assert touched(Fetch((a,), a.columns), "a", 7, 7)


def test_history_is_kept_as_long_as_somebody_needs_it() -> None:
    history = History()
    assert history.between("0", "9") is None
    history.begin("00000")
    passed = [Passed(f"{number:05d}", ()) for number in range(1, 2 * KEEP)]
    with history.needed("00000"):
        history.add(passed)
        assert history.between("00000", "00002") == passed[:2]
    history.add([Passed("99999", ())])
    assert history.between("00000", "00002") is None
    assert history.between(f"{2 * KEEP - 1:05d}", "99999") == [Passed("99999", ())]


def test_a_log_that_is_gone_is_told_apart_from_other_failures() -> None:
    stream = object.__new__(BinlogStream)
    stream._server = Server.of("s", "mysql://a:b@h/d")
    gone = pymysql.OperationalError(LOST, "Could not find first log file name in binary log index file")
    reset = pymysql.OperationalError(LOST, "Client requested source to start replication from position > file size")
    assert isinstance(stream._failure(gone), PositionLost)
    assert isinstance(stream._failure(reset), PositionLost)
    other = pymysql.OperationalError(LOST, "A slave with the same server_id has connected")
    assert not isinstance(stream._failure(other), PositionLost)
