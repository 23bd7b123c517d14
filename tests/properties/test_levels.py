"""Every algorithm reaches the level that it promises, under every kind of transactions that it serves.

The runs vary the number of relations and sources, self-joins, keyless relations, the multi-relation wrapper, crossing
and whole global transactions; over the live mediator also the views of a group, merged captures and restarts. A failure
prints the command that repeats it. `test_levels_soak.py` has many more of them.
"""

import shlex

import pytest
from click.testing import CliRunner
from seeded_runs import CELLS, REGRESSIONS, WORLDS, check_promise, run

from run_size import FAST
from viewkeeper.algorithms.registry import ALGORITHMS, Transactions
from viewkeeper.cli.main import viewkeeper
from viewkeeper.levels import Level
from viewkeeper.sim.scenario import Scenario

KEPT = {"one view": 3, "mediator": 2} if FAST else {"one view": 6, "mediator": 4}
"""runs of each algorithm that must keep its promise; the long runs have a thousand of each"""
RUNS = 300
"""runs within which a broken one must be caught"""


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(("name", "transactions"), CELLS)
def test_promised_level(name, transactions, world):
    for seed in range(KEPT[world]):
        check_promise(WORLDS[world](name, transactions, seed))


@pytest.mark.parametrize(
    "name", [name for name, algorithm in ALGORITHMS.items() if algorithm.out_of_order > Level.NONE]
)
@pytest.mark.parametrize("transactions", Transactions)
def test_convergence_when_answers_are_out_of_order_with_updates(name, transactions):
    for seed in range(3 if FAST else 6):
        check_promise(Scenario(name, seed, relations=2 + seed % 3, transactions=transactions, out_of_order=True))


@pytest.mark.parametrize(
    ("name", "transactions", "below"),
    [
        ("conventional", Transactions.SINGLE, Level.CONVERGENT),
        ("eca-key", Transactions.SINGLE, Level.CONVERGENT),
        ("strobe", Transactions.LOCAL, Level.WEAK),
        ("t-strobe", Transactions.GLOBAL, Level.STRONG),
        ("sweep", Transactions.GLOBAL, Level.STRONG),
        ("c-strobe", Transactions.LOCAL, Level.WEAK),
        ("recompute", Transactions.SINGLE, Level.WEAK),
    ],
)
def test_what_an_algorithm_is_not_made_for_is_caught(name, transactions, below):
    """Blind too: no mapping at all saves these runs."""
    caught = {"claimed": False, "blind": False}
    for seed in range(RUNS):
        report = run(Scenario.varied(name, transactions, seed))
        caught["claimed"] |= report.claimed.level < below
        caught["blind"] |= report.blind.level < below
        if all(caught.values()):
            return
    raise AssertionError(f"not caught in {RUNS} runs: {caught}")


def test_sweep_diverges_when_answers_are_out_of_order():
    """The fault is real: what rests on the order of messages is caught under it."""
    reports = [run(Scenario("sweep", seed, out_of_order=True)) for seed in range(30)]
    assert any(report.level < Level.CONVERGENT for report in reports)


@pytest.mark.parametrize(
    "command", [line for line in REGRESSIONS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
)
def test_runs_that_once_failed(command):
    result = CliRunner().invoke(viewkeeper, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
