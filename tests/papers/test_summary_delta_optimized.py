"""The optimized lattice of the summary-delta paper: sections 5.3 to 5.5, figures 5 and 9, theorem 5.1, appendix B.

The SQL of the paper runs beside ours, in DuckDB, over the same rows.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from retail_paper import (
    CHANGES,
    FIGURE_3,
    FIGURE_5,
    HIERARCHIES,
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

from run_size import examples
from viewkeeper.summary.cube_lattice import Edge, Lattice, LatticeNode, partial
from viewkeeper.summary.hierarchies import annotated, carried
from viewkeeper.summary.node import Node
from viewkeeper.summary.optimize import Optimized, optimized
from viewkeeper.summary.plan import Lineage, Plan

SEEDS = pytest.mark.parametrize("seed", range(3))
FIGURE_9 = Lattice(
    tuple(NODES),
    (
        Edge("SID_sales", "sCD_sales", frozenset({"stores"})),
        Edge("SID_sales", "SiC_sales", frozenset({"items"})),
        Edge("sCD_sales", "sR_sales"),
        Edge("SiC_sales", "sR_sales", frozenset({"stores"})),
    ),
)


def point_name(point: LatticeNode) -> str:
    return "_".join(("by", *point.names))


def point_node(point: LatticeNode) -> Node:
    """The table of a point of figure 5."""
    joined = [h.name for h in HIERARCHIES if point.attributes & h.looked_up]
    keys = {"stores": "pos.storeID = stores.storeID", "items": "pos.itemID = items.itemID"}
    where = f" WHERE {' AND '.join(keys[name] for name in joined)}" if joined else ""
    tables = ", ".join(f"retail.{name}" for name in ("pos", *joined))
    groups = f" GROUP BY {', '.join(point.names)}" if point.names else ""
    items = ", ".join((*point.names, "COUNT(*) AS n", "SUM(qty) AS q"))
    return node(point_name(point), f"SELECT {items} FROM {tables}{where}{groups}")


POINTS = {point: point_node(point) for point in FIGURE_5.nodes}


def optimized_points(lattice: Lattice[LatticeNode]) -> Optimized:
    return optimized([POINTS[point] for point in lattice.nodes], determined, trusting=TRUSTING)


@settings(max_examples=examples(40))
@given(st.sets(st.sampled_from(FIGURE_5.nodes)).map(lambda kept: partial(FIGURE_5, kept)) | st.just(FIGURE_5))
def test_example_5_3_joins_pushed_as_far_down_as_possible(lattice):
    """Tables optimized by appendix B are what figure 5 and its partial lattices have over the names of columns."""
    made = optimized_points(lattice)
    labelled = annotated(lattice, HIERARCHIES)
    assert set(made.lattice.edges) == {
        Edge(point_name(edge.above), point_name(edge.below), edge.joins) for edge in labelled.edges
    }
    for point, more in carried(lattice, HIERARCHIES).items():
        assert attributes(made.nodes[point_name(point)]) == sorted(point.attributes | more)


def test_figure_5_every_edge_gives_the_view_below():
    made = optimized_points(FIGURE_5)
    with retail(seed=1) as shop:
        for name, one in made.nodes.items():
            shop.view(name, whole_sql(edge_between(one), "weighted_pos"))
        for (above, below), query in made.edges.items():
            assert shop.spark(whole_sql(query, above)) == shop.spark(f"SELECT * FROM {below}")


def test_figure_9_and_example_5_4_the_optimized_lattice():
    made = optimized(list(NODES.values()), determined, trusting=TRUSTING)
    assert made.lattice == FIGURE_9
    assert {name: attributes(one) for name, one in made.nodes.items()} == {
        "SID_sales": ["date", "itemID", "storeID"],
        "sCD_sales": ["city", "date", "region"],
        "SiC_sales": ["category", "storeID"],
        "sR_sales": ["region"],
    }
    assert {name: [d.short for d in one.dimensions] for name, one in made.nodes.items()} == {
        "SID_sales": [],
        "sCD_sales": ["stores"],
        "SiC_sales": ["items"],
        "sR_sales": ["stores"],
    }
    assert {name for name, one in made.nodes.items() if one.extremes} == {"SiC_sales"}, "MIN(date)"


@SEEDS
def test_example_5_5_the_fourth_edge(seed):
    fourth = optimized(list(NODES.values()), determined, trusting=TRUSTING).edges["SiC_sales", "sR_sales"]
    with retail(seed) as shop:
        shop.run(FIGURE_3)
        paper = shop.run("""
            SELECT region, sum(sd_Count) AS sd_Count, sum(sd_Quantity) AS sd_Quantity
            FROM sd_SiC_sales, stores WHERE sd_SiC_sales.storeID = stores.storeID GROUP BY region""")
        shop.view("ours", delta_sql(edge_between(fourth.above), "changes"))
        assert shop.spark(f"SELECT region, TotalCount, TotalQuantity FROM ({delta_sql(fourth, 'ours')})") == paper
        assert paper == shop.run("SELECT * FROM sd_sR_sales"), "the same along the other edge"


@pytest.mark.parametrize("edge", FIGURE_9.edges, ids=lambda edge: f"{edge.above} to {edge.below}")
def test_theorem_5_1_the_d_lattice_is_the_v_lattice(edge):
    """The query of an edge is the same for tables and summary-deltas, and right for both."""
    query = optimized(list(NODES.values()), determined, trusting=TRUSTING).edges[edge.above, edge.below]
    assert delta_sql(query, "sd") == whole_sql(query, "v").replace("FROM v ", "FROM sd ")
    for seed in range(5):
        with retail(seed) as shop:
            for name, rows in (("v", "weighted_pos"), ("sd", "changes")):
                shop.view(name, whole_sql(edge_between(query.above), rows))
                assert shop.spark(whole_sql(query, name)) == shop.spark(whole_sql(edge_between(query.below), rows))


# The planner of the warehouse


def chosen(plan: Plan) -> Lattice[str]:
    """The edges of a plan, but for those from the changes."""
    edges = [
        Edge(edge.above.name, edge.below.name, frozenset(edge.joined))
        for edge in plan.edges
        if edge.above.name != CHANGES.name
    ]
    return Lattice(tuple(edge.below.name for edge in plan.edges), tuple(edges))


@pytest.mark.parametrize("trusting", [TRUSTING, frozenset()], ids=["trusting", "not trusting"])
def test_the_planner_takes_edges_of_figure_9_and_carries_its_attributes(trusting):
    plan = planned(list(NODES.values()))
    made = optimized(list(NODES.values()), determined, trusting=trusting)
    assert set(chosen(plan).edges) == set(FIGURE_9.edges) - {FIGURE_9.edges[3]}
    assert set(chosen(plan).edges) <= set(made.lattice.edges)
    assert attributes(plan.edge("sCD_sales").below) == ["city", "date", "region"]
    for edge in plan.edges:
        assert edge.below.groups == made.nodes[edge.below.name].groups
        assert edge.below.measures == made.nodes[edge.below.name].measures


def assert_optimized(plan: Plan, nodes: list[Node]) -> None:
    """Along the edges of the plan, appendix B gives the joins and the columns that the plan has."""
    made = optimized(nodes, determined, lattice=chosen(plan))
    assert made.lattice == chosen(plan)
    for edge in plan.edges:
        assert edge.below.columns == made.nodes[edge.below.name].columns


def test_the_planner_optimizes_the_tables_of_a_warehouse():
    nodes = with_hidden_nodes()
    assert_optimized(planned(nodes), nodes)
    assert len(nodes) == 5


@settings(max_examples=examples(50))
@given(st.sets(st.sampled_from(FIGURE_5.nodes), min_size=2), st.randoms(use_true_random=False))
def test_the_planner_optimizes_any_part_of_figure_5(points, random):
    nodes = [POINTS[point] for point in FIGURE_5.nodes if point in points]
    sizes = {one.name: random.randint(1, 100) for one in nodes}
    plan = Lineage(nodes, CHANGES, core_readable=True, determined=determined).plan(lambda name: sizes.get(name, 1_000))
    assert_optimized(plan, nodes)
