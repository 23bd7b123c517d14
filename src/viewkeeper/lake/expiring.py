"""Vacuum while views are maintained: what is past its retention goes from time to time, beside the commits."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from viewkeeper.clock import monotonic
from viewkeeper.durations import seconds
from viewkeeper.lake.vacuum import Vacuumed, vacuum

if TYPE_CHECKING:
    from viewkeeper.lake.writer import Writer

_LOG = logging.getLogger(__name__)

FIRST, EVERY = 60.0, 600.0
"""seconds until the first vacuum, and between two: those of a process that is killed now and then come too"""


@contextmanager
def expiring(writer: "Writer", retention: str | float | None, grace: str | float) -> Iterator[Callable[[], None]]:
    """A function to call as often as one likes, which vacuums now and then; without a retention it does nothing."""
    if retention is None:
        yield lambda: None
        return
    vacuums = Vacuums(writer, seconds(retention), seconds(grace))
    try:
        yield vacuums.look
    finally:
        vacuums.close()


class Vacuums:
    """One vacuum at a time, in a thread of its own."""

    def __init__(self, writer: "Writer", retention: float, grace: float) -> None:
        self._writer, self._retention, self._grace = writer, retention, grace
        self._due = monotonic() + FIRST
        self._under_way: Future[Vacuumed] | None = None
        self._ending = False
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="viewkeeper-vacuum")

    def look(self) -> None:
        """Begin one if it is due."""
        if self._under_way is not None and self._under_way.done():
            self._finish()
        if self._under_way is None and monotonic() >= self._due:
            self._due = monotonic() + EVERY
            self._under_way = self._pool.submit(
                vacuum, self._writer, self._retention, self._grace, stopped=lambda: self._ending
            )

    def _finish(self) -> None:
        under_way, self._under_way = self._under_way, None
        if under_way is None:
            return
        if (error := under_way.exception()) is not None:
            # Not raised: views are maintained all the same.
            _LOG.error("a vacuum failed and will be tried again: %s", error)
        elif (done := under_way.result()).files or done.commits:
            _LOG.info("vacuum deleted %d files (%d bytes) and %d commits", done.files, done.bytes, done.commits)

    def close(self) -> None:
        """End the one that is under way, at the file that it is at."""
        self._ending = True
        self._finish()
        self._pool.shutdown()
