"""The views of a project: their statements, what they read, and the order in which they can be made.

What can be known without a database is checked here: that a statement parses and has no clause that cannot be
maintained, that everything it reads is in the project, that no name is taken twice, that views do not read each other
in a circle.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from sqlglot import exp

from viewkeeper.errors import UnsupportedClause, ViewkeeperError
from viewkeeper.project.defaults import Defaults, Kind, with_properties
from viewkeeper.project.places import Place, placed, problem
from viewkeeper.project.yaml_values import meant
from viewkeeper.sql.create_clauses import read_create
from viewkeeper.sql.definition import read_definition
from viewkeeper.sql.parse_outer_join import has_outer_join
from viewkeeper.sql.parse_summary import aggregates
from viewkeeper.sql.refusals import refuse_unsupported
from viewkeeper.sql.syntax import not_too_deep, position

_LINE = re.compile(r"line (\d+)")


@dataclass(frozen=True)
class ViewText:
    """A statement of a project, and where it stands."""

    sql: str
    place: Place


@dataclass(frozen=True)
class Read:
    """A table or view in FROM: its name as it is written, in lower case, and where."""

    name: str
    place: Place

    @property
    def source(self) -> str | None:
        """Its source; None if it is a view."""
        source, dot, _ = self.name.partition(".")
        return source if dot else None


@dataclass(frozen=True)
class ProjectView:
    """A view of a project. `sql` is its whole statement, with the project's defaults in it, `written` without them."""

    name: str
    sql: str
    written: str
    kind: Kind
    place: Place
    reads: tuple[Read, ...]

    @property
    def views(self) -> tuple[str, ...]:
        """The views that it reads."""
        return tuple(dict.fromkeys(read.name for read in self.reads if read.source is None))


def read_view(text: ViewText, defaults: Defaults) -> ProjectView:
    """The view of a statement. OR REPLACE and IF NOT EXISTS say nothing here: a project says what there is."""
    try:
        with not_too_deep():
            create = read_create(text.sql)
            if not create.creates:
                raise UnsupportedClause(
                    f"this is no CREATE MATERIALIZED VIEW but {' '.join(text.sql.split())[:40]}",
                    "a file of views holds statements CREATE MATERIALIZED VIEW name AS SELECT ...",
                )
            definition = read_definition(create.sql, None)
            query = definition.query
            summary, outer = isinstance(query, exp.Select) and aggregates(query), has_outer_join(query)
            composed = _is_composed(query, summary=summary, outer=outer)
    except ViewkeeperError as error:
        raise placed(error, text.place) from error
    named = {one.alias.lower() for one in query.find_all(exp.CTE)}
    tables = (table for table in query.find_all(exp.Table) if table.db or table.name.lower() not in named)
    reads = tuple(_read(table, text.place) for table in tables)
    kind = Kind.SUMMARIES if summary else Kind.OUTER_JOINS if outer else Kind.JOINS
    kind = Kind.QUERIES if composed else kind
    if kind is Kind.JOINS and any(read.source is None for read in reads):
        kind = Kind.OVER_VIEWS
    missing = defaults.missing(kind, dict(definition.properties))
    return ProjectView(definition.name, with_properties(create.sql, missing), create.sql, kind, text.place, reads)


def _is_composed(query: exp.Expr, *, summary: bool, outer: bool) -> bool:
    """Whether it is any other query than a join, an outer join or a summary: Spark reads those."""
    try:
        refuse_unsupported(query, aggregates=summary, outer=outer and not summary)
    except UnsupportedClause:
        return True
    return False


def _read(table: exp.Table, place: Place) -> Read:
    found = _LINE.search(position(table))
    at = place.at(int(found[1])) if found and place.numbered else place
    return Read(".".join(part.name.lower() for part in table.parts), at)


def in_order(views: Sequence[ProjectView], sources: Mapping[str, Collection[str] | None]) -> tuple[ProjectView, ...]:
    """The views, each after those that it reads. `sources` names the tables of each source, if they are listed."""
    spelled: dict[str, str] = {}
    by_name: dict[str, ProjectView] = {}
    for view in views:
        if (other := spelled.get(view.name.casefold())) is not None:
            raise problem(
                view.place,
                f"the view {view.name} is defined twice: also at {by_name[other].place}",
                "give one of them another name",
            )
        spelled[view.name.casefold()] = view.name
        by_name[view.name] = view
    for name, view in by_name.items():
        reads = tuple(replace(read, name=spelled.get(read.name.casefold(), read.name)) for read in view.reads)
        by_name[name] = replace(view, reads=reads)
    views = tuple(by_name.values())
    for view in views:
        for read in view.reads:
            check_read(view.name, read, by_name, sources)
    try:
        order = TopologicalSorter({view.name: view.views for view in views}).static_order()
        return tuple(by_name[name] for name in order)
    except CycleError as error:
        circle: list[str] = error.args[1][::-1]
        where = ", ".join(f"{name} at {by_name[name].place}" for name in circle[:-1])
        raise problem(
            by_name[circle[0]].place,
            f"views read each other in a circle: {' → '.join(circle)} ({where})",
            "define one of them over tables of sources",
        ) from None


def check_read(
    reader: str,
    read: Read,
    views: Mapping[str, ProjectView],
    sources: Mapping[str, Collection[str] | None],
) -> None:
    """ProjectError if a view or a cube reads what is not in the project."""
    if read.source is None:
        if read.name not in views:
            raise problem(
                read.place,
                f"{reader} reads {read.name}, and the project has no view of that name",
                meant(read.name, list(views), "the views are", "a table of a source is named source.table"),
            )
        if views[read.name].kind is Kind.SUMMARIES:
            raise problem(
                read.place,
                f"{reader} reads {read.name}, which is a summary, and a view cannot be over one",
                "define it over the tables that the summary reads; they share their work. Or query the summary",
            )
        return
    if read.source not in sources:
        raise problem(
            read.place,
            f"{reader} reads {read.name}, and the project has no source {read.source}",
            meant(read.source, list(sources), "the sources are"),
        )
    tables = sources[read.source]
    table = read.name.partition(".")[2]
    if tables is not None and table not in (known.lower() for known in tables):
        raise problem(
            read.place,
            f"{reader} reads {read.name}, which is not among the tables of source {read.source}",
            meant(table, list(tables), "the tables are", "or add it to its tables"),
        )


def dependants(name: str, views: Iterable[ProjectView]) -> set[str]:
    """The views that read a view, directly or through others; `views` are in order."""
    found = {name}
    for view in views:
        if found & set(view.views):
            found.add(view.name)
    return found - {name}
