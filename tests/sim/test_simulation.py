"""The simulator: repeatable from its seed, the same updates under every algorithm, histories that others can judge."""

import json
import sqlite3

import pytest

from run_size import some
from viewkeeper.algorithms.registry import Transactions
from viewkeeper.checker.history import History
from viewkeeper.checker.judge import check
from viewkeeper.errors import UsageError
from viewkeeper.sim.matrix import Matrix
from viewkeeper.sim.report import judge
from viewkeeper.sim.run import random_setting, simulate
from viewkeeper.sim.scenario import Scenario

FEATURES = [
    {},
    {"keyless": True, "self_join": True},
    {"multi_relation": True, "relations": 4},
    {"transactions": Transactions.GLOBAL, "crossing": True},
    {"transactions": Transactions.GLOBAL, "whole_transactions": True},
    {"sources": 2},
]


@pytest.mark.parametrize("features", FEATURES)
def test_a_seed_repeats_to_the_last_message(features):
    first, second = (simulate(Scenario("batched-sweep", 11, **features)) for _ in range(2))
    assert first.history.to_json() == second.history.to_json()
    assert first.messages == second.messages
    other = simulate(Scenario("batched-sweep", 13, **features))
    assert other.history.to_json() != first.history.to_json()


def test_a_seed_means_the_same_updates_under_every_algorithm():
    one, other = (random_setting(Scenario(name, 5)) for name in ("sweep", "conventional"))
    assert (one.sql, one.relations, one.script) == (other.sql, other.relations, other.script)


def sql_engine(history):
    """SQLite with every source as a schema and every relation as a table."""
    engine = sqlite3.connect(":memory:")
    for source in {relation["source"] for relation in history["relations"].values()}:
        engine.execute(f"ATTACH ':memory:' AS {source}")
    for name, relation in history["relations"].items():
        columns = ", ".join(f"{c} {t}" for c, t in zip(relation["columns"], relation["types"], strict=True))
        engine.execute(f"CREATE TABLE {name} ({columns})")
        for row, count in relation["rows"]:
            for _ in range(count):
                engine.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
    return engine


def deliver(engine, history, delivery):
    for name, row, count in delivery["changes"]:
        columns = history["relations"][name]["columns"]
        if count > 0:
            engine.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
        else:
            # One of the equal rows, by its rowid; IS compares NULLs too.
            source, table = name.split(".")
            where = " AND ".join(f"{column} IS ?" for column in columns)
            (rowid,) = engine.execute(f"SELECT rowid FROM {source}.{table} WHERE {where} LIMIT 1", row).fetchone()
            engine.execute(f"DELETE FROM {name} WHERE rowid = ?", (rowid,))


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("features", [{}, {"keyless": True, "self_join": True}, {"multi_relation": True}])
def test_another_sql_engine_agrees_with_every_state(seed, features, tmp_path):
    """An independent judge: the history file alone, its SQL run as it stands, one state per delivery for sweep."""
    file = tmp_path / "history.json"
    simulate(Scenario("sweep", seed, relations=3, updates=8, **features)).history.save(file)
    history = json.loads(file.read_text())
    engine = sql_engine(history)
    for delivery, state in zip([None, *history["deliveries"]], history["states"], strict=True):
        if delivery is not None:
            deliver(engine, history, delivery)
        expected = sorted(map(repr, engine.execute(history["view"]).fetchall()))
        shown = sorted(repr(tuple(row)) for row, count in state["rows"] for _ in range(count))
        assert shown == expected


def test_a_saved_history_is_judged_as_the_run_was(tmp_path):
    for seed in range(10):
        scenario = Scenario("t-strobe", seed, transactions=Transactions.GLOBAL)
        report = judge(scenario, simulate(scenario))
        report.history.save(tmp_path / "h.json")
        loaded = History.load(tmp_path / "h.json")
        assert check(loaded).level is report.claimed.level
        assert check(loaded, blind=True).level is report.blind.level


def test_a_run_that_shows_negative_counts_is_judged_too(tmp_path):
    """A broken view may hold a row less than never: that is a verdict, not a crash."""
    reports = []
    for seed in range(40):
        scenario = Scenario("sweep", seed, out_of_order=True)
        reports.append(judge(scenario, simulate(scenario)))
    negative = [r for r in reports if any(w < 0 for state in r.history.states for _, w in state.rows.weights())]
    assert negative
    assert all(report.level < 2 for report in negative)
    negative[0].history.save(tmp_path / "h.json")
    assert check(History.load(tmp_path / "h.json")).level is negative[0].level


@pytest.mark.parametrize(("runs", "seed"), some([(3, 14), (12, 4)], 1))
def test_the_matrix_covers_every_algorithm_and_shows_what_is_caught(runs, seed):
    matrix = Matrix(runs=runs, seed=seed, relations=3, updates=12)
    matrix.run(lambda: None)
    assert matrix.kept_promises
    cells = {(cell.name, cell.transactions): cell for cell in matrix.cells}
    assert len({name for name, _ in cells}) == 17, "sixteen, and c-strobe ungrouped"
    assert cells["conventional", Transactions.SINGLE].reached == 0
    assert cells["eca-key", Transactions.SINGLE].reached == 0
    assert "refused" in matrix.text()
    assert json.loads(json.dumps(matrix.to_json()))["kept_promises"] is True


@pytest.mark.parametrize(
    "wrong",
    [
        {"relations": 0},
        {"relations": 99},
        {"updates": -1},
        {"sources": 9},
        {"crossing": True},
        {"whole_transactions": True},
        {"multi_relation": True, "out_of_order": True},
    ],
)
def test_options_that_do_not_fit(wrong):
    with pytest.raises(UsageError) as error:
        Scenario("sweep", 1, **wrong)
    assert error.value.hint


def test_no_updates_at_all():
    scenario = Scenario("batched-sweep", 1, updates=0)
    assert judge(scenario, simulate(scenario)).level == 4


def test_a_blind_search_that_gave_up_is_said_and_proves_nothing(monkeypatch):
    """The report falls back on the vectors and says so; the property tests do not accept it."""
    monkeypatch.setattr("viewkeeper.sim.report.BLIND_BUDGET", 1)
    scenario = Scenario("sweep", 3)
    report = judge(scenario, simulate(scenario))
    assert report.to_json()["blind"]["undecided"]
    assert "at least" in report.text()
    assert report.reached is report.claimed.level
