"""The retail workload: the shape of table 3, changes that stay valid in any order, and recomputations that agree."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from retail_data import FIRST_DAY, Retail
from retail_views import (
    Tables,
    earliest_sales,
    recompute_each,
    recompute_with_lattice,
    summary_delta_sizes,
    written,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

ROWS = 20_000
BATCHES = 4
# All sales but those of the first day, in so many batches.
MOST = 2 * 19_000 // BATCHES
Bag = Counter[tuple[Any, ...]]


@pytest.fixture(scope="module")
def retail(spark: "SparkSession") -> Retail:
    return Retail(ROWS, batches=BATCHES, spark=spark)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("retail")


@pytest.fixture(scope="module")
def tables(retail: Retail, folder: Path) -> Tables:
    return retail.write(folder)


@pytest.fixture(scope="module")
def pos(tables: Tables) -> Bag:
    return bag(tables["pos"])


def bag(frame: "DataFrame") -> Bag:
    return Counter(tuple(row) for row in frame.collect())


def signed(changes: "pa.Table") -> list[tuple[tuple[Any, ...], int]]:
    rows = zip(*(column.to_pylist() for column in changes.columns), strict=True)
    return [(row[:-1], row[-1]) for row in rows]


def parts(changes: "pa.Table") -> tuple[Bag, Bag]:
    """What is deleted, what is inserted."""
    of_weight = {weight: Counter(row for row, found in signed(changes) if found == weight) for weight in (-1, 1)}
    assert of_weight[-1].total() + of_weight[1].total() == changes.num_rows
    return of_weight[-1], of_weight[1]


# Tables


@pytest.mark.parametrize(
    ("rows", "sid", "scd", "sic"),
    [
        (1_000_000, 100_000, 10_000, 2_000),
        (10_000_000, 1_000_000, 100_000, 20_000),
        (50_000_000, 5_000_000, 500_000, 100_000),
    ],
)
def test_the_shape_has_the_ratios_of_table_3(spark: "SparkSession", rows: int, sid: int, scd: int, sic: int) -> None:
    retail = Retail(rows, spark=spark)
    assert retail.days * retail.slots == sid
    assert retail.days * retail.cities == scd
    assert retail.stores * 20 == sic


def test_the_tables_have_the_columns_of_the_paper(tables: Tables) -> None:
    assert {name: table.schema.simpleString() for name, table in tables.items()} == {
        "pos": "struct<storeID:int,itemID:int,date:date,qty:int,price:decimal(10,2)>",
        "stores": "struct<storeID:int,city:string,region:string>",
        "items": "struct<itemID:int,name:string,category:string,cost:decimal(10,2)>",
    }


def test_the_dimensions_are_hierarchies_that_every_sale_belongs_to(tables: Tables, pos: Bag) -> None:
    stores, items = tables["stores"].collect(), tables["items"].collect()
    assert {row.storeID for row in stores} == set(range(1, 101))
    assert {row.itemID for row in items} == set(range(1, 1001))
    assert len({(row.city, row.region) for row in stores}) == len({row.city for row in stores}) == 50
    assert len({row.region for row in stores}) == 10
    assert len({row.category for row in items}) == 20
    assert {row[0] for row in pos} == {row.storeID for row in stores}
    assert {row[1] for row in pos} <= {row.itemID for row in items}
    assert {row[2] for row in pos} == {FIRST_DAY + timedelta(days=day) for day in range(20)}


def test_ten_sales_make_a_row_of_sid_and_pos_has_duplicates(pos: Bag) -> None:
    assert pos.total() == ROWS
    assert 0.95 * ROWS / 10 <= len({row[:3] for row in pos}) <= ROWS / 10
    assert max(pos.values()) > 1


def test_what_is_written_is_what_is_computed_and_a_delta_table(retail: Retail, tables: Tables, folder: Path) -> None:
    for name, computed in retail.tables().items():
        of_delta = retail.spark.read.parquet(*DeltaTable(str(folder / name)).file_uris())
        assert bag(of_delta) == bag(tables[name]) == bag(computed)


def test_another_seed_gives_other_sales(pos: Bag, spark: "SparkSession") -> None:
    other = bag(Retail(ROWS, seed=2, spark=spark).tables()["pos"])
    assert (pos & other).total() < ROWS / 10


# Changes


def test_update_generating_changes_are_half_deletions_of_stored_sales(retail: Retail, pos: Bag) -> None:
    deleted, inserted = parts(retail.update_generating(1000))
    assert (deleted.total(), inserted.total()) == (500, 500)
    assert deleted <= pos
    for column in range(3):
        assert {row[column] for row in inserted} <= {row[column] for row in pos}
    # Groups of SID_sales that are there: these changes update, they do not insert.
    assert len({row[:3] for row in inserted} - {row[:3] for row in pos}) < 5
    assert len({row[2] for row in deleted}) == retail.days


@pytest.mark.parametrize("sizes", [(MOST, MOST, MOST, MOST), (200, MOST, 1000, 3000)])
def test_batches_stay_valid_in_any_order_and_of_any_size(retail: Retail, pos: Bag, sizes: tuple[int, ...]) -> None:
    left = pos.copy()
    for batch, size in enumerate(sizes):
        deleted, _ = parts(retail.update_generating(size, batch))
        assert deleted.total() == size // 2
        assert deleted <= left
        left -= deleted


def test_a_batch_is_the_same_every_time_and_unlike_the_others(retail: Retail, spark: "SparkSession") -> None:
    again = Retail(ROWS, batches=BATCHES, spark=spark)
    for of, of_again in (
        (retail.update_generating, again.update_generating),
        (retail.insertion_generating, again.insertion_generating),
    ):
        assert Counter(signed(of(1000, 3))) == Counter(signed(of_again(1000, 3)))
        assert (Counter(signed(of(1000, 3))) & Counter(signed(of(1000, 2)))).total() < 50


def test_insertion_generating_changes_have_days_of_their_own(retail: Retail, pos: Bag) -> None:
    seen = {row[2] for row in pos}
    for batch in range(3):
        deleted, inserted = parts(retail.insertion_generating(1000, batch))
        assert (deleted.total(), inserted.total()) == (0, 1000)
        new = {row[2] for row in inserted}
        assert len(new) == 2
        assert min(new) > max(seen)
        seen |= new
        for column in range(2):
            assert {row[column] for row in inserted} <= set(range(1, (100, 1000)[column] + 1))


def test_ten_thousand_insertions_meet_as_many_groups_as_in_table_3(retail: Retail, tables: Tables) -> None:
    sizes = summary_delta_sizes(retail.spark, tables, retail.insertion_generating(10_000))
    assert 980 <= sizes["SID_sales"] <= 1000
    assert sizes["sCD_sales"] == 100
    assert 700 <= sizes["SiC_sales"] <= 1000
    assert sizes["sR_sales"] == 10


def test_earliest_sales_are_hit_and_counted(retail: Retail, tables: Tables, pos: Bag) -> None:
    category = {row.itemID: row.category for row in tables["items"].collect()}

    def earliest(sales: Iterable[tuple[Any, ...]]) -> dict[tuple[int, str], Any]:
        dates = defaultdict(list)
        for store, item, date, *_ in sales:
            dates[store, category[item]].append(date)
        return {group: min(found) for group, found in dates.items()}

    changes = retail.update_generating(1000)
    deleted, inserted = parts(changes)
    before, after, gone = earliest(pos), earliest(pos - deleted + inserted), earliest(deleted)
    hit = {group for group, date in gone.items() if date == before[group]}
    moved = {group for group in hit if after.get(group) != before[group]}
    assert earliest_sales(retail.spark, tables, changes) == {"hit": len(hit), "moved": len(moved)}
    assert len(hit) > len(moved) > 0
    assert earliest_sales(retail.spark, tables, retail.insertion_generating(1000)) == {"hit": 0, "moved": 0}


# Recomputation


def test_both_recomputations_give_the_summary_tables_of_figure_1(
    retail: Retail, tables: Tables, pos: Bag, tmp_path: Path
) -> None:
    stores = {row.storeID: (row.city, row.region) for row in tables["stores"].collect()}
    category = {row.itemID: row.category for row in tables["items"].collect()}
    sales = [(*row, *stores[row[0]], category[row[1]]) for row in pos.elements()]
    group_by = {"SID_sales": (0, 1, 2), "sCD_sales": (5, 2), "SiC_sales": (0, 7), "sR_sales": (6,)}
    expected: dict[str, Bag] = {}
    for name, columns in group_by.items():
        groups = defaultdict(list)
        for sale in sales:
            groups[tuple(sale[column] for column in columns)].append(sale)
        earliest = name == "SiC_sales"
        expected[name] = Counter(
            (*key, len(of), *([min(sale[2] for sale in of)] if earliest else []), sum(sale[3] for sale in of))
            for key, of in groups.items()
        )
    for recompute in (recompute_each, recompute_with_lattice):
        seconds = recompute(retail.spark, tables, tmp_path)
        assert set(seconds) == {*expected, "total"}
        assert {name: bag(table) for name, table in written(retail.spark, tmp_path).items()} == expected


# Refusals


@pytest.mark.parametrize("batch", [-1, BATCHES])
def test_a_batch_that_there_is_not(retail: Retail, batch: int) -> None:
    for of in (retail.update_generating, retail.insertion_generating):
        with pytest.raises(ValueError, match=f"no batch {batch} of {BATCHES}"):
            of(100, batch)


def test_more_deletions_than_a_batch_has(retail: Retail) -> None:
    with pytest.raises(ValueError, match="would delete 4,751 sales, and its share of 20,000 is 4,750"):
        retail.update_generating(MOST + 2)


def test_a_warehouse_that_is_too_small(spark: "SparkSession") -> None:
    with pytest.raises(ValueError, match="1,999 sales is too small: take 2,000 or more"):
        Retail(1999, spark=spark)
