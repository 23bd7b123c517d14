"""Tables 1 and 2 of the view refreshment paper by counting pages of a row store, as its ADMS did.

    python benchmarks/refreshment_pages.py [--size 10000] [--page 2048]

The structures and their changes are those of the production algorithms (`viewkeeper.storage`), run in memory over the
Wisconsin relations after 10 % insertions. What is modelled is only where their rows lie:

    pages(T)   =  Σ ⌈ rows / ⌊ page / (bytes of a row + slot) ⌋ ⌉     over the widths of its rows; NULLs take no room
    refresh    =  Σ pages(T) + pages(T')    over the structures that are looked up: each is scanned once, and rewritten
               +  Σ pages(ΔR)               twice: the logs of both relations are read, and appended to copies of them

One pass, whatever the number of lookups in it, is how the paper describes all five. Copies are only appended to, and
scanned where partners are looked up in them. A ROWID takes 8 bytes, a slot 4, integers 4, strings 52.

The page size is taken from the paper: its ViewCache spends "more than 95 %" of 2,739, 4,704 and 4,815 pages on reading
both relations, which have 22,000, 37,400 and 37,400 rows after the insertions: 8.2 to 8.5 rows a page. Rows of 212
bytes make that a page of 2 KB.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from math import ceil
from typing import Any

from refreshment_tables import STORAGES, TABLE_1, TABLE_2, side_by_side
from wisconsin_data import JOINED, KEY, KINDS, JoinedRelations, Relation

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation as Table
from viewkeeper.sql.view import View
from viewkeeper.storage.join_tree import Columns
from viewkeeper.storage.self_maintained import operand_changes, refresh, storage_of
from viewkeeper.storage.tables import HeldTables

SIZE, PAGE = 10_000, 2_048
ROWID, SLOT = 8, 4
REST = "unique1"
"""stands for the fifteen columns beside the key and the join attribute: they go where it goes"""
WIDTHS = {KEY: 4, JOINED: 4, REST: 12 * 4 + 3 * 52}
SHARE = 0.1


@dataclass
class ScannedTables(HeldTables[MemoryZSet]):
    """Tables that remember which of them were looked up."""

    held: dict[str, MemoryZSet]
    scanned: set[str] = field(default_factory=set)

    def matching(self, table: str, columns: Columns, keys: MemoryZSet, wanted: Columns | None = None) -> MemoryZSet:
        self.scanned.add(table)
        return super().matching(table, columns, keys, wanted)


def counted(kind: str, storage_name: str, size: int, page: int) -> dict[str, Any]:
    """Pages stored, and pages read and written by one refresh, of a join in one storage."""
    relations = JoinedRelations(kind, size)
    storage = storage_of(_view(relations), storage_name)
    tables = ScannedTables({one.name: MemoryZSet(one.columns) for one in storage.structures})

    def refreshed(changes: Mapping[str, MemoryZSet]) -> dict[str, int]:
        """The pages of each structure afterwards."""
        given = {
            number: changes[leaf.operand.relation.name].rename(leaf.operand.columns).keep(leaf.given)
            for number, leaf in enumerate(storage.tree.leaves)
        }
        tables.scanned.clear()
        made, _ = refresh(storage, tables, operand_changes(storage, tables, given, count()), view=False)
        tables.apply(made)
        return {name: pages(held, page) for name, held in tables.held.items()}

    loaded = {f"s.{relation.name}": _zset(relation, relation.parts) for relation in relations.both}
    stored = refreshed(loaded)
    parts = relations.insert(SHARE)
    inserted = {f"s.{relation.name}": _zset(relation, parts[relation.name].come) for relation in relations.both}
    after = refreshed(inserted)
    logs = sum(pages(rows, page) for rows in inserted.values())
    copies = {name for name in after if name.startswith("copy ")}
    read = {name: stored[name] for name in tables.scanned} | {"logs": logs}
    written = {name: after[name] for name in tables.scanned - copies} | ({"copies": logs} if copies else {})
    return {
        "overhead": round(sum(stored.values()) / sum(pages(rows, page) for rows in loaded.values()), 2),
        "pages": sum(read.values()) + sum(written.values()),
        "stored": stored,
        "read": read,
        "written": written,
    }


def pages(rows: MemoryZSet, page: int) -> int:
    """How many pages they take."""
    widths = Counter(
        row_width(column for column, value in zip(rows.columns, row, strict=True) if value is not None)
        for row, _ in rows.weights()
    )
    return sum(ceil(number / max(1, page // (width + SLOT))) for width, number in widths.items())


def row_width(columns: Iterable[str]) -> int:
    """The bytes of a row: a ROWID for each row that it points to, and otherwise its columns."""
    sides: dict[str, set[str]] = {}
    for column in columns:
        alias, _, name = column.rpartition(".")
        sides.setdefault(alias, set()).add(name)
    return sum(
        sum(WIDTHS[name] for name in names) if REST in names else sum(WIDTHS[name] for name in names - {KEY}) + ROWID
        for names in sides.values()
    )


def measured(size: int, page: int) -> dict[str, Any]:
    """Both tables, beside the paper's."""
    found = {kind: {storage: counted(kind, storage, size, page) for storage in STORAGES} for kind in KINDS}
    return {
        "page": page,
        "rows of R": size,
        "table 1: pages stored / pages of both relations": _beside(TABLE_1, found, "overhead"),
        "table 2: pages of a refresh after 10 % insertions": _beside(TABLE_2, found, "pages"),
        "structures": found,
    }


def _beside(paper: Mapping[str, Mapping[str, float]], found: Mapping[str, Any], figure: str) -> dict[str, Any]:
    return {
        kind: side_by_side(paper[kind], {storage: one[figure] for storage, one in storages.items()})
        for kind, storages in found.items()
    }


def _view(relations: JoinedRelations) -> View:
    left, right = (f"s.{relation.name}" for relation in relations.both)
    columns = tuple(WIDTHS)
    tables = {name: Table(name, "s", columns, ("INT",) * len(columns), (KEY,)) for name in (left, right)}
    shown = ", ".join(f"{alias}.{column} AS {alias}_{column}" for alias in ("x", "y") for column in columns)
    view = parse_definition(
        f"CREATE MATERIALIZED VIEW v AS SELECT {shown} FROM {left} x JOIN {right} y ON x.{JOINED} = y.{JOINED}", tables
    )
    assert isinstance(view, View)
    return view


def _zset(relation: Relation, parts: Iterable[int]) -> MemoryZSet:
    return MemoryZSet.of(tuple(WIDTHS), *(row for part in parts for row in _rows_of(relation, part)))


def _rows_of(relation: Relation, part: int) -> Iterator[tuple[int, ...]]:
    return zip(*(relation.parts[part][column].to_pylist() for column in WIDTHS), strict=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--size", type=int, default=SIZE)
    options.add_argument("--page", type=int, default=PAGE)
    given = options.parse_args()
    print(json.dumps(measured(given.size, given.page), indent=2))


if __name__ == "__main__":
    main()
