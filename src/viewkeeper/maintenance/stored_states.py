"""Where the mediator's states go: commits, and the stored views read back."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from viewkeeper.algebra.adaptive import Engines
from viewkeeper.lake.commit import Commit
from viewkeeper.lake.log.catalog import find
from viewkeeper.lake.log.failures import Failures
from viewkeeper.lake.log.halts import Halts
from viewkeeper.lake.log.record import REFRESHES
from viewkeeper.lake.tables.files import Files
from viewkeeper.maintenance.composed.views import ComposedViews
from viewkeeper.maintenance.self_maintained.views import SelfMaintainedViews
from viewkeeper.maintenance.stored_rows import stored_rows
from viewkeeper.maintenance.summaries.lattices import Summaries
from viewkeeper.mediator.alignment import GroupChange
from viewkeeper.messages import Vector


class StoredStates:
    """The store that a mediator commits to."""

    def __init__(
        self,
        files: Files,
        commit: Callable[[], Commit],
        engines: Engines,
        summaries: Summaries,
        self_maintained: SelfMaintainedViews,
        composed: ComposedViews,
    ) -> None:
        self._files = files
        self._commit = commit
        self._engines = engines
        self._summaries = summaries
        self._self_maintained = self_maintained
        self._composed = composed

    def commit(self, group: str, changes: Sequence[GroupChange], figures: Callable[[], Mapping[str, Any]]) -> None:
        with self._commit() as commit:
            commit.measured(lambda: {REFRESHES: {group: dict(figures())}})
            before = self._files.log.last()
            not_stored = self._self_maintained.unstored(group) | self._composed.unstored(group)
            not_stored |= self._summaries.unstored(group)
            stored = [
                (change.vector, {view: deltas for view, deltas in change.deltas.items() if view not in not_stored})
                for change in changes
            ]
            commit.states(group, stored, passed_on=[change.deltas for change in changes])
            commit.afterwards(lambda record: self._self_maintained.committed(group, before, record, changes))
            commit.afterwards(lambda record: self._composed.committed(group, before, record, changes))

    def advance(self, group: str, vector: Vector) -> None:
        with self._commit() as commit:
            commit.advance(group, vector)

    def read(self, view: str) -> Any:
        return stored_rows(self._files, self._engines, view)

    def halt(self, group: str, view: str, reason: str, *, recomputable: bool = False) -> None:
        record = self._files.log.last()
        definition = find(self._files.catalogs.read(record.catalog), view)
        last = record.groups[group].last
        Halts(self._files.store).add(view, definition.folder, reason, last, recomputable=recomputable)
        self._summaries.halted_input(view, reason, recomputable=recomputable)

    def failed(self, group: str, reason: str | None) -> None:
        failures = Failures(self._files.store)
        if reason is None:
            failures.remove(group)
        else:
            failures.add(group, reason, self._files.log.last())
