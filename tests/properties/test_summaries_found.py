"""Small cases that random lives of summaries once failed on."""

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from summary_engines import no_spark
from summary_shop import STORES, create_views, open_shop, sales, sell
from summary_shop import stores as known_stores
from summary_worlds import shown_rows

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.lake.log.columns import WEIGHT
from viewkeeper.messages import position
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import SummaryView
from viewkeeper.summary.content import ArrowContent
from viewkeeper.summary.defined import defined
from viewkeeper.summary.hidden_nodes import with_hidden
from viewkeeper.summary.plan import CHANGES, Lineage, changes_of
from viewkeeper.warehouse import Warehouse
from waiting import joined


def test_a_foreign_key_of_another_type_than_its_key_is_derived_from_the_changes():
    fact = Relation("s.f", "s", ("fk", "a"), ("BIGINT", "INT"))
    relations = {"s.f": fact, "s.d": Relation("s.d", "s", ("k", "b"), ("INT", "STRING"), ("k",))}
    sql = "SELECT b, COUNT(*) AS n, SUM(a) AS total FROM s.f AS f JOIN s.d AS d ON f.fk = d.k GROUP BY b"
    view = parse_definition(sql, relations, name="v")
    assert isinstance(view, SummaryView)
    whole = with_hidden(defined(view), [], core_readable=False, recompute=False)
    nodes = [*(node for node, _ in whole.hidden), whole.node]
    plan = Lineage(nodes, changes_of(fact, WEIGHT), core_readable=False).plan(lambda _: 1.0)
    assert [(edge.above.name, edge.below.name) for edge in plan.edges] == [
        (CHANGES, "_vk_node_v_root"),
        ("_vk_node_v_root", "v"),
    ]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Warehouse]:
    """Two stores, of which one is known, and three sales."""
    first = sales((1, "pen", 3), (1, "ink", 5), (2, "pen", None))
    with open_shop(tmp_path / "lake", first, known_stores((1, "Bern"))) as wh:
        yield wh


def test_the_values_behind_an_extreme_come_from_a_table_that_has_extremes_itself(shop):
    shop.create_view(
        "CREATE MATERIALIZED VIEW fine AS SELECT store, item, MIN(qty) AS least FROM sales GROUP BY store, item"
    )
    shop.create_view("CREATE MATERIALIZED VIEW coarse AS SELECT store, MAX(item) AS last FROM sales GROUP BY store")
    assert shown_rows(shop, "coarse") == [(1, "pen"), (2, "pen")]
    sell(shop, 1, sales((1, "pad", 2)) - sales((1, "pen", 3)))
    assert shown_rows(shop, "coarse") == [(1, "pad"), (2, "pen")]
    assert shown_rows(shop, "fine") == [(1, "ink", 5), (1, "pad", 2), (2, "pen", None)]


@pytest.mark.parametrize("refresh", ["continuous", "manual"])
def test_a_dropped_table_in_which_extremes_are_looked_up_stays_hidden(shop, refresh):
    told = f"TBLPROPERTIES ('refresh' = '{refresh}')"
    fine = f"CREATE MATERIALIZED VIEW fine {told} AS SELECT store, item, SUM(qty) AS n FROM sales GROUP BY store, item"
    shop.create_view(fine)
    shop.create_view(
        f"CREATE MATERIALIZED VIEW coarse {told} AS SELECT store, MAX(item) AS last FROM sales GROUP BY store"
    )
    sell(shop, 1, sales((1, "tea", 2)))
    shop.drop_view("fine")
    assert shop.views == ("coarse", "sales", "stores")
    # The name is free again, also for another table that nobody rests on.
    shop.create_view(fine.replace("item, SUM", "item AS what, SUM"))
    sell(shop, 2, sales((1, "pad", 2)) - sales((1, "tea", 2), (1, "pen", 3)))
    shop.refresh()
    assert shown_rows(shop, "coarse") == [(1, "pad"), (2, "pen")]
    shop.drop_view("fine")
    shop.drop_view("coarse")
    assert set(shop._writer.catalog) == {"sales", "stores"}


def test_a_dimension_that_nobody_joins_any_more_can_be_joined_again(shop):
    told = "TBLPROPERTIES ('refresh' = 'manual')"
    by_city = (
        f"CREATE MATERIALIZED VIEW by_city {told} AS SELECT city, COUNT(*) AS n FROM sales, stores "
        "WHERE store = id GROUP BY city"
    )
    shop.create_view(f"CREATE MATERIALIZED VIEW by_item {told} AS SELECT item, SUM(qty) AS n FROM sales GROUP BY item")
    shop.create_view(by_city)
    shop.drop_view("by_city")
    with shop.commit() as commit:
        change = MemoryZSet(tuple(STORES), [((1, "Bern"), -1), ((1, "Basel"), 1), ((2, "Bern"), 1)])
        commit.state("main", {"load": position(1)}, {"stores": change})
    shop.create_view(by_city)
    assert shown_rows(shop, "by_city") == [("Basel", 2), ("Bern", 1)]
    sell(shop, 2, sales((2, "ink", 1)))
    shop.refresh()
    assert shown_rows(shop, "by_city") == [("Basel", 2), ("Bern", 2)]
    assert shown_rows(shop, "by_item") == [("ink", 6), ("pen", 3)]


def test_a_dropped_table_that_is_the_root_of_others_stays_hidden(tmp_path):
    """The facts are not stored: what a change of a dimension does to them is known from the root alone."""
    source = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
    source.executescript(
        "PRAGMA journal_mode = WAL; CREATE TABLE stores (id INTEGER PRIMARY KEY, city TEXT);"
        "CREATE TABLE sales (store INTEGER, qty INTEGER);"
        "INSERT INTO stores VALUES (1, 'Bern'); INSERT INTO sales VALUES (1, 3), (1, 4), (2, 5);"
    )
    with Warehouse.open(tmp_path / "lake", no_spark, compaction=None) as wh:
        wh.add_source("shop", f"sqlite:///{tmp_path / 'shop.db'}", install=True)
        wh.create_view("CREATE MATERIALIZED VIEW fine AS SELECT store, SUM(qty) AS n FROM shop.sales GROUP BY store")
        wh.create_view(
            "CREATE MATERIALIZED VIEW coarse AS SELECT city, SUM(qty) AS n FROM shop.sales, shop.stores "
            "WHERE store = id GROUP BY city"
        )
        wh.drop_view("fine")
        source.executescript("BEGIN; INSERT INTO stores VALUES (2, 'Bern'); INSERT INTO sales VALUES (1, 1); COMMIT")
        wh.catch_up()
        assert wh.views == ("coarse",)
        assert shown_rows(wh, "coarse") == [("Bern", 13)]


def test_tables_are_remembered_by_several_threads_at_once(shop, monkeypatch):
    """One group may end a commit while another looks a table up."""
    create_views(shop)
    contents, record = shop._keeper.summaries.contents, shop._writer.last
    views = [shop._writer.catalog[name] for name in ("by_city", "of_all", "by_store_and_item")]
    others: list[threading.Thread] = []

    def remembered_meanwhile(content: ArrowContent) -> int:
        if not others:
            others.append(threading.Thread(target=contents.remember, args=(views[1], record, content)))
            others[0].start()
            others[0].join(timeout=0.2)
        return 0

    for view in views:
        contents.table(view.name, record)
    monkeypatch.setattr(ArrowContent, "nbytes", property(remembered_meanwhile))
    contents.remember(views[0], record, contents.content(views[0], record))
    joined(others[0])
    assert contents.table("of_all", record).num_rows == 1
