"""The verbs as programs of their own: what they import, what Spark prints, how they stop."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from viewkeeper import Warehouse
from viewkeeper.algebra.memory import MemoryZSet
from waiting import LONG, program

pytestmark = pytest.mark.processes

ENGINES = {"pyspark", "py4j", "deltalake", "pyarrow", "pandas"}
MODULES = """
import sys
from viewkeeper.cli.main import main
try:
    main()
finally:
    print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lake")
    with Warehouse.open(path) as warehouse, warehouse.commit() as commit:
        commit.create("numbers", {"n": "BIGINT"}, rows=MemoryZSet.of(("n",), *((n,) for n in range(10))))
    return path


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "viewkeeper", *map(str, words)]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=300, check=False)


def imported(*words: object) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", MODULES, *map(str, words)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


# What is imported


@pytest.mark.parametrize("words", ["--help", "status --help", "query --help", "demo --help", "simulate --seed 1"])
def test_no_engine_is_imported_for(words: str) -> None:
    assert imported(*words.split()) & ENGINES == set()


@pytest.mark.parametrize("words", ["status", "states numbers", "sources", "vacuum --dry-run"])
def test_spark_is_not_imported_for(words: str, lake: Path) -> None:
    modules = imported(*words.split(), "-w", lake)
    assert "deltalake" in modules
    assert modules & {"pyspark", "py4j", "pandas"} == set()


# What is printed


def test_rows_and_nothing_else_for_a_pipe(lake: Path) -> None:
    done = run("query", "SELECT n FROM numbers WHERE n < 2 ORDER BY n", "--format", "csv", "-w", lake)
    assert (done.returncode, done.stdout, done.stderr) == (0, "n\n0\n1\n", "")


def test_spark_errors_are_said_in_two_lines(lake: Path) -> None:
    query = "SELECT n, 1 / (7 - n) AS x FROM numbers"
    done = run("query", query, "-w", lake)
    starting, error, hint = done.stderr.splitlines()
    assert starting == "starting Spark ..."
    assert error.startswith("error: running the query: [DIVIDE_BY_ZERO] ")
    assert hint.startswith("  hint: ")
    assert done.returncode == 2


def test_a_closed_pipe_ends_a_query(lake: Path) -> None:
    words = command("query", "SELECT id FROM range(1000000)", "--format", "csv", "-w", lake)
    with program(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"id\n"
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(LONG) == 141


# The rows of the first partition come at once, those of the second take a million steps each.
ENDLESS = """
SELECT id FROM range(0, 100000, 1, 2)
WHERE id < 50000 OR
    aggregate(sequence(1, 1000), 0L, (a, x) -> a + aggregate(sequence(1, 1000), 0L, (b, y) -> (b + x * y) % id)) < 0
"""


@pytest.mark.parametrize("when", ["starting", "running"])
def test_an_interrupt_stops_cleanly(lake: Path, when: str) -> None:
    words = command("query", ENDLESS, "-w", lake, *(["--format", "csv"] if when == "running" else []))
    with program(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        if when == "running":
            for _ in range(49_000):
                process.stdout.readline()
        else:
            assert process.stderr.readline() == "starting Spark ...\n"
        assert os.listdir(lake / "_viewkeeper" / "pins"), "the snapshot is pinned"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=LONG)
    assert (process.returncode, stderr.strip()) == (130, "stopped")
    assert not os.listdir(lake / "_viewkeeper" / "pins")


def test_a_terminal_gets_a_drawn_table(lake: Path) -> None:
    ours, theirs = pty.openpty()
    with program(command("status", "-w", lake), stdout=theirs, env={**os.environ, "TERM": "xterm"}) as process:
        assert process.wait(LONG) == 0
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "numbers" in shown
    assert "───" in shown
