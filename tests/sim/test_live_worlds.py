"""Groups of the live mediator in the simulator: what a world has, what is judged, how a run is repeated."""

import json
import shlex

import pytest
from click.testing import CliRunner

from viewkeeper.algorithms.registry import Transactions
from viewkeeper.cli.main import viewkeeper
from viewkeeper.errors import UsageError
from viewkeeper.levels import Level
from viewkeeper.mediator.group import Group
from viewkeeper.sim.report import judge
from viewkeeper.sim.run import simulate
from viewkeeper.sim.scenario import Scenario
from viewkeeper.sim.setting import random_setting
from viewkeeper.sim.trace import Observer, Trace

G = Transactions.GLOBAL


def scenario(seed, **features):
    return Scenario("batched-sweep", seed, updates=8, transactions=G, **features)


class Watcher(Observer):
    def __init__(self):
        self.captures = []
        self.crashes = []
        self.fetched = []

    def captured(self, transaction, commits):
        self.captures.append((transaction, commits))

    def restarted(self, crash, vector):
        self.crashes.append(str(crash))

    def read(self, source, fetches, rows):
        self.fetched += fetches


def watched(*seeds, **features):
    watcher = Watcher()
    runs = [simulate(scenario(seed, **features), watcher) for seed in seeds]
    return watcher, runs


def test_captures_merge_commits_with_all_their_global_ids():
    watcher, _ = watched(*range(10), merge=True)
    merged = [transaction for transaction, commits in watcher.captures if commits > 1]
    assert merged
    assert all(transaction.merged for transaction in merged)
    assert any(len(transaction.parts) > 1 for transaction in merged)


def test_captures_do_not_merge_unless_asked():
    watcher, _ = watched(*range(5), views=2)
    assert {commits for _, commits in watcher.captures} == {1}


def test_the_warehouse_restarts_in_every_way_and_as_often_as_asked():
    watcher, runs = watched(*range(40), restarts=2)
    assert len(watcher.crashes) == 2 * len(runs)
    assert set(watcher.crashes) == {"stopped", "killed", "before-commit", "after-commit"}


def test_views_of_a_group_read_different_sources():
    settings = [random_setting(scenario(seed, views=3)) for seed in range(20)]
    views = [[view.name for view in run.views] for run in watched(0, views=3)[1]]
    assert views == [["v1", "v2", "v3"]]
    read = [
        [frozenset(name for name in setting.relations if f"{name} " in sql) for sql in (setting.sql, *setting.more)]
        for setting in settings
    ]
    assert all(all(some) for some in read)
    assert any(len(set(some)) == 3 for some in read)
    assert any(
        len(frozenset.union(*some)) < len(setting.relations) for some, setting in zip(read, settings, strict=True)
    )


def test_all_views_show_states_of_one_vector():
    (run,) = watched(3, views=3, restarts=1)[1]
    vectors = [[state.vector for state in view.history.states] for view in run.views]
    assert vectors[0] == vectors[1] == vectors[2]
    assert len(vectors[0]) > 2


def test_rows_that_are_known_are_not_asked_for_again(monkeypatch):
    def keys_read():
        watcher, _ = watched(*range(20), mediator=True, relations=2)
        return sum(len(fetch.keys or ()) for fetch in watcher.fetched)

    with_known = keys_read()
    monkeypatch.setattr("viewkeeper.mediator.known_rows.KnownRows.table", lambda self, fetch: None)
    assert with_known < keys_read()


@pytest.mark.parametrize("seed", [1, 4])
def test_the_same_scenario_gives_the_same_run(seed):
    def told():
        lines = []
        features = {"views": 2, "merge": True, "restarts": 2, "without_quiet": 2}
        simulate(Scenario("g-strobe", seed, transactions=G, **features), Trace(lines.append))
        return lines

    assert told() == told()


@pytest.mark.parametrize("seed", range(6))
def test_the_command_repeats_the_run(seed):
    varied = Scenario.varied_live("g-strobe", G, seed)
    expected = judge(varied, simulate(varied)).to_json()
    result = CliRunner().invoke(viewkeeper, [*shlex.split(varied.command())[1:], "--json"])
    assert result.exit_code == 0
    assert json.loads(result.output) == json.loads(json.dumps(expected))


def test_what_is_delivered_and_never_shown_is_a_broken_promise(monkeypatch):
    monkeypatch.setattr(Group, "_commit", lambda self: False)
    report = judge(scenario(1, mediator=True), simulate(scenario(1, mediator=True)))
    assert report.stalled
    assert not report.kept_promise
    assert "part of no state" in report.text()


def test_merged_captures_are_complete_as_delivered_and_strong_by_commit():
    reports = [judge(one, simulate(one)) for one in (scenario(seed, merge=True) for seed in range(10))]
    assert {report.reached for report in reports} == {Level.COMPLETE}
    assert Level.STRONG in {report.claimed.level for report in reports}


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"views": 2, "multi_relation": True}, "--multi-relation does not go with --views"),
        ({"merge": True, "out_of_order": True}, "--out-of-order does not go with --merge"),
        ({"restarts": 1, "whole_transactions": True}, "--whole-transactions does not go with --restarts"),
        ({"views": 0}, "--views 0 is out of range"),
        ({"restarts": -1}, "--restarts -1 is out of range"),
        ({"without_quiet": 0}, "--without-quiet 0 is out of range"),
        ({"wrapper_batch": 2}, "--wrapper-batch is about the multi-relation wrapper"),
    ],
)
def test_what_does_not_go_together_is_refused(features, message):
    with pytest.raises(UsageError, match=message):
        scenario(1, **features)


def test_a_trace_names_captures_readings_states_and_restarts():
    how = "simulate --relations 2 --updates 4 --transactions global --views 2 --merge --restarts 1 --seed 377 --trace"
    result = CliRunner().invoke(viewkeeper, how.split())
    assert result.exit_code == 0
    assert "s2         captures U2, U4, U6 as one transaction" in result.output
    assert "group      restarts (killed), from (s2 0, s1 0)" in result.output
    assert "group      commits state 1 at (s2 3, s1 3): v1 = {3·[0, 0, 0]}" in result.output
