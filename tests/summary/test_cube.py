"""Cubes: what a column means, which points there are, which of them come from which."""

import pytest
from lattice_in_duckdb import CITIES, RELATIONS, determined, relation

from viewkeeper.errors import DefinitionError, SyntaxProblem, UnknownName, UnsupportedClause, UsageError
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.summary.cube import read_cube
from viewkeeper.summary.cube_lattice import LatticeNode
from viewkeeper.summary.defined import defined
from viewkeeper.summary.derivation import derive
from viewkeeper.summary.hierarchies import Hierarchy, combined_lattice
from viewkeeper.summary.star_tables import StarColumn, star_tables

ALL = ["storeID", "city", "region", "itemID", "category", "date"]
MEASURES = "COUNT(*) AS n, SUM(qty) AS q"


def hierarchy(name):
    return CITIES if name == "retail.stores" else None


def no_hierarchy(name):
    return None


def cube_of(dimensions=ALL, measures=MEASURES, hierarchy=hierarchy):
    return read_cube(star_tables("retail.pos", RELATIONS), dimensions, measures, hierarchy)


def node(*names):
    return LatticeNode(names)


# What a name means


def tables(*extra, foreign_keys=(), fact="retail.pos"):
    return star_tables(fact, {**RELATIONS, **{one.name: one for one in extra}}, foreign_keys)


def test_columns_of_the_fact_and_of_the_tables_that_it_refers_to():
    star = tables()
    assert star.find("storeID") == StarColumn("pos", "storeID")
    assert star.find("STOREID") == StarColumn("pos", "storeID")
    assert star.find("city") == StarColumn("stores", "city")
    assert star.find("stores.storeid") == StarColumn("stores", "storeID")
    assert star.find("retail.items.cost") == StarColumn("items", "cost")
    assert star.tables["stores"].on == (("storeID", "storeID"),)


def test_a_declared_foreign_key_goes_before_equal_names():
    people = relation("crm.people", "id", id="BIGINT", town="STRING")
    orders = relation("shop.orders", "id", id="BIGINT", buyer="BIGINT")
    star = tables(people, orders, fact="shop.orders", foreign_keys=[("shop.orders.buyer", "crm.people.id")])
    assert star.tables["people"].on == (("buyer", "id"),)
    assert star.find("town") == StarColumn("people", "town")


def test_keys_that_are_both_called_id_say_nothing():
    people = relation("crm.people", "id", id="BIGINT", town="STRING")
    star = tables(people, relation("shop.orders", "id", id="BIGINT", buyer="BIGINT"), fact="shop.orders")
    with pytest.raises(UnknownName, match=r"shop.orders has no column town"):
        star.find("town")


def test_a_key_of_several_columns():
    prices = relation("retail.prices", None, storeID="INT", itemID="INT", listed="INT")
    prices = type(prices)(prices.name, prices.source, prices.columns, prices.types, ("storeID", "itemID"))
    star = tables(prices)
    assert star.tables["prices"].on == (("storeID", "storeID"), ("itemID", "itemID"))


def test_tables_on_the_way_to_others():
    regions = relation("retail.regions", "region", region="STRING", country="STRING")
    star = tables(regions)
    assert (star.tables["regions"].before, star.tables["regions"].on) == ("stores", (("region", "region"),))
    assert star.needed(["regions"]) == {"stores", "regions"}
    assert star.needed(["pos"]) == frozenset()


def test_two_ways_to_a_table_are_refused_when_it_matters():
    people = relation("crm.people", "id", id="BIGINT", town="STRING")
    orders = relation("shop.orders", "id", id="BIGINT", buyer="BIGINT", seller="BIGINT")
    keys = [("shop.orders.buyer", "crm.people.id"), ("shop.orders.seller", "crm.people.id")]
    star = tables(people, orders, fact="shop.orders", foreign_keys=keys)
    assert star.find("buyer") == StarColumn("orders", "buyer")
    with pytest.raises(
        DefinitionError, match=r"shop.orders refers to crm.people in two ways, and town may be in either"
    ):
        star.find("town")


@pytest.mark.parametrize(
    ("name", "told", "hint"),
    [
        ("regoin", "retail.pos has no column regoin, nor has a table that it refers to", "did you mean region?"),
        ("stores.cty", "retail.stores has no column cty", "did you mean city?"),
        ("shops.city", "retail.pos does not refer to a table shops", "or declare the foreign key with the source"),
    ],
)
def test_names_that_mean_nothing(name, told, hint):
    with pytest.raises(UnknownName) as caught:
        tables().find(name)
    assert told in caught.value.detail
    assert hint in caught.value.hint


def test_a_name_that_means_two_columns():
    star = tables(relation("retail.people", "itemID", itemID="INT", name="STRING"))
    with pytest.raises(UnknownName, match="several tables have a column name") as caught:
        star.find("name")
    assert (caught.value.hint, caught.value.code) == ("write items.name or people.name", "ambiguous-name")
    assert star.find("people.name") == StarColumn("people", "name")


def test_a_name_that_means_columns_of_two_tables_of_one_name():
    star = tables(relation("other.items", "itemID", itemID="INT", name="STRING"))
    for name in ("name", "items.name"):
        with pytest.raises(UnknownName) as caught:
            star.find(name)
        assert caught.value.hint == "write retail.items.name or other.items.name"
    assert star.find("other.items.name") == StarColumn("items_", "name")


def test_an_unknown_fact():
    with pytest.raises(UnknownName, match=r"no source has a table retail.poss") as caught:
        star_tables("retail.poss", RELATIONS)
    assert "retail.pos" in caught.value.hint


# Points


def test_the_points_of_figure_5():
    cube = cube_of(hierarchy=lambda name: CITIES if name == "retail.stores" else None)
    items = Hierarchy.chain("items", ("itemID", "category"))
    figure_5 = combined_lattice(["storeID", "itemID", "date"], [CITIES, items])
    assert set(cube.points) == set(figure_5.nodes)
    assert len(cube.points) == 24
    assert cube.top == node("storeID", "itemID", "date")
    assert cube.lattice.top == cube.top


def test_columns_that_nothing_orders_are_grouped_together_too():
    cube = cube_of(["storeID", "city", "region"], hierarchy=no_hierarchy)
    assert set(cube.points) == {node("storeID"), node("city", "region"), node("city"), node("region"), node()}
    assert cube.lattice.ancestors(node("region")) == {node("storeID"), node("city", "region")}


def test_only_the_levels_that_are_named():
    assert set(cube_of(["storeID", "region"]).points) == {node("storeID"), node("region"), node()}
    assert cube_of(["city", "region"]).top == node("city")


def test_a_point_without_stores_does_not_come_from_one_by_city():
    """A fact whose store is unknown is in the one and not in the other."""
    lattice = cube_of().lattice
    assert node("city", "date") not in lattice.ancestors(node("date"))
    assert node("storeID", "date") in lattice.ancestors(node("date"))
    assert node("city", "date") in lattice.ancestors(node("region"))


@pytest.mark.parametrize(
    ("dimensions", "measures", "declared"),
    [
        (ALL, MEASURES, hierarchy),
        (ALL, MEASURES, no_hierarchy),
        (["stores.storeID", "city", "region", "date"], MEASURES, hierarchy),
        (["city", "name", "category", "storeID"], "SUM(qty * cost) AS c", hierarchy),
    ],
)
def test_points_come_from_each_other_as_tables_are_derived(dimensions, measures, declared):
    cube = cube_of(dimensions, measures, declared)
    nodes = {point: defined(parse_definition(cube.create(point, "v", {}), RELATIONS)).node for point in cube.points}
    given = determined if declared is hierarchy else None
    for above in cube.points[1:]:
        for below in cube.points:
            derived = below == above or below in cube.lattice.descendants(above)
            mutual = above in cube.lattice.descendants(below)
            assert derived or mutual or derive(nodes[below], nodes[above], determined=given) is None, (above, below)
            assert not derived or derive(nodes[below], nodes[above], determined=given) is not None, (above, below)


def test_too_many_points():
    names = [f"c{place}" for place in range(10)]
    wide = relation("retail.wide", None, **dict.fromkeys(names, "INT"))
    with pytest.raises(UsageError, match="the cube would have 1,024 points"):
        _ = read_cube(star_tables("retail.wide", {"retail.wide": wide}), names, "COUNT(*) AS n", no_hierarchy).points


# Tables


def test_the_table_of_a_point():
    cube = cube_of(measures="COUNT(*) AS n, MAX(price) AS highest")
    point = node("region", "date")
    assert cube.name(point, "Sales") == "sales_region_date"
    assert cube.name(node(), "sales") == "sales_total"
    sql = cube.create(point, "sales", {"refresh": "every 5 minutes"})
    view = parse_definition(sql, RELATIONS)
    assert (view.name, dict(view.properties)) == ("sales_region_date", {"refresh": "every 5 minutes"})
    assert view.columns == ("region", "date", "n", "highest")
    made = defined(view).node
    assert [one.short for one in made.dimensions] == ["stores"]
    assert defined(parse_definition(cube.create(cube.top, "sales", {}), RELATIONS)).node.dimensions == ()


def test_two_columns_of_the_same_name_are_called_after_their_tables():
    cube = cube_of(["pos.storeID", "stores.storeID", "date"])
    assert set(cube.attributes) == {"pos_storeID", "stores_storeID", "date"}


def test_what_the_hidden_table_over_the_fact_groups_by():
    assert cube_of().of_hidden == ()
    assert set(cube_of(["city", "date"]).of_hidden) == {"storeID", "date"}
    assert set(cube_of(["city"], "SUM(qty * cost) AS c, SUM(price) AS p").of_hidden) == {"storeID", "itemID", "qty"}


@pytest.mark.parametrize(
    ("measures", "kind", "told"),
    [
        ("qty AS q", DefinitionError, "the measure qty AS q is no aggregate"),
        ("SUM(qty)", DefinitionError, "the measure SUM(qty) has no name"),
        ("SUM(qyt) AS q", UnknownName, "retail.pos has no column qyt"),
        ("SUM(qty AS q", SyntaxProblem, "the measures are not understood: SUM(qty AS q"),
        ("COUNT(*) AS n FROM retail.pos", UnsupportedClause, "the measures are more than a list"),
    ],
)
def test_what_is_no_measure(measures, kind, told):
    with pytest.raises(kind) as caught:
        cube_of(measures=measures)
    assert told in caught.value.detail
    assert caught.value.hint


def test_dimensions_that_are_none():
    with pytest.raises(UsageError, match="at least one dimension"):
        cube_of([])
    with pytest.raises(UsageError, match="STOREID is named twice"):
        cube_of(["storeID", "STOREID"])
