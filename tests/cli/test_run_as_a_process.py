"""`viewkeeper run` as a program of its own: what others see of it, and how it is stopped."""

import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from viewkeeper.cli.main import viewkeeper
from waiting import LONG, program

pytestmark = pytest.mark.processes


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "viewkeeper", *map(str, words)]


def output(*words: object) -> str:
    done = CliRunner().invoke(viewkeeper, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    lake = tmp_path / "lake"
    output("add-source", "shop", f"sqlite:///{tmp_path / 'shop.db'}", "--install", "-w", lake)
    output("create-view", "CREATE MATERIALIZED VIEW v AS SELECT id FROM shop.orders", "-w", lake)
    return lake


def order(lake: Path, number: int) -> None:
    with closing(sqlite3.connect(lake.parent / "shop.db")) as connection:
        connection.execute("INSERT INTO orders VALUES (?)", (number,))
        connection.commit()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_a_summary(lake: Path, number: signal.Signals) -> None:
    with program(
        command("run", "--json", "-w", lake), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        order(lake, 1)
        for line in process.stdout:
            (group,) = json.loads(line)["groups"]
            if group["states"] == 1:
                break
        told = json.loads(output("status", "-w", lake, "--json"))["running"]
        assert (told["pid"], told["alive"]) == (process.pid, True)
        assert f"running    process {process.pid} on " in output("status", "-w", lake)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=LONG)
    assert (process.returncode, stderr) == (0, "")
    end = json.loads(stdout.splitlines()[-1])
    assert end["seconds"] > 0
    assert (end["groups"][0]["transactions"], end["halted"]) == (1, {})
    assert json.loads(output("status", "-w", lake, "--json"))["running"] is None
    assert output("audit", "v", "-w", lake).startswith("v: right, 1 distinct row at state 1")


def test_after_a_kill_it_goes_on(lake: Path) -> None:
    with program(command("run", "--json", "-w", lake), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        order(lake, 1)
        process.kill()
        process.wait(LONG)
    told = output("status", "-w", lake)
    assert "that process is gone" in told
    order(lake, 2)
    output("catch-up", "-w", lake)
    assert output("audit", "v", "-w", lake).startswith("v: right, 2 distinct rows")


def test_a_terminal_gets_a_live_table(lake: Path) -> None:
    ours, theirs = pty.openpty()
    words = command("run", "-w", lake)
    with program(words, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"}) as process:
        # Reading fails when the process has ended, if nothing else holds its end open.
        os.close(theirs)
        shown = ""
        while "queries" not in shown:
            shown += os.read(ours, 100_000).decode()
        process.send_signal(signal.SIGINT)
        while "stopped after" not in shown:
            shown += os.read(ours, 100_000).decode()
        assert process.wait(LONG) == 0
    os.close(ours)
    assert "position" in shown
    assert "trouble" in shown
