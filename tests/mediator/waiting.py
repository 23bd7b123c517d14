"""Waiting for what another thread does."""

import threading
from collections.abc import Callable

LONG = 30.0


def until(done: Callable[[], object], what: str = "it") -> None:
    """Until something is so; it fails if that takes unreasonably long."""
    pause = threading.Event()
    for _ in range(int(LONG / 0.005)):
        if done():
            return
        pause.wait(0.005)
    raise AssertionError(f"{what} does not happen")
