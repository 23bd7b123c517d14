"""Queries over tables of sources on a live warehouse: rows, names and types, at the state of the lattice."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from retail_shop import BOTH, HIERARCHIES, ITEMS, STORES, SUMMARIES, RetailShop, bag, random_rows

from run_size import some
from viewkeeper import Warehouse
from viewkeeper.clock import Random, seeded
from viewkeeper.errors import NotAnswered, SparkMissing, UnknownName, UnsupportedClause, UsageError
from viewkeeper.maintenance.explained_query import explain_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def lake_over(shop: RetailShop, path: Path, spark: "SparkSession", properties: str = "") -> Warehouse:
    warehouse = Warehouse.open(path, spark)
    warehouse.add_source("retail", shop.url, install=True, hierarchies=HIERARCHIES)
    for name, sql in SUMMARIES.items():
        warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} {properties} AS {sql}")
    return warehouse


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> RetailShop:
    return RetailShop(tmp_path_factory.mktemp("shop") / "retail.db", random_rows(7))


@pytest.fixture(scope="module")
def lake(shop: RetailShop, place: Path, spark: "SparkSession") -> Any:
    """A warehouse that nobody writes to."""
    with lake_over(shop, place / "lake", spark) as warehouse:
        yield warehouse


# Rows, names and types

QUERIES = [
    f"SELECT region, SUM(qty) AS q FROM {STORES} GROUP BY region",
    "SELECT storeID, itemID, date, COUNT(*), SUM(qty), AVG(price) FROM retail.pos GROUP BY ALL",
    "SELECT COUNT(*) AS n, SUM(qty), AVG(weight), MIN(date), COUNT(DISTINCT storeID) FROM retail.pos",
    "SELECT COUNT(*), SUM(qty) FROM retail.pos WHERE storeID = 1000",
    f"SELECT category, MIN(date) AS first, AVG(price), MAX(i.cost) FROM {ITEMS} WHERE storeID < 6 GROUP BY 1",
    "SELECT UPPER(City), retail.pos.date, MAX(price) FROM retail.pos JOIN retail.stores USING (storeID) "
    "WHERE date IS NOT NULL GROUP BY 1, 2 HAVING COUNT(*) > 1",
    "SELECT itemID, itemID, ROUND(AVG(qty), 2) FROM retail.pos GROUP BY itemID",
    f"SELECT region, category, COUNT(*) FROM {BOTH} GROUP BY CUBE (region, category)",
    "SELECT DISTINCT region FROM retail.stores",
    "SELECT 5 AS five, COUNT(*) FROM retail.pos GROUP BY 1",
    "SELECT category, SUM(cost), COUNT(DISTINCT name) FROM retail.items GROUP BY category",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_as_if_the_tables_were_here(sql: str, lake: Warehouse, shop: RetailShop, spark: "SparkSession") -> None:
    answer = lake.sql(sql)
    assert bag(answer.collect()) == shop.bag(sql)
    assert answer.schema.simpleString() == as_spark_has_it(sql, lake, spark)


def as_spark_has_it(sql: str, lake: Warehouse, spark: "SparkSession") -> str:
    """The columns that Spark gives a query over tables like those of the source."""
    spark.sql("CREATE DATABASE IF NOT EXISTS retail")
    try:
        for name, relation in lake.sources[0].relations.items():
            columns = ", ".join(
                f"{column} {type}" for column, type in zip(relation.columns, relation.types, strict=True)
            )
            spark.sql(f"CREATE TABLE {name} ({columns}) USING PARQUET")
        return spark.sql(sql).schema.simpleString()
    finally:
        spark.sql("DROP DATABASE retail CASCADE")


def test_order_and_limit(lake: Warehouse, shop: RetailShop) -> None:
    sql = f"SELECT city, SUM(qty) FROM {STORES} GROUP BY city ORDER BY COUNT(*) DESC, 1 LIMIT 3"
    found = [tuple(row) for row in lake.sql(sql).collect()]
    assert len(found) == 3
    assert bag(found) == shop.bag(sql)
    by_count = f"SELECT city, SUM(qty), COUNT(*) FROM {STORES} GROUP BY city"
    count = {city: n for city, _, n in shop.bag(by_count)}
    assert [count[city] for city, _ in found] == sorted(count.values(), reverse=True)[:3]


def test_beside_views_and_inside_of_other_queries(lake: Warehouse, shop: RetailShop) -> None:
    by_region = f"SELECT region, SUM(qty) AS q FROM {STORES} GROUP BY region"
    sql = f"""WITH regions AS ({by_region})
        SELECT r.region, r.q, v.n FROM regions r JOIN (SELECT SUM(n) AS n FROM scd_sales) v ON TRUE
        UNION ALL SELECT 'all', SUM(qty), COUNT(*) FROM {STORES}"""
    in_duckdb = sql.replace("scd_sales", f"(SELECT COUNT(*) AS n FROM {STORES})")
    answer = lake.sql(sql)
    assert answer.columns == ["region", "q", "n"]
    assert bag(answer.collect()) == shop.bag(in_duckdb)


def test_summaries_by_name_are_read_as_they_are(lake: Warehouse, shop: RetailShop) -> None:
    assert bag(lake.sql("SELECT * FROM scd_sales").collect()) == shop.bag(SUMMARIES["scd_sales"])
    assert lake.sql("SELECT SUM(n) AS n FROM sid_sales").first()["n"] == 120


def test_columns_with_odd_names(tmp_path: Path, spark: "SparkSession") -> None:
    shop = RetailShop(tmp_path / "shop.db", random_rows(1, sales=0))
    shop.write(
        'CREATE TABLE odd ("größe" TEXT, "c`d" INTEGER, "select" INTEGER);'
        "INSERT INTO odd VALUES ('x', 1, 2), ('x', 3, 4)"
    )
    with Warehouse.open(tmp_path / "lake", spark) as lake:
        lake.add_source("retail", shop.url, tables=["odd"], install=True)
        lake.create_view(
            "CREATE MATERIALIZED VIEW v AS SELECT `größe`, SUM(`c``d`) AS s, MAX(`select`) AS m "
            "FROM retail.odd GROUP BY `größe`"
        )
        answer = lake.sql(
            "SELECT `größe`, SUM(`c``d`), MAX(`select`) FROM `retail`.`odd` GROUP BY `größe` ORDER BY `größe`"
        )
        assert answer.columns == ["größe", "sum(c`d)", "max(select)"]
        assert [tuple(row) for row in answer.collect()] == [("x", 4, 4)]


GROUPS = {
    "retail.pos p": ["p.storeID", "itemID", "date"],
    STORES: ["p.storeID", "city", "region", "date"],
    ITEMS: ["storeID", "category", "name"],
    BOTH: ["city", "region", "category"],
}
CALLS = [
    "COUNT(*)",
    "SUM(qty)",
    "AVG(price)",
    "MIN(date)",
    "MAX(date)",
    "COUNT(qty)",
    "SUM(price) - COUNT(*)",
    "SUM(weight)",
]
CONDITIONS = ["date > DATE '2024-01-01'", "p.storeID < 4", "date IS NULL"]


def random_query(rng: Random, number: int) -> str:
    tables = rng.choice(list(GROUPS))
    groups = rng.sample(GROUPS[tables], rng.randint(0, 2))
    items = [*groups, *rng.sample(CALLS, rng.randint(1, 3))]
    text = f"SELECT {', '.join(f'{item} AS c{place}' for place, item in enumerate(items))} FROM {tables}"
    if rng.random() < 0.5:
        text += f" WHERE {rng.choice(CONDITIONS)}"
    if groups:
        text += f" GROUP BY {', '.join(groups)}"
    if rng.random() < 0.3:
        text += " HAVING COUNT(*) > 3"
    return text


@pytest.mark.parametrize("several", some([8, 20], 1))
def test_any_query(lake: Warehouse, shop: RetailShop, several: int) -> None:
    """Queries as one, so that Spark runs one job: each row has the number of its query, and text for values."""
    rng = seeded(20)
    queries = [random_query(rng, number) for number in range(several)]
    frames = [
        lake.sql(sql).selectExpr(f"{number} AS number", "to_json(struct(*), map('ignoreNullFields', 'false')) AS row")
        for number, sql in enumerate(queries)
    ]
    united = frames[0]
    for frame in frames[1:]:
        united = united.unionAll(frame)
    found: dict[int, list[tuple[Any, ...]]] = {number: [] for number in range(several)}
    for number, row in united.collect():
        found[number].append(tuple(json.loads(row).values()))
    for number, sql in enumerate(queries):
        expected = [tuple(str(v) if hasattr(v, "isoformat") else v for v in row) for row in shop.bag(sql).elements()]
        assert bag(found[number]) == bag(expected), sql


# At the state of the lattice


def test_dimensions_are_read_as_the_summaries_saw_them(tmp_path: Path, spark: "SparkSession") -> None:
    shop = RetailShop(tmp_path / "retail.db", random_rows(3))
    with lake_over(shop, tmp_path / "lake", spark, "TBLPROPERTIES ('refresh' = 'manual')") as lake:
        queries = [
            f"SELECT region, SUM(qty) FROM {STORES} GROUP BY region",
            f"SELECT name, SUM(price) FROM {ITEMS} GROUP BY name",
            "SELECT city, COUNT(*) FROM retail.stores GROUP BY city",
        ]
        before = [shop.bag(sql) for sql in queries]
        shop.write("UPDATE stores SET region = 'north' WHERE city = 'Bern'; DELETE FROM items WHERE itemID = 1")
        shop.write("INSERT INTO stores VALUES (77, 'Wil', 'north'); DELETE FROM pos WHERE id < 20")
        lake.catch_up()
        shop.look_again()
        assert [shop.bag(sql) for sql in queries] != before
        assert [bag(lake.sql(sql).collect()) for sql in queries] == before, "nothing was refreshed"
        summaries = lake._keeper.summaries
        (lattice,) = summaries.lattices().values()
        summaries.propagate(lattice)
        assert [bag(lake.sql(sql).collect()) for sql in queries] == before, "what is propagated waits"
        summaries.refresh(lattice)
        assert [bag(lake.sql(sql).collect()) for sql in queries] == [shop.bag(sql) for sql in queries]


def test_a_halted_lattice_answers_as_it_was(tmp_path: Path, spark: "SparkSession") -> None:
    shop = RetailShop(tmp_path / "retail.db", random_rows(9))
    sql = f"SELECT region, SUM(qty) AS q FROM {STORES} GROUP BY region"
    with lake_over(shop, tmp_path / "lake", spark) as lake:
        before = shop.bag(sql)
        shop.write("UPDATE stores SET region = 'north' WHERE storeID = 1; DELETE FROM pos WHERE id < 60")
        lake.catch_up()
        halted = {view.view: view.halted for view in lake.status().views}
        assert "contradicts its hierarchy" in halted["scd_sales"].reason, "Bern is in two regions"
        assert bag(lake.sql(sql).collect()) == before
        shop.look_again()
        assert shop.bag(sql) != before


def test_a_lattice_that_is_up_to_date_goes_before_one_that_waits(tmp_path: Path, spark: "SparkSession") -> None:
    shop = RetailShop(tmp_path / "retail.db", random_rows(4))
    sql = "SELECT itemID, COUNT(*) AS n FROM retail.pos GROUP BY itemID"
    with lake_over(shop, tmp_path / "lake", spark) as lake:
        lake.create_view(f"CREATE MATERIALIZED VIEW small TBLPROPERTIES ('refresh' = 'manual') AS {sql}")
        assert explain_query(lake.snapshot(), sql).parts[0].table == "small"
        shop.write("DELETE FROM pos WHERE id < 50")
        lake.catch_up()
        shop.look_again()
        assert bag(lake.sql(sql).collect()) == shop.bag(sql)
        explained = explain_query(lake.snapshot(), sql).parts[0]
        assert explained.table == "sid_sales"
        assert {one.table: one.reason for one in explained.considered} == {
            "sid_sales": "",
            "_vk_node_sic_sales_root": "",
            "small": "it lags behind its facts",
        }


def test_a_city_that_is_null_determines_nothing(tmp_path: Path, spark: "SparkSession") -> None:
    shop = RetailShop(tmp_path / "retail.db", random_rows(5))
    sql = f"SELECT region, SUM(qty) AS q FROM {STORES} GROUP BY region"
    with lake_over(shop, tmp_path / "lake", spark) as lake:
        assert explain_query(lake.snapshot(), sql).parts[0].table == "scd_sales"
        shop.write("UPDATE stores SET city = NULL WHERE storeID IN (3, 6)")
        lake.catch_up()
        shop.look_again()
        assert bag(lake.sql(sql).collect()) == shop.bag(sql)
        explained = explain_query(lake.snapshot(), sql).parts[0]
        assert explained.table == "sid_sales"
        refused = next(one for one in explained.considered if one.table == "scd_sales")
        assert refused.reason == "stores has rows without city that differ in what it is to determine"


def test_a_stored_fact_answers_what_no_summary_does(tmp_path: Path, spark: "SparkSession") -> None:
    shop = RetailShop(tmp_path / "retail.db", random_rows(6))
    with lake_over(shop, tmp_path / "lake", spark, "TBLPROPERTIES ('core' = 'stored')") as lake:
        sql = f"SELECT qty, MAX(cost), VAR_POP(price) AS v FROM {BOTH} GROUP BY qty"
        assert bag(lake.sql(sql).collect()) == shop.bag(sql)


# What is not answered


def test_what_is_stored_and_what_is_missing_is_told(lake: Warehouse) -> None:
    with pytest.raises(NotAnswered) as caught:
        lake.sql(f"SELECT region, MIN(weight) FROM {STORES} GROUP BY region")
    assert caught.value.detail == (
        "no stored table answers the query. Over retail.pos there is sid_sales (storeID, itemID, date), "
        "scd_sales (city, date), sic_sales (storeID, category). scd_sales comes closest, but it has no "
        "MIN(weight), and does not group by weight"
    )
    assert caught.value.hint == (
        "create a view with this SELECT, which then answers it; or read the views by their names: "
        "scd_sales, sic_sales, sid_sales"
    )


def test_a_table_without_any_summary(tmp_path: Path, spark: "SparkSession") -> None:
    shop = RetailShop(tmp_path / "retail.db", random_rows(1, sales=1))
    with Warehouse.open(tmp_path / "lake", spark) as lake:
        lake.add_source("retail", shop.url, install=True)
        with pytest.raises(
            NotAnswered, match=r"retail\.pos is at its source, and no summary of it is stored"
        ) as caught:
            lake.sql("SELECT COUNT(*) FROM retail.pos")
        assert caught.value.hint == "create a view with this SELECT, which then answers it"


@pytest.mark.parametrize(
    ("sql", "kind", "told"),
    [
        ("SELECT qty FROM retail.pos", UnsupportedClause, "it shows rows, and summaries have groups"),
        ("SELECT COUNT(*) FROM retail.poss", UnknownName, "no source has a table retail.poss"),
        ("SELECT COUNT(*) FROM other.pos", UnknownName, "Spark cannot run the query"),
        (
            "SELECT COUNT(*) FROM retail.pos p JOIN scd_sales v ON p.date = v.date",
            UnsupportedClause,
            "one SELECT joins scd_sales with tables of sources, and no summary has both",
        ),
    ],
)
def test_what_no_summary_can_answer(sql: str, kind: type[Exception], told: str, lake: Warehouse) -> None:
    with pytest.raises(kind, match=told):
        lake.sql(sql)


# Explaining


def no_spark() -> "SparkSession":
    raise SparkMissing("Spark is not needed to explain a query")


def test_explained_without_spark_beside_a_writer(lake: Warehouse) -> None:
    sql = f"SELECT region, SUM(qty) AS q FROM {STORES} GROUP BY region"
    with Warehouse.open(lake.path, no_spark, read_only=True) as reader, reader.snapshot() as snapshot:
        told = explain_query(snapshot, sql)
        rows = {name: table.rows for name, table in snapshot.record.tables.items()}
    (part,) = told.parts
    root = "_vk_node_sic_sales_root"
    assert (told.query, told.commit, told.views) == (sql, lake.snapshot().commit, ())
    assert (part.table, part.groups, part.state) == ("scd_sales", ("region",), 0)
    assert [(one.table, one.rows, one.joins, one.cost, one.chosen) for one in part.considered] == [
        ("scd_sales", rows["scd_sales"], ("distinct stores",), 2.0 * rows["scd_sales"], True),
        ("sid_sales", rows["sid_sales"], ("stores",), 2.0 * rows["sid_sales"], False),
        (root, rows[root], ("stores",), 2.0 * rows[root], False),
    ]
    assert [one.table for one in part.unfit] == ["sic_sales"]
    assert "FROM `scd_sales` AS t" in told.sql


def test_a_plain_query_is_explained_as_such(lake: Warehouse) -> None:
    told = explain_query(lake.snapshot(), "SELECT SUM(n) AS n FROM sid_sales")
    assert (told.parts, told.views, told.sql) == ((), ("sid_sales",), "SELECT SUM(n) AS n FROM sid_sales")
    with pytest.raises(UsageError, match="only a SELECT can be explained"):
        explain_query(lake.snapshot(), "DROP TABLE sid_sales")


def test_a_constant_is_no_group_over_no_rows(tmp_path: Path, spark: "SparkSession") -> None:
    rows = random_rows(7)
    shop = RetailShop(tmp_path / "retail.db", {**rows, "pos": []})
    with Warehouse.open(tmp_path / "lake", spark) as warehouse:
        warehouse.add_source("retail", shop.url, install=True)
        warehouse.create_view("CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS n, SUM(qty) AS q FROM retail.pos")
        sql = "SELECT 'all' AS a, COUNT(*) AS n, SUM(qty) AS q FROM retail.pos GROUP BY 'all'"
        assert warehouse.sql(sql).collect() == []
        assert warehouse.sql("SELECT COUNT(*) AS n FROM retail.pos").collect() == [(0,)]
        shop.write("INSERT INTO pos (id, qty) VALUES (1, 2)")
        warehouse.catch_up()
        assert warehouse.sql(sql).collect() == [("all", 1, 2)]
