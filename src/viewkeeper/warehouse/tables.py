"""The files of each version of each table, remembered: a version never changes."""

from collections import OrderedDict
from threading import Lock

from viewkeeper.warehouse.delta_table import DataFile, list_files
from viewkeeper.warehouse.store import LocalStore

REMEMBERED = 256


class Tables:
    """File lists by folder and version."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._lists: OrderedDict[tuple[str, int], tuple[DataFile, ...]] = OrderedDict()
        self._lock = Lock()

    def files(self, folder: str, version: int) -> tuple[DataFile, ...]:
        """The files of a version."""
        with self._lock:
            known = self._lists.get((folder, version))
        return (
            known if known is not None else self._remember(folder, version, list_files(self._store, folder, version)[1])
        )

    def _remember(self, folder: str, version: int, files: tuple[DataFile, ...]) -> tuple[DataFile, ...]:
        with self._lock:
            self._lists[folder, version] = files
            while len(self._lists) > REMEMBERED:
                self._lists.popitem(last=False)
        return files
