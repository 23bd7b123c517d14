"""A stored table at one state, read with Arrow.

    V at s  =  base ⊎ positive(net)  −  negative(net)         net = Σ deltas in (base, s], equal rows added up

Rows of a base are distinct, so each file of it can be read by itself: a row meets at most one of the negative part, and
that is in the same file. What the net change adds belongs to none of them. A table that is written again by every
change is the rows of its files, less the changes after the state; then it is read as a whole.

All of this can be pickled, so that the files are listed in one place and read in another.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.arrow import ArrowZSet
from viewkeeper.lake.log.catalog import Definition, Layout
from viewkeeper.lake.log.columns import STATE, WEIGHT, Columns, arrow_schema
from viewkeeper.lake.log.commit_log import HOME
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.tables.change_files import ChangeFiles
from viewkeeper.lake.tables.delta_table import DataFile
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.lake.tables.parquet_files import read_table

ROWS_TOGETHER = 1_000_000
"""Files are read together up to so many rows."""


@dataclass(frozen=True)
class StoredTable:
    """The files of a table, and the state that is asked for."""

    view: Definition
    state: int
    base: tuple[DataFile, ...]
    signed: tuple[DataFile, ...]
    """deltas after the base; or, of a table that is rewritten, the changes that are to be undone"""

    @property
    def divisible(self) -> bool:
        """Whether files of the base can be read one by one."""
        return self.view.layout is Layout.APPENDED or not self.signed

    def shares(self) -> list["Share"]:
        """Parts that add up to the table; one at least."""
        if not self.divisible:
            return [Share(self.base, rest=True)]
        shares, together = [], list[DataFile]()
        for file in self.base:
            if together and sum(one.rows for one in together) + file.rows > ROWS_TOGETHER:
                shares.append(Share(tuple(together)))
                together = []
            together.append(file)
        return [*shares, Share(tuple(together), rest=True)]


@dataclass(frozen=True)
class Share:
    """Some files of the base; and with one of the shares the rest, which is in none of them."""

    base: tuple[DataFile, ...]
    rest: bool = False


def table_at(snapshot: HeldCommit, view: Definition, state: int | None, asked: str) -> StoredTable:
    """The files to read a table from; StateGone for the name that was asked for."""
    record, state = snapshot.holding(view, state, asked)
    view, table = view.at(record.commit), record.tables[view.name]
    listed = snapshot.files.tables.files(view, table)
    if view.layout is Layout.REWRITTEN:
        later = table.changes if state < record.groups[view.group].last else None
        return StoredTable(view, state, listed, (DataFile(later, 0, 0),) if later else ())
    deltas = (file for file in listed if file.is_delta and (file.states is None or file.states[0] <= state))
    return StoredTable(view, state, tuple(file for file in listed if not file.is_delta), tuple(deltas))


def read_share(store: LocalStore, table: StoredTable, share: Share, names: tuple[str, ...] | None = None) -> ArrowZSet:
    """The rows of a share, all of them there; of a table without signed rows some columns, if so asked."""
    view = table.view
    if names is not None and not table.signed:
        types = dict(view.columns)
        columns = tuple((name, types[name]) for name in names)
    else:
        columns = view.columns
    if view.layout is Layout.REWRITTEN:
        rows = ArrowZSet.of_table(_read(store, view.folder, share.base, columns), positive=True)
        if not table.signed:
            return rows
        later = ChangeFiles(HOME, table.signed, table.state, table.state + _NO_STATE)
        return (rows - read_changes(store, view, later).keep(rows.columns)).consolidate()
    base = _read(store, view.folder, share.base, columns, WEIGHT)
    rows = ArrowZSet.of_table(base, consolidated=len(columns) == len(view.columns), positive=True)
    if not table.signed:
        return rows
    pending = ChangeFiles(view.folder, table.signed, -1, table.state)
    net = read_changes(store, view, pending).keep(rows.columns).consolidate()
    rows = _less(rows, _of_sign(net, pc.less))
    return rows + _of_sign(net, pc.greater) if share.rest else rows


def read_whole(store: LocalStore, table: StoredTable) -> ArrowZSet:
    """All rows of a table."""
    return read_share(store, table, Share(table.base, rest=True))


def read_changes(store: LocalStore, view: Definition, changed: ChangeFiles) -> ArrowZSet:
    """The signed rows of a range of states, each with its state, as they are stored."""
    signed = _read(store, changed.folder, changed.files, view.columns, STATE, WEIGHT)
    inside = pc.and_(pc.greater(signed[STATE], changed.since), pc.less_equal(signed[STATE], changed.until))
    return ArrowZSet.of_table(signed.filter(inside))


_NO_STATE = 1 << 60
"""beyond all states"""


def _read(store: LocalStore, folder: str, files: tuple[DataFile, ...], columns: Columns, *numbers: str) -> pa.Table:
    schema = arrow_schema(columns, signed=False)
    for number in numbers:
        schema = schema.append(pa.field(number, pa.int64()))
    return pa.concat_tables([schema.empty_table(), *(read_table(store, folder, file, schema) for file in files)])


def _of_sign(net: ArrowZSet, compare: Callable[..., Any]) -> ArrowZSet:
    rows = net.table.filter(compare(net.table[WEIGHT], pa.scalar(0, pa.int64())))
    return ArrowZSet(net.columns, rows, consolidated=True, positive=compare is pc.greater)


def _less(rows: ArrowZSet, negative: ArrowZSet) -> ArrowZSet:
    """Distinct rows without what is deleted of them; what is deleted elsewhere does not count."""
    if not negative.table.num_rows or not rows.table.num_rows:
        return rows
    same = tuple((name, name) for name in rows.columns)
    touched, deleted = rows.matching(negative, same), negative.matching(rows, same)
    left = (touched + deleted).consolidate()
    kept = rows.key_delete(negative, same)
    return ArrowZSet(rows.columns, pa.concat_tables([kept.table, left.table]), consolidated=True, positive=True)
