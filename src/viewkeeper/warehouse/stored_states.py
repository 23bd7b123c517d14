"""Where the mediator's states go: commits, and the stored views read back."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from viewkeeper.algebra.adaptive import Engines
from viewkeeper.mediator.alignment import GroupChange
from viewkeeper.messages import Vector
from viewkeeper.warehouse.catalog import find
from viewkeeper.warehouse.commit import Commit
from viewkeeper.warehouse.halted import Halts
from viewkeeper.warehouse.small_reads import small_rows
from viewkeeper.warehouse.snapshot import Files, Snapshot

if TYPE_CHECKING:
    from viewkeeper.warehouse.summaries.keeping import Summaries


class StoredStates:
    """The store that a mediator commits to."""

    def __init__(self, files: Files, commit: Callable[[], Commit], engines: Engines, summaries: "Summaries") -> None:
        self._files = files
        self._commit = commit
        self._engines = engines
        self._summaries = summaries

    def commit(self, group: str, changes: Sequence[GroupChange]) -> None:
        with self._commit() as commit:
            stored = [(change.vector, self._summaries.stored_part(group, change.deltas)) for change in changes]
            commit.states(group, stored, passed_on=[change.deltas for change in changes])

    def advance(self, group: str, vector: Vector) -> None:
        with self._commit() as commit:
            commit.advance(group, vector)

    def read(self, view: str) -> Any:
        record = self._files.log.last()
        definition = find(self._files.catalogs.read(record.catalog), view)
        rows = small_rows(self._files, definition, record, self._engines.most_rows)
        if rows is not None:
            return self._engines.zset(tuple(definition.names), rows)
        return self._engines.of_frame(Snapshot(self._files, record).with_hidden(view).weights())

    def halt(self, group: str, view: str, reason: str) -> None:
        record = self._files.log.last()
        definition = find(self._files.catalogs.read(record.catalog), view)
        Halts(self._files.store).add(view, definition.folder, reason, record.groups[group].last)
        self._summaries.halted_input(view, reason)
