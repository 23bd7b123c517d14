"""What is read often is computed once: from the third read of one state on, Spark keeps the rows of a joined view.

    reads 1, 2     computed from the pairs and the copies; only the columns that are asked for
    reads 3, ...   kept in memory and on disk, until there is a later state or the warehouse is closed

A frame that somebody still holds then is recomputed when it is used.
"""

from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.record import Record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEPT_FROM = 3
"""the read that keeps the rows"""


@dataclass
class _Reads:
    """How often one state of a view was read. The files of a state change with a compaction: `at` has their versions,
    behind the number of the state, so that the later is the greater."""

    view: Definition
    at: tuple[int, ...]
    number: int = 0
    frame: "DataFrame | None" = None


class CachedReads:
    """The reads of the computed views of one warehouse."""

    def __init__(self) -> None:
        self._reads: dict[tuple[str, int], _Reads] = {}
        self._lock = Lock()
        self._closed = False

    def read(self, view: Definition, at: tuple[int, ...], frame: "DataFrame") -> "DataFrame":
        """The rows of the last state of a view, or the same as they are kept."""
        key = view.folder, view.created
        with self._lock:
            reads = self._reads.get(key)
            if reads is None or reads.at < at:
                self._forget(key)
                reads = self._reads[key] = _Reads(view, at)
            # A snapshot may be older than what others read.
            if self._closed or reads.at > at:
                return frame
            reads.number += 1
            if reads.frame is None and reads.number >= KEPT_FROM:
                from viewkeeper.algebra.pyspark_names import StorageLevel

                reads.frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
            return frame if reads.frame is None else reads.frame

    def look(self, record: Record) -> None:
        """Let go of states that are not the last ones after a commit."""
        with self._lock:
            for key, reads in list(self._reads.items()):
                group = record.groups.get(reads.view.group)
                if group is None or group.last > reads.at[0] or reads.view.name not in record.tables:
                    self._forget(key)

    def close(self) -> None:
        """Let go of everything, and keep nothing any more."""
        with self._lock:
            self._closed = True
            for key in list(self._reads):
                self._forget(key)

    def _forget(self, key: tuple[str, int]) -> None:
        reads = self._reads.pop(key, None)
        if reads is not None and reads.frame is not None:
            _unpersist(reads.frame)


def _unpersist(frame: "DataFrame") -> None:
    from viewkeeper.algebra.pyspark_names import Py4JError, PySparkException

    # A session that has been stopped keeps nothing.
    with suppress(PySparkException, Py4JError, OSError):
        frame.unpersist()
