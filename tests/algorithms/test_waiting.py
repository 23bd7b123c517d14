"""How long an algorithm makes its readers wait: what needs quiet, what does not, and what ends by force."""

import pytest

from viewkeeper.levels import Level
from viewkeeper.sim.chains import Calm, Storm, chain, run_chain
from viewkeeper.sim.report import judge
from viewkeeper.sim.scenario import Scenario
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


@pytest.mark.parametrize("algorithm", ["sweep", "pipelined-sweep", "batched-sweep", "c-strobe"])
def test_a_state_for_every_update(algorithm):
    assert installed(algorithm, Storm())[0] == len(UPDATES)


def test_nested_sweep_is_forced_to_end():
    """Past its depth it goes on as sweep and leaves the rest for the next round; it stays strong."""
    states = {}
    for depth in (1, 2, 8):
        states[depth], run = installed("nested-sweep", Storm(), depth=depth)
        report = judge(Scenario("nested-sweep", 0), run)
        assert min(report.claimed.level, report.blind.level) >= Level.STRONG
    assert states[8] <= states[2] <= states[1] < len(UPDATES)


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


def test_nested_sweep_between_two_sources_that_take_turns():
    """Without a bound the recursion would go on as long as the updates alternate."""
    updates = [(number % 2 + 1, 1) for number in range(40)]
    counts = []
    for depth in (2, 4, 100):
        run = run_chain("nested-sweep", chain(2, updates), Alternating(), options=(("depth", depth),))
        assert judge(Scenario("nested-sweep", 0), run).kept_promise
        counts.append(len(run.history.states) - 1)
    assert counts[0] > counts[1] > counts[2]


def test_eca_shares_queries():
    setting = chain(3, UPDATES[:9], per_source=3)
    alone = run_chain("eca", setting, Storm())
    shared = run_chain("eca", setting, Storm(), options=(("share", True),))
    assert alone.messages.queries == 9
    assert shared.messages.queries == 2, "the first, and one for all that came while it was out"
    assert shared.history.states[-1].rows == alone.history.states[-1].rows
