"""Waiting for other threads and programs. Nothing here waits without a limit: a test that hangs says nothing."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LONG = 120.0
"""Seconds that nothing takes, on the slowest machine either."""


def until(done: Callable[[], object], what: str = "it") -> None:
    """Until something is so; it fails if that takes unreasonably long."""
    pause = threading.Event()
    for _ in range(int(LONG / 0.005)):
        if done():
            return
        pause.wait(0.005)
    raise AssertionError(f"{what} does not happen")


def joined(*threads: threading.Thread, limit: float = LONG) -> None:
    """Until threads have ended; it fails if one has not by then."""
    for thread in threads:
        thread.join(limit)
    running = [thread.name for thread in threads if thread.is_alive()]
    assert not running, f"still running after {limit:.0f} s: {', '.join(running)}"


@contextmanager
def program(
    command: Sequence[str | Path], *, limit: float = 2 * LONG, **options: Any
) -> Iterator["subprocess.Popen[Any]"]:
    """A process that is gone at the end of the block, with those that it has started.

    `with subprocess.Popen(...)` waits for the process instead, for ever if the block failed before it told the process
    to end. One that is still there after `limit` seconds is killed: whoever reads from it comes to the end then.
    """
    process = subprocess.Popen(command, start_new_session=True, **options)
    overdue = threading.Event()

    def kill() -> None:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)

    def end() -> None:
        overdue.set()
        kill()

    limited = threading.Timer(limit, end)
    limited.daemon = True
    limited.start()
    try:
        # Closes its pipes, and waits for it.
        with process:
            try:
                yield process
            finally:
                kill()
    finally:
        limited.cancel()
        assert not overdue.is_set(), f"killed after {limit:.0f} s: {' '.join(map(str, command))}"
