"""The files of a version of a Delta table, read from its log without listing it.

    files of version v  =  files of the last checkpoint c <= v   with the entries c + 1 ... v applied

The commit record says which version counts, so nothing has to be searched for: checkpoints come at regular versions,
and entries are named by theirs. Readers that do not know the version list the log, and so does deltalake at every
commit, which takes the longer the more versions there were. So old entries are put aside, into a folder beside the log,
where only this module looks for them.
"""

import json
import logging
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from viewkeeper.errors import StorageFailure
from viewkeeper.lake.log.store import LocalStore

_LOG = logging.getLogger(__name__)

CHECKPOINT_INTERVAL = 10
"""versions"""
IN_THE_LOG = 128
"""versions that stay in the log; older ones are put aside"""
AT_ONCE = 1_000
"""entries that one commit puts aside: a long log that it finds is shortened little by little"""
LOG, OLD_LOG = "_delta_log", "_delta_log_old"


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
    return f"{folder}/{LOG}/{version:020d}.json"


def put_old_entries_aside(store: LocalStore, folder: str, newest: int) -> None:
    """Shorten a log; `newest` is a version that has a checkpoint.

    After a crash in between each file is in one of the two places. A storage failure does not fail the commit that this
    is for: its version is in the log already, and the next checkpoint tries again.
    """
    limit = max(newest - IN_THE_LOG, 0)

    def is_there(version: int) -> bool:
        return store.exists(entry_name(folder, version))

    first = bisect_left(range(limit), True, key=is_there)
    # An entry goes after its checkpoint: as long as it is there the next checkpoint looks at its version again.
    old = [
        name
        for version in range(first, min(limit, first + AT_ONCE))
        for name in (_checkpoint_name(version), f"{version:020d}.json")
        if store.exists(f"{folder}/{LOG}/{name}")
    ]
    with _tried_again_later(folder):
        if old:
            store.move_all(old, f"{folder}/{LOG}", f"{folder}/{OLD_LOG}")


def put_all_aside(store: LocalStore, folder: str) -> None:
    """Make a folder that a view has left no Delta table to other readers: it would open with old rows.

    Those who know its versions from a commit record still read them. A storage failure fails nothing: the next opening
    tries again.
    """
    with _tried_again_later(folder):
        store.move_all(store.names(f"{folder}/{LOG}"), f"{folder}/{LOG}", f"{folder}/{OLD_LOG}")
        store.remove_empty_folders(f"{folder}/{LOG}")


@contextmanager
def _tried_again_later(folder: str) -> Iterator[None]:
    try:
        yield
    except StorageFailure as error:
        _LOG.warning("entries stay in the Delta log of %s for now: %s", folder, error)


def stored_entry(store: LocalStore, folder: str, version: int) -> str:
    """The file of a version, where it is now."""
    old = f"{folder}/{OLD_LOG}/{version:020d}.json"
    return old if store.exists(old) else entry_name(folder, version)


def _checkpoint_name(version: int) -> str:
    return f"{version:020d}.checkpoint.parquet"


def _checkpoint(store: LocalStore, folder: str, version: int) -> int | None:
    """The last version up to this one that has a checkpoint; -1 if the log begins before any, None if it has a gap.

    Usually it is one of the last ten: a writer that was killed may not have written it.
    """
    for candidate in range(version, -1, -1):
        if _is_there(store, folder, _checkpoint_name(candidate)):
            return candidate
        if not _is_there(store, folder, f"{candidate:020d}.json"):
            return None
    return -1


def _is_there(store: LocalStore, folder: str, name: str) -> bool:
    return any(store.exists(f"{folder}/{place}/{name}") for place in (LOG, OLD_LOG))


def _in_checkpoint(store: LocalStore, folder: str, version: int) -> list[Mapping[str, Any]]:
    file = _opened(store, folder, _checkpoint_name(version), pq.ParquetFile)
    column = file.read(columns=["add.path", "add.size", "add.stats"])["add"]
    return [add for add in column.to_pylist() if add is not None and add["path"] is not None]


def _in_entry(store: LocalStore, folder: str, version: int) -> Iterator[Mapping[str, Any]]:
    content: bytes = _opened(store, folder, f"{version:020d}.json", Path.read_bytes)
    if not content.strip():
        raise ValueError("an entry of the log is empty")
    return (json.loads(line) for line in content.splitlines() if line.strip())


def _opened(store: LocalStore, folder: str, name: str, read: Callable[[Path], Any]) -> Any:
    """What is read from a file of the log. A writer may put it aside meanwhile, and never back: the second place is
    looked at after the first."""
    try:
        return read(store.path(f"{folder}/{LOG}/{name}"))
    except FileNotFoundError:
        return read(store.path(f"{folder}/{OLD_LOG}/{name}"))
