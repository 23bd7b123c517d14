"""One Delta table: Spark or the driver writes Parquet files, deltalake commits them.

No JVM library of Delta is involved: a reader asks for the list of files of a version and gives it to Spark. Versions of
the table are commits of its own; which of them counts is said by the commit log.
"""

import errno
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from viewkeeper.clock import now
from viewkeeper.errors import DamagedWarehouse, ViewkeeperError, WriterPresent
from viewkeeper.lake.log.columns import STATE, WEIGHT
from viewkeeper.lake.log.store import LocalStore, missing_file, storage_failure
from viewkeeper.lake.tables.delta_log import CHECKPOINT_INTERVAL, files_of, put_old_entries_aside

BASE, DELTA, ROWS = "base-", "delta-", "rows-"
"""How names of data files begin: a compacted base, signed deltas, the rows of a rewritten view."""

CONFIGURATION = {
    # Loading a version reads the log from the last checkpoint on.
    "delta.checkpointInterval": str(CHECKPOINT_INTERVAL),
    # Vacuum cleans the log, by the retention of the warehouse.
    "delta.enableExpiredLogCleanup": "false",
    # It deletes files too, so no checkpoint has to list those that are removed: it would grow with every commit.
    "delta.deletedFileRetentionDuration": "interval 0 seconds",
}


@dataclass(frozen=True)
class DataFile:
    """A file of a table: its name in the table's folder, and what the Delta log says of it."""

    name: str
    size: int
    rows: int
    states: tuple[int, int] | None = None
    """the first and last state in a file of signed rows"""
    weights: tuple[int, int] | None = None
    """the smallest and the largest weight in it"""

    @property
    def is_delta(self) -> bool:
        return self.name.startswith(DELTA)


def list_files(store: LocalStore, folder: str, version: int | None = None) -> tuple[int, tuple[DataFile, ...]]:
    """The version (by default the newest) and its files."""
    known = None if version is None else files_of(store, folder, version)
    if version is not None and known is not None:
        for add in known:
            if ".." in (path := str(add.get("path"))).split("/"):
                store.path(f"{folder}/{path}")  # which says where it leads to
        with suppress(ValueError, TypeError, KeyError, AttributeError):  # deltalake says what is wrong with the log
            return version, tuple(sorted(map(_described, known), key=lambda file: file.name))
    with _explained(store, folder):
        table = DeltaTable(store.delta_path(folder), version=version)
        actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        return table.version(), tuple(sorted(map(_data_file, actions), key=lambda file: file.name))


def _described(add: Mapping[str, Any]) -> DataFile:
    """A file as the log has it; statistics that something else has written are left out."""
    told = json.loads(add["stats"] or "{}")
    low, high = told.get("minValues", {}), told.get("maxValues", {})

    def bounds(column: str) -> tuple[int, int] | None:
        return (low[column], high[column]) if column in low and column in high else None

    return DataFile(add["path"], add["size"], told.get("numRecords", 0), bounds(STATE), bounds(WEIGHT))


def _data_file(action: dict[str, Any]) -> DataFile:
    def bounds(column: str) -> tuple[int, int] | None:
        low, high = action.get(f"min.{column}"), action.get(f"max.{column}")
        return None if low is None or high is None else (low, high)

    return DataFile(action["path"], action["size_bytes"], action["num_records"] or 0, bounds(STATE), bounds(WEIGHT))


def describe_file(store: LocalStore, folder: str, name: str) -> tuple[DataFile, AddAction]:
    """A file that has just been written, and the action that adds it to the table."""
    path = store.path(f"{folder}/{name}")
    try:
        about, metadata = path.stat(), pq.read_metadata(path)
    except FileNotFoundError as error:
        raise missing_file(path) from error
    low, high = _integer_bounds(metadata)
    statistics = {"numRecords": metadata.num_rows, "minValues": low, "maxValues": high, "nullCount": {}}
    file = DataFile(
        name,
        about.st_size,
        metadata.num_rows,
        (low[STATE], high[STATE]) if STATE in low else None,
        (low[WEIGHT], high[WEIGHT]) if WEIGHT in low else None,
    )
    return file, AddAction(name, about.st_size, {}, int(about.st_mtime * 1000), True, json.dumps(statistics))


def _integer_bounds(metadata: Any) -> tuple[dict[str, int], dict[str, int]]:
    """Smallest and largest values of the integer columns. Only these: for other types Delta's rules are subtle, and a
    wrong bound makes readers skip rows."""
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    for index in range(metadata.num_columns):
        column = metadata.schema.column(index)
        if column.physical_type not in ("INT32", "INT64") or column.logical_type.type not in ("NONE", "INT"):
            continue
        chunks = [metadata.row_group(group).column(index).statistics for group in range(metadata.num_row_groups)]
        if chunks and all(chunk is not None and chunk.has_min_max for chunk in chunks):
            low[column.name] = min(chunk.min for chunk in chunks)
            high[column.name] = max(chunk.max for chunk in chunks)
    return low, high


def create_table(store: LocalStore, folder: str, view: str, schema: Any, adds: Sequence[AddAction], commit: int) -> int:
    """A new table with its first files; its version."""
    store.about_to_write(_log_entries(store, folder, 0))
    with _explained(store, folder):
        create_table_with_add_actions(
            store.delta_path(folder),
            Schema.from_arrow(schema),
            list(adds),
            mode="error",
            name=view,
            configuration=CONFIGURATION,
            commit_properties=_properties(commit),
        )
    store.make_durable(_log_entries(store, folder, 0), new_folders=True)
    return 0


class OpenTables:
    """Delta tables as their one writer left them: opening a table costs more than a commit to it."""

    def __init__(self, store: LocalStore) -> None:
        self.store = store
        self._open: dict[str, DeltaTable] = {}

    def at(self, folder: str, version: int) -> DeltaTable:
        """The table at a version, which the caller is about to go beyond; `left` takes it back."""
        table = self._open.pop(folder, None)
        if table is None or table.version() != version:
            table = DeltaTable(self.store.delta_path(folder), version=version)
        return table

    def left(self, folder: str, table: DeltaTable) -> None:
        """Remember the table as it is now."""
        table.update_incremental()
        self._open[folder] = table


def change_table(
    tables: OpenTables,
    folder: str,
    version: int,
    schema: Any,
    adds: Sequence[AddAction],
    removes: Iterable[DataFile],
    commit: int,
) -> int:
    """Add and remove files at once; the new version, which is the one after `version`."""
    store, moment = tables.store, int(now().timestamp() * 1000)
    removed = [RemoveAction(file.name, True, moment, file.size) for file in removes]
    with _explained(store, folder):
        table = tables.at(folder, version)
        table.create_write_transaction([*adds, *removed], "append", schema, commit_properties=_properties(commit))
        tables.left(folder, table)
    entries = _log_entries(store, folder, version + 1)
    store.make_durable(entries, new_folders=False)
    if len(entries) > 1:
        put_old_entries_aside(store, folder, version + 1)
    return version + 1


def restore_table(store: LocalStore, folder: str, version: int, commit: int) -> None:
    """Undo what was done to a table after `version`, by one more version."""
    with _explained(store, folder):
        table = DeltaTable(store.delta_path(folder))
        newest = table.version()
        table.restore(version, commit_properties=_properties(commit))
    store.make_durable(_log_entries(store, folder, newest + 1), new_folders=False)


def newest_version(store: LocalStore, folder: str) -> int | None:
    """The newest version of a table; None if there is no table."""
    try:
        return DeltaTable(store.delta_path(folder)).version()
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise _failure(store, folder, error) from error


def _properties(commit: int) -> CommitProperties:
    # No retries: that the version after ours is taken means that someone else writes to the table.
    return CommitProperties(custom_metadata={"viewkeeper.commit": str(commit)}, max_commit_retries=0)


def _log_entries(store: LocalStore, folder: str, version: int) -> list[str]:
    """The files of a Delta log that a version has made: its own, and a checkpoint now and then."""
    log = f"{folder}/_delta_log"
    entries, checkpoint = [f"{log}/{version:020d}.json"], f"{log}/{version:020d}.checkpoint.parquet"
    if store.exists(checkpoint):
        entries += [checkpoint, f"{log}/_last_checkpoint"]
    return entries


@contextmanager
def _explained(store: LocalStore, folder: str) -> Iterator[None]:
    try:
        yield
    except CommitFailedError as error:
        raise WriterPresent(
            f"the Delta table {store.path(folder)} was changed by something other than viewkeeper",
            "leave writing to viewkeeper: open the warehouse again to undo the change",
        ) from error
    except TableNotFoundError as error:
        raise missing_file(store.path(f"{folder}/_delta_log")) from error
    except (DeltaError, OSError) as error:
        raise _failure(store, folder, error) from error


_OS_ERROR = re.compile(r"\(os error (\d+)\)")
_COLOR = re.compile(r"\x1b\[\d*m|↳")


def _failure(store: LocalStore, folder: str, error: Exception) -> ViewkeeperError:
    # What the operating system said is in the text alone.
    told = _OS_ERROR.search(str(error))
    if told and int(told[1]) != errno.ENOENT:
        return storage_failure(OSError(int(told[1]), os.strerror(int(told[1]))), store.path(folder))
    text = ": ".join(line.strip() for line in _COLOR.sub("", str(error)).splitlines() if line.strip())
    return DamagedWarehouse(
        f"the Delta table {store.path(folder)} cannot be used: {text}",
        "put the file back from a backup, or reload the view",
    )
