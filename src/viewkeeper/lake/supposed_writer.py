"""A warehouse in which something has been done already: many commits that come true as one, or not at all.

    commit 1, 2, ...   new tables, written in full, that no record knows      readers see the last commit
    at the end         one record with all of them                            readers see everything at once
    a failure          the tables are swept, as after a crash                 readers never knew

To whoever works in it, it is a warehouse like any other: what an earlier commit created can be read by a later one.
Only tables that are new in it are written; those that are there can be dropped, and described otherwise.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from viewkeeper.clock import now
from viewkeeper.lake.log.catalog import Catalog, Catalogs
from viewkeeper.lake.log.commit_log import CommitLog
from viewkeeper.lake.log.record import GroupState, Record, TableState
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.tables.file_lists import Tables
from viewkeeper.lake.writer import Writer


class SupposedWriter(Writer):
    """A writer whose commits all have the number of the one that they will be."""

    def __init__(self, writer: Writer, number: int, first_state: int) -> None:
        log, catalogs = _SupposedLog(writer.store), _SupposedCatalogs(writer.store, number)
        super().__init__(writer.store, log, catalogs, Tables(writer.store), writer.spark, owns_spark=writer.owns_spark)
        self._real, self._number, self._floor = writer, number, first_state
        self._log = log
        last = writer.last
        self._suppose(
            replace(
                last,
                tables={name: table.untouched() for name, table in last.tables.items()},
                groups={name: group.untouched() for name, group in last.groups.items()},
            )
        )

    def _suppose(self, record: Record) -> None:
        # As long as nothing has come true the next number is always the same.
        self._last = self._log.supposed = replace(record, commit=self._number - 1)

    def begin(self) -> None:
        """Whether this is still the one writer is seen to when everything comes true."""

    def make(self, write: Callable[[int], Record]) -> Record:
        """Write the tables of a commit, and suppose that it was made."""
        before = self._last
        made = write(self._number)
        self._suppose(
            replace(
                made,
                tables={name: _table(before.tables.get(name), table) for name, table in made.tables.items()},
                groups={name: _group(before.groups.get(name), group) for name, group in made.groups.items()},
            )
        )
        return self._last

    def goes_on_from(self, there: GroupState) -> int:
        """States have later numbers than any that a view of this name had: whoever has seen those can tell. So a group
        that a view moves to may skip some; at such a number nothing has changed yet."""
        return max(there.last, self._floor - 1)

    def first_state(self, group: str) -> int:
        there = self._real.last.groups.get(group)
        return self._floor if there is None else self.goes_on_from(there) + 1

    @contextmanager
    def staging(self) -> Iterator[str]:
        with self._real.staging() as name:
            yield name

    def come_true_as(self, metrics: Mapping[str, Any]) -> None:
        """Make all of it one commit of the real writer."""
        moment = now().isoformat()
        groups = {name: replace(one, time=moment) if one.steps else one for name, one in self._last.groups.items()}
        record = replace(
            self._last,
            commit=self._number,
            catalog=self._number,
            time=moment,
            writer=self._real.id,
            groups=groups,
            metrics=dict(metrics),
        )
        self._real.come_true(record, self.catalog)


def _table(before: TableState | None, after: TableState) -> TableState:
    """A table with all that was done to it so far, since the last commit that is true."""
    return before if before is not None and before.untouched() == after else after


def _group(before: GroupState | None, after: GroupState) -> GroupState:
    """A group with all states that it has got so far."""
    if before is None or not before.steps:
        return after
    return replace(after, steps=(*before.steps, *after.steps), before=before.before)


class _SupposedLog(CommitLog):
    """The log, with a last record that is not in it."""

    supposed: Record

    def last(self) -> Record:
        return self.supposed

    def append(self, record: Record) -> None:
        """It is supposed by the writer."""


class _SupposedCatalogs(Catalogs):
    """The catalogs, and one that is not written yet."""

    def __init__(self, store: LocalStore, number: int) -> None:
        self._number = number
        self._supposed: Catalog | None = None
        super().__init__(store)

    def _read(self, commit: int) -> Catalog:
        if commit == self._number and self._supposed is not None:
            return self._supposed
        return super()._read(commit)

    def write(self, commit: int, catalog: Catalog) -> None:
        self._supposed = dict(catalog)
        self.read.cache_clear()
