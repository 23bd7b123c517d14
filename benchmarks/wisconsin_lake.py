"""The relations as Delta tables that somebody else writes: files written by Arrow, one commit for a transaction."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import DeltaTable
from wisconsin_data import JoinedRelations, Relation, Rewriting, whole

LOG = "_delta_log"


class Lake:
    """Two Delta tables, each a source of its own."""

    def __init__(self, relations: JoinedRelations, folder: Path) -> None:
        self.relations, self._folder = relations, folder
        for relation in relations.both:
            path = self.path(relation.name)
            DeltaTable.create(str(path), schema=whole(next(iter(relation.parts.values())).slice(0, 0)).schema)
            self._commit(relation, Rewriting((), list(relation.parts), relation.rows))

    def path(self, relation: str) -> Path:
        return self._folder / relation

    def url(self, relation: str) -> str:
        return f"delta://{self.path(relation)}"

    def apply(self, changes: Mapping[str, Rewriting]) -> int:
        """A transaction in each relation; how many rows they change."""
        for relation in self.relations.both:
            self._commit(relation, changes[relation.name])
        return sum(change.changes for change in changes.values())

    def files(self, relation: Relation) -> list[str]:
        """The files that hold a relation now."""
        return [str(self.path(relation.name) / _name(part)) for part in relation.parts]

    def bytes(self, relation: Relation) -> int:
        return sum(Path(path).stat().st_size for path in self.files(relation))

    def _commit(self, relation: Relation, change: Rewriting) -> None:
        path, now = self.path(relation.name), int(time.time() * 1000)
        actions: list[dict[str, object]] = [{"commitInfo": {"timestamp": now, "operation": "WRITE"}}]
        for part in change.gone:
            actions.append({"remove": {"path": _name(part), "deletionTimestamp": now, "dataChange": True}})
        for part in change.come:
            rows = relation.parts[part]
            pq.write_table(whole(rows), path / _name(part), compression="zstd")
            add = {
                "path": _name(part),
                "partitionValues": {},
                "size": (path / _name(part)).stat().st_size,
                "modificationTime": now,
                "dataChange": True,
                "stats": json.dumps({"numRecords": rows.num_rows}),
            }
            actions.append({"add": add})
        version = sum(1 for _ in (path / LOG).glob("*.json"))
        log = path / LOG / f"{version:020d}.json"
        written = log.with_suffix(".written")
        written.write_text("\n".join(map(json.dumps, actions)) + "\n", encoding="utf-8")
        written.rename(log)


def _name(part: int) -> str:
    return f"part-{part:05d}.parquet"
