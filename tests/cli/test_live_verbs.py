"""The verbs for sources and live views, over SQLite: what they print, what they do, how they fail."""

import json
import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result
from mariadb_server import MariaDb
from postgres_server import PostgresServer

from viewkeeper import Warehouse
from viewkeeper.cli.main import main, viewkeeper
from viewkeeper.mediator import retries
from viewkeeper.mediator.report import Report
from viewkeeper.serving import running

NAMED = "CREATE MATERIALIZED VIEW named AS SELECT o.id, p.name FROM shop.orders o JOIN crm.people p ON o.cust = p.id"


def write(database: Path, script: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(f"BEGIN; {script}; COMMIT;")


def call(*words: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(viewkeeper, [str(word) for word in words], input=stdin, catch_exceptions=False)


def output(*words: object, stdin: str | None = None, exit_code: int = 0) -> str:
    done = call(*words, stdin=stdin)
    assert done.exit_code == exit_code, done.output
    return done.stdout


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two databases; the warehouse is `lake`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIEWKEEPER_WAREHOUSE", "lake")
    write(
        tmp_path / "shop.db",
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, cust INTEGER, amount INTEGER);"
        "CREATE TABLE odd (a, b JSON);"
        "INSERT INTO orders VALUES (1, 7, 10)",
    )
    write(tmp_path / "crm.db", "CREATE TABLE people (id INTEGER, name TEXT); INSERT INTO people VALUES (7, 'Ann')")
    return tmp_path


@pytest.fixture
def lake(here: Path) -> Path:
    """Both are sources, and there is a view."""
    output("add-source", "shop", "sqlite:///shop.db", "--table", "orders", "--install")
    output("add-source", "crm", "sqlite:///crm.db", "--key", "people=id", "--install")
    output("create-view", NAMED)
    return here / "lake"


Fails = Callable[..., str]


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fails:
    """Runs words that must fail with exit code 2, without a trace; what is said."""

    def run(*words: object) -> str:
        monkeypatch.setattr("sys.argv", ["viewkeeper", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        said = capsys.readouterr().err
        assert stop.value.code == 2, said
        assert "Traceback" not in said
        assert "a mistake in viewkeeper" not in said
        return said

    return run


# Sources


def test_a_source_is_added_to_a_new_warehouse(here: Path) -> None:
    told = output("add-source", "shop", "sqlite:///shop.db", "--table", "orders", "--install").splitlines()
    assert told == [
        "added shop, sqlite, at sqlite:///shop.db",
        "relation     key  columns",
        "shop.orders  id   id BIGINT, cust BIGINT, amount BIGINT",
    ]
    (source,) = json.loads(output("sources", "--json"))["sources"]
    assert source == {
        "name": "shop",
        "kind": "sqlite",
        "url": "sqlite:///shop.db",
        "installed": True,
        "global_transactions": False,
        "transactions": "local",
        "relations": {
            "shop.orders": {"columns": {"id": "BIGINT", "cust": "BIGINT", "amount": "BIGINT"}, "key": ["id"]}
        },
        "foreign_keys": [],
        "hierarchies": {},
    }


def test_keys_that_the_database_does_not_know(here: Path) -> None:
    told = json.loads(output("add-source", "crm", "sqlite:///crm.db", "--key", "people=id,name", "--install", "--json"))
    assert told["relations"]["crm.people"]["key"] == ["id", "name"]


def test_several_hierarchies_of_one_table_are_a_partial_order(here: Path, fails: Fails) -> None:
    shop = ("add-source", "shop", "sqlite:///shop.db", "--table", "orders", "--install", "--json")
    told = json.loads(output(*shop, "--hierarchy", "orders=id,cust", "--hierarchy", "orders=id,amount"))
    assert told["hierarchies"] == {"orders": [["id", "cust"], ["id", "amount"]]}
    assert output("sources").splitlines()[-2:] == [
        "hierarchy of shop.orders: id → cust",
        "hierarchy of shop.orders: id → amount",
    ]
    more = json.loads(output(*shop, "--hierarchy", "orders=cust,amount"))
    assert more["hierarchies"] == {"orders": [["id", "cust"], ["id", "amount"], ["cust", "amount"]]}
    said = fails(*shop, "--hierarchy", "orders=amount,id")
    assert "hierarchy orders runs in a circle: id → amount → id" in said
    assert "keep one of them" in said
    mixed = fails(*shop, "--hierarchy", "orders=", "--hierarchy", "Orders=id,cust")
    assert "withdraw them in a command of its own" in mixed
    assert json.loads(output(*shop, "--hierarchy", "ORDERS="))["hierarchies"] == {}


def test_what_was_declared_stays_when_a_source_is_added_again(here: Path) -> None:
    shop = ("add-source", "shop", "sqlite:///shop.db", "--table", "orders", "--install")
    told = output(*shop, "--hierarchy", "orders=id,cust", "--foreign-key", "orders.cust=crm.people.id")
    assert told.splitlines()[-2:] == [
        "hierarchy of shop.orders: id → cust",
        "foreign key: shop.orders.cust → crm.people.id",
    ]
    again = json.loads(output(*shop, "--json"))
    assert again["hierarchies"] == {"orders": [["id", "cust"]]}
    assert again["foreign_keys"] == [["orders.cust", "crm.people.id"]]
    assert output("sources").splitlines()[-1] == "foreign key: shop.orders.cust → crm.people.id"
    assert json.loads(output(*shop, "--json", "--foreign-key", "orders.cust="))["foreign_keys"] == []
    crm = ("add-source", "crm", "sqlite:///crm.db", "--install")
    output(*crm, "--key", "people=id")
    assert json.loads(output(*crm, "--json"))["relations"]["crm.people"]["key"] == ["id"]


def test_sources_as_a_table(lake: Path) -> None:
    told = [line.split() for line in output("sources").splitlines()]
    assert told[1] == ["crm", "sqlite", "yes", "local", "sqlite:///crm.db"]
    assert ["crm.people", "id", "id", "BIGINT,", "name", "STRING"] in told


def test_no_sources_yet(here: Path, fails: Fails) -> None:
    assert "is not a warehouse" in fails("sources")
    fails("add-source", "shop", "sqlite:///shop.db", "--table", "orders")
    assert output("sources") == "no sources yet\n"


def test_a_source_that_is_gone_is_forgotten_by_force(lake: Path, fails: Fails) -> None:
    output("drop-view", "named")
    Path("shop.db").unlink()
    assert "by force" in fails("remove-source", "shop")
    assert output("remove-source", "shop", "--force") == "removed shop\n"
    assert "shop" not in output("sources")


def test_doctor_of_a_url_needs_no_warehouse_yet(here: Path, fails: Fails) -> None:
    assert "not a warehouse" in fails("doctor", "crm", "-w", "new")
    assert not Path("new").exists()
    assert "CREATE TRIGGER" in output("doctor", "sqlite:///crm.db", "--as", "crm", "-w", "new", exit_code=1)
    # What is installed carries this identity: what was run by hand has to fit.
    identity = json.loads(output("status", "-w", "new", "--json"))["id"]
    output("add-source", "crm", "sqlite:///crm.db", "--install", "-w", "new")
    assert json.loads(output("status", "-w", "new", "--json"))["id"] == identity


def test_doctor(here: Path, fails: Fails) -> None:
    said = fails("add-source", "shop", "sqlite:///shop.db", "--table", "orders")
    assert "nothing captures the changes of" in said
    assert "--install" in said
    told = output("doctor", "sqlite:///crm.db", "--as", "crm", exit_code=1)
    assert told.startswith("missing: nothing captures the changes of")
    assert "CREATE TRIGGER" in told
    with closing(sqlite3.connect("crm.db")) as connection:
        assert connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone() == (1,), "nothing was changed"
    output("add-source", "crm", "sqlite:///crm.db", "--install")
    assert output("doctor", "crm") == "all is well\n"
    with closing(sqlite3.connect("crm.db")) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    findings = json.loads(output("doctor", "crm", "--json", exit_code=1))["findings"]
    assert [(finding["fatal"], finding["fix"]) for finding in findings] == [(False, "PRAGMA journal_mode = WAL;")]


def test_a_source_is_removed_without_a_trace(lake: Path, fails: Fails) -> None:
    assert "in use by named" in fails("remove-source", "shop")
    assert output("drop-view", "named") == "dropped named\n"
    assert output("remove-source", "shop") == "removed shop\n"
    assert json.loads(output("remove-source", "crm", "--json")) == {"removed": "crm", "left": []}
    with closing(sqlite3.connect("shop.db")) as connection:
        assert connection.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall() == [("odd",), ("orders",)]
    assert output("sources") == "no sources yet\n"


# Views


def test_create_view_from_an_argument_a_file_and_standard_input(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "big.sql").write_text("CREATE MATERIALIZED VIEW big AS SELECT id FROM shop.orders WHERE amount > 9")
    assert output("create-view", "--file", "big.sql") == (
        "created big with 1 row, in group named: batched-sweep, complete consistency\n"
    )
    made = json.loads(
        output(
            "create-view",
            "-",
            "--json",
            stdin="CREATE MATERIALIZED VIEW s TBLPROPERTIES ('consistency' = 'strong', 'group' = 'g') "
            "AS SELECT id FROM shop.orders",
        )
    )
    assert made == {
        "view": "s",
        "group": "g",
        "algorithm": "batched-sweep",
        "consistency": "complete",
        "state": 0,
        "rows": 1,
    }


def test_catch_up_and_its_history(lake: Path) -> None:
    write(Path("shop.db"), "INSERT INTO orders VALUES (2, 7, 20)")
    write(Path("crm.db"), "INSERT INTO people VALUES (8, 'Bo')")
    told = output("catch-up", "--history", "run.json")
    assert told.startswith("caught up: 2 transactions became 2 states in ")
    assert json.loads(output("check", "run.json", "--json"))["level"] == "complete"
    told = json.loads(output("catch-up", "--json"))
    assert told["positions"].keys() == {"crm", "shop"}
    assert told["groups"][0]["transactions"] == 0
    assert told["halted"] == {}


def test_run_for_some_time(lake: Path) -> None:
    write(Path("shop.db"), "INSERT INTO orders VALUES (2, 7, 20)")
    for _ in range(60):  # on a busy machine a second may be over before it has come to anything
        lines = output("run", "--seconds", "1").splitlines()
        assert " at crm " in lines[0]
        if " 1 transaction became " in lines[-1]:
            break
    assert re.match(r"stopped after \d+ s: 1 transaction became 1 state in 1 commit with ", lines[-1])
    *looks, end = map(json.loads, output("run", "--seconds", "0.5", "--json").splitlines())
    assert [group["name"] for group in looks[0]["groups"]] == ["named"]
    assert end["seconds"] >= 0.5
    assert not (lake / "_viewkeeper" / "running.json").exists()


def test_audit(lake: Path) -> None:
    assert output("audit", "named").startswith("named: right, 1 distinct row at state 0, crm ")
    audits = json.loads(output("audit", "--all", "--json"))["audits"]
    assert [(one["view"], one["right"]) for one in audits] == [("named", True)]


def test_audit_of_a_view_that_is_wrong(lake: Path) -> None:
    # A table is written while its triggers are away: nobody can know of that.
    with closing(sqlite3.connect("shop.db")) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute("UPDATE orders SET id = 5")
        for _, sql in triggers:
            connection.execute(sql)
        connection.commit()
    told = output("audit", "named", exit_code=1).splitlines()
    assert told[0].startswith("named: WRONG at state 0")
    assert told[0].endswith("1 row missing, 1 row too many")
    assert told[1:] == [
        "  missing 1 x (5, 'Ann')",
        "  extra 1 x (1, 'Ann')",
        "  the way out: viewkeeper reload named",
    ]
    (found,) = json.loads(output("audit", "--all", "--json", exit_code=1))["audits"]
    assert found["missing"] == {"rows": 1, "sample": [{"row": [5, "Ann"], "times": 1}]}
    assert output("reload", "named") == "reloaded named: 1 row in state 1\n"
    assert output("audit", "named").startswith("named: right")


def test_a_halted_view_and_the_way_out(lake: Path, fails: Fails) -> None:
    output("drop-view", "named")
    output(
        "create-view",
        "CREATE MATERIALIZED VIEW share AS SELECT id, amount * 100000000000000000 AS part FROM shop.orders",
    )
    write(Path("shop.db"), "INSERT INTO orders VALUES (2, 7, 1000)")
    told = output("catch-up", exit_code=1)
    assert "halted: share: " in told
    assert "  the way out: viewkeeper reload share" in told
    told = output("status")
    assert "share  batched-sweep  complete     yes" in told
    assert "share is halted since " in told
    assert json.loads(output("status", "--json"))["views"][0]["halted"]["state"] == 0
    assert "not audited, it is halted" in output("audit", "--all", exit_code=1)
    for verb in ("run", "catch-up"):
        assert "every view is halted" in output(verb, exit_code=1)
    write(Path("shop.db"), "UPDATE orders SET amount = 20 WHERE amount = 1000")
    assert output("reload", "share").startswith("reloaded share: 2 rows in state ")
    assert output("audit", "--all").startswith("share: right")
    assert "share  batched-sweep  complete     no" in output("status")


def test_status(lake: Path) -> None:
    told = json.loads(output("status", "--json"))
    assert told["sources"][0] == {
        "source": "crm",
        "kind": "sqlite",
        "url": "sqlite:///crm.db",
        "relations": ["crm.people"],
        "installed": True,
    }
    (view,) = told["views"]
    assert (view["algorithm"], view["consistency"], view["halted"]) == ("batched-sweep", "complete", None)
    assert told["running"] is None


# Bad input


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["add-source", "x", "sqlite:///none.db"], ["none.db", "No such file"]),
        (["add-source", "x", "oracle://db"], ["no kind of source 'oracle'", "sqlite://"]),
        (["add-source", "x", "shop.db"], ["without a scheme", "sqlite://"]),
        (["add-source", "X-1", "sqlite:///crm.db"], ["cannot be named 'X-1'", "lower-case"]),
        (["add-source", "shop", "sqlite:///crm.db"], ["there is a source 'shop' already", "remove it first"]),
        (["add-source", "x", "sqlite:///shop.db", "--table", "ordres"], ["no table ordres", "it has: odd, orders"]),
        (["add-source", "x", "sqlite:///shop.db", "--install"], ["odd"]),
        (["add-source", "x", "sqlite:///crm.db", "--key", "people"], ["--key 'people' names no key"]),
        (["add-source", "x", "sqlite:///crm.db", "--key", "people=nr", "--install"], ["nr", "id, name"]),
        (
            ["add-source", "x", "sqlite:///crm.db", "--hierarchy", "people=id"],
            ["names no hierarchy", "the finest first"],
        ),
        (["add-source", "x", "sqlite:///crm.db", "--hierarchy", "id,name"], ["names no hierarchy"]),
        (["add-source", "x", "sqlite:///crm.db", "--hierarchy", "people=id,,name"], ["names no hierarchy"]),
        (
            ["add-source", "x", "sqlite:///crm.db", "--hierarchy", "people=id,nom", "--install"],
            ["the hierarchy of people: x.people has no column nom", "its columns are: id, name"],
        ),
        (
            ["add-source", "x", "sqlite:///crm.db", "--hierarchy", "persons=id,name", "--install"],
            ["has no table persons", "the tables are: people"],
        ),
        (
            ["add-source", "x", "sqlite:///crm.db", "--hierarchy", "people=id,id", "--install"],
            ["the hierarchy of people is id, id", "each once"],
        ),
        (
            ["add-source", "x", "sqlite:///crm.db", "--foreign-key", "people.id=b.c"],
            ["names no foreign key", "orders.cust="],
        ),
        (["add-source", "x", "sqlite:///crm.db", "--foreign-key", "id=a.b.c"], ["names no foreign key"]),
        (["add-source", "x", "sqlite:///crm.db", "--foreign-key", "people.id"], ["names no foreign key"]),
        (
            ["add-source", "x", "sqlite:///crm.db", "--foreign-key", "people.nr=a.b.c", "--install"],
            ["the foreign key people.nr: x.people has no column nr"],
        ),
        (["add-source", "x", "postgresql://ann:${NO_SUCH}@db/x"], ["${NO_SUCH}", "set NO_SUCH"]),
        (["add-source", "x", "files://ann:s3cret@host/folder"], ["files://ann@host/folder names no folder"]),
        (["doctor", "none"], ["no source 'none'", "it has: crm, shop"]),
        (["doctor", "shop", "--as", "crm"], ["has a name already"]),
        (["remove-source", "none"], ["no source 'none'", "it has: crm, shop"]),
        (["create-view"], ["there is no view", "--file"]),
        (["create-view", "SELECT id FROM shop.orders"], ["the view has no name", "CREATE MATERIALIZED VIEW"]),
        (["create-view", "CREATE MATERIALIZED VIEW v AS SELECT id FROM shop.ordres"], ["ordres"]),
        (["create-view", NAMED], ["named"]),
        (["drop-view", "none"], ["no view 'none'", "it has: named"]),
        (["reload", "none"], ["no view 'none'"]),
        (["audit", "none"], ["no view 'none'"]),
        (["audit"], ["no view to audit", "--all"]),
        (["audit", "named", "--all"], ["views and --all"]),
        (["run", "--seconds", "-1"], ["--seconds"]),
    ],
)
def test_bad_input_is_explained(lake: Path, fails: Fails, words: list[str], says: list[str]) -> None:
    said = fails(*words)
    assert [text for text in says if text not in said] == []
    assert "s3cret" not in said


def test_nothing_to_maintain(here: Path, fails: Fails) -> None:
    output("add-source", "crm", "sqlite:///crm.db", "--install")
    for verb in ("run", "catch-up"):
        assert "there are no views over sources" in fails(verb)
    assert output("audit", "--all") == "there are no views over sources\n"


def test_a_folder_with_something_else_in_it_becomes_no_warehouse(here: Path, fails: Fails) -> None:
    assert "is not a warehouse" in fails("add-source", "crm", "sqlite:///crm.db", "-w", ".")
    assert not (here / "_viewkeeper").exists()


def test_several_views_have_several_histories(lake: Path, fails: Fails) -> None:
    output("create-view", "CREATE MATERIALIZED VIEW ids AS SELECT id FROM shop.orders")
    assert "write {view} into the name" in fails("catch-up", "--history", "run.json")
    output("catch-up", "--history", "run-{view}.json")
    assert sorted(name for name in os.listdir() if name.startswith("run-")) == ["run-ids.json", "run-named.json"]


# Servers

SECRET = "t0p-s3cr3t"


def stored_anywhere(folder: Path, secret: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_passwords_of_postgresql(
    here: Path, fails: Fails, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_server.database("cli") as url:
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT)")
            admin.execute("DROP ROLE IF EXISTS with_password")
            admin.execute(f"CREATE ROLE with_password LOGIN SUPERUSER PASSWORD '{SECRET}'")
        wrong = postgres_server.url("cli", "with_password", "wr0ng-one")
        said = fails("add-source", "pg", wrong)
        assert "wr0ng-one" not in said
        assert "with_password" in said
        done = call("add-source", "pg", postgres_server.url("cli", "with_password", SECRET), "--install")
        assert done.exit_code == 0, done.output
        assert "later commands take it from VIEWKEEPER_PASSWORD_PG" in done.stderr
        assert SECRET not in done.output
        assert SECRET not in fails("doctor", "pg")
        monkeypatch.setenv("VIEWKEEPER_PASSWORD_PG", SECRET)
        assert call("doctor", "pg").exit_code in (0, 1)
        output("create-view", "CREATE MATERIALIZED VIEW v AS SELECT id, v FROM pg.t")
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("INSERT INTO t VALUES (1, 'one')")
        assert "1 transaction became 1 state" in output("catch-up")
        assert output("audit", "--all").startswith("v: right, 1 distinct row")
        assert SECRET not in output("sources") + output("status", "--json")
        assert stored_anywhere(here / "lake", SECRET) == []
        output("drop-view", "v")
        assert output("remove-source", "pg") == "removed pg\n"
        with psycopg.connect(url) as admin:
            assert admin.execute("SELECT COUNT(*) FROM pg_replication_slots").fetchone() == (0,)
            assert admin.execute("SELECT COUNT(*) FROM pg_publication").fetchone() == (0,)


def test_a_password_that_postgresql_refuses_is_tried_again_and_said(
    here: Path, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(running, "EVERY", 0.0)
    said: list[str] = []
    with postgres_server.database("refused") as url, psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT)")
        admin.execute("DROP ROLE IF EXISTS with_password")
        admin.execute(f"CREATE ROLE with_password LOGIN SUPERUSER PASSWORD '{SECRET}'")
        monkeypatch.setenv("VIEWKEEPER_PASSWORD_PG", SECRET)
        output("add-source", "pg", postgres_server.url("refused", "with_password", SECRET), "--install")
        output("create-view", "CREATE MATERIALIZED VIEW v AS SELECT id, v FROM pg.t")
        admin.execute("INSERT INTO t VALUES (1, 'one')")
        admin.execute("ALTER ROLE with_password PASSWORD 'an0ther-one'")

        def verb(*words: str) -> str:
            done = call(*words)
            assert done.exit_code == 1, done.output
            said.append(done.output)
            return done.output

        assert "password authentication failed" in verb("run", "--exit-on-failure")
        assert "password authentication failed" in verb("catch-up")
        assert json.loads(verb("status", "--check", "--json"))["problems"]
        attempts: list[int] = []
        fixed: list[bool] = []

        def watch(report: Report) -> None:
            (group,) = report.groups
            if group.failure is not None:
                said.append(group.failure)
                attempts.append(group.attempts)
                assert group.retry_in <= 0.05 * 2 ** (group.attempts - 1)
            if group.attempts >= 3 and not fixed:
                said.append(status := output("status"))
                assert "password authentication failed" in status
                assert "password authentication failed" in verb("status", "--check")
                admin.execute(f"ALTER ROLE with_password PASSWORD '{SECRET}'")
                fixed.append(True)
            if report.transactions and group.failure is None:
                warehouse.stop()

        with Warehouse.open("lake") as warehouse:
            warehouse.run(300, watch=watch)
            assert warehouse.arrow("v").to_pydict() == {"id": [1], "v": ["one"]}
        assert fixed
        assert attempts == sorted(attempts)
        assert not [one for one in said if SECRET in one or "an0ther-one" in one]
        assert stored_anywhere(here / "lake", SECRET) == []
        output("drop-view", "v")
        output("remove-source", "pg")


def test_passwords_of_mariadb(here: Path, fails: Fails, mariadb: MariaDb, monkeypatch: pytest.MonkeyPatch) -> None:
    with mariadb.root() as root:
        root.execute("CREATE DATABASE cli")
        root.execute("CREATE TABLE cli.t (id BIGINT PRIMARY KEY, v VARCHAR(20))")
    said = fails("add-source", "my", mariadb.url("cli", password="wr0ng-one"))
    assert "wr0ng-one" not in said
    assert "none" in fails("add-source", "my", mariadb.url("none"))
    monkeypatch.setenv("MY_PASSWORD", "s3cr3t:/@word")
    url = mariadb.url("cli", password="${MY_PASSWORD}")
    output("add-source", "my", url, "--install")
    assert json.loads(output("sources", "--json"))["sources"][0]["url"] == url
    output("create-view", "CREATE MATERIALIZED VIEW v AS SELECT id, v FROM my.t")
    with mariadb.root() as root:
        root.execute("INSERT INTO cli.t VALUES (1, 'one')")
    assert "1 transaction became 1 state" in output("catch-up")
    assert output("audit", "--all").startswith("v: right, 1 distinct row")
    assert stored_anywhere(here / "lake", "s3cr3t:/@word") == []
    output("drop-view", "v")
    output("remove-source", "my")
    with mariadb.root() as root:
        root.execute("DROP DATABASE cli")
