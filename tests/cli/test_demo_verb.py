"""`viewkeeper demo`: all of it in a few seconds, and what it says when something is wrong."""

import json
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from viewkeeper.cli.demo_words import Words, next_commands
from viewkeeper.cli.main import main, viewkeeper
from viewkeeper.demo.business import transactions
from viewkeeper.demo.demonstration import GROUP, LATTICE, KeptFresh, ViewOutcome
from viewkeeper.demo.retail import TABLES
from viewkeeper.demo.views import HOLDS, JOINS, VIEWS
from viewkeeper.maintenance.audits import Audit
from viewkeeper.mediator.report import GroupReport, Report
from viewkeeper.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED, SECONDS = 5, 3


def call(*words: object) -> Result:
    return CliRunner().invoke(viewkeeper, [str(word) for word in words], catch_exceptions=False)


def in_sqlite(databases: Path) -> dict[str, int]:
    """How many rows each view must have, by SQLite, over all three files at once."""
    connection = sqlite3.connect(":memory:")
    for name in TABLES:
        connection.execute(f"ATTACH '{databases / name}.db' AS {name}")
    cubed = VIEWS["sold"].rpartition("GROUP BY CUBE")[0]
    queries = {name: query for name, query in VIEWS.items() if name != "sold"}
    counts = {name: connection.execute(f"SELECT COUNT(*) FROM ({sql})").fetchone()[0] for name, sql in queries.items()}
    groups = ("t.region, i.category", "t.region", "i.category", "1 + 0")
    cells = [f"SELECT COUNT(*) FROM ({cubed} GROUP BY {group})" for group in groups]
    counts["sold"] = sum(connection.execute(sql).fetchone()[0] for sql in cells)
    connection.close()
    return counts


def sell_something_else_behind_the_back_of_the_triggers(database: Path) -> None:
    """Nobody can know of it, but an audit."""
    with closing(sqlite3.connect(database)) as connection, connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute("UPDATE sales SET item_id = item_id + 1 WHERE sale_id = (SELECT MIN(sale_id) FROM sales)")
        for _, sql in triggers:
            connection.execute(sql)


def test_the_whole_demo(spark: "SparkSession", tmp_path: Path) -> None:
    lake = tmp_path / "my lake"
    done = call("demo", "--warehouse", lake, "--seconds", SECONDS, "--seed", SEED, "--json")
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["transactions"] == {name: len(transactions(name, SEED, SECONDS)) for name in TABLES}
    made = sum(told["transactions"].values())
    assert told["joins"]["transactions"] == told["joins"]["states"] == made, "complete: a state for each transaction"
    assert told["joins"]["queries_per_update"] == round(told["joins"]["queries"] / made, 3)
    assert told["right"] is True
    assert told["stopped"] is False
    views = {one["view"]: one for one in told["views"]}
    assert {name: one["rows"] for name, one in views.items()} == in_sqlite(lake / "databases")
    assert {one["audit"] for one in views.values()} == {"right"}
    assert {name: one["level"] for name, one in views.items()} == {
        name: "complete" if name in JOINS else "strong" for name in VIEWS
    }
    for one in views.values():
        assert one["fresh_after"] > 0
        assert one["recompute_seconds"] > 0
    # What is suggested works; the tutorial, which is tested too, asks the queries.
    suggested = [shlex.split(command) for command in next_commands(lake, made, servers=True)]
    assert {program for program, *_ in suggested} == {"viewkeeper"}
    for _, *words in suggested:
        if words[0] in ("status", "states", "explain", "lattice"):
            assert call(*words).exit_code == 0, words
    sell_something_else_behind_the_back_of_the_triggers(lake / "databases" / "shop.db")
    with Warehouse.open(lake) as warehouse:
        by_region, by_item = warehouse.audits("sr_sales", "sid_sales")
    assert (by_region.view, by_region.clean) == ("sr_sales", True), "the same quantity, in the same region"
    assert (by_item.view, by_item.clean) == ("sid_sales", False)


GROUPS = (GroupReport(GROUP, tuple(JOINS), {}, 9, 4, 0, 9, 0, 12, 0, 0, 0),)
KEPT = KeptFresh(3.0, False, {"shop": 9}, Report((), GROUPS, {}), {GROUP: 9, LATTICE: 5}, {GROUP: 0.2}, 0.04)


def end_with(monkeypatch: pytest.MonkeyPatch, kept: KeptFresh, outcomes: list[ViewOutcome]) -> None:
    """The demo without databases: only its end."""
    monkeypatch.setattr("viewkeeper.cli.demo._prepared", lambda *_: None)
    monkeypatch.setattr("viewkeeper.cli.demo._keep_fresh", lambda *_: kept)
    monkeypatch.setattr("viewkeeper.cli.demo._compared", lambda *_: outcomes)


def outcome(*missing: tuple[tuple[int, ...], int]) -> ViewOutcome:
    return ViewOutcome("purchases", "complete", 3, 9, 0.2, 1.5, Audit("purchases", 9, {}, 3, missing, ()))


def test_a_view_that_is_wrong_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    end_with(monkeypatch, KEPT, [outcome(((1, 2), 1))])
    done = call("demo", "--warehouse", tmp_path)
    assert done.exit_code == 1
    assert "WRONG: purchases" in done.output
    done = call("demo", "--warehouse", tmp_path, "--json")
    assert done.exit_code == 1
    assert json.loads(done.output)["right"] is False


def test_it_shows_the_anomaly_what_happened_and_what_to_try(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    end_with(monkeypatch, KEPT, [outcome()])
    done = call("demo", "--warehouse", tmp_path)
    assert done.exit_code == 0
    assert "conventional  WRONG for good: the joined row stays in the view" in done.output
    assert "the last state (2) shows [1, 2, 3, 4], and the final source state gives no row" in done.output
    assert "sweep         right" in done.output
    assert "9 states in 4 commits, 1.33 queries per transaction" in done.output
    assert "5 refreshes, each 40 ms" in done.output
    assert "purchases  complete     3       9       0.20 s         1.50 s  right" in done.output
    assert "all of them in 1.5 s" in done.output
    assert "after each of the 9 transactions" in done.output
    assert "complete: each transaction is a state of its own; strong: " in done.output
    assert f"  rm -r {tmp_path}\n" in done.output
    for command in next_commands(tmp_path, 9, servers=False):
        assert f"  {command}\n" in done.output


def test_it_says_of_each_view_what_it_holds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = Words(tmp_path, as_json=False, servers=False)
    for view in VIEWS:
        words.loaded(view, 1, 0.1)
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in told] == list(VIEWS) == list(HOLDS)
    assert all(HOLDS[view] in line for view, line in zip(VIEWS, told, strict=True))


def test_stopped_it_says_where_things_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stopped = KeptFresh(1.2, True, {"shop": 3}, Report((), GROUPS, {}), {GROUP: 3}, {}, None)
    end_with(monkeypatch, stopped, [])
    done = call("demo", "--warehouse", tmp_path)
    assert done.exit_code == 130
    assert "were not audited" in done.output
    assert str(tmp_path / "databases") in done.output
    assert json.loads(call("demo", "--warehouse", tmp_path, "--json").output)["right"] is False


def test_without_a_folder_it_makes_one_and_keeps_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    end_with(monkeypatch, KEPT, [outcome()])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    told = json.loads(call("demo", "--json").output)
    assert [str(path) for path in tmp_path.iterdir()] == [told["warehouse"]]


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object) -> str:
    monkeypatch.setattr("sys.argv", ["viewkeeper", "demo", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    return capsys.readouterr().err


def test_it_leaves_other_folders_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").touch()
    assert "is not an empty folder" in refused(monkeypatch, capsys, "--warehouse", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("there", "package"), [((), "postgresql"), (("initdb",), "mariadb-server")], ids=["PostgreSQL", "MariaDB"]
)
def test_a_missing_server_is_named_with_its_package(
    there: tuple[str, ...],
    package: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(
        "viewkeeper.demo.servers.private.shutil.which", lambda name, path: f"/bin/{name}" if name in there else None
    )
    told = refused(monkeypatch, capsys, "--postgres", "--warehouse", tmp_path / "lake")
    assert f"apt-get install {package}" in told
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("folder", ["lake", "my lake", "Ann's lake"])
@pytest.mark.processes
def test_the_change_that_is_suggested_can_be_pasted(folder: str, tmp_path: Path) -> None:
    shop = tmp_path / folder / "databases" / "shop.db"
    shop.parent.mkdir(parents=True)
    with closing(sqlite3.connect(shop)) as connection, connection:
        connection.executescript("CREATE TABLE sales (qty INTEGER); INSERT INTO sales VALUES (4), (5)")
    (change,) = [one for one in next_commands(tmp_path / folder, 9, servers=False) if one.startswith("python -c ")]
    subprocess.run(["sh", "-c", change.replace("python", shlex.quote(sys.executable), 1)], check=True)
    with closing(sqlite3.connect(shop)) as connection:
        assert connection.execute("SELECT qty FROM sales").fetchall() == [(4,)]
