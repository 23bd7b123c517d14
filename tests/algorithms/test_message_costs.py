"""Message costs as the papers' tables have them, counted on chains in which every row meets a partner."""

import pytest

from viewkeeper.sim.chains import Calm, Hostile, Storm, chain, run_chain

NS = [2, 3, 4, 5]
SWEEPS = ["sweep", "parallel-sweep", "pipelined-sweep", "parallel-pipelined-sweep"]


def mixed(relations, count):
    """Inserts and deletes, relation by relation."""
    return [
        (number % relations + 1, -1 if (number // relations + number % relations) % 3 == 2 else 1)
        for number in range(count)
    ]


def queries(algorithm, setting, timing, **how):
    return run_chain(algorithm, setting, timing, **how).messages.queries


@pytest.mark.parametrize("n", NS)
@pytest.mark.parametrize("timing", [Calm, Storm])
@pytest.mark.parametrize("algorithm", SWEEPS)
def test_sweep_takes_n_minus_1_per_update_whatever_interferes(algorithm, timing, n):
    assert queries(algorithm, chain(n, mixed(n, 12), rows=5), timing()) == 12 * (n - 1)


@pytest.mark.parametrize("n", NS)
@pytest.mark.parametrize("timing", [Calm, Storm])
def test_nested_sweep_never_takes_more(timing, n):
    taken = queries("nested-sweep", chain(n, mixed(n, 12), rows=5), timing())
    assert taken <= 12 * (n - 1)
    if timing is Calm:
        assert taken == 12 * (n - 1), "alone, an update is swept as by sweep"
    else:
        assert taken < 12 * (n - 1) / 2, "folded together, they share the way"


@pytest.mark.parametrize("n", NS)
@pytest.mark.parametrize("algorithm", ["conventional", "strobe", "t-strobe", "g-strobe", "c-strobe", "c-t-strobe"])
def test_keys_make_deletions_free(algorithm, n):
    assert queries(algorithm, chain(n, [(j, 1) for j in range(1, n + 1)]), Calm()) == n * (n - 1)
    assert queries(algorithm, chain(n, [(j, -1) for j in range(1, n + 1)]), Calm()) == 0


@pytest.mark.parametrize("n", NS)
def test_eca_takes_one_query_per_update_and_its_size_grows_with_interference(n):
    setting = chain(n, mixed(n, 12), rows=5, per_source=n)
    calm, storm = (run_chain("eca", setting, timing()) for timing in (Calm, Storm))
    assert calm.messages.queries == storm.messages.queries == 12
    assert storm.messages.rows > calm.messages.rows


@pytest.mark.parametrize(("n", "compensating"), [(3, 2), (4, 9), (5, 40)])
def test_grouped_c_strobe_under_constant_interference(n, compensating):
    """Σ (n-1)!/(n-1-k)! for k = 1..n-2 compensating queries, each of n - 1 - k hops, for one insertion."""
    deletions = [(j, -1) for _ in range(n - 1) for j in range(2, n + 1)]
    setting = chain(n, [(1, 1), *deletions], rows=n)
    taken = queries("c-strobe", setting, Hostile())
    hops, count, ways = n - 1, 0, 1
    for k in range(1, n - 1):
        ways *= n - k
        count += ways
        hops += ways * (n - 1 - k)
    assert count == compensating
    assert taken == hops


def test_ungrouped_c_strobe_takes_more_than_grouped():
    deletions = [(j, -1) for _ in range(4) for j in (2, 3, 4)]
    setting = chain(4, [(1, 1), *deletions], rows=8)
    grouped = queries("c-strobe", setting, Storm())
    ungrouped = queries("c-strobe", setting, Storm(), options=(("grouped", False),))
    assert ungrouped > 3 * grouped


@pytest.mark.parametrize("n", [2, 3, 4])
def test_batched_sweep_takes_at_most_n_times_n_minus_1_per_batch(n):
    costs = []
    for batch in (1, 4, 16, 64):
        setting = chain(n, mixed(n, 128), rows=60)
        taken = queries("batched-sweep", setting, Storm(), options=(("batch", batch),))
        # The first update is taken alone, before the others are there.
        batches = 1 + -(-127 // batch)
        assert taken <= batches * n * (n - 1)
        costs.append(taken / 128)
    assert costs[0] == n - 1, "a batch of one is sweep"
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0] / 8


@pytest.mark.parametrize("algorithm", ["sweep", "t-strobe", "batched-sweep"])
@pytest.mark.parametrize(("relations", "sources"), [(4, 2), (6, 3), (6, 2), (4, 1)])
def test_the_wrapper_takes_one_message_per_source(algorithm, relations, sources):
    """An insertion costs a query to every source, its own included, not one for every other relation."""
    updates = [(j, 1) for j in range(1, relations + 1)]
    setting = chain(relations, updates, per_source=relations // sources)
    assert queries(algorithm, setting, Calm()) == relations * (relations - 1)
    wrapped = run_chain(algorithm, setting, Calm(), multi_relation=True)
    assert wrapped.messages.queries == relations * (sources - 1)
    assert wrapped.local_queries == relations, "one to its own source, however many relations that has"


@pytest.mark.parametrize("n", [3, 4, 5])
def test_periodic_c_strobe_lies_between_t_strobe_and_c_t_strobe(n):
    setting = chain(n, mixed(n, 15), rows=3)
    t, periodic, c_t = (queries(name, setting, Storm()) for name in ("t-strobe", "periodic-c-strobe", "c-t-strobe"))
    assert t < periodic < c_t


def test_recompute_asks_every_relation():
    assert queries("recompute", chain(4, mixed(4, 8), rows=5), Calm()) == 8 * 4
