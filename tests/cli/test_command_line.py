"""The command line: what it prints, how it fails."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from viewkeeper.cli.main import main, viewkeeper
from viewkeeper.sim.examples import EXAMPLES

FIELDS = {
    "algorithm",
    "seed",
    "relations",
    "updates",
    "transactions",
    "messages",
    "states",
    "level",
    "verdict",
    "violation",
}


def call(*words):
    return CliRunner().invoke(viewkeeper, words, catch_exceptions=False)


def test_simulate_json():
    result = call("simulate", "--algorithm", "sweep", "--relations", "4", "--updates", "50", "--seed", "7", "--json")
    assert result.exit_code == 0
    report = json.loads(result.output)
    assert report.keys() >= FIELDS
    assert report["messages"].keys() == {"queries", "answers", "rows"}
    assert report["messages"]["queries"] == 50 * 3
    assert report["states"] == 50
    assert report["verdict"] == {"convergent": True, "weak": True, "strong": True, "complete": True}
    assert report["violation"] is None


def test_simulate_reports_what_went_wrong():
    for seed in range(20):
        result = call("simulate", "--algorithm", "conventional", "--seed", str(seed), "--json")
        report = json.loads(result.output)
        if report["level"] == "none":
            assert result.exit_code == 0, "conventional promises nothing"
            assert report["violation"]["message"]
            return
    raise AssertionError("the anomaly never showed")


def test_simulate_text_and_the_command_that_repeats_it():
    result = call("simulate", "--algorithm", "nested-sweep", "--seed", "3")
    assert result.exit_code == 0
    assert "viewkeeper simulate --algorithm nested-sweep" in result.output
    assert "strong" in result.output


def test_history_and_check(tmp_path):
    file = str(tmp_path / "history.json")
    call("simulate", "--algorithm", "strobe", "--seed", "5", "--history", file)
    result = call("check", file, "--json")
    assert json.loads(result.output)["level"] == "strong"
    assert "strong" in call("check", file, "--blind").output
    assert call("check", file, "--at-least", "complete").exit_code == 1


def test_trace_shows_the_queue_and_the_view():
    result = call("simulate", "--example", "sweep-figure-5-concurrent", "--trace")
    assert "queue: U2, U3" in result.output
    assert "V = {2·[5, 6], 2·[7, 8]}" in result.output
    lines = json.loads(call("simulate", "--example", "strobe-1", "--trace", "--json").output)["trace"]
    assert any("asks x" in line for line in lines)


def test_list_has_every_example():
    listed = call("simulate", "--list").output
    assert all(name in listed for name in EXAMPLES)
    assert json.loads(call("simulate", "--list", "--json").output).keys() == EXAMPLES.keys()


def test_matrix():
    result = call("simulate", "--matrix", "--runs", "1", "--seed", "1", "--json")
    assert result.exit_code == 0
    cells = json.loads(result.output)["cells"]
    assert {cell["transactions"] for cell in cells} == {"single", "local", "global"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["simulate", "--algorithm", "swep"], "choose one of"),
        (["simulate", "--algorithm", "eca", "--sources", "2"], "use "),
        (["simulate", "--algorithm", "strobe", "--keyless"], "declare the key"),
        (["simulate", "--algorithm", "eca", "--transactions", "global"], "use "),
        (["simulate", "--algorithm", "strobe", "--multi-relation"], "use "),
        (["simulate", "--relations", "0"], "1 to 12"),
        (["simulate", "--option", "batch=many"], "whole number"),
        (["simulate", "--option", "speed=1"], "batch=64"),
        (["simulate", "--example", "strobe-11"], "strobe-1"),
        (["simulate", "--seed", "-1"], "seed"),
        (["simulate", "--history", "no/such/folder/h.json", "--seed", "1"], "no/such/folder"),
        (["check", "no-such-file.json"], "no-such-file.json"),
        (["simulate", "--transactions", "galactic"], "global"),
    ],
)
def test_bad_input_is_explained_and_exits_with_2(words, says, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["viewkeeper", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    shown = capsys.readouterr().err
    assert says in shown
    assert "Traceback" not in shown


def test_errors_are_data_with_json(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["viewkeeper", "simulate", "--algorithm", "swep", "--json"])
    with pytest.raises(SystemExit):
        main()
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "usage"
    assert error["hint"]


def test_batch_is_ignored_with_a_note_where_there_are_no_batches():
    result = call("simulate", "--algorithm", "sweep", "--batch", "8", "--seed", "1")
    assert result.exit_code == 0
    assert "ignored" in result.stderr


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["--example", "strobe-1", "--algorithm", "sweep"], "--algorithm"),
        (["--matrix", "--history", "h.json"], "--history"),
        (["--list", "--relations", "4"], "--relations"),
        (["--runs", "3"], "--runs"),
    ],
)
def test_options_that_would_be_ignored_are_refused(words, option, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["viewkeeper", "simulate", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert f"{option} does not go with" in capsys.readouterr().err


@pytest.mark.processes
def test_a_terminal_without_the_signs_is_served():
    done = subprocess.run(
        [sys.executable, "-m", "viewkeeper", "simulate", "--example", "strobe-1", "--trace"],
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"asks x: Q1 = {[2, 3]} ? r1" in done.stdout


def test_scenarios_take_plain_words():
    from viewkeeper import Scenario, Transactions, ViewkeeperError

    assert Scenario("sweep", 1, transactions="global").transactions is Transactions.GLOBAL
    assert Scenario("batched-sweep", 1, options={"batch": 3}).options == (("batch", 3),)
    with pytest.raises(ViewkeeperError, match="galactic"):
        Scenario("sweep", 1, transactions="galactic")
