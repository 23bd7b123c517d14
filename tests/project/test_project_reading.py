"""What a project says: variables, paths, defaults, the order of its views; the same from files and from Python."""

import os
from pathlib import Path

import pytest
from project_folder import BIG, SHOP, write_files

from viewkeeper import Project, materialized_view
from viewkeeper.project.defaults import Kind, with_properties
from viewkeeper.project.finding import find_project_file, warehouse_of
from viewkeeper.sql.statements import statements

EVERYTHING = """\
warehouse: ${LAKE:-lake}/$${x}
sources:
  shop: sqlite:///data/a b.db
  crm:
    url: postgresql://${WHO:-ann}:${CRM_PASSWORD}@db/crm
    install: yes
    tables: [people, public.cities]
    keys: {people: id, prices: [item, day]}
    foreign_keys: {people.city: geo.cities.id}
    hierarchies:
      cities: [id, region]
      days: [[day, month, year], [day, week]]
  geo: ${GEO}
  exports: files://./exports
views: [views, more/**/*.sql]
modules: views_in_python.py
defaults:
  retention: 30 days
  consistency: strong
  joins: {storage: auto}
  summaries: {refresh: manual, consistency: auto}
cubes:
  sales:
    fact: shop.orders
    dimensions: [cust]
    measures: [COUNT(*) AS n, SUM(amount) AS s]
    count: 2
"""
CREATE = "CREATE MATERIALIZED VIEW"
PYTHON = '''
"""Two views."""

from viewkeeper import materialized_view

for limit in (10, 20):

    @materialized_view(name=f"above_{limit}", properties={"consistency": "weak"}, comment="a */ b")
    def above(limit=limit):
        return f"""
            SELECT id FROM shop.orders WHERE amount > {limit}
        """
'''


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("CRM_PASSWORD", "secret")
    monkeypatch.setenv("GEO", "sqlite:////geo.db")
    files = {
        "viewkeeper.yml": EVERYTHING,
        "views/b.sql": f"{CREATE} b AS SELECT id FROM c; {CREATE} C AS SELECT id FROM big",
        "views/c.sql": f"{CREATE} n TBLPROPERTIES ('refresh' = 'continuous') AS\nSELECT COUNT(*) AS n FROM b",
        "views/notes.txt": "no SQL",
        "more/x/y/big.sql": f"-- large ones\n{BIG}",
        "views_in_python.py": PYTHON,
    }
    return Project.load(write_files(tmp_path, files))


def test_paths_and_variables(project: Project, tmp_path: Path) -> None:
    assert os.fspath(project) == str(tmp_path / "lake" / "${x}")
    urls = {name: source.url for name, source in project.sources.items()}
    here = str(tmp_path)
    assert urls == {
        "shop": f"sqlite:///{here}/data/a b.db",
        "crm": "postgresql://${WHO:-ann}:${CRM_PASSWORD}@db/crm",
        "geo": "${GEO}",
        "exports": f"files://{here}/exports",
    }
    crm = project.sources["crm"]
    assert (crm.install, crm.tables) == (True, ("people", "public.cities"))
    assert crm.keys == {"people": ("id",), "prices": ("item", "day")}
    assert crm.foreign_keys == (("people.city", "geo.cities.id"),)
    assert crm.hierarchies == {
        "cities": (("id", "region"),),
        "days": (("day", "month", "year"), ("day", "week")),
    }
    assert project.cubes["sales"].told == {
        "name": "sales",
        "fact": "shop.orders",
        "dimensions": ["cust"],
        "measures": "COUNT(*) AS n, SUM(amount) AS s",
        "count": 2,
        "space_budget": None,
        "refresh": None,
    }
    assert "secret" not in f"{project!r} {project.sources!r} {project.views!r}"


def test_the_order_and_the_places_of_views(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    names = [view.name for view in project.views]
    assert set(names) == {"big", "C", "b", "n", "above_10", "above_20"}
    assert [name for name in names if not name.startswith("above")] == ["big", "C", "b", "n"]
    places = {view.name: str(view.place) for view in project.views}
    assert (places["big"], places["C"], places["n"]) == ("more/x/y/big.sql:2", "views/b.sql:1", "views/c.sql:1")
    assert places["above_10"] == "views_in_python.py:8"


def test_defaults_by_kind(project: Project) -> None:
    sql = {view.name: view.sql.strip() for view in project.views}
    assert sql["big"].startswith(
        "CREATE MATERIALIZED VIEW big TBLPROPERTIES "
        "('retention' = '30 days', 'consistency' = 'strong', 'storage' = 'auto') AS SELECT"
    )
    assert sql["C"].startswith("CREATE MATERIALIZED VIEW C TBLPROPERTIES ('retention' = '30 days') AS SELECT")
    assert sql["n"].startswith(
        "CREATE MATERIALIZED VIEW n TBLPROPERTIES ('retention' = '30 days', 'consistency' = 'auto', "
        "'refresh' = 'continuous') AS\nSELECT"
    )
    assert sql["above_20"] == (
        "CREATE MATERIALIZED VIEW `above_20` TBLPROPERTIES ('retention' = '30 days', 'storage' = 'auto', "
        "'consistency' = 'weak') AS /* a * / b */ SELECT id FROM shop.orders WHERE amount > 20"
    )
    assert {view.name: view.kind for view in project.views}["C"] is Kind.OVER_VIEWS


@pytest.mark.parametrize(
    ("defaults", "properties", "expected"),
    [
        ({"storage": "viewcache"}, "'algorithm' = 'sweep'", {}),
        ({"algorithm": "sweep"}, "'storage' = 'viewcache'", {}),
        ({"algorithm": "sweep"}, "'storage' = 'remote'", {"algorithm": "sweep"}),
        ({"retention": "1 day"}, "'retention' = '2 days'", {}),
        ({"group": "it's \\ g"}, "'retention' = '2 days'", {"group": "it's \\ g"}),
        ({"nested_updates": 3}, "'retention' = '2 days'", {"nested_updates": "3"}),
    ],
)
def test_a_default_gives_way_to_what_a_view_says(
    defaults: dict[str, str], properties: str, expected: dict[str, str]
) -> None:
    view = f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ({properties}) AS SELECT id FROM shop.orders"
    [read] = Project(sources={"shop": "sqlite:///a.db"}, views=[view], defaults=defaults).views
    assert read.sql == with_properties(view, expected)


@pytest.mark.parametrize("clause", ["CREATE OR REPLACE MATERIALIZED VIEW", "CREATE MATERIALIZED VIEW IF NOT EXISTS"])
def test_what_is_there_already_is_not_the_question(clause: str) -> None:
    text = f"{clause} v AS SELECT id FROM shop.orders"
    [view] = Project(sources={"shop": "sqlite:///a.db"}, views=[text], defaults={"group": "g"}).views
    assert view.sql == f"{CREATE} v TBLPROPERTIES ('group' = 'g') AS SELECT id FROM shop.orders"


def test_complete_and_deferred_do_not_meet() -> None:
    count = "SELECT COUNT(*) AS n FROM shop.orders"
    views = [
        f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('refresh' = 'manual') AS {count}",
        f"CREATE MATERIALIZED VIEW w TBLPROPERTIES ('consistency' = 'complete') AS {count}",
    ]
    shop = {"shop": "sqlite:///a.db"}
    [read, _] = Project(sources=shop, views=views, defaults={"consistency": "complete"}).views
    assert read.sql == views[0]
    [_, read] = Project(sources=shop, views=views, defaults={"summaries": {"refresh": "manual"}}).views
    assert read.sql == views[1]


def test_the_same_from_python(project: Project, tmp_path: Path) -> None:
    """All that the file can say."""

    @materialized_view(name="above_10", properties={"consistency": "weak"}, comment="a */ b")
    def above() -> str:
        return "SELECT id FROM shop.orders WHERE amount > 10"

    assert above() == "SELECT id FROM shop.orders WHERE amount > 10"
    built = Project(
        folder=tmp_path,
        warehouse=Path("lake", "$${x}"),
        sources={
            "shop": "sqlite:///data/a b.db",
            "crm": {
                "url": "postgresql://${WHO:-ann}:${CRM_PASSWORD}@db/crm",
                "install": True,
                "tables": ("people", "public.cities"),
                "keys": {"people": "id", "prices": ["item", "day"]},
                "foreign_keys": [("people.city", "geo.cities.id")],
                "hierarchies": {"cities": ["id", "region"], "days": [["day", "month", "year"], ["day", "week"]]},
            },
            "geo": "${GEO}",
            "exports": "files://./exports",
        },
        views=[BIG, above],
        defaults={"retention": "30 days", "consistency": "strong", "joins": {"storage": "auto"}},
        cubes={
            "sales": {
                "fact": "shop.orders",
                "dimensions": ["cust"],
                "measures": ["COUNT(*) AS n", "SUM(amount) AS s"],
                "count": 2,
            }
        },
    )
    assert os.fspath(built) == os.fspath(project)
    assert {name: (one.url, one.tables, one.keys) for name, one in built.sources.items()} == {
        name: (one.url, one.tables, one.keys) for name, one in project.sources.items()
    }
    assert dict(built.cubes) == dict(project.cubes)
    loaded = {view.name: view.sql.strip() for view in project.views}
    assert {view.name: view.sql.strip() for view in built.views} == {name: loaded[name] for name in ("big", "above_10")}


def test_mistakes_in_python_name_the_field() -> None:
    shop = {"shop": "sqlite:///a.db"}
    with pytest.raises(Exception, match=r"^Project\(...\): sources.shop has no field ulr\n  hint: did you mean url"):
        Project(sources={"shop": {"ulr": "x"}}, views=[BIG])
    with pytest.raises(Exception, match=r"^views\[1\]: the view big is defined twice"):
        Project(sources=shop, views=[BIG, BIG])
    with pytest.raises(Exception, match=r"^views\[0\] is neither SQL nor a decorated function"):
        Project(sources=shop, views=[lambda: BIG])
    with pytest.raises(Exception, match="no text, number, list or mapping"):
        Project(sources=shop, views=[BIG], defaults={"group": object()})


def test_a_module_that_changes_is_run_again(tmp_path: Path) -> None:
    text = (
        "from viewkeeper import materialized_view\n@materialized_view\ndef v{}(): return 'SELECT id FROM shop.orders'\n"
    )
    for number in (1, 2):
        write_files(tmp_path, {"viewkeeper.yml": SHOP + "modules: m.py\n", "m.py": text.format(number)})
        assert [view.name for view in Project.load(tmp_path).views] == [f"v{number}"]


def test_a_module_by_name_and_what_it_imports(tmp_path: Path) -> None:
    files = {
        "viewkeeper.yml": SHOP + "modules: [reports_of_a_test.weekly]\n",
        "reports_of_a_test/__init__.py": "",
        "reports_of_a_test/limits.py": "LIMIT = 5\n",
        "reports_of_a_test/weekly.py": (
            "from reports_of_a_test.limits import LIMIT\nfrom viewkeeper import materialized_view\n\n\n"
            "@materialized_view\ndef weekly():\n    return f'SELECT id FROM shop.orders WHERE id > {LIMIT}'\n"
        ),
    }
    for _ in range(2):
        [view] = Project.load(write_files(tmp_path, files)).views
        assert (view.name, view.sql.endswith("id > 5")) == ("weekly", True)


# Where it is


def test_a_project_is_found_from_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"viewkeeper.yml": SHOP, "views/a.sql": BIG, "views/deep/er/x.txt": ""})
    monkeypatch.chdir(tmp_path / "views" / "deep" / "er")
    file = tmp_path / "viewkeeper.yml"
    assert find_project_file() == file
    assert Project.load().file == Project.load(file).file == Project.load(tmp_path / "views").file == file
    assert Project.load().warehouse == tmp_path / "warehouse"


def test_the_warehouse_is_found_whatever_else_is_wrong(tmp_path: Path) -> None:
    write_files(tmp_path, {"viewkeeper.yml": "warehouse: ${LAKE}\nsources: {shop: '${MISSING}'}\nwhat: ever\n"})
    assert warehouse_of(tmp_path / "viewkeeper.yml", {"LAKE": "here"}) == tmp_path / "here"
    assert warehouse_of(tmp_path / "viewkeeper.yml", {"LAKE": "/there"}) == Path("/there")


def test_statements_keep_their_lines() -> None:
    text = "-- one; two\n  CREATE a -- 'x\n AS b; /* ; */ CREATE c;;\n"
    assert statements(text) == ["\n  CREATE a -- 'x\n AS b", "\n\n               CREATE c"]
    assert statements("-- nothing\n;") == []
