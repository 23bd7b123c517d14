"""What views, summaries and queries can be over: the relations of the sources, and the views that are stored."""

from collections.abc import Mapping

from viewkeeper.sql.relation import Relation
from viewkeeper.warehouse.catalog import Catalog, Definition
from viewkeeper.warehouse.columns import RESERVED
from viewkeeper.warehouse.summaries.naming import SUMMARY
from viewkeeper.warehouse.view_properties import KEY, VIEWS


def relations_of(catalog: Catalog, of_sources: Mapping[str, Relation]) -> dict[str, Relation]:
    """All of them, by full name. A summary is none."""
    views = {
        name: _as_relation(view)
        for name, view in catalog.items()
        if not name.startswith(RESERVED) and SUMMARY not in view.properties
    }
    return {**of_sources, **views}


def _as_relation(view: Definition) -> Relation:
    """A view as others read it."""
    names, types = zip(*view.shown.columns, strict=True)
    return Relation(view.name, VIEWS, names, types, tuple(view.properties.get(KEY) or ()) or None)
