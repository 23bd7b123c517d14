"""Gives orders to `crashing_writer.py`."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from waiting import LONG, program

SOME_OR_EVERY = [pytest.param(False, id="some steps"), pytest.param(True, id="every step", marks=pytest.mark.soak)]
SCRIPT = Path(__file__).with_name("crashing_writer.py")


@dataclass
class Crasher:
    """A process whose forks do things to warehouses, and are killed on the way."""

    process: "subprocess.Popen[str]"

    def steps(self, task: str, root: Path) -> list[str]:
        """Do it to the end; the steps that it takes."""
        told = self._order(task, root, None)
        assert "steps" in told, told.get("error", told)
        return list(told["steps"])

    def kill(self, task: str, root: Path, at: int) -> None:
        """Do it up to a step, and be killed there."""
        told = self._order(task, root, at)
        assert told["killed"], told.get("error", told)

    def _order(self, task: str, root: Path, kill_at: int | None) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"task": task, "root": str(root), "kill_at": kill_at}) + "\n")
        self.process.stdin.flush()
        return dict(json.loads(self._answer()))

    def _answer(self) -> str:
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if line.startswith(("{", "ready")):
                return line
        raise AssertionError("the process that is to be killed has died by itself")


def where_to_kill(steps: list[str], *, every: bool, among: Iterable[int] | None = None) -> list[int]:
    """At every step; or at the last step of each kind, where there is most to put back, and just before and after each
    record of a commit."""
    places = list(range(len(steps)) if among is None else among)
    if every:
        return places
    last = {_kind(steps[at]): at for at in places}
    around = {at + after for at in records_made(steps) for after in (0, 1) if at + after < len(steps)}
    return sorted({*last.values(), *around})


def records_made(steps: list[str]) -> list[int]:
    """The steps at which a commit becomes true."""
    return [at for at, step in enumerate(steps) if step.startswith("os.link /_viewkeeper/commits/")]


def _kind(step: str) -> tuple[str, ...]:
    """What is done, and in which folder of the warehouse; the views are alike."""
    what, _, path = step.partition(" /")
    return what, *path.split("/")[: 1 if path.startswith("views/") else 2]


@contextmanager
def crasher(*options: str) -> Iterator[Crasher]:
    """Start the process; it ends with the block."""
    with program(
        [sys.executable, str(SCRIPT), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        limit=3600,  # for all tests of a module together; each order is limited as its test is
    ) as process:
        made = Crasher(process)
        assert made._answer() == "ready\n"
        yield made
        process.communicate(timeout=LONG)


def die_while_spark_writes(root: Path) -> int:
    """How a process ended that was killed in the middle of a bulk load; its JVM has ended too."""
    # The JVM holds the same output open: this waits for both.
    command = [sys.executable, str(SCRIPT), "--halfway", str(root)]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True).returncode
