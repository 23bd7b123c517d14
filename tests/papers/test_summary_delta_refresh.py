"""Figure 2 of the summary-delta paper, the refresh of SID_sales.

The refresh function of figure 8 is tested line by line in tests/summary/test_refresh.py, its MIN and MAX in
test_refresh_extremes.py, and both against recomputation in test_refresh_model.py.
"""

from collections import Counter
from datetime import date

import pytest
from retail_paper import NODES, Retail, Rows, delta_sql, edge_between, retail, small_retail, whole_sql

from viewkeeper.summary.content import ArrowContent
from viewkeeper.summary.node import shape_of
from viewkeeper.summary.refresh import Refreshed, refresh

SID = NODES["SID_sales"]
COLUMNS = ("storeID", "itemID", "date", "TotalCount", "TotalQuantity")
MONDAY, TUESDAY = date(1996, 6, 3), date(1996, 6, 4)


def refreshed(shop: Retail) -> Refreshed:
    """SID_sales over pos_old, refreshed by the summary-delta of the changes."""
    edge = edge_between(SID)
    stored, delta = shop.arrow(whole_sql(edge, "weighted_pos_old")), shop.arrow(delta_sql(edge, "changes"))
    return refresh([shape_of(SID, {})], {SID.name: ArrowContent(stored)}, {SID.name: delta})[SID.name]


def rows(table) -> Rows:
    return Counter(zip(*(table[name].to_pylist() for name in COLUMNS), strict=True))


def test_figure_2_by_hand():
    sold = [(1, 7, MONDAY, 5, 1), (1, 7, MONDAY, 2, 1), (1, 8, MONDAY, 3, 1), (2, 7, TUESDAY, 4, 1)]
    new = [(1, 7, MONDAY, 6, 1), (2, 9, TUESDAY, 1, 1)]
    with small_retail([], [], sold, new, sold[1:3]) as shop:
        answer = refreshed(shop)
    updated, deleted, inserted = answer.figures.updated, answer.figures.deleted, answer.figures.inserted
    assert (updated, deleted, inserted) == (1, 1, 1)
    assert rows(answer.before) == Counter([(1, 7, MONDAY, 2, 7), (1, 8, MONDAY, 1, 3)])
    assert rows(answer.after) == Counter([(1, 7, MONDAY, 2, 11), (2, 9, TUESDAY, 1, 1)])


@pytest.mark.parametrize("seed", range(5))
def test_figure_2(seed):
    """Without NULLs, as the paper has it there."""
    with retail(seed, quantities=(1, 2, 3)) as shop:
        answer = refreshed(shop)
        whole = "SELECT storeID, itemID, date, COUNT(*), SUM(qty)::BIGINT FROM {} GROUP BY storeID, itemID, date"
        old, new = (shop.run(whole.format(pos)) for pos in ("pos_old", "pos"))
        delta = shop.spark(f"SELECT {', '.join(COLUMNS)} FROM ({delta_sql(edge_between(SID), 'changes')})")
    assert old - rows(answer.before) + rows(answer.after) == figure_2(old, delta) == new
    assert answer.figures.deleted
    assert answer.figures.inserted


def figure_2(stored: Rows, delta: Rows) -> Rows:
    """The figure as it stands."""
    table = {row[:3]: row[3:] for row in stored}
    for store, item, day, count, quantity in delta:
        found = table.get((store, item, day))
        if found is None:
            table[store, item, day] = (count, quantity)
        elif count + found[0] == 0:
            del table[store, item, day]
        else:
            table[store, item, day] = (found[0] + count, found[1] + quantity)
    return Counter(group + values for group, values in table.items())
