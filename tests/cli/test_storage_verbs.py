"""`create-view` and `explain` of views with a storage, over SQLite: what they print, and what programs get."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from viewkeeper.cli.main import viewkeeper
from viewkeeper.storage.self_maintained import STORAGES

BY_KEY = "shop.orders o JOIN crm.people p ON o.id = p.id"
BY_CITY = "shop.orders o JOIN crm.people p ON o.city = p.city"


def output(*words: str) -> str:
    done = CliRunner().invoke(viewkeeper, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def write(database: str, script: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(f"BEGIN; {script}; COMMIT;")


def view(name: str, storage: str, joined: str) -> str:
    properties = f"TBLPROPERTIES ('storage' = '{storage}')"
    return f"CREATE MATERIALIZED VIEW {name} {properties} AS SELECT o.id, o.city, p.name FROM {joined}"


@pytest.fixture(autouse=True)
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIEWKEEPER_WAREHOUSE", "lake")
    write("shop.db", "CREATE TABLE orders (id INTEGER PRIMARY KEY, city TEXT); INSERT INTO orders VALUES (1, 'Bern')")
    write(
        "crm.db",
        "CREATE TABLE people (id INTEGER PRIMARY KEY, city TEXT, name TEXT);"
        "INSERT INTO people VALUES (1, 'Bern', 'Ada'), (2, 'Bern', 'Bo'), (3, 'Chur', 'Cy')",
    )
    for name in ("shop", "crm"):
        output("add-source", name, f"sqlite:///{name}.db", "--install")
    return tmp_path / "lake"


def test_auto_by_keys_asks_the_sources() -> None:
    why = "all sources are databases, and every relation is looked up by its key, which is quick"
    assert f"storage   remote, its sources are queried: {why}" in output("explain", view("v", "auto", BY_KEY))
    created, chosen = output("create-view", view("v", "auto", BY_KEY)).splitlines()
    assert created == "created v with 1 row, in group v: batched-sweep, complete consistency"
    assert chosen.startswith(f"storage remote: {why}")
    assert f"storage   remote, its sources are queried: {why}" in output("explain", "v")
    told = json.loads(output("explain", "v", "--json"))
    assert (told["kind"], told["storage_asked"], told["storage"]) == ("join", "auto", "remote")
    assert told["storage_reasons"][0] == why


def test_auto_without_keys_stores_something() -> None:
    why = "shop.orders would be looked up by o.city, which is not its key"
    before = output("explain", view("v", "auto", BY_CITY))
    assert "v: a self-maintained view of shop.orders, crm.people; not created yet" in before
    assert why in before
    assert "the sizes are not known before the relations are read" in before
    told = json.loads(output("create-view", view("v", "auto", BY_CITY), "--json"))
    assert told["storage"] in STORAGES
    assert told["algorithm"] == told["storage"] == "matview"
    assert told["storage_reasons"][0].startswith(why)
    after = output("explain", "v")
    assert f"storage   matview, no source is queried: {why}" in after
    assert "the view has 0.67 rows for each of its largest relation" in after
    assert "sizes are not known" not in after


def test_what_auto_chose_stays_when_the_view_is_made_anew() -> None:
    for name, joined in (("kept", BY_CITY), ("asked", BY_KEY)):
        output("create-view", view(name, "auto", joined))
        before = json.loads(output("explain", name, "--json"))
        write("shop.db", "ALTER TABLE orders RENAME TO former")
        write("shop.db", "CREATE TABLE orders (id INTEGER PRIMARY KEY, city VARCHAR(9)); DROP TABLE former")
        output("reload", name)
        after = json.loads(output("explain", name, "--json"))
        assert (after["storage"], after["storage_reasons"]) == (before["storage"], before["storage_reasons"])


def test_an_explanation_for_people() -> None:
    output("create-view", view("v", "viewcache", BY_CITY))
    lines = output("explain", "v", "--full").splitlines()
    assert lines[0] == "v: a self-maintained view of shop.orders, crm.people"
    assert "method    viewcache, complete consistency; refresh: continuous" in lines
    assert "storage   viewcache, no source is queried: it was requested" in lines
    assert "holds     2 stored rows at state 0 of group v" in lines
    copied = next(line for line in lines if line.startswith("_vk_v_copy_1"))
    assert copied.split("  ")[1].strip() == "a copy of the columns of crm.people that the view needs"
    assert copied.endswith("p.city; or p.id")
    changed = lines.index("What a change looks up: no source is queried") + 2
    assert lines[changed].startswith("shop.orders")
    assert lines[changed + 1].split() == ["the", "partners", "of", "an", "inserted", "row", "_vk_v_copy_1", "p.city"]
    assert "ids       rows of crm.people by their key: p.id" in lines
    assert "read      pointers in _vk_v_pairs_1 are dereferenced on read" in "\n".join(lines)
    assert "refresh   in Python up to 2,000 changed rows, or state by state if there are several" in lines


def test_an_explanation_for_programs() -> None:
    told = json.loads(output("explain", view("v", "partial-operand", BY_CITY), "--json"))
    assert (told["kind"], told["created"], told["rows"]) == ("self-maintained", False, None)
    operand = next(one for one in told["self_maintained"]["structures"] if one["table"] == "_vk_v_operand_0")
    assert operand == {
        "table": "_vk_v_operand_0",
        "holds": "ids and compared columns of every row of shop.orders",
        "columns": ["o.id", "o.city"],
        "rows": None,
        "bytes": None,
        "looked_up_by": [["o.city"]],
    }
