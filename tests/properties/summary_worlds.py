"""A random life of summary tables beside recomputation: after every step each of them is what its SQL gives.

    python tests/properties/summary_worlds.py --seed 7             one life, told step by step
    python tests/properties/summary_worlds.py --seed 7 --sqlite    over a SQLite source

Facts and dimensions are views of the warehouse that the test commits to, or tables of a SQLite source. Everything comes
from one seed.
"""

import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from summary_definitions import Definition, Definitions
from summary_oracle import Oracle, arrow_rows, differences
from summary_schemas import Bag, Model, Row, Table, random_schema

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.clock import Random, seeded
from viewkeeper.messages import position
from viewkeeper.warehouse.catalog import Definition as Stored
from viewkeeper.warehouse.catalog import families
from viewkeeper.warehouse.columns import WEIGHT
from viewkeeper.warehouse.summaries.contents import read_rows
from viewkeeper.warehouse.summaries.keeping import Summaries
from viewkeeper.warehouse.warehouse import Warehouse

SOURCE = "src"
SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {},
    {"refresh": "manual"},
    {"refresh": "manual", "group": "late"},
    {"consistency": "complete"},
)
"""the properties of summaries; those with the same ones are a lattice"""


def no_spark() -> Any:
    raise AssertionError("this life is to be lived on the driver, and Spark was asked for")


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


class World:
    """A warehouse with summaries, the rows that they are about, and what has happened to them."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        *,
        sqlite: bool = False,
        spark: Callable[[], Any] = no_spark,
        in_spark: bool = False,
        settings: tuple[dict[str, str], ...] = SETTINGS,
    ) -> None:
        self.rng = rng = seeded(seed)
        self.folder, self._spark = folder, spark
        self.schema = random_schema(rng, odd=not sqlite and rng.random() < 0.2)
        self.model = Model(self.schema, rng, rng.choice([0, 3, 12, 30]))
        self.definitions = Definitions(self.schema, rng, in_spark=in_spark)
        self.settings = rng.sample(settings, rng.choice([1, 1, 2, len(settings)]))
        self.views: dict[str, Definition] = {}
        self.shows: dict[str, dict[str, Bag]] = {}
        """the rows that each summary is to reflect"""
        self.story: list[str] = [f"{table}" for table in self.schema.tables.values()]
        self.oracle = Oracle()
        tables = list(self.schema.tables.values())
        self.feed = (SQLiteTables if sqlite else CommittedTables)(tables, folder, rng)
        self.warehouse = self._open()
        self.feed.begin(self.warehouse, self.model.rows)

    def _open(self) -> Warehouse:
        return Warehouse.open(self.folder / "lake", self._spark, compaction=None)

    def close(self) -> None:
        self.warehouse.close()
        self.oracle.close()

    @property
    def summaries(self) -> Summaries:
        return self.warehouse._keeper.summaries

    # --- a life ---

    def live(self, steps: int) -> None:
        for _ in range(self.rng.randint(1, 4)):
            self.create()
        for _ in range(steps):
            choices: list[Callable[[], None]] = [*[self.change] * 8, self.create, self.reopen]
            choices += [self.drop] if len(self.views) > 2 else []
            choices += [self.propagate, self.refresh, self.refresh] if self._deferred() else []
            self.rng.choice(choices)()
        if self._deferred():
            self.refresh()

    def create(self) -> None:
        if len(self.views) >= 6:
            return
        definition = self.definitions.make(f"v{len(self.story)}", dict(self.rng.choice(self.settings)))
        self.story.append(definition.statement(self.feed.prefix))
        self.warehouse.create_view(definition.statement(self.feed.prefix))
        self.views[definition.name] = definition
        # A lattice that is deferred is refreshed before it grows.
        self._reflects(self.summaries.lattice_of(definition.name).name)
        self.check()

    def change(self) -> None:
        states = [self.model.change() for _ in range(self.rng.choice([1, 1, 1, 2, 3]))]
        self.story.append(f"commit {states}")
        self.feed.change(self.warehouse, states)
        for name, lattice in self.summaries.lattices().items():
            if not lattice.deferred:
                self._reflects(name)
        self.check()

    def drop(self) -> None:
        name = self.rng.choice(list(self.views))
        self.story.append(f"drop {name}")
        self.warehouse.drop_view(name)
        del self.views[name], self.shows[name]
        self.check()

    def reopen(self) -> None:
        self.story.append("reopen")
        self.warehouse.close()
        self.warehouse = self._open()
        self.check()

    def propagate(self) -> None:
        self.story.append("propagate")
        self.warehouse.propagate()
        self.check()

    def refresh(self) -> None:
        name = self.rng.choice(self._deferred())
        self.story.append(f"refresh {name}")
        self.warehouse.refresh(name)
        self._reflects(self.summaries.lattice_of(name).name)
        self.check()

    def _deferred(self) -> list[str]:
        return [name for name in self.views if self.summaries.lattice_of(name).deferred]

    def _reflects(self, lattice: str) -> None:
        """All summaries of a lattice are now what the rows as they are give."""
        now = self.model.copy()
        for name in self.views:
            if self.summaries.lattice_of(name).name == lattice:
                self.shows[name] = now

    # --- comparing ---

    def check(self) -> None:
        """Compare every summary with recomputation, without a job of Spark."""
        halted = self.summaries._halts.all()
        assert not halted, f"{halted}"
        for name, definition in self.views.items():
            expected = self.oracle.recomputed(definition, self.schema.tables.values(), self.shows[name])
            wrong = differences(expected, self.shown(name), definition.rounded)
            assert wrong is None, f"{name}: {wrong}"

    def shown(self, name: str) -> list[Row]:
        return self.oracle.shown(*stored_tables(self.warehouse, name))

    def told(self) -> str:
        return "\n".join(self.story)


def stored_tables(wh: Warehouse, name: str) -> list[tuple[Stored, pa.Table]]:
    """The table of a summary, or those of a family, as the files of the last commit have them."""
    writer = wh._writer
    assert writer is not None
    catalog, record = writer.catalog, writer.last
    members = families(catalog).get(name) or (catalog[name],)
    return [(view, read_rows(wh._files, view, record)) for view in members]


def shown_rows(wh: Warehouse, name: str) -> list[Row]:
    """What readers see of a summary, sorted, without a job of Spark."""
    oracle = Oracle()
    try:
        return sorted(oracle.shown(*stored_tables(wh, name)), key=lambda row: [(v is not None, v) for v in row])
    finally:
        oracle.close()


@contextmanager
def world(folder: Path, seed: int, command: str = "", **options: Any) -> Iterator[World]:
    """A world; what goes wrong in it says how to repeat it, and what had happened."""
    made = World(folder, seed, **options)
    try:
        yield made
    except Exception as error:
        again = f"python tests/properties/summary_worlds.py --seed {seed}{command}"
        error.add_note(f"{made.told()}\n\nto repeat it: {again}")
        raise
    finally:
        made.close()


def main(arguments: list[str]) -> None:
    seed = int(arguments[arguments.index("--seed") + 1])
    folder = Path(tempfile.mkdtemp())
    try:
        with world(folder, seed, sqlite="--sqlite" in arguments) as made:
            made.live(12)
            print(made.told())
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
