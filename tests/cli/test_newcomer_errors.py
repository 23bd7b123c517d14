"""The mistakes of the first hour: each is answered with what is wrong and what to do about it.

Every answer names the fix, exits with 2, shows no traceback and no password, and leaves the warehouse as it was.
"""

import json
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from viewkeeper import Warehouse
from viewkeeper.cli.main import main
from viewkeeper.lake.log import store as stores

SECRET = "gr8-s3cret"
VIEW = "CREATE MATERIALIZED VIEW"

Prepare = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two databases, one of them a source of the warehouse `lake`, and a view over it."""
    folder = tmp_path_factory.mktemp("chain")
    with closing(sqlite3.connect(folder / "shop.db")) as shop:
        shop.executescript(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER);"
            "CREATE TABLE notes (word TEXT);"
            "INSERT INTO orders VALUES (1, 7, 40)"
        )
    with closing(sqlite3.connect(folder / "crm.db")) as crm:
        crm.executescript("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
    (folder / "other").mkdir()
    (folder / "other" / "thesis.txt").write_text("Chapter 1. " * 100)
    (folder / "newer" / "_viewkeeper").mkdir(parents=True)
    (folder / "newer" / "_viewkeeper" / "format.json").write_text(json.dumps({"format": 99, "id": "x"}))
    with Warehouse.open(folder / "lake") as warehouse:
        warehouse.add_source("shop", f"sqlite:///{folder / 'shop.db'}", install=True)
        warehouse.create_view(f"{VIEW} big_orders AS SELECT id, amount FROM shop.orders")
        with closing(sqlite3.connect(folder / "shop.db")) as shop:
            shop.execute("INSERT INTO orders VALUES (2, 7, 50)")
            shop.commit()
        warehouse.catch_up()
        warehouse.vacuum(0, grace=0)
    return folder


# --- what is not here, simulated where it would be met ---


def no_java(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("PATH", "")
    patch.delenv("JAVA_HOME", raising=False)
    patch.setattr("viewkeeper.lake.tables.spark_session.running_session", lambda: None)


def no_psycopg(patch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("viewkeeper.sources.postgres.")]:
        patch.delitem(sys.modules, name)
    patch.setitem(sys.modules, "psycopg", None)


def no_privilege(patch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    patch.setattr(stores.LocalStore, "_make_folder", refuse)


def wrong_password_at_postgres(patch: pytest.MonkeyPatch) -> None:
    import psycopg

    def refuse(**given: Any) -> None:
        text = f'connection failed: FATAL:  password authentication failed for user "ann" with {given["password"]}'
        raise psycopg.OperationalError(text)

    patch.setattr(psycopg.Connection, "connect", refuse)


def wrong_password_at_mysql(patch: pytest.MonkeyPatch) -> None:
    import pymysql

    def refuse(self: Any, *_: object, **__: object) -> None:
        raise pymysql.OperationalError(1045, f"Access denied for user 'ann' (using password: {SECRET})")

    patch.setattr("viewkeeper.sources.mysql.connections.Server.opened", refuse)


def postgres_without_logical_wal(patch: pytest.MonkeyPatch) -> None:
    """The real doctor of a server, over the answers that one with wal_level=replica gives."""
    from viewkeeper.sources.base import Source
    from viewkeeper.sources.postgres import doctor
    from viewkeeper.sources.postgres.source import PostgresSource

    row = (False, "replica", 10, 10, "UTF8", "10GB", 0, 0, "ann", True, False)

    class Server:
        info = type("Info", (), {"server_version": 170000})

        def execute(self, *_: object) -> "Server":
            return self

        def fetchone(self) -> tuple[object, ...]:
            return row

    def begin(self: Any, request: Any, *_: object) -> None:
        Source.__init__(self)
        self.name, self.relations = request.name, {}

    server: Any = Server()
    patch.setattr(PostgresSource, "__init__", begin)
    patch.setattr(PostgresSource, "doctor", lambda self: list(doctor._server(server, "slot")))
    patch.setattr(PostgresSource, "close", lambda self: None)


def mysql_without_a_log(patch: pytest.MonkeyPatch) -> None:
    """The same of a MySQL server that writes no binary log."""
    from viewkeeper.sources.base import Source
    from viewkeeper.sources.mysql import doctor
    from viewkeeper.sources.mysql.source import MySqlSource

    def begin(self: Any, request: Any) -> None:
        Source.__init__(self)
        self.name, self.relations = request.name, {}

    def findings(self: Any) -> list[Any]:
        looked: Any = object.__new__(doctor.Doctor)
        looked._mariadb = True
        return list(looked._log(None))

    patch.setattr(doctor, "variable", lambda connection, name: "OFF")
    patch.setattr(MySqlSource, "__init__", begin)
    patch.setattr(MySqlSource, "doctor", findings)
    patch.setattr(MySqlSource, "close", lambda self: None)


def nothing_to_prepare(_: pytest.MonkeyPatch) -> None:
    """The mistake is in the words alone."""


# --- the table ---


@dataclass(frozen=True)
class Mistake:
    """What was typed, what is said about it, and the words without which the hint would be no help."""

    name: str
    words: list[str]
    says: str
    fix: str
    prepare: Prepare = nothing_to_prepare


def create(select: str, name: str = "x") -> list[str]:
    return ["create-view", f"{VIEW} {name} AS {select}", "-w", "lake"]


def add(url: str, *more: str) -> list[str]:
    return ["add-source", "new", url, *more, "-w", "lake"]


POSTGRES, MYSQL = f"postgresql://ann:{SECRET}@127.0.0.1:1/crm", f"mysql://ann:{SECRET}@127.0.0.1:1/crm"

MISTAKES = [
    # the command line
    Mistake("verb mistyped", ["staus"], "no verb 'staus'", "did you mean status"),
    Mistake("option mistyped", ["status", "--wharehouse", "lake"], "--wharehouse", "--warehouse"),
    Mistake("no argument", ["create-view", "-w", "lake"], "there is no view", "--file"),
    Mistake("file with the SQL is not there", ["create-view", "--file", "no.sql"], "no.sql", "name a file"),
    # the folder
    Mistake("not a warehouse", ["status", "-w", "other"], "is not a warehouse", "with -w"),
    Mistake("a file and not a folder", ["status", "-w", "shop.db"], "is not a folder", "with -w"),
    Mistake(
        "a folder with other things in it",
        ["add-source", "new", "sqlite:///shop.db", "-w", "other"],
        "it is not empty",
        "name an empty or a new folder",
    ),
    Mistake("written by a later version", ["status", "-w", "newer"], "format 99", "install a later viewkeeper"),
    Mistake(
        "a folder that may not be written",
        ["add-source", "new", "sqlite:///crm.db", "-w", "locked"],
        "Permission denied",
        "grant this user access",
        no_privilege,
    ),
    # sources
    Mistake("a path and no URL", add("shop.db"), "without a scheme", "sqlite:///shop.db"),
    Mistake("wrong scheme", add("postgressql://db/crm"), "no kind of source 'postgressql'", "did you mean postgresql?"),
    Mistake("a slash too few", add("sqlite://shop.db"), "no host", "sqlite:///relative/path.db"),
    Mistake(
        "database that is not there", add("sqlite:///shopp.db"), "shopp.db: No such file", "sqlite:////data/shop.db"
    ),
    Mistake("not a database", add("sqlite:///other/thesis.txt"), "is not a database", "SQLite"),
    Mistake("table that is not there", add("sqlite:///shop.db", "--table", "order"), "no table order", "mean orders?"),
    Mistake("nothing installed", add("sqlite:///crm.db"), "nothing captures the changes", "add it with --install"),
    Mistake("variable not set", add("postgresql://ann:${NO_SUCH}@db/crm"), "${NO_SUCH}", "set NO_SUCH"),
    Mistake("no driver", add(POSTGRES), "psycopg", "pip install 'viewkeeper[postgres]'", no_psycopg),
    Mistake("no PostgreSQL there", add(POSTGRES), "Connection refused", "host and port of the URL"),
    Mistake("no MySQL there", add(MYSQL), "Connection refused", "host and port of the URL"),
    Mistake(
        "wrong password at PostgreSQL",
        add(POSTGRES),
        "password authentication failed",
        "correct the URL of the source",
        wrong_password_at_postgres,
    ),
    Mistake("wrong password at MySQL", add(MYSQL), "Access denied", "check user and password", wrong_password_at_mysql),
    Mistake(
        "PostgreSQL without logical decoding",
        add(POSTGRES),
        "wal_level is replica",
        "ALTER SYSTEM SET wal_level = 'logical'",
        postgres_without_logical_wal,
    ),
    Mistake("MySQL without a binary log", add(MYSQL), "no binary log", "log_bin = binlog", mysql_without_a_log),
    Mistake(
        "source name", ["add-source", "My-Shop", "sqlite:///crm.db", "-w", "lake"], "My-Shop", "lower-case letters"
    ),
    Mistake("source name taken", ["add-source", "shop", "sqlite:///crm.db", "-w", "lake"], "already", "another name"),
    Mistake("source that is not there", ["doctor", "shopp", "-w", "lake"], "no source 'shopp'", "did you mean shop?"),
    Mistake("source in use", ["remove-source", "shop", "-w", "lake"], "in use by big_orders", "drop those views first"),
    # views
    Mistake("syntax error", create("SELECT id FROM shop.orders WHERE"), "ends too early", f"write {VIEW} name AS"),
    Mistake("a view without a name", ["create-view", "SELECT id FROM shop.orders", "-w", "lake"], "no name", VIEW),
    Mistake(
        "not materialized", ["create-view", "CREATE VIEW x AS SELECT 1", "-w", "lake"], "CREATE VIEW", f"write {VIEW}"
    ),
    Mistake("name taken", create("SELECT id FROM shop.orders", "big_orders"), "'big_orders' already", "another name"),
    Mistake("unknown column", create("SELECT amuont FROM shop.orders"), "amuont", "did you mean amount?"),
    Mistake("unknown table", create("SELECT id FROM shop.ordrs"), "shop.ordrs", "did you mean shop.orders"),
    Mistake("unknown source", create("SELECT id FROM shp.orders"), "shp.orders", "write shop.orders"),
    Mistake("table without its source", create("SELECT id FROM orders"), "has no source", "write shop.orders"),
    Mistake("a random value", create("SELECT id, rand() AS r FROM shop.orders"), "rand is refused", "hash(...)"),
    Mistake("a nameless aggregate", create("SELECT COUNT(*) FROM shop.orders"), "COUNT(*) has no name", "AS name"),
    Mistake(
        "neither grouped nor aggregated",
        create("SELECT id, COUNT(*) AS n FROM shop.orders GROUP BY customer"),
        "neither grouped by nor aggregated",
        "add id to GROUP BY",
    ),
    Mistake(
        "property mistyped",
        ["create-view", f"{VIEW} x TBLPROPERTIES ('consistancy' = 'weak') AS SELECT id FROM shop.orders", "-w", "lake"],
        "consistancy",
        "did you mean consistency?",
    ),
    Mistake(
        "table without a key",
        [
            "create-view",
            f"{VIEW} x TBLPROPERTIES ('algorithm' = 'strobe') AS SELECT word FROM shop.notes",
            "-w",
            "lake",
        ],
        "key",
        "declare",
    ),
    # reading and maintaining
    Mistake("view that is not there", ["states", "big_order", "-w", "lake"], "'big_order'", "did you mean big_orders?"),
    Mistake(
        "state that was vacuumed",
        ["changes", "big_orders", "--since", "0", "-w", "lake"],
        "state",
        "'viewkeeper states big_orders'",
    ),
    Mistake("no views yet", ["run", "-w", "fresh"], "no views over sources", "viewkeeper create-view"),
    Mistake("duration", ["vacuum", "--retention", "a week", "-w", "lake"], "'a week'", "7 days"),
    Mistake("nothing to audit", ["audit", "-w", "lake"], "no view to audit", "--all"),
    Mistake("no Java", ["query", "SELECT 1", "-w", "lake"], "no 'java' on the PATH", "install Java 17", no_java),
    Mistake(
        "Parquet to a terminal",
        ["query", "SELECT 1", "--format", "parquet", "-w", "lake"],
        "not for a terminal",
        "--output",
    ),
]


@pytest.fixture
def here(chain: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(chain)
    monkeypatch.delenv("VIEWKEEPER_WAREHOUSE", raising=False)
    return chain


@pytest.fixture(scope="module", autouse=True)
def fresh(chain: Path) -> None:
    """A warehouse with nothing in it."""
    Warehouse.open(chain / "fresh").close()


def typed(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["viewkeeper", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def last_commit() -> int:
    with Warehouse.open("lake", read_only=True) as warehouse:
        return warehouse.status().commit


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_the_answer_names_the_fix(
    mistake: Mistake, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = last_commit()
    with monkeypatch.context() as patch:
        mistake.prepare(patch)
        code = typed(mistake.words, monkeypatch)
    shown = capsys.readouterr()
    error, _, hint = shown.err.partition("\n  hint: ")
    assert mistake.says in error
    assert mistake.fix in hint or mistake.fix in error.splitlines()[-1]
    assert code == 2
    assert "Traceback" not in shown.err + shown.out
    assert "a mistake in viewkeeper" not in shown.err
    assert SECRET not in shown.err + shown.out
    assert last_commit() == before


def test_there_are_enough_of_them() -> None:
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES) >= 20


def test_two_processes_that_write(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Warehouse.open("lake"):
        assert typed(["compact", "-w", "lake"], monkeypatch) == 2
    shown = capsys.readouterr().err
    assert "is being written by process" in shown
    assert "hint: stop it first; what only reads (status, query, " in shown


OLD_JAVA = """#!/bin/sh
echo 'Error: LinkageError occurred while loading main class org.apache.spark.launcher.Main' >&2
echo 'java.lang.UnsupportedClassVersionError: org/apache/spark/launcher/Main has been compiled by a more recent' >&2
exit 1
"""


def test_a_java_that_is_too_old(tmp_path: Path) -> None:
    from viewkeeper.errors import SparkMissing
    from viewkeeper.lake.tables.spark_session import _did_not_start

    said = tmp_path / "said"
    said.write_text(OLD_JAVA)
    with said.open("rb") as printed:
        error = _did_not_start(printed)
    assert isinstance(error, SparkMissing)
    assert "too old" in error.detail
    assert "install Java 17 or later" in error.hint
