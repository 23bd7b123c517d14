"""What changed between two states of a view: its signed rows, state by state.

    changes(since, until) = Σ Δ_s,  since < s <= until
    V(until) = V(since) + changes(since, until)

Compaction takes deltas out of the newest version of a table, so the walk goes back from version to version: what the
base of one has swallowed is among the deltas of the record before.
"""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from viewkeeper.warehouse.catalog import Definition, Layout
from viewkeeper.warehouse.columns import STATE, WEIGHT
from viewkeeper.warehouse.commit_log import HOME
from viewkeeper.warehouse.delta_table import DataFile
from viewkeeper.warehouse.reading import added_up, padded_rows, shown_rows
from viewkeeper.warehouse.record import Record
from viewkeeper.warehouse.snapshot import Files
from viewkeeper.warehouse.spark_files import read_files


def stored_changes(files: Files, table: Definition, newest: Record, since: int, until: int) -> DataFrame:
    """The signed rows of the states in (since, until], with their states, as they are stored: not added up."""
    if table.layout is Layout.APPENDED:
        pieces = _appended(files, table, newest, since, until)
    else:
        pieces = [_within(_read(files, table, HOME, _change_files(files, table, newest, since, until)), since, until)]
    return reduce(lambda some, more: some.unionAll(more), pieces)


def shown_changes(stored: DataFrame, view: Definition) -> DataFrame:
    """The same as readers see them."""
    # A row that one state inserts and deletes has not changed; nor has one of which readers do not see what changed.
    return added_up(shown_rows(stored, view, WEIGHT, STATE), STATE)


def family_changes(members: Sequence[DataFrame], views: Sequence[Definition]) -> DataFrame:
    """The changes of a family, from those of its members."""
    return added_up(padded_rows(members, views, WEIGHT, STATE), STATE)


def _appended(files: Files, view: Definition, record: Record, since: int, until: int) -> list[DataFrame]:
    pieces, kept = [], record.tables[view.name].kept
    while True:
        table = record.tables[view.name]
        low = max(since, table.base)
        deltas = [
            file
            for file in files.tables.files(view, table)
            if file.is_delta and (file.states is None or (file.states[1] > low and file.states[0] <= until))
        ]
        pieces.append(_within(_read(files, view, view.folder, deltas), low, until))
        if table.base <= since:
            return pieces
        until = table.base
        record = files.log.find_state(view.group, until, since=kept, newest=record.commit)


def _change_files(files: Files, view: Definition, newest: Record, since: int, until: int) -> list[DataFile]:
    if since == until:
        return []
    kept = newest.tables[view.name].kept
    first = files.log.find_state(view.group, since + 1, since=kept, newest=newest.commit)
    records = (files.log.record(number) for number in range(first.commit, newest.commit + 1))
    return [DataFile(name, 0, 0) for record in records if (name := record.tables[view.name].changes)]


def _read(files: Files, view: Definition, folder: str, listed: list[DataFile]) -> DataFrame:
    return read_files(files.spark(), files.store, folder, listed, view.columns, signed=True)


def _within(frame: DataFrame, since: int, until: int) -> DataFrame:
    return frame.filter((F.col(STATE) > since) & (F.col(STATE) <= until))
