"""The retail warehouse of the summary-delta paper: its tables and its two kinds of changes, of any size.

    python benchmarks/retail_data.py [--rows 1000000] [--changes 10000]

Mumick, Quass, Mumick: Maintenance of Data Cubes and Summary Tables in a Warehouse (1997), figure 1 and appendix A.
Sale number i is a function of the seed and i: a change knows the rows that it deletes without reading any. Sales come
in the order of their days, as a warehouse is loaded. A day has a fixed number of slots, each a store and an item, and
every sale falls into one of them: ten sales on average make one row of SID_sales.

Table 3 of the paper is the shape of a million sales. With more there are more stores, with fewer there are fewer days:

         sales  stores  cities  days    SID_sales  sCD_sales  SiC_sales  sR_sales
       100,000     100      50    20       10,000      1,000      2,000        10
     1,000,000     100      50   200      100,000     10,000      2,000        10
    10,000,000   1,000     500   200    1,000,000    100,000     20,000        10
    50,000,000   5,000   2,500   200    5,000,000    500,000    100,000        10

SID_sales has a little less: now and then two slots of a store get the same item. Prints JSON: the actual sizes, how
long everything took, and what the changes meet.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import date
from math import gcd
from pathlib import Path

import pyarrow as pa
from deltalake import convert_to_deltalake
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from retail_views import (
    Tables,
    earliest_sales,
    recompute_each,
    recompute_with_lattice,
    summary_delta_sizes,
    written,
)

from viewkeeper.lake.log.columns import WEIGHT
from viewkeeper.lake.tables.spark_session import local_session

FIRST_DAY = date(1996, 1, 1)
ITEMS, CATEGORIES, REGIONS = 1_000, 20, 10
SALES_PER_DAY, SALES_PER_STORE, SALES_PER_SLOT = 5_000, 10_000, 10
FEWEST_DAYS, MOST_DAYS = 20, 200
FEWEST_STORES, STORES_PER_CITY = 100, 2
FEWEST_ROWS = 2_000
# With two new days, 10,000 insertions make summary-deltas of the sizes in table 3.
NEW_DAYS = 2
# At most one in so many deletions is there to take away an earliest sale.
EARLIEST_PART = 10


@dataclass(frozen=True)
class Retail:
    """A warehouse of so many sales, and up to so many batches of changes.

    A batch is valid whichever of the others were applied before it, of whatever size: no two delete the same sale.
    """

    rows: int
    seed: int = 1
    batches: int = 64
    spark: SparkSession = field(default_factory=local_session, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.rows < FEWEST_ROWS:
            raise ValueError(f"a warehouse of {self.rows:,} sales is too small: take {FEWEST_ROWS:,} or more")

    @property
    def stores(self) -> int:
        return max(FEWEST_STORES, self.rows // SALES_PER_STORE)

    @property
    def cities(self) -> int:
        return self.stores // STORES_PER_CITY

    @property
    def days(self) -> int:
        return min(MOST_DAYS, max(FEWEST_DAYS, self.rows // SALES_PER_DAY))

    @property
    def slots(self) -> int:
        """The slots of one day."""
        return self.rows // (self.days * SALES_PER_SLOT)

    def tables(self) -> Tables:
        """pos, stores and items as Spark computes them; nothing is stored."""
        number = F.col("id")
        city = number % self.cities
        stores = self.spark.range(1, self.stores + 1).select(
            number.cast("int").alias("storeID"),
            F.format_string("city %04d", city).alias("city"),
            F.format_string("region %02d", city % REGIONS).alias("region"),
        )
        items = self.spark.range(1, ITEMS + 1).select(
            number.cast("int").alias("itemID"),
            F.format_string("item %04d", number).alias("name"),
            F.format_string("category %02d", number % CATEGORIES).alias("category"),
            _money(10 * _cost_in_dimes(number)).alias("cost"),
        )
        return {"pos": self._sales(self._stored(self.spark.range(self.rows))), "stores": stores, "items": items}

    def write(self, folder: str | Path) -> Tables:
        """The tables written below this folder, each as Parquet files and as a Delta table of the same files."""
        for name, table in self.tables().items():
            path = f"{folder}/{name}"
            table.write.parquet(path)
            convert_to_deltalake(path)
        return self.read(folder)

    def read(self, folder: str | Path) -> Tables:
        """The tables that were written below this folder."""
        schemas = {name: table.schema for name, table in self.tables().items()}
        return {name: self.spark.read.schema(schema).parquet(f"{folder}/{name}") for name, schema in schemas.items()}

    def update_generating(self, n: int, batch: int = 0) -> pa.Table:
        """n/2 deletions of stored sales, and as many insertions in their days, stores and items.

        Some of the deletions take all sales of a slot on the first day: a group of SiC_sales loses its earliest sale.
        """
        self._check(batch)
        deletions, first_day = n // 2, -(-self.rows // self.days)
        most = len(range(batch, self.rows - first_day, self.batches))
        if deletions > most:
            raise ValueError(
                f"batch {batch} would delete {deletions:,} sales, and its share of {self.rows:,} is {most:,}: take "
                f"fewer changes, more rows, or fewer batches than {self.batches}"
            )
        of_first_day = self._stored(self.spark.range(first_day)).where(F.col("slot") % self.batches == batch)
        earliest = of_first_day.orderBy("slot", "id").limit(deletions // EARLIEST_PART)
        scattered = self._scattered(deletions - earliest.count(), batch, first_day)
        day, slot = self._draw(self.days, "day", F.col("id")), self._draw(self.slots, "slot", F.col("id"))
        inserted = self._new(n - deletions, batch).select("id", day.alias("day"), slot.alias("slot"))
        return self._weighted(earliest.union(scattered), -1).union(self._weighted(inserted, 1)).toArrow()

    def insertion_generating(self, n: int, batch: int = 0) -> pa.Table:
        """n insertions on days after all stored ones that no other batch has; stores and items are the known ones."""
        self._check(batch)
        day = self.days + NEW_DAYS * batch + F.col("id") % NEW_DAYS
        slot = self._draw(max(1, n // (NEW_DAYS * SALES_PER_SLOT)), "slot", F.col("id"))
        inserted = self._new(n, batch).select("id", day.alias("day"), slot.alias("slot"))
        return self._weighted(inserted, 1).toArrow()

    def _check(self, batch: int) -> None:
        if not 0 <= batch < self.batches:
            raise ValueError(
                f"there is no batch {batch} of {self.batches}: count from 0, or make a Retail of more batches"
            )

    def _scattered(self, count: int, batch: int, first_day: int) -> DataFrame:
        """Sales of all days but the first: these are permuted, and each batch has its own places."""
        later = self.rows - first_day
        # Near the golden ratio, any run of multiples is spread evenly; without a common divisor none comes twice.
        step = next(step for step in range(int(0.618 * later), later) if gcd(step, later) == 1)
        place = (F.col("id") * self.batches + batch) * step % later
        return self._stored(self.spark.range(count).select((first_day + place).alias("id")))

    def _new(self, count: int, batch: int) -> DataFrame:
        """Numbers of sales that are not stored: a run, in a place of this batch's own."""
        start = self.rows * (2 + batch)
        return self.spark.range(start, start + count)

    def _stored(self, numbers: DataFrame) -> DataFrame:
        """The day and the slot of stored sales."""
        day = F.expr(f"id * {self.days} DIV {self.rows}")
        return numbers.select("id", day.alias("day"), self._draw(self.slots, "slot", F.col("id")).alias("slot"))

    def _sales(self, placed: DataFrame) -> DataFrame:
        """The rows of pos with these numbers, days and slots."""
        number, day, slot = F.col("id"), F.col("day"), F.col("slot")
        # Slots go to the stores by turns, each day from another store on.
        store = 1 + (slot + 37 * day) % self.stores
        item = 1 + self._draw(ITEMS, "item", day, slot)
        # Twice the cost, less a discount. Quantities and prices are few: pos has duplicates, as in the paper.
        price = _cost_in_dimes(item) * (20 - 2 * self._draw(3, "discount", number))
        return placed.select(
            store.cast("int").alias("storeID"),
            item.cast("int").alias("itemID"),
            F.date_add(F.lit(FIRST_DAY), day.cast("int")).alias("date"),
            (1 + self._draw(10, "quantity", number)).cast("int").alias("qty"),
            _money(price).alias("price"),
        )

    def _weighted(self, placed: DataFrame, weight: int) -> DataFrame:
        return self._sales(placed).withColumn(WEIGHT, F.lit(weight).cast("bigint"))

    def _draw(self, below: int, purpose: str, *of: Column) -> Column:
        """A number from 0 to below this one, fixed by the seed, the purpose and the columns."""
        return F.pmod(F.xxhash64(F.lit(self.seed), F.lit(purpose), *of), F.lit(below))


def _cost_in_dimes(item: Column) -> Column:
    return 10 + item * 79 % 990


def _money(cents: Column) -> Column:
    return (cents.cast("decimal(10,0)") * F.lit(0.01).cast("decimal(2,2)")).cast("decimal(10,2)")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--changes", type=int, default=10_000)
    arguments = options.parse_args()
    retail = Retail(arguments.rows)
    with tempfile.TemporaryDirectory(prefix="viewkeeper-bench-") as home:
        report = measure(retail, Path(home), arguments.changes)
    print(json.dumps(report, indent=2))
    # Not `spark.stop()`: it waits for its shutdown hooks, and there is nothing left to save.
    sys.stdout.flush()
    os._exit(0)


def measure(retail: Retail, home: Path, changes: int) -> dict[str, object]:
    spark, start = retail.spark, time.perf_counter()
    tables = retail.write(home)
    report: dict[str, object] = {"cores": os.cpu_count(), "generate_s": round(time.perf_counter() - start, 1)}
    ways = {"recompute_with_lattice_s": recompute_with_lattice, "recompute_each_s": recompute_each}
    for turn in ("first", "second"):
        for way, recompute in ways.items():
            seconds = recompute(spark, tables, home / way)
            report[f"{way}, {turn} time"] = {name: round(taken, 2) for name, taken in seconds.items()}
    summaries = written(spark, home / "recompute_each_s")
    report["rows"] = {name: table.count() for name, table in {**tables, **summaries}.items()}
    for kind, generate in (("update", retail.update_generating), ("insertion", retail.insertion_generating)):
        start = time.perf_counter()
        changed = generate(changes)
        report[f"{changes} {kind}-generating changes"] = {
            "generate_s": round(time.perf_counter() - start, 2),
            "summary_delta_rows": summary_delta_sizes(spark, tables, changed),
            "groups_that_lose_an_earliest_sale": earliest_sales(spark, tables, changed),
        }
    return report


if __name__ == "__main__":
    main()
