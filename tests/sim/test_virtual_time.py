"""Latency in virtual time: exact where it can be computed by hand, and the order of the sweeps where it cannot."""

from dataclasses import replace

import pytest

from viewkeeper.sim.virtual_time import Load, World, timed

SWEEPS = (
    "sweep", "parallel-sweep", "pipelined-sweep", "parallel-pipelined-sweep", "nested-sweep", "batched-sweep",
)  # fmt: skip
D, S = 0.010, 0.0005
HOP = D + S + D
CALM = Load(relations=4, updates=40, rate=1.0, delay=D, service=S, even=True)
BUSY = Load(relations=4, updates=120, rate=100.0)


@pytest.mark.parametrize("algorithm", SWEEPS)
def test_a_lone_update_takes_its_delivery_and_its_hops(algorithm):
    """Of four relations in a chain those at the ends have one side, of three hops; the others one of two hops."""
    timing = timed(algorithm, CALM)
    both_sides = "parallel" in algorithm
    expected = {round(D + hops * HOP, 9) for hops in ((2, 3) if both_sides else (3,))}
    assert {round(latency, 9) for latency in timing.latencies} == expected
    assert timing.queries == 3 * CALM.updates


@pytest.mark.parametrize("load", [BUSY, replace(BUSY, rate=0.0), replace(BUSY, unmatched=0.4)], ids=str)
@pytest.mark.parametrize("algorithm", SWEEPS)
def test_the_view_is_right_at_the_end_and_every_update_is_shown(algorithm, load):
    world = World(algorithm, load)
    timing = world.run()
    assert dict(world.view.weights()) == dict(world.recomputed().weights())
    assert len(timing.latencies) == load.updates
    assert min(timing.latencies) > 0
    assert timing.states == load.updates or algorithm == "nested-sweep"


def test_figures_come_from_the_seed():
    assert timed("batched-sweep", BUSY) == timed("batched-sweep", BUSY)
    assert timed("batched-sweep", BUSY) != timed("batched-sweep", replace(BUSY, seed=2))


def test_what_is_pipelined_or_shared_keeps_up_where_sweep_does_not():
    """Sweep and parallel-sweep maintain one update in three hops or two: 16 to 24 a second."""
    keeps_up = {name: not timed(name, BUSY).falls_behind for name in SWEEPS}
    assert [name for name, does in keeps_up.items() if not does] == ["sweep", "parallel-sweep"]


def test_nested_sweep_asks_least_of_a_burst_and_batched_sweep_shows_every_state():
    burst = Load(relations=3, updates=300, rate=0.0)
    nested, batched = (timed(name, burst) for name in ("nested-sweep", "batched-sweep"))
    assert nested.queries < batched.queries < 300 / 10
    assert nested.states < 10
    assert batched.states == 300


def test_parallel_sweep_asks_more_than_sweep_where_partners_are_missing():
    """Sweep has nothing more to ask when a hop finds nothing; the other side of parallel-sweep is out by then."""
    missing = Load(relations=3, updates=100, rate=1.0, unmatched=0.4)
    sweep, parallel = (timed(name, missing).queries for name in ("sweep", "parallel-sweep"))
    assert sweep < parallel < 200
