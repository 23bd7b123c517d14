"""Project: what a warehouse is to hold, from viewkeeper.yml and the files that it names, or from Python.

project = Project.load()                # viewkeeper.yml of this folder, or of one above it
project.plan()                          # what would change
project.apply()                         # change it
Warehouse.open(project)                 # the warehouse that it names

project = Project(
    warehouse="lake",
    sources={"shop": "sqlite:///shop.db", "crm": {"url": "postgresql://ann:${CRM_PASSWORD}@db/crm", "install": True}},
    views=["CREATE MATERIALIZED VIEW big AS SELECT id FROM shop.orders WHERE amount > 99", a_decorated_function],
)
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viewkeeper.errors import ProjectError
from viewkeeper.project.applying import Watch, carry_out
from viewkeeper.project.content import read_content, texts_of
from viewkeeper.project.cubes import ProjectCube
from viewkeeper.project.decorators import decorated
from viewkeeper.project.finding import project_file
from viewkeeper.project.modules import decorated_text
from viewkeeper.project.places import Place
from viewkeeper.project.plan import Plan
from viewkeeper.project.planning import make_plan
from viewkeeper.project.sources import ProjectSource
from viewkeeper.project.views import ProjectView, ViewText
from viewkeeper.project.yaml_values import python_value, read_yaml

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from viewkeeper.warehouse import Warehouse

ViewLike = str | Callable[[], str]


class Project(os.PathLike[str]):
    """A warehouse as it is to be. It is a path too: that of its warehouse."""

    def __init__(
        self,
        *,
        warehouse: str | os.PathLike[str] = "warehouse",
        sources: Mapping[str, str | Mapping[str, Any]] | None = None,
        views: Sequence[ViewLike] = (),
        modules: Sequence[str] = (),
        defaults: Mapping[str, Any] | None = None,
        cubes: Mapping[str, Mapping[str, Any]] | None = None,
        folder: str | os.PathLike[str] = ".",
    ) -> None:
        """The same fields as in viewkeeper.yml, with the same checks.

        `views` are statements or decorated functions. Paths are relative to `folder`. `${NAME}` is taken from the
        environment.
        """
        home = Path(folder).expanduser().absolute()
        fields = {
            "warehouse": os.fspath(warehouse),
            "sources": {
                name: given if isinstance(given, str) else dict(given) for name, given in (sources or {}).items()
            },
            "modules": list(modules),
            "defaults": dict(defaults or {}),
            "cubes": {name: dict(cube) for name, cube in (cubes or {}).items()},
        }
        value = python_value("", fields, Place(where="Project(...)"), os.environ)
        given = [text for number, view in enumerate(views) for text in _texts(view, number)]
        self.file: Path | None = None
        self._content = read_content(value, home, given, files=False)

    @classmethod
    def load(cls, path: str | os.PathLike[str] = ".") -> "Project":
        """The project of a folder, or of the nearest folder above it that has a viewkeeper.yml; or that file."""
        file = project_file(path)
        project = cls.__new__(cls)
        project.file = file
        project._content = read_content(read_yaml(file, os.environ), file.parent)
        return project

    def __fspath__(self) -> str:
        return str(self._content.warehouse)

    def __repr__(self) -> str:
        content = self._content
        return f"<Project {self.file or ''} of {len(content.sources)} sources and {len(content.views)} views>"

    @property
    def warehouse(self) -> Path:
        """The folder of its warehouse."""
        return self._content.warehouse

    @property
    def exists(self) -> bool:
        """Whether there is a warehouse already."""
        from viewkeeper.lake.log.commit_log import FORMAT_FILE

        return (self.warehouse / FORMAT_FILE).exists()

    @property
    def sources(self) -> Mapping[str, ProjectSource]:
        return self._content.sources

    def source_urls(self) -> dict[str, str]:
        """The URLs of the sources: whoever opens the warehouse of this project allows what they refer to."""
        return {name: source.url for name, source in self.sources.items()}

    @property
    def views(self) -> tuple[ProjectView, ...]:
        """Each after those that it reads."""
        return self._content.views

    @property
    def cubes(self) -> Mapping[str, ProjectCube]:
        return self._content.cubes

    def plan(
        self,
        warehouse: "Warehouse | None" = None,
        *,
        prune: bool = False,
        spark: "Callable[[], SparkSession] | None" = None,
    ) -> Plan:
        """What `apply` would do; nothing is done.

        Without a warehouse it is that of the project, opened to read; it need not be there yet. Sources that were not
        added yet are looked at.
        """
        from viewkeeper.lake.tables.spark_session import local_session
        from viewkeeper.warehouse import Warehouse

        start = spark or local_session
        if warehouse is not None:
            return make_plan(self._content, warehouse, start, prune=prune)
        if not self.exists:
            return make_plan(self._content, None, start, prune=prune)
        with Warehouse.open(self, start, read_only=True) as opened:
            return make_plan(self._content, opened, start, prune=prune)

    def apply(self, warehouse: "Warehouse | None" = None, *, prune: bool = False, watch: Watch | None = None) -> Plan:
        """Make the warehouse what the project says; what was done.

        All of the project is checked before anything is done. Then each step is done wholly or not at all. What an
        earlier version of the project made and this one no longer has is dropped only if `prune` says so; what nobody's
        project made is never touched. `watch` is told of each step.
        """
        from viewkeeper.warehouse import Warehouse

        if warehouse is None:
            if not self.exists:
                self.plan()  # before there is a warehouse, so that a mistake leaves none
            with Warehouse.open(self) as opened:
                return self.apply(opened, prune=prune, watch=watch)
        plan = make_plan(self._content, warehouse, lambda: warehouse.spark, prune=prune)
        carry_out(plan, self._content, warehouse, watch or (lambda kind, name, what: None))
        return plan


def _texts(view: ViewLike, number: int) -> list[ViewText]:
    if isinstance(view, str):
        return texts_of(view, Place(where=f"views[{number}]"))
    found = decorated(view)
    if found is None:
        raise ProjectError(
            f"views[{number}] is neither SQL nor a decorated function", "put @materialized_view above the function"
        )
    return [decorated_text(found)]
