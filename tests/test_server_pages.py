"""`docs/how-to/my-postgresql.md` and `my-mysql.md`, by the letter: their SQL and their commands, at private servers."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from click.testing import CliRunner
from mariadb_server import MariaDb
from postgres_server import PostgresServer

from page_examples import DOCS, commands_of
from viewkeeper.cli.main import viewkeeper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POSTGRESQL, MYSQL = (DOCS / "how-to" / f"my-{name}.md" for name in ("postgresql", "mysql"))
PASSWORD = "s3cr3t"
TABLES = (
    "CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(40))",
    "CREATE TABLE orders (id INT PRIMARY KEY, customer INT, amount INT)",
    "INSERT INTO people VALUES (7, 'Ann')",
    "INSERT INTO orders VALUES (1, 7, 100)",
)


def fenced(page: Path, language: str) -> list[str]:
    """The blocks of a page in one language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def statements(block: str) -> list[str]:
    return [line.rstrip(";").replace("'...'", f"'{PASSWORD}'") for line in block.splitlines() if line.strip()]


class Typist:
    """Types the commands of a page, with another server in their URLs."""

    def __init__(self, page: Path, server: str, patch: pytest.MonkeyPatch) -> None:
        self._server, self._patch = server, patch
        self.commands = [words for block in fenced(page, "sh") for words in commands_of(block)]

    def type(self, verb: str, exit_code: int = 0) -> str:
        """The next commands up to one of this verb, and what that said."""
        while True:
            words = self.commands.pop(0)
            if words[0] == "export":
                self._patch.setenv(*words[1].replace("...", PASSWORD).split("=", 1))
            elif words[0] == "viewkeeper":
                said = self._run(words[1:], exit_code if words[1] == verb else 0)
                if words[1] == verb:
                    return said

    def _run(self, words: list[str], exit_code: int) -> str:
        # The private servers have no certificates, and nobody is here to press Ctrl-C.
        words = [
            re.sub(r"@db\.example:\d+/", f"@{self._server}/", word).removesuffix("?sslmode=require") for word in words
        ]
        done = CliRunner().invoke(viewkeeper, [*words, *(["--seconds", "1"] if words[0] == "run" else [])])
        assert done.exit_code == exit_code, f"{words}\n{done.output}\n{done.exception!r}"
        if words[0] == "run":
            # On a busy machine a second may be over before the changes are there.
            caught_up = CliRunner().invoke(viewkeeper, ["catch-up", "-w", "lake"])
            assert caught_up.exit_code == 0, caught_up.output
        return done.stdout


def rows(view: str) -> str:
    done = CliRunner().invoke(
        viewkeeper, ["query", f"SELECT * FROM {view} ORDER BY id", "--format", "csv", "-w", "lake"]
    )
    assert done.exit_code == 0, done.output
    return done.stdout


def doctor_of_shop() -> str:
    done = CliRunner().invoke(viewkeeper, ["doctor", "shop", "-w", "lake"])
    assert done.exit_code == 1, done.output
    return done.stdout


Run = Callable[..., None]


@pytest.fixture
def as_role(postgres_server: PostgresServer) -> Iterator[Run]:
    """A database `shop` whose tables belong to `app`; runs statements there as a role."""

    def run(role: str, *lines: str) -> None:
        with psycopg.connect(postgres_server.url("shop", role), autocommit=True) as session:
            for line in lines:
                session.execute(line.encode())

    with postgres_server.connect() as admin:
        admin.execute("DROP ROLE IF EXISTS viewkeeper; DROP ROLE IF EXISTS app; CREATE ROLE app LOGIN")
    with postgres_server.database("shop"):
        run("keeper", "GRANT CREATE ON SCHEMA public TO app")
        run("app", *TABLES)
        yield run
    with postgres_server.connect() as admin:
        admin.execute("ALTER SYSTEM RESET ALL")
        admin.execute("DROP ROLE IF EXISTS viewkeeper; DROP ROLE app")


def installed(server: PostgresServer) -> tuple[int, int, int]:
    """Publications, slots, and tables whose replica identity is not the default."""
    with server.connect("shop") as admin:
        row = admin.execute(
            "SELECT (SELECT count(*) FROM pg_publication), (SELECT count(*) FROM pg_replication_slots),"
            " (SELECT count(*) FROM pg_class WHERE relname IN ('orders', 'people') AND relreplident <> 'd')"
        ).fetchone()
    assert row is not None
    return row[0], row[1], row[2]


def told(output: str) -> list[tuple[str, str]]:
    """The statements of an output, with the role after each."""
    return re.findall(r"^ +(.+?;  -- as (\w+).*)$", output, flags=re.MULTILINE)


@pytest.mark.parametrize("way", ["simple", "strict", "without --install"])
def test_my_postgresql(
    way: str,
    as_role: Run,
    postgres_server: PostgresServer,
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    strict = way != "simple"
    settings, role, simple = fenced(POSTGRESQL, "sql")
    as_role("keeper", *statements(settings), *statements(role), *([] if strict else statements(simple)))
    typist = Typist(POSTGRESQL, f"127.0.0.1:{postgres_server.port}", monkeypatch)
    said = typist.type("doctor", exit_code=1)
    if strict:
        (shown,) = fenced(POSTGRESQL, "text")
        assert re.sub(r"viewkeeper_[0-9a-f]{32}_", "viewkeeper_ID_", said).replace("as keeper", "as postgres") == shown
        assert installed(postgres_server) == (0, 0, 0)
        for statement, who in told(said):
            if who != "viewkeeper" or way == "without --install":
                as_role(who, statement)
    if way == "without --install":
        typist.commands = [[word for word in words if word != "--install"] for words in typist.commands]
    typist.type("create-view")
    as_role("app", "INSERT INTO orders VALUES (2, 7, 200)")
    typist.type("audit")
    assert rows("named") == "id,name,amount\n1,Ann,100\n2,Ann,200\n"
    as_role("app", "ALTER TABLE orders RENAME COLUMN amount TO total")
    assert "shop.orders is not as it was when it was added: the column amount is gone" in doctor_of_shop()
    said = typist.type("remove-source")
    assert typist.commands == []
    assert installed(postgres_server) == ((1, 0, 2) if strict else (0, 0, 0))
    as_role("app", *(statement for statement, _ in told(said)))
    assert installed(postgres_server) == (0, 0, 0)


def test_a_project_over_tables_of_others_is_refused_by_its_plan(
    as_role: Run, postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    as_role("keeper", *statements(fenced(POSTGRESQL, "sql")[1]))
    url = postgres_server.url("shop", "viewkeeper")
    Path("viewkeeper.yml").write_text(
        f"warehouse: lake\nsources:\n  shop:\n    url: {url}\n    install: true\n    tables: [orders]\n"
    )
    Path("views").mkdir()
    Path("views/big.sql").write_text("CREATE MATERIALIZED VIEW big AS SELECT id FROM shop.orders")
    said = str(CliRunner().invoke(viewkeeper, ["plan"]).exception)
    assert said.startswith("viewkeeper.yml:4: shop cannot be installed as the user of its URL")
    assert "--as shop --table orders" in said
    doctor = CliRunner().invoke(viewkeeper, ["doctor", url, "--as", "shop", "--table", "orders", "-w", "lake"])
    for statement, who in told(doctor.output):
        as_role(who, statement)
    done = CliRunner().invoke(viewkeeper, ["plan"])
    assert "shop" in done.output, repr(done.exception)


def test_my_mysql(mariadb: MariaDb, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (privileges,) = fenced(MYSQL, "sql")
    with mariadb.root() as root:
        for statement in ("CREATE OR REPLACE DATABASE shop", "USE shop", *TABLES, *statements(privileges)):
            root.execute(statement)
        try:
            typist = Typist(MYSQL, f"127.0.0.1:{mariadb.port}", monkeypatch)
            # The private server does not sync its log: a warning.
            assert "missing" not in typist.type("doctor", exit_code=1)
            typist.type("create-view")
            root.execute("INSERT INTO orders VALUES (2, 7, 200), (3, 7, 50)")
            typist.type("run")
            assert rows("big") == "id,amount\n1,100\n2,200\n"
            root.execute("ALTER TABLE orders RENAME COLUMN amount TO total")
            assert "shop.orders is not as it was when it was added: the column amount is gone" in doctor_of_shop()
            assert typist.type("remove-source") == "removed shop\n"
            assert typist.commands == []
        finally:
            root.execute("DROP USER viewkeeper")
            root.execute("DROP DATABASE shop")


def test_my_mysql_with_a_cascading_foreign_key(
    mariadb: MariaDb, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user of the page sees no foreign key in information_schema; the tables are refused all the same."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    (privileges,) = fenced(MYSQL, "sql")
    url = f"mariadb://viewkeeper:${{SHOP_PASSWORD}}@127.0.0.1:{mariadb.port}/shop"
    cascade = "ADD CONSTRAINT cut FOREIGN KEY (customer) REFERENCES people (id) ON DELETE CASCADE"

    def typed(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(viewkeeper, [*words, "-w", "lake"])
        return done.exit_code, done.output + str(done.exception or "")

    with mariadb.root() as root:
        for statement in ("CREATE OR REPLACE DATABASE shop", "USE shop", *TABLES, *statements(privileges)):
            root.execute(statement)
        try:
            root.execute(f"ALTER TABLE orders {cascade}")
            for verb in (("doctor", url, "--as", "shop"), ("add-source", "shop", url)):
                code, said = typed(*verb, "--table", "orders")
                assert code != 0
                assert "is changed by its foreign key cut (ON DELETE CASCADE)" in said
            root.execute("ALTER TABLE orders DROP FOREIGN KEY cut")
            assert typed("add-source", "shop", url, "--table", "orders")[0] == 0
            assert typed("create-view", "CREATE MATERIALIZED VIEW big AS SELECT id, amount FROM shop.orders")[0] == 0
            root.execute(f"ALTER TABLE orders {cascade}")
            root.execute("DELETE FROM people")
            for verb in (("catch-up",), ("doctor", "shop"), ("reload", "big"), ("catch-up",)):
                code, said = typed(*verb)
                assert code != 0, f"{verb}: {said}"
                assert "foreign key cut" in said
            root.execute("ALTER TABLE orders DROP FOREIGN KEY cut")
            assert typed("reload", "big")[0] == 0
            assert rows("big") == "id,amount\n"
        finally:
            root.execute("DROP DATABASE shop")
            root.execute("DROP USER viewkeeper")
