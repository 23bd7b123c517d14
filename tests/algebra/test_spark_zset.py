"""What only the Spark engine has: frames, types, laziness, other sessions, and errors that a user can read."""

import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from engines import contents, expected, expression, jobs

from viewkeeper.algebra.spark import SparkZSet
from viewkeeper.algebra.zset import WEIGHT
from viewkeeper.errors import DefinitionError, ExpressionError
from viewkeeper.sql.expressions import Expression

X, Y = "r.x", "r.y"


@pytest.fixture
def numbers(spark):
    """Not from rows on the driver, which Spark may compute on while it plans: x from 0 to 9, twice each."""
    return spark.range(0, 20, 1, 2).selectExpr("id % 10 AS `r.x`", "id % 2 AS `r.y`")


# --- frames ---


def test_each_row_of_a_frame_once(numbers):
    made = SparkZSet.of_frame(numbers.filter("`r.x` < 2"))
    assert made.columns == (X, Y)
    assert contents(made) == expected([((0, 0), 2), ((1, 1), 2)])
    assert made.positive
    assert not made.consolidated


def test_a_frame_with_weights(spark):
    frame = spark.sql(f"SELECT w AS {WEIGHT}, s AS `a b` FROM VALUES (2, 'x'), (-2, 'x'), (1, 'y') AS t(w, s)")
    made = SparkZSet(frame)
    assert made.columns == ("a b",)
    assert made.frame.columns == ["a b", WEIGHT]
    assert dict(made.frame.dtypes)[WEIGHT] == "bigint"
    assert contents(made) == expected([(("y",), 1)])


def test_a_frame_without_weights_is_refused(numbers):
    with pytest.raises(ValueError, match=WEIGHT):
        SparkZSet(numbers)


def test_a_frame_with_names_that_differ_in_case_is_refused(spark):
    with pytest.raises(DefinitionError, match="a and A"):
        SparkZSet.of_frame(spark.range(1).selectExpr("id AS a", "id AS A"))


def test_collations_do_not_count(spark):
    frame = spark.sql("SELECT s COLLATE UTF8_LCASE AS s FROM VALUES ('a'), ('A') AS t(s)")
    assert contents(SparkZSet.of_frame(frame)) == expected([(("a",), 1), (("A",), 1)])


# --- types ---


def test_rows_with_types(spark):
    columns = ("i", "d", "f", "n", "c")
    types = ("INT", "DECIMAL(10, 2)", "FLOAT", "TIMESTAMP", "")
    made = SparkZSet.of_rows(spark, columns, [((1, Decimal("1.5"), 0.5, None, "c"), 1)], types)
    assert [kind for _, kind in made.frame.dtypes] == ["int", "decimal(10,2)", "float", "timestamp", "string", "bigint"]
    assert contents(made) == expected([((1, Decimal("1.50"), 0.5, None, "c"), 1)])


def test_columns_get_the_type_that_an_expression_is_written_for(spark):
    made = SparkZSet.of_rows(spark, ("r.i", "r.d", X), [((2**31 - 1, Decimal(1), None), 1)])
    output = (("i", expression("i")), ("d", expression("d * 2")), ("x", expression("x")))
    assert [kind for _, kind in made.project(output).frame.dtypes] == ["int", "decimal(12,2)", "bigint", "bigint"]
    with pytest.raises(ExpressionError, match="overflow"):
        made.project((("n", expression("i + i")),)).size()


def test_values_of_another_type_than_declared(spark):
    made = SparkZSet.of_rows(spark, (X, "r.d"), [(("1", Decimal("0.125")), 1)])
    with pytest.raises(ExpressionError, match=r"r\.x is declared BIGINT and its values are STRING"):
        made.select((expression("x > 0"),))
    with pytest.raises(ExpressionError, match=r"DECIMAL\(10, 2\) and its values are DECIMAL\(3, 3\)"):
        made.project((("n", expression("d")),))


def test_what_spark_would_convert_is_refused(spark):
    texts = SparkZSet.of_rows(spark, ("a",), [(("1",), 1)])
    whole = SparkZSet.of_rows(spark, ("a",), [((1,), 1)])
    for mixed in (
        lambda: texts + whole,
        lambda: texts.join(whole.rename(("b",)), (("a", "b"),), (), ("a",)),
        lambda: texts.matching(whole.rename(("b",)), (("a", "b"),)),
    ):
        with pytest.raises(ExpressionError, match="mixes STRING with BIGINT"):
            mixed()


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ([1, "1"], "holds int and str"),
        ([True, 2], "holds bool and int"),
        ([datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)], "with a time zone and"),
        ([datetime.datetime(2024, 1, 1), datetime.date(2024, 1, 1)], "holds date and datetime"),
        ([Decimal(10**30), Decimal("0.0000000001")], "31 digits before the point and 10 after"),
        ([Decimal("NaN")], "no DECIMAL"),
        ([object()], "holds object"),
    ],
)
def test_columns_of_no_one_type(spark, values, complaint):
    with pytest.raises(ExpressionError, match=complaint):
        SparkZSet.of_rows(spark, ("a",), [((value,), 1) for value in values])


def test_values_that_no_row_can_hold(spark):
    for sql in ("named_struct('a', 1)", "array(named_struct('a', 1))", "map(1, 2)", "date_add(DATE'9999-12-31', 1)"):
        with pytest.raises(ExpressionError):
            SparkZSet.of_frame(spark.sql(f"SELECT {sql} AS v")).weights()


def test_arrays_are_tuples(spark):
    frame = spark.sql("SELECT array(array(TIMESTAMP'2024-01-01 00:00:00Z'), NULL) AS v, array(double('NaN')) AS n")
    made = SparkZSet.of_frame(frame)
    [((nested, nans), weight)] = made.weights()
    assert (nested, weight) == (((datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),), None), 1)
    assert dict((made - made.like(made.columns, [((nested, nans), 1)])).weights()) == {}


# --- laziness and adding up ---


def test_no_job_before_somebody_looks(spark, numbers):
    def work():
        rows = SparkZSet.of_frame(numbers)
        other = rows.keep((X,)).rename(("m.x",))
        joined = (rows - rows.select((expression("x > y"),))).join(other, ((X, "m.x"),), (), (X,))
        joined.project((("n", expression("x + 1")),)).distinct().key_delete(other, (("n", "m.x"),))

    assert jobs(spark, work) == 0


def test_what_is_known_to_be_consolidated(spark):
    made = SparkZSet.of_rows(spark, (X, Y), [((1, 2), 1), ((1, 3), 1)])
    assert made.consolidated
    assert (-made).select((expression("x > 0"),)).rename(("a", "b")).consolidated
    assert made.keep((Y, X)).consolidated
    assert not made.keep((X,)).consolidated
    assert not (made + made).consolidated
    assert (made + made).consolidate().consolidated
    assert (made + made).distinct().consolidated
    everything = (("y", Expression.column(Y)), ("x", Expression.column(X)), ("n", expression("x > 1")))
    assert made.project(everything).consolidated
    assert not made.project(everything[1:]).consolidated
    other = made.rename(("m.x", "m.y"))
    assert made.join(other, ((X, "m.x"),), (), (X, Y, "m.x", "m.y")).consolidated
    assert not made.join(other, ((X, "m.x"),), (), (X, Y)).consolidated
    assert made.matching(other, ((X, "m.x"),)).consolidated


def test_a_cancelled_row_is_not_evaluated_wherever_spark_pushes_the_expression(numbers):
    """Division by zero for x = 0, which comes and goes."""
    everything = SparkZSet.of_frame(numbers)
    made = everything - everything.select((expression("x = 0"),))
    quotient, whole = expression("9e0 / x"), expression("9e0 / x >= 9")
    assert made.select((whole,)).size() == 1
    divided = made.project((("r.f", quotient), ("r.p", whole), ("r.x", expression("x")), ("r.y", expression("y"))))
    for sql in ("f >= 9", "p", "x >= 1 AND p", "f >= 9 AND f < 10"):
        assert contents(divided.select((expression(sql),))) == expected([((9.0, True, 1, 1), 2)])
    keys = made.like(("m.f",), [((9.0,), 1)])
    assert contents(divided.matching(keys, (("r.f", "m.f"),)).keep((X,))) == expected([((1,), 2)])
    assert contents(divided.join(keys, (("r.f", "m.f"),), (), (X,))) == expected([((1,), 2)])


def test_rows_are_computed_once(spark, numbers):
    made = SparkZSet.of_frame(numbers).computed_once()
    assert made.consolidated
    assert made.size() == 10
    assert contents(made.select((expression("x < 1"),))) == expected([((0, 0), 2)])


# --- sessions that are set up in another way ---


@pytest.fixture
def elsewhere(spark):
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    session.conf.set("spark.sql.caseSensitive", "true")
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    yield session
    # The session that has made a frame last is the one that others find.
    spark.createDataFrame([], "x INT")


def test_times_do_not_depend_on_the_session(elsewhere):
    berlin = ZoneInfo("Europe/Berlin")
    rows = [
        (datetime.datetime(2024, 10, 27, 2, 30, fold=fold, tzinfo=berlin).astimezone(zone), local)
        for fold, zone in ((0, datetime.UTC), (1, ZoneInfo("Asia/Tokyo")))
        for local in (datetime.datetime(2024, 3, 31, 2, 30), datetime.datetime(1800, 1, 1), None)
    ]
    made = SparkZSet.of_rows(elsewhere, ("at", "local"), [(row, 1) for row in rows])
    held = [((at.astimezone(datetime.UTC), local), 1) for at, local in rows]
    assert contents(made) == expected(held)
    assert [kind for _, kind in made.frame.dtypes] == ["timestamp", "timestamp_ntz", "bigint"]
    assert {at.tzinfo for (at, _), _ in made.weights()} == {datetime.UTC}
    again = made.rename(("m.at", "m.local"))
    joined = made.join(again, (("at", "m.at"), ("local", "m.local")), (), ("at", "local"))
    assert contents(joined) == expected((row, 1) for row, _ in held if row[1])
    assert (made - made.like(made.columns, held)).is_empty()


@pytest.mark.parametrize("columns", [("a", "A"), ("a", "b", "a"), ("_VK_weight",)])
def test_names_that_differ_in_case_are_refused_whatever_the_session(elsewhere, columns):
    with pytest.raises(DefinitionError, match="upper and lower case"):
        SparkZSet.of_rows(elsewhere, columns, [])


# --- errors ---


@pytest.mark.parametrize(
    ("sql", "detail"),
    [
        ("9 / x > 0", "9 / `r.x`: Division by zero."),
        ("x + 9223372036854775800 > 0", "`r.x` + 9223372036854775800: overflow."),
        ("CAST(s AS INT) > 0", "CAST(`r.s` AS INT): The value 'a' of the type \"STRING\" cannot be cast to \"INT\" "
         "because it is malformed."),
        ("CAST(s AS DATE) > DATE '2024-01-01'", "cannot be cast to \"DATE\" because it is malformed."),
    ],
)  # fmt: skip
def test_what_fails_on_a_row(spark, numbers, capfd, sql, detail):
    made = SparkZSet.of_frame(numbers.selectExpr("*", "'a' AS `r.s`")).select((expression(sql),))
    capfd.readouterr()
    with pytest.raises(ExpressionError) as failure:
        made.weights()
    assert failure.value.detail.endswith(detail)
    assert failure.value.hint == "correct the row at its source, or guard the expression with CASE WHEN"
    assert failure.value.__suppress_context__
    assert "SQLQueryContextLogger" not in capfd.readouterr().err
    with pytest.raises(ExpressionError):
        made.size()


@pytest.mark.parametrize("sql", ["no_such_function(`r.x`) > 0", "explode(array(`r.x`)) > 1", "`r.x` + 1", "`r.z` > 0"])
def test_what_spark_does_not_understand(numbers, sql):
    wrong = Expression(sql, frozenset({X}))
    with pytest.raises(ExpressionError) as failure:
        SparkZSet.of_frame(numbers).select((wrong,))
    assert wrong.sql in failure.value.detail


def test_other_failures_stay_what_they_are(spark, tmp_path):
    spark.range(5).write.parquet(str(tmp_path / "gone"))
    made = SparkZSet.of_frame(spark.read.parquet(str(tmp_path / "gone")))
    for file in (tmp_path / "gone").iterdir():
        file.unlink()
    with pytest.raises(Exception, match="FILE_NOT_EXIST") as failure:
        made.weights()
    assert not isinstance(failure.value, ExpressionError)
