"""PostgreSQL, MariaDB and SQLite under eight writers, and every algorithm over one and the same run."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from mariadb_server import MariaDb
from postgres_server import PostgresServer
from three_databases import THREE_WAY, WITHIN, ThreeDatabases, three_databases

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.registry import ALGORITHMS, Transactions
from viewkeeper.checker.history import History
from viewkeeper.checker.judge import check
from viewkeeper.clock import seeded
from viewkeeper.warehouse import Warehouse

PROMISING = {name: one for name, one in ALGORITHMS.items() if not one.baseline}
"""all but those that are there to be seen failing"""
AT_ONE_SOURCE = "SELECT o.id AS id, l.id AS line, l.item AS item FROM shop.orders o JOIN shop.lines l ON l.ord = o.id"
SEVERAL_RELATIONS = ("batched-sweep", "t-strobe", "nested-sweep")


def views() -> dict[str, tuple[str, str]]:
    """Name -> algorithm and definition; each in a group of its own."""
    every = {name: AT_ONE_SOURCE if one.one_source else THREE_WAY for name, one in PROMISING.items()}
    return {f"every_{name.replace('-', '_')}": (name, sql) for name, sql in every.items()} | {
        f"within_{name.replace('-', '_')}": (name, WITHIN) for name in SEVERAL_RELATIONS
    }


def live_run(databases: ThreeDatabases, folder: Path, seconds: float, pause: float, seed: int) -> dict[str, History]:
    """Create the views while everyone writes, maintain them to the end, audit them; the history of each."""
    with Warehouse.open(folder / "lake") as warehouse:
        databases.add_to(warehouse)
        early = databases.writers(4, seed, pause)
        for name, (algorithm, sql) in views().items():
            # These writers' transactions have several updates.
            level = ALGORITHMS[algorithm].levels[Transactions.LOCAL]
            properties = f"'algorithm' = '{algorithm}', 'consistency' = '{level}', 'group' = '{name}'"
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES({properties}) AS {sql}")
        assert early.wait(60) == 0
        warehouse.catch_up()
        for name in views():
            assert warehouse.audit(name).clean, f"{name} is wrong after its creation under load"
        writers = databases.writers(seconds, seed + 1, pause)
        report = warehouse.run(seconds + 1, history=folder / "history-{view}.json")
        assert writers.wait(60) == 0
        assert not report.halted
        assert not [source.failure for source in report.sources if source.failure]
        assert not [group.failure for group in report.groups if group.failure]
        warehouse.catch_up()
        for name in views():
            audit = warehouse.audit(name)
            assert audit.clean, f"{name}: {audit}"
    return {name: History.load(folder / f"history-{name}.json") for name in views()}


def states_match_their_vectors(history: History, sample: int, seed: int) -> None:
    """A sample of the states, each recomputed from what the sources had committed up to its vector."""
    plan = JoinPlan(history.definition)
    places = sorted(seeded(seed).sample(range(len(history.states)), min(sample, len(history.states))))
    for place in places:
        state = history.states[place]
        assert state.vector is not None
        contents = {}
        for name, held in history.relations.items():
            changes = [
                (change.row, change.count)
                for one in history.deliveries
                if one.source == held.relation.source and one.position <= state.vector[one.source]
                for change in one.changes
                if change.relation == name
            ]
            contents[name] = held.rows + MemoryZSet(held.relation.columns, changes)
        expected = plan.evaluate(contents)
        assert dict(state.rows.weights()) == dict(expected.weights()), f"state {place} at {state.vector}"


def judge_all(histories: dict[str, History], seed: int, sample: int) -> None:
    for name, (algorithm, _) in views().items():
        history = histories[name]
        promised = ALGORITHMS[algorithm].levels[Transactions.LOCAL]
        assert len(history.deliveries) > 20, f"{name}: hardly anything was written"
        judgement = check(history, blind=True)
        assert judgement.level >= promised, f"{name}: {judgement}"
        if ALGORITHMS[algorithm].knows_transactions:
            states_match_their_vectors(history, sample, seed)


@pytest.fixture
def databases(postgres_server: PostgresServer, mariadb: MariaDb, tmp_path: Path) -> Iterator[ThreeDatabases]:
    with three_databases(postgres_server, mariadb, tmp_path, "live_run") as made:
        yield made


def test_every_algorithm_over_three_databases_and_eight_writers(databases: ThreeDatabases, tmp_path: Path) -> None:
    judge_all(live_run(databases, tmp_path, seconds=8, pause=0.5, seed=1), seed=1, sample=10)


@pytest.mark.soak
def test_every_algorithm_for_longer(databases: ThreeDatabases, tmp_path: Path) -> None:
    judge_all(live_run(databases, tmp_path, seconds=40, pause=0.4, seed=2), seed=2, sample=40)
