"""The five ways to store a join agree with recomputing it, after every batch of changes, on random worlds."""

import itertools
from collections import Counter
from typing import Any

import pytest
from join_worlds import World
from structure_definitions import defined_structures

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.storage.self_maintained import STORAGES, operand_changes, refresh, storage_of
from viewkeeper.storage.storage import Storage
from viewkeeper.storage.tables import HeldTables

SEEDS = range(25)


def empty_tables(storage: Storage) -> HeldTables[MemoryZSet]:
    return HeldTables({one.name: MemoryZSet(one.columns) for one in storage.structures})


def given(storage: Storage, changes: dict[str, MemoryZSet]) -> dict[int, MemoryZSet]:
    """The changes of each operand, with what it must satisfy alone applied."""
    made = {}
    for number, leaf in enumerate(storage.tree.leaves):
        rows = changes[leaf.operand.relation.name].rename(leaf.operand.columns)
        made[number] = rows.select(leaf.own).keep(leaf.given)
    return made


def check_world(world: World, name: str, batches: int = 6) -> None:
    storage = storage_of(world.view, name)
    tables, numbers = empty_tables(storage), itertools.count()
    view: Counter[Any] = Counter()
    for _ in range(batches):
        leaves = operand_changes(storage, tables, given(storage, world.batch()), numbers)
        changes, of_view = refresh(storage, tables, leaves, view=True)
        tables.apply(changes)
        assert of_view is not None
        view.update(dict(of_view.weights()))
        assert +view == view, "a row less often than not at all"
        assert view == world.expected()
        operands = {leaf: world.tables[one.operand.relation.name] for leaf, one in enumerate(storage.tree.leaves)}
        for structure, rows in defined_structures(storage, name, tables, operands).items():
            assert dict(tables.held[structure].weights()) == rows, structure


@pytest.mark.parametrize("name", STORAGES)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_stored_join_is_the_join_after_every_batch(seed: int, name: str) -> None:
    check_world(World(seed), name)


@pytest.mark.parametrize("seed", range(50))
def test_a_stored_outer_join_is_the_outer_join_after_every_batch(seed: int) -> None:
    check_world(World(seed, outer=True), "outerjoin")


@pytest.mark.soak
@pytest.mark.parametrize("name", STORAGES)
@pytest.mark.parametrize("seed", range(1000, 1600))
def test_many_more_stored_joins(seed: int, name: str) -> None:
    check_world(World(seed, outer=name == "outerjoin" and seed % 2 == 0), name, batches=12)


def test_worlds_are_not_empty() -> None:
    """Most random views come to have rows, and lose some."""
    shown = 0
    for seed in SEEDS:
        world = World(seed)
        for _ in range(6):
            world.batch()
        shown += bool(world.expected())
    assert shown > len(SEEDS) / 2
