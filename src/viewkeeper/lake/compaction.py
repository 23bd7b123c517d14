"""Compaction: the deltas of a view become part of its base.

    base' = base + Σ deltas       when the deltas outgrow a share of the base; by Spark, if they are many
    delta' = ⊎ small deltas       on the driver, when there are many files of few rows

Either is a commit of its own: the content of every state stays what it was. Readers of earlier commits go on with the
files that they have, which stay until the retention has passed. The new files are written while commits go on; deltas
that arrive meanwhile simply stay beside the new base.
"""

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.arrow import ArrowZSet
from viewkeeper.errors import DamagedWarehouse, ViewkeeperError
from viewkeeper.lake.compaction_policy import CompactionPolicy
from viewkeeper.lake.log.catalog import Definition, Layout
from viewkeeper.lake.log.columns import STATE, WEIGHT, arrow_schema, table_schema
from viewkeeper.lake.log.record import Pending, Record
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.tables.delta_table import BASE, DELTA, DataFile, describe_file
from viewkeeper.lake.tables.parquet_files import STAGING, file_name, read_table, write_table
from viewkeeper.lake.tables.staged import StagedTable, WrittenBase
from viewkeeper.lake.thread_imports import import_for_threads

if TYPE_CHECKING:
    from viewkeeper.lake.writer import Writer

_LOG = logging.getLogger(__name__)

SMALL_ROWS = 50_000
"""A delta file of fewer rows is worth merging with others."""
MOST_ROWS, MOST_BYTES = 1_000_000, 16 << 20
"""Rows, and bytes of files, that the driver makes a base of: no JVM has to be started for that."""


def compact(writer: "Writer", view: Definition) -> Record | None:
    """Give a view a new base that holds its last state; None if it has no deltas, or they are gone by the end."""
    if view.layout is not Layout.APPENDED:
        return None
    with writer.mutex:
        writer.begin()
        start = writer.last
    table = start.tables[view.name]
    if not table.pending.files:
        return None
    state = start.groups[view.group].last
    old = writer.tables.files(view, table)
    # The number of the commit is not known yet, and a crash must not leave files under a wrong one.
    with writer.staging() as staged:
        written = _new_base(writer, view, old, state, staged, hashed=table.hashed)
        if written.smallest < 0:
            raise DamagedWarehouse(
                f"view {view.name} has a row that was deleted more often than inserted, by state {state}",
                "the view and its sources no longer agree: reload it; nothing was compacted",
            )
        with writer.committing() as number:
            if not _still_there(writer, view, old):
                return None
            name = file_name(BASE, number)
            for file in written.files:
                writer.store.move(f"{STAGING}/{staged}/{file}", f"{view.folder}/{name}/{file}")
            new = [f"{name}/{file}" for file in written.files]
            return _replace_files(writer, view, {file.name for file in old}, new, base=(state, written.hashed))


def _new_base(
    writer: "Writer", view: Definition, files: Sequence[DataFile], state: int, staged: str, *, hashed: bool
) -> WrittenBase:
    if sum(file.rows for file in files) <= MOST_ROWS and sum(file.size for file in files) <= MOST_BYTES:
        return _written_here(writer.store, view, files, state, staged)
    from viewkeeper.lake.compacted_base import write_base

    return write_base(writer, view, files, state, staged, hashed=hashed)


def _written_here(
    store: LocalStore, view: Definition, files: Sequence[DataFile], state: int, staged: str
) -> WrittenBase:
    """A new base computed and written on the driver."""
    schema = arrow_schema(view.columns, signed=False).append(pa.field(WEIGHT, pa.int64()))
    rows = pa.concat_tables([read_table(store, view.folder, file, schema) for file in files])
    total = ArrowZSet.of_table(rows).consolidate().table
    if total.num_rows == 0:
        return WrittenBase([], hashed=False, smallest=0)
    stamped = total.append_column(STATE, pa.repeat(pa.scalar(state, pa.int64()), total.num_rows))
    stamped = stamped.select([*view.names, WEIGHT, STATE]).cast(arrow_schema(view.columns, signed=True))
    name = write_table(store, f"{STAGING}/{staged}", BASE, stamped, view.sorted_by)
    return WrittenBase([name], hashed=False, smallest=pc.min(stamped[WEIGHT]).as_py())


def _still_there(writer: "Writer", view: Definition, files: Sequence[DataFile]) -> bool:
    """Whether the view still is what it was, deltas added since aside."""
    if writer.catalog.get(view.name) != view:
        return False
    return set(files) <= set(writer.tables.files(view, writer.last.tables[view.name]))


def merge_deltas(writer: "Writer", view: Definition) -> Record | None:
    """Put the small delta files of a view into one, on the driver; None if there are fewer than two."""
    with writer.committing() as number:
        if writer.catalog.get(view.name) != view:
            return None
        table = writer.last.tables[view.name]
        small = [file for file in writer.tables.files(view, table) if file.is_delta and file.rows < SMALL_ROWS]
        if len(small) < 2:
            return None
        schema = arrow_schema(view.columns, signed=True)
        merged = pa.concat_tables([read_table(writer.store, view.folder, file, schema) for file in small])
        name = write_table(writer.store, view.folder, file_name(DELTA, number), merged)
        return _replace_files(writer, view, {file.name for file in small}, [name], base=None)


def _replace_files(
    writer: "Writer", view: Definition, old: set[str], new: Sequence[str], base: tuple[int, bool] | None
) -> Record:
    """Commit new files in the place of old ones; deltas that came meanwhile stay. `base` is told of a new base: its
    state, and whether its hashes are unique."""
    table = writer.last.tables[view.name]
    state, hashed = base or (table.base, table.hashed)
    listed = writer.tables.files(view, table)
    described = [describe_file(writer.store, view.folder, name) for name in new]
    after = [file for file in listed if file.name not in old] + [file for file, _ in described]
    deltas = [file for file in after if file.is_delta]
    staged = StagedTable(
        view,
        table_schema(view.columns),
        [add for _, add in described],
        [file for file in listed if file.name in old],
        replace(
            table.untouched(),
            base=state,
            hashed=hashed,
            pending=Pending(len(deltas), sum(file.rows for file in deltas)),
            added=tuple(new),
        ),
    )
    return writer.replace_table(staged, {"compacted": view.name})


def _log_failure(error: BaseException) -> None:
    # Not raised: the commits that it was for stand, whatever became of it.
    _LOG.error("a compaction failed and will be tried again: %s", error)


class Housekeeper:
    """Compacts when the policy says so: small deltas at once, a new base beside the commits, one view at a time."""

    def __init__(self, writer: "Writer", policy: CompactionPolicy) -> None:
        self._writer, self._policy = writer, policy
        self._under_way: Future[Record | None] | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="viewkeeper-compaction")

    def look(self, record: Record) -> None:
        """Look at the tables that a commit has changed."""
        catalog = self._writer.catalogs.read(record.catalog)
        for name, table in record.tables.items():
            if not table.added or catalog[name].layout is not Layout.APPENDED:
                continue
            if self._policy.wants_new_base(table):
                self._start(catalog[name])
            elif self._policy.wants_merged_deltas(table):
                try:
                    merge_deltas(self._writer, catalog[name])
                except ViewkeeperError as error:
                    _log_failure(error)

    def _start(self, view: Definition) -> None:
        if self._under_way is None or self._under_way.done():
            self._finish()
            import_for_threads()
            self._under_way = self._pool.submit(compact, self._writer, view)

    def _finish(self) -> None:
        """Wait for the compaction that was started last."""
        under_way, self._under_way = self._under_way, None
        if under_way is not None and (error := under_way.exception()) is not None:
            _log_failure(error)

    def close(self) -> None:
        """Wait for what is under way."""
        self._finish()
        self._pool.shutdown()
