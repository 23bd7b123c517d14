"""One Delta table: Spark or the driver writes Parquet files, deltalake commits them.

No JVM library of Delta is involved: a reader asks for the list of files of a version and gives it to Spark. Versions of
the table are commits of its own; which of them counts is said by the commit log.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from viewkeeper.clock import now
from viewkeeper.errors import DamagedWarehouse, StorageFailure, WriterPresent
from viewkeeper.warehouse.columns import STATE, WEIGHT
from viewkeeper.warehouse.store import LocalStore, missing_file

BASE, DELTA, ROWS = "base-", "delta-", "rows-"
"""How names of data files begin: a compacted base, signed deltas, the rows of a rewritten view."""

CONFIGURATION = {
    # Loading a version reads the log from the last checkpoint on.
    "delta.checkpointInterval": "10",
    # Vacuum cleans the log, by the retention of the warehouse.
    "delta.enableExpiredLogCleanup": "false",
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
    with _explained(store, folder):
        table = DeltaTable(store.delta_path(folder), version=version)
        actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        return table.version(), tuple(sorted(map(_data_file, actions), key=lambda file: file.name))


def _data_file(action: dict[str, Any]) -> DataFile:
    def bounds(column: str) -> tuple[int, int] | None:
        low, high = action.get(f"min.{column}"), action.get(f"max.{column}")
        return None if low is None or high is None else (low, high)

    return DataFile(action["path"], action["size_bytes"], action["num_records"], bounds(STATE), bounds(WEIGHT))


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
    _sync_log(store, folder, 0)
    return 0


def change_table(
    store: LocalStore,
    folder: str,
    version: int,
    schema: Any,
    adds: Sequence[AddAction],
    removes: Iterable[DataFile],
    commit: int,
) -> int:
    """Add and remove files at once; the new version, which is the one after `version`."""
    moment = int(now().timestamp() * 1000)
    removed = [RemoveAction(file.name, True, moment, file.size) for file in removes]
    with _explained(store, folder):
        table = DeltaTable(store.delta_path(folder), version=version)
        table.create_write_transaction([*adds, *removed], "append", schema, commit_properties=_properties(commit))
    _sync_log(store, folder, version + 1)
    return version + 1


def restore_table(store: LocalStore, folder: str, version: int, commit: int) -> None:
    """Undo what was done to a table after `version`, by one more version."""
    with _explained(store, folder):
        DeltaTable(store.delta_path(folder)).restore(version, commit_properties=_properties(commit))


def newest_version(store: LocalStore, folder: str) -> int | None:
    """The newest version of a table; None if there is no table."""
    try:
        return DeltaTable(store.delta_path(folder)).version()
    except TableNotFoundError:
        return None
    except DeltaError as error:
        raise _damaged(store, folder, error) from error


def _properties(commit: int) -> CommitProperties:
    # No retries: that the version after ours is taken means that someone else writes to the table.
    return CommitProperties(custom_metadata={"viewkeeper.commit": str(commit)}, max_commit_retries=0)


def _sync_log(store: LocalStore, folder: str, version: int) -> None:
    store.make_durable([f"{folder}/_delta_log/{version:020d}.json"])


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
    except DeltaError as error:
        raise _damaged(store, folder, error) from error
    except OSError as error:
        raise StorageFailure(f"{store.path(folder)}: {error}", "what was committed before is as it was") from error


def _damaged(store: LocalStore, folder: str, error: Exception) -> DamagedWarehouse:
    return DamagedWarehouse(
        f"the Delta table {store.path(folder)} cannot be used: {error}",
        "put the file back from a backup, or reload the view",
    )
