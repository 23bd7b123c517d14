"""Projects applied to a warehouse, again and again, as they change."""

from pathlib import Path

import pytest
from project_folder import SHOP, make_shop, write_files

from viewkeeper import Project, Warehouse
from viewkeeper.errors import ViewkeeperError
from viewkeeper.project.plan import Plan

V = "CREATE MATERIALIZED VIEW v AS SELECT id, amount FROM shop.orders"
NARROWER = "CREATE MATERIALIZED VIEW v AS SELECT id FROM shop.orders"
R = "CREATE MATERIALIZED VIEW r AS SELECT amount FROM v"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_shop(tmp_path / "shop.db")
    return tmp_path


def project_of(folder: Path, *views: str) -> Project:
    yaml = SHOP.replace("sqlite:///shop.db", "{url: 'sqlite:///shop.db', install: true}") + "warehouse: lake\n"
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
    yaml = SHOP.replace("sqlite:///shop.db", "{url: 'sqlite:///shop.db', install: true}")
    project = Project.load(write_files(folder, {"viewkeeper.yml": f"{yaml}modules: m.py\n", "m.py": module}))
    project.apply()
    with Warehouse.open(project.warehouse, read_only=True) as warehouse:
        assert warehouse.arrow("large").to_pylist() == [{"id": 1}]
