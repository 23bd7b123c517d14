"""A random life of summary tables beside recomputation: after every step each of them is what its SQL gives.

    python tests/properties/summary_worlds.py 7                      one life, told step by step
    python tests/properties/summary_worlds.py 7 --sqlite             over a SQLite source
    python tests/properties/summary_worlds.py 7 --engine spark       with jobs of Spark

Everything comes from one seed.
"""

from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from summary_definitions import Definition, Definitions
from summary_engines import ENGINES, no_spark, on_driver, session_of
from summary_engines import engine as kept_with
from summary_feeds import CommittedTables, SQLiteTables
from summary_oracle import Oracle, differences
from summary_schemas import Bag, Model, Row, random_schema

from viewkeeper.clock import seeded
from viewkeeper.lake.log.catalog import Definition as Stored
from viewkeeper.lake.log.catalog import families
from viewkeeper.lake.tables.spark_session import local_session
from viewkeeper.maintenance.contents import read_rows
from viewkeeper.maintenance.summaries.lattices import Summaries
from viewkeeper.warehouse import Warehouse

STEPS = 12
"""of one life"""
SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {},
    {"refresh": "manual"},
    {"refresh": "manual", "group": "late"},
    {"consistency": "complete"},
)
"""the properties of summaries; those with the same ones are a lattice"""
STORED: tuple[dict[str, str], ...] = (
    {"core": "stored", "group": "stored"},
    {"core": "stored", "group": "late and stored", "refresh": "manual"},
)
"""with facts that are read at a source, and stored"""
RECOMPUTED: tuple[dict[str, str], ...] = tuple({**one, "minmax": "recompute"} for one in STORED)
"""deleted extremes are recomputed from the core"""


def possible_settings(engine: str, sqlite: bool) -> tuple[dict[str, str], ...]:
    if engine == "recompute":
        return RECOMPUTED
    return SETTINGS + (STORED if sqlite else ()) + (() if on_driver(engine) else RECOMPUTED)


class World:
    """A warehouse with summaries, the rows that they are about, and what has happened to them."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        *,
        sqlite: bool = False,
        engine: str = "driver",
        spark: Callable[[], Any] = no_spark,
    ) -> None:
        self.rng = rng = seeded(seed)
        self.folder, self._spark = folder, session_of(engine, spark)
        self.schema = random_schema(rng, odd=not sqlite and rng.random() < 0.2)
        self.model = Model(self.schema, rng, rng.choice([0, 15, 30, 40]))
        self.definitions = Definitions(self.schema, rng, in_spark=not on_driver(engine))
        possible = possible_settings(engine, sqlite)
        self.settings = rng.sample(possible, rng.choice([1, 1, 2, len(possible)]))
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

    def reopen(self, spark: Callable[[], Any] | None = None) -> None:
        """Close the warehouse and open it again, perhaps with a session from now on."""
        self.story.append("reopen")
        self.warehouse.close()
        self._spark = spark or self._spark
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

    def check_in_spark(self) -> None:
        """Compare what readers get from Spark with recomputation, and let the warehouse audit itself."""
        for name, definition in self.views.items():
            expected = self.oracle.recomputed(definition, self.schema.tables.values(), self.shows[name])
            found = [tuple(row) for row in self.warehouse.read(name).collect()]
            wrong = differences(expected, found, definition.rounded)
            assert wrong is None, f"{name}, read by Spark: {wrong}"
        for audit in self.warehouse.audits(*(name for name in self.views if not self._waits(name))):
            assert audit.clean, f"{audit.view}: {audit}"

    def _waits(self, name: str) -> bool:
        lattice, last = self.summaries.lattice_of(name), self.summaries.writer.last
        return lattice.deferred and self.summaries.waiting.has_any(lattice, last)

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
def world(folder: Path, seed: int, *, engine: str = "driver", sqlite: bool = False, **options: Any) -> Iterator[World]:
    """A world; what goes wrong in it says how to repeat it, and what had happened."""
    made = World(folder, seed, engine=engine, sqlite=sqlite, **options)
    try:
        with kept_with(engine):
            yield made
    except Exception as error:
        again = f"python tests/properties/summary_worlds.py {seed} --engine {engine}{' --sqlite' if sqlite else ''}"
        error.add_note(f"{made.told()}\n\nto repeat it: {again}")
        raise
    finally:
        made.close()


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("seed", type=int)
    parser.add_argument("--engine", choices=ENGINES, default="driver")
    parser.add_argument("--sqlite", action="store_true")
    parser.add_argument("--steps", type=int, default=STEPS)
    asked = parser.parse_args()
    with (
        TemporaryDirectory() as folder,
        world(Path(folder), asked.seed, engine=asked.engine, sqlite=asked.sqlite, spark=local_session) as made,
    ):
        made.live(asked.steps)
        print(made.told())


if __name__ == "__main__":
    main()
