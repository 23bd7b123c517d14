"""The verbs of a project over real databases: init, plan, apply, and the others in its folder."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from postgres_server import PostgresServer

from viewkeeper import Project, Warehouse
from viewkeeper.cli.main import main, viewkeeper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BY_CITY = "SELECT city, orders FROM sales_by_city ORDER BY city"


def output(*words: object, exit_code: int = 0) -> str:
    done = CliRunner().invoke(viewkeeper, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == exit_code, done.output
    return done.stdout


def told(*words: object, exit_code: int = 0) -> Any:
    return json.loads(output(*words, "--json", exit_code=exit_code))


def steps(plan: Any, part: str = "views") -> dict[str, str]:
    return {step["name"]: step["action"] for step in plan[part]}


def edit(name: str, old: str, new: str) -> None:
    text = Path(name).read_text(encoding="utf-8")
    assert old in text
    Path(name).write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of `init`, in a folder of its own that is the current one."""
    monkeypatch.delenv("VIEWKEEPER_WAREHOUSE", raising=False)
    monkeypatch.delenv("CUSTOMERS_DB", raising=False)
    output("init", tmp_path / "example")
    monkeypatch.chdir(tmp_path / "example")
    return tmp_path / "example"


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


# Without Spark


def test_init_writes_what_works_and_overwrites_nothing(example: Path, fails: Fails) -> None:
    written = {str(path.relative_to(example)) for path in example.rglob("*") if path.is_file()}
    assert {"viewkeeper.yml", "README.md", ".gitignore", "sell.py", "large_orders.py", "data/shop.db"} <= written
    assert "not empty" in fails("init")
    Path("README.md").write_text("mine")
    Path("sell.py").unlink()
    again = told("init", "--force")
    assert again["written"] == ["sell.py"]
    assert "README.md" in again["kept"]
    assert Path("README.md").read_text() == "mine"
    assert "is not a folder" in fails("init", "README.md")


def test_init_in_a_new_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "viewkeeper apply" in output("init")


def test_a_plan_does_nothing(example: Path) -> None:
    plan = told("plan", "--check", exit_code=1)
    assert steps(plan, "sources") == {"shop": "add", "customers": "add"}
    assert steps(plan) == {"named_orders": "create", "large_orders": "create", "sales_by_city": "create"}
    shown = output("plan")
    assert re.search(r"^create +view +sales_by_city +views/sales_by_city.sql:2$", shown, flags=re.MULTILINE), shown
    assert "2 sources to add, 3 views to create; 'viewkeeper apply' does it" in shown
    assert not (example / "warehouse").exists()
    with closing(sqlite3.connect("data/shop.db")) as shop:
        assert shop.execute("SELECT name FROM sqlite_master").fetchall() == [("orders",)]


def test_what_is_wrong_is_said_with_file_and_line(example: Path, fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    edit("viewkeeper.yml", "    install: true\n", "    instal: true\n")
    for verb in ("plan", "apply"):
        assert fails(verb).startswith(
            "error: viewkeeper.yml:12: sources.shop has no field instal\n  hint: did you mean"
        )
    edit("viewkeeper.yml", "    instal: true\n", "    install: true\n")
    edit("views/sales_by_city.sql", "FROM named_orders", "FROM named_order")
    monkeypatch.chdir("views")
    assert fails("apply").startswith("error: sales_by_city.sql:4: sales_by_city reads named_order, and")
    edit("sales_by_city.sql", "SELECT city, ", "SELECT citty, ")
    edit("sales_by_city.sql", "FROM named_order", "FROM named_orders")
    assert fails("apply").startswith("error: sales_by_city.sql:3: no table in FROM has a column citty")
    assert not (example / "warehouse").exists()


def test_verbs_find_the_warehouse_of_the_project(
    example: Path, fails: Fails, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = fails("status")
    assert f"{example / 'warehouse'} is not a warehouse" in said
    assert "'viewkeeper apply' makes that of the project" in said
    monkeypatch.chdir("views")
    assert f"{example / 'warehouse'} is not" in fails("status")
    assert f"{tmp_path / 'other'} is not" in fails("status", "-w", tmp_path / "other")
    monkeypatch.setenv("VIEWKEEPER_WAREHOUSE", str(tmp_path / "named"))
    assert f"{tmp_path / 'named'} is not" in fails("status")
    monkeypatch.delenv("VIEWKEEPER_WAREHOUSE")
    (example / "viewkeeper.yml").write_text("warehouse: [\n")
    assert fails("status").startswith("error: ")
    monkeypatch.chdir(tmp_path)
    assert f"{tmp_path} is not" in fails("status")
    assert "viewkeeper init" in fails("plan")


# The first hour


def test_from_init_to_a_changed_view(example: Path, spark: "SparkSession", fails: Fails) -> None:
    applied = output("apply").splitlines()
    assert applied[:3] == ["source shop: added", "source customers: added", "view named_orders: created, 4 rows"]
    assert "nothing changes; 3 views kept" in output("plan", "--check")
    assert "nothing to do" in output("apply")
    assert output("query", BY_CITY, "--format", "csv") == "city,orders\nBasel,1\nBern,3\n"

    # An application writes, and the views follow.
    subprocess.run([sys.executable, "sell.py"], check=True, capture_output=True)
    output("catch-up")
    assert output("query", BY_CITY, "--format", "csv") == "city,orders\nBasel,1\nBern,3\nChur,1\n"
    assert told("status")["path"] == str(example / "warehouse")

    # Two views change, one of which reads the other; a third one only in how it is written.
    edit("views/named_orders.sql", "o.item, o.amount", "o.amount, UPPER(o.item) AS thing")
    edit("views/sales_by_city.sql", "SUM(amount) AS amount", "COUNT(thing) AS things, SUM(amount) AS amount")
    edit("large_orders.py", "SELECT id, item, amount", "select id,  item, amount")
    plan = told("plan", "--check", exit_code=1)
    assert steps(plan) == {"named_orders": "reload", "sales_by_city": "reload", "large_orders": "keep"}
    assert any("thing" in reason for reason in plan["views"][0]["reasons"])
    lost = f"{len(output('states', 'named_orders').splitlines()) - 1} earlier states can no longer be read"
    assert lost in output("plan")
    before = output("query", BY_CITY, "--format", "csv")
    assert lost in output("apply")
    assert len(output("states", "named_orders").splitlines()) == 2
    assert output("query", BY_CITY, "--format", "csv") == before
    assert output("query", "SELECT MAX(thing) AS t FROM named_orders", "--format", "csv") == "t\nTENT\n"
    output("plan", "--check")
    output("audit", "--all")

    # A default is a property of all views that do not set it.
    edit("viewkeeper.yml", "retention: 30 days", "retention: 60 days")
    assert set(steps(told("plan")).values()) == {"alter"}
    output("apply")

    # What the project no longer has is left until somebody asks for it; what was made by hand always is.
    output("create-view", "CREATE MATERIALIZED VIEW mine AS SELECT id FROM shop.orders")
    edit("viewkeeper.yml", "modules: [large_orders.py]", "")
    assert "left: large_orders is no longer in the project; --prune would drop it" in output("plan", "--check")
    assert "left: large_orders" in output("apply")
    assert steps(told("plan", "--prune", "--check", exit_code=1))["large_orders"] == "drop"
    assert "view large_orders: dropped" in output("apply", "--prune")
    with Warehouse.open(Project.load(), read_only=True) as warehouse:
        assert warehouse.views == ("mine", "named_orders", "sales_by_city")


def test_a_project_that_moves_and_grows(example: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    """The databases are the same ones elsewhere; then there is a cube, another table, and no view any more."""
    Path("views/sales_by_city.sql").unlink()
    Path("large_orders.py").unlink()
    edit("viewkeeper.yml", "modules: [large_orders.py]", "")
    output("apply")
    moved = example.parent / "moved"
    shutil.move(example, moved)
    monkeypatch.chdir(moved)
    with closing(sqlite3.connect("data/shop.db")) as shop, shop:
        shop.execute("INSERT INTO orders VALUES (5, 8, 'map', 15)")
        shop.execute("CREATE TABLE returns (id INTEGER PRIMARY KEY, why TEXT)")
    Path("views/returns.sql").write_text("CREATE MATERIALIZED VIEW returned AS SELECT id FROM shop.returns")
    cube = "{fact: shop.orders, dimensions: [customer, item], measures: COUNT(*) AS n, count: 1}"
    with open("viewkeeper.yml", "a", encoding="utf-8") as file:
        file.write(f"cubes:\n  sold: {cube}\n")
    plan = told("plan")
    assert steps(plan, "sources") == {"shop": "change", "customers": "change"}
    assert "the table shop.returns is not known yet" in plan["sources"][0]["reasons"]
    assert steps(plan, "cubes") == {"sold": "create"}
    project = Project.load()
    done: list[tuple[str, str, str]] = []
    with Warehouse.open(project, spark) as warehouse:
        project.apply(warehouse, watch=lambda kind, name, what: done.append((kind, name, what)))
        assert not project.plan(warehouse).changes
        warehouse.catch_up()
        assert warehouse.read("named_orders").count() == 5
        assert warehouse.audit("named_orders").clean
        tables = [name for name in warehouse.views if name.startswith("sold")]
        assert len(tables) == 2
        edited = Project(
            folder=moved,
            sources={"shop": {"url": "sqlite:///data/shop.db", "install": True}},
            views=["CREATE MATERIALIZED VIEW returned AS SELECT id FROM shop.returns"],
        )
        edited.apply(warehouse, prune=True)
        assert warehouse.views == ("returned",)
        assert [source.name for source in warehouse.sources] == ["shop"]
    assert ("source", "shop", "changed") in done
    with closing(sqlite3.connect("data/customers.db")) as customers:
        assert customers.execute("SELECT name FROM sqlite_master").fetchall() == [("people",)]


def test_another_database_in_its_place_is_refused(example: Path, spark: "SparkSession", fails: Fails) -> None:
    Path("views/sales_by_city.sql").unlink()
    output("apply")
    shutil.copy("data/customers.db", "data/other.db")
    with closing(sqlite3.connect("data/other.db")) as other, other:
        triggers = other.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        assert triggers
        for (name,) in triggers:
            other.execute(f'DROP TRIGGER "{name}"')
    edit("viewkeeper.yml", "data/customers.db", "data/other.db")
    said = fails("apply")
    assert said.startswith("error: viewkeeper.yml:16: what is at ")
    assert "is not what source customers was" in said
    edit("viewkeeper.yml", "data/other.db", "data/customers.db")
    output("plan", "--check")


def test_credentials_stay_in_the_environment(
    example: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here it is a path; a password goes the same way."""
    Path("views/sales_by_city.sql").unlink()
    shutil.move("data/customers.db", "data/s3cr3t.db")
    monkeypatch.setenv("CUSTOMERS_DB", "data/s3cr3t.db")
    shown = output("plan") + output("plan", "--json") + output("apply") + output("sources") + output("status")
    monkeypatch.chdir("views")
    output("catch-up")
    assert "s3cr3t" not in shown
    stored = [path for path in (example / "warehouse").rglob("*.json") if "s3cr3t" in path.read_text(encoding="utf-8")]
    assert stored == []


def test_a_password_of_postgresql_is_never_stored(
    tmp_path: Path, postgres_server: PostgresServer, fails: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "s3cr3t/@:"
    monkeypatch.delenv("VIEWKEEPER_WAREHOUSE", raising=False)
    monkeypatch.chdir(tmp_path)
    with postgres_server.database("project"):
        with postgres_server.connect("project") as admin:
            admin.execute("DROP ROLE IF EXISTS with_password")
            admin.execute(f"CREATE ROLE with_password LOGIN SUPERUSER PASSWORD '{secret}'")
            admin.execute("CREATE TABLE orders (id INT PRIMARY KEY, amount INT)")
            admin.execute("INSERT INTO orders VALUES (1, 10), (2, 20)")
        url = postgres_server.url("project", "with_password", "${PG_PASSWORD}")
        Path("viewkeeper.yml").write_text(
            f"sources:\n  one: {{url: '{url}', install: true}}\n  two: {{url: '${{PG_URL}}', install: true}}\n"
        )
        Path("views").mkdir()
        Path("views/both.sql").write_text(
            "CREATE MATERIALIZED VIEW both_sides AS SELECT a.id FROM one.orders a JOIN two.orders b ON a.id = b.id"
        )
        monkeypatch.setenv("PG_PASSWORD", "wr0ng-one")
        monkeypatch.setenv("PG_URL", postgres_server.url("project"))
        said = fails("apply")
        assert said.startswith("error: viewkeeper.yml:2: ")
        assert "wr0ng-one" not in said
        monkeypatch.setenv("PG_PASSWORD", secret)
        shown = output("plan") + output("apply") + output("sources") + output("status", "--json")
        assert "view both_sides: created, 2 rows" in shown
        with postgres_server.connect("project") as admin:
            admin.execute("INSERT INTO orders VALUES (3, 30)")
        output("catch-up")
        output("audit", "both_sides")
        assert output("plan", "--check").startswith("nothing changes")
        assert "s3cr3t" not in shown
        stored = [path for path in (tmp_path / "warehouse").rglob("*") if path.is_file()]
        assert [path for path in stored if b"s3cr3t" in path.read_bytes()] == []
        kinds = {source["source"]: source["kind"] for source in told("status")["sources"]}
        assert kinds == {"one": "postgres", "two": "postgres"}
        # The slots go with their source.
        output("drop-view", "both_sides")
        output("remove-source", "one")
        output("remove-source", "two")


def test_doctor_looks_at_sources_before_the_project_is_applied(example: Path, fails: Fails) -> None:
    assert not Path("warehouse").exists()
    for source in ("shop", "customers"):
        findings = told("doctor", source, exit_code=1)["findings"]
        assert any(finding["fatal"] for finding in findings)
        assert all(finding["what"] and finding["fix"] for finding in findings)
        assert "apply" not in output("doctor", source, exit_code=1)
    # Nothing is changed at a source, and none is added.
    with closing(sqlite3.connect("data/shop.db")) as shop:
        assert shop.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall() == []
    assert told("sources")["sources"] == []
    assert "no source 'shops'" in fails("doctor", "shops")
    # What is to be installed is what the project installs.
    output("apply")
    assert output("doctor", "shop") == "all is well\n"
