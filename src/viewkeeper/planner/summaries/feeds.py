"""Where a lattice gets its facts and dimensions from: a feed and copies of its own, or views that are there."""

from collections.abc import Mapping

from viewkeeper.planner.summaries.lattice import Facts
from viewkeeper.planner.summaries.naming import slug
from viewkeeper.planner.view_properties import VIEWS
from viewkeeper.sql.relation import Relation
from viewkeeper.summary.statements import quoted


def facts_of(lattice: str, fact: Relation, properties: Mapping[str, str], group: str | None) -> Facts:
    """Where a new lattice gets its facts from; `group` is that of a fact that is a view."""
    return Facts(
        f"{lattice} feed" if group is None else group,
        f"_vk_feed_{slug(lattice)}" if group is None else fact.name,
        fact.name,
        group is not None or properties.get("core") == "stored",
    )


def copy_of(lattice: str, dimension: Relation) -> str:
    """The view that holds a dimension for a lattice."""
    return dimension.name if dimension.source == VIEWS else f"_vk_copy_{slug(lattice)}_{slug(dimension.name)}"


def select_all(relation: Relation) -> str:
    columns = ", ".join(quoted(column) for column in relation.there)
    return f"SELECT {columns} FROM {'.'.join(map(quoted, relation.name.split('.')))}"
