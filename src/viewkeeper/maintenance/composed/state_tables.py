"""The stored tables of operators on the driver: what was read of them, and what commits have added since.

    rows of a key  =  those of the table as it was read  +  those of every later commit

A table that was looked at is remembered with its version; one that another process has changed is read again.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import WEIGHT, arrow_schema
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.tables.driver_memory import share_of_memory
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.tables.parquet_files import read_table
from viewkeeper.lake.tables.signed_rows import conformed_table
from viewkeeper.summary.content import ArrowContent

MOST_REMEMBERED = share_of_memory()
"""Bytes of tables that are remembered."""
MOST_PARTS = 64
"""Commits whose rows are looked up one by one; more are put together."""


@dataclass(frozen=True)
class _Known:
    """A table at a version."""

    version: int
    base: ArrowContent
    added: tuple[pa.Table, ...] = field(default=())

    @property
    def nbytes(self) -> int:
        return int(self.base.nbytes + sum(table.nbytes for table in self.added))

    def find(self, columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        parts = [self.base.find(columns, keys).rows]
        if self.added:
            parts.append(ArrowContent(pa.concat_tables(self.added)).find(columns, keys).rows)
        return pa.concat_tables(parts)

    def whole(self) -> pa.Table:
        return pa.concat_tables([self.base.table, *self.added])


class StateTables:
    """Those of one warehouse."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._busy = threading.Lock()

    def find(self, table: Definition, record: Record, columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """The rows whose columns are those of some row of `keys`, which has no row twice; with `_vk_weight`."""
        return _net(self._at(table, record).find(columns, keys))

    def whole(self, table: Definition, record: Record) -> pa.Table:
        """All rows, with `_vk_weight`."""
        return _net(self._at(table, record).whole())

    def committed(self, table: Definition, before: Record, record: Record, changes: list[pa.Table]) -> None:
        """A commit has added these signed rows."""
        with self._busy:
            known = self._known.get(table.folder)
            if known is None or known.version != before.tables[table.name].version:
                return
            schema = _signed_schema(table)
            added = (*known.added, *(conformed_table(table, change).cast(schema) for change in changes))
            if len(added) > MOST_PARTS:
                added = (_net(pa.concat_tables(added)),)
            grown = replace(known, version=record.tables[table.name].version, added=added)
            if sum(part.num_rows for part in added) > max(100_000, grown.base.rows // 4):
                grown = _Known(grown.version, ArrowContent(_net(grown.whole())))
            self._known[table.folder] = grown

    def _at(self, table: Definition, record: Record) -> _Known:
        version = record.tables[table.name].version
        with self._busy:
            known = self._known.get(table.folder)
            if known is not None and known.version == version:
                self._known.move_to_end(table.folder)
                return known
        known = _Known(version, ArrowContent(self._read(table, record)))
        with self._busy:
            self._known[table.folder] = known
            while sum(one.nbytes for one in self._known.values()) > MOST_REMEMBERED and len(self._known) > 1:
                self._known.popitem(last=False)
        return known

    def _read(self, table: Definition, record: Record) -> pa.Table:
        schema = _signed_schema(table)
        listed = self._files.tables.files(table, record.tables[table.name])
        read = (read_table(self._files.store, table.folder, file, schema) for file in listed)
        return _net(pa.concat_tables([schema.empty_table(), *read]))


def _signed_schema(table: Definition) -> pa.Schema:
    return arrow_schema(table.columns, signed=False).append(pa.field(WEIGHT, pa.int64()))


def _net(rows: pa.Table) -> pa.Table:
    """Every row once."""
    names = [name for name in rows.column_names if name != WEIGHT]
    total = rows.group_by(names, use_threads=False).aggregate([(WEIGHT, "sum")]).rename_columns([*names, WEIGHT])
    return total.filter(pc.not_equal(total[WEIGHT], 0))
