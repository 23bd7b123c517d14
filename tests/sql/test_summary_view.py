"""SQL with an aggregate in, a core and what is computed from it out."""

import pickle
from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from summaries_in_duckdb import ROWS, as_parsed, as_written, retail_database

from run_size import examples
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Catalog
from viewkeeper.sql.summary_view import Aggregate, Function, SummaryView
from viewkeeper.sql.view import View


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with retail_database() as database:
        yield database


def parsed(sql: str, catalog: Catalog) -> SummaryView:
    view = parse_definition(sql, catalog)
    assert isinstance(view, SummaryView)
    return view


FIGURE_1 = {
    "sid_sales": "SELECT storeID, itemID, date, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity "
    "FROM retail.pos GROUP BY storeID, itemID, date",
    "scd_sales": "SELECT city, date, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity "
    "FROM retail.pos, retail.stores WHERE pos.storeID = stores.storeID GROUP BY city, date",
    "sic_sales": "SELECT storeID, category, COUNT(*) AS TotalCount, MIN(date) AS EarliestSale, "
    "SUM(qty) AS TotalQuantity FROM retail.pos, retail.items WHERE pos.itemID = items.itemID "
    "GROUP BY storeID, category",
    "sr_sales": "SELECT region, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity "
    "FROM retail.pos, retail.stores WHERE pos.storeID = stores.storeID GROUP BY region",
}

# name: groups, aggregates with their types, output, core.
FIGURE_1_FORMS = {
    "sid_sales": (
        ["`pos.storeID`", "`pos.itemID`", "`pos.date`"],
        ["COUNT(*) BIGINT", "SUM(qty) BIGINT"],
        ["storeID: `g.0`", "itemID: `g.1`", "date: `g.2`", "TotalCount: `a.0`", "TotalQuantity: `a.1`"],
        ["g0: `pos.storeID`", "g1: `pos.itemID`", "g2: `pos.date`", "a0: `pos.qty`"],
    ),
    "scd_sales": (
        ["`stores.city`", "`pos.date`"],
        ["COUNT(*) BIGINT", "SUM(qty) BIGINT"],
        ["city: `g.0`", "date: `g.1`", "TotalCount: `a.0`", "TotalQuantity: `a.1`"],
        ["g0: `stores.city`", "g1: `pos.date`", "a0: `pos.qty`"],
    ),
    "sic_sales": (
        ["`pos.storeID`", "`items.category`"],
        ["COUNT(*) BIGINT", "MIN(date) DATE", "SUM(qty) BIGINT"],
        ["storeID: `g.0`", "category: `g.1`", "TotalCount: `a.0`", "EarliestSale: `a.1`", "TotalQuantity: `a.2`"],
        ["g0: `pos.storeID`", "g1: `items.category`", "a0: `pos.date`", "a1: `pos.qty`"],
    ),
    "sr_sales": (
        ["`stores.region`"],
        ["COUNT(*) BIGINT", "SUM(qty) BIGINT"],
        ["region: `g.0`", "TotalCount: `a.0`", "TotalQuantity: `a.1`"],
        ["g0: `stores.region`", "a0: `pos.qty`"],
    ),
}


@pytest.mark.parametrize("name", FIGURE_1)
def test_figure_1(retail: Catalog, name: str) -> None:
    sql = f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES ('group' = 'g', 'minmax' = 'node') AS {FIGURE_1[name]}"
    view = parsed(sql, retail)
    groups, aggregates, output, core = FIGURE_1_FORMS[name]
    assert (view.name, view.sql, view.family, view.having) == (name, sql, None, None)
    assert [group.sql for group in view.groups] == groups
    assert [f"{aggregate.name} {aggregate.type}" for aggregate in view.aggregates] == aggregates
    assert [f"{column.name}: {column.expression.sql}" for column in view.output] == output
    assert [f"{column.name}: {column.expression.sql}" for column in view.core.output] == core
    assert view.columns == tuple(column.name for column in view.output)
    assert view.properties == (("group", "g"), ("minmax", "node"))
    assert view.core.properties == (("group", "g"),)
    assert view.core.name == name
    joins = {
        "scd_sales": ["`pos.storeID` = `stores.storeID`"],
        "sic_sales": ["`pos.itemID` = `items.itemID`"],
        "sr_sales": ["`pos.storeID` = `stores.storeID`"],
    }
    assert [condition.sql for condition in view.core.conditions] == joins.get(name, [])


# SQL after "SELECT", groups, aggregates, output and HAVING.
FORMS = [
    pytest.param(
        "city AS c, COUNT(1) AS n, COUNT('x') AS m, COUNT(TRUE) AS k, COUNT(city) AS l FROM retail.stores GROUP BY c",
        ["`stores.city`"],
        ["COUNT(*)", "COUNT(city)"],
        ["`g.0`", "`a.0`", "`a.0`", "`a.0`", "`a.1`"],
        None,
        id="a literal counts rows; every aggregate once",
    ),
    pytest.param(
        "SUM(qty) / COUNT(*) AS a, ROUND(AVG(weight), 2) AS b, -MIN(qty) AS c, 'x' AS d FROM retail.pos",
        [],
        ["SUM(qty)", "COUNT(*)", "AVG(weight)", "MIN(qty)"],
        ["`a.0` / `a.1`", "ROUND(`a.2`, 2)", "-`a.3`", "'x'"],
        None,
        id="expressions over aggregates, and no groups",
    ),
    pytest.param(
        "storeID + 1 AS next, STOREID * 2 AS twice, (storeid) AS s, SUM(qty) AS n FROM retail.pos p GROUP BY P.storeID",
        ["`p.storeID`"],
        ["SUM(qty)"],
        ["`g.0` + 1", "`g.0` * 2", "`g.0`", "`a.0`"],
        None,
        id="expressions over groups, in any case",
    ),
    pytest.param(
        "Year(date) * 10 AS decade, COUNT(*) AS n FROM retail.pos GROUP BY YEAR(pos.Date)",
        ["YEAR(`pos.date`)"],
        ["COUNT(*)"],
        ["`g.0` * 10", "`a.0`"],
        None,
        id="a whole expression is matched inside another",
    ),
    pytest.param(
        "qty % 2 AS odd, date, COUNT(*) AS n FROM retail.pos GROUP BY 1, 2",
        ["`pos.qty` % 2", "`pos.date`"],
        ["COUNT(*)"],
        ["`g.0`", "`g.1`", "`a.0`"],
        None,
        id="ordinals",
    ),
    pytest.param(
        "qty % 2 AS odd, -(qty % 2) AS even, COUNT(*) AS n FROM retail.pos GROUP BY ODD, odd + 1",
        ["`pos.qty` % 2", "(`pos.qty` % 2) + 1"],
        ["COUNT(*)"],
        ["`g.0`", "-`g.0`", "`a.0`"],
        None,
        id="aliases, also inside an expression",
    ),
    pytest.param(
        "note AS qty, COUNT(*) AS n FROM retail.pos GROUP BY note, qty",
        ["`pos.note`", "`pos.qty`"],
        ["COUNT(*)"],
        ["`g.0`", "`a.0`"],
        None,
        id="in GROUP BY a column of a table goes before an alias",
    ),
    pytest.param(
        "city, 1 AS one, SUM(storeID) + 1 AS s FROM retail.stores GROUP BY ALL",
        ["`stores.city`"],
        ["SUM(storeID)"],
        ["`g.0`", "1", "`a.0` + 1"],
        None,
        id="GROUP BY ALL; constants make no groups",
    ),
    pytest.param(
        "*, COUNT(*) AS n FROM retail.stores GROUP BY ALL HAVING city > 'a'",
        ["`stores.storeID`", "`stores.city`", "`stores.region`"],
        ["COUNT(*)"],
        ["`g.0`", "`g.1`", "`g.2`", "`a.0`"],
        "`g.1` > 'a'",
        id="GROUP BY ALL of a star",
    ),
    pytest.param(
        "COUNT(*) AS n FROM retail.stores GROUP BY ALL",
        [],
        ["COUNT(*)"],
        ["`a.0`"],
        None,
        id="GROUP BY ALL of nothing",
    ),
    pytest.param(
        "COUNT(*) AS n FROM retail.stores GROUP BY 'x', city, 'y'",
        ["`stores.city`"],
        ["COUNT(*)"],
        ["`a.0`"],
        None,
        id="a constant in GROUP BY does not count next to a column",
    ),
    pytest.param(
        "COUNT(*) AS n FROM retail.stores GROUP BY 'x'",
        ["'x'"],
        ["COUNT(*)"],
        ["`a.0`"],
        None,
        id="a constant alone: no rows over no rows",
    ),
    pytest.param(
        "city FROM retail.stores GROUP BY (city, region), ()",
        ["`stores.city`", "`stores.region`"],
        [],
        ["`g.0`"],
        None,
        id="parentheses in GROUP BY",
    ),
    pytest.param(
        "DISTINCT city, region || '!' AS r, city AS again FROM retail.stores WHERE storeID > 1",
        ["`stores.city`", "`stores.region` || '!'"],
        [],
        ["`g.0`", "`g.1`", "`g.0`"],
        None,
        id="DISTINCT groups by all items",
    ),
    pytest.param(
        "DISTINCT * FROM retail.stores",
        ["`stores.storeID`", "`stores.city`", "`stores.region`"],
        [],
        ["`g.0`", "`g.1`", "`g.2`"],
        None,
        id="DISTINCT of a star",
    ),
    pytest.param(
        "city, SUM(storeID) AS s FROM retail.stores GROUP BY city HAVING s > 1 AND MAX(region) = 'x' AND city <> 'y'",
        ["`stores.city`"],
        ["SUM(storeID)", "MAX(region)"],
        ["`g.0`", "`a.0`"],
        "`a.0` > 1 AND `a.1` = 'x' AND `g.0` <> 'y'",
        id="HAVING over aliases, groups, and aggregates that are not shown",
    ),
    pytest.param(
        "SUM(storeID) AS city, region AS r FROM retail.stores GROUP BY region HAVING city > 1 AND MIN(city) = 'x'",
        ["`stores.region`"],
        ["SUM(storeID)", "MIN(city)"],
        ["`a.0`", "`g.0`"],
        "`a.0` > 1 AND `a.1` = 'x'",
        id="a name in HAVING is an alias if the column is not grouped by, and a column inside an aggregate",
    ),
    pytest.param(
        "SUM(storeID) AS city, city AS c FROM retail.stores GROUP BY stores.city HAVING city = 'x'",
        ["`stores.city`"],
        ["SUM(storeID)"],
        ["`a.0`", "`g.0`"],
        "`g.0` = 'x'",
        id="a name in HAVING is the column if it is grouped by",
    ),
    pytest.param(
        "s.storeID, COUNT(*) + 1 AS n FROM retail.pos p JOIN retail.stores s ON p.storeID = s.storeID "
        "GROUP BY s.storeID HAVING storeID > 1 AND n * 2 > 6",
        ["`s.storeID`"],
        ["COUNT(*)"],
        ["`g.0`", "`a.0` + 1"],
        "`g.0` > 1 AND (`a.0` + 1) * 2 > 6",
        id="a name in HAVING that two tables have is the item",
    ),
    pytest.param(
        "COUNT(*) FILTER (WHERE qty > 1) AS a, SUM(price * qty) FILTER (WHERE gift) AS b, "
        "COUNT(DISTINCT itemID) FILTER (WHERE gift) AS c, COUNT_IF(qty > 1) AS d, COUNT(1) FILTER (WHERE qty > 1) AS e "
        "FROM retail.pos",
        [],
        [
            "COUNT(CASE WHEN qty > 1 THEN 1 END)",
            "SUM(CASE WHEN gift THEN price * qty END)",
            "COUNT(DISTINCT CASE WHEN gift THEN itemID END)",
        ],
        ["`a.0`", "`a.1`", "`a.2`", "`a.0`", "`a.0`"],
        None,
        id="FILTER is a CASE",
    ),
    pytest.param(
        "MIN(DISTINCT qty) AS a, MAX(DISTINCT qty) AS b, MIN(qty) AS c, COUNT(ALL qty) AS d FROM retail.pos",
        [],
        ["MIN(qty)", "MAX(qty)", "COUNT(qty)"],
        ["`a.0`", "`a.1`", "`a.0`", "`a.2`"],
        None,
        id="DISTINCT does not matter to an extreme",
    ),
    pytest.param(
        "MEAN(qty) AS a, AVG(qty) AS b, STD(qty) AS c, STDDEV(qty) AS d, STDDEV_SAMP(qty) AS e, STDDEV_POP(qty) AS f, "
        "VARIANCE(qty) AS g, VAR_SAMP(qty) AS h, VAR_POP(qty) AS i FROM retail.pos",
        [],
        ["AVG(qty)", "STDDEV_SAMP(qty)", "STDDEV_POP(qty)", "VAR_SAMP(qty)", "VAR_POP(qty)"],
        ["`a.0`", "`a.0`", "`a.1`", "`a.1`", "`a.1`", "`a.2`", "`a.3`", "`a.3`", "`a.4`"],
        None,
        id="synonyms",
    ),
]


@pytest.mark.parametrize(("sql", "groups", "aggregates", "output", "having"), FORMS)
def test_form(
    retail: Catalog, sql: str, groups: list[str], aggregates: list[str], output: list[str], having: str | None
) -> None:
    view = parsed(f"SELECT {sql}", retail)
    assert [group.sql for group in view.groups] == groups
    assert [aggregate.name for aggregate in view.aggregates] == aggregates
    assert [column.expression.sql for column in view.output] == output
    assert (view.having.sql if view.having else None) == having
    assert pickle.loads(pickle.dumps(view)) == view


# Where DuckDB has another name, or looks names up in another order: what it is asked instead.
DUCKDB = {
    "MEAN(": "AVG(",
    "STD(": "STDDEV(",
    "COUNT_IF(qty > 1)": "COUNT(CASE WHEN qty > 1 THEN 1 END)",
    "odd + 1": "(qty % 2) + 1",
    "HAVING city > 1": "HAVING SUM(storeID) > 1",
    "HAVING city = 'x'": "HAVING stores.city = 'x'",
    "HAVING storeID > 1 AND n * 2": "HAVING s.storeID > 1 AND (COUNT(*) + 1) * 2",
}


@pytest.mark.parametrize(("sql", "groups", "aggregates", "output", "having"), FORMS)
@pytest.mark.parametrize("rows", ["SELECT 1", ROWS], ids=["no rows", "rows"])
def test_form_means_what_was_written(
    retail: Catalog,
    sql: str,
    groups: list[str],
    aggregates: list[str],
    output: list[str],
    having: str | None,
    rows: str,
) -> None:
    reworded = sql
    for ours, theirs in DUCKDB.items():
        reworded = reworded.replace(ours, theirs)
    with retail_database(rows) as database:
        assert as_parsed(database, parsed(f"SELECT {sql}", retail)) == as_written(database, f"SELECT {reworded}")


@pytest.mark.parametrize("name", FIGURE_1)
def test_figure_1_means_what_was_written(retail: Catalog, database: duckdb.DuckDBPyConnection, name: str) -> None:
    rows = as_parsed(database, parsed(FIGURE_1[name], retail))
    assert rows == as_written(database, FIGURE_1[name])
    assert len(rows) > 1


TYPES = [
    ("COUNT(*)", "BIGINT"),
    ("COUNT(extra)", "BIGINT"),
    ("COUNT(DISTINCT note)", "BIGINT"),
    ("SUM(CAST(qty AS TINYINT))", "BIGINT"),
    ("SUM(qty)", "BIGINT"),
    ("SUM(price)", "DECIMAL(20, 2)"),
    ("SUM(cost)", "DECIMAL(38, 4)"),
    ("SUM(price * qty)", "DECIMAL(31, 2)"),
    ("SUM(price) FILTER (WHERE gift)", "DECIMAL(20, 2)"),
    ("SUM(ROUND(price, 1)) FILTER (WHERE gift)", "DECIMAL(20, 1)"),
    ("SUM(weight)", "DOUBLE"),
    ("SUM(CAST(weight AS FLOAT))", "DOUBLE"),
    ("SUM(qty / 2)", "DOUBLE"),
    ("SUM(YEAR(date))", "BIGINT"),
    ("AVG(qty)", "DOUBLE"),
    ("AVG(weight)", "DOUBLE"),
    ("AVG(price)", "DECIMAL(14, 6)"),
    ("AVG(cost)", "DECIMAL(38, 8)"),
    ("MIN(note)", "STRING"),
    ("MAX(gift)", "BOOLEAN"),
    ("MIN(date)", "DATE"),
    ("MAX(price)", "DECIMAL(10, 2)"),
    ("MAX(qty > 1)", "BOOLEAN"),
    ("VAR_SAMP(price)", "DOUBLE"),
    ("VAR_POP(qty)", "DOUBLE"),
    ("STDDEV_SAMP(weight)", "DOUBLE"),
    ("STDDEV_POP(qty)", "DOUBLE"),
    ("SUM(price) / COUNT(*)", "DECIMAL(38, 20)"),
    ("SUM(qty) / COUNT(*)", "DOUBLE"),
    ("SUM(qty) * 2", "BIGINT"),
    ("ROUND(AVG(price), 2)", "DECIMAL(11, 2)"),
    ("COUNT(*) > 1", "BOOLEAN"),
    ("COALESCE(MAX(note), 'none')", "STRING"),
]


@pytest.mark.parametrize(("item", "type"), TYPES)
def test_type(retail: Catalog, item: str, type: str) -> None:
    view = parsed(f"SELECT {item} AS x FROM retail.pos JOIN retail.items USING (itemID)", retail)
    assert view.output[0].expression.type == type
    if view.output[0].expression.is_column:
        assert view.aggregates[0].type == type


def test_arguments_are_in_the_core_once(retail: Catalog) -> None:
    view = parsed("SELECT SUM(qty) AS a, MIN(qty) AS b, COUNT(price) AS c, COUNT(*) AS d FROM retail.pos", retail)
    assert [aggregate.function for aggregate in view.aggregates] == [
        Function.SUM,
        Function.MIN,
        Function.COUNT,
        Function.COUNT_ALL,
    ]
    assert view.core.columns == ("a0", "a1")
    assert view.aggregates[0].argument == view.aggregates[1].argument == view.core.output[0].expression
    assert view.aggregates[3] == Aggregate(Function.COUNT_ALL, None, "BIGINT")


def test_a_core_has_a_column_in_any_case(retail: Catalog) -> None:
    view = parsed("SELECT COUNT(*) AS n FROM retail.pos", retail)
    assert [(column.name, column.expression.sql) for column in view.core.output] == [("one", "1")]


def test_crossings_stay(retail: Catalog) -> None:
    view = parsed("SELECT COUNT(*) AS n FROM retail.stores CROSS JOIN retail.items", retail)
    assert view.core.crossings == ((0, 1),)


def test_without_an_aggregate_it_is_a_join(catalog: Catalog) -> None:
    sql = "CREATE MATERIALIZED VIEW j AS SELECT o.id, name FROM shop.orders o JOIN crm.people p ON o.cust = p.id"
    view = parse_definition(sql, catalog)
    assert isinstance(view, View)
    assert view == parse_view(sql, catalog)


def test_a_bare_select_has_the_name_that_is_given(retail: Catalog) -> None:
    view = parse_definition("SELECT COUNT(*) AS n FROM retail.pos", retail, name="sales")
    assert isinstance(view, SummaryView)
    assert (view.name, view.core.name) == ("sales", "sales")


@st.composite
def summaries(draw: st.DrawFn) -> str:
    """Some aggregate SELECT over one to three tables."""
    groups = draw(
        st.lists(st.sampled_from(["storeID", "note", "qty % 2", "YEAR(date)", "gift"]), max_size=3, unique=True)
    )
    argument = st.sampled_from(["qty", "price", "weight", "qty * price", "qty - 1"])
    calls = st.one_of(
        st.builds("{}({})".format, st.sampled_from(["SUM", "MIN", "MAX", "AVG", "COUNT", "VAR_POP"]), argument),
        st.builds("COUNT(DISTINCT {})".format, st.sampled_from(["qty", "note", "YEAR(date)"])),
        st.just("COUNT(*)"),
    )
    filtered = st.builds("{}{}".format, calls, st.sampled_from(["", "", " FILTER (WHERE qty > 2)"]))
    shapes = st.sampled_from(["{}", "{} + 1", "COALESCE({}, 0)", "CASE WHEN {} > 2 THEN 'many' ELSE 'few' END"])
    items = [f"{group} AS g{place}" for place, group in enumerate(groups)]
    for place in range(draw(st.integers(1 - bool(groups), 3))):
        items.append(f"{draw(shapes).format(draw(filtered))} AS a{place}")
    table = draw(
        st.sampled_from(
            ["retail.pos", "retail.pos JOIN retail.items USING (itemID)", "retail.pos CROSS JOIN retail.items i"]
        )
    )
    if "CROSS" in table:
        items.append("MAX(i.name) AS name")
    where = draw(st.sampled_from(["", " WHERE qty > 1", " WHERE gift OR price > 2"]))
    by = draw(st.sampled_from([groups, [str(place + 1) for place in range(len(groups))]]))
    if not groups:
        how = ""
    elif draw(st.booleans()) and any(item.split(" AS ")[1].startswith("a") for item in items):
        how = " GROUP BY ALL"
    else:
        how = f" GROUP BY {', '.join(by)}"
    having = draw(st.sampled_from(["", " HAVING COUNT(*) > 1", " HAVING SUM(qty) > 3 OR MIN(price) IS NULL"]))
    return f"SELECT {', '.join(items)} FROM {table}{where}{how}{having}"


@settings(deadline=None, max_examples=examples(60))
@given(sql=summaries())
def test_any_summary_means_what_was_written(retail: Catalog, database: duckdb.DuckDBPyConnection, sql: str) -> None:
    assert as_parsed(database, parsed(sql, retail)) == as_written(database, sql)
