"""The four summary tables of the summary-delta paper by recomputation: what maintenance is measured against.

    each on its own:      pos ⟶ SID_sales, pos ⟶ sCD_sales, pos ⟶ SiC_sales, pos ⟶ sR_sales
    with the lattice:     pos ⟶ SID_sales ⟶ sCD_sales ⟶ sR_sales, SID_sales ⟶ SiC_sales

The second is the first column of the paper's table 1. In Spark every result is written as Parquet. On the driver it is
Arrow that recomputes, as it is Arrow that maintains; what comes out is committed to a warehouse, as what is maintained.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

Tables = Mapping[str, DataFrame]

# Figure 1. For Spark: `spark.sql(query, **tables)`; with names of tables in place of {pos}: `query.format(...)`.
FIGURE_1 = {
    "SID_sales": """SELECT storeID, itemID, date, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity
        FROM {pos} GROUP BY storeID, itemID, date""",
    "sCD_sales": """SELECT s.city, p.date, COUNT(*) AS TotalCount, SUM(p.qty) AS TotalQuantity
        FROM {pos} p JOIN {stores} s ON p.storeID = s.storeID GROUP BY s.city, p.date""",
    "SiC_sales": """SELECT p.storeID, i.category, COUNT(*) AS TotalCount, MIN(p.date) AS EarliestSale,
            SUM(p.qty) AS TotalQuantity
        FROM {pos} p JOIN {items} i ON p.itemID = i.itemID GROUP BY p.storeID, i.category""",
    "sR_sales": """SELECT s.region, COUNT(*) AS TotalCount, SUM(p.qty) AS TotalQuantity
        FROM {pos} p JOIN {stores} s ON p.storeID = s.storeID GROUP BY s.region""",
}

# The same tables, each from the one above it. A city has several stores: without DISTINCT its sales would count twice.
LATTICE = {
    "SID_sales": FIGURE_1["SID_sales"],
    "sCD_sales": """SELECT s.city, v.date, SUM(v.TotalCount) AS TotalCount, SUM(v.TotalQuantity) AS TotalQuantity
        FROM {SID_sales} v JOIN {stores} s ON v.storeID = s.storeID GROUP BY s.city, v.date""",
    "SiC_sales": """SELECT v.storeID, i.category, SUM(v.TotalCount) AS TotalCount, MIN(v.date) AS EarliestSale,
            SUM(v.TotalQuantity) AS TotalQuantity
        FROM {SID_sales} v JOIN {items} i ON v.itemID = i.itemID GROUP BY v.storeID, i.category""",
    "sR_sales": """SELECT c.region, SUM(v.TotalCount) AS TotalCount, SUM(v.TotalQuantity) AS TotalQuantity
        FROM {sCD_sales} v JOIN (SELECT DISTINCT city, region FROM {stores}) c ON v.city = c.city GROUP BY c.region""",
}

EARLIEST_SALES = """
    WITH days AS (
        SELECT u.storeID, i.category, u.date, COUNT_IF(u.old) AS before, SUM(u.weight) AS after,
            BOOL_OR(u.weight < 0) AS deleted
        FROM (SELECT storeID, itemID, date, 1 AS weight, TRUE AS old FROM {pos}
              UNION ALL SELECT storeID, itemID, date, _vk_weight, FALSE FROM {changes}) u
        JOIN {items} i ON u.itemID = i.itemID GROUP BY u.storeID, i.category, u.date),
    earliest AS (
        SELECT MIN(date) FILTER (WHERE before > 0) AS before, MIN(date) FILTER (WHERE after > 0) AS after,
            MIN(date) FILTER (WHERE deleted) AS deleted
        FROM days GROUP BY storeID, category)
    SELECT COUNT_IF(deleted = before) AS hit, COUNT_IF(deleted = before AND NOT after <=> before) AS moved
    FROM earliest"""


def recompute_each(spark: SparkSession, tables: Tables, into: str | Path) -> dict[str, float]:
    """Every summary table from pos, written below `into`; the seconds of each, and `total`."""
    return _recompute(spark, FIGURE_1, tables, into)


def recompute_with_lattice(spark: SparkSession, tables: Tables, into: str | Path) -> dict[str, float]:
    """Every summary table from the written one above it, written below `into`; the seconds of each, and `total`."""
    return _recompute(spark, LATTICE, tables, into)


def recomputed_on_driver(plain: Path) -> dict[str, pa.Table]:
    """The same by Arrow, with the lattice: pos is read below `plain`."""
    columns = ["storeID", "itemID", "date", "qty"]
    pos, stores = pq.read_table(plain / "pos", columns=columns), pq.read_table(plain / "stores")
    items = pq.read_table(plain / "items", columns=["itemID", "category"])
    made = {"SID_sales": _added_up(pos, ["storeID", "itemID", "date"], [([], "count_all"), ("qty", "sum")])}
    sums = [("TotalCount", "sum"), ("TotalQuantity", "sum")]
    by_city = made["SID_sales"].join(stores.select(["storeID", "city"]), "storeID", join_type="inner")
    made["sCD_sales"] = _added_up(by_city, ["city", "date"], sums)
    by_category = made["SID_sales"].join(items, "itemID", join_type="inner")
    made["SiC_sales"] = _added_up(by_category, ["storeID", "category"], [sums[0], ("date", "min"), sums[1]])
    regions = stores.select(["city", "region"]).group_by(["city", "region"]).aggregate([])
    made["sR_sales"] = _added_up(made["sCD_sales"].join(regions, "city", join_type="inner"), ["region"], sums)
    return made


def _added_up(rows: pa.Table, groups: list[str], functions: list[Any]) -> pa.Table:
    """The groups with the functions of figure 1, under its names."""
    names = ["EarliestSale" if how == "min" else "TotalQuantity" for _, how in functions]
    names[0] = "TotalCount"
    return rows.group_by(groups).aggregate(functions).rename_columns([*groups, *names])


def _recompute(spark: SparkSession, queries: dict[str, str], tables: Tables, into: str | Path) -> dict[str, float]:
    known, seconds = dict(tables), {}
    # With the settings that the session has: re-planning between stages made nothing faster at 10M sales.
    for name, query in queries.items():
        start = time.perf_counter()
        result, path = spark.sql(query, None, **known), f"{into}/{name}"
        result.write.mode("overwrite").parquet(path)
        known[name] = spark.read.schema(result.schema).parquet(path)
        seconds[name] = time.perf_counter() - start
    return {**seconds, "total": sum(seconds.values())}


def written(spark: SparkSession, into: str | Path) -> Tables:
    """The summary tables that a recomputation wrote below `into`."""
    return {name: spark.read.parquet(f"{into}/{name}") for name in FIGURE_1}


def summary_delta_sizes(spark: SparkSession, tables: Tables, changes: pa.Table) -> dict[str, int]:
    """How many groups of each summary table the changes meet: the last column of table 3."""
    changed = {**tables, "pos": spark.createDataFrame(changes)}
    return {name: spark.sql(query, None, **changed).count() for name, query in FIGURE_1.items()}


def earliest_sales(spark: SparkSession, tables: Tables, changes: pa.Table) -> dict[str, int]:
    """In how many groups of SiC_sales an earliest sale is deleted, `hit`, and how many have another then, `moved`.

    `tables` are those before the changes. A group that disappears has moved too.
    """
    (found,) = spark.sql(EARLIEST_SALES, None, changes=spark.createDataFrame(changes), **tables).collect()
    return {"hit": found.hit, "moved": found.moved}
