"""Transactions that span databases, by the command line: merged captures, and parts that do not come."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from viewkeeper.cli.main import main, viewkeeper
from viewkeeper.mediator import waits
from viewkeeper.warehouse import Warehouse

BOTH = "SELECT e.id, e.balance AS east, w.balance AS west FROM east.accounts e JOIN west.accounts w ON e.id = w.id"


def call(*words: object, exit_code: int = 0) -> str:
    done = CliRunner().invoke(viewkeeper, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == exit_code, done.output
    return done.stdout


def commit(database: str, *statements: str) -> None:
    with closing(sqlite3.connect(f"{database}.db", isolation_level=None)) as connection:
        connection.execute("BEGIN")
        for statement in statements:
            connection.execute(statement)
        connection.execute("COMMIT")


def part(database: str, gid: str, amount: int, participants: str = "east, west") -> None:
    """One half of a transfer."""
    commit(
        database,
        f"UPDATE accounts SET balance = balance + {amount}",
        f"INSERT INTO global_tx VALUES ('{gid}', '{database}', '{participants}')",
    )


def without_wal(*databases: str) -> None:
    """Now commits that nobody follows cannot be distinguished."""
    for database in databases:
        with closing(sqlite3.connect(f"{database}.db")) as connection:
            assert connection.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)


def shown(view: str = "both") -> list[tuple[Any, ...]]:
    with Warehouse.open("lake", read_only=True) as warehouse:
        return [tuple(row.values()) for row in warehouse.arrow(view).to_pylist()]


def states(view: str = "both") -> int:
    return len(json.loads(call("states", view, "--json"))["states"])


def status() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call("status", "--json"))
    return found


@pytest.fixture
def banks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two databases with an account each, and a view over both."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIEWKEEPER_WAREHOUSE", "lake")
    for bank in ("east", "west"):
        commit(
            bank,
            "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER)",
            "CREATE TABLE global_tx (gid TEXT, source TEXT, participants TEXT)",
            "INSERT INTO accounts VALUES (1, 100)",
        )
        call("add-source", bank, f"sqlite:///{bank}.db", "--install")
    call("create-view", f"CREATE MATERIALIZED VIEW both AS {BOTH}")
    return tmp_path


def test_commits_that_are_captured_as_one_keep_all_their_transactions(banks: Path) -> None:
    """east delivers its parts of three transfers as one transaction: what it cannot tell apart is one state."""
    without_wal("east")
    for number in (1, 2, 3):
        part("east", f"t{number}", -number)
    part("west", "t1", 1)
    part("west", "t2", 2)
    told = call("catch-up", exit_code=1)
    assert "global transaction t3 waits for its part from west" in told
    assert "viewkeeper give-up t3" in told
    assert shown() == [(1, 100, 100)]
    part("west", "t3", 3)
    told = call("catch-up", "--history", "run.json")
    assert shown() == [(1, 94, 106)]
    assert states() == 2
    assert "waiting" not in call("status")
    judged = call("check", "run.json")
    assert "complete" in judged.splitlines()[0]
    assert "parts of t1, t2, t3 were captured together; they count as one transaction" in judged


def test_a_missing_part_is_named_and_can_be_given_up(banks: Path) -> None:
    part("east", "transfer 1", -30)
    commit("east", "UPDATE accounts SET balance = balance - 1")
    assert "transfer 1 waits for its part from west" in call("catch-up", exit_code=1)
    assert "transfer 1 waits for its part from west" in call("run", "--seconds", "1.2", exit_code=1)
    assert "waiting: both: global transaction transfer 1 waits for its part from west since 2" in call("status")
    (wait,) = status()["waits"]
    assert (wait["views"], wait["wait"]["id"], wait["wait"]["missing"]) == (["both"], "transfer 1", ["west"])
    assert wait["wait"]["since"]

    told = call("give-up", "transfer 1")
    assert "both: transfer 1 is given up with the next catch-up or run, if its part from west has not come" in told
    assert "then both is weakly consistent until it has" in told
    assert "is given up when the views are maintained the next time" in call("status")
    told = call("catch-up", "--history", "half.json")
    assert "given up: global transaction transfer 1 without its part from west, as asked" in told
    assert shown() == [(1, 69, 100)]
    found = status()
    assert found["waits"] == []
    assert found["given_up"][0]["given"]["missing"] == ["west"]
    assert [view["consistency"] for view in found["views"]] == ["weak"]
    judged = call("check", "half.json", "--at-least", "strong", exit_code=1)
    assert "whose part from west never arrived" in judged
    assert "note: global transaction transfer 1 was given up without its part from west" in judged
    assert json.loads(call("check", "half.json", "--json"))["given_up"][0]["id"] == "transfer 1"

    part("west", "transfer 1", 30)
    call("catch-up")
    assert shown() == [(1, 69, 130)]
    found = status()
    assert (found["waits"], found["given_up"]) == ([], [])
    assert [view["consistency"] for view in found["views"]] == ["complete"]
    # The id is free again.
    part("east", "transfer 1", -1)
    part("west", "transfer 1", 1)
    call("catch-up")
    assert shown() == [(1, 68, 131)]
    assert "both: right" in call("audit", "both")


def test_a_wait_is_given_up_after_the_timeout_of_the_view(banks: Path) -> None:
    call("create-view", f"CREATE MATERIALIZED VIEW soon TBLPROPERTIES('global_timeout' = '0 s') AS {BOTH}")
    part("east", "t1", -30)
    told = call("catch-up", exit_code=1)
    assert "waiting: both: global transaction t1" in told
    assert "given up: global transaction t1 without its part from west, after its timeout" in told
    assert shown("soon") == [(1, 70, 100)]
    assert shown("both") == [(1, 100, 100)]
    assert {view["view"]: view["consistency"] for view in status()["views"]} == {"both": "complete", "soon": "weak"}
    part("west", "t1", 30)
    call("catch-up")
    assert shown("soon") == shown("both") == [(1, 70, 130)]


def test_what_cannot_be_given_up_is_refused(
    banks: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*words: str) -> str:
        monkeypatch.setattr("sys.argv", ["viewkeeper", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 2
        return capsys.readouterr().err

    assert "no view waits for a missing part of global transaction t1" in refused("give-up", "t1")
    part("east", "t2", -1)
    call("catch-up", exit_code=1)
    assert "what is waited for: t2" in refused("give-up", "t1")
    assert "none" in refused("give-up", "t2", "--view", "none")
    told = refused("create-view", f"CREATE MATERIALIZED VIEW v TBLPROPERTIES('global_timeout' = 'soon') AS {BOTH}")
    assert "the global_timeout of a view cannot be 'soon'" in told


def test_a_folder_of_files_keeps_all_transactions_of_a_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIEWKEEPER_WAREHOUSE", "lake")
    folder = tmp_path / "east"
    folder.mkdir()
    (folder / "accounts.csv").write_text("id,balance\n1,100\n")
    (folder / "global_tx.csv").write_text("gid,source,participants\n")
    commit(
        "west",
        "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER)",
        "CREATE TABLE global_tx (gid TEXT, source TEXT, participants TEXT)",
        "INSERT INTO accounts VALUES (1, 100)",
    )
    call("add-source", "east", f"files://{folder}", "--install")
    call("add-source", "west", "sqlite:///west.db", "--install")
    call("create-view", f"CREATE MATERIALIZED VIEW both AS {BOTH}")
    (folder / "global_tx.csv").write_text('gid,source,participants\nt1,east,"east,west"\nt2,east,"east,west"\n')
    (folder / "accounts.csv").write_text("id,balance\n1,97\n")
    part("west", "t2", 2)
    assert "t1 waits for its part from west" in call("catch-up", exit_code=1)
    assert shown() == [(1, 100, 100)]
    part("west", "t1", 1)
    call("catch-up")
    assert shown() == [(1, 97, 103)]
    assert states() == 2


def test_a_reload_that_passes_the_missing_part_ends_the_weak_level(banks: Path) -> None:
    """What is between is not delivered: the part would be waited for in vain."""
    part("east", "t1", -5)
    call("catch-up", exit_code=1)
    call("give-up", "t1")
    call("catch-up")
    assert [view["consistency"] for view in status()["views"]] == ["weak"]
    part("west", "t1", 5)
    call("reload", "both")
    assert shown() == [(1, 95, 105)]
    assert status()["given_up"] == []
    assert [view["consistency"] for view in status()["views"]] == ["complete"]


def test_a_wait_that_is_overdue_fails_a_check(banks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part("east", "transfer 1", -30)
    monkeypatch.setattr(waits, "OVERDUE", 3600.0)
    # A part that is on its way is no problem yet; catch-up says that it ends without it.
    call("catch-up", exit_code=1)
    assert json.loads(call("status", "--check", "--json"))["problems"] == []
    monkeypatch.setattr(waits, "OVERDUE", 0.0)
    told = call("status", "--check", exit_code=1)
    assert "waiting: both: global transaction transfer 1 waits for its part from west since 2" in told
    (problem,) = json.loads(call("status", "--check", "--json", exit_code=1))["problems"]
    assert (problem["kind"], problem["name"]) == ("overdue", "transfer 1")
    assert problem["hint"] == "commit that part, or viewkeeper give-up 'transfer 1'"
    part("west", "transfer 1", 30)
    call("catch-up")
    assert json.loads(call("status", "--check", "--json"))["problems"] == []
