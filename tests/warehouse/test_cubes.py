"""Cubes over a live warehouse: sizes as the data has them, all tables or none, every point answered."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from retail_shop import HIERARCHIES, RetailShop, bag, random_rows

from viewkeeper import Warehouse
from viewkeeper.errors import DefinitionError, UnknownView, UsageError
from viewkeeper.maintenance import cube_sizes
from viewkeeper.maintenance.explained_query import explain_query
from viewkeeper.maintenance.keeper import Keeper
from viewkeeper.summary.cube import Cube, read_cube
from viewkeeper.summary.star_tables import star_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DIMENSIONS = ["storeID", "city", "region", "category", "date"]
MEASURES = "COUNT(*) AS n, SUM(qty) AS q, MIN(date) AS first"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> RetailShop:
    return RetailShop(tmp_path_factory.mktemp("shop") / "retail.db", random_rows(8))


@pytest.fixture
def lake(shop: RetailShop, tmp_path: Path, spark: "SparkSession") -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "lake", spark) as warehouse:
        warehouse.add_source("retail", shop.url, install=True, hierarchies=HIERARCHIES)
        yield warehouse


def cube_of(lake: Warehouse) -> Cube:
    star = star_tables("retail.pos", lake._keeper.relations())
    return read_cube(star, DIMENSIONS, MEASURES, lake._keeper.summaries.hierarchies.of)


@pytest.mark.parametrize("exact", [True, False])
def test_sizes_are_those_of_the_data(
    exact: bool, lake: Warehouse, shop: RetailShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few groups are estimated without an error, too."""
    if not exact:
        monkeypatch.setattr(cube_sizes, "MOST_EXACT", 0)
    cube = cube_of(lake)
    with lake.snapshot() as snapshot:
        sizes = cube_sizes.cube_sizes(lake._keeper, snapshot, snapshot.sql, cube)
    assert sizes.exact is exact
    expected = {point: sum(shop.bag(cube.select(point)).values()) for point in cube.points}
    assert dict(sizes.rows) == (expected if exact else pytest.approx(expected, rel=0.1))
    # The category joins items, so that the top stands on a table by storeID, itemID and date.
    by_keys = sum(shop.bag("SELECT DISTINCT storeID, itemID, date FROM retail.pos").values())
    assert sizes.hidden == (by_keys if exact else pytest.approx(by_keys, rel=0.1))


def test_every_point_is_answered_from_what_was_chosen(lake: Warehouse, shop: RetailShop) -> None:
    before = lake.status().commit
    choice = lake.cube("retail.pos", DIMENSIONS, MEASURES, count=3)
    assert choice.created
    assert lake.status().commit == before + 1
    assert choice.space == choice.hidden_rows + sum(view.rows or 0 for view in choice.views)
    cube = cube_of(lake)
    with lake.snapshot() as snapshot:
        parts = [explain_query(snapshot, cube.select(point)).parts for point in cube.points]
    # Whatever answers reads no more than the finest table, or the hidden one that it stands on.
    most = max(choice.views[0].rows or 0, choice.hidden_rows)
    chosen = [one for (part,) in parts for one in part.considered if one.chosen]
    assert len(chosen) == len(cube.points)
    assert max(one.rows for one in chosen) <= most
    for point in (cube.points[0], cube.points[5], cube.points[-1]):
        assert bag(lake.sql(cube.select(point)).collect()) == shop.bag(cube.select(point))


@pytest.fixture
def third_fails(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """The third table that is created from now on ends with an error."""

    def fails(error: BaseException) -> None:
        create, calls = Keeper.create, []

        def failing(self: Keeper, sql: str) -> str:
            calls.append(sql)
            if len(calls) == 3:
                raise error
            return create(self, sql)

        monkeypatch.setattr(Keeper, "create", failing)

    return fails


@pytest.mark.parametrize("error", [DefinitionError("the third one fails", ""), KeyboardInterrupt()])
def test_all_tables_or_none(
    lake: Warehouse, third_fails: Callable[[BaseException], None], error: BaseException
) -> None:
    third_fails(error)
    commit = lake.status().commit
    with pytest.raises(type(error)):
        lake.cube("retail.pos", DIMENSIONS, MEASURES, count=3)
    assert lake.views == ()
    assert lake.status().commit == commit


@pytest.mark.parametrize("shared", [False, True], ids=["a lattice of its own", "a lattice with another summary"])
def test_one_cube_in_the_place_of_another(lake: Warehouse, shop: RetailShop, shared: bool) -> None:
    if shared:
        lake.create_view(
            "CREATE MATERIALIZED VIEW by_item AS SELECT itemID, SUM(qty) AS q FROM retail.pos GROUP BY itemID"
        )
    former = lake.cube("retail.pos", ["city", "date"], "SUM(qty) AS q", count=1, name="sales")
    shop.write("UPDATE pos SET qty = qty + 1 WHERE id < 3")
    before = lake.status()
    tables = [view.name for view in former.views]
    new = lake.cube("retail.pos", ["city", "date"], MEASURES, count=2, name="sales", replace=tables)
    after = lake.status()
    assert after.commit == before.commit + 1
    assert {view.name for view in new.views} == set(lake.views) - {"by_item"} >= {tables[0]}
    # Numbers go on: nobody takes a state of the new table for one of the old.
    last = {view.view: view.state for view in before.views}
    assert all(view.state > last[view.view] for view in after.views if view.view in tables)
    shop.write("DELETE FROM pos WHERE id % 41 = 7")
    shop.look_again()
    lake.catch_up()
    for view in lake.views:
        assert lake.audit(view).clean
    assert bag(lake.sql(f"SELECT * FROM {tables[0]}").collect()) == shop.bag(
        "SELECT city, date, COUNT(*) AS n, SUM(qty) AS q, MIN(date) AS first FROM retail.pos p "
        "JOIN retail.stores s ON p.storeID = s.storeID GROUP BY city, date"
    )


def test_a_cube_that_fails_leaves_the_one_before(lake: Warehouse, third_fails: Callable[[BaseException], None]) -> None:
    former = [view.name for view in lake.cube("retail.pos", ["city", "date"], "SUM(qty) AS q", count=1).views]
    rows = {name: bag(lake.sql(f"SELECT * FROM {name}").collect()) for name in former}
    third_fails(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        lake.cube("retail.pos", DIMENSIONS, MEASURES, count=3, replace=former)
    assert set(lake.views) == set(former)
    lake.catch_up()
    for name in former:
        assert bag(lake.sql(f"SELECT * FROM {name}").collect()) == rows[name]
        assert lake.audit(name).clean


def test_only_summaries_are_replaced(lake: Warehouse) -> None:
    lake.create_view("CREATE MATERIALIZED VIEW sales AS SELECT id, qty FROM retail.pos")
    with pytest.raises(UsageError, match="sales is no summary"):
        lake.cube("retail.pos", ["date"], "SUM(qty) AS q", count=1, replace=["sales"])
    with pytest.raises(UnknownView, match="sails"):
        lake.cube("retail.pos", ["date"], "SUM(qty) AS q", count=1, replace=["sails"])


def test_not_while_the_warehouse_is_maintained(lake: Warehouse) -> None:
    with lake._keeper.maintaining(), pytest.raises(UsageError, match="being maintained"):
        lake.cube("retail.pos", ["date"], "SUM(qty) AS q", count=0)
    assert lake.views == ()


def test_refreshed_when_it_is_asked_for(lake: Warehouse) -> None:
    choice = lake.cube("retail.pos", ["city", "date"], "SUM(qty) AS q", count=1, refresh="manual")
    refreshed = {view.view: view.refresh for view in lake.status().views}
    assert {refreshed[view.name] for view in choice.views} == {"manual"}


def test_a_view_as_the_fact(lake: Warehouse) -> None:
    lake.create_view("CREATE MATERIALIZED VIEW sales AS SELECT id, storeID, date, qty FROM retail.pos WHERE qty > 0")
    choice = lake.cube("sales", ["storeID", "date"], "SUM(qty) AS q", count=2)
    assert choice.views[0].name == "sales_storeid_date"
    assert [view.rows for view in choice.views] == [view.estimated_rows for view in choice.views]
