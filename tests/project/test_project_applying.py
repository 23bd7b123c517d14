"""Projects applied to a warehouse, again and again, as they change."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from project_folder import SHOP, make_shop, write_files

from viewkeeper import Project, Warehouse
from viewkeeper.errors import SourceUnavailable, ViewkeeperError
from viewkeeper.maintenance.keeper import Keeper
from viewkeeper.project.plan import Plan

V = "CREATE MATERIALIZED VIEW v AS SELECT id, amount FROM shop.orders"
NARROWER = "CREATE MATERIALIZED VIEW v AS SELECT id FROM shop.orders"
R = "CREATE MATERIALIZED VIEW r AS SELECT amount FROM v"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_shop(tmp_path / "shop.db")
    return tmp_path


def project_of(folder: Path, *views: str, more: str = "") -> Project:
    yaml = SHOP + "warehouse: lake\n" + more
    for file in (folder / "views").glob("*.sql"):
        file.unlink()
    named = {f"views/{number}.sql": view for number, view in enumerate(views)}
    return Project.load(write_files(folder, {"viewkeeper.yml": yaml, "views/none.txt": "", **named}))


def actions(plan: Plan) -> dict[str, str]:
    return {step.name: str(step.action) for step in plan.views}


def test_a_column_and_its_reader_may_go_together(folder: Path) -> None:
    project_of(folder, V, R).apply()
    narrower = project_of(folder, NARROWER)
    with pytest.raises(ViewkeeperError, match="r cannot be over the new v"):
        narrower.plan()
    assert actions(narrower.plan(prune=True)) == {"v": "reload", "r": "drop"}
    narrower.apply(prune=True)
    assert not narrower.plan().changes
    with Warehouse.open(folder / "lake", read_only=True) as warehouse:
        assert warehouse.arrow("v").column_names == ["id"]
        assert set(warehouse.definitions) == {"v"}


def test_a_reader_that_was_made_by_hand_is_in_the_way_of_a_plan(folder: Path) -> None:
    project_of(folder, V).apply()
    with Warehouse.open(folder / "lake") as warehouse:
        warehouse.create_view(R)
    with pytest.raises(ViewkeeperError, match="r cannot be over the new v"):
        project_of(folder, NARROWER).plan(prune=True)


def test_what_was_dropped_and_made_again_by_hand_is_theirs(folder: Path) -> None:
    project_of(folder, V, R).apply()
    without = project_of(folder, V)
    with Warehouse.open(folder / "lake") as warehouse:
        warehouse.drop_view("r")
    without.apply()
    with Warehouse.open(folder / "lake") as warehouse:
        warehouse.create_view(R)
    plan = without.plan(prune=True)
    assert (actions(plan), plan.by_hand) == ({"v": "keep"}, ("r",))
    without.apply(prune=True)
    with Warehouse.open(folder / "lake", read_only=True) as warehouse:
        assert "r" in warehouse.definitions


def test_modules_may_have_dataclasses_and_comments_with_anything_in_them(folder: Path) -> None:
    module = """
        from __future__ import annotations

        from dataclasses import dataclass

        from viewkeeper import materialized_view

        @dataclass
        class Limit:
            amount: int = 5

        @materialized_view(comment="see docs/*.md */ and /* here")
        def large():
            return f"SELECT id FROM shop.orders WHERE amount > {Limit().amount}"
        """
    yaml = SHOP
    project = Project.load(write_files(folder, {"viewkeeper.yml": f"{yaml}modules: m.py\n", "m.py": module}))
    project.apply()
    with Warehouse.open(project.warehouse, read_only=True) as warehouse:
        assert warehouse.arrow("large").to_pylist() == [{"id": 1}]


def in_one_group(name: str, select: str) -> str:
    return f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES('group' = 'g') AS {select}"


BEFORE = (
    in_one_group("v", "SELECT id, amount FROM shop.orders"),
    in_one_group("z", "SELECT id, name FROM shop.people"),
    "CREATE MATERIALIZED VIEW r AS SELECT v.amount, z.name FROM v JOIN z ON v.amount = z.id",
    "CREATE MATERIALIZED VIEW total AS SELECT SUM(amount) AS total FROM r",
)
# Neither the new v nor the new z has what the present r reads, and the new r reads both of them, and one that is new.
AFTER = (
    in_one_group("v", "SELECT id, cust FROM shop.orders"),
    in_one_group("z", "SELECT id AS person FROM shop.people"),
    in_one_group("zz", "SELECT id AS person, name FROM shop.people"),
    "CREATE MATERIALIZED VIEW r AS SELECT v.cust AS amount, z.person, zz.name FROM v JOIN z ON v.cust = z.person "
    "JOIN zz ON z.person = zz.person",
    "CREATE MATERIALIZED VIEW total AS SELECT SUM(amount) AS total FROM r",
)


def test_views_that_fit_each_other_only_when_all_have_changed(folder: Path) -> None:
    project_of(folder, *BEFORE).apply()
    with Warehouse.open(folder / "lake", read_only=True) as warehouse:
        before = warehouse.status().commit
    after = project_of(folder, *AFTER)
    assert actions(after.plan()) == {"v": "reload", "z": "reload", "zz": "create", "r": "reload", "total": "reload"}
    after.apply()
    assert not after.plan().changes
    with Warehouse.open(folder / "lake") as warehouse:
        assert warehouse.status().commit == before + 1
        assert warehouse.arrow("r").to_pylist() == [{"amount": 7, "person": 7, "name": "Ann"}]
        with closing(sqlite3.connect(folder / "shop.db")) as database:
            database.executescript("BEGIN; INSERT INTO orders VALUES (2, 7, 20); COMMIT")
        warehouse.catch_up()
        assert warehouse.arrow("total").to_pylist() == [{"total": 14}]


def test_what_fails_on_the_way_leaves_all_of_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project_of(folder, *BEFORE).apply()
    create = Keeper.create

    def failing(self: Keeper, sql: str) -> str:
        if "VIEW r " in sql:
            raise SourceUnavailable("shop is out of reach")
        return create(self, sql)

    after = project_of(folder, *AFTER)
    with monkeypatch.context() as patch:
        patch.setattr(Keeper, "create", failing)
        with pytest.raises(SourceUnavailable, match="out of reach"):
            after.apply()
    with Warehouse.open(folder / "lake") as warehouse:
        assert set(warehouse.definitions) == {"v", "z", "r", "total"}
        assert warehouse.arrow("v").to_pylist() == [{"id": 1, "amount": 10}]
        with closing(sqlite3.connect(folder / "shop.db")) as database:
            database.executescript("BEGIN; INSERT INTO orders VALUES (2, 7, 7); COMMIT")
        warehouse.catch_up()
        assert warehouse.arrow("r").to_pylist() == [{"amount": 7, "name": "Ann"}]
    after.apply()
    assert not after.plan().changes


CUBE = """
cubes:
  sales: {fact: shop.orders, dimensions: [cust], measures: 'SUM(amount) AS total', count: 1}
"""


@pytest.mark.usefixtures("spark")
def test_a_cube_is_changed_by_one_commit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project_of(folder, more=CUBE).apply()

    def failing(self: Keeper, sql: str) -> str:
        raise SourceUnavailable("shop is out of reach")

    changed = project_of(folder, more=CUBE.replace("AS total", "AS total, COUNT(*) AS n"))
    assert [str(step.action) for step in changed.plan().cubes] == ["reload"]
    with monkeypatch.context() as patch:
        patch.setattr(Keeper, "create", failing)
        with pytest.raises(SourceUnavailable, match="out of reach"):
            changed.apply()
    with Warehouse.open(folder / "lake", read_only=True) as warehouse:
        assert warehouse.arrow("sales_cust").to_pylist() == [{"cust": 7, "total": 10}]
        before = warehouse.status().commit
    changed.apply()
    assert not changed.plan().changes
    with Warehouse.open(folder / "lake", read_only=True) as warehouse:
        assert warehouse.status().commit == before + 1
        assert warehouse.arrow("sales_cust").to_pylist() == [{"cust": 7, "total": 10, "n": 1}]
