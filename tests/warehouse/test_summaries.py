"""Summary tables in a warehouse: created, followed, deferred, dropped, halted. All on the driver, without Spark."""

import sqlite3
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from viewkeeper import Warehouse
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.errors import CorruptChange, DefinitionError, UnsupportedClause, UsageError
from viewkeeper.explaining.summary_explanation import Explanation
from viewkeeper.maintenance.summaries.schedule import Schedule
from viewkeeper.summary.cube import Cube, read_cube
from viewkeeper.summary.cube_lattice import LatticeNode
from viewkeeper.summary.star_tables import star_tables

TABLES = """
CREATE TABLE stores (storeID INTEGER PRIMARY KEY, city TEXT, region TEXT);
CREATE TABLE items (itemID INTEGER PRIMARY KEY, category TEXT, cost DECIMAL(10, 2));
CREATE TABLE pos (id INTEGER PRIMARY KEY, storeID INTEGER, itemID INTEGER, day DATE, qty INTEGER);
INSERT INTO stores VALUES (1, 'Bern', 'West'), (2, 'Basel', 'West'), (3, 'Chur', 'East');
INSERT INTO items VALUES (1, 'office', 1.50), (2, 'office', 2.50), (3, 'food', 0.50);
INSERT INTO pos VALUES (1, 1, 1, '2024-01-01', 3), (2, 1, 2, '2024-01-02', 1), (3, 2, 3, '2024-01-01', 7),
    (4, 3, 3, '2024-02-01', NULL), (5, 9, 1, '2024-02-01', 2);
"""
JOINED = "FROM shop.pos p JOIN shop.stores s ON p.storeID = s.storeID"
BY_CITY = f"SELECT city, COUNT(*) AS n, SUM(qty) AS q, MIN(day) AS first {JOINED} GROUP BY city"
BY_REGION = f"SELECT region, COUNT(*) AS n, SUM(qty) AS q {JOINED} GROUP BY region"
BY_STORE = "SELECT storeID, day, COUNT(*) AS n, SUM(qty) AS q FROM shop.pos GROUP BY storeID, day"


class Shop:
    """A database of sales, and a warehouse over it."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.database = sqlite3.connect(folder / "shop.db", isolation_level=None)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.executescript(TABLES)
        self.folder = folder
        self.wh = Warehouse.open(folder / "lake")
        self.wh.add_source("shop", f"sqlite:///{folder}/shop.db", install=True, **options)

    def create(self, name: str, select: str, **properties: str) -> None:
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        told = f"TBLPROPERTIES ({listed}) " if listed else ""
        self.wh.create_view(f"CREATE MATERIALIZED VIEW {name} {told}AS {select}")

    def change(self, *statements: str) -> None:
        self.database.execute("BEGIN")
        for statement in statements:
            self.database.execute(statement)
        self.database.execute("COMMIT")
        self.wh.catch_up()

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """What is stored and seen, without a job of Spark."""
        record = self.wh._keeper.writer.last
        table = self.wh._keeper.summaries.contents.table(name, record)
        seen = [column for column in table.column_names if not column.startswith("_vk_")]
        return sorted((tuple(row.values()) for row in table.select(seen).to_pylist()), key=str)

    def hidden(self) -> set[str]:
        return {view.view for view in self.wh.status().hidden}

    def close(self) -> None:
        self.wh.close()
        self.database.close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.close()


def test_a_summary_begins_with_what_is_there_and_follows_facts_and_dimensions_at_once(shop: Shop) -> None:
    shop.create("by_city", BY_CITY)
    assert shop.rows("by_city") == [
        ("Basel", 1, 7, date(2024, 1, 1)),
        ("Bern", 2, 4, date(2024, 1, 1)),
        ("Chur", 1, None, date(2024, 2, 1)),
    ]
    shop.change(
        "DELETE FROM pos WHERE id = 1",
        "INSERT INTO stores VALUES (9, 'Genf', 'West')",
        "UPDATE stores SET city = 'Biel' WHERE storeID = 2",
    )
    assert shop.rows("by_city") == [
        ("Bern", 1, 1, date(2024, 1, 2)),
        ("Biel", 1, 7, date(2024, 1, 1)),
        ("Chur", 1, None, date(2024, 2, 1)),
        ("Genf", 1, 2, date(2024, 2, 1)),
    ]


def test_all_tables_of_a_lattice_show_one_vector_and_one_state(shop: Shop) -> None:
    shop.create("by_city", BY_CITY)
    shop.create("by_region", BY_REGION)
    shop.create("by_store", BY_STORE)
    shop.change("INSERT INTO pos VALUES (6, 1, 1, '2024-03-01', 5)")
    status = {view.view: view for view in shop.wh.status().views}
    assert {(view.group, view.state, tuple(view.vector.items())) for view in status.values()} == {
        (status["by_city"].group, status["by_city"].state, tuple(status["by_city"].vector.items()))
    }
    totals = [sum(row[-2] for row in shop.rows(name)) for name in ("by_region", "by_store")]
    assert totals == [5, 6]  # the fact without its store is in the table that does not join stores


def test_without_group_by_there_is_one_row_also_over_no_facts(shop: Shop) -> None:
    shop.create("total", "SELECT COUNT(*) AS n, SUM(qty) AS q, MAX(day) AS last FROM shop.pos")
    shop.change("DELETE FROM pos")
    assert shop.rows("total") == [(0, None, None)]
    shop.change("INSERT INTO pos VALUES (7, 1, 1, '2024-05-01', NULL)")
    assert shop.rows("total") == [(1, None, date(2024, 5, 1))]


def test_deferred_changes_wait_until_they_are_refreshed_and_survive_a_restart(shop: Shop) -> None:
    shop.create("by_city", BY_CITY, refresh="manual")
    shop.create("by_region", BY_REGION, refresh="manual")
    before = shop.rows("by_city")
    shop.change("DELETE FROM pos WHERE id = 1", "INSERT INTO stores VALUES (9, 'Genf', 'West')")
    assert shop.rows("by_city") == before
    assert {view.waiting for view in shop.wh.status().views} == {2}
    told = shop.wh.propagate()
    assert [one["changes"] for one in told.values()] == [2]
    assert shop.rows("by_city") == before
    assert {view.waiting for view in shop.wh.status().views} == {0}
    shop.wh.close()
    shop.wh = Warehouse.open(shop.folder / "lake")
    shop.change(
        "UPDATE stores SET city = 'Biel' WHERE storeID = 2", "INSERT INTO pos VALUES (8, 9, 3, '2023-01-01', 1)"
    )
    shop.wh.refresh("by_region")
    assert shop.rows("by_city") == [
        ("Bern", 1, 1, date(2024, 1, 2)),
        ("Biel", 1, 7, date(2024, 1, 1)),
        ("Chur", 1, None, date(2024, 2, 1)),
        ("Genf", 2, 3, date(2023, 1, 1)),
    ]
    assert shop.rows("by_region") == [("East", 1, None), ("West", 4, 11)]
    assert [one["reason"] for one in shop.wh.refresh().values()] == ["nothing has changed"]


def test_a_view_that_joins_a_deferred_lattice_begins_at_its_next_state(shop: Shop) -> None:
    shop.create("by_city", BY_CITY, refresh="manual")
    shop.change("DELETE FROM pos WHERE id = 3")
    shop.create("by_region", BY_REGION, refresh="manual")
    assert shop.rows("by_region") == [("East", 1, None), ("West", 2, 4)]
    assert [row[0] for row in shop.rows("by_city")] == ["Bern", "Chur"]


def test_a_clock_refreshes_what_is_due(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.create("by_city", BY_CITY, refresh="every 5 minutes")
    time = 0.0
    monkeypatch.setattr("viewkeeper.maintenance.summaries.schedule.monotonic", lambda: time)
    schedule = Schedule(shop.wh._keeper.summaries)
    schedule.look()
    shop.change("DELETE FROM pos WHERE id = 3")
    time = 299.0
    schedule.look()
    assert len(shop.rows("by_city")) == 3
    time = 300.0
    schedule.look()
    assert len(shop.rows("by_city")) == 2


def test_many_noted_changes_are_propagated_without_being_asked(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viewkeeper.maintenance.summaries.schedule.PROPAGATE_AT", 1)
    shop.create("by_city", BY_CITY, refresh="manual")
    shop.change("DELETE FROM pos WHERE id = 3")
    Schedule(shop.wh._keeper.summaries).look()
    assert {view.waiting for view in shop.wh.status().views} == {0}
    assert len(shop.rows("by_city")) == 3


def test_complete_has_a_state_for_every_transaction(shop: Shop) -> None:
    shop.create("by_city", BY_CITY, consistency="complete")
    first = shop.wh.status().views[0].state
    for number in range(3):
        shop.database.execute(f"INSERT INTO pos VALUES ({20 + number}, 1, 1, '2024-03-01', 5)")
    shop.wh.catch_up()
    (view,) = shop.wh.status().views
    assert (view.consistency, view.state - first) == ("complete", 3)


def test_hidden_tables_are_made_only_where_no_other_serves_and_go_with_the_last_that_needs_them(shop: Shop) -> None:
    shop.create("by_city", BY_CITY)
    root = "_vk_node_by_city_root"
    assert {root, "_vk_node_by_city_0"} <= shop.hidden()
    shop.create("by_region", BY_REGION)
    assert not {name for name in shop.hidden() if name.startswith("_vk_node_by_region")}
    shop.wh.drop_view("by_city")
    assert root in shop.hidden()
    assert "_vk_node_by_city_0" not in shop.hidden()
    shop.change("UPDATE stores SET region = 'North' WHERE storeID = 1")
    assert shop.rows("by_region") == [("East", 1, None), ("North", 2, 4), ("West", 1, 7)]
    shop.wh.drop_view("by_region")
    assert shop.hidden() == set()


def test_a_stored_core_needs_no_root_and_recomputes_extremes(shop: Shop) -> None:
    shop.create("by_city", BY_CITY, core="stored")
    assert not {name for name in shop.hidden() if name.endswith("_root")}
    shop.change("DELETE FROM pos WHERE id = 1", "UPDATE stores SET city = 'Bern' WHERE storeID = 3")
    assert shop.rows("by_city") == [("Basel", 1, 7, date(2024, 1, 1)), ("Bern", 2, 1, date(2024, 1, 2))]


def test_a_family_is_a_table_for_each_grouping_set(shop: Shop) -> None:
    shop.create("cube", f"SELECT region, city, COUNT(*) AS n {JOINED} GROUP BY ROLLUP (region, city)")
    shop.change("DELETE FROM pos WHERE storeID = 3")
    assert shop.rows("cube_region_city") == [("West", "Basel", 1), ("West", "Bern", 2)]
    assert shop.rows("cube_region") == [("West", 3)]
    assert shop.rows("cube_total") == [(3,)]
    with pytest.raises(UsageError, match="cube follows its facts continuously"):
        shop.wh.refresh("cube")
    shop.wh.drop_view("cube")
    assert shop.wh.views == ()


def test_a_hierarchy_that_the_rows_contradict_is_refused_and_later_halts(tmp_path: Path) -> None:
    shop = Shop(tmp_path, hierarchies={"stores": ["storeID", "city", "region"]})
    shop.create("by_city", BY_CITY)
    shop.change("UPDATE stores SET city = 'Bern' WHERE storeID = 3")
    (view,) = shop.wh.status().views
    assert view.halted is not None
    assert "city Bern has the region East and West" in view.halted.reason
    with pytest.raises(DefinitionError, match="contradicts its hierarchy"):
        shop.create("again", BY_REGION, group="another")
    shop.close()


DAYS = """
CREATE TABLE days (day TEXT PRIMARY KEY, week INTEGER, month TEXT, year INTEGER);
INSERT INTO days VALUES ('2024-01-31', 5, '2024-01', 2024), ('2024-02-01', 5, '2024-02', 2024),
    ('2024-02-05', 6, '2024-02', 2024);
CREATE TABLE sales (id INTEGER PRIMARY KEY, day TEXT, store INTEGER, qty INTEGER);
INSERT INTO sales VALUES (1, '2024-01-31', 1, 3), (2, '2024-02-01', 1, 4), (3, '2024-02-01', 2, 5);
"""
TIME = {"days": [["day", "month", "year"], ["day", "week"]]}


def test_a_hierarchy_may_be_a_partial_order(tmp_path: Path) -> None:
    """Weeks and months do not contain each other; both follow from the day (section 3.3)."""
    shop = Shop(tmp_path)
    shop.database.executescript(DAYS)
    shop.wh.add_source("shop", f"sqlite:///{tmp_path}/shop.db", install=True, hierarchies=TIME)
    joined = "FROM shop.sales f JOIN shop.days d ON f.day = d.day"
    for columns in ("month, week", "week", "month", "year"):
        name = "by_" + columns.replace(", ", "_")
        shop.create(name, f"SELECT {columns}, COUNT(*) AS n, SUM(qty) AS q {joined} GROUP BY {columns}")
    lattice = shop.wh._keeper.summaries.lattice_of("by_week")
    derived = {name: {edge.above.name for edge in lattice.lineage.ways(name)} for name in lattice.visible}
    assert {"by_month", "by_month_week"} <= derived["by_year"]
    assert "by_week" not in derived["by_year"] | derived["by_month"]
    assert "by_month" not in derived["by_week"]
    explained = shop.wh.explain("by_year")
    assert isinstance(explained, Explanation)
    assert explained.lattice is not None
    assert explained.lattice.hierarchies == ("shop.days: day → month → year", "shop.days: day → week")
    [drawn] = shop.wh.lattice("by_year")
    assert {("by_month", "by_year", ("year",))} <= {(w.above, w.below, w.with_attributes) for w in drawn.edges}
    assert "with year" in drawn.text
    cube = cube_over(shop.wh, "shop.sales", ["days.day", "days.month", "days.week", "days.year"])
    assert {point.names for point in cube.points} == {
        ("day",),
        ("month", "week"),
        ("week", "year"),
        ("month",),
        ("week",),
        ("year",),
        (),
    }
    assert {point.names for point in cube.lattice.parents(LatticeNode(("year",)))} >= {("month",), ("day",)}
    shop.change("INSERT INTO sales VALUES (4, '2024-02-05', 2, 7)", "DELETE FROM sales WHERE id = 1")
    assert shop.rows("by_week") == [(5, 2, 9), (6, 1, 7)]
    assert shop.rows("by_month") == [("2024-02", 3, 16)]
    assert shop.rows("by_year") == [(2024, 3, 16)]
    shop.change("UPDATE days SET week = 7 WHERE day = '2024-02-05'")
    assert shop.rows("by_month_week") == [("2024-02", 5, 2, 9), ("2024-02", 7, 1, 7)]
    # Both chains are checked.
    shop.change("INSERT INTO days VALUES ('2024-02-06', 7, '2024-02', 2025)")
    halted = {view.view: view.halted.reason for view in shop.wh.status().views if view.halted}
    assert halted["by_year"] == "shop.days contradicts its hierarchy: month 2024-02 has the year 2024 and 2025"
    shop.close()


def test_a_view_inherits_a_partial_order(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.database.executescript(DAYS)
    shop.wh.add_source("shop", f"sqlite:///{tmp_path}/shop.db", install=True, hierarchies=TIME)
    shop.create("calendar", "SELECT day AS d, week AS w, year AS y FROM shop.days", group="g")
    shop.create("sold", "SELECT day, qty FROM shop.sales", group="g")
    shop.create("by_w", "SELECT w, y, SUM(qty) AS q FROM sold f JOIN calendar c ON f.day = c.d GROUP BY w, y")
    summaries = shop.wh._keeper.summaries
    dimension = summaries.lattice_of("by_w").nodes["by_w"].dimensions[0]
    assert summaries.hierarchies.determined(dimension, frozenset({"d"})) == {"d", "w", "y"}
    assert summaries.hierarchies.determined(dimension, frozenset({"w"})) == {"w"}
    shop.close()


def test_hierarchies_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"
    shop = Shop(tmp_path, hierarchies={"stores": ["storeID", "city"]})
    shop.wh.add_source("shop", url, install=True, hierarchies={"stores": ["storeID", "region"]})
    assert shop.wh.sources[0].hierarchies == {"stores": (("storeID", "city"), ("storeID", "region"))}
    with pytest.raises(DefinitionError, match=r"runs in a circle: storeID → region → storeID") as refused:
        shop.wh.add_source("shop", url, install=True, hierarchies={"stores": [["region", "storeID"]]})
    assert "keep one of them" in refused.value.hint
    with pytest.raises(DefinitionError, match="mixes columns and chains"):
        shop.wh.add_source("shop", url, install=True, hierarchies={"stores": ["city", ["city", "region"]]})
    assert shop.wh.sources[0].hierarchies == {"stores": (("storeID", "city"), ("storeID", "region"))}
    shop.wh.add_source("shop", url, install=True, hierarchies={"stores": []})
    assert shop.wh.sources[0].hierarchies == {}
    shop.close()


def cube_over(wh: Warehouse, fact: str, dimensions: list[str]) -> Cube:
    keeper = wh._keeper
    return read_cube(
        star_tables(fact, keeper.relations()), dimensions, "COUNT(*) AS n", keeper.summaries.hierarchies.of
    )


def test_a_change_that_cannot_be_right_halts_the_lattice_and_leaves_its_state(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path / "lake") as wh:
        columns = {"a": "INT", "b": "INT"}
        with wh.commit() as commit:
            commit.create("facts", columns, rows=MemoryZSet(("a", "b"), [((1, 10), 1), ((2, 20), 1)]), group="g")
            commit.create("others", columns, rows=MemoryZSet(("a", "b"), [((1, 10), 1)]), group="g")
        wh.create_view("CREATE MATERIALIZED VIEW sums AS SELECT a, COUNT(*) AS n, SUM(b) AS s FROM facts GROUP BY a")
        wh.create_view("CREATE MATERIALIZED VIEW more AS SELECT a, COUNT(*) AS n FROM others GROUP BY a")
        wh.create_view(
            "CREATE MATERIALIZED VIEW later TBLPROPERTIES ('refresh' = 'manual') AS "
            "SELECT a, COUNT(*) AS n FROM facts GROUP BY a"
        )
        never = MemoryZSet(("a", "b"), [((3, 30), -1)])
        with wh.commit() as commit:
            commit.state("g", {"load": "1"}, {"facts": never, "others": MemoryZSet(("a", "b"), [((5, 1), 1)])})
        views = {view.view: view for view in wh.status().views}
        assert views["sums"].halted is not None
        assert "sums" in views["sums"].halted.reason
        assert "3" in views["sums"].halted.reason
        assert views["more"].halted is None
        contents, record = wh._keeper.summaries.contents, wh._keeper.writer.last
        assert sorted(contents.table("sums", record).select(["a", "n", "s"]).to_pydict()["a"]) == [1, 2]
        assert sorted(contents.table("more", record)["a"].to_pylist()) == [1, 5]
        with pytest.raises(CorruptChange, match="later"):
            wh.refresh("later")
        assert sorted(contents.table("later", wh._keeper.writer.last)["a"].to_pylist()) == [1, 2]


def test_facts_may_be_loaded_by_commits_of_their_own(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path / "lake") as wh:
        with wh.commit() as commit:
            rows = MemoryZSet(("k", "v"), [((1, 5), 2), ((2, None), 1)])
            commit.create("facts", {"k": "INT", "v": "INT"}, rows=rows, group="g")
            names = MemoryZSet(("k", "name"), [((1, "one"), 1)])
            commit.create("names", {"k": "INT", "name": "STRING"}, rows=names, group="g", properties={"key": ["k"]})
        wh.create_view(
            "CREATE MATERIALIZED VIEW v AS SELECT name, COUNT(*) AS n, SUM(v) AS s "
            "FROM facts f JOIN names m ON f.k = m.k GROUP BY name"
        )
        with wh.commit() as commit:
            commit.state("g", {}, {"names": MemoryZSet(("k", "name"), [((2, "two"), 1)])})
        rows = wh._keeper.summaries.contents.table("v", wh._keeper.writer.last).select(["name", "n", "s"]).to_pylist()
        assert sorted(map(str, rows)) == sorted(
            map(str, [{"name": "one", "n": 2, "s": 10}, {"name": "two", "n": 1, "s": None}])
        )
        with pytest.raises(UsageError, match="read by v"):
            wh.drop_view("facts")


@pytest.mark.parametrize(
    ("select", "properties", "error", "message"),
    [
        (BY_CITY, {"algorithm": "sweep"}, UnsupportedClause, "algorithm does not apply to bad, which is a summary"),
        (BY_CITY, {"minmax": "recompute"}, DefinitionError, "the core is not stored"),
        (
            "SELECT a.city, COUNT(*) AS n FROM shop.stores a JOIN shop.stores b ON a.city = b.city GROUP BY a.city",
            {},
            UnsupportedClause,
            "does not join a fact with dimensions along foreign keys",
        ),
    ],
)
def test_what_cannot_be_a_summary_is_refused(
    shop: Shop, select: str, properties: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        shop.create("bad", select, **properties)
    assert shop.wh.views == ()
    assert shop.hidden() == set()


def test_a_source_with_summaries_cannot_be_removed(shop: Shop) -> None:
    shop.create("by_city", BY_CITY)
    with pytest.raises(UsageError, match=r"source shop is in use by by_city\n"):
        shop.wh.remove_source("shop")


def test_a_lattice_whose_dimension_is_gone_is_halted_alone(shop: Shop) -> None:
    shop.create("by_city", BY_CITY)
    shop.create("by_category", "SELECT category, COUNT(*) AS n FROM shop.items GROUP BY category")
    shop.database.execute("DROP TABLE stores")
    shop.change("INSERT INTO items VALUES (4, 'tools', 9.00)")
    views = {view.view: view for view in shop.wh.status().views}
    assert views["by_city"].halted is not None
    assert views["by_category"].halted is None
    assert shop.rows("by_category") == [("food", 1), ("office", 2), ("tools", 1)]


def test_a_view_is_a_dimension_with_the_key_and_the_hierarchy_of_its_table(tmp_path: Path) -> None:
    shop = Shop(tmp_path, hierarchies={"stores": ["storeID", "city", "region"]})
    shop.create("places", "SELECT storeID AS id, city AS town, region AS area FROM shop.stores", group="g")
    shop.create("sales", "SELECT storeID AS store, day, qty FROM shop.pos WHERE qty > 0", group="g")
    joined = "FROM sales f JOIN places d ON f.store = d.id"
    shop.create("by_town", f"SELECT town, COUNT(*) AS n, SUM(qty) AS q {joined} GROUP BY town")
    shop.create("by_area", f"SELECT area, COUNT(*) AS n, SUM(qty) AS q {joined} GROUP BY area")
    assert shop.hidden() == set()  # the views are stored: neither feed nor copies nor a root
    summaries = shop.wh._keeper.summaries
    dimension = summaries.lattice_of("by_town").nodes["by_town"].dimensions[0]
    assert summaries.hierarchies.determined(dimension, frozenset({"town"})) == {"town", "area"}
    shop.change(
        "UPDATE stores SET region = 'North' WHERE storeID = 2",
        "DELETE FROM pos WHERE id = 1",
        "INSERT INTO pos VALUES (6, 3, 1, '2024-03-01', 5)",
    )
    assert shop.rows("by_town") == [("Basel", 1, 7), ("Bern", 1, 1), ("Chur", 1, 5)]
    assert shop.rows("by_area") == [("East", 1, 5), ("North", 1, 7), ("West", 1, 1)]
    shop.close()
