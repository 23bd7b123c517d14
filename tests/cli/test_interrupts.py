"""Ctrl-C in the middle of long work: it ends at a commit, says at which, and leaves nothing half done.

Each verb is a program of its own, which is made to wait at the worst place until the signal has come.
"""

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from viewkeeper import Warehouse
from waiting import LONG, program

pytestmark = pytest.mark.processes

BIG = "CREATE MATERIALIZED VIEW big AS SELECT id FROM shop.orders"

IN_A_LOAD = """
from viewkeeper.maintenance.collected_rows import CollectedRows
def add(self, rows, weight=1):
    here()
    wait()
CollectedRows.add = add
"""
BEFORE_THE_RECORD = """
from viewkeeper.lake.log.commit_log import CommitLog
append = CommitLog.append
def appended(self, record):
    if record.commit > 0:
        here()
        wait()
    append(self, record)
CommitLog.append = appended
"""
IN_A_COMMIT_OF_A_GROUP = """
from viewkeeper.lake.log.commit_log import CommitLog
append = CommitLog.append
def appended(self, record):
    here()
    sys.stdin.readline()
    append(self, record)
CommitLog.append = appended
"""
PROGRAM = """
import sys, time
def here():
    print("here", flush=True)
def wait():
    # In short sleeps: a signal that comes right before a long one is not seen until that has ended.
    while True:
        time.sleep(0.01)
{waiting}
from viewkeeper.cli.main import main
main()
"""


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A warehouse at commit 0, with a source."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO orders VALUES (1)")
        connection.commit()
    with Warehouse.open(tmp_path / "lake") as warehouse:
        warehouse.add_source("shop", f"sqlite:///{tmp_path / 'shop.db'}", install=True)
    return tmp_path / "lake"


def interrupted(waiting: str, *words: str, lake: Path) -> tuple[int, str, str]:
    """The exit code, and what was written besides."""
    command = [sys.executable, "-c", PROGRAM.format(waiting=waiting), *words, "-w", str(lake)]
    with program(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n", process.stderr and process.stderr.read()
        process.send_signal(signal.SIGINT)
        # To one that waits for its input: go on.
        out, err = process.communicate("\n", timeout=LONG)
    return process.returncode, out, err


def files(lake: Path) -> set[str]:
    """All of them, but for the note that a writer leaves that had nothing to undo."""
    return {str(path.relative_to(lake)) for path in lake.rglob("*") if path.is_file() and path.name != "closed.json"}


def test_create_view_while_it_reads(lake: Path) -> None:
    before = files(lake)
    code, _, told = interrupted(IN_A_LOAD, "create-view", BIG, lake=lake)
    assert (code, told.strip()) == (130, "stopped; the warehouse is at commit 0")
    assert files(lake) == before


def test_create_view_between_its_tables_and_its_record(lake: Path) -> None:
    before = files(lake)
    code, _, told = interrupted(BEFORE_THE_RECORD, "create-view", BIG, lake=lake)
    assert (code, told.strip()) == (130, "stopped; the warehouse is at commit 0")
    assert files(lake) == before
    with Warehouse.open(lake) as warehouse:
        assert warehouse.views == ()
        warehouse.create_view(BIG)
        assert warehouse.audit("big").clean


def test_catch_up_finishes_the_commit_that_it_is_at(lake: Path) -> None:
    with Warehouse.open(lake) as warehouse:
        warehouse.create_view(BIG)
    with closing(sqlite3.connect(lake.parent / "shop.db")) as connection:
        connection.execute("INSERT INTO orders VALUES (2)")
        connection.commit()
    code, out, told = interrupted(IN_A_COMMIT_OF_A_GROUP, "catch-up", "--json", lake=lake)
    with Warehouse.open(lake) as warehouse:
        commit = warehouse.status().commit
        assert [state.rows for state in warehouse.states("big")] == [1, 2]
        assert warehouse.audit("big").clean
    assert commit >= 2
    assert (code, told.strip()) == (130, f"stopped; the warehouse is at commit {commit}")
    assert json.loads(out.splitlines()[-1])["commit"] == commit
