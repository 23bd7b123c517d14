"""The live mediator over sources in memory, while other threads write."""

import threading
from collections.abc import Callable

import pytest
from live_shop import THREE_WAY, WITHIN, MemoryStore, Recorder, Shop

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.registry import ALGORITHMS, Transactions
from viewkeeper.checker.history import History, State
from viewkeeper.checker.judge import check
from viewkeeper.levels import Level
from viewkeeper.mediator.mediator import Mediator
from viewkeeper.messages import Position
from waiting import joined


@pytest.mark.parametrize(
    ("algorithm", "sql"),
    [
        (algorithm, sql)
        for algorithm in (
            "sweep", "batched-sweep", "nested-sweep", "parallel-sweep", "pipelined-sweep", "parallel-pipelined-sweep",
            "t-strobe", "g-strobe", "c-t-strobe", "periodic-c-strobe", "strobe", "c-strobe", "recompute",
        )
        for sql in (THREE_WAY, WITHIN)
    ],
    ids=lambda value: value if "SELECT" not in value else ("three-way" if value is THREE_WAY else "within"),
)  # fmt: skip
def test_a_live_run_reaches_what_its_algorithm_promises(algorithm: str, sql: str) -> None:
    shop = Shop()
    plan = shop.plan("v", sql, algorithm)
    (how,) = plan.views
    base, store, recorder = shop.contents(), MemoryStore(shop.stored([plan])), Recorder()
    first = store.contents["v"]
    with Mediator(shop.sources, [plan], MemoryZSet, store, recorder) as mediator:
        writers = shop.write_all(20)
        mediator.catch_up()
        joined(*writers)
        mediator.catch_up()
    final = JoinPlan(how.view).evaluate(shop.contents())
    assert dict(store.contents["v"].keep(how.view.columns).weights()) == dict(final.weights())

    rows, states, vector = first, [State(first.keep(how.view.columns), dict(plan.vector))], dict(plan.vector)
    for change in recorder.changes["v"]:
        vector.update(change.vector)
        for delta in change.deltas.get("v", ()):
            rows = rows + delta
        states.append(State(rows.keep(how.view.columns), dict(vector)))
    promised = ALGORITHMS[algorithm].levels[Transactions.LOCAL]
    judgement = check(History.of(how.view, base, recorder.deliveries["v"], states))
    assert judgement.level >= promised, judgement
    assert promised >= Level.CONVERGENT


def test_sources_are_connected_to_at_once_and_meanwhile_groups_are_prepared() -> None:
    shop = Shop()
    plan = shop.plan("v", THREE_WAY, "sweep")
    all_asked, prepared = threading.Barrier(len(shop.sources) + 1), threading.Event()
    for source in shop.sources.values():

        def end(real: Callable[[], Position] = source.end) -> Position:
            # Whoever asks one after the other, or before it prepares the groups, waits here until the barrier breaks.
            all_asked.wait(60)
            return real()

        source.end = end  # type: ignore[method-assign]

    def prepare() -> None:
        all_asked.wait(60)
        prepared.set()

    store = MemoryStore(shop.stored([plan]))
    with Mediator(shop.sources, [plan], MemoryZSet, store, before_groups=prepare) as mediator:
        assert not prepared.is_set()
        mediator.catch_up()
    assert prepared.is_set()
