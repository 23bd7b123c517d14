"""What is in a warehouse, read without viewkeeper: JSON files, the logs of Delta tables, rows through Arrow."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

HOME = "_viewkeeper"
LOCK = f"{HOME}/writer.lock"
NOTES = {LOCK, f"{HOME}/checkpoint.json", f"{HOME}/closed.json", f"{HOME}/intents.log"}
"""what each writer leaves of itself"""
LOGS = ("_delta_log", "_delta_log_old")
"""the entries of a Delta log, and those that were put aside"""

Row = tuple[Any, ...]
Bag = Counter[Row]


class Stored:
    """A warehouse as it is on disk now; make another one after a change."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """The commit records, oldest first."""
        return [json.loads(path.read_bytes()) for path in sorted((self.root / HOME / "commits").glob("[0-9]*.json"))]

    @property
    def last(self) -> dict[str, Any]:
        return self.records[-1]

    @cache  # noqa: B019  # lives as long as a check
    def catalog(self, commit: int) -> dict[str, dict[str, Any]]:
        """The definitions of the views, as a commit has changed them."""
        body = json.loads((self.root / HOME / f"catalog/{commit:020d}.json").read_bytes())
        return dict(body["views"])

    @property
    def views(self) -> dict[str, dict[str, Any]]:
        """The definitions of the views that there are."""
        return self.catalog(self.last["catalog"])

    def data_files(self, folder: str, version: int) -> Sequence[str]:
        """The data files of a version of a table, by name in its folder."""
        listed = self._versions(folder)
        if listed is not None:
            return listed[version]
        return pa.table(DeltaTable(str(self.root / folder), version=version).get_add_actions())["path"].to_pylist()

    @cache  # noqa: B019
    def _versions(self, folder: str) -> list[list[str]] | None:
        """The data files of every version, from the log alone; None if its beginning is gone."""
        listed: list[list[str]] = []
        files: set[str] = set()
        entries = [path for log in LOGS for path in (self.root / folder / log).glob("[0-9]*.json")]
        for version, path in enumerate(sorted(entries, key=lambda path: path.name)):
            if path.name != f"{version:020d}.json":
                return None
            for line in path.read_text().splitlines():
                action = json.loads(line)
                if "add" in action:
                    files.add(action["add"]["path"])
                if "remove" in action:
                    files.discard(action["remove"]["path"])
            listed.append(sorted(files))
        return listed

    # --- rows ---

    def states(self, view: str) -> dict[int, Bag]:
        """The rows of a view at every state that the last record says can be read."""
        found: dict[int, Bag] = {}
        definition, table = self.views[view], self.last["tables"][view]
        for record in self.records:
            if record["commit"] < max(table["kept"], definition["created"]):
                continue
            first, newest = record["groups"][definition["group"]]["states"]
            for state in range(min(first, newest), newest + 1):
                if state >= table["oldest"] and state not in found:
                    found[state] = self.rows(self.catalog(record["catalog"])[view], record["tables"][view], state)
        return found

    def rows(self, definition: Mapping[str, Any], table: Mapping[str, Any], state: int) -> Bag:
        """The rows of a view at a state, from the table as a record has it."""
        folder, names = definition["folder"], [name for name, _ in definition["columns"]]
        total: Bag = Counter()
        for name in self.data_files(folder, table["version"]):
            for row in _rows(self.root / folder / name):
                # A base holds one state, whatever number its rows carry.
                if row.get("_vk_state", 0) <= state or name.startswith("base-"):
                    total[tuple(row[column] for column in names)] += row.get("_vk_weight", 1)
        if table.get("changes"):
            for row in _rows(self.root / HOME / table["changes"]):
                if row["_vk_state"] > state:
                    total[tuple(row[column] for column in names)] -= row["_vk_weight"]
        return Counter({row: count for row, count in total.items() if count})

    # --- files ---

    @cached_property
    def files(self) -> set[str]:
        """Every file, by its name below the root."""
        return {path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if not path.is_dir()}

    @property
    def empty_folders(self) -> set[str]:
        empty = {path for path in self.root.rglob("*") if path.is_dir() and not any(path.iterdir())}
        return {path.relative_to(self.root).as_posix() for path in empty} - {f"{HOME}/pins", f"{HOME}/staging"}

    def needed_files(self, first: Mapping[str, int] | None = None) -> set[str]:
        """The files that the records need; of a view that `first` names, only those of that commit and later ones."""
        needed = {f"{HOME}/format.json", *(NOTES & self.files)}
        logs: set[str] = set()
        for record in self.records:
            needed.add(f"{HOME}/commits/{record['commit']:020d}.json")
            needed.add(f"{HOME}/catalog/{record['catalog']:020d}.json")
            for view, definition in self.catalog(record["catalog"]).items():
                if record["commit"] < (first or {}).get(view, 0):
                    continue
                folder, table = definition["folder"], record["tables"][view]
                needed |= {f"{folder}/{name}" for name in self.data_files(folder, table["version"])}
                needed |= {f"{HOME}/{table['changes']}"} if table.get("changes") else set()
                logs |= {f"{folder}/{log}" for log in LOGS}
        return needed | {name for name in self.files if name.rpartition("/")[0] in logs and _is_of_a_log(name)}

    def leftovers(self, first: Mapping[str, int] | None = None) -> set[str]:
        """Files that nobody needs, and folders with nothing in them."""
        return (self.files - self.needed_files(first)) | self.empty_folders


def _rows(path: Path) -> list[dict[str, Any]]:
    about = path.stat()
    return _rows_of(path, path.name, about.st_size, about.st_mtime_ns)


_READ: dict[tuple[str, int, int], list[dict[str, Any]]] = {}


def _rows_of(path: Path, *same: Any) -> list[dict[str, Any]]:
    # Copies of a warehouse have the same files.
    if same not in _READ:
        _READ[same] = pq.ParquetFile(path).read().to_pylist()
    return _READ[same]


def _is_of_a_log(name: str) -> bool:
    last = name.rpartition("/")[2]
    number, _, kind = last.partition(".")
    return last == "_last_checkpoint" or (
        len(number) == 20 and number.isdigit() and kind in ("json", "checkpoint.parquet")
    )


def checksums(root: Path) -> dict[str, str]:
    """What every file holds, and every folder; what each writer leaves of itself aside."""
    return {
        path.relative_to(root).as_posix(): sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in root.rglob("*")
        if path.relative_to(root).as_posix() not in NOTES
    }
