"""Every algorithm reaches the level that it promises, in very many runs: `make soak RUNS=100000 SEED=1000`.

The runs are dealt evenly to worlds and algorithms. All of a seed stand next to each other, for they share its views. A
test runs to its end and names every run that failed, with the command that repeats it.
"""

import os
from itertools import product

import pytest
from seeded_runs import CELLS, WORLDS, check_promise

RUNS = int(os.environ.get("VIEWKEEPER_SOAK_RUNS", "100000"))
FIRST_SEED = int(os.environ.get("VIEWKEEPER_SOAK_SEED", "1000"))
SEEDS = -(-RUNS // (len(CELLS) * len(WORLDS)))
CHUNK = 5


@pytest.mark.soak
@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + SEEDS, CHUNK))
@pytest.mark.parametrize("world", WORLDS)
def test_promised_level(world, first):
    failures = []
    for seed, (name, transactions) in product(range(first, min(first + CHUNK, FIRST_SEED + SEEDS)), CELLS):
        try:
            check_promise(WORLDS[world](name, transactions, seed))
        except Exception as error:
            failures.append("\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())]))
    assert not failures, "\n\n".join(failures)
