"""What views, summaries and queries can be over: the relations of the sources, and the views that are stored."""

from collections.abc import Mapping

from sqlglot import exp

from viewkeeper.errors import UnsupportedClause
from viewkeeper.lake.log.catalog import Catalog, Definition, families
from viewkeeper.lake.log.columns import RESERVED
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.planner.view_properties import KEY, VIEWS
from viewkeeper.sql.definition import read_definition
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.syntax import not_too_deep


def relations_of(catalog: Catalog, of_sources: Mapping[str, Relation]) -> dict[str, Relation]:
    """All of them, by full name. A summary is none."""
    views = {
        name: _as_relation(view)
        for name, view in catalog.items()
        if not name.startswith(RESERVED) and SUMMARY not in view.properties
    }
    return {**of_sources, **views}


def refuse_summaries(sql: str, catalog: Catalog) -> None:
    """UnsupportedClause if a definition reads a summary or a family: its changes are not passed on to others."""
    named = {name for name, view in catalog.items() if SUMMARY in view.properties} | families(catalog).keys()
    summaries = {name.casefold() for name in named}
    with not_too_deep():
        tables = read_definition(sql, None).query.find_all(exp.Table)
        for table in tables:
            if not table.db and table.name.casefold() in summaries:
                raise UnsupportedClause(
                    f"{table.name} is a summary, and a view cannot be over one",
                    "define it over the tables that the summary reads; they share their work. Or query the summary",
                )


def relations_named(sql: str) -> set[str]:
    """The relations of sources that a definition names, in lower case."""
    with not_too_deep():
        tables = read_definition(sql, None).query.find_all(exp.Table)
        return {".".join(part.name for part in table.parts).casefold() for table in tables if table.db}


def _as_relation(view: Definition) -> Relation:
    """A view as others read it."""
    names, types = zip(*view.shown.columns, strict=True)
    return Relation(view.name, VIEWS, names, types, tuple(view.properties.get(KEY) or ()) or None)
