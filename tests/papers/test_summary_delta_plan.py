"""What a summary-delta is computed from: what others carry for it, and which foreign keys it relies on."""

from dataclasses import replace

import pytest
from retail_paper import CHANGES, NODES, TABLE_3, TRUSTING, determined, node

from viewkeeper.summary.derivation import ALSO
from viewkeeper.summary.node import Node
from viewkeeper.summary.plan import Lineage, Plan

GOODS = "retail.pos, retail.items WHERE pos.itemID = items.itemID"
SID = NODES["SID_sales"]
S = node("S", "SELECT storeID, SUM(price) AS total FROM retail.pos GROUP BY storeID")
SI = node("SI", f"SELECT pos.storeID AS s, category, SUM(qty) AS q, COUNT(*) AS n FROM {GOODS} GROUP BY 1, 2")
C = node("C", f"SELECT category, SUM(price) AS total FROM {GOODS} GROUP BY category")
SIZES = {**TABLE_3, "S": 100, "SI": 50, "C": 20}


def planned(*nodes: Node, facts_only: bool = True, relied: frozenset[str] = frozenset(), relying: bool = True) -> Plan:
    made = [replace(one, extremes=()) for one in nodes]
    lineage = Lineage(made, CHANGES, core_readable=False, determined=determined, facts_only=facts_only, relied=relied)
    return lineage.plan(lambda name: SIZES[name], relying=relying)


def parents(plan: Plan) -> dict[str, str]:
    return {edge.below.name: edge.above.name for edge in plan.edges}


def added(one: Node) -> dict[str, str]:
    """What a summary-delta has beside the columns of its table."""
    functions = {column: f"{measure.kind} {measure.expression.sql}" for measure, column in one.measures.items()}
    columns = {**{column: group.sql for group, column in one.groups.items()}, **functions}
    return {column: meaning for column, meaning in columns.items() if column.startswith(ALSO)}


def test_a_function_is_carried_by_the_summary_delta_above():
    plan = planned(SID, S)
    assert parents(plan) == {"SID_sales": "changes", "S": "SID_sales"}
    assert list(added(plan.edge("SID_sales").below).values()) == ["count `fact.price`", "sum `fact.price`"]
    assert added(plan.edge("S").below) == {}
    [first, second] = plan.considered["S"]
    assert (first.above, second.above) == ("SID_sales", "changes")
    assert TABLE_3["SID_sales"] < first.cost < second.cost == TABLE_3["changes"]


def test_nothing_is_carried_where_that_costs_more_than_the_changes():
    sums = ", ".join(f"SUM(price + {n}) AS s{n}" for n in range(9))
    many = node("S", f"SELECT storeID, {sums} FROM retail.pos GROUP BY storeID")
    plan = planned(SID, many)
    assert parents(plan)["S"] == "changes"
    assert added(plan.edge("SID_sales").below) == {}


def test_functions_are_carried_through_an_edge_that_joins_only_while_no_dimension_changes():
    plan = planned(SID, SI, C)
    assert parents(plan)["C"] == "SI"
    assert set(added(plan.edge("SID_sales").below).values()) == set(added(plan.edge("SI").below).values())
    moving = planned(SID, SI, replace(C, measures=SI.measures), facts_only=False)
    assert parents(moving)["C"] == "SI", "what the table has itself is there when a dimension changes too"
    with_root = node("R", "SELECT itemID, SUM(price) AS total FROM retail.pos GROUP BY itemID")
    SIZES["R"] = 900
    moving = planned(SID, with_root, SI, C, facts_only=False)
    assert parents(moving)["C"] == "R"
    assert all(not added(edge.below) for edge in moving.edges)


def test_what_the_tables_have_themselves_is_never_taken_away():
    for plan in (planned(*NODES.values()), planned(*NODES.values(), relied=TRUSTING)):
        for edge in plan.edges:
            asked = NODES[edge.below.name]
            assert asked.columns == tuple(one for one in edge.below.columns if not one.startswith(ALSO))
            assert edge.below.dimensions == asked.dimensions


@pytest.mark.parametrize("relying", [True, False])
def test_the_fourth_edge_of_figure_9_by_a_foreign_key(relying: bool):
    """sR_sales joins stores, SiC_sales items: from it only if every sale finds its item."""
    sizes = {**SIZES, "SiC_sales": 2, "sCD_sales": 900}
    nodes = [replace(one, extremes=()) for one in NODES.values()]
    relied = frozenset(path for path in TRUSTING if path.endswith("items"))
    lineage = Lineage(nodes, CHANGES, core_readable=False, determined=determined, facts_only=True, relied=relied)
    plan = lineage.plan(lambda name: sizes[name], relying=relying)
    assert parents(plan)["sR_sales"] == ("SiC_sales" if relying else "sCD_sales")
    assert plan.relied == (relied if relying else frozenset())
    if relying:
        assert plan.edge("sR_sales").joined == ("stores",)
    moving = Lineage(nodes, CHANGES, core_readable=False, determined=determined, relied=relied)
    assert moving.plan(lambda name: sizes[name]).relied == frozenset(), "not when a dimension changes"
