"""The counting algorithm gives the tables that recomputation gives, and replaces every group that a change touches."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from viewkeeper.clock import Random, seeded
from viewkeeper.errors import UsageError
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation
from viewkeeper.summary.content import ArrowContent
from viewkeeper.summary.counting import counting_refresh
from viewkeeper.summary.defined import defined
from viewkeeper.summary.node import Extreme, Node, rest_column
from viewkeeper.summary.refresh import Figures, Refreshed
from viewkeeper.summary.statements import WEIGHT

POS = Relation("shop.pos", "shop", ("store", "item", "day", "qty", "price"), ("INT", "INT", "DATE", "INT", "DOUBLE"))
STORES = Relation("shop.stores", "shop", ("store", "city"), ("INT", "STRING"), ("store",))
RELATIONS = {relation.name: relation for relation in (POS, STORES)}
POS_SCHEMA = pa.schema(
    [("store", pa.int32()), ("item", pa.int32()), ("day", pa.date32()), ("qty", pa.int32()), ("price", pa.float64())]
)
CITIES = pa.table({"store": pa.array([1, 2, 3, 4], pa.int32()), "city": ["Bern", "Bern", None, "Basel"]})
INT, BIGINT = pa.int32(), pa.int64()

TABLES = {
    "groups": "SELECT store, item, COUNT(*) AS n, COUNT(qty) AS k, SUM(qty) AS q FROM {pos} GROUP BY store, item",
    "extremes": """SELECT city, COUNT(*) AS n, MIN(day) AS earliest, MAX(qty) AS most, COUNT(DISTINCT item) AS items
        FROM {pos} AS pos, {stores} AS stores WHERE pos.store = stores.store GROUP BY city""",
    "selected": "SELECT YEAR(day) AS year, COUNT(*) AS n FROM {pos} WHERE item > 1 GROUP BY YEAR(day)",
    "everything": "SELECT COUNT(*) AS n, COUNT(qty) AS k, MIN(qty) AS least FROM {pos}",
}
SCHEMAS = {
    "groups": {"store": INT, "item": INT, "n": BIGINT, "k": BIGINT, "q": BIGINT},
    "extremes": {"city": pa.string(), "n": BIGINT, "earliest": pa.date32(), "most": INT, "items": BIGINT},
    "selected": {"year": INT, "n": BIGINT},
    "everything": {"n": BIGINT, "k": BIGINT, "least": INT},
}


def table(name: str, sql: str) -> Node:
    made = defined(parse_definition(sql.format(pos="shop.pos", stores="shop.stores"), RELATIONS, name=name))
    return replace(made.node, extremes=tuple(Extreme(*one, node="none") for one in made.extremes))


NODES = {name: table(name, sql) for name, sql in TABLES.items()}


def sale(random: Random) -> tuple[Any, ...]:
    """Store 5 is not known; the city of store 3, stores and quantities may be NULL."""
    day = date(random.choice((1995, 1996)), 6, random.randint(1, 3))
    price = random.choice((None, 0.5, 1.25))
    return random.choice((1, 2, 3, 5, None)), random.randint(1, 3), day, random.choice((None, 1, 2, 3)), price


class Shop:
    """Summary tables that are empty at first, and maintained by counting."""

    def __init__(self, spark, nodes=NODES, schemas=SCHEMAS) -> None:
        self.spark, self.nodes = spark, nodes
        self.stores = spark.createDataFrame(CITIES)
        self.sales: Counter[tuple[Any, ...]] = Counter()
        self.contents = {name: ArrowContent(pa.schema(columns).empty_table()) for name, columns in schemas.items()}

    def change(self, *changes: tuple[tuple[Any, ...], int]) -> dict[str, Refreshed]:
        """Change the sales, and refresh all tables."""
        for row, weight in changes:
            self.sales[row] += weight
        assert min(self.sales.values()) >= 0
        pos = self.spark.createDataFrame(rows_of(self.sales.elements()))
        weights = pa.array([weight for _, weight in changes], BIGINT)
        changed = self.spark.createDataFrame(rows_of(row for row, _ in changes).append_column(WEIGHT, weights))
        paths = {path: self.stores for node in self.nodes.values() for path in node.paths}
        nodes = list(self.nodes.values())
        refreshed = counting_refresh(self.spark, nodes, POS, pos, changed, paths, self.contents)
        for name, answer in refreshed.items():
            self.contents[name] = self.contents[name].replaced(answer.before, answer.after, self.nodes[name].keys)
        return refreshed

    def recomputed(self, name: str) -> Counter[tuple[Any, ...]]:
        """The table by another engine."""
        with duckdb.connect() as database:
            database.register("sales", rows_of(self.sales.elements()))
            database.register("cities", CITIES)
            return bag(database.sql(TABLES[name].format(pos="sales", stores="cities")).to_arrow_table())


def rows_of(rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(POS_SCHEMA.names, row, strict=True)) for row in rows], POS_SCHEMA)


def bag(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[name] for name in sorted(row)) for row in rows.to_pylist())


def test_the_same_tables_as_recomputation(spark):
    random = seeded(1)
    shop = Shop(spark)
    sales = [sale(random) for _ in range(40)]
    gone = dict.fromkeys([*sales[:8], *(row for row in sales if row[:2] == (1, 1))])
    batches = [(row, 1) for row in sales], [*((row, -1) for row in gone), *((sale(random), 1) for _ in range(5))]
    for changes in batches:
        old = {name: bag(content.table) for name, content in shop.contents.items()}
        for name, answer in shop.change(*changes).items():
            assert bag(shop.contents[name].table) == shop.recomputed(name), name
            assert bag(shop.contents[name].table) == old[name] - bag(answer.before) + bag(answer.after)
    assert old["groups"].total() > 10


def test_every_group_that_is_touched_is_replaced(spark):
    only = {"groups": NODES["groups"]}
    shop = Shop(spark, only, {"groups": SCHEMAS["groups"]})
    one, two, none, nine, ten = ((store, 1, date(1996, 6, 1), 2, None) for store in (1, 2, None, 9, 10))
    shop.change((one, 1), (two, 1), (ten, 1))
    answer = shop.change((one, -1), (two, 1), (two, -1), (none, 1), (nine, 1), (nine, -1))["groups"]
    assert bag(answer.before) == Counter([row_of(1, 1), row_of(2, 1)])
    assert bag(answer.after) == Counter([row_of(2, 1), row_of(None, 1)]), "two is recomputed, and is what it was"
    assert answer.figures == Figures(inserted=1, updated=1, deleted=1, unchanged=1, recomputed=2)
    assert answer.optimizations == ()


def row_of(store: int | None, n: int) -> tuple[Any, ...]:
    """item, k, n, q, store"""
    return 1, n, n, 2 * n, store


def test_a_floating_sum_is_stored_with_its_rest(spark):
    node = table("floats", "SELECT item, COUNT(*) AS n, SUM(price) AS worth FROM {pos} GROUP BY item")
    [worth] = [column for measure, column in node.measures.items() if measure.floating]
    counts = [column for measure, column in node.measures.items() if measure.kind == "count"]
    floats = [worth, rest_column(worth)]
    schema = {"item": INT, "n": BIGINT, **dict.fromkeys(counts, BIGINT), **dict.fromkeys(floats, pa.float64())}
    shop = Shop(spark, {"floats": node}, {"floats": schema})
    shop.change(((1, 1, None, None, 0.5), 1), ((1, 1, None, None, 1.25), 1), ((1, 2, None, None, None), 1))
    stored = shop.contents["floats"].table.to_pylist()
    assert {row["item"]: (row["n"], row[worth], row[rest_column(worth)]) for row in stored} == {
        1: (2, 1.75, 0.0),
        2: (1, None, 0.0),
    }


def test_a_table_of_another_fact_is_refused(spark):
    other = replace(POS, name="shop.returns")
    nothing = spark.createDataFrame(POS_SCHEMA.empty_table())
    with pytest.raises(UsageError, match=r"groups is no summary of shop\.returns") as refused:
        counting_refresh(spark, [NODES["groups"]], other, nothing, nothing, {}, {})
    assert refused.value.hint == "give the relation shop.pos"
