"""Self-maintained views over real databases, in every engine: what readers see is what recomputation gives.

Random joins and outer joins over two SQLite databases; random transactions, several of them between two refreshes.
After each refresh the view, its structures and, where every transaction has a state of its own, every state are
compared with what they should be.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from join_worlds import COLUMNS, World
from structure_definitions import defined_structures

from run_size import some
from viewkeeper import Warehouse
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.maintenance import contents
from viewkeeper.maintenance.self_maintained import following, lookups
from viewkeeper.storage.self_maintained import STORAGES
from viewkeeper.storage.tables import HeldTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = ("BIGINT", "BIGINT", "BIGINT", "BIGINT", "STRING")
ENGINES = {"rows": (10**6, 10**6), "arrow": (0, 10**6), "spark": (0, -1)}
"""up to how many changed rows Python and the driver refresh a batch"""
UNLIKE = ("outerjoin", "partial-operand")
"""storages of which the others are special cases"""
TOO_LARGE = {"read through": (contents, "MOST_REMEMBERED", 0), "in spark": (lookups, "MOST_SCANNED", -1)}
"""how rows are looked up in tables that are too large to be kept in memory, and what makes every table one of them"""


@contextmanager
def databases(world: World, folder: Path) -> Iterator[dict[str, sqlite3.Connection]]:
    with ExitStack() as stack:
        opened = {
            name: stack.enter_context(closing(sqlite3.connect(folder / f"{name}.db")))
            for name in sorted({relation.source for relation in world.relations.values()})
        }
        for name, relation in world.relations.items():
            key = f", PRIMARY KEY ({', '.join(relation.key)})" if relation.key else ""
            types = ("INTEGER NOT NULL", "INTEGER", "INTEGER", "INTEGER", "TEXT NOT NULL")
            columns = ", ".join(f"{column} {type}" for column, type in zip(COLUMNS, types, strict=True))
            opened[relation.source].execute(f"CREATE TABLE {name.split('.')[1]} ({columns}{key})")
            opened[relation.source].commit()
        yield opened


def make_changes(world: World, opened: dict[str, sqlite3.Connection]) -> int:
    """A batch, as one transaction for each database; how many there were."""
    made = 0
    changed = {relation.source: False for relation in world.relations.values()}
    for name, change in world.batch().items():
        connection, table = opened[world.relations[name].source], name.split(".")[1]
        for row, weight in sorted(change.weights(), key=lambda entry: entry[1]):
            for _ in range(abs(weight)):
                changed[world.relations[name].source] = True
                if weight > 0:
                    connection.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)", row)
                else:
                    same = " AND ".join(f"{column} IS ?" for column in COLUMNS)
                    connection.execute(
                        f"DELETE FROM {table} WHERE rowid = (SELECT MIN(rowid) FROM {table} WHERE {same})", row
                    )
    for source, connection in opened.items():
        made += changed[source]
        connection.commit()
    return made


def rows_of(wh: Warehouse, view: str, state: int | None = None) -> Counter[tuple[Any, ...]]:
    """What readers see."""
    return Counter(tuple(row) for row in wh.read(view, state).collect())


def last_rows(wh: Warehouse, view: str) -> Counter[tuple[Any, ...]]:
    """The same at the last state, without a job of Spark."""
    return Counter(dict(wh._keeper.stored(view).weights()))


def check_structures(wh: Warehouse, world: World, name: str) -> None:
    kept = wh._keeper.self_maintained.views()["v"]
    held = {one.name: wh._keeper.stored(kept.table_of(one.name)) for one in kept.storage.structures}
    tables: HeldTables[Any] = HeldTables(
        {table: MemoryZSet(rows.columns, rows.weights()) for table, rows in held.items()}
    )
    operands = {
        number: world.tables[leaf.operand.relation.name] for number, leaf in enumerate(kept.storage.tree.leaves)
    }
    for structure, rows in defined_structures(kept.storage, name, tables, operands).items():
        assert dict(tables.held[structure].weights()) == rows, structure


def live(world: World, name: str, folder: Path, spark: "SparkSession", *, refreshes: int) -> None:
    with databases(world, folder) as opened:
        make_changes(world, opened)
        with Warehouse.open(folder / "lake", spark) as wh:
            for source in opened:
                wh.add_source(source, f"sqlite:///{folder / f'{source}.db'}", install=True)
            wh.create_view(world.sql)
            assert last_rows(wh, "v") == world.expected()
            for _ in range(refreshes):
                expected = [world.expected()]
                for _ in range(2):
                    # One at a time: which of two databases committed first is not known.
                    made = make_changes(world, opened)
                    expected += [world.expected()] * bool(made)
                before = wh.states("v")[-1].state
                wh.catch_up()
                assert last_rows(wh, "v") == world.expected()
                check_structures(wh, world, name)
                states = [one.state for one in wh.states("v") if one.state > before]
                if len(opened) == 1:
                    assert [rows_of(wh, "v", state) for state in states] == expected[1:]
            assert rows_of(wh, "v") == world.expected()
            assert wh.audit("v").clean


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        *product(STORAGES, ["rows", "arrow"]),
        ("outerjoin", "spark"),
        pytest.param("viewcache", "spark", marks=pytest.mark.soak),
    ],
)
def test_views_are_what_recomputation_gives(
    name: str, engine: str, tmp_path: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    few, most = ENGINES[engine]
    monkeypatch.setattr(following, "FEW", few)
    monkeypatch.setattr(following, "MOST_CHANGES", most)
    seed = 10 * list(STORAGES).index(name) + list(ENGINES).index(engine)
    world = World(seed, name == "outerjoin", TYPES, f"TBLPROPERTIES('storage' = '{name}', 'consistency' = 'strong')")
    live(world, name, tmp_path, spark, refreshes=1 if engine == "spark" else 2)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("matview", "read through"),
        ("outerjoin", "read through"),
        ("partial-operand", "in spark"),
        *(
            pytest.param(*both, marks=pytest.mark.soak)
            for both in [
                *product(("viewcache", "partial-join", "partial-operand"), ["read through"]),
                ("matview", "in spark"),
            ]
        ),
    ],
)
def test_structures_that_are_too_large_to_be_kept(
    name: str, how: str, tmp_path: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "FEW", 0)
    monkeypatch.setattr(*TOO_LARGE[how])
    seed = 40 + 10 * list(TOO_LARGE).index(how) + list(STORAGES).index(name)
    world = World(seed, name == "outerjoin", TYPES, f"TBLPROPERTIES('storage' = '{name}', 'consistency' = 'strong')")
    live(world, name, tmp_path, spark, refreshes=1 if how == "in spark" else 2)


@pytest.mark.parametrize("name", some([*UNLIKE, *(name for name in STORAGES if name not in UNLIKE)], 2))
def test_every_transaction_has_a_state(name: str, tmp_path: Path, spark: "SparkSession") -> None:
    properties = f"TBLPROPERTIES('storage' = '{name}')"
    world = World(70 + list(STORAGES).index(name), False, TYPES, properties, sources=1)
    live(world, name, tmp_path, spark, refreshes=2)


@pytest.mark.soak
@pytest.mark.parametrize("name", STORAGES)
@pytest.mark.parametrize("seed", range(1000, 1020))
def test_many_more(
    name: str, seed: int, tmp_path: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = list(ENGINES.values())[seed % 3]
    monkeypatch.setattr(following, "FEW", engine[0])
    monkeypatch.setattr(following, "MOST_CHANGES", engine[1])
    level = "complete" if seed % 5 < 3 else "strong"
    properties = f"TBLPROPERTIES('storage' = '{name}', 'consistency' = '{level}')"
    world = World(seed, name == "outerjoin" and seed % 2 == 0, TYPES, properties)
    live(world, name, tmp_path, spark, refreshes=4)
