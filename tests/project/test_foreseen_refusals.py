"""Whatever `apply` would refuse half way, `plan` refuses before anything is done, in the same words."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from project_folder import make_shop, write_files

from viewkeeper import Project, Warehouse
from viewkeeper.errors import ViewkeeperError
from viewkeeper.project import planning
from viewkeeper.project.plan import Plan

YAML = "warehouse: lake\nsources:\n  shop: {url: 'sqlite:///shop.db', install: true}\n"
CREATE = "CREATE MATERIALIZED VIEW"
FIRST = f"{CREATE} first AS SELECT name FROM shop.people"
ORDERS = "AS SELECT id, amount FROM shop.orders"
JOINED = "AS SELECT o.id, p.name FROM shop.orders o JOIN shop.people p ON o.cust = p.id"
COUNTED = "AS SELECT cust, COUNT(*) AS n FROM shop.orders GROUP BY cust"


def grouped(group: str, **properties: str) -> str:
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in {"group": group, **properties}.items())
    return f"TBLPROPERTIES ({listed})"


BROKEN = {
    "views of two groups are read": (
        f"{CREATE} a {grouped('g1')} {ORDERS}",
        f"{CREATE} b {grouped('g2')} {ORDERS}",
        f"{CREATE} c AS SELECT a.id, b.amount FROM a JOIN b ON a.id = b.id",
    ),
    "two algorithms in a group": (
        f"{CREATE} a {grouped('g', algorithm='sweep')} {ORDERS}",
        f"{CREATE} b {grouped('g', algorithm='t-strobe')} {ORDERS}",
    ),
    "a stored join among others": (
        f"{CREATE} a {grouped('g')} {ORDERS}",
        f"{CREATE} b {grouped('g', storage='matview')} {JOINED}",
    ),
    "another join among stored ones": (
        f"{CREATE} a {grouped('g', storage='matview')} {JOINED}",
        f"{CREATE} b {grouped('g')} {ORDERS}",
    ),
    "stored joins of two levels": (
        f"{CREATE} a {grouped('g', storage='matview', consistency='complete')} {JOINED}",
        f"{CREATE} b {grouped('g', storage='matview', consistency='strong')} {JOINED}",
    ),
    "summaries of two facts in a group": (
        f"{CREATE} a {grouped('g')} {COUNTED}",
        f"{CREATE} b {grouped('g')} AS SELECT name, COUNT(*) AS n FROM shop.people GROUP BY name",
    ),
    "a summary in the group of a join": (
        f"{CREATE} a {grouped('g')} {ORDERS}",
        f"{CREATE} b {grouped('g')} {COUNTED}",
    ),
    "a stored core in a lattice without one": (
        f"{CREATE} a {COUNTED}",
        f"{CREATE} b TBLPROPERTIES ('core' = 'stored') {COUNTED}",
    ),
    "feeds that keep later views apart": (
        f"{CREATE} a {COUNTED}",
        f"{CREATE} b AS SELECT name, COUNT(*) AS n FROM shop.people GROUP BY name",
        f"{CREATE} c {ORDERS}",
        f"{CREATE} d AS SELECT id AS person, name FROM shop.people",
        f"{CREATE} e AS SELECT c.amount, d.name FROM c JOIN d ON c.id = d.person",
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_shop(tmp_path / "shop.db")
    return tmp_path


def project_of(folder: Path, *views: str, yaml: str = YAML) -> Project:
    for file in (folder / "views").glob("*.sql"):
        file.unlink()
    named = {f"views/{number}.sql": view for number, view in enumerate(views)}
    return Project.load(write_files(folder, {"viewkeeper.yml": yaml, "views/none.txt": "", **named}))


def actions(plan: Plan) -> dict[str, str]:
    return {step.name: str(step.action) for step in (*plan.sources, *plan.views) if step.changes}


def refusal(work) -> ViewkeeperError:
    with pytest.raises(ViewkeeperError) as caught:
        work()
    return caught.value


@pytest.mark.parametrize("name", BROKEN)
def test_a_group_that_cannot_be_is_foreseen(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    project = project_of(folder, FIRST, *BROKEN[name])
    foreseen = refusal(project.plan)
    refused = refusal(project.apply)
    assert refused.detail == foreseen.detail
    assert not (folder / "lake").exists(), "nothing was done"
    with monkeypatch.context() as blind:
        blind.setattr(planning, "_without_place", lambda *_: [])
        half_way = refusal(project.apply)
    assert (half_way.detail, half_way.hint) == (foreseen.detail, foreseen.hint)
    with Warehouse.open(folder / "lake", read_only=True) as warehouse:
        assert "first" in warehouse.definitions, "without it, apply had begun"
    # Behind what is there it is the same.
    later = refusal(project.plan)
    assert (later.detail, later.hint) == (foreseen.detail, foreseen.hint)


def test_what_can_be_is_not_refused(folder: Path) -> None:
    """Groups that are asked for, inferred and shared, in one project; nothing is left to do after it."""
    project = project_of(
        folder,
        f"{CREATE} a {grouped('g')} {ORDERS}",
        f"{CREATE} b {grouped('g')} {JOINED}",
        f"{CREATE} c AS SELECT a.amount, b.name FROM a JOIN b ON a.id = b.id",
        f"{CREATE} d {grouped('s', storage='matview')} {JOINED}",
        f"{CREATE} e {grouped('s', storage='viewcache')} {JOINED}",
        f"{CREATE} f {COUNTED}",
        f"{CREATE} h {COUNTED}",
        f"{CREATE} i AS SELECT name, COUNT(*) AS n FROM b GROUP BY name",
    )
    project.apply()
    assert not project.plan().changes


def test_all_refusals_are_listed(folder: Path) -> None:
    broken = project_of(
        folder,
        f"{CREATE} a {grouped('g')} {ORDERS}",
        f"{CREATE} b {grouped('g', storage='matview')} {JOINED}",
        f"{CREATE} c {grouped('g')} {COUNTED}",
        f"{CREATE} d AS SELECT a.id FROM a JOIN b ON a.id = b.id",
    )
    told = refusal(broken.plan).detail
    assert "the project has 2 errors" in told
    assert "not maintained as b is" in told
    assert "group g has views that are no summaries" in told


def test_a_source_that_is_not_ready_is_foreseen(folder: Path) -> None:
    make_shop(folder / "other.db")
    both = YAML + "  other: 'sqlite:///other.db'\n"
    foreseen = refusal(project_of(folder, FIRST, yaml=both).plan)
    assert "source other is not ready" in foreseen.detail
    assert foreseen.hint.startswith("write install: true beside its url")
    assert not (folder / "lake").exists()


def test_what_views_made_by_hand_read_is_not_pruned(folder: Path) -> None:
    make_shop(folder / "other.db")
    both = YAML + "  other: {url: 'sqlite:///other.db', install: true}\n"
    project_of(folder, FIRST, f"{CREATE} v {ORDERS}", yaml=both).apply()
    with Warehouse.open(folder / "lake") as warehouse:
        warehouse.create_view(f"{CREATE} hand AS SELECT amount FROM v")
        warehouse.create_view(f"{CREATE} hands AS SELECT name FROM other.people")
    smaller = project_of(folder, FIRST)
    smaller.plan()
    told = refusal(lambda: smaller.apply(prune=True)).detail
    assert "view v is read by hand" in told
    assert "source other is in use by hands" in told
    with Warehouse.open(folder / "lake", read_only=True) as warehouse:
        assert {"first", "v", "hand", "hands"} <= set(warehouse.definitions)


def test_a_source_is_not_moved_to_another_kind(folder: Path) -> None:
    project_of(folder, FIRST).apply()
    (folder / "files").mkdir()
    moved = YAML.replace("'sqlite:///shop.db', install: true", "'files:///files'")
    assert "cannot be moved" in refusal(project_of(folder, FIRST, yaml=moved).plan).detail


def test_a_new_column_is_foreseen_where_a_view_names_it(folder: Path) -> None:
    project_of(folder, FIRST, f"{CREATE} v {ORDERS}").apply()
    with closing(sqlite3.connect(folder / "shop.db")) as connection, connection:
        connection.execute("ALTER TABLE orders ADD COLUMN note TEXT")
        connection.execute("INSERT INTO orders VALUES (2, 7, 20, 'new')")
    assert actions(project_of(folder, FIRST, f"{CREATE} v {ORDERS}").plan()) == {}
    wider = project_of(folder, FIRST, f"{CREATE} v AS SELECT id, amount, note FROM shop.orders")
    plan = wider.plan()
    assert actions(plan) == {"v": "reload"}
    [shop] = plan.sources
    assert shop.reasons == ("the column note of shop.orders is new",)
    told = refusal(wider.apply)
    assert "captured before the new columns were known" in told.detail
    assert "catch-up" in told.hint
    with Warehouse.open(folder / "lake") as warehouse:
        warehouse.catch_up()
    assert actions(wider.apply()) == {"v": "reload"}
    assert not wider.plan().changes
    with Warehouse.open(folder / "lake") as warehouse:
        assert warehouse.arrow("v").to_pylist() == [
            {"id": 1, "amount": 10, "note": None},
            {"id": 2, "amount": 20, "note": "new"},
        ]
    gone = project_of(folder, FIRST, f"{CREATE} v AS SELECT id, remark FROM shop.orders")
    assert "remark" in refusal(gone.plan).detail
