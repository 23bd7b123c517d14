"""Tables 1 and 3 of the summary-delta paper: tuples read and written, counted as its appendix A counts them."""

from dataclasses import astuple

import pytest
from retail_paper import NODES, TRUSTING, determined

from viewkeeper.errors import UsageError
from viewkeeper.summary.cube_lattice import Lattice
from viewkeeper.summary.optimize import optimized
from viewkeeper.summary.table_costs import Accesses, TableSize, total, tuple_accesses

FIGURE_9 = optimized(list(NODES.values()), determined, trusting=TRUSTING).lattice
TABLE_3 = {
    "SID_sales": TableSize(rows=100_000, delta=1_000),
    "sCD_sales": TableSize(rows=10_000, delta=100),
    "SiC_sales": TableSize(rows=2_000, delta=1_000),
    "sR_sales": TableSize(rows=10, delta=10),
}
TABLE_1 = {
    "SID_sales": (1_100_000, 11_000, 11_000, 22_000),
    "sCD_sales": (110_000, 10_100, 1_100, 20_200),
    "SiC_sales": (102_000, 11_000, 2_000, 512_000),
    "sR_sales": (2_010, 10_010, 110, 1_010_020),
}


def test_table_1_from_table_3():
    costs = tuple_accesses(FIGURE_9, TABLE_3, fact=1_000_000, changes=10_000)
    assert {name: astuple(cost) for name, cost in costs.items()} == TABLE_1
    assert astuple(total(costs)) == (1_314_010, 42_110, 14_210, 1_564_220)


def test_table_1_the_terms_of_counting():
    """Deltas, deleted groups, the rows of the fact in them, inserted groups: 10, 100, 500 and 100,000 rows a group."""
    costs = tuple_accesses(FIGURE_9, TABLE_3, fact=1_000_000, changes=10_000)
    per_group = {"SID_sales": 10, "sCD_sales": 100, "SiC_sales": 500, "sR_sales": 100_000}
    for name, rows in per_group.items():
        groups = TABLE_3[name].delta
        assert costs[name].counting == 10_000 + groups + groups * rows + groups


def test_each_table_is_computed_from_the_smallest_above_it():
    """sR_sales is recomputed from SiC_sales, and its summary-delta comes from that of sCD_sales."""
    sizes = TABLE_3 | {"SiC_sales": TableSize(rows=20_000, delta=50)}
    cost = tuple_accesses(FIGURE_9, sizes, fact=1_000_000, changes=10_000)["sR_sales"]
    assert cost == Accesses(10_000 + 10, 10_000 + 10, 50 + 10, 10_000 + 10 + 1_000_000 + 10)
    sizes |= {"SID_sales": TableSize(rows=100_000, delta=20)}
    assert tuple_accesses(FIGURE_9, sizes, fact=1_000_000, changes=10_000)["sR_sales"].reuse == 20 + 10, "far above"


def test_groups_that_are_no_whole_number_of_rows():
    cost = tuple_accesses(Lattice(("v",)), {"v": TableSize(rows=3, delta=1)}, fact=10, changes=2)["v"]
    assert cost == Accesses(13, 3, 3, 2 + 1 + 4 + 1)


def test_an_empty_table_has_no_groups_to_recompute():
    cost = tuple_accesses(Lattice(("v",)), {"v": TableSize(rows=0, delta=2)}, fact=10, changes=2)["v"]
    assert cost.counting == 2 + 2 + 0 + 2


def test_every_table_has_a_size():
    some = {name: TABLE_3[name] for name in ("SID_sales", "sCD_sales")}
    with pytest.raises(UsageError, match="the sizes of SiC_sales, sR_sales are not given"):
        tuple_accesses(FIGURE_9, some, fact=1_000_000, changes=10_000)
