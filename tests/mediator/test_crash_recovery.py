"""Kills at random moments: a new mediator goes on from what is stored, and nothing is lost or applied twice."""

import threading
from dataclasses import replace

import pytest
from live_shop import THREE_WAY, WITHIN, MemoryStore, Shop, resumed

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.registry import ALGORITHMS, Transactions
from viewkeeper.clock import Random, seeded
from viewkeeper.errors import StorageFailure
from viewkeeper.levels import Level
from viewkeeper.mediator.group_plan import GroupPlan
from viewkeeper.mediator.mediator import Mediator
from waiting import joined

PAIRS = "SELECT a.o_id AS one, b.o_id AS other FROM a JOIN a b ON a.region = b.region"
OVER_ONE_SOURCE = "SELECT o.id AS o_id, l.item AS region FROM shop.orders o JOIN shop.lines l ON l.ord = o.id"
EVERY = [name for name, one in ALGORITHMS.items() if not one.baseline]


class Killed(Exception):
    """The process is gone."""


def kill_at(store: MemoryStore, random: Random) -> None:
    """The process dies with one of the next commits: before it is made, or just after it, before anyone knows."""
    left = random.randint(1, 4)
    behind = random.random() < 0.5
    real = MemoryStore.commit.__get__(store)

    def commit(group: str, changes: object, figures: object) -> None:
        nonlocal left
        left -= 1
        if left == 0 and behind:
            real(group, changes, figures)
        if left <= 0:
            raise StorageFailure("killed")
        real(group, changes, figures)

    store.commit = commit  # type: ignore[method-assign]


def run_and_die(shop: Shop, plan: GroupPlan, store: MemoryStore, random: Random) -> None:
    """A run that ends without any farewell: in a commit, or in the middle of anything else."""
    in_a_commit = random.random() < 0.5
    if in_a_commit:
        kill_at(store, random)
    try:
        with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
            mediator._start_groups()
            threading.Event().wait(random.random() * 0.03)
            if random.random() < 0.5:
                mediator._acknowledge()
            for group in mediator.groups:
                # What a process that is gone does not do any more.
                group._advance = lambda: None  # type: ignore[method-assign]
            raise Killed
    except Killed:
        pass
    finally:
        vars(store).pop("commit", None)


def survives(algorithm: str, seed: int, *, kills: int, count: int) -> None:
    shop, random = Shop(), seeded(seed)
    chosen = ALGORITHMS[algorithm]
    sql = OVER_ONE_SOURCE if chosen.one_source else random.choice((THREE_WAY, WITHIN))
    plan = shop.group("g", {"a": (sql, algorithm), "b": (OVER_ONE_SOURCE, algorithm)}, {"pairs": PAIRS})
    plan = replace(plan, states_per_commit=random.choice((None, 1, 3)))
    store = shop.start(plan)
    for number in range(kills):
        writers = shop.write_all(count, first=number * count)
        run_and_die(shop, resumed(plan, store), store, random)
        joined(*writers)
        for name, source in shop.sources.items():
            assert source.acknowledged <= store.vectors["g"].get(name, source.acknowledged)
    with Mediator(shop.sources, [resumed(plan, store)], MemoryZSet, store) as mediator:
        mediator.catch_up()
    assert not store.halted
    places = [(one.source, one.position) for one in store.transactions["g"]]
    assert len(places) == len(set(places)), "nothing twice"
    assert store.vectors["g"] == {source: shop.sources[source].end() for source in plan.sources}
    if chosen.levels[Transactions.LOCAL] >= Level.STRONG:
        shop.assert_all_right(plan, store)
    else:
        shop.assert_right(plan, store.vectors["g"], store.contents)


@pytest.mark.parametrize("algorithm", EVERY)
def test_random_kills(algorithm: str) -> None:
    survives(algorithm, seed=1, kills=4, count=5)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 22))
@pytest.mark.parametrize("algorithm", EVERY)
def test_many_random_kills(algorithm: str, seed: int) -> None:
    survives(algorithm, seed, kills=8, count=10)
