"""Dimension hierarchies: closures, figure 4(b), figure 5 with its 24 nodes, and the join labels of section 5."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.errors import DefinitionError
from viewkeeper.summary.cube_lattice import Edge, Lattice, LatticeNode, cube_lattice, partial
from viewkeeper.summary.hierarchies import Hierarchy, annotated, carried, combined_lattice

STORES = Hierarchy.chain("stores", ("storeID", "city", "region"))
ITEMS = Hierarchy.chain("items", ("itemID", "category"))
TIME = Hierarchy("dates", (("date", "week"), ("date", "month"), ("month", "year")))
FIGURE_5 = combined_lattice(("storeID", "itemID", "date"), (STORES, ITEMS))


def node(*names):
    return LatticeNode(names)


SID = node("storeID", "itemID", "date")
SCD = node("city", "date")
SIC = node("storeID", "category")
SR = node("region")


def labels(lattice):
    return {(edge.above, edge.below): set(edge.joins) for edge in lattice.edges}


def pairs(lattice):
    return {(str(edge.above), str(edge.below)) for edge in lattice.edges}


# Functional dependencies


def test_a_chain_is_a_total_order():
    assert STORES.dependencies == (("storeID", "city"), ("city", "region"))
    assert STORES.attributes == ("storeID", "city", "region")
    assert STORES.keys == ("storeID",)
    assert STORES.looked_up == {"city", "region"}


@pytest.mark.parametrize(
    ("above", "below", "determined"),
    [
        ("date", "year", True),
        ("date", "week", True),
        ("month", "year", True),
        ("week", "week", True),
        ("week", "month", False),
        ("month", "week", False),
        ("week", "year", False),
        ("year", "date", False),
        ("date", "city", False),
    ],
)
def test_determines(above, below, determined):
    assert TIME.determines(above, below) is determined


def test_closure():
    assert STORES.closure({"storeID"}) == {"storeID", "city", "region"}
    assert STORES.closure({"city"}) == {"city", "region"}
    assert TIME.closure({"week", "month"}) == {"week", "month", "year"}
    assert TIME.closure({"city"}) == {"city"}
    assert TIME.closure(()) == frozenset()


@st.composite
def hierarchies(draw):
    possible = list(combinations("abcdef", 2))
    return Hierarchy("h", tuple(draw(st.lists(st.sampled_from(possible), min_size=1))))


@given(hierarchies(), st.frozensets(st.sampled_from("abcdef")), st.frozensets(st.sampled_from("abcdef")))
def test_a_closure_is_one(hierarchy, some, more):
    closed = hierarchy.closure(some)
    assert some <= closed == hierarchy.closure(closed)
    assert all(below in closed for above, below in hierarchy.dependencies if above in closed)
    assert closed <= hierarchy.closure(some | more)
    assert closed == some | {b for b in hierarchy.attributes for a in some if hierarchy.determines(a, b)}


@given(hierarchies())
def test_the_lattice_of_a_hierarchy_is_its_order_with_none_below(hierarchy):
    lattice = hierarchy.lattice()
    assert lattice.bottom == node()
    assert lattice == lattice.reduced()
    for a in hierarchy.attributes:
        below = {node(b) for b in hierarchy.attributes if a != b and hierarchy.determines(a, b)}
        assert lattice.descendants(node(a)) == below | {node()}
        assert set(hierarchy.lattice(a).nodes) == below | {node(a), node()}
        assert hierarchy.lattice(a).top == node(a)


@pytest.mark.parametrize(
    ("dependencies", "circle"),
    [
        ((("a", "b"), ("b", "c"), ("c", "a")), "a → b → c → a"),
        ((("x", "a"), ("a", "b"), ("b", "a")), "a → b → a"),
        ((("a", "a"),), "a → a"),
    ],
)
def test_a_circle_is_refused(dependencies, circle):
    with pytest.raises(DefinitionError) as refused:
        Hierarchy("loops", dependencies)
    assert refused.value.detail == f"hierarchy loops runs in a circle: {circle}"
    assert "keep one of them" in refused.value.hint


@pytest.mark.parametrize("attributes", [(), ("storeID",)])
def test_a_hierarchy_of_one_column_is_refused(attributes):
    with pytest.raises(DefinitionError, match="hierarchy stores is empty") as refused:
        Hierarchy.chain("stores", attributes)
    assert "two columns or more" in refused.value.hint


# Lattices


def test_figure_4b():
    assert pairs(STORES.lattice()) == {("(storeID)", "(city)"), ("(city)", "(region)"), ("(region)", "()")}
    assert pairs(ITEMS.lattice()) == {("(itemID)", "(category)"), ("(category)", "()")}


def test_weeks_and_months_do_not_contain_each_other():
    assert pairs(TIME.lattice()) == {
        ("(date)", "(week)"),
        ("(date)", "(month)"),
        ("(month)", "(year)"),
        ("(week)", "()"),
        ("(year)", "()"),
    }


def test_an_implied_dependency_adds_no_edge():
    said_twice = Hierarchy("stores", (*STORES.dependencies, ("storeID", "region"), ("storeID", "city")))
    assert said_twice.lattice() == STORES.lattice()


def test_figure_5_has_24_nodes():
    stores = ["storeID", "city", "region", None]
    items = ["itemID", "category", None]
    assert len(FIGURE_5.nodes) == 24
    assert set(FIGURE_5.nodes) == {
        node(*filter(None, (store, item, date))) for store in stores for item in items for date in ("date", None)
    }
    assert len(FIGURE_5.edges) == 3 * 3 * 2 + 4 * 2 * 2 + 4 * 3 * 1
    assert FIGURE_5.top == SID
    assert FIGURE_5.bottom == node()
    assert [str(child) for child in FIGURE_5.children(SID)] == [
        "(storeID, itemID)",
        "(storeID, category, date)",
        "(city, itemID, date)",
    ]
    for above in FIGURE_5.nodes:
        closure = STORES.closure(ITEMS.closure(above.attributes))
        below = {other for other in FIGURE_5.nodes if other.attributes <= closure and other != above}
        assert FIGURE_5.descendants(above) == below


def test_without_hierarchies_it_is_the_cube():
    assert combined_lattice(("a", "b", "c"), ()) == cube_lattice(("a", "b", "c"))


def test_a_dimension_may_start_within_a_hierarchy():
    lattice = combined_lattice(("city", "date"), (STORES,))
    assert lattice.top == SCD
    assert len(lattice.nodes) == 3 * 2


def test_two_columns_of_one_hierarchy_are_no_two_dimensions():
    with pytest.raises(DefinitionError, match=r"^storeID and region are both of hierarchy stores") as refused:
        combined_lattice(("storeID", "date", "region"), (STORES,))
    assert "finer one" in refused.value.hint


@pytest.mark.parametrize(
    "use", [lambda both: combined_lattice(("date",), both), lambda both: annotated(FIGURE_5, both)]
)
def test_a_column_is_in_one_hierarchy(use):
    with pytest.raises(DefinitionError, match=r"^region is in two hierarchies, stores and customers") as refused:
        use((STORES, Hierarchy.chain("customers", ("custID", "region"))))
    assert "qualify" in refused.value.hint


# Joins


def test_figure_5_labelled_as_in_example_5_3():
    lattice = annotated(FIGURE_5, (STORES, ITEMS))
    assert lattice.edge(SID, node("city", "itemID", "date")).joins == {"stores"}
    assert lattice.edge(SID, node("storeID", "category", "date")).joins == {"items"}
    assert lattice.edge(SID, node("storeID", "itemID")).joins == frozenset()
    assert lattice.edge(node("city", "itemID", "date"), node("region", "itemID", "date")).joins == frozenset()
    for (above, below), joins in labels(lattice).items():
        first_city = "storeID" in above.attributes and "city" in below.attributes
        first_category = "itemID" in above.attributes and "category" in below.attributes
        assert joins == {name for name, met in (("stores", first_city), ("items", first_category)) if met}
    assert sum(map(bool, labels(lattice).values())) == 3 * 2 + 4 * 2


def test_figure_5_without_carrying_joins_at_every_level():
    lattice = annotated(FIGURE_5, (STORES, ITEMS), carrying=False)
    assert lattice.edge(node("city", "itemID", "date"), node("region", "itemID", "date")).joins == {"stores"}
    assert sum(map(bool, labels(lattice).values())) == 2 * 3 * 2 + 4 * 2


def test_figure_9_and_example_5_4():
    retail = partial(FIGURE_5, (SID, SCD, SIC, SR))
    assert labels(annotated(retail, (STORES, ITEMS))) == {
        (SID, SCD): {"stores"},
        (SID, SIC): {"items"},
        (SCD, SR): set(),
        (SIC, SR): {"stores"},
    }
    assert carried(retail, (STORES, ITEMS)) == {SID: set(), SCD: {"region"}, SIC: set(), SR: set()}


def test_example_5_1_before_the_optimization():
    """The paper lists sR_sales under SID_sales too: an edge that figure 9 leaves to the paths."""
    every = Lattice((SID, SCD, SIC, SR), tuple(Edge(*ends) for ends in combinations((SID, SCD, SR), 2)))
    every = Lattice(every.nodes, (*every.edges, Edge(SID, SIC), Edge(SIC, SR)))
    assert labels(annotated(every, (STORES, ITEMS), carrying=False)) == {
        (SID, SCD): {"stores"},
        (SID, SIC): {"items"},
        (SID, SR): {"stores"},
        (SCD, SR): {"stores"},
        (SIC, SR): {"stores"},
    }


def test_leaving_a_dimension_out_needs_no_join_in_a_partial_lattice():
    """Along the edges of figure 5 it would: from itemID to none the way leads through category."""
    through = partial(annotated(FIGURE_5, (STORES, ITEMS)), (SID, node("date")))
    assert through.edges[0].joins == {"stores", "items"}
    assert annotated(partial(FIGURE_5, (SID, node("date"))), (STORES, ITEMS)).edges[0].joins == frozenset()


def test_only_what_is_needed_below_is_carried():
    lattice = partial(FIGURE_5, (SID, node("city", "category"), node("region", "category"), node("city")))
    assert carried(lattice, (STORES, ITEMS))[node("city", "category")] == {"region"}
    lattice = partial(FIGURE_5, (SID, node("city", "category"), node("city")))
    assert set(carried(lattice, (STORES, ITEMS)).values()) == {frozenset()}


def test_what_is_needed_two_steps_below_is_carried_all_the_way():
    towns = Hierarchy.chain("towns", ("shop", "street", "town", "country"))
    lattice = towns.lattice()
    assert carried(lattice, (towns,)) == {
        node("shop"): set(),
        node("street"): {"town", "country"},
        node("town"): {"country"},
        node("country"): set(),
        node(): set(),
    }


@given(st.sets(st.sampled_from(FIGURE_5.nodes)))
def test_labels_and_carried_columns_are_enough(kept):
    """What a view has or carries, and the columns of the tables on an edge, give all that the view below has."""
    lattice = annotated(partial(FIGURE_5, kept), (STORES, ITEMS))
    extra = carried(lattice, (STORES, ITEMS))
    for above in lattice.nodes:
        own = above.attributes
        assert extra[above] <= STORES.closure(ITEMS.closure(own)) - own
        for edge in lattice.outgoing(above):
            joined = (h for h in (STORES, ITEMS) if h.name in edge.joins)
            brought = frozenset().union(*(h.closure(own & set(h.keys)) for h in joined))
            assert edge.below.attributes | extra[edge.below] <= own | extra[above] | brought


def test_an_edge_that_does_not_follow_is_refused():
    backwards = Lattice((SR, SCD), (Edge(SR, SCD),))
    with pytest.raises(DefinitionError, match="nothing there determines city, date") as refused:
        annotated(backwards, (STORES,))
    assert "(city, date) does not follow from (region)" in refused.value.detail
    assert "dependency" in refused.value.hint
