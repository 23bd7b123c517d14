"""The same algorithms in Arrow and on Spark: after every batch the structures are what they are in memory."""

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from join_worlds import TYPES, World
from test_storages import empty_tables, given

from run_size import some
from viewkeeper.algebra.arrow import ArrowZSet
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.storage.join_tree import Leaf
from viewkeeper.storage.self_maintained import STORAGES, operand_changes, refresh, storage_of
from viewkeeper.storage.storage import Storage
from viewkeeper.storage.tables import HeldTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[[tuple[str, ...], Any, list[str]], Any]


def types_of(storage: Storage) -> dict[str, str]:
    def of(leaf: Leaf) -> dict[str, str]:
        columns = {f"{leaf.operand.alias}.{c}": t for c, t in zip(leaf.operand.relation.columns, TYPES, strict=True)}
        return columns | (dict.fromkeys(leaf.ids, "BIGINT") if leaf.numbered else {})

    return {column: type for leaf in storage.tree.leaves for column, type in of(leaf).items()}


def check_engine(world: World, name: str, make: Make, batches: int) -> None:
    """Both engines go through the same changes, and have the same structures and the same changes of the view."""
    storage = storage_of(world.view, name)
    types = types_of(storage)

    def engine(zset: MemoryZSet) -> Any:
        return make(zset.columns, list(zset.weights()), [types[column] for column in zset.columns])

    in_memory = empty_tables(storage)
    in_engine: HeldTables[Any] = HeldTables({table: engine(rows) for table, rows in in_memory.held.items()})
    numbers, same_numbers = itertools.count(), itertools.count()
    for _ in range(batches):
        changes = given(storage, world.batch())
        leaves = operand_changes(storage, in_memory, changes, numbers)
        expected, of_view = refresh(storage, in_memory, leaves, view=True)
        in_memory.apply(expected)
        # Which copy of a row gets which number depends on the order of the rows, so it is given.
        leaves_there = {number: engine(rows) for number, rows in leaves.items()}
        if not any(leaf.numbered for leaf in storage.tree.leaves):
            given_there = {number: engine(rows) for number, rows in changes.items()}
            leaves_there = operand_changes(storage, in_engine, given_there, same_numbers)
        found, view_there = refresh(storage, in_engine, leaves_there, view=True)
        assert of_view is not None
        assert MemoryZSet(of_view.columns, view_there.weights()) == of_view
        for table, rows in found.items():
            assert MemoryZSet(rows.columns, rows.weights()) == expected[table], table
            # A plan that grew with every batch would soon be all that Spark is busy with.
            in_engine.held[table] = engine(in_memory.held[table])


@pytest.mark.parametrize("name", STORAGES)
@pytest.mark.parametrize("seed", some(range(200, 212), 3))
def test_in_arrow(seed: int, name: str) -> None:
    check_engine(World(seed), name, lambda c, rows, types: ArrowZSet.of_rows(c, rows, types), batches=4)


@pytest.mark.parametrize("seed", some(range(300, 315), 4))
def test_outer_joins_in_arrow(seed: int) -> None:
    world = World(seed, outer=True)
    check_engine(world, "outerjoin", lambda c, rows, types: ArrowZSet.of_rows(c, rows, types), batches=4)


@pytest.mark.parametrize(("seed", "name"), some([(404, "partial-operand"), (401, "outerjoin")], 1))
def test_in_spark(seed: int, name: str, spark: "SparkSession") -> None:
    from viewkeeper.algebra.spark import SparkZSet

    world = World(seed, outer=name == "outerjoin")
    check_engine(world, name, lambda c, rows, types: SparkZSet.of_rows(spark, c, rows, types), batches=2)


@pytest.mark.soak
@pytest.mark.parametrize("name", STORAGES)
@pytest.mark.parametrize("seed", range(500, 520))
def test_more_in_spark(seed: int, name: str, spark: "SparkSession") -> None:
    from viewkeeper.algebra.spark import SparkZSet

    world = World(seed, outer=name == "outerjoin" and seed % 2 == 0)
    check_engine(world, name, lambda c, rows, types: SparkZSet.of_rows(spark, c, rows, types), batches=3)
