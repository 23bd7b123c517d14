"""The files of each version of each table, remembered: a version never changes."""

from collections import OrderedDict
from threading import Lock

from viewkeeper.warehouse.catalog import Definition
from viewkeeper.warehouse.delta_table import DataFile, list_files
from viewkeeper.warehouse.store import LocalStore

REMEMBERED = 256


class Tables:
    """File lists by view and version."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._lists: OrderedDict[tuple[str, int, int], tuple[DataFile, ...]] = OrderedDict()
        self._lock = Lock()

    def files(self, view: Definition, version: int) -> tuple[DataFile, ...]:
        """The files of a version."""
        # The folder of a view that was dropped and vacuumed may be that of another one later.
        key = view.folder, view.created, version
        with self._lock:
            known = self._lists.get(key)
        if known is not None:
            return known
        listed = list_files(self._store, view.folder, version)[1]
        with self._lock:
            self._lists[key] = listed
            while len(self._lists) > REMEMBERED:
                self._lists.popitem(last=False)
        return listed
