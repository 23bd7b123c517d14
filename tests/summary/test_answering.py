"""Queries over tables of sources, answered from stored summaries: by which table, and with the right rows."""

from dataclasses import replace

import pytest
import sqlglot
from lattice_in_duckdb import RELATIONS, RetailLattice

from run_size import some
from viewkeeper.clock import seeded
from viewkeeper.errors import DefinitionError, UnknownName, UnsupportedClause
from viewkeeper.sql.syntax import ViewDialect
from viewkeeper.summary.answering import Answer, first_sound, ways
from viewkeeper.summary.asked import asked
from viewkeeper.summary.unanswered import unfit

STORES = "retail.pos p JOIN retail.stores s ON p.storeID = s.storeID"
ITEMS = "retail.pos p JOIN retail.items i ON p.itemID = i.itemID"
BOTH = f"{STORES} JOIN retail.items i ON p.itemID = i.itemID"


def understood(sql):
    return asked(sqlglot.parse_one(sql, dialect=ViewDialect), RELATIONS)


def answer(lattice, sql):
    query = understood(sql)
    chosen = [first_sound(ways(table.defined, [lattice.stored]), lattice.holds) for table in query.tables]
    assert None not in chosen, sql
    return Answer(query, tuple(chosen))


def answered(lattice, sql):
    return lattice.rows(answer(lattice, sql).sql(lambda _, name: f"`{name}`"))


def from_stored(lattice, sql):
    return [way.table for way in answer(lattice, sql).ways]


@pytest.fixture(scope="module")
def lattice():
    return RetailLattice(seed=3)


ANSWERED = {
    "a table as it is": ("sid", "SELECT storeID, itemID, date, SUM(qty) FROM retail.pos GROUP BY ALL"),
    "coarser groups": ("sid", "SELECT itemID, COUNT(*), SUM(qty) AS q FROM retail.pos GROUP BY itemID"),
    "no groups": ("sid", "SELECT COUNT(*) AS n, SUM(qty), SUM(price), MIN(date) FROM retail.pos"),
    "no rows and no groups": ("sid", "SELECT COUNT(*), COUNT(qty), SUM(qty) FROM retail.pos WHERE itemID = 99"),
    "no rows": ("sid", "SELECT date, COUNT(*) FROM retail.pos WHERE itemID = 99 GROUP BY date"),
    "a condition": ("sid", "SELECT date, SUM(qty) FROM retail.pos WHERE storeID < 3 OR date IS NULL GROUP BY date"),
    "a condition of the table": ("large", "SELECT itemID, COUNT(*) FROM retail.pos WHERE qty > 2 GROUP BY itemID"),
    "a condition more": ("large", "SELECT COUNT(*) FROM retail.pos WHERE qty > 2 AND itemID < 4"),
    "a dimension joined": ("sid", f"SELECT category, SUM(price) AS t FROM {ITEMS} GROUP BY category"),
    "a dimension for its rows alone": ("_vk_node_by_city_0", f"SELECT COUNT(*), SUM(price) FROM {STORES}"),
    "two dimensions": ("sid", f"SELECT city, category, SUM(price), COUNT(*) FROM {BOTH} GROUP BY 1, 2"),
    "a condition on a dimension": ("sid", f"SELECT date, SUM(price) FROM {ITEMS} WHERE cost > 1 GROUP BY date"),
    "a measure over a dimension": ("sid", f"SELECT storeID, SUM(cost), AVG(cost) FROM {ITEMS} GROUP BY storeID"),
    "fact and dimension in one measure": (
        "_vk_node_by_category_0",
        f"SELECT category, COUNT(*), MAX(date) FROM {ITEMS} WHERE storeID < 5 GROUP BY category",
    ),
    "a group that is computed": ("sid", "SELECT MONTH(date) AS m, SUM(qty) FROM retail.pos GROUP BY MONTH(date)"),
    "an expression over aggregates": (
        "sid",
        "SELECT itemID, SUM(qty) * 2 + COUNT(*) AS x, SUM(price) / COUNT(*) FROM retail.pos GROUP BY itemID",
    ),
    "AVG": ("sid", "SELECT storeID, AVG(qty) AS a, AVG(price) AS b FROM retail.pos GROUP BY storeID"),
    "sums of DOUBLE": ("weights", "SELECT SUM(weight), AVG(weight), COUNT(weight) FROM retail.pos"),
    "HAVING": (
        "sid",
        "SELECT itemID, SUM(qty) FROM retail.pos GROUP BY itemID HAVING SUM(qty) > 1 AND MIN(date) > DATE '2024-01-01'",
    ),
    "HAVING by the name of a column": (
        "sid",
        "SELECT itemID, SUM(qty) AS q FROM retail.pos GROUP BY itemID HAVING q > 1",
    ),
    "HAVING without groups": ("weights", "SELECT COUNT(*) AS n FROM retail.pos HAVING COUNT(*) > 1000000"),
    "FILTER": ("sid", "SELECT COUNT(*) FILTER (WHERE storeID = 1), COUNT_IF(itemID > 2) FROM retail.pos"),
    "MIN of what is grouped by": ("sid", "SELECT storeID, MIN(date), MAX(itemID) FROM retail.pos GROUP BY storeID"),
    "MIN of MINs": ("by_category", f"SELECT category, MIN(date) AS d FROM {ITEMS} GROUP BY category"),
    "MAX of MAXs": ("by_city", f"SELECT city, MAX(price) FROM {STORES} GROUP BY city"),
    "MIN beside MAX of MAXs": ("by_city", f"SELECT MIN(date), MAX(price), SUM(qty) FROM {STORES}"),
    "DISTINCT of the table": (
        "by_category",
        f"SELECT storeID, category, COUNT(DISTINCT date) AS d FROM {ITEMS} GROUP BY storeID, category",
    ),
    "DISTINCT of fewer groups": ("_vk_node_by_category_0", f"SELECT COUNT(DISTINCT date) FROM {ITEMS}"),
    "DISTINCT of what is grouped by": (
        "_vk_node_by_city_root",
        "SELECT date, COUNT(DISTINCT storeID) FROM retail.pos GROUP BY date",
    ),
    "SELECT DISTINCT": ("_vk_node_by_city_root", "SELECT DISTINCT storeID, date FROM retail.pos"),
    "the key of the dimension": ("weights", f"SELECT s.storeID, SUM(weight) FROM {STORES} GROUP BY s.storeID"),
    "USING": ("weights", "SELECT city, SUM(weight) FROM retail.pos JOIN retail.stores USING (storeID) GROUP BY city"),
    "a constant as the only group": ("weights", "SELECT 5 AS five, COUNT(*) AS n FROM retail.pos GROUP BY 1"),
    "a constant beside a group": ("weights", "SELECT 5 AS five, storeID, COUNT(*) FROM retail.pos GROUP BY 1, storeID"),
    "a constant and no rows": ("weights", "SELECT 'x' AS x, COUNT(*) FROM retail.pos WHERE storeID = 99 GROUP BY 1"),
    "the same column twice": ("sid", "SELECT itemID, itemID, SUM(qty), SUM(qty) FROM retail.pos GROUP BY itemID"),
    "CUBE": ("sid", "SELECT storeID, date, SUM(qty) FROM retail.pos GROUP BY CUBE (storeID, date)"),
    "ROLLUP with GROUPING": (
        "sid",
        "SELECT date, itemID, GROUPING(itemID), SUM(qty) AS q FROM retail.pos GROUP BY ROLLUP (1, 2) HAVING q > 2",
    ),
    "a table for each set": (
        "sid weights",
        "SELECT storeID, itemID, COUNT(*) FROM retail.pos GROUP BY GROUPING SETS ((storeID), (itemID))",
    ),
}


@pytest.mark.parametrize(("table", "sql"), ANSWERED.values(), ids=ANSWERED)
def test_answered_from_the_cheapest_table(lattice, table, sql):
    assert set(from_stored(lattice, sql)) == set(table.split())
    assert sorted(map(repr, answered(lattice, sql))) == sorted(map(repr, lattice.rows(sql)))


def test_the_cheapest_goes_first(lattice):
    sql = "SELECT storeID, COUNT(*) FROM retail.pos GROUP BY storeID"
    found = ways(understood(sql).tables[0].defined, [lattice.stored])
    assert [(way.table, way.joined) for way in found] == [
        ("weights", ()),
        ("_vk_node_by_city_root", ()),
        ("sid", ()),
    ]
    assert [way.cost for way in found] == sorted(way.rows for way in found)
    assert found[0].reads == ("weights",)


def test_a_join_costs_as_much_as_reading_the_table_again(lattice):
    sql = f"SELECT city, COUNT(*) FROM {STORES} GROUP BY city"
    found = {way.table: way for way in ways(understood(sql).tables[0].defined, [lattice.stored])}
    assert found["weights"].joined == ("stores",)
    assert found["weights"].cost == 2 * found["weights"].rows
    assert found["by_city"].cost == found["by_city"].rows
    assert found["weights"].reads == ("weights", "copy_of_stores")


# Hierarchies

BY_REGION = f"SELECT region, SUM(qty) AS q, MAX(price) AS m, COUNT(*) AS n FROM {STORES} GROUP BY region"


def test_the_region_comes_from_the_pairs_of_city_and_region():
    lattice = RetailLattice(seed=5)
    assert len(lattice.rows("SELECT 1 FROM retail.stores WHERE city = 'Bern'")) > 1, "a join by city would repeat rows"
    [way] = [one for one in ways(understood(BY_REGION).tables[0].defined, [lattice.stored]) if one.table == "by_city"]
    [pairs] = way.pairs
    assert (pairs.by, pairs.added) == ((("city", "city"),), (("region", "_vk_also_0"),))
    assert way.joined == ("distinct stores",)
    assert way.reads == ("by_city", "copy_of_stores")


def test_a_hierarchy_holds_for_values_and_not_for_null():
    """Seeds in which stores without a city are in several regions, and seeds in which they are not."""
    used = set()
    for seed in range(20):
        lattice = RetailLattice(seed, {"by_city": f"SELECT city, COUNT(*) AS n FROM {STORES} GROUP BY city"})
        sql = f"SELECT region, COUNT(*) AS n FROM {STORES} GROUP BY region"
        way = first_sound(ways(understood(sql).tables[0].defined, [lattice.stored]), lattice.holds)
        regions = lattice.rows("SELECT DISTINCT region FROM retail.stores WHERE city IS NULL")
        assert bool(way.pairs) == (len(regions) <= 1)
        assert sorted(map(repr, answered(lattice, sql))) == sorted(map(repr, lattice.rows(sql)))
        used.add(bool(way.pairs))
    assert used == {True, False}


def test_without_a_hierarchy_the_region_does_not_come_from_the_city(lattice):
    stored = replace(lattice.stored, determined=None)
    assert "by_city" not in [way.table for way in ways(understood(BY_REGION).tables[0].defined, [stored])]


# Order


ORDERED = {
    "by a column": "SELECT itemID, SUM(qty) AS q FROM retail.pos GROUP BY itemID ORDER BY itemID NULLS LAST",
    "by place": "SELECT COUNT(*) AS n, itemID FROM retail.pos GROUP BY itemID ORDER BY 1 DESC, 2 NULLS FIRST",
    "by an aggregate that is shown": "SELECT itemID, SUM(qty) FROM retail.pos GROUP BY itemID ORDER BY SUM(qty), 1",
    "by one that is not": "SELECT itemID FROM retail.pos GROUP BY itemID ORDER BY SUM(price) DESC, itemID LIMIT 3",
    "by an expression with a name in it": "SELECT itemID, SUM(qty) AS q FROM retail.pos GROUP BY itemID "
    "ORDER BY COALESCE(q, 0) + COUNT(*) DESC, itemID LIMIT 2 OFFSET 1",
    "by a group that is not shown": "SELECT COUNT(*) AS n FROM retail.pos GROUP BY itemID ORDER BY itemID NULLS LAST",
    "by a name that is also a column": "SELECT -itemID AS itemID, SUM(price) FROM retail.pos GROUP BY -itemID "
    "ORDER BY itemID NULLS LAST",
    "by another column of that name": "SELECT storeID AS x, -storeID AS storeID, COUNT(*) FROM retail.pos "
    "GROUP BY retail.pos.storeID ORDER BY storeID NULLS LAST",
    "of DISTINCT": "SELECT DISTINCT itemID AS i FROM retail.pos ORDER BY i + 1 DESC NULLS LAST LIMIT 4",
    "of CUBE": "SELECT storeID, date, COUNT(*) AS n FROM retail.pos GROUP BY CUBE (storeID, date) "
    "ORDER BY n DESC, storeID NULLS LAST, date NULLS LAST LIMIT 20",
    "with a limit alone": "SELECT COUNT(*) AS n FROM retail.pos LIMIT 1",
}


@pytest.mark.parametrize("sql", ORDERED.values(), ids=ORDERED)
def test_order_and_limit_are_put_around_the_answer(lattice, sql):
    assert answered(lattice, sql) == lattice.rows(sql)


def test_columns_get_the_names_and_types_that_are_asked_for(lattice):
    made = answer(lattice, "SELECT itemID, SUM(qty) FROM retail.pos GROUP BY itemID ORDER BY COUNT(*), 2, 1")
    assert made.asked.columns == ("itemID", "column_2")
    sql = made.sql(lambda _, name: f"`{name}`", [("itemID", "INT"), ("sum(qty)", "BIGINT")])
    expected = lattice.rows("SELECT itemID, SUM(qty) FROM retail.pos GROUP BY itemID ORDER BY COUNT(*), 2, 1")
    assert lattice.rows(sql) == expected
    assert [column[0] for column in lattice.database.sql(sqlglot.transpile(sql, "spark", "duckdb")[0]).description] == [
        "itemID",
        "sum(qty)",
    ]


# What is refused


REFUSED = {
    "SELECT storeID FROM retail.pos": (UnsupportedClause, "it shows rows, and summaries have groups"),
    "SELECT MEDIAN(qty) FROM retail.pos": (UnsupportedClause, "the aggregate MEDIAN is not supported: it is holistic"),
    "SELECT COUNT(*) FROM retail.pos p LEFT JOIN retail.stores s ON p.storeID = s.storeID": (
        UnsupportedClause,
        "LEFT JOIN is not supported",
    ),
    "SELECT qty, city FROM retail.pos p LEFT JOIN retail.stores s ON p.storeID = s.storeID": (
        UnsupportedClause,
        "it shows rows, and summaries have groups",
    ),
    "SELECT COUNT(*) FROM retail.nothing": (UnknownName, "no source has a table retail.nothing"),
    "SELECT colour, COUNT(*) FROM retail.pos GROUP BY colour": (UnknownName, "no table in FROM has a column colour"),
    "SELECT DISTINCT itemID FROM retail.pos ORDER BY storeID": (
        UnsupportedClause,
        "SELECT DISTINCT is ordered by storeID, which it does not show",
    ),
    "SELECT COUNT(*) FROM retail.pos ORDER BY 2": (DefinitionError, "ORDER BY 2: the columns are numbered from 1 to 1"),
    "SELECT storeID, COUNT(*) FROM retail.pos GROUP BY GROUPING SETS ((storeID), (storeID))": (
        UnsupportedClause,
        "a grouping set is requested twice",
    ),
    "SELECT COUNT(*) FROM retail.stores a JOIN retail.stores b ON a.city = b.city": (
        UnsupportedClause,
        "the query does not join a fact with dimensions along foreign keys",
    ),
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_no_summary_can_answer(sql):
    kind, told = REFUSED[sql]
    with pytest.raises(kind) as caught:
        understood(sql)
    assert caught.value.detail.startswith("the query is over tables of sources, and no summary can answer it: ")
    assert told in caught.value.detail
    assert "line 1" not in caught.value.detail
    assert caught.value.hint


MISSING = {
    "SELECT region, SUM(qty + 1) FROM retail.pos p JOIN retail.stores s ON p.storeID = s.storeID GROUP BY region": (
        "weights",
        ("it has no SUM(qty + 1)",),
    ),
    "SELECT city, storeID, COUNT(DISTINCT qty) FROM retail.pos JOIN retail.stores USING (storeID) GROUP BY ALL": (
        "weights",
        ("it has no COUNT(DISTINCT qty), and does not group by qty",),
    ),
    "SELECT itemID, SUM(qty) FROM retail.pos WHERE price > 1 GROUP BY itemID": (
        "sid",
        ("it does not group by price, which the condition price > 1 is about",),
    ),
}


@pytest.mark.parametrize("sql", MISSING)
def test_what_is_missing_in_the_closest_table(lattice, sql):
    made = understood(sql).tables[0].defined
    assert ways(made, [lattice.stored]) == []
    closest, *_ = unfit(made, [lattice.stored])
    assert (closest.table, closest.missing) == MISSING[sql]


def test_all_that_is_missing_is_told(lattice):
    made = understood("SELECT itemID, MIN(qty), SUM(weight) FROM retail.pos GROUP BY itemID").tables[0].defined
    told = {one.table: one.missing for one in unfit(made, [lattice.stored])}
    assert told == {
        "sid": ("it has no SUM(weight)", "it has no MIN(qty), and does not group by qty"),
        "weights": ("it does not group by itemID", "it has no MIN(qty), and does not group by qty"),
        "by_city": (
            "it joins stores, so that facts without a row there are not in it",
            "it does not group by itemID",
            "it has no SUM(weight)",
            "it has no MIN(qty), and does not group by qty",
        ),
        "by_category": (
            "it joins items, so that facts without a row there are not in it",
            "it does not group by itemID",
            "it has no SUM(weight)",
            "it has no MIN(qty), and does not group by qty",
        ),
        "large": (
            "it has only rows with qty > 2",
            "it has no SUM(weight)",
            "it has no MIN(qty), and does not group by qty",
        ),
    }


def test_a_dimension_that_cannot_be_joined(lattice):
    made = understood(f"SELECT category, MAX(price) FROM {BOTH} GROUP BY category").tables[0].defined
    told = {one.table: one.missing for one in unfit(made, [lattice.stored])}
    assert told["by_city"] == ("it does not group by itemID, which items is joined by",)
    assert told["sid"] == ("it has no MAX(price), and does not group by price",)


# Any query

GROUPS = {
    "retail.pos p": ["p.storeID", "itemID", "date", "MONTH(date)", "p.storeID + itemID"],
    STORES: ["p.storeID", "city", "region", "date", "UPPER(city)"],
    ITEMS: ["storeID", "category", "name", "p.itemID", "date"],
    BOTH: ["city", "region", "category", "date", "i.name"],
}
CALLS = [
    "COUNT(*)", "SUM(qty)", "COUNT(qty)", "AVG(qty)", "SUM(price)", "AVG(price)", "MIN(date)", "MAX(date)",
    "MAX(price)", "COUNT(DISTINCT date)", "SUM(weight)", "COUNT(DISTINCT p.storeID)", "SUM(qty) - COUNT(*)",
    "COUNT(date)",
]  # fmt: skip
CONDITIONS = ["date > DATE '2024-01-01'", "p.storeID < 6", "date IS NULL OR p.storeID = 3", "qty > 2"]
OF_DIMENSIONS = {STORES: ["region = 'west'", "city IS NULL"], ITEMS: ["category <> 'food'"], BOTH: ["cost > 1"]}


def random_query(rng):
    tables = rng.choice(list(GROUPS))
    groups = rng.sample(GROUPS[tables], rng.randint(0, 2))
    calls = rng.sample(CALLS, rng.randint(1, 2))
    items = ", ".join(f"{one} AS c{place}" for place, one in enumerate([*groups, *calls]))
    conditions = rng.sample([*CONDITIONS, *OF_DIMENSIONS.get(tables, ())], rng.choice([0, 0, 1, 1, 2]))
    text = f"SELECT {items} FROM {tables}"
    if conditions:
        text += f" WHERE {' AND '.join(f'({one})' for one in conditions)}"
    if groups:
        text += f" GROUP BY {', '.join(groups)}"
    if rng.random() < 0.3:
        text += f" HAVING {rng.choice(calls)} IS NOT NULL AND COUNT(*) > {rng.randint(0, 5)}"
    return text


@pytest.mark.parametrize("seeds", some([[0, 5], [1, 2, 3, 4, 6, 7]], 1))
def test_any_query_has_the_rows_that_the_base_tables_give(seeds):
    """From every table that can answer, not only from the cheapest."""
    from_tables = set()
    answers = 0
    for seed in seeds:
        rng = seeded(seed)
        lattice = RetailLattice(seed)
        for sql in (random_query(rng) for _ in range(20)):
            query = understood(sql)
            expected = lattice.bag(sql)
            for way in ways(query.tables[0].defined, [lattice.stored]):
                if first_sound([way], lattice.holds):
                    got = lattice.bag(Answer(query, (way,)).sql(lambda _, name: f"`{name}`"))
                    assert got == expected, f"seed {seed}, from {way.table}: {sql}"
                    from_tables.add(way.table)
                    answers += 1
    assert answers > 12.5 * len(seeds)
    assert from_tables >= {"sid", "by_city", "by_category", "weights", "large"}
