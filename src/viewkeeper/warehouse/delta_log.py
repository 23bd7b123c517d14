"""The files of a version of a Delta table, read from its log without listing it.

    files of version v  =  files of the last checkpoint c <= v   with the entries c + 1 ... v applied

The commit record says which version counts, so nothing has to be searched for: checkpoints come at regular versions,
and entries are named by theirs. Readers that do not know the version list the log, which takes the longer the more
versions there were.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from viewkeeper.warehouse.store import LocalStore

CHECKPOINT_INTERVAL = 10
"""versions"""


def files_of(store: LocalStore, folder: str, version: int) -> list[Mapping[str, Any]] | None:
    """The `add` actions of the files of a version; None if the log is not as this writer leaves it."""
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
    return f"{folder}/_delta_log/{version:020d}.json"


def _checkpoint(store: LocalStore, folder: str, version: int) -> int | None:
    """The last version up to this one that has a checkpoint; -1 if the log begins with it, None if there is none."""
    oldest = max(version - 2 * CHECKPOINT_INTERVAL, 0)
    for candidate in range(version, oldest - 1, -1):
        if store.exists(f"{folder}/_delta_log/{candidate:020d}.checkpoint.parquet"):
            return candidate
    return -1 if oldest == 0 else None


def _in_checkpoint(store: LocalStore, folder: str, version: int) -> list[Mapping[str, Any]]:
    path = store.path(f"{folder}/_delta_log/{version:020d}.checkpoint.parquet")
    column = pq.ParquetFile(path).read(columns=["add.path", "add.size", "add.stats"])["add"]
    return [add for add in column.to_pylist() if add is not None and add["path"] is not None]


def _in_entry(store: LocalStore, folder: str, version: int) -> Iterator[Mapping[str, Any]]:
    content = store.path(entry_name(folder, version)).read_bytes()
    if not content.strip():
        raise ValueError("an entry of the log is empty")
    return (json.loads(line) for line in content.splitlines() if line.strip())
