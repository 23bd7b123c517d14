"""`create-view --replace`, and what the SQL says of a view that is there: no Spark is started."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from viewkeeper.cli.main import viewkeeper
from viewkeeper.errors import DefinitionError

BIG = "CREATE MATERIALIZED VIEW big AS SELECT id, amount FROM shop.orders"


@pytest.fixture(autouse=True)
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("shop.db")) as database, database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER)")
        database.execute("INSERT INTO orders VALUES (1, 10), (2, 20)")
    run("add-source", "shop", "sqlite:///shop.db", "--install")
    run("create-view", BIG)
    run("create-view", "CREATE MATERIALIZED VIEW ids AS SELECT id FROM big")


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(viewkeeper, [*arguments, "-w", "lake"])
    assert result.exit_code == code, result.output
    return result


def test_what_was_done_is_told() -> None:
    assert run("create-view", "--replace", BIG.lower()).stdout == "kept big: the definition means what it meant\n"
    altered = BIG.replace(" AS ", " TBLPROPERTIES ('retention' = '1 day') AS ")
    assert run("create-view", "--replace", altered).stdout.splitlines() == [
        "altered in place: the property retention is '1 day', and was not set",
        "altered big with 2 rows, in group big: batched-sweep, complete consistency",
    ]
    assert run(
        "create-view", f"{altered.replace('CREATE', 'CREATE OR REPLACE')} WHERE amount > 10"
    ).stdout.splitlines() == [
        "recreated: the conditions of its joins or of WHERE differ",
        "recreated with it: ids",
        "1 earlier state of big can no longer be read",
        "1 earlier state of ids can no longer be read",
        "replaced big with 1 row, in group big: batched-sweep, complete consistency",
    ]
    assert "kept big: there is a view" in run("create-view", BIG.replace("VIEW", "VIEW IF NOT EXISTS")).stdout
    assert run("create-view", "--replace", BIG.replace("big", "new")).stdout.startswith("created new with 2 rows")
    told = json.loads(run("create-view", "--replace", BIG, "--json").stdout)
    assert (told["view"], told["done"], told["dependants"], told["rows"]) == ("big", "reload", ["ids"], 2)
    assert told["states_lost"] == {"big": 1, "ids": 1}


def test_what_is_in_the_way_is_told() -> None:
    there, unfit = run("create-view", BIG, code=1), run("create-view", "--replace", BIG.replace("id, ", ""), code=1)
    assert isinstance(there.exception, DefinitionError)
    assert "create-view --replace" in there.exception.hint
    assert isinstance(unfit.exception, DefinitionError)
    assert "ids cannot be over the new big" in unfit.exception.detail
    assert "drop them first" in unfit.exception.hint
