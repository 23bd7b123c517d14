"""How long an algorithm makes its readers wait: what needs quiet, what does not, and what ends by force."""

import pytest

from viewkeeper.algorithms.registry import ALGORITHMS
from viewkeeper.errors import UsageError
from viewkeeper.levels import Level
from viewkeeper.sim.chains import Calm, Storm, chain, run_chain
from viewkeeper.sim.report import judge
from viewkeeper.sim.run import Simulation
from viewkeeper.sim.scenario import Scenario
from viewkeeper.sim.trace import Observer
from viewkeeper.sim.world import Event, Happening

UPDATES = [(number % 3 + 1, 1) for number in range(24)]


def installed(algorithm, timing, *, per_source=1, **options):
    setting = chain(3, UPDATES, per_source=per_source)
    run = run_chain(algorithm, setting, timing, options=tuple(options.items()))
    return len(run.history.states) - 1, run


@pytest.mark.parametrize("algorithm", ["strobe", "t-strobe", "g-strobe"])
def test_what_needs_quiet_installs_once_when_it_comes(algorithm):
    assert installed(algorithm, Storm())[0] == 1
    assert installed(algorithm, Calm())[0] == len(UPDATES)


def test_eca_needs_quiet_too():
    assert installed("eca", Storm(), per_source=3)[0] == 1


@pytest.mark.parametrize("period", [1, 4, 8])
def test_periodic_c_strobe_installs_after_its_period_at_the_latest(period):
    assert installed("periodic-c-strobe", Storm(), period=period)[0] == len(UPDATES) / period


@pytest.mark.parametrize(
    "algorithm", ["sweep", "pipelined-sweep", "parallel-pipelined-sweep", "batched-sweep", "c-strobe"]
)
def test_a_state_for_every_update(algorithm):
    assert installed(algorithm, Storm())[0] == len(UPDATES)


@pytest.mark.parametrize("updates", [1, 4, 64])
def test_nested_sweep_is_forced_to_end(updates):
    """When its round is full it goes on as sweep and leaves the rest for the next round; it stays strong."""
    states, run = installed("nested-sweep", Storm(), updates=updates)
    report = judge(Scenario("nested-sweep", 0), run)
    assert min(report.claimed.level, report.blind.level) >= Level.STRONG
    assert states >= len(UPDATES) / updates
    assert (states == len(UPDATES)) == (updates == 1), "a round of one is sweep"


class Alternating(Calm):
    """Before a source answers, it commits one more update and has it delivered."""

    def __init__(self):
        self.owed = []

    def __call__(self, events):
        while self.owed:
            event = self.owed.pop(0)
            if event in events:
                return event
        asked = [event for event in events if event.happening is Happening.ANSWER]
        if not asked:
            return super().__call__(events)
        source = asked[0].source
        self.owed = [Event(Happening.DELIVER, source), asked[0], Event(Happening.DELIVER, source)]
        commit = Event(Happening.COMMIT, source)
        return commit if commit in events else self(events)


class Rounds(Observer):
    """Queries and transactions of each state."""

    def __init__(self):
        self.queries = [0]
        self.transactions = []

    def asked(self, ticket, query):
        self.queries[-1] += 1

    def installed(self, delta, number, view):
        self.transactions.append(len(delta.transactions))
        self.queries.append(0)


def rounds_of(relations, updates, count):
    """nested-sweep while every source that is asked commits once more before it answers."""
    alternating = [(number % relations + 1, -1 if number // relations % 2 else 1) for number in range(count)]
    options = () if updates is None else (("updates", updates),)
    scenario = Scenario("nested-sweep", 0, relations=relations, sources=relations, options=options)
    rounds = Rounds()
    run = Simulation(scenario, chain(relations, alternating), rounds).run(Alternating())
    assert sum(rounds.transactions) == count
    return rounds, run


@pytest.mark.parametrize("updates", [2, 4, 100])
def test_nested_sweep_between_two_sources_that_take_turns(updates):
    """Without a bound the round would go on as long as the updates alternate."""
    rounds, run = rounds_of(2, updates, 40)
    assert judge(Scenario("nested-sweep", 0), run).kept_promise
    assert len(rounds.transactions) == -(-40 // updates)


@pytest.mark.parametrize("relations", [3, 4, 5, 6])
@pytest.mark.parametrize("updates", [None, 8, 32])
def test_a_round_of_nested_sweep_is_bounded_in_updates_and_queries(relations, updates):
    """A bound on the depth of the calls would let both grow with its power n - 1."""
    rounds, _ = rounds_of(relations, updates, 300)
    most = updates or ALGORITHMS["nested-sweep"].options["updates"]
    assert max(rounds.transactions) <= most
    assert rounds.transactions[0] == most, "the stream of this test fills a round"
    assert max(rounds.queries) <= most * (relations - 1)


def test_a_round_of_thousands_of_calls_needs_no_recursion():
    rounds, _ = rounds_of(2, 2_000, 2_500)
    assert rounds.transactions[0] == 2_000


@pytest.mark.parametrize("updates", [0, 4_097])
def test_a_round_has_an_upper_limit(updates):
    with pytest.raises(UsageError, match=r"must be from 1 to 4,096"):
        installed("nested-sweep", Storm(), updates=updates)


def test_eca_shares_queries():
    setting = chain(3, UPDATES[:9], per_source=3)
    alone = run_chain("eca", setting, Storm())
    shared = run_chain("eca", setting, Storm(), options=(("share", True),))
    assert alone.messages.queries == 9
    assert shared.messages.queries == 2, "the first, and one for all that came while it was out"
    assert shared.history.states[-1].rows == alone.history.states[-1].rows
