"""Explanations of views, and lattices to look at: over a shop in SQLite, read beside its writer, without Spark."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from viewkeeper import Warehouse
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.errors import DefinitionError, UnknownName, UnknownView
from viewkeeper.explaining.summary_explanation import Explanation, Table
from viewkeeper.lake.log.source_files import SourceFiles
from viewkeeper.maintenance.explained_query import QueryExplanation

TABLES = """
CREATE TABLE stores (storeID INTEGER PRIMARY KEY, city TEXT, region TEXT);
CREATE TABLE items (itemID INTEGER PRIMARY KEY, name TEXT, category TEXT, cost DECIMAL(10, 2));
CREATE TABLE pos (id INTEGER PRIMARY KEY, storeID INTEGER, itemID INTEGER, date DATE, qty INTEGER, weight DOUBLE);
INSERT INTO stores VALUES (1, 'Bern', 'West'), (2, 'Basel', 'West'), (3, 'Chur', 'East');
INSERT INTO items VALUES (1, 'pen', 'office', 1.5), (2, 'ink', 'office', 2.5), (3, 'tea', 'food', 0.5);
INSERT INTO pos VALUES (1, 1, 1, '2024-01-01', 3, 0.5), (2, 1, 2, '2024-01-02', 1, 0.5), (3, 2, 3, '2024-01-01', 7, 2),
    (4, 3, 3, '2024-02-01', NULL, NULL), (5, 9, 1, '2024-02-01', 2, 1);
"""
STORES = "retail.pos pos JOIN retail.stores stores ON pos.storeID = stores.storeID"
ITEMS = "retail.pos pos JOIN retail.items items ON pos.itemID = items.itemID"
FIGURE_1 = {
    "sid_sales": "SELECT storeID, itemID, date, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity "
    "FROM retail.pos GROUP BY storeID, itemID, date",
    "scd_sales": f"SELECT city, date, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity FROM {STORES} "
    "GROUP BY city, date",
    "sic_sales": "SELECT storeID, category, COUNT(*) AS TotalCount, MIN(date) AS EarliestSale, "
    f"SUM(qty) AS TotalQuantity FROM {ITEMS} GROUP BY storeID, category",
    "sr_sales": f"SELECT region, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity FROM {STORES} GROUP BY region",
}
HIDDEN = "_vk_node_sic_sales_0"


def create(wh: Warehouse, name: str, select: str, **properties: str) -> None:
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    told = f"TBLPROPERTIES ({listed}) " if listed else ""
    wh.create_view(f"CREATE MATERIALIZED VIEW {name} {told}AS {select}")


def write(shop: Path, script: str) -> None:
    with closing(sqlite3.connect(shop)) as connection:
        connection.executescript(f"BEGIN; {script}; COMMIT;")


@pytest.fixture(scope="module")
def retail(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a shop, and the four views of figure 1 over it; nobody writes to it: make a copy."""
    folder = tmp_path_factory.mktemp("retail")
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(TABLES)
    with Warehouse.open(folder / "lake") as wh:
        add_source(wh, folder)
        for name, select in FIGURE_1.items():
            create(wh, name, select)
        write(folder / "shop.db", "INSERT INTO pos VALUES (6, 1, 1, '2024-03-01', 4, 1), (7, 1, 1, '2024-03-01', 4, 1)")
        wh.catch_up()
    return folder


def add_source(wh: Warehouse, folder: Path) -> None:
    wh.add_source(
        "retail",
        f"sqlite:///{folder}/shop.db",
        install=True,
        hierarchies={"stores": ["storeID", "city", "region"]},
    )


def no_spark() -> Any:
    raise AssertionError("Spark was started")


def reading(folder: Path) -> Warehouse:
    return Warehouse.open(folder / "lake", no_spark, read_only=True)


@pytest.fixture
def wh(retail: Path) -> Iterator[Warehouse]:
    """The warehouse of figure 1, opened to look at it."""
    with reading(retail) as warehouse:
        yield warehouse


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Warehouse]:
    """A warehouse of one's own over a shop, without views."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(TABLES)
    with Warehouse.open(tmp_path / "lake", no_spark) as warehouse:
        add_source(warehouse, tmp_path)
        yield warehouse


def explained(warehouse: Warehouse, view: str) -> Explanation:
    found = warehouse.explain(view)
    assert isinstance(found, Explanation)
    return found


def only(found: Explanation) -> Table:
    (table,) = found.tables
    return table


def tables_in(sql: str) -> set[str]:
    """The tables that a statement reads."""
    tree = sqlglot.parse_one(sql, dialect="spark")
    return {".".join(part.name for part in table.parts) for table in tree.find_all(exp.Table)}


# The lattice


def test_the_lattice_of_figure_1(wh: Warehouse) -> None:
    """Figure 9, with the node behind MIN(date), which joins items for both. The edge from SiC_sales loses sales of
    unknown items."""
    (drawn,) = wh.lattice()
    assert [(way.above, way.below, way.label, way.chosen, way.relies_on) for way in drawn.edges] == [
        ("changes", "sid_sales", "", True, ()),
        ("sid_sales", "scd_sales", "⋈ stores", True, ()),
        ("sid_sales", HIDDEN, "⋈ items", True, ()),
        ("scd_sales", "sr_sales", "with region", True, ()),
        (HIDDEN, "sic_sales", "with COUNT(qty), SUM(qty)", True, ()),
        ("sic_sales", "sr_sales", "⋈ stores", False, ("items",)),
    ]
    assert (drawn.name, drawn.fact) == ("retail.pos summaries", "retail.pos")
    nodes = {node.name: node for node in drawn.nodes}
    assert nodes["sic_sales"].group_by == ("storeID", "category")
    assert [node.name for node in drawn.nodes if node.hidden] == [HIDDEN]
    assert nodes[HIDDEN].kept_for == "MIN(date) of sic_sales"
    assert (nodes["sid_sales"].rows, nodes["sr_sales"].rows) == (6, 2)
    assert nodes["scd_sales"].last is not None
    assert nodes["scd_sales"].last["inserted"] == 1


def test_the_lattice_as_text(wh: Warehouse) -> None:
    (drawn,) = wh.lattice("sr_sales")
    assert drawn.text.splitlines() == [
        "changes of retail.pos  last: 2",
        "└─ sid_sales  storeID, itemID, date · 6 rows · last: +1",
        "   ├─ scd_sales  city, date · 5 rows · last: +1  ⋈ stores",
        "   │  └─ sr_sales  region · 2 rows · last: ~1  with region  "
        "(if every foreign key held, from sic_sales ⋈ stores)",
        f"   └─ {HIDDEN}  storeID, category, date · MIN(date) of sic_sales · 6 rows · last: +1  [hidden]  ⋈ items",
        "      └─ sic_sales  storeID, category · 4 rows · last: ~1  with COUNT(qty), SUM(qty)",
    ]


def test_tables_that_derive_from_each_other_are_one_above_the_other(own: Warehouse) -> None:
    create(own, "a", FIGURE_1["sid_sales"])
    create(own, "b", FIGURE_1["sid_sales"])
    create(own, "c", f"SELECT pos.storeID AS s, itemID, date, SUM(qty) AS q FROM {STORES} GROUP BY s, itemID, date")
    (drawn,) = own.lattice()
    # From c, which has lost the sales of unknown stores, a could be computed if there were none: but c is below it.
    assert {way.ends: way.chosen for way in drawn.edges} == {
        ("changes", "a"): True,
        ("a", "b"): True,
        ("a", "c"): True,
        ("b", "c"): False,
    }
    assert drawn.svg.count("data-node=") == 4


def test_no_lattice(own: Warehouse) -> None:
    assert own.lattice() == []
    create(own, "sales", "SELECT id, qty FROM retail.pos")
    assert own.lattice("sales") == []
    with pytest.raises(UnknownView, match="no view 'nothing'"):
        own.lattice("nothing")


# Summaries


def test_a_summary(wh: Warehouse) -> None:
    found = explained(wh, "sic_sales")
    assert (found.kind, found.created, found.algorithm, found.level, found.refresh) == (
        "summary",
        True,
        "summary-delta",
        "strong",
        "continuous",
    )
    assert (found.sources, found.relations) == (("retail",), ("retail.pos", "retail.items"))
    assert (found.rows, found.state, found.halted) == (4, 1, None)
    table = only(found)
    assert [(one.name, one.type, one.holds, one.hidden) for one in table.columns] == [
        ("storeID", "BIGINT", "storeID", False),
        ("category", "STRING", "category", False),
        ("TotalCount", "BIGINT", "COUNT(*)", False),
        ("EarliestSale", "DATE", "MIN(date)", False),
        ("TotalQuantity", "BIGINT", "SUM(qty)", False),
        ("_vk_number_0", "BIGINT", "COUNT(qty)", True),
    ]
    assert [(one.table, one.why, one.hidden, one.rows) for one in table.served_by] == [(HIDDEN, "MIN(date)", True, 6)]
    assert table.recomputed == (f"MIN(date): if it is deleted, the next one is looked up in {HIDDEN}; no fact is read",)
    assert [(way.above, way.joins, way.with_attributes) for way in table.parents] == [
        (HIDDEN, (), ("COUNT(qty)", "SUM(qty)"))
    ]
    assert table.children == ()


def test_from_what_and_why(wh: Warehouse) -> None:
    region = only(explained(wh, "sr_sales"))
    assert [(one.above, one.joins, one.expected_rows, one.cost, one.chosen) for one in region.choices] == [
        ("scd_sales", (), 1, 1, True),
        ("sid_sales", ("stores",), 1, 2, False),
    ]
    assert region.why == "it costs the least"
    assert [(way.above, way.joins, way.relies_on) for way in region.not_relied_upon] == [
        ("sic_sales", ("stores",), ("items",))
    ]
    assert only(explained(wh, "scd_sales")).why == "nothing else serves"


def test_the_statements_are_those_of_the_chosen_way(wh: Warehouse) -> None:
    statements = only(explained(wh, "scd_sales")).statements
    assert tables_in(statements.summary_delta) == {"sd_sid_sales", "retail.stores"}
    assert statements.with_changed_dimensions is not None
    assert tables_in(statements.with_changed_dimensions) == {
        "sd_sid_sales",
        "sid_sales_after",
        "stores_before",
        "stores_changes",
    }
    assert list(statements.prepared) == ["pi_scd_sales", "pd_scd_sales", "pc_scd_sales"]
    assert tables_in(statements.prepared["pi_scd_sales"]) == {"changes", "retail.stores"}
    # It carries the region for sr_sales, so a city may have two rows in it.
    assert "_vk_also_0" in statements.summary_delta
    assert tables_in(statements.refresh) == {"scd_sales", "sd_scd_sales"}
    assert "GROUP BY" in statements.refresh
    region = only(explained(wh, "sr_sales")).statements
    assert (tables_in(region.summary_delta), region.with_changed_dimensions) == ({"sd_scd_sales"}, None)
    assert "GROUP BY" not in region.refresh
    minimum = only(explained(wh, "sic_sales")).statements
    assert tables_in(minimum.refresh) == {"sic_sales", "sd_sic_sales", HIDDEN}


def test_the_last_refresh(wh: Warehouse) -> None:
    found = explained(wh, "sid_sales")
    assert found.lattice is not None
    assert found.lattice.last_refresh is not None
    assert found.lattice.last_refresh.figures["changes"] == 2
    assert (found.lattice.refreshes, found.lattice.usual_changes) == (1, 2)
    assert found.lattice.recomputed.startswith("never: the facts are not stored")
    table = only(found)
    assert table.expected_rows == 1
    assert table.last is not None
    assert table.last["inserted"] == 1
    assert table.last["optimizations"] == ["insert-only", "new groups only"]


def test_figures_before_the_first_refresh_and_behind_a_new_table(own: Warehouse) -> None:
    create(own, "sid_sales", FIGURE_1["sid_sales"])
    found = explained(own, "sid_sales")
    assert found.lattice is not None
    assert (found.lattice.last_refresh, found.lattice.refreshes, found.lattice.usual_changes) == (None, 0, None)
    assert only(found).last is None
    write(own.path.parent / "shop.db", "DELETE FROM pos WHERE id = 1")
    own.catch_up()
    write(own.path.parent / "shop.db", "INSERT INTO items VALUES (9, 'ham', 'food', 3)")
    create(own, "sr_sales", FIGURE_1["sr_sales"])
    last = explained(own, "sid_sales").lattice
    assert last is not None
    assert last.last_refresh is not None
    assert last.last_refresh.figures["changes"] == 1


def test_what_readers_see_is_computed_from_what_is_stored(own: Warehouse) -> None:
    definition = "CREATE MATERIALIZED VIEW means AS SELECT storeID, AVG(qty) AS mean, VAR_POP(weight) AS spread "
    table = only(explained(own, f"{definition} FROM retail.pos GROUP BY storeID HAVING COUNT(*) > 1"))
    assert [one.name for one in table.computed] == ["mean", "spread"]
    assert table.having == "`_vk_count` > 1"
    holds = {one.holds for one in table.columns}
    assert {"COUNT(*)", "SUM(qty)", "COUNT(weight)"} <= holds


def test_a_hidden_root(own: Warehouse) -> None:
    create(own, "sr_sales", FIGURE_1["sr_sales"])
    table = only(explained(own, "sr_sales"))
    root = "_vk_node_sr_sales_root"
    assert [(one.table, one.why) for one in table.served_by] == [
        (root, "root: with it, changes of stores need no facts")
    ]
    found = explained(own, root)
    assert (found.kind, only(found).hidden) == ("hidden", True)
    (drawn,) = own.lattice(root)
    assert [node.kept_for for node in drawn.nodes if node.hidden] == ["root of sr_sales"]


def test_extremes_that_are_recomputed(own: Warehouse) -> None:
    create(own, "sic_sales", FIGURE_1["sic_sales"], minmax="recompute", core="stored")
    found = explained(own, "sic_sales")
    table = only(found)
    (recomputed,) = table.recomputed
    assert "recomputed from the stored facts, for all such groups in one job" in recomputed
    assert [(one.table, one.stored, one.rows) for one in table.served_by] == [(HIDDEN, False, None)]
    assert tables_in(table.statements.refresh) == {
        "sic_sales",
        "sd_sic_sales",
        f"sd_{HIDDEN}",
        "pos_after",
        "items_after",
    }
    assert found.lattice is not None
    assert found.lattice.recomputed == "when more than 1,000 rows change at once: there are 5 facts"
    (drawn,) = own.lattice()
    assert {node.name: node.rows for node in drawn.nodes} == {HIDDEN: None, "sic_sales": 4}
    assert "not stored" in drawn.text


def test_deferred_summaries_tell_what_waits(own: Warehouse) -> None:
    create(own, "sid_sales", FIGURE_1["sid_sales"], refresh="every 120 seconds")
    shop = own.path.parent / "shop.db"
    write(shop, "DELETE FROM pos WHERE id < 3")
    own.catch_up()
    found = explained(own, "sid_sales")
    assert found.refresh == "every 2 minutes"
    assert found.lattice is not None
    assert (found.lattice.waiting_changes, found.lattice.waiting_rows) == (2, 0)
    own.propagate("sid_sales")
    write(shop, "DELETE FROM pos WHERE id = 3")
    own.catch_up()
    found = explained(own, "sid_sales")
    assert found.lattice is not None
    assert (found.lattice.waiting_changes, found.lattice.waiting_rows) == (1, 2)
    assert found.lattice.last_refresh is None
    assert found.lattice.last_propagation is not None
    assert found.lattice.last_propagation.figures["changes"] == 2
    # Several summary-deltas may wait for one group.
    assert "GROUP BY" in only(found).statements.refresh


def test_a_family(own: Warehouse) -> None:
    create(own, "cube", "SELECT storeID, date, COUNT(*) AS n FROM retail.pos GROUP BY CUBE (storeID, date)")
    found = explained(own, "cube")
    assert (found.kind, found.rows) == ("family", 13)
    assert [(table.table, table.group_by) for table in found.tables] == [
        ("cube_storeid_date", ("storeID", "date")),
        ("cube_storeid", ("storeID",)),
        ("cube_date", ("date",)),
        ("cube_total", ()),
    ]
    assert explained(own, "cube_date").kind == "summary"
    (drawn,) = own.lattice("cube")
    assert len(drawn.nodes) == 4


# What is not there yet


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE MATERIALIZED VIEW x AS SELECT region, category, SUM(qty) AS q, MAX(cost) AS most, AVG(qty) AS mean "
        f"FROM {STORES} JOIN retail.items items ON pos.itemID = items.itemID GROUP BY region, category",
        "CREATE MATERIALIZED VIEW x TBLPROPERTIES ('refresh' = 'manual') AS "
        f"SELECT city, COUNT(DISTINCT date) AS days FROM {STORES} GROUP BY city",
        "CREATE MATERIALIZED VIEW x TBLPROPERTIES ('minmax' = 'recompute', 'core' = 'stored', 'group' = 'g') AS "
        "SELECT storeID, MIN(date) AS first FROM retail.pos GROUP BY storeID",
        f"CREATE MATERIALIZED VIEW x AS SELECT region, city, COUNT(*) AS n FROM {STORES} GROUP BY CUBE (region, city)",
    ],
)
def test_a_summary_is_explained_before_it_is_created(retail: Path, tmp_path: Path, definition: str) -> None:
    folder = Path(shutil.copytree(retail, tmp_path / "copy"))
    before = {path.name for path in folder.rglob("*") if path.is_file()}
    with reading(folder) as warehouse:
        supposed = explained(warehouse, definition)
    assert {path.name for path in folder.rglob("*") if path.is_file()} == before
    assert not supposed.created
    with Warehouse.open(folder / "lake", no_spark) as warehouse:
        warehouse.create_view(definition)
        made = explained(warehouse, "x")
    assert (supposed.group, supposed.level, supposed.refresh) == (made.group, made.level, made.refresh)
    assert len(supposed.tables) == len(made.tables)
    for one, other in zip(supposed.tables, made.tables, strict=True):
        assert one.rows is None
        assert set(one.columns) == set(other.columns)
        for what in ("table", "group_by", "computed", "having", "recomputed", "not_relied_upon"):
            assert getattr(one, what) == getattr(other, what), what
        assert {(served.table, served.why) for served in one.served_by} == {
            (served.table, served.why) for served in other.served_by
        }
        assert one.statements.prepared == other.statements.prepared
        assert one.statements.refresh == other.statements.refresh


def test_a_name_that_is_taken(wh: Warehouse) -> None:
    with pytest.raises(DefinitionError, match="there is a view 'sid_sales' already"):
        wh.explain(f"CREATE MATERIALIZED VIEW SID_sales AS {FIGURE_1['sid_sales']}")


# Joins, and what else there is


def test_a_join(own: Warehouse, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "crm.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
    own.add_source("crm", f"sqlite:///{tmp_path}/crm.db", install=True)
    definition = (
        "CREATE MATERIALIZED VIEW named AS SELECT pos.id, name FROM "
        f"{STORES} JOIN crm.people ON people.id = stores.storeID AND people.id > 3"
    )
    supposed = explained(own, definition)
    own.create_view(definition)
    found = explained(own, "named")
    assert (found.kind, found.algorithm, found.level) == ("join", "batched-sweep", "complete")
    assert found.sources == ("retail", "crm")
    assert found.relations == ("retail.pos", "retail.stores", "crm.people")
    assert supposed.sweeps == found.sweeps
    assert not supposed.created
    # What is at one source is joined there first.
    assert [(sweep.start, [(step.relation, step.source) for step in sweep.steps]) for sweep in found.sweeps] == [
        ("retail.pos", [("retail.stores", "retail"), ("crm.people", "crm")]),
        ("retail.stores", [("retail.pos", "retail"), ("crm.people", "crm")]),
        ("crm.people", [("retail.pos ⋈ retail.stores", "retail")]),
    ]
    assert found.sweeps[0].steps[0].conditions == ("pos.storeID = stores.storeID",)


def test_a_view_over_views_and_a_self_join(own: Warehouse) -> None:
    create(own, "sales", "SELECT id, storeID, qty FROM retail.pos")
    create(own, "pairs", "SELECT a.id, b.id AS other FROM sales a JOIN sales b ON a.storeID = b.storeID")
    found = explained(own, "pairs")
    assert (found.sources, found.relations) == ((), ("sales",))
    assert [(sweep.start, [step.relation for step in sweep.steps]) for sweep in found.sweeps] == [
        ("sales a", ["sales b"]),
        ("sales b", ["sales a"]),
    ]
    create(own, "of_view", "SELECT storeID, SUM(qty) AS q FROM sales GROUP BY storeID")
    summary = explained(own, "of_view")
    assert (summary.relations, summary.sources) == (("sales",), ())
    assert summary.lattice is not None
    assert summary.lattice.core_stored


def test_a_view_that_is_loaded_by_commits(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path, no_spark) as wh:
        with wh.commit() as commit:
            commit.create("numbers", {"n": "BIGINT"}, rows=MemoryZSet.of(("n",), (1,), (2,)))
        found = explained(wh, "numbers")
    assert (found.kind, found.algorithm, found.sql, found.rows) == ("loaded", None, None, 2)


def test_a_query(wh: Warehouse) -> None:
    found = wh.explain("SELECT storeID, SUM(qty) AS q FROM retail.pos GROUP BY storeID")
    assert isinstance(found, QueryExplanation)
    assert [part.table for part in found.parts] == ["sid_sales"]


def test_an_unknown_name(wh: Warehouse) -> None:
    with pytest.raises(UnknownView) as caught:
        wh.explain("sic_sale")
    assert caught.value.hint == "did you mean sic_sales? it has: scd_sales, sic_sales, sid_sales, sr_sales"


def test_a_lattice_that_its_source_does_not_allow_any_more(retail: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(retail, tmp_path / "copy"))
    with Warehouse.open(folder / "lake", no_spark) as warehouse:
        create(warehouse, "sales", "SELECT id, storeID FROM retail.pos")
        files = SourceFiles(warehouse._files.store)
    (source,) = files.all().values()
    pos = source.relations["retail.pos"]
    lost = replace(pos, columns=("id", "storeID"), types=("BIGINT", "BIGINT"))
    files.write(replace(source, relations={**source.relations, "retail.pos": lost}))
    with reading(folder) as warehouse:
        assert warehouse.lattice() == []
        assert explained(warehouse, "sales").kind == "join"
        with pytest.raises(UnknownName, match="itemid"):
            warehouse.explain("sid_sales")


@pytest.mark.processes
def test_looking_needs_no_spark() -> None:
    """Other tests of the same run import it, so this asks a process of its own."""
    code = "import viewkeeper.explaining.explaining, viewkeeper.explaining.drawn, sys; "
    code += "sys.exit(sorted({'pyspark', 'py4j', 'pandas'} & sys.modules.keys()) or 0)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
