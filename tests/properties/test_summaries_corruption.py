"""A change that deletes a row that never was: caught before anything is published, and told by table and group."""

import pytest
from summary_shop import create_views, open_shop, sales, sell, stores
from summary_worlds import shown_rows

from viewkeeper.errors import CorruptChange
from viewkeeper.messages import position

FIRST = sales((1, "pen", 3), (1, "ink", 5), (2, "pen", None))
ALL = {
    "by_store_and_item": [(1, "ink", 1, 5), (1, "pen", 1, 3), (2, "pen", 1, None)],
    "by_city": [("Bern", 2, 8, 3)],
    "of_all": [(3, 8)],
}
# What is wrong with each change, and where it shows.
CORRUPT = {
    "a group that is not there": (sales((3, "pen", 1)), "store = 3, item = 'pen'"),
    "one row too many": (sales((1, "pen", 3), (1, "pen", 3)), "store = 1, item = 'pen'"),
    "a value where there was none": (sales((2, "pen", 7)), "store = 2, item = 'pen'"),
    "a sum of nothing": (sales((1, "ink", 4)), "store = 1, item = 'ink'"),
}


@pytest.fixture
def shop(tmp_path):
    with open_shop(tmp_path / "lake", FIRST, stores((1, "Bern"))) as wh:
        yield wh


def halts(wh):
    return {view.view: view.halted.reason for view in wh.status().views if view.halted is not None}


@pytest.mark.parametrize("kind", CORRUPT)
def test_a_continuous_lattice_is_halted_as_it_was(shop, kind):
    deleted, where = CORRUPT[kind]
    create_views(shop)
    shop.create_view(
        "CREATE MATERIALIZED VIEW towns TBLPROPERTIES ('group' = 'other') AS SELECT city, COUNT(*) AS n "
        "FROM stores GROUP BY city"
    )
    before = {name: shop.states(name)[-1] for name in ALL}
    sell(shop, 1, -deleted, stores((5, "Bern")))
    told = halts(shop)
    assert set(told) == set(ALL), "all tables of the lattice, and no other"
    for reason in told.values():
        assert "by_store_and_item" in reason
        assert where in reason
    assert {name: shop.states(name)[-1] for name in ALL} == before
    assert {name: shown_rows(shop, name) for name in ALL} == ALL
    assert shown_rows(shop, "towns") == [("Bern", 2)]
    # Others go on, and the halted ones stay as they are.
    sell(shop, 2, sales((1, "pen", 1)), stores((6, "Bern")))
    assert shown_rows(shop, "towns") == [("Bern", 3)]
    assert {name: shown_rows(shop, name) for name in ALL} == ALL


@pytest.mark.parametrize("kind", CORRUPT)
@pytest.mark.parametrize("propagated", [False, True])
def test_a_manual_refresh_raises_and_publishes_nothing(shop, kind, propagated):
    deleted, where = CORRUPT[kind]
    create_views(shop, refresh="manual")
    sell(shop, 1, -deleted)
    if propagated:
        shop.propagate()
    before = {name: shop.states(name)[-1] for name in ALL}
    for _ in range(2):
        with pytest.raises(CorruptChange) as raised:
            shop.refresh("of_all")
        assert "by_store_and_item" in raised.value.detail
        assert where in raised.value.detail
        assert {name: shop.states(name)[-1] for name in ALL} == before
        assert {name: shown_rows(shop, name) for name in ALL} == ALL


def test_a_deleted_value_that_never_was_shows_in_the_table_of_values(shop):
    """COUNT and SUM of the group cannot tell; the hidden node that MIN is looked up in can."""
    sql = "SELECT store, COUNT(*) AS n, SUM(qty) AS total, MIN(qty) AS least FROM sales GROUP BY store"
    shop.create_view(f"CREATE MATERIALIZED VIEW by_store AS {sql}")
    sell(shop, 1, -sales((1, "pen", 4)))
    (reason,) = halts(shop).values()
    assert "_vk_node_by_store_0, group store = 1, _vk_value = 4" in reason
    assert shown_rows(shop, "by_store") == [(1, 2, 8, 3), (2, 1, None, None)]


def test_a_corrupt_change_that_a_later_one_makes_good_is_none(shop):
    """What waits is added up before it is applied."""
    create_views(shop, refresh="manual")
    sell(shop, 1, -sales((3, "pen", 1)))
    shop.propagate()
    sell(shop, 2, sales((3, "pen", 1)))
    shop.refresh()
    assert {name: shown_rows(shop, name) for name in ALL} == ALL
    with shop.snapshot() as snapshot:
        assert snapshot.vector("of_all") == {"load": position(2)}
