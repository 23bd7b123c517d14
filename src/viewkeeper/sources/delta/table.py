"""One Delta table: its newest version, its files at a version, and the changes that a commit makes.

    Δ(v) = rows of files added by v - rows of files removed by v          rows that were only moved cancel

Not the change data feed: the one that delta-rs 1.6.6 writes for an UPDATE lacks a new row if an equal one was there
before among the rows that the update matched. The files are what a reading reads.
"""

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from viewkeeper.errors import PositionLost, SourceError, SourceUnavailable
from viewkeeper.messages import Change
from viewkeeper.sources.delta.commits import (
    LOG,
    Columns,
    Commit,
    check_features,
    check_properties,
    columns_of,
    commit_path,
    file_path,
    read_commit,
)
from viewkeeper.sources.lake.content import Content, DataFile
from viewkeeper.sources.lake.difference import difference
from viewkeeper.sources.lake.workshop import Workshop
from viewkeeper.sources.layout import lost_columns
from viewkeeper.sql.relation import Relation

_PARTITION = "partition."


@dataclass
class State:
    """A table at a version; `apply` takes it to the next."""

    version: int
    columns: Columns
    files: dict[str, DataFile]
    problem: str | None = None

    def apply(self, commit: Commit) -> None:
        """Go on to the version of a commit."""
        self.version = commit.version
        self.columns = commit.columns or self.columns
        self.problem = commit.problem or self.problem
        for path in commit.removes:
            self.files.pop(path, None)
        self.files.update({path: file for path, (file, _) in commit.adds.items()})

    def found(self, relation: Relation) -> Relation:
        """The relation with the columns that the table has at this version."""
        names, types = zip(*self.columns, strict=True)
        return Relation(relation.name, relation.source, names, types, relation.key)

    def content(self, relation: Relation, absent: frozenset[str] = frozenset()) -> Content:
        """The rows in the registered columns; those that are lost, or `absent`, are NULL."""
        lost = frozenset(lost_columns(relation, self.found(relation)))
        return Content(relation, tuple(self.files.values()), lost | absent | frozenset(relation.gone))


class LakeTable:
    """A Delta table on this machine."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self._newest: int | None = None
        self._looking = threading.Lock()

    def newest(self) -> int:
        """The newest version. Versions are contiguous: from a known one on, a look at the next is enough."""
        with self._looking:
            if self._newest is None or not commit_path(self.path, self._newest).exists():
                found = self._open(None).version()
                if self._newest is not None and found < self._newest:
                    raise PositionLost(
                        f"the Delta table {self.path} was recreated", "reload the views over this source"
                    )
                self._newest = found
            while commit_path(self.path, self._newest + 1).exists():
                self._newest += 1
            return self._newest

    def state(self, version: int) -> State:
        """The table at a version, from its log."""
        table = self._open(version)
        try:
            return self._state(table)
        except (DeltaError, OSError, pa.ArrowException) as error:
            raise _unavailable(self.path, error) from error

    def _state(self, table: DeltaTable) -> State:
        protocol, metadata = table.protocol(), table.metadata()
        check_features(self.name, protocol.min_reader_version, protocol.reader_features or [])
        check_properties(self.name, metadata.configuration)
        columns = columns_of(self.name, table.schema().to_json())
        actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        return State(table.version(), columns, {action["path"]: self._file(action) for action in actions})

    def commit(self, state: State) -> Commit:
        """The commit after a state; PositionLost if the log has it no more."""
        version = state.version + 1
        try:
            return read_commit(self.path, version, state.columns)
        except FileNotFoundError as error:
            raise PositionLost(
                f"the log of the Delta table {self.path} no longer has version {version}",
                "reload the views over this source; a longer delta.logRetentionDuration keeps the log",
            ) from error
        except OSError as error:
            raise _unavailable(self.path, error) from error
        except (ValueError, KeyError, TypeError) as error:
            raise SourceUnavailable(
                f"version {version} of the Delta table {self.path} cannot be read: {error}",
                "check the log of the table",
            ) from error

    def timestamp(self, version: int) -> int:
        """When a version was committed, in milliseconds; 0 if the log does not tell any more."""
        try:
            return read_commit(self.path, version, ()).timestamp
        except (OSError, ValueError, KeyError):
            return 0

    def _open(self, version: int | None) -> DeltaTable:
        try:
            return DeltaTable(str(self.path), version=version)
        except (TableNotFoundError, DeltaError, OSError) as error:
            if not (self.path / LOG).is_dir():
                raise SourceUnavailable(f"there is no Delta table {self.path}", "check the path") from error
            if version is None:
                raise _unavailable(self.path, error) from error
            raise PositionLost(
                f"the Delta table {self.path} no longer has version {version}: {_first_line(error)}",
                "reload the views over this source; a longer delta.logRetentionDuration keeps the log",
            ) from error

    def _file(self, action: dict[str, Any]) -> DataFile:
        constants = {
            name.removeprefix(_PARTITION): value for name, value in action.items() if name.startswith(_PARTITION)
        }
        return DataFile(file_path(self.path, action["path"]), action["num_records"], constants)


def commit_changes(
    state: State, commit: Commit, relation: Relation, workshop: Workshop, absent: frozenset[str]
) -> list[Change]:
    """What a commit changes in the relation; the state is still that before it. `absent` columns are NULL."""
    gone = tuple(state.files[path] for path, moved in commit.removes.items() if moved and path in state.files)
    come = tuple(file for file, is_new in commit.adds.values() if is_new)
    return difference(Content(relation, gone, absent), Content(relation, come, absent), workshop)


def _unavailable(path: Path, error: Exception) -> SourceError:
    return SourceUnavailable(f"{path}: {_first_line(error)}", "check the path and the rights of this user")


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
