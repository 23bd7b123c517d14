"""CUBE, ROLLUP and GROUPING SETS: one table per grouping set, and the family is their union."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from summaries_in_duckdb import as_parsed, as_written, retail_database

from run_size import examples
from viewkeeper.errors import DefinitionError, UnsupportedClause
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Catalog, Relation
from viewkeeper.sql.summary_view import Family


def parsed(sql: str, catalog: Catalog) -> Family:
    family = parse_definition(sql, catalog)
    assert isinstance(family, Family)
    return family


STORES = "SELECT region, city, storeID, COUNT(*) AS n FROM retail.stores GROUP BY {}"
CUBE_OF_THREE = [
    "v_region_city_storeid",
    "v_region_city",
    "v_region_storeid",
    "v_city_storeid",
    "v_region",
    "v_city",
    "v_storeid",
    "v_total",
]

# GROUP BY, and the tables, the finest first.
SETS = [
    ("CUBE (region, city, storeID)", CUBE_OF_THREE),
    ("region, city, storeID WITH CUBE", CUBE_OF_THREE),
    ("CUBE (region, city), CUBE (storeID)", CUBE_OF_THREE),
    ("GROUPING SETS (CUBE (1, 2, 3))", CUBE_OF_THREE),
    ("ROLLUP (region, city, storeID)", ["v_region_city_storeid", "v_region_city", "v_region", "v_total"]),
    ("region, city, storeID WITH ROLLUP", ["v_region_city_storeid", "v_region_city", "v_region", "v_total"]),
    ("ROLLUP (region, (city, storeID))", ["v_region_city_storeid", "v_region", "v_total"]),
    ("CUBE ((region, city), storeID)", ["v_region_city_storeid", "v_region_city", "v_storeid", "v_total"]),
    (
        "region, CUBE (city, storeID)",
        ["v_region_city_storeid", "v_region_city", "v_region_storeid", "v_region"],
    ),
    (
        "ROLLUP (region), ROLLUP (city), storeID",
        ["v_region_city_storeid", "v_region_storeid", "v_city_storeid", "v_storeid"],
    ),
    (
        "GROUPING SETS ((city), (region, city), storeID, (), (city, region), city)",
        ["v_city_region", "v_city", "v_storeid", "v_total"],
    ),
    ("GROUPING SETS (ROLLUP (region, city), (storeID))", ["v_region_city", "v_region", "v_storeid", "v_total"]),
    (
        "region, city, storeID GROUPING SETS ((city, region), (storeID, city))",
        ["v_region_city", "v_city_storeid"],
    ),
    ("region, city, GROUPING SETS ((city, storeID))", ["v_region_city_storeid"]),
]


@pytest.mark.parametrize(("group_by", "names"), SETS)
def test_sets(retail: Catalog, group_by: str, names: list[str]) -> None:
    family = parsed(STORES.format(group_by), retail)
    assert [member.view.name for member in family.members] == names
    assert all(member.view.family == "v" for member in family.members)
    assert {member.view.sql for member in family.members} == {family.sql}


def test_a_member_is_a_summary_table(retail: Catalog) -> None:
    sql = (
        "CREATE MATERIALIZED VIEW sales TBLPROPERTIES ('group' = 'g', 'refresh' = 'manual') AS "
        "SELECT region, SUM(qty) AS q, GROUPING(city) AS gc, city AS Town, GROUPING_ID() AS gi, region || city AS rc, "
        "COALESCE(city, 'all') AS label, 'x' AS x FROM retail.pos JOIN retail.stores USING (storeID) "
        "GROUP BY ROLLUP (region, city) HAVING SUM(qty) > 1 AND GROUPING(city) < 2"
    )
    family = parsed(sql, retail)
    assert (family.name, family.sql) == ("sales", sql)
    assert family.properties == (("group", "g"), ("refresh", "manual"))
    assert family.columns == ("region", "q", "gc", "Town", "gi", "rc", "label", "x")
    finest, middle, total = (member.view for member in family.members)
    assert [view.name for view in (finest, middle, total)] == ["sales_region_town", "sales_region", "sales_total"]
    assert middle.properties == family.properties
    assert [group.sql for group in middle.groups] == ["`stores.region`"]
    assert [(column.name, column.expression.sql) for column in middle.output] == [
        ("region", "`g.0`"),
        ("q", "`a.0`"),
        ("rc", "`g.0` || CAST(NULL AS STRING)"),
    ]
    assert middle.core.columns == ("g0", "a0")
    assert middle.having is not None
    assert middle.having.sql == "`a.0` > 1 AND CAST(1 AS TINYINT) < 2"
    assert total.groups == ()
    assert total.columns == ("q",)
    assert dict(family.members[0].padded) == {
        "region": "`region`",
        "q": "`q`",
        "gc": "CAST(0 AS TINYINT)",
        "Town": "`Town`",
        "gi": "CAST(0 AS BIGINT)",
        "rc": "`rc`",
        "label": "`label`",
        "x": "'x'",
    }
    assert dict(family.members[1].padded) == {
        "region": "`region`",
        "q": "`q`",
        "gc": "CAST(1 AS TINYINT)",
        "Town": "CAST(NULL AS STRING)",
        "gi": "CAST(1 AS BIGINT)",
        "rc": "`rc`",
        "label": "COALESCE(CAST(NULL AS STRING), 'all')",
        "x": "'x'",
    }
    assert dict(family.members[2].padded)["gi"] == "CAST(3 AS BIGINT)"


NAMES = [
    ("YEAR(date) AS y, COUNT(*) AS n FROM retail.pos GROUP BY CUBE (YEAR(date))", ["v_y", "v_total"]),
    ("YEAR(date) AS `Sales Year`, COUNT(*) AS n FROM retail.pos GROUP BY CUBE (1)", ["v_sales_year", "v_total"]),
    (
        "qty, -qty AS m, GROUPING_ID() AS g, COUNT(*) AS n FROM retail.pos GROUP BY CUBE (qty, -qty)",
        ["v_qty_m", "v_qty", "v_m", "v_total"],
    ),
    (
        "GROUPING_ID() AS g, COUNT(*) AS n FROM retail.pos GROUP BY CUBE (YEAR(date), qty + storeID)",
        ["v_date_group2", "v_date", "v_group2", "v_total"],
    ),
    (
        "s.storeID AS total, p.storeID AS s, COUNT(*) AS n FROM retail.pos p JOIN retail.stores s "
        "ON p.storeID < s.storeID GROUP BY CUBE (s.storeID, p.storeID)",
        ["v_total_s", "v_total", "v_s", "v_total_2"],
    ),
]


@pytest.mark.parametrize(("select", "names"), NAMES)
def test_names(retail: Catalog, select: str, names: list[str]) -> None:
    assert [member.view.name for member in parsed(f"SELECT {select}", retail).members] == names


@pytest.mark.parametrize(
    ("call", "values"),
    [
        # for CUBE (region, city): (region, city), (region), (city), ()
        ("GROUPING(region)", [0, 0, 1, 1]),
        ("GROUPING(stores.CITY)", [0, 1, 0, 1]),
        ("GROUPING_ID()", [0, 1, 2, 3]),
        ("GROUPING_ID(region, city)", [0, 1, 2, 3]),
        ("GROUPING_ID(city, region)", [0, 2, 1, 3]),
        ("GROUPING_ID(city)", [0, 1, 0, 1]),
    ],
)
def test_grouping(retail: Catalog, call: str, values: list[int]) -> None:
    sql = f"SELECT region, city, {call} AS g, COUNT(*) AS n FROM retail.stores GROUP BY CUBE (region, city)"
    type = "BIGINT" if "_ID" in call else "TINYINT"
    padded = [dict(member.padded)["g"] for member in parsed(sql, retail).members]
    assert padded == [f"CAST({value} AS {type})" for value in values]


MEANINGS = [
    *(STORES.format(group_by) for group_by, _ in SETS if "WITH" not in group_by and "storeID GROUPING" not in group_by),
    "SELECT YEAR(date) AS y, note, SUM(qty) / COUNT(*) AS q, COUNT(DISTINCT itemID) AS d, MIN(date) AS e "
    "FROM retail.pos GROUP BY CUBE (YEAR(date), note)",
    "SELECT COALESCE(city, 'all') AS c, region || '!' AS r, CASE WHEN GROUPING(city) = 1 THEN 'sub' ELSE city END "
    "AS l, GROUPING_ID(region, city) AS g, SUM(storeID) FILTER (WHERE city > 'B') AS s FROM retail.stores "
    "GROUP BY ROLLUP (region, city) HAVING COUNT(*) > 1 OR GROUPING(city) = 1",
    "SELECT qty, SUM(qty) AS s, COUNT(qty) AS n FROM retail.pos GROUP BY CUBE (qty)",
]


@pytest.mark.parametrize("sql", MEANINGS)
def test_the_union_means_what_was_written(retail: Catalog, sql: str) -> None:
    with retail_database() as database:
        # A set that is asked for twice is one table here, and DuckDB would show its rows twice.
        ours, theirs = as_parsed(database, parsed(sql, retail)), as_written(database, sql)
        if "(), (city, region), city" in sql:
            assert set(ours) == set(theirs)
        else:
            assert ours == theirs


@settings(deadline=None, max_examples=examples(25))
@given(
    dimensions=st.lists(
        st.sampled_from(["storeID", "note", "gift", "YEAR(date)"]), min_size=1, max_size=4, unique=True
    ),
    how=st.sampled_from(["CUBE ({})", "ROLLUP ({})", "{}, CUBE ({})"]),
    split=st.integers(0, 3),
)
def test_any_cube_means_what_was_written(retail: Catalog, dimensions: list[str], how: str, split: int) -> None:
    first, rest = dimensions[:split], dimensions[split:]
    if how.count("{}") == 2 and first and rest:
        group_by = how.format(", ".join(first), ", ".join(rest))
    else:
        group_by = how.rpartition(", ")[2].format(", ".join(dimensions))
    items = ", ".join(f"{dimension} AS d{place}" for place, dimension in enumerate(dimensions))
    sql = f"SELECT {items}, COUNT(*) AS n, SUM(qty) AS q, MAX(price) AS p FROM retail.pos GROUP BY {group_by}"
    with retail_database() as database:
        assert as_parsed(database, parsed(sql, retail)) == as_written(database, sql)


WIDE = Relation("x.t", "x", tuple(f"c{number}" for number in range(30)), ("INT",) * 30)


def test_eight_dimensions() -> None:
    columns = ", ".join(WIDE.columns[:8])
    family = parsed(f"SELECT {columns}, COUNT(*) AS n FROM x.t GROUP BY CUBE ({columns})", {"x.t": WIDE})
    assert len(family.members) == len({member.view.name for member in family.members}) == 256


REFUSED = [
    (
        f"SELECT {', '.join(WIDE.columns)}, COUNT(*) AS n FROM x.t GROUP BY CUBE ({', '.join(WIDE.columns)})",
        UnsupportedClause,
        "CUBE has 30 dimensions",
        "leave out all but 8, or name the ones that you need: GROUPING SETS",
    ),
    (
        "SELECT c0, COUNT(*) AS n FROM x.t GROUP BY CUBE (c0, c1, c2, c3, c4, c5), CUBE (c6, c7, c8)",
        UnsupportedClause,
        "GROUP BY has 512 grouping sets",
        "at most 256",
    ),
    (
        "SELECT c0, COUNT(*) AS n FROM x.t GROUP BY CUBE (c0, c1)",
        DefinitionError,
        "v groups by c1 and does not show it",
        "add c1 to SELECT, or GROUPING_ID()",
    ),
    (
        "SELECT c0, SUM(c1) AS c1, COUNT(*) AS n FROM x.t GROUP BY CUBE (c0, c1)",
        DefinitionError,
        "v groups by c1 and does not show it",
        "add c1 to SELECT",
    ),
    (
        "SELECT c0, c1 FROM x.t GROUP BY CUBE (c0, c1)",
        DefinitionError,
        "the table v_total of the family v would have no columns",
        "add COUNT(*) AS n",
    ),
    (
        "SELECT c0, COUNT(*) AS n FROM x.t GROUP BY CUBE (c0, 'x')",
        DefinitionError,
        "the grouping sets have 'x', which is the same for all rows",
        "leave it out",
    ),
    (
        "SELECT c0, c1, COUNT(*) AS n FROM x.t GROUP BY c0, ROLLUP (c1) WITH CUBE",
        UnsupportedClause,
        "ROLLUP inside another",
        "write the sets out",
    ),
    (
        "SELECT c0, GROUPING(c1) AS g FROM x.t GROUP BY CUBE (c0)",
        DefinitionError,
        "GROUPING of c1, which is not grouped by (line 1, column 21)",
        "the groups are c0",
    ),
    (
        "SELECT c0, c1, GROUPING(c0, c1) AS g FROM x.t GROUP BY CUBE (c0, c1)",
        DefinitionError,
        "GROUPING takes one group, and has 2",
        "write GROUPING_ID(a, b)",
    ),
    (
        "SELECT c0, c2, COUNT(*) AS n FROM x.t GROUP BY CUBE (c0)",
        DefinitionError,
        "the column c2 in the output column c2 is neither grouped by nor aggregated",
        "add c2 to GROUP BY",
    ),
]


@pytest.mark.parametrize(("sql", "kind", "detail", "hint"), REFUSED)
def test_refused(sql: str, kind: type[DefinitionError], detail: str, hint: str) -> None:
    with pytest.raises(kind) as refused:
        parse_definition(sql, {"x.t": WIDE})
    assert type(refused.value) is kind
    assert detail in refused.value.detail
    assert hint in refused.value.hint
