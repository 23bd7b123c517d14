"""The files in which the signed rows of a range of states are.

    changes(since, until) = Σ Δ_s,  since < s <= until

Compaction takes deltas out of the newest version of a table, so the walk goes back from version to version: what the
base of one has swallowed is among the deltas of the record before. A table that was rewritten until it grew large has a
file of them for each of its commits.
"""

from dataclasses import dataclass

from viewkeeper.lake.log.catalog import Definition, Layout
from viewkeeper.lake.log.commit_log import HOME
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.tables.delta_table import DataFile
from viewkeeper.lake.tables.files import Files


@dataclass(frozen=True)
class ChangeFiles:
    """Files of signed rows in a folder, and the states of theirs that count: after `since`, up to `until`."""

    folder: str
    files: tuple[DataFile, ...]
    since: int
    until: int


def change_files(files: Files, view: Definition, record: Record, since: int, until: int) -> list[ChangeFiles]:
    """Where the signed rows of the states in (since, until] are, the last of them in `record`; no state is in two."""
    found, kept = list[ChangeFiles](), record.tables[view.name].kept
    while True:
        view, table = view.at(record.commit), record.tables[view.name]
        if view.layout is Layout.REWRITTEN:
            return [*found, ChangeFiles(HOME, _rewritten(files, view, record, since, until), since, until)]
        low = max(since, table.base)
        deltas = tuple(
            file
            for file in files.tables.files(view, table)
            if file.is_delta and (file.states is None or (file.states[1] > low and file.states[0] <= until))
        )
        found.append(ChangeFiles(view.folder, deltas, low, until))
        if table.base <= since:
            return found
        until = table.base
        record = files.log.find_state(view.group, until, since=kept, newest=record.commit)


def _rewritten(files: Files, view: Definition, newest: Record, since: int, until: int) -> tuple[DataFile, ...]:
    if since == until:
        return ()
    kept = newest.tables[view.name].kept
    first = files.log.find_state(view.group, since + 1, since=kept, newest=newest.commit)
    records = (files.log.record(number) for number in range(first.commit, newest.commit + 1))
    return tuple(DataFile(name, 0, 0) for record in records if (name := record.tables[view.name].changes))
