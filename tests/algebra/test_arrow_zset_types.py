"""The types of columns in Arrow: what a table is held in, what two columns meet in, what an expression gives."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from engines import contents, expected, expression

from viewkeeper.algebra.arrow import ArrowZSet
from viewkeeper.algebra.zset import WEIGHT
from viewkeeper.errors import ExpressionError
from viewkeeper.sql.expressions import Expression

UTC = datetime.UTC
NAN = float("nan")
X = "r.x"


def zset(columns, *weights, types=None):
    return ArrowZSet.of_rows(tuple(columns.split()), weights, types)


def of(column, *values, name="a"):
    """Each value once, in one column of a type."""
    return ArrowZSet.of_table(pa.table({name: pa.array(values, column)}))


def types_of(made):
    return made.table.schema.types[:-1]


# --- what a table is held in ---

MOMENT = datetime.datetime(2024, 7, 1, 12, tzinfo=UTC)
LOCAL = datetime.datetime(2024, 7, 1, 12)
HELD = [
    (pa.uint8(), 255, pa.int16()),
    (pa.uint16(), 65535, pa.int32()),
    (pa.uint32(), 2**32 - 1, pa.int64()),
    (pa.uint64(), 2**64 - 1, pa.decimal128(20, 0)),
    (pa.float16(), 0.5, pa.float32()),
    (pa.large_string(), "é", pa.string()),
    (pa.string_view(), "é", pa.string()),
    (pa.dictionary(pa.int8(), pa.string()), "é", pa.string()),
    (pa.dictionary(pa.int8(), pa.large_string()), "é", pa.string()),
    (pa.large_binary(), b"\xff", pa.binary()),
    (pa.binary_view(), b"\xff", pa.binary()),
    (pa.binary(2), b"\xff\0", pa.binary()),
    (pa.date64(), datetime.date(1500, 2, 28), pa.date32()),
    (pa.decimal32(5, 2), Decimal("1.50"), pa.decimal128(5, 2)),
    (pa.decimal64(15, 2), Decimal("1.50"), pa.decimal128(15, 2)),
    (pa.decimal256(38, 2), Decimal("1.50"), pa.decimal128(38, 2)),
    (pa.timestamp("s"), LOCAL, pa.timestamp("us")),
    (pa.timestamp("ns", tz="Europe/Berlin"), MOMENT, pa.timestamp("us", tz="UTC")),
]


@pytest.mark.parametrize(("given_type", "value", "held"), HELD, ids=[str(kind) for kind, _, _ in HELD])
def test_values_are_held_in_one_type(given_type, value, held):
    made = of(given_type, value, None)
    assert types_of(made) == [held]
    same = zset("b", ((Decimal(value) if given_type == pa.uint64() else value,), 1), ((None,), 1))
    assert (made - same.rename(("a",))).is_empty()
    assert made.matching(same, (("a", "b"),)).size() == 2
    assert made.join(same, (("a", "b"),), (), ("b",)).size() == 1


def test_moments_that_are_finer_than_held_are_refused():
    with pytest.raises(ExpressionError, match="a holds a value that is no TIMESTAMP_NTZ"):
        ArrowZSet.of_table(pa.table({"a": pa.array([1], pa.timestamp("ns"))}))


def test_structs_are_carried_and_have_no_value():
    made = ArrowZSet.of_table(pa.table({"a": [1, 2], "s": [{"f": 1}, {"f": 2}]}))
    assert contents(made.matching(zset("k", ((2,), 1)), (("a", "k"),)).keep(("a",))) == expected([((2,), 1)])
    with pytest.raises(ExpressionError, match="take its fields as columns"):
        made.size()


def test_arrays_are_tuples():
    made = of(pa.list_(pa.float64()), [NAN, -0.0], [NAN, 0.0], None, [])
    ((nan, zero),) = next(row for row, weight in made.weights() if weight == 2)
    assert nan != nan
    assert zero == 0
    assert made.size() == 3
    assert (made + of(pa.large_list(pa.float64()), [0.5])).size() == 4


# --- types ---


def test_rows_with_types():
    types = ("INT", "DECIMAL(10, 2)", "FLOAT", "TIMESTAMP", "")
    made = zset("i d f n c", ((1, Decimal("1.5"), 0.5, None, "c"), 1), types=types)
    held = [pa.int32(), pa.decimal128(10, 2), pa.float32(), pa.timestamp("us", tz="UTC"), pa.string()]
    assert types_of(made) == held
    assert contents(made) == expected([((1, Decimal("1.50"), 0.5, None, "c"), 1)])
    assert types_of(zset("i d f n c", types=types))[:4] == held[:4], "also without a row"
    with pytest.raises(ExpressionError, match="d is declared DECIMAL"):
        zset("d", ((Decimal("0.125"),), 1), types=("DECIMAL(10, 2)",))
    with pytest.raises(ExpressionError, match="i holds a value that is no INT"):
        zset("i", ((2**31,), 1), types=("INT",))


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int8(), pa.int16(), pa.int16()),
        (pa.int64(), pa.decimal128(4, 2), pa.decimal128(22, 2)),
        (pa.decimal128(4, 2), pa.decimal128(10, 5), pa.decimal128(10, 5)),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.int64(), pa.float64(), pa.float64()),
        (pa.decimal128(4, 2), pa.float64(), pa.float64()),
        (pa.null(), pa.date32(), pa.date32()),
    ],
)
def test_two_types_meet_in_a_common_one(one, other, common):
    value = None if pa.types.is_null(one) else 1
    for kind, partner in ((one, other), (other, one)):
        left, right = of(kind, value), of(partner, value, name="b")
        assert (left - right.rename(("a",))).is_empty()
        assert types_of(left + right.rename(("a",))) == [common]
        assert left.matching(right, (("a", "b"),)).size() == 1
        assert left.key_delete(right, (("a", "b"),)).is_empty()
        joined = left.join(right, (("a", "b"),), (), ("a", "b"))
        assert joined.size() == (value is not None)
        assert types_of(joined) == [*types_of(left), *types_of(right)], "only to be compared"


def test_what_would_have_to_be_converted_is_refused():
    texts, whole = zset("a", (("1",), 1)), zset("a", ((1,), 1))
    for mixed in (
        lambda: texts + whole,
        lambda: texts.join(whole.rename(("b",)), (("a", "b"),), (), ("a",)),
        lambda: texts.matching(whole.rename(("b",)), (("a", "b"),)),
    ):
        with pytest.raises(ExpressionError, match="mixes STRING with BIGINT"):
            mixed()


def test_computed_columns_have_the_type_of_their_expression():
    made = zset("r.i r.d r.x r.s", ((7, Decimal("1.5"), None, "s"), 1))
    sql = {"i": pa.int32(), "i + i": pa.int32(), "d * 2": pa.decimal128(12, 2), "x": pa.int64(), "x + 1": pa.int64(),
           "d": pa.decimal128(10, 2), "s || 's'": pa.string(), "i > 1": pa.bool_(), "x * 0.5e0": pa.float64(),
           "CAST(NULL AS DATE)": pa.date32()}  # fmt: skip
    output = tuple((text, expression(text)) for text in sql)
    assert types_of(made.project(output)) == list(sql.values())
    assert types_of((made - made).project(output)) == list(sql.values()), "also without a row"
    assert contents(made.project(output[:3])) == expected([((7, 14, Decimal("3.00")), 1)])
    untyped = made.project((("n", Expression("`r.i` IS NULL", frozenset({"r.i"}))),))
    assert contents(untyped) == expected([((False,), 1)])


def test_values_of_another_type_than_declared():
    made = zset("r.x r.d", (("1", Decimal("0.125")), 1))
    with pytest.raises(ExpressionError, match=r"r\.x is declared BIGINT and its values are STRING"):
        made.select((expression("x > 0"),))
    with pytest.raises(ExpressionError, match=r"DECIMAL\(10, 2\) and its values are DECIMAL\(3, 3\)"):
        made.project((("n", expression("d")),))


def test_columns_that_an_expression_does_not_mention_may_be_anything():
    made = ArrowZSet.of_table(pa.table({X: [1, 2], "s": [{"f": 1}, {"f": 2}]}))
    assert made.select((expression("x > 1"),)).table.to_pydict() == {X: [2], "s": [{"f": 2}], WEIGHT: [1]}
    assert contents(made.project((("n", expression("x + 1")),))) == expected([((2,), 1), ((3,), 1)])


def test_what_only_spark_evaluates_is_refused():
    made = zset("r.s", (("a",), 1))
    upper = expression("upper(s) = 'A'")
    for evaluate in (
        lambda: made.select((upper,)),
        lambda: made.project((("n", upper),)),
        lambda: made.join(zset("k", ((1,), 1)), (), (upper,), ("k",)),
    ):
        with pytest.raises(ExpressionError) as refused:
            evaluate()
        with pytest.raises(ExpressionError) as by_compiling:
            upper.compile(("r.s",))
        assert str(refused.value) == str(by_compiling.value)
