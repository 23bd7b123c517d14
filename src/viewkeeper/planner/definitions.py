"""The statements that the views of a warehouse were created by."""

from viewkeeper.lake.log.catalog import Catalog
from viewkeeper.planner.stored_definitions import definition_of


def definitions_of(catalog: Catalog) -> dict[str, str]:
    """By the name of the view, or of the family that it is a table of; in the order in which they were created."""
    views = sorted(catalog.values(), key=lambda view: view.created)
    return {view.family or view.name: sql for view in views if (sql := definition_of(view)) is not None}
