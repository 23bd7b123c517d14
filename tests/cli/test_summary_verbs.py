"""explain, lattice and audit: what they print, what they write, how they fail. All over one shop in SQLite."""

import json
import os
import sqlite3
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from viewkeeper import Warehouse
from viewkeeper.cli.main import main, viewkeeper

SHOP = """
CREATE TABLE stores (storeID INTEGER PRIMARY KEY, city TEXT, region TEXT);
CREATE TABLE items (itemID INTEGER PRIMARY KEY, name TEXT, category TEXT);
CREATE TABLE pos (id INTEGER PRIMARY KEY, storeID INTEGER, itemID INTEGER, date DATE, qty INTEGER);
INSERT INTO stores VALUES (1, 'Bern', 'West'), (2, 'Basel', 'West'), (3, 'Chur', 'East');
INSERT INTO items VALUES (1, 'pen', 'office'), (2, 'ink', 'office'), (3, 'tea', 'food');
INSERT INTO pos VALUES (1, 1, 1, '2024-01-01', 3), (2, 1, 2, '2024-01-02', 1), (3, 2, 3, '2024-01-01', 7),
    (4, 3, 3, '2024-02-01', NULL), (5, 9, 1, '2024-02-01', 2);
"""
STORES = "retail.pos pos, retail.stores stores WHERE pos.storeID = stores.storeID"
VIEWS = {
    "sid_sales": "SELECT storeID, itemID, date, COUNT(*) AS n, SUM(qty) AS q FROM retail.pos "
    "GROUP BY storeID, itemID, date",
    "scd_sales": f"SELECT city, date, COUNT(*) AS n, SUM(qty) AS q FROM {STORES} GROUP BY city, date",
    "sic_sales": "SELECT storeID, category, COUNT(*) AS n, MIN(date) AS earliest, SUM(qty) AS q "
    "FROM retail.pos pos, retail.items items WHERE pos.itemID = items.itemID GROUP BY storeID, category",
    "sr_sales": f"SELECT region, COUNT(*) AS n, SUM(qty) AS q FROM {STORES} GROUP BY region",
    "joined": f"SELECT id, city FROM {STORES}",
    "calendar": "SELECT date, qty, COUNT(*) AS n FROM retail.pos GROUP BY ROLLUP (date, qty)",
    "later": "SELECT qty, COUNT(*) AS n FROM retail.pos GROUP BY qty",
}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The retail views, a join, a family and a deferred summary; refreshed once."""
    folder = tmp_path_factory.mktemp("retail")
    shop = folder / "shop.db"
    with closing(sqlite3.connect(shop)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(SHOP)
    words = ["add-source", "retail", f"sqlite:///{shop}", "--hierarchy", "stores=storeID,city,region", "--install"]
    assert CliRunner().invoke(viewkeeper, [*words, "-w", str(folder / "lake")]).exit_code == 0
    with Warehouse.open(folder / "lake") as warehouse:
        for name, select in VIEWS.items():
            deferred = "TBLPROPERTIES ('refresh' = 'manual') " if name == "later" else ""
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} {deferred}AS {select}")
        with closing(sqlite3.connect(shop)) as connection:
            connection.executescript("INSERT INTO pos VALUES (6, 1, 1, '2023-01-01', 4)")
        warehouse.catch_up()
        warehouse.propagate("later")
    return folder / "lake"


def output(*words: object) -> str:
    done = CliRunner().invoke(viewkeeper, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


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


def section(told: str, heading: str) -> list[str]:
    """The lines under a heading, up to an empty one."""
    lines = told.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(heading))
    return [line.rstrip() for line in lines[start : [*lines, ""].index("", start)]]


# explain


def test_explain_a_summary(lake: Path) -> None:
    told = output("explain", "sic_sales", "-w", lake, "--full")
    assert told.splitlines()[:3] == [
        "sic_sales: a summary of retail.pos, retail.items",
        "method    summary-delta, strong consistency; refresh: continuous",
        "holds     4 rows at state 1 of group retail.pos summaries",
    ]
    assert section(told, "Stored") == [
        "Stored: one row for each storeID, category",
        "column        type    holds",
        "storeID       BIGINT  storeID",
        "category      STRING  category",
        "n             BIGINT  COUNT(*)",
        "earliest      DATE    MIN(date)",
        "q             BIGINT  SUM(qty)",
        "_vk_number_0  BIGINT  COUNT(qty)  hidden",
    ]
    assert section(told, "Stored for it")[2].split() == ["_vk_node_sic_sales_0", "MIN(date)", "6"]
    assert section(told, "In the lattice")[2].split() == [
        "above",
        "_vk_node_sic_sales_0",
        "with",
        "COUNT(qty),",
        "SUM(qty)",
        "chosen",
    ]
    computed = section(told, "Its summary-delta")
    assert computed[0] == "Its summary-delta is computed from _vk_node_sic_sales_0: it costs the least"
    assert computed[3].split() == ["sid_sales", "items", "1", "2"]
    assert section(told, "When a value is deleted")[1].startswith("  MIN(date): if it is deleted, the next one is")
    assert section(told, "The last refresh") == [
        "The last refresh: summary-delta of 1 row; groups: 1 updated; optimizations: insert-only"
    ]
    refreshes = section(told, "With all tables of retail.pos summaries")
    assert refreshes[1] == "  hierarchy     retail.stores: storeID → city → region"
    assert refreshes[2].startswith("  recomputed    never: the facts are not stored")
    assert refreshes[3].startswith("  learned       from 1 refresh: 1 change, propagated in ")
    assert refreshes[4].startswith("  refreshed     1 change in commit ")
    assert refreshes[4].endswith(", incremental: the core is not stored")
    for heading in ("-- Prepare", "-- Propagate", "-- ... and when the dimensions change too", "-- Refresh"):
        assert section(told, heading)
    assert "\nMERGE INTO sic_sales AS t\n" in told


def test_explain_what_is_not_relied_upon(lake: Path) -> None:
    place = section(output("explain", "sr_sales", "-w", lake, "--full"), "In the lattice")
    assert place[-1] == "above  sic_sales  ⋈ stores     not relied upon: only if every fact has its row in items"
    assert place[2].split() == ["above", "scd_sales", "with", "region", "chosen"]


def test_explain_as_json(lake: Path) -> None:
    told = json.loads(output("explain", "sic_sales", "-w", lake, "--json"))
    assert (told["view"], told["kind"], told["created"], told["group"]) == (
        "sic_sales",
        "summary",
        True,
        "retail.pos summaries",
    )
    (table,) = told["tables"]
    assert table.keys() >= {
        "columns",
        "parents",
        "children",
        "served_by",
        "choices",
        "statements",
        "last",
        "recomputed",
    }
    assert table["statements"].keys() == {"prepared", "summary_delta", "with_changed_dimensions", "refresh"}
    assert table["choices"] == [
        {"above": "_vk_node_sic_sales_0", "joins": [], "expected_rows": 1.0, "cost": 1.6, "chosen": True},
        {"above": "sid_sales", "joins": ["items"], "expected_rows": 1.0, "cost": 2.0, "chosen": False},
    ]
    assert told["lattice"]["last_refresh"]["figures"]["changes"] == 1


def test_explain_a_deferred_summary(lake: Path) -> None:
    told = output("explain", "later", "-w", lake, "--full")
    assert "refresh: manual" in told
    refreshes = section(told, "With all tables")
    assert "  waiting       0 changes, and 1 row of summary-deltas" in refreshes
    assert any(line.startswith("  propagated    1 change in commit ") for line in refreshes)
    assert not any(line.startswith("  refreshed") for line in refreshes)


def test_explain_a_family(lake: Path) -> None:
    told = output("explain", "calendar", "-w", lake)
    assert told.startswith("calendar: a family of summaries of retail.pos\n")
    rows = [line.split() for line in section(told, "table")]
    assert [row[0] for row in rows] == ["table", "calendar_date_qty", "calendar_date", "calendar_total"]
    assert "viewkeeper explain calendar_date_qty says more of that table" in told
    assert "MERGE" not in told


def test_explain_a_join(lake: Path) -> None:
    told = output("explain", "joined", "-w", lake, "--full")
    assert told.splitlines()[:2] == [
        "joined: a join of retail.pos, retail.stores",
        "method    batched-sweep, complete consistency; refresh: continuous",
    ]
    rows = section(told, "How each change is joined")
    assert rows[2].split() == ["retail.pos", "retail.stores", "pos.storeID", "=", "stores.storeID", "retail"]
    assert rows[3].split()[:2] == ["retail.stores", "retail.pos"]


def test_explain_what_is_not_there_yet(lake: Path) -> None:
    before = sorted(os.listdir(lake / "_viewkeeper" / "commits"))
    definition = "CREATE MATERIALIZED VIEW x AS SELECT storeID, AVG(qty) AS mean FROM retail.pos GROUP BY storeID"
    told = output("explain", definition, "-w", lake, "--full")
    assert told.startswith("x: a summary of retail.pos; not created yet\n")
    assert "group     retail.pos summaries" in told
    assert section(told, "Computed when it is read")[2].startswith("mean    CAST(`_vk_sum_")
    assert sorted(os.listdir(lake / "_viewkeeper" / "commits")) == before
    family = (
        "CREATE MATERIALIZED VIEW f AS SELECT storeID, qty, COUNT(*) AS n FROM retail.pos GROUP BY CUBE (storeID, qty)"
    )
    assert "says more" not in output("explain", family, "-w", lake)


def test_explain_a_query(lake: Path) -> None:
    query = "SELECT storeID, SUM(qty) AS q FROM retail.pos GROUP BY storeID"
    told = output("explain", query, "-w", lake)
    assert told.startswith("answered from sid_sales, at commit ")
    assert section(told, "By storeID")[2].split()[0] == "sid_sales"
    assert "\nFROM sid_sales AS p" in told.replace("  ", "")
    assert json.loads(output("explain", query, "-w", lake, "--json"))["parts"][0]["table"] == "sid_sales"
    assert output("explain", "SELECT n FROM sid_sales", "-w", lake).startswith("answered from sid_sales, at commit ")


# lattice


def test_lattice(lake: Path) -> None:
    told = output("lattice", "--view", "sr_sales", "-w", lake).splitlines()
    assert told[0] == "retail.pos summaries"
    assert told[1] == "changes of retail.pos  last: 1"
    names = [line.lstrip("│├└─ ").split("  ")[0] for line in told[2:]]
    assert {*VIEWS} - {"joined", "calendar", "later"} <= set(names)
    assert "_vk_node_sic_sales_0" in names
    everything = output("lattice", "-w", lake)
    assert "\n\nretail.pos summaries manual\n" in everything
    assert "joined" not in everything


def test_lattice_as_json(lake: Path) -> None:
    one, other = json.loads(output("lattice", "-w", lake, "--json"))["lattices"]
    assert (one["name"], other["name"]) == ("retail.pos summaries", "retail.pos summaries manual")
    nodes = {node["name"]: node for node in one["nodes"]}
    assert nodes["scd_sales"]["group_by"] == ["city", "date"]
    assert nodes["_vk_node_sic_sales_0"]["hidden"]
    assert nodes["sid_sales"]["last"]["inserted"] == 1
    assert {"above": "scd_sales", "below": "sr_sales", "joins": [], "with_attributes": ["region"], "chosen": True,
            "relies_on": [], "promised": []} in one["edges"]  # fmt: skip
    assert other["last_propagation"]["figures"]["changes"] == 1


def test_lattice_as_a_drawing(lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "retail.svg"
    assert output("lattice", "--view", "sid_sales", "--svg", file, "-w", lake) == f"drawn: {file}\n"
    root = ET.fromstring(file.read_text(encoding="utf-8"))
    assert root.tag == f"{SVG}svg"
    drawn = {element.get("data-node"): element.get("class") for element in root.iter() if "data-node" in element.attrib}
    assert drawn.keys() >= {"changes", "sid_sales", "scd_sales", "sic_sales", "sr_sales", "_vk_node_sic_sales_0"}
    assert [name for name, kind in drawn.items() if kind == "node hidden"] == ["_vk_node_sic_sales_0"]
    edges = {(e.get("data-above"), e.get("data-below")): e.get("class") for e in root.iter(f"{SVG}g")}
    assert edges["scd_sales", "sr_sales"] == "edge chosen"
    assert edges["sic_sales", "sr_sales"] == "edge doubtful"
    joins = {(e.get("data-above"), e.get("data-below")): e.text for e in root.iter(f"{SVG}text")}
    assert joins["sid_sales", "scd_sales"] == "⋈ stores"
    told = json.loads(output("lattice", "--view", "sid_sales", "--svg", file, "-w", lake, "--json"))
    assert len(told["lattices"]) == 1


def test_without_summaries(tmp_path: Path, fails: Fails) -> None:
    with Warehouse.open(tmp_path / "lake"):
        pass
    assert output("lattice", "-w", tmp_path / "lake") == "there are no summaries\n"
    assert json.loads(output("lattice", "-w", tmp_path / "lake", "--json")) == {"lattices": []}
    said = fails("lattice", "--svg", tmp_path / "x.svg", "-w", tmp_path / "lake")
    assert "there are no summaries to draw" in said
    assert not (tmp_path / "x.svg").exists()


# Bad input


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["explain", "sic_sale"], ["no view 'sic_sale'", "it has: calendar, calendar_date, "]),
        (["explain", "CREATE MATERIALIZED VIEW sid_sales AS SELECT id FROM retail.pos"], ["already", "another name"]),
        (["explain", "CREATE MATERIALIZED VIEW x AS SELECT id FROM retail.poz"], ["poz"]),
        (["explain", "SELECT MAX(cost) AS c FROM retail.nothing"], ["nothing"]),
        (["explain"], ["Missing argument 'VIEW'"]),
        (["lattice", "--view", "sic_sale"], ["no view 'sic_sale'"]),
        (["lattice", "--view", "joined"], ["joined is not a summary", "viewkeeper explain joined"]),
        (["lattice", "--svg", "x.svg"], ["there are 2 lattices", "--view one of: sid_sales, later"]),
        (["lattice", "--svg", "."], ["it is a folder", "name a file"]),
        (["lattice", "--svg", "no/such/x.svg"], ["no/such/x.svg", "there is no folder"]),
        (["lattice", "-w", "nowhere"], ["nowhere is not a warehouse"]),
    ],
)
def test_bad_input_is_explained(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Fails, words: list[str], says: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIEWKEEPER_WAREHOUSE", str(lake))
    said = fails(*words)
    assert [text for text in says if text not in said] == []
    assert os.listdir() == []


def test_a_drawing_that_cannot_be_written_leaves_what_was_there(lake: Path, tmp_path: Path, fails: Fails) -> None:
    file = tmp_path / "kept.svg"
    file.write_text("mine")
    assert "sic_sale" in fails("lattice", "--view", "sic_sale", "--svg", file, "-w", lake)
    assert file.read_text() == "mine"


@pytest.mark.parametrize("words", ["explain sic_sales", "lattice"])
@pytest.mark.processes
def test_spark_is_not_imported_for(words: str, lake: Path) -> None:
    code = "import sys\nfrom viewkeeper.cli.main import main\ntry:\n    main()\nfinally:\n"
    code += "    print(sorted({'pyspark', 'py4j', 'pandas'} & sys.modules.keys()), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code, *words.split(), "-w", str(lake)], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")


# audit


def test_an_audit_of_everything_reads_the_sources_of_a_lattice_once(lake: Path) -> None:
    done = CliRunner().invoke(viewkeeper, ["audit", "--all", "-w", str(lake)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    steps = [line for line in done.stderr.splitlines() if line.startswith("auditing")]
    calendar = ["calendar_date", "calendar_date_qty", "calendar_total"]
    lattice = [*calendar, "scd_sales", "sic_sales", "sid_sales", "sr_sales"]
    assert sorted(steps) == [f"auditing {', '.join(lattice)} ...", "auditing joined ..."]
    *right, waits, way_out, all_right = done.stdout.splitlines()
    assert {line.split(",")[0] for line in right} == {f"{name}: right" for name in ("joined", *lattice)}
    assert waits == "later: not audited, changes wait for its refresh"
    assert way_out.strip() == "first: viewkeeper refresh later"
    assert all_right == "8 views, all right"


def test_a_family_is_reloaded_as_one(lake: Path) -> None:
    told = output("reload", "calendar", "-w", lake).splitlines()
    assert [line.split(":")[0] for line in told] == [
        "reloaded calendar_date",
        "reloaded calendar_date_qty",
        "reloaded calendar_total",
    ]
