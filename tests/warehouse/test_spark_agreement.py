"""A view that Spark reads in another way than viewkeeper is refused when it is created, and found by an audit."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlglot import exp

from viewkeeper import Warehouse
from viewkeeper.errors import DefinitionError
from viewkeeper.maintenance import spark_agreement
from viewkeeper.maintenance.spark_agreement import check_agreement
from viewkeeper.sql import function_types
from viewkeeper.sql.code_writer import Code
from viewkeeper.sql.evaluation import Compiler
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation

CATALOG = {
    made.name: made
    for made in (
        Relation(
            "s.r",
            "s",
            ("id", "a", "b", "p", "amount", "f", "day", "at", "local", "name", "parts"),
            (
                *("BIGINT", "INT", "INT", "BOOLEAN", "DECIMAL(10, 2)", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"),
                *("STRING", "ARRAY<INT>"),
            ),
            ("id",),
        ),
        Relation("s.q", "s", ("id", "k", "City"), ("BIGINT", "INT", "STRING"), ("id",)),
    )
}


@pytest.fixture(autouse=True)
def nothing_agreed(monkeypatch):
    monkeypatch.setattr(spark_agreement, "_agreed", set())


def check(sql, spark):
    check_agreement(parse_definition(sql, CATALOG), CATALOG, lambda: spark)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, a = b BETWEEN false AND true AS x, amount / 3L AS y FROM s.r WHERE a > b NOT IN (true) OR p",
        "SELECT r.id, a + b AS x, a * amount AS y, f / 2 AS z, -a AS m, a % 3 AS n FROM s.r JOIN s.q USING (id) "
        "WHERE (a < 5 AND NOT (b = 2)) AND city LIKE 'a%' AND a BETWEEN 1 AND 2",
        "SELECT s.r.id, q.city || '!' AS c, CASE WHEN p AND a = 1 THEN 1 ELSE 2.5 END AS w, parts FROM s.r, s.q "
        "WHERE r.id = q.id AND LEFT(name, 1) = 'a'",
        "SELECT r.*, COALESCE(k, 0) + 1 AS k1 FROM s.r LEFT JOIN s.q ON r.id = q.id AND (q.k IS NULL OR q.k > -1)",
        "SELECT date_trunc('month', at) AS m, day + INTERVAL 1 DAY AS d1, day - INTERVAL 1 MONTH AS d2, "
        "datediff(day, at) AS dd, a DIV 7 AS w, EXTRACT(YEAR FROM day) AS y, date_add(day, a) AS d3, "
        "date_sub(day, 1) AS d4, add_months(day, 1) AS am, months_between(at, day) AS mb, last_day(day) AS ld, "
        "next_day(day, 'MON') AS nd, trunc(day, 'YEAR') AS ty, date_format(local, 'yyyy') AS df, "
        "timestampdiff(HOUR, at, at) AS td, timestampadd(HOUR, 1, local) AS ta, unix_date(day) AS ud, "
        "year(day) * 100 + month(day) AS ym, weekday(day) AS wd, date_part('second', at) AS sec FROM s.r",
        "SELECT city, SUM(amount * 2) AS t, COUNT(*) FILTER (WHERE a > 1) AS n, AVG(f) AS m, MAX(day) + 1 AS l "
        "FROM s.r JOIN s.q USING (id) GROUP BY city HAVING COUNT(*) > 1 AND SUM(a) IS NOT NULL",
        "SELECT year(day) AS y, a, GROUPING(a) AS g, SUM(b) / 3L AS t FROM s.r WHERE a IN (1, 2, NULL) "
        "GROUP BY CUBE (year(day), a) HAVING SUM(b) > 0",
        "SELECT DISTINCT a + 1 AS x, upper(name) AS n FROM s.r WHERE amount > 1.5",
        "SELECT a + b AS s, VAR_POP(f) AS v, STDDEV(amount) AS d, COUNT(DISTINCT name) AS n FROM s.r GROUP BY ALL",
        "SELECT SUM(a) + 1 AS t FROM s.r",
        "SELECT name, SUM(amount) AS amount FROM s.r GROUP BY name HAVING amount > 10 AND MAX(a) + 1 > 2",
        "SELECT (a), CAST(name AS DATE) AS d FROM s.r; -- text that is no date",
    ],
)
def test_what_is_read_alike_is_accepted(sql, spark):
    check(sql, spark)


def test_plain_views_need_no_spark():
    def no_spark():
        raise AssertionError("Spark was requested")

    for sql in (
        "SELECT amount, q.* FROM s.r JOIN s.q ON r.id = q.id WHERE name = 'a' AND a > 5 AND day IS NOT NULL",
        "SELECT name, SUM(amount) AS t, COUNT(*) AS n FROM s.r WHERE b <> 3 GROUP BY name HAVING COUNT(*) > 1",
    ):
        check_agreement(parse_definition(sql, CATALOG), CATALOG, no_spark)


def wrong_remainder(self: Compiler, node: exp.Expr) -> Code:
    left, right, common = self.numbers(node)
    return self.strict([left, right], common, "({0} % {1} if {1} else division_by_zero())".format)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, a % 3 AS x FROM s.r",
        "SELECT id FROM s.r WHERE name = 'no such' AND a % 3 = 1",
        "SELECT r.id FROM s.r LEFT JOIN s.q ON r.id = q.id AND a % 3 = k",
        "SELECT a % 3 AS g, COUNT(*) AS n FROM s.r GROUP BY a % 3",
        "SELECT name, SUM(a % 3) AS t FROM s.r GROUP BY name",
    ],
)
def test_a_wrong_evaluation_on_the_driver_is_refused(sql, spark, monkeypatch):
    monkeypatch.setattr(Compiler, "handlers", {**Compiler.handlers, exp.Mod: wrong_remainder})
    with pytest.raises(DefinitionError, match="means something else to Spark"):
        check(sql, spark)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, CAST(name AS DATE) AS d, a % 3 AS x FROM s.r",
        "SELECT id, a % 3 AS x FROM s.r WHERE CAST(name AS DATE) = day",
    ],
)
def test_what_fails_on_the_sample_is_the_only_one_that_is_not_evaluated(sql, spark, monkeypatch):
    monkeypatch.setattr(Compiler, "handlers", {**Compiler.handlers, exp.Mod: wrong_remainder})
    with pytest.raises(DefinitionError, match="the output column x means something else to Spark"):
        check(sql, spark)


def swapped(self: Compiler, node: exp.Expr) -> Code:
    right, left, common = self.numbers(node)
    return self.strict([left, right], common, "({0} - {1})".format)


def test_the_operands_of_a_join_are_told_apart(spark, monkeypatch):
    monkeypatch.setattr(Compiler, "handlers", {**Compiler.handlers, exp.Sub: swapped})
    with pytest.raises(DefinitionError, match="the output column x means something else to Spark"):
        check("SELECT one.id, one.k - two.k AS x FROM s.q one JOIN s.q two ON one.id = two.id", spark)


def test_another_type_is_refused(spark, monkeypatch):
    monkeypatch.setitem(function_types._BY_CLASS, exp.UnixDate, "BIGINT")
    with pytest.raises(DefinitionError, match="its type is INT in Spark, and viewkeeper takes it for BIGINT"):
        check("SELECT unix_date(day) AS x FROM s.r", spark)


@pytest.mark.parametrize(
    ("wrong", "sql"),
    [
        ("a + b * 2", "SELECT id, (a + b) * 2 AS x FROM s.r"),
        ("p = true", "SELECT id, p IS NULL AS x FROM s.r"),
        ("a + 2", "SELECT name, SUM(a + 1) AS t FROM s.r GROUP BY name"),
        (
            "SUM(a) > 2 OR COUNT(*) < 9",
            "SELECT name, SUM(a) AS t FROM s.r GROUP BY name HAVING SUM(a) > 2 OR COUNT(*) < 3",
        ),
    ],
)
def test_a_text_that_was_understood_wrongly_is_refused(wrong, sql, spark, monkeypatch):
    """As if the parser had read another text than the one that was written."""
    understood = parse_definition(sql, CATALOG)
    written = {"a + b * 2": "(a + b) * 2", "p = true": "p IS NULL", "a + 2": "a + 1"}
    other = parse_definition(sql.replace(written.get(wrong, "SUM(a) > 2 OR COUNT(*) < 3"), wrong), CATALOG)
    original = spark_agreement.written_view(sql, CATALOG)
    misread = spark_agreement.written_view(other.sql, CATALOG)
    pairs = zip(original.items, misread.items, strict=True)
    items = tuple(spark_agreement.Written(one.place, one.text, two.expression) for one, two in pairs)
    monkeypatch.setattr(spark_agreement, "written_view", lambda *_: spark_agreement.replace(original, items=items))
    assert other.sql != understood.sql
    with pytest.raises(DefinitionError, match=r"mean(s)? something else to Spark"):
        check_agreement(other, CATALOG, lambda: spark)


def test_a_definition_that_spark_refuses_is_refused(spark):
    with pytest.raises(DefinitionError, match="Spark does not read the definition of v"):
        check("SELECT id, 300Y + a AS x FROM s.r", spark)


# --- end to end ---


@pytest.fixture
def warehouse(tmp_path: Path):
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as database:
        database.executescript(
            "CREATE TABLE r (id INTEGER PRIMARY KEY, a INTEGER NOT NULL, b INTEGER NOT NULL, day DATE);"
            "CREATE TABLE q (id INTEGER PRIMARY KEY, k INTEGER);"
            "INSERT INTO r VALUES (1, 1, 1, '2024-01-31'), (2, -1, 3, '2024-02-29'), (3, -5, 5, NULL);"
            "INSERT INTO q VALUES (1, 10), (2, 20), (3, 30)"
        )
        with Warehouse.open(tmp_path / "lake") as opened:
            opened.add_source("s", f"sqlite:///{tmp_path / 's.db'}", install=True)
            opened.database = database
            yield opened


VIEWS = {
    "join": "CREATE MATERIALIZED VIEW v AS SELECT r.id, a % 3 AS x, k FROM s.r JOIN s.q ON r.id = q.id",
    "stored": "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('storage' = 'matview') AS "
    "SELECT r.id, a % 3 AS x, k FROM s.r JOIN s.q ON r.id = q.id",
    "outer": "CREATE MATERIALIZED VIEW v AS SELECT r.id, a % 3 AS x, k FROM s.r LEFT JOIN s.q ON r.id = q.id",
    "summary": "CREATE MATERIALIZED VIEW v AS SELECT a % 3 AS x, COUNT(*) AS n FROM s.r GROUP BY a % 3",
    "cube": "CREATE MATERIALIZED VIEW v AS SELECT a % 3 AS x, b, COUNT(*) AS n FROM s.r GROUP BY ROLLUP (a % 3, b)",
}


@pytest.mark.parametrize("kind", VIEWS)
def test_creation_refuses_and_audit_finds_a_wrong_evaluation(warehouse, kind, monkeypatch):
    monkeypatch.setattr(Compiler, "handlers", {**Compiler.handlers, exp.Mod: wrong_remainder})
    with pytest.raises(DefinitionError, match="means something else to Spark"):
        warehouse.create_view(VIEWS[kind])
    assert not warehouse.views
    # As if the mistake had not been found when the view was created.
    monkeypatch.setattr(spark_agreement._Comparison, "run", lambda self: None)
    warehouse.create_view(VIEWS[kind])
    found = warehouse.audit("v")
    assert not found.clean
    assert found.missing
    assert found.extra


def test_a_view_over_a_view_is_audited_by_the_texts_of_both(warehouse, monkeypatch):
    monkeypatch.setattr(Compiler, "handlers", {**Compiler.handlers, exp.Mod: wrong_remainder})
    monkeypatch.setattr(spark_agreement._Comparison, "run", lambda self: None)
    warehouse.create_view("CREATE MATERIALIZED VIEW below AS SELECT id, a % 3 AS x FROM s.r")
    warehouse.create_view("CREATE MATERIALIZED VIEW above AS SELECT id, x FROM below WHERE x > 0")
    assert not warehouse.audit("above").clean


def test_functions_of_dates_work_end_to_end(warehouse):
    warehouse.create_view(
        "CREATE MATERIALIZED VIEW v AS SELECT r.id, date_trunc('month', day) AS month, day + INTERVAL 1 DAY AS next, "
        "datediff(day, DATE'2024-01-01') AS since, a DIV 2 AS half, EXTRACT(YEAR FROM day) AS y, k "
        "FROM s.r JOIN s.q ON r.id = q.id WHERE a = b BETWEEN false AND true"
    )
    warehouse.create_view(
        "CREATE MATERIALIZED VIEW by_month AS SELECT year(day) AS y, month(day) AS m, COUNT(*) AS n, "
        "MAX(day - INTERVAL 1 MONTH) AS l FROM s.r GROUP BY year(day), month(day)"
    )
    warehouse.database.executescript(
        "INSERT INTO r VALUES (4, 4, 1, '2024-03-31'); INSERT INTO q VALUES (4, 40); DELETE FROM q WHERE id = 2;"
        "UPDATE r SET day = '2023-12-31' WHERE id = 3"
    )
    warehouse.catch_up()
    assert warehouse.status().halted == {}
    assert [warehouse.audit(name).clean for name in ("v", "by_month")] == [True, True]
    rows = {row["id"]: row for row in warehouse.arrow("v").to_pylist()}
    assert sorted(rows) == [1, 3, 4]
    assert str(rows[4]["next"]) == "2024-04-01"
    assert (rows[3]["since"], rows[4]["half"], rows[1]["y"]) == (-1, 2, 2024)
