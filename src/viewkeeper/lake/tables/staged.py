"""A table whose new files are written and not yet committed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from deltalake.transaction import AddAction

from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.record import TableState
from viewkeeper.lake.tables.delta_log import entry_name
from viewkeeper.lake.tables.delta_table import DataFile, OpenTables, change_table, create_table
from viewkeeper.lake.tables.parquet_files import checksum_of


@dataclass(frozen=True)
class WrittenBase:
    """The files of a new base, whether every row of it has a hash of its own, and the smallest count of a row."""

    files: Sequence[str]
    hashed: bool
    smallest: int


@dataclass(frozen=True)
class StagedTable:
    """What a commit will do to one table, and what its record will say of it; a new table has version -1."""

    view: Definition
    schema: Any
    adds: Sequence[AddAction]
    removes: Sequence[DataFile]
    after: TableState

    def commit(self, tables: OpenTables, commit: int) -> TableState:
        """Commit the files to the Delta table; the entry of the record."""
        if self.after.version < 0:
            version = create_table(tables.store, self.view.folder, self.view.name, self.schema, self.adds, commit)
        elif self.adds or self.removes:
            version = change_table(
                tables, self.view.folder, self.after.version, self.schema, self.adds, self.removes, commit
            )
        else:
            return self.after
        entry = tables.store.path(entry_name(self.view.folder, version))
        return replace(self.after, version=version, log=f"{checksum_of(entry):08x}")
