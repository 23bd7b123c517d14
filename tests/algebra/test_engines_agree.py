"""Random sequences of operations give the same on every engine."""

import pytest
from engines import WITHOUT_SPARK, constructors, contents, expression
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from run_size import examples, some
from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.clock import seeded
from viewkeeper.sim.random_views import random_relations, random_rows, random_view

COLUMNS = ("r.x", "r.s", "r.f")
OTHER = ("m.x", "m.s", "m.f")
ON = (("r.x", "m.x"),)

# Small domains, so that rows meet; many rows per Z-set, because a Spark job costs the same for one as for many.
ROWS = st.tuples(
    st.one_of(st.none(), st.integers(0, 3)),
    st.sampled_from([None, "", "a", "A"]),
    st.sampled_from([None, float("nan"), 0.0, -0.0, 1.5]),
)
ZSETS = st.lists(st.tuples(ROWS, st.sampled_from([1, 1, 1, 2, -1, -2])), max_size=25)

CONDITIONS = ["x > 1", "s = 'a' OR x IS NULL", "NOT f > 1", "x + 1 IN (1, 2)", "s IS NOT NULL", "f = f"]
OUTPUTS = [
    ("x + 1", "s", "f"),
    ("CASE WHEN s = 'a' THEN 1 ELSE x END", "s", "f - f"),
    ("x", "COALESCE(s, 'n') || '!'", "f * 2"),
    ("x", "NULLIF(s, '')", "-f"),
]

UNARY = {
    "negate": lambda z: -z,
    "distinct": lambda z: z.distinct(),
    "keep": lambda z: z.keep(("r.f", "r.x", "r.s")).keep(COLUMNS),
    "pad": lambda z: z.keep(("r.x",)).project(
        (("r.x", expression("x")), ("r.s", expression("CAST(x AS STRING)")), ("r.f", expression("x * 0.5e0")))
    ),
    **{f"where {sql}": lambda z, sql=sql: z.select((expression(sql),)) for sql in CONDITIONS},
    **{
        f"select {', '.join(output)}": lambda z, output=output: z.project(
            tuple((name, expression(sql)) for name, sql in zip(COLUMNS, output, strict=True))
        )
        for output in OUTPUTS
    },
}
BINARY = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "matching": lambda a, b: a.matching(b.rename(OTHER), ON),
    "key_delete": lambda a, b: a.key_delete(b.rename(OTHER), (("r.s", "m.s"), ("r.f", "m.f"))),
    "join": lambda a, b: a.join(b.rename(OTHER), ON, (), ("r.x", "m.s", "r.f")).rename(COLUMNS),
    "join where": lambda a, b: a.join(
        b.rename(OTHER), (("r.s", "m.s"),), (expression("x * 2 < 5"),), ("m.x", "r.s", "m.f")
    ).rename(COLUMNS),
}
STEPS = st.lists(
    st.tuples(st.sampled_from(sorted(UNARY) + sorted(BINARY) * 3), st.integers(0, 9), st.integers(0, 9)),
    min_size=2,
    max_size=6,
)


def run(make, zsets, steps):
    """The last of the Z-sets that the steps make, each from earlier ones."""
    made = [make(COLUMNS, weights) for weights in zsets]
    for name, one, other in steps:
        left, right = made[-1 - one % len(made)], made[-1 - other % len(made)]
        made.append(UNARY[name](left) if name in UNARY else BINARY[name](left, right))
    return contents(made[-1] + made[len(zsets) - 1])


@pytest.mark.parametrize("engine", ["spark", "adaptive"])
@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(zsets=st.lists(ZSETS, min_size=2, max_size=2), steps=STEPS)
def test_every_engine_agrees_with_the_one_in_memory(spark, engine, zsets, steps):
    make = constructors(spark)
    assert run(make[engine], zsets, steps) == run(make["memory"], zsets, steps)


@settings(max_examples=examples(150))
@given(zsets=st.lists(ZSETS, min_size=2, max_size=2), steps=STEPS)
def test_the_engine_in_arrow_agrees_with_the_one_in_memory(zsets, steps):
    assert run(WITHOUT_SPARK["arrow"], zsets, steps) == run(WITHOUT_SPARK["memory"], zsets, steps)


@pytest.mark.parametrize("seed", some(range(6), 2))
def test_every_engine_evaluates_random_views(spark, seed):
    random = seeded(seed)
    relations = random_relations(random, 2 + seed % 3, 1, keyless=seed % 2 == 0)
    rows = {name: random_rows(random, relation) for name, relation in relations.items()}
    plan = JoinPlan(random_view(random, relations, self_join=seed % 3 == 0))
    make = constructors(spark)["spark"]
    full = {name: make(held.columns, held.weights()) for name, held in rows.items()}
    assert contents(plan.evaluate(full)) == contents(plan.evaluate(rows))


@pytest.mark.parametrize("seed", some(range(60), 20))
def test_the_engine_in_arrow_evaluates_random_views(seed):
    random = seeded(seed)
    relations = random_relations(random, 2 + seed % 3, 1, keyless=seed % 2 == 0)
    rows = {name: random_rows(random, relation) for name, relation in relations.items()}
    plan = JoinPlan(random_view(random, relations, self_join=seed % 3 == 0))
    full = {name: WITHOUT_SPARK["arrow"](held.columns, held.weights()) for name, held in rows.items()}
    assert contents(plan.evaluate(full)) == contents(plan.evaluate(rows))
