"""What random worlds do not come across: names that run together, orders within a transaction, errors."""

from collections import deque

import pytest

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.registry import ALGORITHMS, Transactions
from viewkeeper.checker.judge import check
from viewkeeper.clock import seeded
from viewkeeper.errors import DefinitionError, ExpressionError, ProtocolError
from viewkeeper.levels import Level
from viewkeeper.messages import Change
from viewkeeper.sim.random_updates import Part
from viewkeeper.sim.run import RandomScheduler, Setting, Simulation
from viewkeeper.sim.scenario import Scenario
from viewkeeper.sim.script import parse_relation, parse_updates
from viewkeeper.sim.trace import Observer
from viewkeeper.sql.decompose import decompose
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation

SERVING = {
    kind: [
        name
        for name, one in ALGORITHMS.items()
        if one.levels.get(kind, Level.NONE) >= Level.STRONG and not one.one_source
    ]
    for kind in Transactions
}


def levels(algorithm, relations, view, updates, *, transactions=Transactions.LOCAL, multi_relation=False, runs=12):
    """The lowest level over some interleavings."""
    parsed = [parse_relation(text) for text in relations]
    script, _ = parse_updates(updates)
    for relation, _ in parsed:
        script.setdefault(relation.source, deque())
    setting = Setting({r.name: r for r, _ in parsed}, {r.name: rows for r, rows in parsed}, view, script)
    scenario = Scenario(
        algorithm,
        0,
        relations=len(parsed),
        sources=len(script),
        transactions=transactions,
        multi_relation=multi_relation,
    )
    found = []
    for seed in range(runs):
        history = Simulation(scenario, setting, Observer()).run(RandomScheduler(seeded(seed)).choose).history
        found.append(min(check(history).level, check(history, blind=True).level))
    return min(found)


@pytest.mark.parametrize("algorithm", ["sweep", "batched-sweep", "t-strobe", "c-t-strobe"])
def test_columns_of_a_local_view_are_told_apart(algorithm):
    """orders.customer_id beside customer.id: `alias_column` of one is the plain name of the other."""
    reached = levels(
        algorithm,
        ("x.orders(id*, customer_id): 1 7; 2 8", "x.customer(id*, city): 7 3; 8 4", "y.town(id*, size): 3 9; 4 9"),
        "SELECT orders.id AS o, orders.customer_id AS oc, customer.id AS c, town.size AS s"
        " FROM x.orders, x.customer, y.town WHERE orders.customer_id = customer.id AND customer.city = town.id",
        {"U1": "+x.orders 5 7", "U2": "-y.town 3 9", "U3": "+y.town 3 1", "U4": "-x.customer 8 4"},
        multi_relation=True,
    )
    assert reached >= ALGORITHMS[algorithm].levels[Transactions.LOCAL]


@pytest.mark.parametrize("algorithm", [name for name in SERVING[Transactions.LOCAL] if ALGORITHMS[name].needs_keys])
def test_hidden_keys_are_told_apart(algorithm):
    """Alias o with key line_id beside alias o_line with key id."""
    reached = levels(
        algorithm,
        ("x.r1(line_id*, a): 1 1; 2 1", "y.r2(id*, a): 7 1; 1 1"),
        "SELECT o.a AS a FROM x.r1 AS o JOIN y.r2 AS o_line ON o.a = o_line.a",
        {"U1": "-y.r2 7 1", "U2": "-x.r1 2 1", "U3": "+x.r1 7 1"},
    )
    assert reached >= ALGORITHMS[algorithm].levels[Transactions.LOCAL]


def test_local_views_are_told_apart():
    relations = {r.name: r for r, _ in map(parse_relation, ("s.r1(a, b):", "s.r2(a, b):", "s_2.r3(a, b):"))}
    view = parse_view("SELECT r1.a AS a FROM s.r1, s_2.r3, s.r2 WHERE r1.b = r3.a AND r3.b = r2.a", relations)
    aliases = [operand.alias for operand in decompose(view).assembly.operands]
    assert len(set(aliases)) == 3


@pytest.mark.parametrize("alias", ["_vk", "_vk_x", "_VK"])
def test_reserved_names_are_refused(alias):
    relations = {r.name: r for r, _ in [parse_relation("x.r1(a, b):")]}
    with pytest.raises(DefinitionError, match="reserved"):
        parse_view(f"SELECT {alias}.a AS a FROM x.r1 AS {alias}", relations)


@pytest.mark.parametrize("algorithm", SERVING[Transactions.LOCAL])
@pytest.mark.parametrize(
    "transaction",
    [
        "-x.r1 1 10, +x.r1 2 10, -x.r1 2 20, +x.r1 1 20",
        "+x.r1 1 20, -x.r1 1 10",
        "+x.r1 5 10, -x.r1 5 10",
        "-x.r1 1 10, +x.r1 1 10",
        "-x.r1 1 10, +x.r1 5 10",
        "+x.r1 5 10, -x.r1 5 10, +x.r1 5 20",
    ],
    ids=["keys swapped", "new version first", "undone", "done again", "another key", "undone and done otherwise"],
)
def test_the_order_within_a_transaction_means_nothing(algorithm, transaction):
    reached = levels(
        algorithm,
        ("x.r1(k*, a): 1 10; 2 20", "y.r2(k*, a): 1 10; 2 20; 3 10"),
        "SELECT r1.k AS k1, r2.k AS k2 FROM x.r1 JOIN y.r2 ON r1.a = r2.a",
        {"U1": transaction, "U2": "-y.r2 1 10", "U3": "+y.r2 4 20", "U4": "-y.r2 3 10"},
    )
    assert reached >= ALGORITHMS[algorithm].levels[Transactions.LOCAL]


@pytest.mark.parametrize("algorithm", SERVING[Transactions.SINGLE])
def test_an_update_of_the_key_is_one_update(algorithm):
    reached = levels(
        algorithm,
        ("x.r1(k*, a): 1 10", "y.r2(k*, a): 1 10; 2 10"),
        "SELECT r1.k AS k1, r2.k AS k2 FROM x.r1 JOIN y.r2 ON r1.a = r2.a",
        {"U1": "-x.r1 1 10, +x.r1 5 10", "U2": "-y.r2 1 10, +y.r2 7 10"},
        transactions=Transactions.SINGLE,
    )
    assert reached >= ALGORITHMS[algorithm].levels[Transactions.SINGLE]


def test_strobe_removes_the_new_version_of_a_key_that_is_used_again_and_is_right():
    """key_delete(A1, U2) takes out the row of U3 too; U3's own query brings it back."""
    for algorithm in ("strobe", "t-strobe"):
        reached = levels(
            algorithm,
            ("x.r1(k*, a): 1 10", "y.r2(k*, a):"),
            "SELECT r1.k AS k1, r1.a AS a, r2.k AS k2 FROM x.r1 JOIN y.r2 ON r1.k = r2.a",
            {"U1": "+y.r2 1 1", "U2": "-x.r1 1 10", "U3": "+x.r1 1 20"},
            transactions=Transactions.SINGLE,
            runs=60,
        )
        assert reached >= Level.STRONG


@pytest.mark.parametrize("algorithm", SERVING[Transactions.LOCAL])
def test_relations_outside_the_view_and_empty_transactions_have_their_states(algorithm):
    r1, rows1 = parse_relation("x.r1(k*, a): 1 1")
    z, rows_z = parse_relation("x.z(k*, a): 1 1")
    r2, rows2 = parse_relation("y.r2(k*, a): 1 1")
    parts = [
        Part("x", (Change("x.z", (2, 2), 1), Change("x.r1", (2, 1), 1))),
        Part("x", (Change("x.z", (2, 2), -1),)),
        Part("x", ()),
    ]
    setting = Setting(
        {r.name: r for r in (r1, z, r2)},
        {"x.r1": rows1, "x.z": rows_z, "y.r2": rows2},
        "SELECT r1.k AS k1, r2.k AS k2 FROM x.r1 JOIN y.r2 ON r1.a = r2.a",
        {"x": deque(parts), "y": deque([Part("y", (Change("y.r2", (1, 1), -1),))])},
    )
    scenario = Scenario(algorithm, 0, relations=3, sources=2, transactions=Transactions.LOCAL)
    for seed in range(10):
        run = Simulation(scenario, setting, Observer()).run(RandomScheduler(seeded(seed)).choose)
        assert check(run.history).level >= ALGORITHMS[algorithm].levels[Transactions.LOCAL]
        assert len(run.history.deliveries) == 4


def test_a_row_may_count_more_than_once_in_a_change():
    r1, rows1 = parse_relation("x.r1(a, b): 1 1")
    r2, rows2 = parse_relation("y.r2(a, b): 1 1; 1 1")
    setting = Setting(
        {"x.r1": r1, "y.r2": r2},
        {"x.r1": rows1, "y.r2": rows2},
        "SELECT r1.a AS a FROM x.r1 JOIN y.r2 ON r1.b = r2.a",
        {"x": deque([Part("x", (Change("x.r1", (1, 1), 3),))]), "y": deque([Part("y", (Change("y.r2", (1, 1), -2),))])},
    )
    for algorithm in (
        "sweep",
        "parallel-sweep",
        "pipelined-sweep",
        "parallel-pipelined-sweep",
        "nested-sweep",
        "batched-sweep",
    ):
        scenario = Scenario(algorithm, 0, relations=2)
        for seed in range(8):
            history = Simulation(scenario, setting, Observer()).run(RandomScheduler(seeded(seed)).choose).history
            assert check(history, blind=True).level >= ALGORITHMS[algorithm].levels[Transactions.SINGLE]


def test_a_view_that_failed_says_so_from_then_on():
    r1, rows1 = parse_relation("x.r1(k*, a): 1 1")
    most = 2**63 - 1
    changes = [Part("x", (Change("x.r1", (key, most), 1),)) for key in (2, 3)]
    setting = Setting({"x.r1": r1}, {"x.r1": rows1}, "SELECT r1.a + 1 AS a FROM x.r1", {"x": deque(changes)})
    simulation = Simulation(Scenario("sweep", 0, relations=1), setting, Observer())
    scheduler = RandomScheduler(seeded(0))
    with pytest.raises(ExpressionError, match="out of the range"):
        simulation.run(scheduler.choose)
    with pytest.raises(ProtocolError, match="no longer maintained"):
        simulation.run(scheduler.choose)


def test_views_of_the_same_text_over_other_types_do_not_mix():
    sql = "SELECT r1.a + r2.a AS c FROM x.r1 JOIN y.r2 ON r1.a <= r2.a"
    results = {}
    for kind, value in (("INT", 2), ("BIGINT", 2**40), ("DOUBLE", float("nan"))):
        relations = {name: Relation(name, name[0], ("a",), (kind,)) for name in ("x.r1", "y.r2")}
        contents = {name: MemoryZSet.of(("a",), (value,)) for name in relations}
        results[kind] = JoinPlan(parse_view(sql, relations)).evaluate(contents).size()
    assert results == {"INT": 1, "BIGINT": 1, "DOUBLE": 1}, "2**40 is no INT, and NaN equals itself"
