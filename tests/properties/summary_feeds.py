"""Where the facts and dimensions of a random world are: views of the warehouse, or tables of a SQLite source."""

import sqlite3
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from summary_oracle import arrow_rows
from summary_schemas import Bag, Table

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.clock import Random
from viewkeeper.lake.log.columns import WEIGHT
from viewkeeper.messages import position
from viewkeeper.warehouse import Warehouse

SOURCE = "src"


class CommittedTables:
    """Facts and dimensions as views of the warehouse, changed by commits of the test."""

    prefix = ""

    def __init__(self, tables: list[Table], folder: Path, rng: Random) -> None:
        self._tables, self._rng, self._place = {table.name: table for table in tables}, rng, 0

    def begin(self, wh: Warehouse, rows: dict[str, Bag]) -> None:
        with wh.commit() as commit:
            for name, table in self._tables.items():
                commit.create(
                    name,
                    table.columns,
                    rows=MemoryZSet(tuple(table.columns), rows[name].items()),
                    vector={"load": position(0)},
                    properties={"key": list(table.key), "hierarchy": list(table.hierarchy)},
                )

    def change(self, wh: Warehouse, states: list[dict[str, Bag]]) -> None:
        """All states in one commit."""
        with wh.commit() as commit:
            for changes in states:
                self._place += 1
                deltas = {name: self._in_some_form(self._tables[name], bag) for name, bag in changes.items()}
                commit.state("main", {"load": position(self._place)}, deltas)

    def _in_some_form(self, table: Table, bag: Bag) -> Any:
        """A Z-set, or an Arrow table in which a row may be deleted and inserted again."""
        if self._rng.random() < 0.5:
            return MemoryZSet(tuple(table.columns), bag.items())
        weights = [(row, weight) for row, weight in bag.items() if weight]
        again = [(row, sign) for row, _ in weights[:1] for sign in (-1, 1)] if self._rng.random() < 0.5 else []
        rows, counts = zip(*(again + weights), strict=True) if weights else ((), ())
        places = arrow_rows(table, Counter(dict.fromkeys(rows, 1)))
        order = {row: place for place, row in enumerate(dict.fromkeys(rows))}
        taken = places.take(pa.array([order[row] for row in rows], pa.int64()))
        return taken.append_column(WEIGHT, pa.array(counts, pa.int64()))


class SQLiteTables:
    """The same as tables of a SQLite source."""

    prefix = f"{SOURCE}."

    def __init__(self, tables: list[Table], folder: Path, rng: Random) -> None:
        self._tables = {table.name: table for table in tables}
        self._file = folder / "source.db"
        self._connection = sqlite3.connect(self._file, isolation_level=None)

    def begin(self, wh: Warehouse, rows: dict[str, Bag]) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        for table in self._tables.values():
            columns = ", ".join(f"{name} {_sqlite_type(type)}" for name, type in table.columns.items())
            key = f", PRIMARY KEY ({', '.join(table.key)})" if table.key else ""
            self._connection.execute(f"CREATE TABLE {table.name} ({columns}{key})")
            self._write({table.name: rows[table.name]})
        wh.add_source(
            SOURCE,
            f"sqlite:///{self._file}",
            install=True,
            hierarchies={table.name: list(table.hierarchy) for table in self._tables.values() if table.hierarchy},
        )

    def change(self, wh: Warehouse, states: list[dict[str, Bag]]) -> None:
        for changes in states:
            self._connection.execute("BEGIN IMMEDIATE")
            self._write(changes)
            self._connection.execute("COMMIT")
        wh.catch_up()

    def _write(self, changes: dict[str, Bag]) -> None:
        for name, bag in changes.items():
            columns = list(self._tables[name].columns)
            same = " AND ".join(f"{column} IS ?" for column in columns)
            delete = f"DELETE FROM {name} WHERE rowid = (SELECT rowid FROM {name} WHERE {same} LIMIT 1)"
            insert = f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})"
            # Deletions first: a key may come back with another row.
            for row, weight in sorted(bag.items(), key=lambda item: item[1]):
                for _ in range(abs(weight)):
                    self._connection.execute(insert if weight > 0 else delete, [_in_sqlite(value) for value in row])


def _sqlite_type(type: str) -> str:
    return {"INT": "INTEGER", "BIGINT": "BIGINT", "STRING": "TEXT", "DOUBLE": "DOUBLE"}.get(type, type)


def _in_sqlite(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, date) else value
