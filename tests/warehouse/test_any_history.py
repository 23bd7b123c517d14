"""Whatever happens to a warehouse, every retained state is the bag that recomputation gives."""

from collections import Counter

import pytest
from random_warehouse import LAYOUTS, RandomWarehouse, canonical

SEEDS = range(1, 2)


@pytest.fixture
def small_plans(spark):
    """Hundreds of tiny queries: compiling each of them would take longer than running it."""
    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def model_of(bag) -> Counter:
    total = Counter()
    for row, weight in bag.items():
        total[canonical(row)] += weight
    return total


@pytest.mark.parametrize("seed", SEEDS)
def test_every_retained_state_is_what_recomputation_gives(tmp_path, small_plans, seed, monkeypatch):
    life = RandomWarehouse(tmp_path / "lake", small_plans, seed, monkeypatch)
    life.live(steps=8)
    story = "; ".join(life.steps)
    for view in LAYOUTS:
        states = life.warehouse.states(view)
        assert [state.state for state in states] == list(range(len(life.states))), story
        assert [state.vector for state in states] == life.vectors, story
        assert [state.rows for state in states] == [bag[view].total() for bag in life.states], story
        shown = life.shown(view)
        sample = life.random.randrange(len(life.states))
        assert life.bag(view, sample) == shown[sample], (view, sample, story)
        for number, bags in enumerate(life.states):
            assert shown[number] == model_of(bags[view]), (view, number, story)
    # The changes between two states are their difference, across compactions.
    view = life.random.choice(list(LAYOUTS))
    since, until = sorted(life.random.choices(range(len(life.states)), k=2))
    before, after = model_of(life.states[since][view]), model_of(life.states[until][view])
    before.update(life.changes(view, since, until))
    assert {row: count for row, count in before.items() if count} == dict(after), (view, since, until, story)
    # What is past the retention is gone, and what is left reads as before.
    life.warehouse.vacuum(0, grace=0)
    for view in LAYOUTS:
        for number, bag in life.shown(view).items():
            assert bag == model_of(life.states[number][view]), (view, number, story)
        assert life.warehouse.states(view)[-1].state == len(life.states) - 1
    life.close()
