"""Propagate by the summary-delta paper: sections 2.1 and 4.1, with their figures, examples and table 2.

The SQL of the paper runs beside ours, in DuckDB, over the same rows.
"""

from datetime import date

import pytest
import sqlglot
from retail_paper import (
    CHANGES,
    FIGURE_1,
    NODES,
    Retail,
    Rows,
    delta_sql,
    edge_between,
    node,
    retail,
    small_retail,
    table,
    whole_sql,
)
from sqlglot import exp

from viewkeeper.summary.defined import Defined
from viewkeeper.summary.hidden_nodes import with_hidden
from viewkeeper.summary.node import Node
from viewkeeper.summary.roots import root_of
from viewkeeper.summary.statements import WEIGHT, Names, summary_delta, whole_table, with_extremes

SEEDS = pytest.mark.parametrize("seed", range(5))
MONDAY = date(1996, 6, 3)
SIC = NODES["SiC_sales"]
SIC_TABLE = table("SiC_sales", FIGURE_1["SiC_sales"])


def tables_of(made: Defined) -> dict[str, Node]:
    """The tables that a summary is maintained by: its own, and those that also group by what its MIN and MAX are of."""
    hidden = with_hidden(made, [], core_readable=True, recompute=False)
    return {one.name: one for one in (hidden.node, *(node for node, _ in hidden.hidden))}


def our_delta(shop: Retail, made: Defined, columns: str, above: Node = CHANGES, *, preaggregated: bool = False) -> Rows:
    """The summary-delta of a table, MIN and MAX included, from what is in the view of this name."""
    nodes = tables_of(made)
    for each in nodes.values():
        edge = edge_between(each, above)
        shop.view(f"ours_{each.name}", delta_sql(edge, above.name, preaggregated=preaggregated))
    names = {name: f"`ours_{name}`" for name in nodes}
    whole = nodes[made.node.name]
    return shop.spark(f"SELECT {columns} FROM ({with_extremes(whole, names[whole.name], names, nodes)})")


@SEEDS
def test_section_2_1_the_summary_delta_of_sid_sales(seed):
    with retail(seed) as shop:
        paper = shop.run("""
            SELECT storeID, itemID, date, SUM(_count) AS sd_Count, SUM(_quantity) AS sd_Quantity
            FROM ((SELECT storeID, itemID, date, 1 as _count, qty as _quantity FROM pos_ins) UNION ALL
                  (SELECT storeID, itemID, date, -1 as _count, -qty as _quantity FROM pos_del))
            GROUP BY storeID, itemID, date""")
        made = table("SID_sales", FIGURE_1["SID_sales"])
        assert our_delta(shop, made, "storeID, itemID, date, TotalCount, TotalQuantity") == paper


TABLE_2 = {
    "COUNT(*)": ("1", "-1"),
    "COUNT(qty)": ("case when qty is null then 0 else 1 end", "case when qty is null then 0 else -1 end"),
    "SUM(qty)": ("qty", "-qty"),
    "SUM(qty * price)": ("qty * price", "-(qty * price)"),
    "MIN(qty)": ("qty", "qty"),
    "MAX(qty)": ("qty", "qty"),
}


@pytest.mark.parametrize("function", TABLE_2)
def test_table_2_aggregate_source_attributes(function):
    """If every change is a group of its own, its row of the summary-delta is its aggregate-source attribute."""
    inserted, deleted = ([(store, 1, MONDAY, qty, 3) for store, qty in ((at, 5), (at + 1, None))] for at in (1, 3))
    made = table("v", f"SELECT storeID, {function} AS source FROM retail.pos GROUP BY storeID")
    with small_retail([], [], deleted, inserted, deleted) as shop:
        ours = our_delta(shop, made, "storeID, source")
        prepared = zip(("pos_ins", "pos_del"), TABLE_2[function], strict=True)
        assert ours == shop.run(" UNION ALL ".join(f"SELECT storeID, {sql} FROM {rows}" for rows, sql in prepared))
        assert ours.total() == 4


PI_SIC = """SELECT storeID, category, 1 AS _count, date AS _date, qty AS _quantity
    FROM pos_ins, items WHERE pos_ins.itemID = items.itemID"""
PD_SIC = """SELECT storeID, category, -1 AS _count, date AS _date, -qty AS _quantity
    FROM pos_del, items WHERE pos_del.itemID = items.itemID"""
SD_SIC = """SELECT storeID, category, sum(_count) AS sd_Count, min(_date) AS sd_EarliestSale,
        sum(_quantity) AS sd_Quantity
    FROM pc_SiC_sales GROUP BY storeID, category"""
SIC_COLUMNS = "storeID, category, TotalCount, EarliestSale, TotalQuantity"


@SEEDS
def test_figure_6_and_examples_4_1_and_4_2_prepared_changes_make_the_summary_delta(seed):
    with retail(seed) as shop:
        shop.run(f"CREATE VIEW pc_SiC_sales AS {PI_SIC} UNION ALL {PD_SIC}")
        assert our_delta(shop, SIC_TABLE, SIC_COLUMNS) == shop.run(SD_SIC)


# As it stands in the paper, the prepared changes lack the itemID that they are grouped by and joined on.
FIGURE_7 = """
    CREATE VIEW pi_SiC_sales(storeID, itemID, _count, _date, _quantity) AS
        SELECT storeID, itemID, 1 AS _count, date AS _date, qty AS _quantity FROM pos_ins;
    CREATE VIEW pd_SiC_sales(storeID, itemID, _count, _date, _quantity) AS
        SELECT storeID, itemID, -1 AS _count, date AS _date, -qty AS _quantity FROM pos_del;
    CREATE VIEW pc_SiC_sales(storeID, itemID, _count, _date, _quantity) AS
        SELECT storeID, itemID, sum(_count) AS _count, min(_date) AS _date, sum(_quantity) AS _quantity
        FROM (FROM pi_SiC_sales UNION ALL FROM pd_SiC_sales) GROUP BY storeID, itemID;
    CREATE VIEW sd_SiC_sales(storeID, category, sd_Count, sd_EarliestSale, sd_Quantity) AS
        SELECT storeID, category, sum(_count) AS sd_Count, min(_date) AS sd_EarliestSale, sum(_quantity) AS sd_Quantity
        FROM pc_SiC_sales, items WHERE pc_SiC_sales.itemID = items.itemID GROUP BY storeID, category"""


def test_figure_7_the_prepared_changes_join_nothing_and_carry_the_item():
    prepared = root_of("pc", [SIC])
    assert {group.sql for group in prepared.groups} == {"`fact.storeID`", "`fact.itemID`"}
    assert edge_between(prepared).joined == ()
    assert edge_between(SIC, prepared).joined == ("items",)


def test_figure_7_is_the_statement_that_runs():
    """Added up by store and item, then joined: not by the date and the quantity, which are in functions only."""
    sql = sqlglot.parse_one(delta_sql(edge_between(SIC), "changes", preaggregated=True), dialect="spark")
    [within] = [one for one in sql.find_all(exp.Select) if one is not sql]
    assert {one.name for one in within.args["group"].expressions} == {"storeID", "itemID"}
    assert not within.args.get("joins")
    assert [join.this.name for join in sql.args["joins"]] == ["items"]
    assert "qty" in within.sql()
    assert "qty" not in {column.name for column in sql.find_all(exp.Column) if column.find_ancestor(exp.Select) is sql}


@SEEDS
def test_figure_7_and_example_4_3_items_joined_before_or_after_pre_aggregation(seed):
    """What is pre-aggregated is the summary-delta of a node over the fact alone; with MIN it groups by the date too."""
    prepared = root_of("pc", list(tables_of(SIC_TABLE).values()))
    with retail(seed) as shop:
        shop.view("pc", delta_sql(edge_between(prepared), "changes"))
        afterwards = our_delta(shop, SIC_TABLE, SIC_COLUMNS, above=prepared)
        shop.run(FIGURE_7)
        assert afterwards == shop.run("SELECT * FROM sd_SiC_sales")
    for within in (False, True):
        with retail(seed) as shop:
            # As in figure 6, and with the changes added up within the statement, by all that it uses of them.
            assert our_delta(shop, SIC_TABLE, SIC_COLUMNS, preaggregated=within) == afterwards


@SEEDS
def test_section_4_1_3_sums_of_what_the_prepared_changes_are_grouped_by(seed):
    """SUM(A) is SUM(A * Y) and COUNT(A) is SUM(Y), with Y the COUNT(*) of the prepared changes."""
    view = node(
        "v",
        """SELECT category, COUNT(*) AS n, COUNT(pos.itemID) AS number, SUM(pos.itemID) AS ids, SUM(cost) AS costs
        FROM retail.pos, retail.items WHERE pos.itemID = items.itemID GROUP BY category""",
    )
    prepared = root_of("pc", [view])
    assert not prepared.measures, "all follow from the items and the count"
    with retail(seed) as shop:
        shop.view("pc", delta_sql(edge_between(prepared), "changes"))
        paper = shop.run("""
            SELECT category, SUM(Y), SUM(pc.itemID * Y), SUM(Y), SUM(cost * Y)
            FROM (SELECT itemID, SUM(_vk_weight) AS Y FROM changes GROUP BY itemID) AS pc, items
            WHERE pc.itemID = items.itemID GROUP BY category""")
        apart = delta_sql(edge_between(view, prepared), "pc")
        within = delta_sql(edge_between(view), "changes", preaggregated=True)
        for ours in (apart, within):
            assert shop.spark(f"SELECT category, n, ids, number, costs FROM ({ours})") == paper


@SEEDS
def test_section_4_1_4_changes_to_dimension_tables(seed):
    """pos and items change at once: the changes of pos meet the old items, those of items meet the new pos."""
    with retail(seed) as shop:
        shop.run(f"""
            CREATE TABLE items_del AS SELECT * FROM items WHERE itemID IN (1, 2);
            CREATE TABLE items_ins AS
                SELECT itemID, name, 'category 9' AS category, cost FROM items WHERE itemID = 1
                UNION ALL SELECT 9, 'item 9', 'category 1', 9;
            INSERT INTO pos_ins VALUES (1, 9, '1996-06-01', 4, 1), (2, 9, '1996-06-02', NULL, 1);
            CREATE VIEW items_new AS (FROM items EXCEPT ALL FROM items_del) UNION ALL FROM items_ins;
            CREATE VIEW items_changes AS
                SELECT *, 1 AS {WEIGHT} FROM items_ins UNION ALL SELECT *, -1 FROM items_del""")
        prepared = " UNION ALL ".join(
            f"""SELECT storeID, category, {sign}1 AS _count, date AS _date, {sign}qty AS _quantity
            FROM pos, {change} WHERE pos.itemID = {change}.itemID"""
            for sign, change in (("", "items_ins"), ("-", "items_del"))
        )
        shop.run(f"CREATE VIEW pc_SiC_sales AS {PI_SIC} UNION ALL {PD_SIC} UNION ALL {prepared}")
        edge = edge_between(SIC)
        [path] = SIC.paths
        names = Names(
            {CHANGES.name: "changes"},
            now={CHANGES.name: "weighted_pos"},
            old={path: "items"},
            new={path: "items_new"},
            changed={path: "items_changes"},
        )
        linear = "storeID, category, TotalCount, TotalQuantity"
        ours = shop.spark(f"SELECT {linear} FROM ({summary_delta(edge, names)})")
        assert ours == shop.run(f"SELECT storeID, category, sd_Count, sd_Quantity FROM ({SD_SIC})")
        # And it is what the table changes by.
        shop.view("old", whole_sql(edge, "weighted_pos_old"))
        shop.view("new", whole_table(edge, "weighted_pos", {path: "items_new"}))
        assert nonzero(ours) == nonzero(
            shop.run("""
                SELECT storeID, category, SUM(n), SUM(q)
                FROM (SELECT storeID, category, TotalCount AS n, TotalQuantity AS q FROM new
                      UNION ALL SELECT storeID, category, -TotalCount, -TotalQuantity FROM old)
                GROUP BY storeID, category""")
        )


def nonzero(delta: Rows) -> set[tuple[object, ...]]:
    """Groups that change, with NULL for a sum of nothing as 0: before and after it may be either."""
    return {(*group, count, quantity or 0) for *group, count, quantity in delta if count or quantity}
