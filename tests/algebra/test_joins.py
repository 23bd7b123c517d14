"""From a view to its hops: every order gives the view, and partial results over the same operands can be added."""

import pytest

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.clock import seeded
from viewkeeper.sim.random_views import random_relations, random_rows, random_view
from viewkeeper.sim.script import parse_relation
from viewkeeper.sql.parse import parse_view


def plan_of(sql, *relations):
    return JoinPlan(parse_view(sql, {relation.name: relation for relation, _ in map(parse_relation, relations)}))


CHAIN = plan_of(
    "SELECT r1.a AS a, r4.b AS b FROM w.r1, x.r2, y.r3, z.r4 WHERE r1.b = r2.a AND r2.b = r3.a AND r3.b = r4.a",
    "w.r1(a, b):", "x.r2(a, b):", "y.r3(a, b):", "z.r4(a, b):",
)  # fmt: skip
CYCLE = plan_of(
    "SELECT r1.a AS a FROM x.r1, y.r2, z.r3 WHERE r1.b = r2.a AND r2.b = r3.a AND r3.b = r1.a",
    "x.r1(a, b):", "y.r2(a, b):", "z.r3(a, b):",
)  # fmt: skip


def test_a_chain_is_swept_left_and_then_right():
    order = [hop.operand.index for hop in CHAIN.path(frozenset({2}))]
    assert order == [1, 0, 3]


def test_sides_of_an_operand():
    assert CHAIN.components(without=1) == (frozenset({0}), frozenset({2, 3}))
    assert CYCLE.components(without=0) == (frozenset({1, 2}),), "a cycle has one side"


def test_the_condition_that_closes_a_cycle_is_applied_by_the_last_hop():
    first, last = CYCLE.path(frozenset({0}))
    assert len(first.on) == 1
    assert len(last.on) == 2


def test_only_needed_columns_are_carried():
    assert CHAIN.carried(frozenset({1, 2})) == ("r2.a", "r3.b"), "what both sides still join on"
    assert CHAIN.carried(frozenset({0, 1, 2, 3})) == ("r1.a", "r4.b")


def test_a_condition_without_columns_is_applied():
    plan = plan_of("SELECT r1.a AS a FROM x.r1 WHERE 1 = 0", "x.r1(a, b):")
    assert plan.evaluate({"x.r1": MemoryZSet.of(("a", "b"), (1, 2))}).is_empty()


@pytest.mark.parametrize("seed", range(60))
def test_every_start_gives_the_view(seed):
    """V⟨all of R_i⟩ is V, whichever operand the sweep starts from."""
    random = seeded(seed)
    relations = random_relations(random, 2 + seed % 3, 1, keyless=seed % 2 == 0)
    rows = {name: random_rows(random, relation) for name, relation in relations.items()}
    plan = JoinPlan(random_view(random, relations, self_join=seed % 3 == 0))
    expected = plan.evaluate(rows)
    for operand in plan.operands:
        delta = plan.start(operand.index, rows[operand.relation.name])
        for hop in plan.path(frozenset({operand.index})):
            delta = hop.join(delta, rows[hop.operand.relation.name])
        assert plan.finish(delta) == expected
