"""One commit of a Delta table, as `_delta_log/%020d.json` tells it.

    add, remove     files whose rows are there from this version on, or no longer
    metaData        columns and properties, when they change
    protocol        what a reader must be able to do

An add or remove with dataChange=false only moves rows between files (OPTIMIZE): it is no change.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from viewkeeper.errors import SourceUnfit, ViewkeeperError
from viewkeeper.sources.lake.column_types import arrow_type, known_type, unsupported
from viewkeeper.sources.lake.content import DataFile

LOG = "_delta_log"

Columns = tuple[tuple[str, str], ...]
"""Names with their Spark types."""

# What a reader may have to know and we do; a type of its own is refused with the column that has it.
_KNOWN_FEATURES = {
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantType",
    "variantType-preview",
}
_ADVICE = {
    "deletionVectors": "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false'); "
    "REORG TABLE {t} APPLY (PURGE); ALTER TABLE {t} DROP FEATURE deletionVectors",
    "columnMapping": "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')",
}
_TYPES = {
    "long": "BIGINT",
    "integer": "INT",
    "short": "SMALLINT",
    "byte": "TINYINT",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP_NTZ",
}


@dataclass
class Commit:
    """What one version of a table changed."""

    version: int
    timestamp: int = 0
    adds: dict[str, tuple[DataFile, bool]] = field(default_factory=dict)
    """by the path in the log; with whether rows are new by it"""
    removes: dict[str, bool] = field(default_factory=dict)
    columns: Columns | None = None
    problem: str | None = None
    """why the table cannot be read from here on"""


def commit_path(table: Path, version: int) -> Path:
    """The file of a commit."""
    return table / LOG / f"{version:020d}.json"


def read_commit(table: Path, version: int, columns: Columns) -> Commit:
    """A commit; FileNotFoundError if the log has it no more. `columns` are those of the version before."""
    path = commit_path(table, version)
    actions = [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
    commit = Commit(version, int(path.stat().st_mtime * 1000))
    try:
        for action in actions:
            if metadata := action.get("metaData"):
                check_properties(table.name, metadata.get("configuration") or {})
                commit.columns = columns = columns_of(table.name, metadata["schemaString"])
            if protocol := action.get("protocol"):
                check_features(table.name, protocol.get("minReaderVersion", 1), protocol.get("readerFeatures") or ())
    except ViewkeeperError as error:
        commit.problem = error.detail
    types = dict(columns)
    for action in actions:
        if info := action.get("commitInfo"):
            commit.timestamp = int(info.get("inCommitTimestamp") or info.get("timestamp") or commit.timestamp)
        if add := action.get("add"):
            if add.get("deletionVector"):
                commit.problem = "it has a deletion vector"
            commit.adds[add["path"]] = data_file(table, add, types), bool(add.get("dataChange", True))
        if remove := action.get("remove"):
            commit.removes[remove["path"]] = bool(remove.get("dataChange", True))
    return commit


def data_file(table: Path, action: Mapping[str, Any], types: Mapping[str, str]) -> DataFile:
    """A file that an action names."""
    partition = action.get("partitionValues") or {}
    constants = {name: _partition_value(text, types.get(name, "STRING")) for name, text in partition.items()}
    stats = action.get("stats")
    rows = json.loads(stats).get("numRecords") if stats else None
    return DataFile(file_path(table, action["path"]), rows, constants)


def file_path(table: Path, path: str) -> Path:
    """Where a file is; paths in a log are those of URLs."""
    if path.startswith("file:"):
        return Path(unquote(path.removeprefix("file:").replace("///", "/", 1)))
    if "://" in path:
        raise SourceUnfit(f"{table}: the file {path} is on another system", "copy the table to this machine")
    return table / unquote(path)


def _partition_value(text: str | None, type: str) -> Any:
    if not text:
        return None
    if type in ("STRING", "BINARY"):
        return text if type == "STRING" else text.encode()
    if type in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        # Without a zone it is in UTC.
        moment = pa.scalar(datetime.fromisoformat(text), pa.timestamp("us", tz="UTC"))
        return moment.cast(arrow_type(type)).as_py()
    return pa.scalar(text).cast(arrow_type(type)).as_py()


def columns_of(table: str, schema: str) -> Columns:
    """The columns of a table; UnsupportedType names the one that cannot be kept."""
    columns = []
    for told in json.loads(schema)["fields"]:
        name, type = told["name"], told["type"]
        if not isinstance(type, str):
            raise unsupported(table, name, str(type.get("type", type)))
        columns.append((name, known_type(table, name, _TYPES.get(type, type))))
    return tuple(columns)


def check_features(table: str, reader: int, features: tuple[str, ...] | list[str]) -> None:
    """SourceUnfit for a table whose rows a plain reader would get wrong."""
    unknown = sorted(set(features) - _KNOWN_FEATURES)
    if reader > 3 or unknown:
        advice = [_ADVICE[name].format(t=table) for name in unknown if name in _ADVICE]
        raise SourceUnfit(
            f"the Delta table {table} needs a reader that knows {', '.join(unknown) or f'version {reader}'}",
            "; ".join(advice) or "write it without that feature",
        )


def check_properties(table: str, properties: Mapping[str, str]) -> None:
    """SourceUnfit if the names of columns in the files are not those of the table."""
    if properties.get("delta.columnMapping.mode", "none") != "none":
        raise SourceUnfit(f"the Delta table {table} maps its columns", _ADVICE["columnMapping"].format(t=table))
