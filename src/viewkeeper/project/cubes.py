"""The cubes of a project: each is handed to `Warehouse.cube`, which chooses the tables that are worth storing.

    cubes:
      sales:
        fact: retail.pos
        dimensions: [storeID, stores.city, date]
        measures: COUNT(*) AS n, SUM(qty) AS q
        count: 5                                     or space_budget: 1000000, rows
        refresh: manual

The names of the tables begin with that of the cube.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

from viewkeeper.project.places import Place
from viewkeeper.project.yaml_values import Value

FIELDS = ("fact", "dimensions", "measures", "count", "space_budget", "refresh")


@dataclass(frozen=True)
class ProjectCube:
    """A cube of a project."""

    name: str
    fact: str
    dimensions: tuple[str, ...]
    measures: str
    place: Place = field(compare=False)
    count: int | None = None
    space_budget: int | None = None
    refresh: str | None = None

    @property
    def told(self) -> dict[str, Any]:
        """What `Warehouse.cube` is given; also what is remembered, to see whether it has changed."""
        everything = asdict(self)
        del everything["place"]
        return {**everything, "dimensions": list(self.dimensions)}


def read_cubes(value: Value) -> dict[str, ProjectCube]:
    """The field `cubes` of a project."""
    return {name: _cube(name, below) for name, below in value.entries().items()}


def _cube(name: str, value: Value) -> ProjectCube:
    fields = value.fields(FIELDS)
    for needed in ("fact", "dimensions", "measures"):
        if needed not in fields:
            raise value.problem(f"{value.path} has no {needed}", "a cube has a fact, dimensions and measures")
    if ("count" in fields) == ("space_budget" in fields):
        raise value.problem(
            f"{value.path} must say how much may be stored, in one way",
            "give count, the number of tables beside the finest, or space_budget, the rows of all tables",
        )
    measures = fields["measures"].texts()
    return ProjectCube(
        name,
        fields["fact"].text().value,
        tuple(one.value for one in fields["dimensions"].texts()),
        ", ".join(one.value for one in measures),
        value.place,
        fields["count"].whole_number() if "count" in fields else None,
        fields["space_budget"].whole_number() if "space_budget" in fields else None,
        fields["refresh"].text().value if "refresh" in fields else None,
    )
