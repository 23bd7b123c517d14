"""Random lives of summaries that Spark computes, continuous and deferred, and what readers get from Spark.

The engine on the driver is switched off: see `summary_engines.py`.
"""

import pytest
from summary_engines import uncompiled
from summary_shop import open_shop, sales, sell, stores
from summary_worlds import shown_rows, world

STEPS = 3
LIVES = [("spark", 1, STEPS), ("files", 3, 1)]
SOAK, CHUNK = 200, 10


@pytest.fixture
def session(spark):
    with uncompiled(spark):
        yield spark


@pytest.mark.parametrize(("engine", "seed", "steps"), LIVES)
def test_summaries_are_what_recomputation_gives(tmp_path, session, engine, seed, steps):
    with world(tmp_path, seed, engine=engine, spark=lambda: session) as one:
        one.live(steps)
        one.check_in_spark()


def test_summaries_of_a_source_too(tmp_path, session):
    with world(tmp_path, 10, engine="spark", sqlite=True, spark=lambda: session) as one:
        one.live(STEPS)
        one.check_in_spark()


def test_what_the_driver_has_computed_is_read_by_spark(tmp_path, session):
    with world(tmp_path, 20) as one:
        one.live(STEPS)
        one.reopen(lambda: session)
        one.check_in_spark()


def test_extremes_that_came_and_went_while_changes_waited_are_recomputed(tmp_path, session):
    with open_shop(tmp_path / "lake", sales((1, "pen", 5), (1, "ink", 7)), stores((1, "Bern")), lambda: session) as wh:
        wh.create_view(
            "CREATE MATERIALIZED VIEW least TBLPROPERTIES ('refresh' = 'manual', 'minmax' = 'recompute') AS "
            "SELECT store, MIN(qty) AS least FROM sales GROUP BY store"
        )
        sell(wh, 1, sales((1, "pad", 5)))
        wh.propagate()
        sell(wh, 2, -sales((1, "pad", 5), (1, "pen", 5)))
        wh.refresh()
        assert shown_rows(wh, "least") == [(1, 7)]


def test_a_deleted_extreme_of_a_table_without_groups_is_recomputed(tmp_path, session):
    with open_shop(tmp_path / "lake", sales((1, "pen", 5), (1, "ink", 7)), stores((1, "Bern")), lambda: session) as wh:
        wh.create_view(
            "CREATE MATERIALIZED VIEW ends TBLPROPERTIES ('minmax' = 'recompute') AS "
            "SELECT MIN(qty) AS least, MAX(item) AS last FROM sales"
        )
        sell(wh, 1, sales((1, "pad", 9)) - sales((1, "pen", 5)))
        assert not any(view.halted for view in wh.status().views)
        assert shown_rows(wh, "ends") == [(7, "pad")]


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 1_000 + SOAK, CHUNK))
@pytest.mark.parametrize("engine", ["spark", "files"])
@pytest.mark.parametrize("sqlite", [False, True])
def test_summaries_are_what_recomputation_gives_soak(tmp_path, session, engine, sqlite, first):
    for seed in range(first, first + CHUNK):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with world(folder, seed, engine=engine, sqlite=sqlite, spark=lambda: session) as one:
            one.live(2 * STEPS)
            one.check_in_spark()
