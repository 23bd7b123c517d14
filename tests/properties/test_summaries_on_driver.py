"""Random lives of summaries on the driver: after every step each of them is what recomputation gives.

A failure prints the command that repeats it, and all that had happened.
"""

import pytest
from summary_worlds import STEPS, world

LIVES = range(3)
LIVES_OF_LARGE_TABLES = range(100, 102)
LIVES_WITH_RECOMPUTED_EXTREMES = range(37, 39)
LIVES_OVER_SQLITE = range(203, 205)
SOAK, CHUNK = 2_000, 50


@pytest.mark.parametrize("seed", LIVES)
def test_summaries_are_what_recomputation_gives(tmp_path, seed):
    with world(tmp_path, seed) as one:
        one.live(STEPS)


@pytest.mark.parametrize("seed", LIVES_OF_LARGE_TABLES)
def test_so_are_tables_that_changes_are_appended_to(tmp_path, seed):
    with world(tmp_path, seed, engine="appended") as one:
        one.live(STEPS)


@pytest.mark.parametrize("seed", LIVES_WITH_RECOMPUTED_EXTREMES)
def test_so_are_extremes_that_are_recomputed_from_the_core(tmp_path, seed):
    with world(tmp_path, seed, engine="recompute") as one:
        one.live(STEPS)


@pytest.mark.parametrize("seed", LIVES_OVER_SQLITE)
def test_so_are_summaries_of_a_source(tmp_path, seed):
    """With and without a stored core."""
    with world(tmp_path, seed, sqlite=True) as one:
        one.live(STEPS)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 1_000 + SOAK, CHUNK))
@pytest.mark.parametrize("kind", ["driver", "appended", "recompute", "sqlite"])
def test_summaries_are_what_recomputation_gives_soak(tmp_path, kind, first):
    for seed in range(first, first + CHUNK):
        folder = tmp_path / str(seed)
        folder.mkdir()
        sqlite = kind == "sqlite"
        with world(folder, seed, engine="driver" if sqlite else kind, sqlite=sqlite) as one:
            one.live(2 * STEPS)
