"""The states of a view that can be read: number, vector, time, size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from viewkeeper.messages import Vector
from viewkeeper.warehouse.catalog import Definition
from viewkeeper.warehouse.commit_log import CommitLog
from viewkeeper.warehouse.record import Record


@dataclass(frozen=True)
class State:
    """One state of a view; `rows` counts what is stored, duplicates too, `commit` made it readable at `time`. Of a view
    that is computed, it counts the rows that it is computed from."""

    state: int
    vector: Vector
    time: str
    rows: int
    commit: int


def states_of(log: CommitLog, tables: Sequence[Definition], newest: Record) -> list[State]:
    """The states that can be read of all tables of a view, oldest first, with the rows of the first table."""
    oldest = oldest_state(tables, newest)
    return [state for state in _walk(log, tables[0], newest) if state.state >= oldest]


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


def _walk(log: CommitLog, view: Definition, newest: Record) -> Iterator[State]:
    oldest, kept = newest.tables[view.name].oldest, newest.tables[view.name].kept
    listed: int | None = None
    for number in log.numbers():
        if not kept <= number <= newest.commit:
            continue
        record = newest if number == newest.commit else log.record(number)
        table, group = record.tables.get(view.name), record.groups.get(view.group)
        if table is None or group is None or group.last < oldest:
            continue
        grown = dict(table.growth)
        rows = table.rows - sum(grown.values())
        for state, vector in group.vectors():
            rows += grown.get(state, 0)
            if state >= oldest:
                yield State(state, vector, group.time, rows, number)
                listed = state
        if listed is None:
            # Its own record is gone or older than the view: this one is the first to have it.
            yield State(group.last, group.vector, group.time, table.rows, number)
            listed = group.last
