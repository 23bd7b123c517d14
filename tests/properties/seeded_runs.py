"""Runs over many seeds, and the book of seeds that once failed."""

from pathlib import Path

from viewkeeper.algorithms.registry import ALGORITHMS, Transactions
from viewkeeper.sim.report import Report, judge
from viewkeeper.sim.run import simulate
from viewkeeper.sim.scenario import Scenario

REGRESSIONS = Path(__file__).with_name("regressions.txt")

WORLDS = {"one view": Scenario.varied, "mediator": Scenario.varied_live}
"""a view by itself, as the papers have it; groups of the live mediator, with captures that merge and restarts"""

CELLS = [
    (name, transactions)
    for name, algorithm in ALGORITHMS.items()
    for transactions in Transactions
    if transactions in algorithm.levels
]


def run(scenario: Scenario) -> Report:
    return judge(scenario, simulate(scenario))


def check_promise(scenario: Scenario) -> Report:
    """The run reaches what its algorithm promises, with its own vectors and blind; if not, it goes into the book."""
    try:
        report = run(scenario)
    except Exception as error:
        _keep(scenario)
        error.add_note(f"to repeat it: {scenario.command()}")
        raise
    # A blind search that gave up proves nothing.
    if not report.kept_promise or report.undecided:
        _keep(scenario)
        raise AssertionError(f"{report.text()}\n\nto repeat it: {scenario.command()}")
    return report


def _keep(scenario: Scenario) -> None:
    known = REGRESSIONS.read_text(encoding="utf-8").splitlines()
    if scenario.command() not in known:
        with REGRESSIONS.open("a", encoding="utf-8") as book:
            book.write(f"{scenario.command()}\n")
