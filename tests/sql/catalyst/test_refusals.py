"""What is refused, and how an error reads: one sentence with its place, and a hint."""

import threading
from typing import TYPE_CHECKING

import pytest

from viewkeeper.errors import DefinitionError, SyntaxProblem, UnknownName, UnsupportedClause, ViewkeeperError
from viewkeeper.sql.catalyst.reading import read_query
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.tree import Join, Recompute, Scan, in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RELATIONS = {
    "shop.orders": Relation("shop.orders", "shop", ("id", "cust", "old"), ("BIGINT",) * 3, ("id",), ("old",)),
    "pg.public.people": Relation("pg.public.people", "pg", ("id", "Name"), ("BIGINT", "STRING")),
    "totals": Relation("totals", "", ("cust", "n"), ("BIGINT", "BIGINT")),
}


@pytest.mark.parametrize(
    ("sql", "function"),
    [
        ("SELECT rand() FROM totals", "rand"),
        ("SELECT uuid() FROM totals", "uuid"),
        ("SELECT n FROM totals WHERE cust IN (SELECT id FROM shop.orders ORDER BY randn())", "randn"),
        ("SELECT monotonically_increasing_id() FROM totals", "monotonically_increasing_id"),
        ("SELECT input_file_name() FROM totals", "input_file_name"),
        ("SELECT shuffle(array(n)) FROM totals", "shuffle"),
        ("SELECT reflect('java.lang.System', 'exit') FROM totals", "reflect"),
        ("SELECT java_method('java.util.UUID', 'randomUUID') FROM totals", "java_method"),
        ("SELECT try_reflect('java.lang.System', 'gc') FROM totals", "try_reflect"),
        ("SELECT current_user() FROM totals", "current_user"),
        ("SELECT current_database() FROM totals", "current_database"),
        ("SELECT n FROM totals TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
    ],
)
def test_values_that_differ_each_time_or_leave_sql_are_refused(spark: "SparkSession", sql: str, function: str) -> None:
    with pytest.raises(UnsupportedClause) as refused:
        read_query(spark, sql, RELATIONS)
    assert f"{function} is refused" in refused.value.detail
    assert refused.value.hint


@pytest.mark.parametrize(
    ("sql", "kind", "detail", "hint"),
    [
        ("SELECT n FROM total", UnknownName, "`total` cannot be found (line 1, position 14)", "did you mean totals?"),
        ("SELECT n FROM totals\nWHERE m > 1", UnknownName, "(line 2, position 6)", "cust"),
        ("SELECT old FROM shop.orders", UnknownName, "`old`", "id"),
        ("SELECT n FRM totals", SyntaxProblem, "(line 1, position", "SELECT"),
        ("SELECT nofunction(n) FROM totals", UnknownName, "nofunction", "built into Spark"),
        ("SELECT n FROM parquet.`/etc/x`", UnknownName, "cannot be found", "totals"),
        ("SELECT n + true FROM totals", DefinitionError, "(line 1, position 7)", "correct the query"),
        ("DROP TABLE totals", SyntaxProblem, "line 1", "SELECT"),
        ("SELECT cust, n FROM totals GROUP BY cust", DefinitionError, "GROUP BY", "correct the query"),
    ],
)
def test_error_is_one_sentence_with_its_place_and_a_hint(
    spark: "SparkSession", sql: str, kind: type[ViewkeeperError], detail: str, hint: str
) -> None:
    with pytest.raises(kind) as said:
        read_query(spark, sql, RELATIONS)
    assert detail in said.value.detail
    assert hint in said.value.hint
    assert "\n" not in said.value.detail
    assert "java" not in str(said.value)
    assert said.value.__cause__ is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT PG.Public.PEOPLE.name FROM pg.PUBLIC.people",
        "SELECT public.people.name FROM pg.public.people",
        "SELECT people.NAME FROM pg.public.people",
        "SELECT p.name FROM pg.public.people AS p",
        "SELECT pg.public.people.* FROM pg.public.people JOIN shop.orders ON shop.orders.id = pg.public.people.id",
    ],
)
def test_relation_is_named_by_any_of_its_qualifiers_in_any_case(spark: "SparkSession", sql: str) -> None:
    query = read_query(spark, sql, RELATIONS)
    scans = {one.relation: one for one in in_order(query.root) if isinstance(one, Scan)}
    assert "Name" in scans["pg.public.people"].fields


def test_key_is_not_null_and_columns_that_are_gone_are_not_there(spark: "SparkSession") -> None:
    query = read_query(spark, "SELECT * FROM shop.orders", RELATIONS)
    assert isinstance(query.root, Scan)
    assert query.names == query.root.fields == ("id", "cust")
    assert [column.nullable for column in query.root.columns] == [False, True]


def test_recomputed_text_has_names_that_any_session_can_have(spark: "SparkSession") -> None:
    sql = """SELECT pg.public.people.Name, orders.id, x.p
    FROM pg.public.people, shop.orders, (VALUES (1L)) AS x(p)
    WHERE pg . public.people.id = shop.orders.id AND EXISTS (SELECT shop.orders.* FROM shop.orders WHERE id = x.p)"""
    root = read_query(spark, sql, RELATIONS).root
    assert isinstance(root, Recompute)
    assert root.names == ("input_1", "input_2")
    assert [one.relation for one in root.inputs] == ["pg.public.people", "shop.orders"]
    assert "shop" not in root.sql
    assert "pg" not in root.sql
    assert root.why == "the operator LocalRelation"


def test_current_date_stays_in_the_text(spark: "SparkSession") -> None:
    sql = "SELECT n, now(), current_timestamp() FROM totals WHERE current_date() > DATE'2020-01-01'"
    query = read_query(spark, sql, RELATIONS)
    text = repr(query.root)
    assert "(current_date() > DATE'2020-01-01')" in text
    assert "now()" in text
    assert "current_timestamp()" in text


def test_session_stays_as_it_was(spark: "SparkSession") -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    spark.range(1).createOrReplaceTempView("totals")
    try:
        before = (spark.catalog.currentDatabase(), spark.sql("SHOW TABLES").collect())
        databases = spark.sql("SHOW DATABASES").collect()
        assert read_query(spark, "SELECT n FROM totals", RELATIONS).names == ("n",)
        assert (spark.catalog.currentDatabase(), spark.sql("SHOW TABLES").collect()) == before
        assert spark.sql("SHOW DATABASES").collect() == databases
        assert spark.conf.get("spark.sql.ansi.enabled") == "false"
        assert spark.sql("SELECT * FROM totals").columns == ["id"]
        assert type(spark).getActiveSession() is not None
    finally:
        spark.catalog.dropTempView("totals")
        spark.conf.unset("spark.sql.ansi.enabled")


def test_queries_are_read_side_by_side(spark: "SparkSession") -> None:
    texts = [f"SELECT cust, sum(n) AS s{i} FROM totals WHERE n > {i} GROUP BY cust" for i in range(6)]
    found: dict[int, tuple[str, ...]] = {}

    def read(place: int) -> None:
        found[place] = read_query(spark, texts[place], RELATIONS).names

    threads = [threading.Thread(target=read, args=(place,)) for place in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {place: ("cust", f"s{place}") for place in range(len(texts))}


def test_not_in_is_an_anti_join_for_which_null_matches(spark: "SparkSession") -> None:
    query = read_query(spark, "SELECT n FROM totals WHERE cust NOT IN (SELECT cust FROM shop.orders)", RELATIONS)
    joins = [one for one in in_order(query.root) if isinstance(one, Join)]
    assert [(one.kind, one.null_aware, len(one.keys)) for one in joins] == [("anti", True, 1)]
