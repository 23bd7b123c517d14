"""The laws of Z-sets, on random ones: a group under +, joins that distribute over it, NULLs that never join."""

from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.sql.expressions import Expression

VALUES = st.one_of(st.none(), st.integers(0, 2))
AB = ("l.a", "l.b")
BC = ("r.b", "r.c")
ON = (("l.b", "r.b"),)
KEEP = ("l.a", "l.b", "r.c")


def zsets(columns, values=VALUES):
    rows = st.tuples(*(values for _ in columns))
    return st.lists(st.tuples(rows, st.integers(-2, 2)), max_size=6).map(lambda weights: MemoryZSet(columns, weights))


def join(left, right):
    return left.join(right, ON, (), KEEP)


@given(zsets(AB), zsets(AB), zsets(AB))
def test_addition_is_a_commutative_group(x, y, z):
    assert x + y == y + x
    assert (x + y) + z == x + (y + z)
    assert x - x == MemoryZSet(AB)
    assert x + (-x) == MemoryZSet(AB)
    assert x - y == x + (-y)


@given(zsets(AB), zsets(AB), zsets(BC), zsets(BC))
def test_joins_distribute_over_addition(x, y, u, v):
    assert join(x + y, u) == join(x, u) + join(y, u)
    assert join(x, u + v) == join(x, u) + join(x, v)
    assert join(-x, u) == -join(x, u) == join(x, -u)


@given(zsets(AB), zsets(BC))
def test_join_is_the_sum_over_all_pairs(x, u):
    expected = MemoryZSet(
        KEEP,
        [
            ((a, b, c), left * right)
            for (a, b), left in x.weights()
            for (b2, c), right in u.weights()
            if b is not None and b == b2
        ],
    )
    assert join(x, u) == expected


@given(zsets(AB), zsets(BC))
def test_null_never_joins(x, u):
    assert all(row[1] is not None for row, _ in join(x, u).weights())


@given(zsets(AB), zsets(BC), zsets(("s.c", "s.d")))
def test_joins_associate(x, u, w):
    on = (("r.c", "s.c"),)
    left = join(x, u).join(w, on, (), ("l.a", "s.d"))
    right = x.join(u.join(w, on, (), ("r.b", "s.d")), ON, (), ("l.a", "s.d"))
    assert left == right


@given(zsets(AB), zsets(AB))
def test_selection_and_projection_are_linear(x, y):
    condition = (Expression.greater("l.a", "l.b"),)
    assert (x + y).select(condition) == x.select(condition) + y.select(condition)
    assert (x + y).keep(("l.b",)) == x.keep(("l.b",)) + y.keep(("l.b",))
    output = (("n", Expression.column("l.a")),)
    assert (x + y).project(output) == x.project(output) + y.project(output)


@given(zsets(AB))
def test_a_condition_over_null_does_not_hold(x):
    kept = x.select((Expression.greater("l.a", "l.b"),))
    assert all(a is not None and b is not None and a > b for (a, b), _ in kept.weights())


@given(zsets(AB), zsets(("k",)))
def test_key_delete_removes_exactly_what_matches(x, keys):
    on = (("l.a", "k"),)
    gone = x.matching(keys, on)
    wanted = {row[0] for row, _ in keys.weights()}
    assert all(row[0] in wanted for row, _ in gone.weights())
    assert x.key_delete(keys, on) + gone == x
    assert all(row[0] not in wanted for row, _ in x.key_delete(keys, on).weights())


@given(zsets(AB))
def test_bags_cancel_and_distinct_is_a_set(x):
    assert all(weight != 0 for _, weight in x.weights())
    assert x.distinct().distinct() == x.distinct()
    assert {row for row, weight in x.weights() if weight > 0} == {row for row, _ in x.distinct().weights()}
