"""Everything that can be wrong with a project: what is said of it begins with the file and the line."""

from pathlib import Path

import pytest
from project_folder import BIG, SHOP, make_shop, write_files

from viewkeeper import Project, ViewkeeperError

SECRET = "s3cr3t-Value"
ENVIRONMENT = {"SHOP_PASSWORD": SECRET, "LEVEL": SECRET, "SHOP_URL": f"ftp://{SECRET}", "EMPTY": ""}


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    for name in ("MISSING", "CRM_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


def refused(files: dict[str, str]) -> str:
    """What is said of a project, which has a view if it has no other; nothing of the environment is in it."""
    if not any(name.endswith((".sql", ".py")) for name in files):
        files = {"views/big.sql": BIG, **files}
    write_files(Path.cwd(), files)
    with pytest.raises(ViewkeeperError) as caught:
        Project.load()
    said = str(caught.value)
    assert SECRET not in said
    assert "hint" in said
    return said


YAML = [
    # text of viewkeeper.yml, line, what is said, what the hint says
    ("", 1, "the file is empty", "viewkeeper init"),
    ("# nothing\n", 1, "is empty", "viewkeeper init"),
    ("- a\n- b\n", 1, "the file must be a mapping, and is a list", "name: value"),
    ("warehouse lake\n", 1, "must be a mapping, and is text", ""),
    ("warehouse: lake\nsources: {shop: [\n", 3, "this is not YAML", ""),
    ("warehouse: lake\n\tviews: v\n", 2, "is not YAML", "spaces"),
    ("warehouse: *nowhere\n", 1, "is not YAML: found undefined alias", ""),
    ("warehouse: lake\n---\nwarehouse: b\n", 2, "is not YAML", ""),
    ("warehouse: a\x07b\n", 1, "a character that YAML does not allow", ""),
    (SHOP + "warehous: lake\n", 3, "there is no field warehous", "did you mean warehouse?"),
    (SHOP + "colour: red\n", 3, "there is no field colour", "the fields are warehouse, sources"),
    (SHOP + "warehouse: a\nwarehouse: b\n", 4, "there is warehouse twice", "keep one"),
    (SHOP + "warehouse: 12\n", 3, "warehouse must be text, and is a number", "quotes"),
    (SHOP + "warehouse:\n", 3, "warehouse must be text, and is nothing", ""),
    (SHOP + "warehouse: s3://bucket/lake\n", 3, "must be a folder, and is a URL", ""),
    (SHOP + "warehouse: ${MISSING}/lake\n", 3, "warehouse needs the environment variable MISSING", "export MISSING="),
    (SHOP + "warehouse: ${not a name}\n", 3, "which names no variable", "$${"),
    (SHOP + "1: a\n", 3, "a name in the file is no text", "quotes"),
    (SHOP + "<<: {warehouse: a}\n", 3, "a name in the file is no text", ""),
    ("sources: sqlite:///shop.db\n", 1, "sources must be a mapping, and is text", ""),
    ("sources:\n  Shop: sqlite:///shop.db\n", 2, "a source cannot be named 'Shop'", "lower-case"),
    ("sources:\n  shop: 5\n", 2, "sources.shop must be a mapping, and is a number", ""),
    ("sources:\n  shop: {tables: [a]}\n", 2, "sources.shop has no url", "add one"),
    ("sources:\n  shop:\n    ulr: sqlite:///a.db\n", 3, "sources.shop has no field ulr", "did you mean url?"),
    ("sources:\n  shop: shop.db\n", 2, "shop.db is no URL of a source", "sqlite:///a.db"),
    ("sources:\n  shop: sqllite:///shop.db\n", 2, "is no URL of a source", "did you mean sqlite?"),
    ("sources:\n  shop: ${SHOP_URL}\n", 2, "what the variables give is no URL", ""),
    ("sources:\n  shop: ${MISSING}\n", 2, "sources.shop needs the environment variable MISSING", ""),
    ("sources:\n  s:\n    url: postgresql://a:${CRM_PASSWORD}@db/c\n", 3, "needs the environment variable CRM_", ""),
    ("sources:\n  s: postgresql://a:hunter2@db/c\n", 2, "the URL holds a password", "write ${VARIABLE}"),
    ("sources:\n  s: postgresql://a:${SHOP_PASSWORD:-x}@db/c\n", 2, "the URL holds a password", ""),
    ("sources:\n  s:\n    url: sqlite:///a\n    install: maybe\n", 4, "s.install must be true or false", ""),
    ("sources:\n  s:\n    url: sqlite:///a\n    tables: {a: b}\n", 4, "s.tables must be a list, and is a mapping", ""),
    ("sources:\n  s:\n    url: sqlite:///a\n    tables: [a, 1]\n", 4, "s.tables[1] must be text, and is a number", ""),
    ("sources:\n  s:\n    url: sqlite:///a\n    keys: {t: []}\n", 4, "s.keys.t names no column", ""),
    ("sources:\n  s:\n    url: sqlite:///a\n    hierarchies: {t: [a]}\n", 4, "two columns or more", "the finest first"),
    ("sources:\n  s:\n    url: sqlite:///a\n    foreign_keys: {a.b: c}\n", 4, "names no foreign key", "orders.cust"),
    ("sources:\n  s:\n    url: sqlite:///a\n    foreign_keys: [[a.b]]\n", 4, "is no pair", ""),
    (SHOP + "views: 3\n", 3, "views must be a list, and is a number", ""),
    (SHOP + "views: elsewhere\n", 3, "there is no folder or file elsewhere", "views/*.sql"),
    (SHOP + "views:\n  - views\n  - more/*.sql\n", 5, "no file matches more/*.sql", ""),
    (SHOP + "modules: [nowhere.py]\n", 3, "there is no file nowhere.py", "beside viewkeeper.yml"),
    (SHOP + "modules: [no_such_module]\n", 3, "there is no module no_such_module", ""),
    (SHOP + "modules: ['a b']\n", 3, "a b names no Python module", ""),
    (SHOP + "defaults: {consistancy: strong}\n", 3, "defaults has no field consistancy", "did you mean consistency?"),
    (SHOP + "defaults:\n  consistency: best\n", 4, "there is no consistency best", "complete"),
    (SHOP + "defaults:\n  consistency: ${LEVEL}\n", 4, "the property consistency cannot be ${LEVEL}", "complete"),
    (SHOP + "defaults:\n  refresh: sometimes\n", 4, "sometimes", ""),
    (SHOP + "defaults:\n  summaries:\n    storage: auto\n", 5, "summaries has no property storage", ""),
    (SHOP + "cubes:\n  c: {fact: shop.orders}\n", 4, "cubes.c has no dimensions", ""),
    (SHOP + "defaults: {retention: 30 dys}\n", 3, "the retention of a view cannot be '30 dys'", "7 days"),
    (
        SHOP + "cubes:\n  c: {fact: shp.orders, dimensions: [c], measures: COUNT(*) AS n, count: 1}\n",
        4,
        "the cube c reads shp.orders, and the project has no source shp",
        "did you mean shop?",
    ),
    (
        SHOP + "cubes:\n  c: {fact: shop.orders, dimensions: [cust], measures: COUNT(*) AS n}\n",
        4,
        "must say how much may be stored",
        "count",
    ),
    (
        SHOP + "cubes:\n  c: {fact: a.b, dimensions: [c], measures: COUNT(*) AS n, count: -1}\n",
        4,
        "cubes.c.count must be a whole number",
        "",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "what", "hint"), YAML, ids=[what for _, _, what, _ in YAML])
def test_viewkeeper_yml(text: str, line: int, what: str, hint: str) -> None:
    said = refused({"viewkeeper.yml": text})
    first, _, rest = said.partition("\n")
    assert first.startswith(f"viewkeeper.yml:{line}: ")
    assert what in first
    assert hint in rest


HEAD = "-- what it is for\n"
SQL = [
    # text of views/a.sql, line, what is said, what the hint says
    ("", 1, "there is no view in it", "CREATE MATERIALIZED VIEW"),
    ("-- later\n", 1, "there is no view in it", ""),
    (HEAD + "CREATE MATERIALIZED VIEW a AS SELECT id FORM shop.orders", 2, "column 46: unexpected 'shop'", ""),
    (HEAD + "\nSELECT id FROM shop.orders", 3, "this is no CREATE MATERIALIZED VIEW but SELECT id", ""),
    (HEAD + "CREATE TABLE a (b INT)", 2, "CREATE TABLE does not define", ""),
    (HEAD + "CREATE MATERIALIZED VIEW a AS\nSELECT 'x FROM shop.orders", 3, "' is opened and never closed", "close it"),
    (HEAD + "CREATE MATERIALIZED VIEW a TBLPROPERTIES ('x' = '1') AS SELECT id FROM s.t", 2, "no property x", ""),
    (f"{BIG};\n\nCREATE MATERIALIZED VIEW a AS\nSELECT id\nFROM shp.orders", 5, "has no source shp", "mean shop?"),
    (f"{BIG};\nCREATE MATERIALIZED VIEW a AS SELECT id\nFROM bgi", 3, "no view of that name", "big? A table of"),
    ("CREATE MATERIALIZED VIEW a AS SELECT id FROM orders", 1, "no view of that name", "source.table"),
    (f"{BIG};\n{BIG}", 2, "the view big is defined twice: also at views/a.sql:1", "another name"),
    (
        f"{BIG};\nCREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM big;\n"
        "CREATE MATERIALIZED VIEW m AS\nSELECT n FROM n",
        4,
        "m reads n, which is a summary",
        "query the summary",
    ),
    ("CREATE MATERIALIZED VIEW a AS SELECT id FROM a", 1, "in a circle: a → a", "over tables"),
    (
        f"{BIG};\nCREATE MATERIALIZED VIEW a AS SELECT id FROM c;\nCREATE MATERIALIZED VIEW b AS SELECT id FROM a;\n"
        "CREATE MATERIALIZED VIEW c AS SELECT id FROM b",
        2,
        "views read each other in a circle: a → c → b → a (a at views/a.sql:2, c at views/a.sql:4, b at views/a.sql:3)",
        "over tables",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "what", "hint"), SQL, ids=[what for _, _, what, _ in SQL])
def test_files_of_views(text: str, line: int, what: str, hint: str) -> None:
    said = refused({"viewkeeper.yml": SHOP, "views/a.sql": text})
    first, _, rest = said.partition("\n")
    assert first.startswith(f"views/a.sql:{line}: ")
    assert what in first
    assert hint in rest


DECORATED = "from viewkeeper import materialized_view\n\n\n@materialized_view\ndef v():\n    "
PYTHON = [
    # text of m.py, file and line, what is said
    ("x = 1\n", "viewkeeper.yml:3", "the module m.py has no views"),
    ("def v(:\n", "m.py:1", "is not Python"),
    ("\nimport no_such_thing\n", "m.py:2", "the module cannot be run: ModuleNotFoundError"),
    ("from viewkeeper import materialized_view\n\n@materialized_view\nclass V: ...\n", "m.py:3", "is for a function"),
    (f"{DECORATED}return 1\n", "m.py:4", "v returns a value of type int, and must return SQL"),
    (f"{DECORATED}return ' '\n", "m.py:4", "v returns empty text"),
    (f"{DECORATED}return {BIG!r}\n", "m.py:4", "v returns a CREATE"),
    (f"{DECORATED}return {{}}['x']\n", "m.py:6", "v fails: KeyError"),
    (f"{DECORATED}return 'SELECT id\\nFORM shop.orders'\n", "m.py:4", "line 2, column 6"),
    (f"{DECORATED}return 'SELECT id FROM shp.orders'\n", "m.py:4", "has no source shp"),
    ("import sys\nsys.exit('enough')\n", "m.py:2", "the module cannot be run: SystemExit: enough"),
    (f"import json\n{DECORATED}return json.loads('{{')\n", "m.py:7", "v fails: json.decoder.JSONDecodeError"),
]


@pytest.mark.parametrize(("text", "place", "what"), PYTHON, ids=[what for _, _, what in PYTHON])
def test_modules(text: str, place: str, what: str) -> None:
    said = refused({"viewkeeper.yml": SHOP + "modules: m.py\n", "m.py": text})
    assert said.startswith(f"{place}: ")
    assert what in said


def test_tables_that_were_not_chosen() -> None:
    said = refused({"viewkeeper.yml": "sources:\n  shop: {url: 'sqlite:///a.db', tables: [order]}\n"})
    assert said.startswith("views/big.sql:1: big reads shop.orders, which is not among the tables of source shop")
    assert "did you mean order?" in said


def test_no_views() -> None:
    write_files(Path.cwd(), {"viewkeeper.yml": SHOP})
    with pytest.raises(ViewkeeperError, match=r"^viewkeeper.yml:1: the project has no views") as caught:
        Project.load()
    assert "into views/NAME.sql, or views: [] if the project is to have none" in str(caught.value)
    Path("emptied").mkdir()
    write_files(Path.cwd(), {"viewkeeper.yml": SHOP + "views: emptied\n"})
    with pytest.raises(
        ViewkeeperError, match=r"the folder emptied has no file \*\.sql\n.* into emptied/NAME"
    ) as caught:
        Project.load()
    assert "or views: [] if the project is to have none" in str(caught.value)
    write_files(Path.cwd(), {"viewkeeper.yml": SHOP + "views: []\n"})
    assert Project.load().views == ()


def test_no_project() -> None:
    with pytest.raises(ViewkeeperError, match=r"no viewkeeper.yml in .*\n.*viewkeeper init"):
        Project.load()
    with pytest.raises(ViewkeeperError, match="there is no "):
        Project.load("nowhere")


def test_files_that_are_no_text() -> None:
    Path("viewkeeper.yml").write_bytes(b"warehouse: \xff\n")
    with pytest.raises(ViewkeeperError, match=r"^viewkeeper.yml:1: the file is not UTF-8"):
        Project.load()
    write_files(Path.cwd(), {"viewkeeper.yml": SHOP, "views/a.sql": ""})
    Path("views/a.sql").write_bytes(b"\xff\xfe")
    with pytest.raises(ViewkeeperError, match=r"^views/a.sql:1: the file is not UTF-8"):
        Project.load()


# What only the database knows


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "CREATE MATERIALIZED VIEW a AS\nSELECT id FROM shop.ordesr",
            "views/a.sql:2: no source has a table shop.ordesr",
        ),
        (
            "CREATE MATERIALIZED VIEW a AS\nSELECT o.id,\n  o.nam FROM shop.orders o",
            "views/a.sql:3: o has no column nam",
        ),
        (
            f"{BIG};\nCREATE MATERIALIZED VIEW a AS\nSELECT amount FROM big",
            "views/a.sql:3: no table in FROM has a column",
        ),
        (
            "CREATE MATERIALIZED VIEW a AS SELECT o.nam FROM shop.orders o",
            "views/a.sql:1: o has no column nam (column 40)",
        ),
        (
            "CREATE MATERIALIZED VIEW a AS SELECT o.id FROM shop.orders o JOIN shop.people p ON o.id = p.name",
            "views/a.sql:1: o.id is a number and p.name a text (column 86)",
        ),
        (
            "CREATE MATERIALIZED VIEW a TBLPROPERTIES ('storage' = 'viewcash') AS SELECT id FROM shop.orders",
            "views/a.sql:1: the property storage of a is 'viewcash'",
        ),
        (
            "CREATE MATERIALIZED VIEW a TBLPROPERTIES ('algorithm' = 'swep') AS SELECT id FROM shop.orders",
            "views/a.sql:1: there is no algorithm 'swep'",
        ),
        (
            "CREATE MATERIALIZED VIEW a TBLPROPERTIES ('storage' = 'remote') AS\n"
            "SELECT o.id FROM shop.orders o LEFT JOIN shop.people p ON o.cust = p.id",
            "views/a.sql:1: a is an outer join, and only what is stored for it can maintain it",
        ),
        (
            f"{BIG};\nCREATE MATERIALIZED VIEW a AS SELECT b.id FROM big b JOIN shop.orders o ON b.id = o.id",
            "views/a.sql:2: a reads views and tables of sources at once",
        ),
        (
            "CREATE MATERIALIZED VIEW a TBLPROPERTIES ('algorithm' = 'sweep') AS SELECT COUNT(*) AS n FROM shop.orders",
            "views/a.sql:1: the property algorithm does not apply to a, which is a summary",
        ),
    ],
)
def test_what_cannot_be_created_is_refused_by_plan(sql: str, said: str) -> None:
    make_shop(Path("shop.db"))
    yaml = f"{SHOP}defaults: {{retention: 3 days}}\n"
    project = Project.load(write_files(Path.cwd(), {"viewkeeper.yml": yaml, "views/a.sql": sql}))
    with pytest.raises(ViewkeeperError) as caught:
        project.plan()
    assert caught.value.detail.startswith(said)
    assert not project.warehouse.exists()


@pytest.mark.parametrize(
    ("cube", "said"),
    [
        ("dimensions: [colour], measures: COUNT(*) AS n", "colour"),
        ("dimensions: [cust], measures: COUNT(*)", "the measure COUNT(*) has no name"),
        ("dimensions: [cust], measures: SUM(nothing) AS n", "nothing"),
        ("dimensions: [cust], measures: COUNT(*) AS n, refresh: now and then", "now and then"),
    ],
)
def test_cubes_are_checked_by_plan(cube: str, said: str) -> None:
    make_shop(Path("shop.db"))
    text = f"{SHOP}cubes:\n  c: {{fact: shop.orders, count: 1, {cube}}}\n"
    project = Project.load(write_files(Path.cwd(), {"viewkeeper.yml": text}))
    with pytest.raises(ViewkeeperError) as caught:
        project.plan()
    assert caught.value.detail.startswith("viewkeeper.yml:4: ")
    assert said in caught.value.detail
    assert not project.warehouse.exists()


def test_a_source_that_is_not_there() -> None:
    project = Project.load(write_files(Path.cwd(), {"viewkeeper.yml": "\n" + SHOP, "views/a.sql": BIG}))
    with pytest.raises(ViewkeeperError, match=r"^viewkeeper.yml:3: .*shop.db"):
        project.plan()
    assert not Path("shop.db").exists()
