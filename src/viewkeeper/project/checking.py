"""Every view of a project, parsed over the tables that its sources have: unknown tables and columns, wrong types.

A source that was added is known from the warehouse. One that was not is looked at, and nothing is changed there.
"""

import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from viewkeeper.errors import DefinitionError, SourceUnfit, UnsupportedClause, ViewkeeperError
from viewkeeper.maintenance.cubes import checked_cube
from viewkeeper.planner.altering.refused import refuse_in_itself
from viewkeeper.planner.canonical import Parsed
from viewkeeper.planner.composed.composed_view import ComposedView
from viewkeeper.planner.composed.reading import read_view
from viewkeeper.planner.declared import as_the_source_spells, check_declared
from viewkeeper.planner.known_sources import INSTALL, refuse_unfit
from viewkeeper.planner.view_properties import VIEWS
from viewkeeper.project.cubes import ProjectCube
from viewkeeper.project.places import placed
from viewkeeper.project.sources import ProjectSource
from viewkeeper.project.views import ProjectView
from viewkeeper.sources.base import Request, Source, refuse_obstacles
from viewkeeper.sources.registry import open_source
from viewkeeper.sources.urls import naming_variables, resolved, shown
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.refresh_mode import PROPERTY as REFRESH
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import View
from viewkeeper.sql.view_keys import key_of_view

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOBODY = "0" * 32
"""the warehouse that looks, if it is not there yet: nothing at the source carries its name"""


def relations_at(
    source: ProjectSource,
    spark: "Callable[[], SparkSession]",
    identity: str | None,
    errors: list[ViewkeeperError],
    *,
    installed: bool = False,
) -> Mapping[str, Relation]:
    """The tables that a source has now; it is opened and closed again. `identity` is that of the warehouse, if any;
    `installed`: what capture needs is there already. If it is not, and will not be, that is added to `errors`: the
    tables are known all the same."""
    try:
        url = resolved(source.name, source.url, os.environ)
        request = Request(source.name, url, identity or _NOBODY, source.tables, source.keys)
        with (
            naming_variables(source.name, source.url, os.environ),
            tempfile.TemporaryDirectory(prefix="viewkeeper-") as workspace,
            closing(open_source(request, spark, Path(workspace))) as opened,
        ):
            if source.install:
                refuse_obstacles(source.name, opened.obstacles(), _ask_the_doctor(source))
            elif not installed:
                _note_unfit(source, opened, errors)
            declared = as_the_source_spells(source.name, opened.relations, source.foreign_keys, source.hierarchies)
            check_declared(source.name, opened.relations, *declared)
            return dict(opened.relations)
    except ViewkeeperError as error:
        raise placed(as_a_project_says(error), source.place) from error


def _note_unfit(source: ProjectSource, opened: Source, errors: list[ViewkeeperError]) -> None:
    try:
        refuse_unfit(source.name, opened, False, opened.relations)
    except SourceUnfit as error:
        errors.append(placed(as_a_project_says(error), source.place))


def as_a_project_says(error: ViewkeeperError) -> ViewkeeperError:
    """With the hint for a source that is not ready in the words of a project."""
    if not isinstance(error, SourceUnfit) or not error.hint.startswith(INSTALL):
        return error
    return SourceUnfit(error.detail, f"write install: true beside its url{error.hint.removeprefix(INSTALL)}")


def _ask_the_doctor(source: ProjectSource) -> str:
    """What is to be run carries the name of the warehouse, which the doctor makes if it is not there yet."""
    tables = "".join(f" --table {table}" for table in source.tables or ())
    return (
        f"viewkeeper doctor '{shown(source.url)}' --as {source.name}{tables} -w WAREHOUSE says what to run, and as whom"
    )


def check_views(
    views: tuple[ProjectView, ...],
    relations: Mapping[str, Relation],
    single: Collection[str],
    unknown: Collection[str],
    errors: list[ViewkeeperError],
    found: dict[str, Parsed | ComposedView] | None = None,
    *,
    spark: "Callable[[], SparkSession]",
) -> dict[str, Relation]:
    """These relations and the views over them; each view as it is parsed is put into `found`. The error of each view
    that cannot be is added to `errors`, with its place; what is over such a view, or over a source whose tables are
    `unknown`, is not looked at.

    `single` are the sources that are declared to commit single updates.
    """
    known = dict(relations)
    wrong = set(unknown)
    composed: set[str] = set()
    for view in views:
        if {read.source or read.name for read in view.reads} & wrong:
            wrong.add(view.name)
            continue
        try:
            parsed = _read(view, known, single, spark, composed)
        except ViewkeeperError as error:
            errors.append(placed(_as_written(view, known, single) or error, view.place))
            wrong.add(view.name)
            continue
        if found is not None:
            found[view.name] = parsed
        if isinstance(parsed, ComposedView):
            composed.add(view.name)
            names, of_columns = zip(*parsed.columns, strict=True)
            known[view.name] = Relation(view.name, VIEWS, names, of_columns)
        if isinstance(parsed, View | OuterJoinView):
            key = key_of_view(parsed) if isinstance(parsed, View) else None
            types = tuple(column.expression.type for column in parsed.output)
            known[view.name] = Relation(view.name, VIEWS, parsed.columns, types, tuple(key) if key else None)
    return known


def _read(
    view: ProjectView,
    known: Mapping[str, Relation],
    single: Collection[str],
    spark: "Callable[[], SparkSession]",
    composed: Collection[str],
) -> Parsed | ComposedView:
    """A view, parsed; the error of one that cannot be."""
    parsed = read_view(view.sql, known, spark, composed)
    if not isinstance(parsed, ComposedView):
        refuse_in_itself(parsed, single)
    return parsed


def _as_written(
    view: ProjectView, relations: Mapping[str, Relation], single: Collection[str]
) -> ViewkeeperError | None:
    """The error of a view without the defaults of its project, which would move what stands after them in its line;
    None if it has none."""
    try:
        refuse_in_itself(parse_definition(view.written, relations), single)
    except UnsupportedClause:
        return None
    except ViewkeeperError as error:
        return error
    return None


def check_cubes(
    cubes: Iterable[ProjectCube],
    relations: Mapping[str, Relation],
    foreign_keys: Mapping[str, Sequence[tuple[str, str]]],
    unknown: Collection[str],
    errors: list[ViewkeeperError],
) -> None:
    """The error of each cube that cannot be over these relations is added to `errors`, with its place; of one over a
    source whose tables are `unknown` nothing is said."""
    for cube in cubes:
        properties = {REFRESH: cube.refresh} if cube.refresh is not None else {}
        try:
            # What determines what makes a cube smaller, and no more.
            checked_cube(cube.fact, cube.dimensions, cube.measures, relations, foreign_keys, lambda _: None, properties)
        except ViewkeeperError as error:
            if cube.fact.partition(".")[0] not in unknown:
                errors.append(placed(error, cube.place))


def together(errors: Sequence[ViewkeeperError]) -> ViewkeeperError:
    """Several errors as one; a single one as it is."""
    if len(errors) == 1:
        return errors[0]
    listed = "".join(f"\n  {error.detail}" + (f"\n    hint: {error.hint}" if error.hint else "") for error in errors)
    return DefinitionError(f"the project has {len(errors)} errors:{listed}", "correct them; nothing was done")
