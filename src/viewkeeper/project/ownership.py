"""What projects have made in a warehouse: `_viewkeeper/project.json`.

Only that may be dropped when a project no longer has it. What somebody made by hand is theirs.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from viewkeeper.errors import DamagedWarehouse
from viewkeeper.lake.log.commit_log import HOME
from viewkeeper.lake.log.record import seal, unseal
from viewkeeper.lake.log.store import open_store

FILE = f"{HOME}/project.json"


@dataclass(frozen=True)
class MadeCube:
    """A cube as it was requested, and the tables that were chosen."""

    told: Mapping[str, Any]
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Owned:
    """What projects have made and not dropped again."""

    sources: frozenset[str] = frozenset()
    views: frozenset[str] = frozenset()
    cubes: Mapping[str, MadeCube] = field(default_factory=dict)

    def with_source(self, name: str) -> "Owned":
        return replace(self, sources=self.sources | {name})

    def with_view(self, name: str) -> "Owned":
        return replace(self, views=self.views | {name})

    def with_cube(self, name: str, cube: MadeCube) -> "Owned":
        return replace(self, cubes={**self.cubes, name: cube})

    def still_there(self, views: Collection[str], sources: Collection[str]) -> "Owned":
        """Without what somebody has dropped meanwhile: another of that name will be theirs. Cubes know their tables."""
        return replace(self, sources=self.sources & set(sources), views=self.views & set(views))

    def without_source(self, name: str) -> "Owned":
        return replace(self, sources=self.sources - {name})

    def without_view(self, name: str) -> "Owned":
        return replace(self, views=self.views - {name})

    def without_cube(self, name: str) -> "Owned":
        return replace(self, cubes={cube: made for cube, made in self.cubes.items() if cube != name})


def read_owned(warehouse: Path) -> Owned:
    """What the file says; nothing if no project was ever applied."""
    store = open_store(warehouse)
    if not store.exists(FILE):
        return Owned()
    try:
        told = unseal(store.read(FILE))
        cubes = {name: MadeCube(cube["told"], tuple(cube["tables"])) for name, cube in told["cubes"].items()}
        return Owned(frozenset(told["sources"]), frozenset(told["views"]), cubes)
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedWarehouse(
            f"{store.path(FILE)} is damaged: {error}",
            "delete it: the next apply writes it again, and drops nothing that it did not make",
        ) from error


def write_owned(warehouse: Path, owned: Owned) -> None:
    told = {
        "sources": sorted(owned.sources),
        "views": sorted(owned.views),
        "cubes": {name: {"told": dict(cube.told), "tables": list(cube.tables)} for name, cube in owned.cubes.items()},
    }
    open_store(warehouse).write(FILE, seal(told))
