"""What only the engine in Arrow has: tables, rows that are not added up yet, and pairs that come in parts."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from engines import contents, expected, expression
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.algebra import arrow, arrow_expressions, arrow_join, arrow_keys
from viewkeeper.algebra.arrow import ArrowZSet
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import WEIGHT
from viewkeeper.errors import DefinitionError, ExpressionError
from viewkeeper.sql.expressions import Expression

NAN = float("nan")
X, Y = "r.x", "r.y"


def zset(columns, *weights, types=None):
    return ArrowZSet.of_rows(tuple(columns.split()), weights, types)


def of(column, *values, name="a"):
    """Each value once, in one column of a type."""
    return ArrowZSet.of_table(pa.table({name: pa.array(values, column)}))


# --- tables ---


def test_a_table_with_weights():
    made = ArrowZSet.of_table(pa.table({WEIGHT: pa.array([2, -2, 1], pa.int8()), "a b": ["x", "x", "y"]}))
    assert made.columns == ("a b",)
    assert made.table.schema.names == ["a b", WEIGHT]
    assert made.table.schema.types == [pa.string(), pa.int64()]
    assert made.table.num_rows == 3
    assert contents(made) == expected([(("y",), 1)])


def test_each_row_of_a_table_without_weights_once():
    made = ArrowZSet.of_table(pa.table({"a": [1, 1, 2]}))
    assert contents(made) == expected([((1,), 2), ((2,), 1)])
    assert made.positive
    assert not made.consolidated


def test_what_a_table_promises_is_taken_as_true():
    made = ArrowZSet.of_table(pa.table({"a": [1, 2], WEIGHT: [1, 3]}), consolidated=True, positive=True)
    assert made.consolidate() is made
    assert made.positive


def test_weights_that_are_missing_are_refused():
    with pytest.raises(ValueError, match=f"1 rows have no {WEIGHT}"):
        ArrowZSet.of_table(pa.table({"a": [1, 2], WEIGHT: [1, None]}))


def test_no_column_is_called_as_the_weights_are():
    made = zset("r.x r.y", ((1, 2), 1))
    for taken in (
        lambda: made.rename((X, WEIGHT)),
        lambda: made.like((WEIGHT,), []),
        lambda: made.project(((WEIGHT, Expression.column(X)),)),
    ):
        with pytest.raises(DefinitionError, match=WEIGHT):
            taken()


# --- conditions ---


def test_a_column_of_truths_is_a_condition():
    made = zset("r.p r.x", ((True, 1), 1), ((True, 5), 1), ((False, 2), 1), ((None, 3), 1))
    assert contents(made.select((expression("p"),))) == expected([((True, 1), 1), ((True, 5), 1)])
    assert contents(made.select((expression("x > 1"), expression("p")))) == expected([((True, 5), 1)])
    assert zset("r.p", ((None,), 1)).select((expression("p"),)).is_empty()
    joined = made.join(zset("k", ((1,), 2)), (("r.x", "k"),), (expression("p"),), ("r.p", "k"))
    assert contents(joined) == expected([((True, 1), 2)])


def test_a_condition_without_columns():
    made = zset("a", ((1,), 1))
    assert contents(made.select((expression("1 = 1"),))) == expected([((1,), 1)])
    assert made.select((expression("1 = 0"),)).is_empty()


# --- NaN and zero ---


def test_values_stay_as_they_were_written_though_zeros_are_equal():
    made = of(pa.float64(), -0.0, NAN) + of(pa.float64(), 0.0, -NAN)
    assert str(sorted(made.weights(), key=str)) == "[((-0.0,), 2), ((nan,), 2)]"


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_nan_and_zero_join_and_match(kind):
    left, right = of(kind, NAN, -0.0, None), of(kind, -NAN, 0.0, None, name="b")
    assert left.join(right, (("a", "b"),), (), ("b",)).size() == 2
    assert left.matching(right, (("a", "b"),)).size() == 3
    assert left.key_delete(right, (("a", "b"),)).is_empty()


# --- adding up ---


def test_what_is_known_to_be_consolidated():
    made = zset("r.x r.y", ((1, 2), 1), ((1, 3), 1))
    assert made.consolidated
    assert (-made).select((expression("x > 0"),)).rename(("a", "b")).consolidated
    assert made.keep((Y, X)).consolidated
    assert not made.keep((X,)).consolidated
    assert not (made + made).consolidated
    assert (made + made).consolidate().consolidated
    assert (made + made).distinct().consolidated
    nothing = made.like((X, Y), [])
    assert (made + nothing).consolidated
    assert (nothing - made).consolidated
    everything = (("y", Expression.column(Y)), ("x", Expression.column(X)), ("n", expression("x > 1")))
    assert made.project(everything).consolidated
    assert not made.project(everything[1:]).consolidated
    other = made.rename(("m.x", "m.y"))
    assert made.join(other, ((X, "m.x"),), (), (X, Y, "m.x", "m.y")).consolidated
    assert not made.join(other, ((X, "m.x"),), (), (X, Y)).consolidated
    assert not made.join(made, ((X, X),), (), (X, Y)).consolidated
    assert made.matching(other, ((X, "m.x"),)).consolidated


def test_numbers_that_become_one_double_add_up():
    large = 2**53
    made = zset("r.x", ((large,), 1), ((large + 1,), 1))
    as_doubles = made.project((("a", Expression.column(X, "DOUBLE")),))
    assert contents(as_doubles) == expected([((float(large),), 2)])
    assert contents(made + zset("r.x", types=("DOUBLE",))) == expected([((float(large),), 2)])


def test_what_is_known_to_be_positive():
    made = zset("r.x", ((1,), 1), ((2,), 1))
    assert made.positive
    assert not (-made).positive
    assert (made + made).positive
    assert not (made - made).positive
    assert (made + made - made).consolidate().positive
    assert not (made - made - made).consolidate().positive
    assert (made - made.like(("r.x",), [])).positive


def test_rows_stay_apart_until_somebody_looks():
    made = zset("r.x", ((1,), 1), ((2,), 1))
    changed = made - made + made
    assert changed.table.num_rows == 6
    assert changed.size() == 2
    assert changed.consolidate() is changed.consolidate(), "added up once"
    assert contents(changed.join(changed.rename(("m",)), ((X, "m"),), (), ("m",))) == expected([((1,), 1), ((2,), 1)])


def test_a_long_sum_has_few_chunks():
    made = zset("a", ((0,), 1))
    for number in range(1, 3 * arrow.MOST_CHUNKS):
        made += zset("a", ((number,), 1))
        assert made.table.column("a").num_chunks <= arrow.MOST_CHUNKS
    assert made.size() == 3 * arrow.MOST_CHUNKS


FLOATS = st.sampled_from([None, NAN, 0.0, -0.0, 1.0, 2.0, 3.0, 4.0])
SIGNED = st.lists(st.tuples(st.tuples(FLOATS, st.sampled_from(["a", "b"])), st.sampled_from([0, 1, -1])), max_size=12)


@given(rows=SIGNED)
def test_many_rows_add_up_as_few_do(rows):
    table = pa.table({"f": pa.array([row[0] for row, _ in rows], pa.float64()), "s": [row[1] for row, _ in rows],
                      WEIGHT: pa.array([weight for _, weight in rows], pa.int64())})  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_keys, "MANY_ROWS", 0)
        assert contents(ArrowZSet.of_table(table)) == contents(MemoryZSet(("f", "s"), rows))


def test_a_pair_of_rows_that_cancelled_out_is_not_evaluated():
    left = zset("r.x", ((0,), 1), ((1,), 1)) - zset("r.x", ((0,), 1))
    right = zset("r.y", ((1,), 1), ((0,), 1)) - zset("r.y", ((0,), 1))
    safe = (expression("1 % x = 0"), expression("1 % y = 0"))
    assert contents(left.join(right, (), safe, (X, Y))) == expected([((1, 1), 1)])


# --- joins of many rows ---


def test_combinations_are_looked_at_in_parts(monkeypatch):
    monkeypatch.setattr(arrow_join, "MOST_PAIRS", 7)
    left = zset("r.x", *(((number,), 1) for number in range(10)))
    right = zset("r.y", *(((number,), 2) for number in range(5)))
    everything = left.join(right, (), (), (X, Y))
    assert contents(everything) == expected([((x, y), 2) for x in range(10) for y in range(5)])
    some = left.join(right, (), (expression("x < y"),), (Y, X))
    assert contents(some) == expected([((y, x), 2) for y in range(5) for x in range(y)])


def test_wide_rows():
    names = [f"c{place}" for place in range(40)]
    left = ArrowZSet.of_rows(("k", *names), [((key, *(f"{key} {name}" for name in names)), 1) for key in range(500)])
    right = left.rename(tuple(f"m.{name}" for name in left.columns))
    everything = (*left.columns, *right.columns)
    joined = left.join(right, (("k", "m.k"),), (), everything)
    assert joined.consolidated
    assert all(row[:41] == row[41:] for row, _ in joined.weights())
    assert joined.size() == 500
    assert (joined + joined - joined - joined).is_empty()


MOMENT = datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.UTC)
KEYS = st.tuples(
    st.sampled_from([None, 0, 1, 2]),
    st.sampled_from([None, "", "a"]),
    st.sampled_from([None, Decimal("0.0"), Decimal("1.50")]),
    st.sampled_from([None, MOMENT, MOMENT.replace(microsecond=1)]),
    st.sampled_from([None, (), (None,), (1,)]),
)
ZSETS = st.lists(st.tuples(KEYS, st.sampled_from([1, 1, 2, -1])), max_size=30)
KEY_COLUMNS = ("l.i", "l.s", "l.d", "l.at", "l.many")
OTHER_COLUMNS = ("r.i", "r.s", "r.d", "r.at", "r.many")
TYPES = ("BIGINT", "STRING", "DECIMAL(10, 2)", "TIMESTAMP", "")


@given(left=ZSETS, right=ZSETS, on=st.sets(st.integers(0, 4)))
def test_keys_of_every_kind_are_found_as_in_memory(left, right, on):
    pairs = tuple((KEY_COLUMNS[place], OTHER_COLUMNS[place]) for place in sorted(on))
    found = []
    for make in (MemoryZSet, lambda columns, weights: ArrowZSet.of_rows(columns, weights, TYPES)):
        # Arrays get their type from the first row, which cancels out: without one, ARRAY<VOID> is no ARRAY<BIGINT>.
        first = ((None, None, None, None, (1,)), 1)
        one, other = make(KEY_COLUMNS, [*left, first]), make(OTHER_COLUMNS, [*right, first])
        one, other = one - make(KEY_COLUMNS, [first]), other - make(OTHER_COLUMNS, [first])
        joined = one.join(other, pairs, (), (*KEY_COLUMNS, *OTHER_COLUMNS))
        results = (
            joined,
            one.matching(other, pairs),
            one.key_delete(other, pairs),
            one + one - other.rename(KEY_COLUMNS),
        )
        found.append([dict(result.weights()) for result in results])
    assert found[0] == found[1]


# --- what Arrow evaluates by itself ---

NULL_TESTS = [
    "x IS NULL",
    "NOT x IS NULL",
    "x IS NULL AND NOT y IS NULL",
    "(x IS NULL OR y IS NULL)",
    "(NOT (x IS NULL))",
]
NULLABLE = st.sampled_from([None, 0, 1])
PAIRS = st.lists(st.tuples(st.tuples(NULLABLE, NULLABLE), st.sampled_from([1, -1])), max_size=9)


@given(rows=PAIRS, tests=st.lists(st.sampled_from(NULL_TESTS), min_size=1, max_size=2))
def test_nulls_are_found_as_in_memory(rows, tests):
    conditions = tuple(map(expression, tests))
    made = ArrowZSet.of_rows((X, Y), rows, ("BIGINT", "BIGINT"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_expressions, "_rows", None)
        assert contents(made.select(conditions)) == contents(MemoryZSet((X, Y), rows).select(conditions))


@pytest.mark.parametrize("constant", ["CAST(NULL AS STRING)", "1 + 1", "'a'", "CAST(1.50 AS DECIMAL(10, 2))"])
def test_a_constant_is_the_same_for_every_row(constant):
    output = ((X, expression("x")), ("c", expression(constant)))
    rows = [((1,), 1), ((2,), 3)]
    made = ArrowZSet.of_rows((X,), rows, ("BIGINT",))
    assert contents(made.project(output)) == contents(MemoryZSet((X,), rows).project(output))


def test_a_constant_that_fails_is_no_error_where_there_is_no_row():
    output = (("c", expression("1 % 0")),)
    assert ArrowZSet.of_rows((X,), [], ("BIGINT",)).project(output).is_empty()
    with pytest.raises(ExpressionError):
        ArrowZSet.of_rows((X,), [((1,), 1)], ("BIGINT",)).project(output)
