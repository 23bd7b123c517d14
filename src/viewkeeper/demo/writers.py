"""Starts the process that writes to the databases, and stops it: see `writing`.

with Writers(order) as writers:
    writers.begin()
    ...
    while writers.writing: ...
    commits = writers.stop()        # or before: what is under way is finished then
"""

import subprocess
import sys
from datetime import datetime
from types import TracebackType
from typing import Self

from viewkeeper.demo.writing import Committed, Order
from viewkeeper.errors import SourceError

PATIENCE = 60.0
"""Seconds that the writers may take longer than they were told to."""


class Writers:
    """The writing process; it ends with this one, whatever happens."""

    def __init__(self, order: Order) -> None:
        # A session of its own: Ctrl-C is for the one who ordered this, who then stops it between two transactions.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "viewkeeper.demo.writing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._tell(order.as_json())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            try:
                self._process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()
        self._process.wait()

    def begin(self) -> None:
        """Let them write, when they have opened their databases."""
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "ready":
            raise self._failed(*self._process.communicate(timeout=PATIENCE))
        self._tell("begin")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    @property
    def writing(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> dict[str, list[datetime]]:
        """End it after the transactions that are under way; for each database when each transaction was committed."""
        out, told = self._process.communicate(timeout=PATIENCE)
        if self._process.returncode:
            raise self._failed(out, told)
        return Committed.of(out).times() if out.strip() else {}

    def _failed(self, out: str, told: str) -> SourceError:
        reason = (told.strip() or out.strip() or f"exit code {self._process.returncode}").splitlines()[-1]
        return SourceError(f"a writer of the demo has failed: {reason}", "run the demo again, in another folder")
