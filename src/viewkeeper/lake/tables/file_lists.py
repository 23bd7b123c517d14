"""The files of each version of each table, remembered: a version never changes."""

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from viewkeeper.lake.log.catalog import Definition, Layout
from viewkeeper.lake.log.record import Pending, TableState
from viewkeeper.lake.log.store import LocalStore, damaged_file
from viewkeeper.lake.tables.delta_table import DataFile, list_files

REMEMBERED = 256


class Tables:
    """File lists by view and version."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._lists: OrderedDict[tuple[str, int, int], tuple[DataFile, ...]] = OrderedDict()
        self._lock = Lock()

    def files(self, view: Definition, table: TableState) -> tuple[DataFile, ...]:
        """The files of a view in a commit."""
        # The folder of a view that was dropped and vacuumed may be that of another one later.
        key = view.folder, view.created, table.version
        with self._lock:
            known = self._lists.get(key)
        if known is not None:
            return known
        listed = list_files(self._store, view.folder, table.version)[1]
        self._check(view, table, listed)
        with self._lock:
            self._lists[key] = listed
            while len(self._lists) > REMEMBERED:
                self._lists.popitem(last=False)
        return listed

    def _check(self, view: Definition, table: TableState, listed: Sequence[DataFile]) -> None:
        """DamagedWarehouse if the record counts other rows: deltalake takes an empty entry of the log for no change."""
        if view.layout is Layout.APPENDED:
            listed = [file for file in listed if file.is_delta]
            told, found = table.pending, Pending(len(listed), sum(file.rows for file in listed))
        else:
            told, found = Pending(rows=table.rows), Pending(rows=sum(file.rows for file in listed))
        if told != found:
            raise damaged_file(
                self._store.path(f"{view.folder}/_delta_log"),
                f"version {table.version} has {found.rows} rows to read, and the commit record says {told.rows}",
            )
