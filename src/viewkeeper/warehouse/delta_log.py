"""The files of a version of a Delta table, read from its log without listing it.

    files of version v  =  files of the last checkpoint c <= v   with the entries c + 1 ... v applied

The commit record says which version counts, so nothing has to be searched for: checkpoints come at regular versions,
and entries are named by theirs. Readers that do not know the version list the log, and so does deltalake at every
commit, which takes the longer the more versions there were. So old entries are put aside, into a folder beside the log,
where only this module looks for them.
"""

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from viewkeeper.warehouse.store import LocalStore

CHECKPOINT_INTERVAL = 10
"""versions"""
IN_THE_LOG = 128
"""versions that stay in the log; older ones are put aside"""
AT_ONCE = 1_000
"""entries that one commit puts aside: a long log that it finds is shortened little by little"""
LOG, OLD_LOG = "_delta_log", "_delta_log_old"


def files_of(store: LocalStore, folder: str, version: int) -> list[Mapping[str, Any]] | None:
    """The `add` actions of the files of a version; None if the log is not as this writer leaves it."""
    # An entry may be put aside between looking for it and reading it: then it is there the second time.
    found = _files_of(store, folder, version)
    return _files_of(store, folder, version) if found is None else found


def _files_of(store: LocalStore, folder: str, version: int) -> list[Mapping[str, Any]] | None:
    start = _checkpoint(store, folder, version)
    if start is None:
        return None
    try:
        files = {} if start < 0 else {add["path"]: add for add in _in_checkpoint(store, folder, start)}
        for entry in range(start + 1, version + 1):
            for action in _in_entry(store, folder, entry):
                if "add" in action:
                    files[action["add"]["path"]] = action["add"]
                elif "remove" in action:
                    files.pop(action["remove"]["path"], None)
    except (OSError, ValueError, TypeError, KeyError, pa.ArrowException):
        return None
    return list(files.values())


def entry_name(folder: str, version: int) -> str:
    """The file of a version in the log of a table."""
    return f"{folder}/{LOG}/{version:020d}.json"


def put_old_entries_aside(store: LocalStore, folder: str, newest: int) -> None:
    """Shorten a log; `newest` is a version that has a checkpoint. Of a crash in between nothing is seen."""
    limit = max(newest - IN_THE_LOG, 0)

    def is_there(version: int) -> bool:
        return store.exists(entry_name(folder, version))

    first = bisect_left(range(limit), True, key=is_there)
    for version in range(first, min(limit, first + AT_ONCE)):
        # The entry goes last: as long as it is there the next commit looks at its version again.
        for name in (f"{version:020d}.checkpoint.parquet", f"{version:020d}.json"):
            if store.exists(f"{folder}/{LOG}/{name}"):
                store.put_aside(f"{folder}/{LOG}/{name}", f"{folder}/{OLD_LOG}/{name}")


def put_all_aside(store: LocalStore, folder: str) -> None:
    """Make a folder that a view has left no Delta table to anybody else: it would open with old rows.

    Those who know its versions from a commit record still read them.
    """
    for name in store.names(f"{folder}/{LOG}"):
        store.put_aside(f"{folder}/{LOG}/{name}", f"{folder}/{OLD_LOG}/{name}")
    store.remove_empty_folders(f"{folder}/{LOG}")


def stored_entry(store: LocalStore, folder: str, version: int) -> str:
    """The same, where it is now."""
    return _place(store, folder, f"{version:020d}.json") or entry_name(folder, version)


def _place(store: LocalStore, folder: str, name: str) -> str | None:
    """Where a file of the log is."""
    there = (f"{folder}/{place}/{name}" for place in (LOG, OLD_LOG))
    return next((path for path in there if store.exists(path)), None)


def _checkpoint(store: LocalStore, folder: str, version: int) -> int | None:
    """The last version up to this one that has a checkpoint; -1 if the log begins with it, None if there is none."""
    oldest = max(version - 2 * CHECKPOINT_INTERVAL, 0)
    for candidate in range(version, oldest - 1, -1):
        if _place(store, folder, f"{candidate:020d}.checkpoint.parquet") is not None:
            return candidate
    return -1 if oldest == 0 else None


def _in_checkpoint(store: LocalStore, folder: str, version: int) -> list[Mapping[str, Any]]:
    path = _place(store, folder, f"{version:020d}.checkpoint.parquet")
    if path is None:
        raise ValueError("a checkpoint of the log is gone")
    column = pq.ParquetFile(store.path(path)).read(columns=["add.path", "add.size", "add.stats"])["add"]
    return [add for add in column.to_pylist() if add is not None and add["path"] is not None]


def _in_entry(store: LocalStore, folder: str, version: int) -> Iterator[Mapping[str, Any]]:
    path = _place(store, folder, f"{version:020d}.json")
    content = b"" if path is None else store.path(path).read_bytes()
    if not content.strip():
        raise ValueError("an entry of the log is gone or empty")
    return (json.loads(line) for line in content.splitlines() if line.strip())
