"""The engine that goes by size: where a Z-set is, when it moves, and what that costs."""

import subprocess
import sys

import pytest
from engines import contents, expected, expression, jobs

from viewkeeper.algebra.adaptive import Engines
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import WEIGHT
from viewkeeper.errors import ExpressionError
from viewkeeper.sql.expressions import Expression

X, Y, S = "r.x", "r.y", "r.s"
ROWS = [((number, str(number)), 1) for number in range(10)]


def no_session():
    raise AssertionError("Spark is started")


@pytest.fixture
def small():
    """Engines that may not start Spark."""
    return Engines(no_session, most_rows=20)


@pytest.fixture
def engines(spark):
    return Engines(lambda: spark, most_rows=20)


def test_what_is_small_and_compiles_needs_no_spark(small):
    made = small.zset((X, S), ROWS)
    other = made.like(("m.x",), [((3,), 2), ((None,), 1)])
    joined = made.join(other, ((X, "m.x"),), (expression("x + 1 > 0"),), (X, S))
    assert contents(joined) == expected([((3, "3"), 2)])
    assert (made - made).is_empty()
    changed = made.select((expression("x < 5"),)) + made
    assert changed.size() == 10
    assert contents(changed.matching(other, ((X, "m.x"),))) == expected([((3, "3"), 2)])
    assert changed.key_delete(other, ((X, "m.x"),)).distinct().project((("n", expression("x * 2")),)).size() == 9
    assert (-changed.rename(("a", "b")).keep(("b",))).in_memory


@pytest.mark.processes
def test_importing_it_does_not_import_spark():
    code = "import sys, viewkeeper.algebra.adaptive; print('pyspark' in sys.modules, 'pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_nothing_stays_in_memory(small):
    """Also where only Spark could evaluate the expression: there is nothing to evaluate it on."""
    nothing = small.zset((X, S))
    upper = expression("upper(s)")
    assert nothing.project((("u", upper),)).columns == ("u",)
    assert nothing.select((expression("upper(s) = 'A'"),)).is_empty()
    assert nothing.join(small.zset(("m.x",), [((1,), 1)]), (), (expression("upper(s) = 'A'"),), (X,)).is_empty()


def test_a_large_one_is_on_spark_and_comes_back_when_it_has_shrunk(spark, engines):
    large = engines.zset((X, S), [((number, "s"), 1) for number in range(30)])
    assert not large.in_memory
    few = large.select((expression("x < 3"),))
    assert not few.in_memory, "nobody has looked yet"
    assert few.size() == 3
    assert few.in_memory
    assert jobs(spark, lambda: (few.size(), few.is_empty(), list(few.weights()))) == 0
    assert contents(few) == expected([((0, "s"), 1), ((1, "s"), 1), ((2, "s"), 1)])


def test_a_look_is_one_job(spark, engines):
    rows = engines.of_frame(spark.range(0, 30, 1, 2).selectExpr("id % 7 AS `r.x`", f"id - 10 AS {WEIGHT}"))
    assert jobs(spark, lambda: list(rows.weights())) == 1
    assert rows.in_memory
    assert rows.size() == 7


def test_what_stays_large_is_computed_once(spark, engines):
    computed = spark.sparkContext.accumulator(0)

    def counted(number):
        computed.add(1)
        return (number,)

    numbers = spark.sparkContext.parallelize(range(50), 2).map(counted)
    large = engines.of_frame(spark.createDataFrame(numbers, "`r.x` BIGINT"))
    assert not large.is_empty()
    assert large.size() == 50
    seen = computed.value
    assert large.size() == 50
    assert sum(weight for _, weight in large.weights()) == 50
    assert large.select((expression("x < 3"),)).size() == 3
    assert computed.value == seen <= 100
    assert not large.in_memory


def test_one_on_spark_takes_the_other_along(engines):
    large = engines.zset((X, S), [((number, "s"), 1) for number in range(30)])
    small = engines.zset((X, S), [((1, "s"), -1), ((40, "s"), 1)])
    assert not (large + small).in_memory
    assert not (small - large).in_memory
    assert not small.matching(large.rename(("m.x", "m.s")), ((X, "m.x"),)).in_memory
    total = large + small
    assert total.size() == 30
    assert contents(small.matching(large.rename(("m.x", "m.s")), ((X, "m.x"),))) == expected([((1, "s"), -1)])
    left = small.key_delete(large.rename(("m.x", "m.s")), ((X, "m.x"),))
    assert contents(left) == expected([((40, "s"), 1)])
    nothing = engines.zset((X, S))
    assert (large + nothing) is large
    assert (nothing + large) is large


def test_a_sum_that_grows_too_large_moves(engines):
    one = engines.zset((X,), [((number,), 1) for number in range(15)])
    other = engines.zset((X,), [((number,), 1) for number in range(10, 25)])
    assert one.in_memory
    total = one + other
    assert not total.in_memory
    assert total.size() == 25


def test_a_join_that_explodes_is_not_tried_in_memory(engines, monkeypatch):
    monkeypatch.setattr(MemoryZSet, "join", lambda *arguments: pytest.fail("joined in memory"))
    one = engines.zset((X,), [((number,), 1) for number in range(10)])
    other = engines.zset((Y,), [((number,), 1) for number in range(10)])
    joined = one.join(other, (), (expression("x > 7"),), (X, Y))
    assert not joined.in_memory
    assert joined.size() == 20
    assert joined.in_memory


def test_pairs_are_counted():
    left = MemoryZSet(("a",), [((1,), 5), ((2,), 1), ((None,), 1)])
    right = MemoryZSet(("b", "c"), [((1, 1), 1), ((1, 2), 1), ((None, 3), 1), ((3, 3), 1)])
    assert left.pairs(right, (("a", "b"),)) == 2
    assert left.pairs(right, ()) == 12


def test_what_only_spark_evaluates_goes_there(engines):
    made = engines.zset((X, S), [((1, "a"), 1), ((2, "B"), 2)])
    upper = made.project((("u", expression("upper(s)")),))
    assert not upper.in_memory
    assert contents(upper) == expected([(("A",), 1), (("B",), 2)])
    assert contents(made.select((expression("x DIV 2 = 1"),))) == expected([((2, "B"), 2)])
    other = engines.zset(("m.x",), [((1,), 1)])
    joined = made.join(other, (), (expression("length(s) = x"),), (S, "m.x"))
    assert contents(joined) == expected([(("a", 1), 1)])
    assert made.in_memory


def test_what_fails_in_memory_is_not_tried_again_on_spark(small):
    with pytest.raises(ExpressionError, match="out of the range"):
        small.zset((X,), [((2**63 - 1,), 1)]).project((("n", expression("x + 1")),))


def test_a_frame_of_either_kind(spark, engines):
    plain = engines.of_frame(spark.range(3).selectExpr("id % 2 AS a"))
    assert contents(plain) == expected([((0,), 2), ((1,), 1)])
    weighted = engines.of_frame(plain.frame)
    assert weighted.columns == ("a",)
    assert contents(weighted - plain) == {}
    assert plain.frame.columns == ["a", WEIGHT]


def test_tags_compare_as_numbers(engines):
    later = Expression.greater("_vk.w", "_vk.u")
    old = engines.zset(("_vk.u",), [((number,), 1) for number in range(9, 12)])
    new = engines.zset(("_vk.w",), [((number,), 1) for number in range(25)])
    assert old.join(new, (), (later,), ("_vk.u", "_vk.w")).size() == 15 + 14 + 13


# --- between rows of Python and Spark ---


def test_one_that_is_not_small_is_in_arrow_and_needs_no_spark():
    engines = Engines(no_session, most_rows=20, most_bytes=1 << 20)
    large = engines.zset((X, S), [((number, "s"), 1) for number in range(200)])
    small = engines.zset((X, S), [((1, "s"), -1), ((400, "s"), 1)])
    assert not large.in_memory
    assert large.on_driver
    assert small.in_memory
    assert small.columnar is None
    assert (large + small).columnar.num_rows == 200
    joined = large.join(small.rename(("m.x", "m.s")), ((X, "m.x"),), (expression("x + 1 > 0"),), (X, "m.s"))
    assert contents(joined) == expected([((1, "s"), -1)])
    assert contents(small.matching(large, ((X, X),))) == expected([((1, "s"), -1)])
    assert large.key_delete(small, ((X, X),)).size() == 199
    assert (large - large).is_empty()


def test_one_that_is_too_large_for_arrow_moves(spark):
    engines = Engines(lambda: spark, most_rows=20, most_bytes=4_000)
    one = engines.zset((X,), [((number,), 1) for number in range(200)])
    other = engines.zset((X,), [((number,), 1) for number in range(100, 300)])
    assert one.on_driver
    total = one + other
    assert not total.on_driver
    assert total.size() == 300
    assert (engines.zset(("m.x",), [((1,), 1)]) + total.rename(("m.x",))).size() == 300


def test_a_join_that_explodes_is_not_made_in_arrow(spark):
    engines = Engines(lambda: spark, most_rows=20, most_bytes=64_000)
    one = engines.zset((X, Y), [((1, number), 1) for number in range(60)])
    assert one.on_driver
    joined = one.join(one.rename(("m.x", "m.y")), ((X, "m.x"),), (), (X,))
    assert not joined.on_driver
    assert contents(joined) == expected([((1,), 3600)])
    assert one.join(one.rename(("m.x", "m.y")), ((Y, "m.y"),), (), (Y,)).on_driver
