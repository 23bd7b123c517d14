"""A commit record: everything that one commit made true, in one JSON file.

    record N = { tables: view -> version of its Delta table,   groups: group -> vector, states that it added }

A record is complete: whoever has it needs no other to read the last state of every view. `crc` covers the rest of the
file. Each table's entry also says what this commit did to it: files added, how the number of rows grew state by state.
"""

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from viewkeeper.messages import Vector

FORMAT = 1
REFRESHES = "refreshes"
"""in the metrics: by group, how many transactions became states, with how many queries, in how many seconds"""


@dataclass(frozen=True)
class Pending:
    """Signed deltas that wait for compaction."""

    files: int = 0
    rows: int = 0

    def plus(self, files: int, rows: int) -> "Pending":
        return Pending(self.files + files, self.rows + rows)


@dataclass(frozen=True)
class TableState:
    """One view in one commit."""

    version: int
    """of its Delta table"""
    base: int
    """the state that its base holds; deltas of later states are appended to it"""
    oldest: int
    """the oldest state that can still be read"""
    kept: int
    """the oldest commit whose files are still there"""
    rows: int
    """in the last state, duplicates counted"""
    pending: Pending = Pending()
    hashed: bool = False
    """whether every row of the base has a hash of its own"""
    added: tuple[str, ...] = ()
    """files that this commit added"""
    growth: tuple[tuple[int, int], ...] = ()
    """(state, rows more or fewer), for the states of this commit that changed the number of rows"""
    changes: str | None = None
    """the file of this commit's signed rows, for a view that is rewritten in place"""
    log: str | None = None
    """the CRC-32 of the entry that this commit added to the log of the Delta table"""

    def untouched(self) -> "TableState":
        """The same table in a later commit that does nothing to it."""
        return replace(self, added=(), growth=(), changes=None, log=None)


@dataclass(frozen=True)
class GroupState:
    """One group in one commit: where its sources are, and the states that the commit added."""

    vector: Vector
    last: int
    steps: tuple[Mapping[str, str], ...] = ()
    """for each state that the commit added, the positions that moved"""
    before: Vector = field(default_factory=dict)
    """the vector before the first of them"""
    resume: Mapping[str, Any] = field(default_factory=dict)
    """what sources need to go on from here, beside their positions"""
    time: str = ""
    """when its last state was committed"""

    @property
    def first(self) -> int:
        """The first state that the commit added; behind `last` if it added none."""
        return self.last - len(self.steps) + 1

    def vectors(self) -> Iterator[tuple[int, Vector]]:
        """The states that the commit added, with the vector of each."""
        vector = dict(self.before)
        for state, step in enumerate(self.steps, self.first):
            vector = {**vector, **step}
            yield state, vector

    def untouched(self) -> "GroupState":
        """The same group in a later commit that adds no state to it."""
        return GroupState(self.vector, self.last, resume=self.resume, time=self.time)


@dataclass(frozen=True)
class Record:
    """Commit number `commit`; `catalog` is the commit that last changed the definitions of the views."""

    commit: int
    time: str
    writer: str
    catalog: int
    tables: Mapping[str, TableState] = field(default_factory=dict)
    groups: Mapping[str, GroupState] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)


def encode(record: Record) -> bytes:
    """The file of a record."""
    body = {
        "format": FORMAT,
        "commit": record.commit,
        "time": record.time,
        "writer": record.writer,
        "catalog": record.catalog,
        "tables": {name: _table_fields(table) for name, table in record.tables.items()},
        "groups": {
            name: {
                "vector": dict(group.vector),
                "states": [group.first, group.last],
                "resume": dict(group.resume),
                "time": group.time,
                **({"before": dict(group.before), "steps": list(map(dict, group.steps))} if group.steps else {}),
            }
            for name, group in record.groups.items()
        },
        "metrics": dict(record.metrics),
    }
    return seal(body)


def _table_fields(table: TableState) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "version": table.version,
        "base": table.base,
        "oldest": table.oldest,
        "kept": table.kept,
        "rows": table.rows,
        "pending": [table.pending.files, table.pending.rows],
        "hashed": table.hashed,
    }
    if table.added:
        fields["added"] = list(table.added)
    if table.growth:
        fields["growth"] = [list(step) for step in table.growth]
    if table.changes:
        fields["changes"] = table.changes
    if table.log:
        fields["log"] = table.log
    return fields


def decode(content: bytes) -> Record:
    """The record of a file; ValueError if it is not what was written."""
    body = unseal(content)
    try:
        return Record(
            commit=body["commit"],
            time=body["time"],
            writer=body["writer"],
            catalog=body["catalog"],
            tables={
                name: TableState(
                    version=table["version"],
                    base=table["base"],
                    oldest=table["oldest"],
                    kept=table["kept"],
                    rows=table["rows"],
                    pending=Pending(*table["pending"]),
                    hashed=table["hashed"],
                    added=tuple(table.get("added", ())),
                    growth=tuple((state, rows) for state, rows in table.get("growth", ())),
                    changes=table.get("changes"),
                    log=table.get("log"),
                )
                for name, table in body["tables"].items()
            },
            groups={
                name: GroupState(
                    group["vector"],
                    group["states"][1],
                    tuple(group.get("steps", ())),
                    group.get("before", {}),
                    group["resume"],
                    group["time"],
                )
                for name, group in body["groups"].items()
            },
            metrics=body["metrics"],
        )
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"it has no usable {error}") from error


def seal(body: dict[str, Any]) -> bytes:
    """JSON with its own checksum in it."""
    return json.dumps({**body, "crc": _crc(body)}, ensure_ascii=False, separators=(",", ":")).encode()


def unseal(content: bytes) -> dict[str, Any]:
    """The JSON of a sealed file; ValueError if the checksum does not fit."""
    try:
        body = json.loads(content)
    except ValueError as error:
        raise ValueError("it is not JSON") from error
    if not isinstance(body, dict) or body.pop("crc", None) != _crc(body):
        raise ValueError("its checksum does not fit its content")
    return body


def _crc(body: Mapping[str, Any]) -> str:
    canonical = json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return f"{zlib.crc32(canonical.encode()):08x}"
