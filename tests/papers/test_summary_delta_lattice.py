"""Many summary tables by the summary-delta paper: sections 2.2, 3, 5.1 and 5.2, with their figures and examples.

The SQL of the paper runs beside ours, in DuckDB, over the same rows. Figures 4 and 5 as graphs are in
tests/summary/test_cube_lattice.py and test_hierarchies.py, what sections 5.3 to 5.5 make of them in
test_summary_delta_optimized.py.
"""

from itertools import permutations

import pytest
from retail_paper import (
    CATALOG,
    FIGURE_3,
    FIGURE_5,
    NODES,
    TRUSTING,
    attributes,
    delta_sql,
    determined,
    edge_between,
    node,
    planned,
    retail,
    whole_sql,
    with_hidden_nodes,
)

from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.summary_view import Family
from viewkeeper.summary.cube_lattice import Edge, LatticeNode, cube_lattice, partial
from viewkeeper.summary.defined import defined
from viewkeeper.summary.derivation import Derivation, derive
from viewkeeper.summary.friendly import lattice_friendly
from viewkeeper.summary.optimize import friendly_lattice
from viewkeeper.summary.statements import with_extremes

SEEDS = pytest.mark.parametrize("seed", range(3))


# Section 2.2


@SEEDS
def test_figure_3_the_propagate_functions(seed):
    nodes = {one.name: one for one in with_hidden_nodes()}
    with retail(seed) as shop:
        shop.run(FIGURE_3)
        for edge in planned(list(nodes.values())).edges:
            above = "changes" if edge.above.name == "changes" else f"`ours {edge.above.name}`"
            shop.view(f"ours {edge.below.name}", delta_sql(edge, above))
        names = {name: f"`ours {name}`" for name in nodes}
        shop.view("ours SiC_sales with MIN", with_extremes(nodes["SiC_sales"], names["SiC_sales"], names, nodes))
        for ours, columns, paper in (
            ("SID_sales", "storeID, itemID, date, TotalCount, TotalQuantity", "sd_SID_sales"),
            ("sCD_sales", "city, _vk_also_0, date, TotalCount, TotalQuantity", "sd_sCD_sales"),
            ("SiC_sales with MIN", "storeID, category, TotalCount, EarliestSale, TotalQuantity", "sd_SiC_sales"),
            ("sR_sales", "region, TotalCount, TotalQuantity", "sd_sR_sales"),
        ):
            assert shop.spark(f"SELECT {columns} FROM `ours {ours}`") == shop.run(f"SELECT * FROM {paper}")


# Section 3


@SEEDS
def test_example_3_1_a_view_from_the_view_above_it(seed):
    v1 = node("v1", "SELECT storeID, itemID, date, COUNT(*) AS count, SUM(qty) AS qty FROM retail.pos GROUP BY 1, 2, 3")
    si = node("SI", "SELECT storeID, itemID, COUNT(*) AS count, SUM(qty) AS qty FROM retail.pos GROUP BY 1, 2")
    with retail(seed) as shop:
        shop.view("v1", whole_sql(edge_between(v1), "weighted_pos"))
        ours = shop.spark(f"SELECT storeID, itemID, count, qty FROM ({whole_sql(edge_between(si, v1), 'v1')})")
        assert ours == shop.run("SELECT storeID, itemID, SUM(count), SUM(qty) FROM v1 GROUP BY storeID, itemID")
        assert ours == shop.run("SELECT storeID, itemID, COUNT(*), SUM(qty) FROM pos GROUP BY storeID, itemID")


@SEEDS
def test_figure_4a_every_edge_of_the_cube_gives_the_view_below(seed):
    family = parse_definition(
        """SELECT storeID, itemID, date, COUNT(*) AS n, SUM(qty) AS q FROM retail.pos
        GROUP BY CUBE(storeID, itemID, date)""",
        CATALOG,
        name="cube",
    )
    assert isinstance(family, Family)
    views = {LatticeNode(attributes(one)): one for one in (defined(member.view).node for member in family.members)}
    cube = cube_lattice(("storeID", "itemID", "date"))
    assert views.keys() == set(cube.nodes)
    with retail(seed) as shop:
        names = {point: "_".join(("by", *point.names)) for point in cube.nodes}
        for point, name in names.items():
            shop.view(name, whole_sql(edge_between(views[point]), "weighted_pos"))
        for edge in cube.edges:
            query = edge_between(views[edge.below], views[edge.above])
            assert shop.spark(whole_sql(query, names[edge.above])) == shop.spark(f"SELECT * FROM {names[edge.below]}")


# Section 5


def superscript(edge: Derivation) -> set[str]:
    """The dimensions that an edge needs: those that it joins, and those that the table above needs columns of."""
    added = {column.partition(".")[0] for one in edge.extension for column in one.columns}
    return {*edge.joined, *(dimension.short for dimension in edge.below.dimensions if dimension.path in added)}


def precedences(**trust_and_hierarchies: object) -> dict[tuple[str, str], set[str]]:
    pairs = ((below, above) for below, above in permutations(NODES.values(), 2))
    found = ((below, above, derive(below, above, **trust_and_hierarchies)) for below, above in pairs)
    return {(below.name, above.name): superscript(edge) for below, above, edge in found if edge is not None}


def test_example_5_1_precedence_relations():
    assert precedences(trusting=TRUSTING, determined=determined) == {
        ("sCD_sales", "SID_sales"): {"stores"},
        ("SiC_sales", "SID_sales"): {"items"},
        ("sR_sales", "SID_sales"): {"stores"},
        ("sR_sales", "sCD_sales"): {"stores"},
        ("sR_sales", "SiC_sales"): {"stores"},
    }


def test_example_5_1_what_it_rests_on():
    """Region follows from city by the hierarchy alone, and SiC_sales lacks the sales of items that are not known."""
    assert ("sR_sales", "sCD_sales") not in precedences(trusting=TRUSTING)
    assert ("sR_sales", "SiC_sales") not in precedences(determined=determined)


def test_example_5_1_top_and_bottom():
    placed = friendly_lattice(list(NODES.values()), determined, trusting=TRUSTING)
    assert (placed.top, placed.bottom) == ("SID_sales", "sR_sales")


def test_example_5_2_lattice_friendly_tables():
    friendly = {one.name: one for one in lattice_friendly(list(NODES.values()), determined, trusting=TRUSTING)}
    assert {name: attributes(one) for name, one in friendly.items()} == {
        "SID_sales": ["category", "city", "date", "itemID", "region", "storeID"],
        "sCD_sales": ["city", "date", "region"],
        "SiC_sales": ["category", "city", "region", "storeID"],
        "sR_sales": ["region"],
    }
    for one in friendly.values():
        assert {dimension.short for dimension in one.dimensions} == {"stores", "items"}
        assert one.measures.keys() == NODES["SID_sales"].measures.keys(), "COUNT(qty) and SUM(qty)"
        assert [(extreme.function, extreme.value.sql) for extreme in one.extremes] == [("min", "`fact.date`")]
    placed = friendly_lattice(list(NODES.values()), determined, trusting=TRUSTING)
    points = {LatticeNode(attributes(one)): name for name, one in NODES.items()}
    portion = partial(FIGURE_5, points)
    assert set(placed.edges) == {Edge(points[edge.above], points[edge.below]) for edge in portion.edges}, "no joins"


@SEEDS
def test_section_5_2_is_always_correct(seed):
    """Each friendly table comes from each one above it, and shows what the table asked for."""
    friendly = {one.name: one for one in lattice_friendly(list(NODES.values()), determined, trusting=TRUSTING)}
    with retail(seed) as shop:
        for name, one in friendly.items():
            shop.view(name, whole_sql(edge_between(one), "weighted_pos"))
            asked = ", ".join(f"`{column}`" for column in NODES[name].columns)
            assert shop.spark(f"SELECT {asked} FROM {name}") == shop.spark(
                f"SELECT {asked} FROM ({whole_sql(edge_between(NODES[name]), 'weighted_pos')})"
            )
        for edge in friendly_lattice(list(NODES.values()), determined, trusting=TRUSTING).edges:
            query = edge_between(friendly[edge.below], friendly[edge.above])
            assert not query.joins
            assert shop.spark(whole_sql(query, edge.above)) == shop.spark(f"SELECT * FROM {edge.below}")
