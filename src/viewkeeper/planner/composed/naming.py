"""How the catalog knows views that are plans of operators; read by every process, whether it has such views or not."""

from viewkeeper.lake.log.catalog import Catalog, Definition

COMPOSED = "composed"
"""the property of a definition that makes it such a view"""
OPERATORS = "operators"
"""what maintains it"""


def composed_names(catalog: Catalog) -> set[str]:
    """The names of all in a catalog."""
    return {name for name, one in catalog.items() if COMPOSED in one.properties}


def in_own_group(definition: Definition) -> bool:
    """Whether it is such a view over tables of sources alone: those that algorithms maintain have other groups."""
    return COMPOSED in definition.properties and not definition.properties[COMPOSED]["reads"]
