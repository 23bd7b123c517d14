"""The states of a view that can be read: number, vector, time, size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.commit_log import CommitLog
from viewkeeper.lake.log.record import Record
from viewkeeper.messages import Vector


@dataclass(frozen=True)
class State:
    """One state of a view; `rows` counts what is stored, duplicates too, `commit` made it readable at `time`. Of a view
    that is computed, it counts the rows that it is computed from."""

    state: int
    vector: Vector
    time: str
    rows: int
    commit: int


def states_of(log: CommitLog, tables: Sequence[Definition], newest: Record, last: int | None = None) -> list[State]:
    """The states that can be read of all tables of a view, or so many of the newest, oldest first, with the rows of the
    first table."""
    oldest = oldest_state(tables, newest)
    readable = takewhile(lambda state: state.state >= oldest, _backwards(log, tables[0], newest))
    return list(islice(readable, last))[::-1]


def oldest_state(tables: Sequence[Definition], newest: Record) -> int:
    """The oldest state that all tables of a view can still give."""
    return max(newest.tables[table.name].oldest for table in tables)


def common_states(members: Sequence[list[State]]) -> list[State]:
    """The states of a family, from those of its members: the ones that all of them have, with the rows of all."""
    first, *others = members
    numbered = [{state.state: state for state in other} for other in others]
    found = []
    for state in first:
        same = [state, *(other[state.state] for other in numbered if state.state in other)]
        if len(same) == len(members):
            # A member that was created later is readable since then.
            latest = max(same, key=lambda one: one.commit)
            found.append(replace(latest, rows=sum(one.rows for one in same)))
    return found


def _backwards(log: CommitLog, view: Definition, newest: Record) -> Iterator[State]:
    """The states of a table, newest first. Records that added none of them are passed over."""
    oldest, kept = newest.tables[view.name].oldest, max(newest.tables[view.name].kept, log.numbers().start)
    record = newest
    while True:
        record = log.maker(view.group, record, kept)
        table, group = record.tables[view.name], record.groups[view.group]
        before = log.retained(record.commit - 1) if record.commit > kept else None
        earlier = before.groups.get(view.group) if before is not None and view.name in before.tables else None
        goes_on = earlier is not None and earlier.last >= oldest
        rows, grown = table.rows, dict(table.growth)
        found = [(state, vector) for state, vector in group.vectors() if state >= oldest]
        for state, vector in reversed(found):
            yield State(state, vector, group.time, rows, record.commit)
            rows -= grown.get(state, 0)
        if not found and not goes_on:
            # Its own record is gone or older than the view: this one is the first to have it.
            yield State(group.last, group.vector, group.time, table.rows, record.commit)
        if before is None or not goes_on:
            return
        record = before
