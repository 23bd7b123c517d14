"""Appendix B of the summary-delta paper: what is pushed down a lattice, what stays, and that the queries are right."""

from collections.abc import Sequence

import pytest
from retail_paper import (
    CATALOG,
    NODES,
    TRUSTING,
    attributes,
    determined,
    edge_between,
    node,
    retail,
    table,
    whole_sql,
)

from viewkeeper.errors import DefinitionError
from viewkeeper.sql.relation import Relation
from viewkeeper.summary.cube_lattice import Edge, Lattice
from viewkeeper.summary.derivation import Determined
from viewkeeper.summary.friendly import lattice_friendly
from viewkeeper.summary.hidden_nodes import with_hidden
from viewkeeper.summary.hierarchies import Hierarchy
from viewkeeper.summary.node import Node
from viewkeeper.summary.optimize import Optimized, friendly_lattice, optimized

SID = node("SID", "SELECT storeID, itemID, date, COUNT(*) AS n FROM retail.pos GROUP BY storeID, itemID, date")
PLACES = "retail.pos, retail.stores WHERE pos.storeID = stores.storeID"
GOODS = "retail.pos, retail.items WHERE pos.itemID = items.itemID"
SCD = node("sCD", f"SELECT city, date, COUNT(*) AS n FROM {PLACES} GROUP BY city, date")


def checked(nodes: Sequence[Node], trusting: frozenset[str] = TRUSTING, using: Determined = determined) -> Optimized:
    """The optimized lattice. Over random sales each edge gives what the table below is without it."""
    made = optimized(nodes, using, trusting=trusting)
    with retail(seed=1) as shop:
        shop.run("""
            CREATE TABLE shops AS
                SELECT storeID, 'street ' || storeID % 4 AS street, storeID % 4 % 3 AS cityID FROM stores;
            CREATE TABLE cities AS SELECT DISTINCT cityID, 'country ' || cityID % 2 AS country FROM shops""")
        for name, one in made.nodes.items():
            shop.view(name, whole_sql(edge_between(one), "weighted_pos"))
        for (above, below), query in made.edges.items():
            assert shop.spark(whole_sql(query, above)) == shop.spark(f"SELECT * FROM {below}"), f"{above} to {below}"
    return made


def functions(one: Node) -> list[str]:
    """Its aggregate functions, but for COUNT(*) and the counts beside sums."""
    sums = [f"sum {measure.expression.sql}" for measure in one.measures if measure.kind == "sum"]
    return sorted(sums + [f"{extreme.function} {extreme.value.sql}" for extreme in one.extremes])


def edges(made: Optimized) -> dict[tuple[str, str], set[str]]:
    return {(edge.above, edge.below): set(edge.joins) for edge in made.lattice.edges}


def joined(one: Node) -> list[str]:
    return [dimension.short for dimension in one.dimensions]


# Pushing aggregate functions


def test_a_function_goes_up_to_where_it_can_be_computed():
    sr = node("sR", f"SELECT region, SUM(price) AS total FROM {PLACES} GROUP BY region")
    sic = node("SiC", f"SELECT storeID, category, COUNT(*) AS n FROM {GOODS} GROUP BY storeID, category")
    made = checked([SID, SCD, sic, sr])
    assert edges(made).keys() == {("SID", "sCD"), ("SID", "SiC"), ("sCD", "sR"), ("SiC", "sR")}
    assert len(made.nodes) == 4
    assert all(functions(one) == ["sum `fact.price`"] for one in made.nodes.values())
    assert not functions(SID), "what is requested is as it was"


def test_a_function_that_nothing_below_needs_is_removed():
    s = node("S", "SELECT storeID, SUM(price) AS total FROM retail.pos GROUP BY storeID")
    made = checked([SID, SCD, s])
    friendly = lattice_friendly([SID, SCD, s], determined, trusting=TRUSTING)
    assert all(functions(one) == ["sum `fact.price`"] for one in friendly)
    assert {name: len(functions(one)) for name, one in made.nodes.items()} == {"SID": 1, "sCD": 0, "S": 1}


def test_a_function_of_a_group_by_column_is_computed_on_the_edge():
    """SUM(A * Y), and COUNT(A) where A is not NULL: some of the quantities are."""
    q = node("Q", "SELECT qty, storeID, COUNT(*) AS n FROM retail.pos GROUP BY qty, storeID")
    s = node(
        "S",
        """SELECT storeID, COUNT(qty) AS known, SUM(qty) AS total, SUM(qty * storeID) AS product, MIN(qty) AS least
        FROM retail.pos GROUP BY storeID""",
    )
    made = checked([q, s])
    assert made.nodes["Q"] == q
    [edge] = made.edges.values()
    assert {measure.kind for measure in edge.computed} == {"count", "sum"}
    assert not edge.summed


def test_a_function_of_a_dimension_is_computed_where_its_key_still_is():
    ic = node("iC", f"SELECT category, SUM(cost) AS costs FROM {GOODS} GROUP BY category")
    made = checked([SID, ic])
    assert edges(made) == {("SID", "iC"): {"items"}}
    assert made.nodes["SID"] == SID


def test_a_function_of_a_dimension_that_cannot_be_computed_below_keeps_its_join():
    """The appendix drops it: no definition above asks for items."""
    sr = node(
        "sR",
        """SELECT region, SUM(qty * cost) AS spent FROM retail.pos, retail.stores, retail.items
        WHERE pos.storeID = stores.storeID AND pos.itemID = items.itemID GROUP BY region""",
    )
    made = checked([SID, SCD, sr])
    assert edges(made) == {("SID", "sCD"): {"stores"}, ("sCD", "sR"): set()}
    assert joined(made.nodes["SID"]) == ["items"]
    assert sorted(joined(made.nodes["sCD"])) == ["items", "stores"]
    assert len(functions(made.nodes["SID"])) == 1
    untrusted = checked([SID, SCD, sr], trusting=frozenset())
    assert edges(untrusted) == {("SID", "sCD"): {"stores"}}, "it would lose the sales of unknown items"


def test_what_the_user_asked_for_stays():
    asked = node(
        "Q",
        """SELECT qty, itemID, SUM(qty) AS total, COUNT(qty) AS known, MAX(price) AS dearest
        FROM retail.pos GROUP BY qty, itemID""",
    )
    below = node("I", "SELECT itemID, SUM(qty) AS total FROM retail.pos GROUP BY itemID")
    made = checked([asked, below])
    assert made.nodes["Q"] == asked


def test_min_and_max_are_carried_unless_they_are_over_the_groups():
    sr = node("sR", f"SELECT region, MIN(price) AS least, MAX(date) AS latest FROM {PLACES} GROUP BY region")
    made = checked([SID, SCD, sr])
    assert functions(made.nodes["SID"]) == functions(made.nodes["sCD"]) == ["min `fact.price`"]


def test_a_min_that_a_node_of_its_own_answers_is_not_carried():
    made = table("R", f"SELECT region, MIN(price) AS least FROM {PLACES} GROUP BY region")
    hidden = with_hidden(made, [SID], core_readable=True, recompute=False)
    behind = [one for one, _ in hidden.hidden]
    assert [attributes(one) for one in behind] == [["price", "region"]]
    assert functions(optimized([SID, hidden.node], determined, trusting=TRUSTING).nodes["SID"]) == ["min `fact.price`"]
    assert functions(optimized([SID, hidden.node, *behind], determined, trusting=TRUSTING).nodes["SID"]) == []


def test_a_min_of_a_dimension_that_may_lack_rows_is_not_carried():
    si = node("SI", "SELECT storeID, date, COUNT(*) AS n FROM retail.pos GROUP BY storeID, date")
    s = node("S", f"SELECT storeID, MIN(cost) AS least FROM {GOODS} GROUP BY storeID")
    assert edges(checked([si, s])) == {("SI", "S"): set()}
    assert edges(checked([si, s], trusting=frozenset())) == {}
    assert [functions(one) for one in lattice_friendly([si, s])] == [[], functions(s)]


def test_count_distinct_is_not_computed_from_parts():
    si = node("SI", "SELECT storeID, itemID, COUNT(DISTINCT price) AS prices FROM retail.pos GROUP BY storeID, itemID")
    s = node("S", "SELECT storeID, COUNT(DISTINCT price) AS prices FROM retail.pos GROUP BY storeID")
    assert edges(checked([si, s])) == {}
    with pytest.raises(DefinitionError, match="S does not follow from SI"):
        optimized([si, s], lattice=Lattice(("SI", "S"), (Edge("SI", "S"),)))
    dated = node("D", "SELECT storeID, COUNT(DISTINCT date) AS days FROM retail.pos GROUP BY storeID")
    assert edges(checked([SID, dated])) == {("SID", "D"): set()}


# Pushing joins and projections


def test_a_join_that_nothing_uses_is_dropped_if_every_key_finds_its_row():
    d = node("D", f"SELECT date, COUNT(*) AS n FROM {PLACES} GROUP BY date")
    assert joined(checked([d]).nodes["D"]) == []
    assert joined(checked([d], trusting=frozenset()).nodes["D"]) == ["stores"]
    assert edges(checked([SID, d])) == {("SID", "D"): set()}
    assert edges(checked([SID, d], trusting=frozenset())) == {("SID", "D"): {"stores"}}


def test_a_joined_table_is_not_joined_again():
    """The join is there for the city; with the foreign key at hand, the region could be looked up again."""
    sc = node("SC", f"SELECT pos.storeID AS storeID, city, date, COUNT(*) AS n FROM {PLACES} GROUP BY 1, 2, 3")
    sr = node("sR", f"SELECT region, COUNT(*) AS n FROM {PLACES} GROUP BY region")
    made = checked([sc, sr])
    assert edges(made) == {("SC", "sR"): set()}
    assert attributes(made.nodes["SC"]) == ["city", "date", "region", "storeID"]


def test_an_attribute_is_carried_only_as_far_as_it_is_needed():
    c = node("C", f"SELECT city, COUNT(*) AS n FROM {PLACES} GROUP BY city")
    r = node("R", f"SELECT region, COUNT(*) AS n FROM {PLACES} GROUP BY region")
    made = checked([SID, SCD, c, r])
    assert edges(made) == {("SID", "sCD"): {"stores"}, ("sCD", "C"): set(), ("C", "R"): set()}
    assert {name: attributes(one) for name, one in made.nodes.items()} == {
        "SID": ["date", "itemID", "storeID"],
        "sCD": ["city", "date", "region"],
        "C": ["city", "region"],
        "R": ["region"],
    }
    assert attributes(checked([SID, SCD, c]).nodes["sCD"]) == ["city", "date"]


def test_a_condition_needs_its_attribute_as_a_group_does():
    west = node("West", f"SELECT date, COUNT(*) AS n FROM {PLACES} AND region = 'region 1' GROUP BY date")
    made = checked([SID, SCD, west])
    assert edges(made) == {("SID", "sCD"): {"stores"}, ("sCD", "West"): set()}
    assert attributes(made.nodes["sCD"]) == ["city", "date", "region"]
    both = node(
        "Both", f"SELECT region, COUNT(*) AS n FROM {PLACES} AND region = 'region 1' AND qty > 1 GROUP BY region"
    )
    assert edges(checked([west, both])) == {}, "the quantity is gone"


SHOPS = Relation("retail.shops", "retail", ("storeID", "street", "cityID"), ("INT", "STRING", "INT"), ("storeID",))
CITIES = Relation("retail.cities", "retail", ("cityID", "country"), ("INT", "STRING"), ("cityID",))
SNOWFLAKE = {**CATALOG, SHOPS.name: SHOPS, CITIES.name: CITIES}
SHOP_PLACES = "retail.pos, retail.shops WHERE pos.storeID = shops.storeID"
COUNTRY = node(
    "country",
    """SELECT country, COUNT(*) AS n FROM retail.pos, retail.shops, retail.cities
    WHERE pos.storeID = shops.storeID AND shops.cityID = cities.cityID GROUP BY country""",
    SNOWFLAKE,
)


def test_dimensions_in_a_chain():
    """The country is two joins away from the store, and one from the street, which determines the city."""
    levels = Hierarchy.chain("shops", ("storeID", "street", "cityID"))
    street = node("street", f"SELECT street, COUNT(*) AS n FROM {SHOP_PLACES} GROUP BY street", SNOWFLAKE)

    def streets(dimension, columns):
        return levels.closure(columns) if dimension.short == "shops" and columns else frozenset()

    made = checked([SID, street, COUNTRY], COUNTRY.paths, streets)
    assert edges(made) == {("SID", "street"): {"shops"}, ("street", "country"): {"cities"}}
    assert attributes(made.nodes["street"]) == ["cityID", "street"]
    assert joined(made.nodes["street"]) == ["shops"]
    made = checked([SID, COUNTRY], COUNTRY.paths, streets)
    assert edges(made) == {("SID", "country"): {"shops", "cities"}}


def test_a_table_that_is_joined_along_two_foreign_keys_is_two_dimensions():
    both = "retail.pos, retail.stores a, retail.stores b WHERE pos.storeID = a.storeID AND pos.itemID = b.storeID"
    cities = node("cities2", f"SELECT a.city AS here, b.city AS there, COUNT(*) AS n FROM {both} GROUP BY 1, 2")
    regions = node("regions2", f"SELECT a.region AS here, b.region AS there, COUNT(*) AS n FROM {both} GROUP BY 1, 2")
    made = checked([SID, cities, regions], cities.paths)
    assert edges(made) == {("SID", "cities2"): {"stores"}, ("cities2", "regions2"): set()}
    assert attributes(made.nodes["cities2"]) == ["city", "city", "region", "region"]


def test_a_dimension_is_trusted_only_with_those_on_the_way_to_it():
    [cities] = [one.path for one in COUNTRY.dimensions if one.short == "cities"]
    [friendly, _] = lattice_friendly([SID, COUNTRY], trusting=frozenset({cities}))
    assert joined(friendly) == []
    [friendly, _] = lattice_friendly([SID, COUNTRY], trusting=COUNTRY.paths)
    assert joined(friendly) == ["shops", "cities"]
    assert attributes(friendly) == ["cityID", "country", "date", "itemID", "storeID"]


# The lattice


def test_of_two_tables_that_are_alike_the_earlier_is_above():
    one = node("one", "SELECT storeID, COUNT(*) AS n FROM retail.pos GROUP BY storeID")
    two = node("two", "SELECT storeID, SUM(qty) AS q FROM retail.pos GROUP BY storeID")
    three = node("three", "SELECT storeID, SUM(price) AS p FROM retail.pos GROUP BY storeID")
    assert edges(checked([one, two, three])) == {("one", "two"): set(), ("two", "three"): set()}
    assert edges(checked([three, one, two])) == {("three", "one"): set(), ("one", "two"): set()}


def test_a_chosen_lattice_needs_less():
    tables = list(NODES.values())
    some = Lattice(tuple(NODES), (Edge("SID_sales", "sCD_sales"), Edge("SID_sales", "sR_sales")))
    made = optimized(tables, determined, trusting=TRUSTING, lattice=some)
    assert edges(made) == {("SID_sales", "sCD_sales"): {"stores"}, ("SID_sales", "sR_sales"): {"stores"}}
    assert attributes(made.nodes["sCD_sales"]) == ["city", "date"]


def test_an_edge_that_does_not_follow_is_refused():
    upside_down = Lattice(("sR_sales", "SID_sales"), (Edge("sR_sales", "SID_sales"),))
    with pytest.raises(DefinitionError, match=r"^SID_sales does not follow from sR_sales") as refused:
        optimized(list(NODES.values()), determined, trusting=TRUSTING, lattice=upside_down)
    assert "hierarchy" in refused.value.hint


def test_a_function_that_cannot_be_added_above_is_no_edge():
    s = node("S", f"SELECT storeID, SUM(qty * cost) AS spent FROM {GOODS} GROUP BY storeID")
    with pytest.raises(DefinitionError, match="S does not follow from SID"):
        optimized([SID, s], determined, lattice=Lattice(("SID", "S"), (Edge("SID", "S"),)))


def test_without_a_hierarchy_the_city_does_not_give_the_region():
    placed = friendly_lattice(list(NODES.values()), trusting=TRUSTING)
    assert set(placed.edges) == {
        Edge("SID_sales", "sCD_sales"),
        Edge("SID_sales", "SiC_sales"),
        Edge("SiC_sales", "sR_sales"),
    }


def test_nothing_at_all():
    assert optimized([]).lattice == Lattice(())
