"""Sources that declare single updates: what strobe and c-strobe are worth over them, live, and what a lie costs."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from viewkeeper import Warehouse
from viewkeeper.checker.history import History
from viewkeeper.checker.judge import check
from viewkeeper.cli.main import viewkeeper
from viewkeeper.errors import AlgorithmRefused, DefinitionError, ProjectError
from viewkeeper.levels import Level

SHOP = "CREATE TABLE orders (id INTEGER PRIMARY KEY, cust INTEGER, amount INTEGER)"
CRM = "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)"
JOIN = "SELECT o.id, o.amount, p.id AS cust, p.name FROM shop.orders o JOIN crm.people p ON o.cust = p.id"
Write = Callable[..., None]


def no_spark() -> Any:
    raise AssertionError("Spark was started")


def view(name: str, **properties: str) -> str:
    told = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    return f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES ({told}) AS {JOIN}"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Statements of one transaction each, or all of them in one."""

    def write(*statements: str, together: bool = False) -> None:
        for database, table in (("shop", "orders"), ("crm", "people")):
            mine = [one for one in statements if table in one]
            with closing(sqlite3.connect(tmp_path / f"{database}.db", isolation_level=None)) as connection:
                for statement in [f"BEGIN; {'; '.join(mine)}; COMMIT"] if together and mine else mine:
                    connection.executescript(statement)

    write(SHOP, CRM, "INSERT INTO people VALUES (1, 'Ann'), (2, 'Bob')", "INSERT INTO orders VALUES (1, 1, 5)")
    return write


def add(warehouse: Warehouse, folder: Path, transactions: str | None) -> None:
    for name in ("shop", "crm"):
        warehouse.add_source(name, f"sqlite:///{folder}/{name}.db", install=True, transactions=transactions)


def assert_right(warehouse: Warehouse, folder: Path, name: str, sql: str = JOIN) -> None:
    """What is stored is what the databases give."""
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.execute("ATTACH ? AS crm", (str(folder / "crm.db"),))
        expected = connection.execute(sql.replace("shop.", "main.")).fetchall()
    assert sorted(tuple(row.values()) for row in warehouse.arrow(name).to_pylist()) == sorted(expected)


def refused(warehouse: Warehouse, **properties: str) -> str:
    """The hint of the refusal, which is the same whether it is a new view or one that is there."""
    hints = set()
    for ask, name in (
        (warehouse.create_view, "new"),
        (warehouse.explain, "new"),
        (warehouse.alter_view, "v"),
        (warehouse.alteration, "v"),
    ):
        with pytest.raises(AlgorithmRefused) as error:
            ask(view(name, **properties))
        hints.add(error.value.hint)
    (hint,) = hints
    return hint


def test_less_than_strong_is_refused_wherever_it_is_asked_for(tmp_path: Path, write: Write) -> None:
    with Warehouse.open(tmp_path / "lake", no_spark) as warehouse:
        add(warehouse, tmp_path, None)
        warehouse.create_view(view("v", consistency="complete"))
        assert "'consistency' = 'none'" in refused(warehouse, algorithm="conventional")
        assert "'consistency' = 'convergent'" in refused(warehouse, algorithm="strobe")
        assert "--transactions single" in refused(warehouse, algorithm="c-strobe", consistency="strong")
        warehouse.create_view(view("w", algorithm="conventional", consistency="none"))
        (status,) = (one for one in warehouse.status().views if one.view == "w")
        assert status.consistency == "none"


def test_single_updates_live_reach_what_the_label_says(tmp_path: Path, write: Write) -> None:
    levels = {"strobe": Level.STRONG, "c-strobe": Level.COMPLETE}
    with Warehouse.open(tmp_path / "lake", no_spark) as warehouse:
        add(warehouse, tmp_path, "single")
        assert {str(one.transactions) for one in warehouse.sources} == {"single"}
        for name in levels:
            warehouse.create_view(view(name.replace("-", "_"), algorithm=name, group=name))
        shown = {one.algorithm: one.consistency for one in warehouse.status().views}
        assert shown == {name: str(level) for name, level in levels.items()}
        told = warehouse.explain(view("x", algorithm="strobe")).in_words
        assert told is not None
        assert "each transaction of shop and crm is a single update, as was declared: a larger one halts the view" in (
            told.why
        )
    with Warehouse.open(tmp_path / "lake", no_spark) as warehouse:
        write("INSERT INTO orders VALUES (2, 2, 7)", "UPDATE people SET name = 'Eve' WHERE id = 1")
        write("UPDATE orders SET cust = 1 WHERE id = 2", "DELETE FROM people WHERE id = 1")
        write("INSERT INTO people VALUES (1, 'Ann')", "DELETE FROM orders WHERE id = 1")
        warehouse.catch_up(history=tmp_path / "{view}.json")
        assert not [one for one in warehouse.status().views if one.halted]
        for name, level in levels.items():
            assert check(History.load(tmp_path / f"{name.replace('-', '_')}.json")).level >= level
            assert_right(warehouse, tmp_path, name.replace("-", "_"))


def test_a_larger_transaction_halts_those_that_rely_on_it(tmp_path: Path, write: Write) -> None:
    with Warehouse.open(tmp_path / "lake", no_spark) as warehouse:
        add(warehouse, tmp_path, "single")
        warehouse.create_view(view("relies", algorithm="strobe"))
        warehouse.create_view(view("does_not", algorithm="t-strobe"))
        write("INSERT INTO orders VALUES (2, 2, 7)", "INSERT INTO orders VALUES (3, 1, 7)", together=True)
        warehouse.catch_up()
        halts = {one.view: one.halted for one in warehouse.status().views}
        assert halts["does_not"] is None
        assert halts["relies"] is not None
        assert "shop is declared to commit single updates" in halts["relies"].reason
        assert "t-strobe" in halts["relies"].reason
        assert_right(warehouse, tmp_path, "does_not")
        warehouse.reload("relies")
        assert_right(warehouse, tmp_path, "relies")


def test_taking_the_declaration_back_halts_what_was_created_on_it(tmp_path: Path, write: Write) -> None:
    with Warehouse.open(tmp_path / "lake", no_spark) as warehouse:
        add(warehouse, tmp_path, "single")
        warehouse.create_view(view("v", algorithm="strobe"))
        add(warehouse, tmp_path, None)
        assert {str(one.transactions) for one in warehouse.sources} == {"single"}, "what was declared stays"
        add(warehouse, tmp_path, "local")
        write("INSERT INTO orders VALUES (2, 2, 7)")
        warehouse.catch_up()
        (status,) = warehouse.status().views
        assert status.halted is not None
        assert "convergent" in status.halted.reason
        warehouse.alter_view(view("v", algorithm="t-strobe"))
        warehouse.reload("v")
        assert_right(warehouse, tmp_path, "v")
        with pytest.raises(DefinitionError, match="cannot be declared 'singel'") as mistake:
            add(warehouse, tmp_path, "singel")
        assert "did you mean single?" in mistake.value.hint


OPTIONS = {
    "periodic": {"algorithm": "periodic-c-strobe", "period": "1", "interval": "1 minute", "grouped": "false"},
    "ungrouped": {"algorithm": "c-t-strobe", "grouped": "false"},
    "pipelined": {"algorithm": "pipelined-sweep", "window": "1"},
}


def test_options_work_live(tmp_path: Path, write: Write) -> None:
    with Warehouse.open(tmp_path / "lake", no_spark) as warehouse:
        add(warehouse, tmp_path, None)
        for name, properties in OPTIONS.items():
            warehouse.create_view(view(name, group=name, **properties))
        write("CREATE TABLE sorts_of_orders (id INTEGER PRIMARY KEY, kind TEXT)")
        warehouse.add_source("shop", f"sqlite:///{tmp_path}/shop.db", install=True)
        at_one_source = "SELECT o.id, s.kind FROM shop.orders o JOIN shop.sorts_of_orders s ON o.amount = s.id"
        warehouse.create_view(
            f"CREATE MATERIALIZED VIEW eca TBLPROPERTIES ('algorithm' = 'eca', 'share' = 'true') AS {at_one_source}"
        )
        write("INSERT INTO orders VALUES (2, 2, 7)", "INSERT INTO sorts_of_orders VALUES (7, 'x')")
        write("UPDATE people SET name = 'Eve' WHERE id = 1", "INSERT INTO orders VALUES (3, 1, 9)")
        write("DELETE FROM people WHERE id = 2", "INSERT INTO people VALUES (2, 'Bo')")
        warehouse.catch_up(history=tmp_path / "{view}.json")
        for name in OPTIONS:
            assert_right(warehouse, tmp_path, name)
        assert_right(warehouse, tmp_path, "eca", at_one_source)
        strong = {name: check(History.load(tmp_path / f"{name}.json")).level for name in (*OPTIONS, "eca")}
        assert strong["periodic"] is Level.COMPLETE, "with a period of 1 every update has its state"
        assert strong["ungrouped"] is strong["pipelined"] is Level.COMPLETE
        assert strong["eca"] >= Level.STRONG
        plans = {plan.name: plan.views[0].options for plan in warehouse._keeper.plans()}
        assert plans["periodic"] == {"period": 1, "interval": 60, "grouped": False}
        # An option is changed in place: what is stored is the same.
        changed = {**OPTIONS["periodic"], "period": "4"}
        assert warehouse.alter_view(view("periodic", group="periodic", **changed)).kind == "alter"
        assert (
            warehouse.alteration(view("periodic", group="periodic", **{**changed, "interval": "60 s"})).kind == "keep"
        )


# --- from the command line, and in a project ---


def call(*words: str) -> Any:
    return CliRunner().invoke(viewkeeper, words)


def test_the_verbs_declare_and_show_it(tmp_path: Path, write: Write) -> None:
    lake, url = str(tmp_path / "lake"), f"sqlite:///{tmp_path}/shop.db"
    added = call("add-source", "shop", url, "--install", "--transactions", "single", "-w", lake, "--json")
    assert json.loads(added.stdout)["transactions"] == "single"
    assert "single" in call("sources", "-w", lake).stdout
    wrong = call("add-source", "shop", url, "--transactions", "singel", "-w", lake)
    assert wrong.exit_code == 2
    refusal = call("create-view", "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('algorithm' = 'conventional') AS "
                   "SELECT id FROM shop.orders", "-w", lake)  # fmt: skip
    assert isinstance(refusal.exception, AlgorithmRefused)
    assert "'consistency' = 'none'" in refusal.exception.hint


@pytest.mark.parametrize("transactions", ["single", "local"])
def test_a_project_declares_it(tmp_path: Path, write: Write, transactions: str) -> None:
    project = tmp_path / "project"
    (project / "views").mkdir(parents=True)
    (project / "viewkeeper.yml").write_text(
        "warehouse: ../lake\nsources:\n"
        + "".join(
            f"  {name}:\n    url: sqlite:///{tmp_path}/{name}.db\n    install: true\n    transactions: {transactions}\n"
            for name in ("shop", "crm")
        ),
        encoding="utf-8",
    )
    (project / "views" / "v.sql").write_text(view("v", algorithm="strobe"), encoding="utf-8")
    planned = call("plan", "--project", str(project))
    if transactions == "local":
        assert isinstance(planned.exception, AlgorithmRefused)
        assert "v.sql:1: strobe cannot maintain v" in planned.exception.detail
        assert "'consistency' = 'convergent'" in planned.exception.hint
        return
    assert planned.exit_code == 0, planned.output
    applied = call("apply", "--project", str(project))
    assert applied.exit_code == 0, applied.output
    assert call("plan", "--check", "--project", str(project)).exit_code == 0, "what is declared is what is stored"
    text = (project / "viewkeeper.yml").read_text(encoding="utf-8")
    (project / "viewkeeper.yml").write_text(text.replace("single", "singel"), encoding="utf-8")
    mistaken = call("plan", "--project", str(project))
    assert isinstance(mistaken.exception, ProjectError)
    assert "viewkeeper.yml:6" in mistaken.exception.detail
    assert "did you mean single?" in mistaken.exception.hint
