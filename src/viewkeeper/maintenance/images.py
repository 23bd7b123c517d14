"""Relations as they are at their sources, exact at a vector: what views are computed from for the first time, and
compared with."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from viewkeeper.lake.tables.parquet_files import STAGING
from viewkeeper.maintenance.collected_rows import CollectedRows
from viewkeeper.maintenance.context import Context
from viewkeeper.mediator.base_image import image_at
from viewkeeper.mediator.group_plan import GroupPlan
from viewkeeper.messages import Position, Vector
from viewkeeper.planner.view_properties import SOURCES
from viewkeeper.sql.relation import Relation


@contextmanager
def sampled(context: Context, sampler: Callable[[Mapping[str, Any]], None]) -> Iterator[None]:
    """Within this, `sampler` gets the first relations that are read, before anything is computed from them."""
    context.sampler = sampler
    try:
        yield
    finally:
        context.sampler = None


@contextmanager
def images_of(
    context: Context, relations: Mapping[str, Relation], group: str, *, fresh: bool = False
) -> Iterator[tuple[dict[str, Any], dict[str, Position]]]:
    """The contents of relations of sources, at the vector of a group or, if it is new, as they are now."""
    there = None if fresh else context.writer.last.groups.get(group)
    with images_at(context, relations, followed(context, group) if there is not None else {}) as (contents, at):
        yield contents, {**(there.vector if there is not None else {}), **at}


def followed(context: Context, group: str) -> dict[str, Position]:
    """Where a group is in the sources that its views read. In one that only a view read which is dropped by now it
    was left behind, and what is there between may be forgotten."""
    there = context.writer.last.groups.get(group)
    views = [view for view in context.writer.catalog.values() if view.group == group]
    if there is None or any(SOURCES not in view.properties for view in views if not view.hidden):
        return dict(there.vector) if there is not None else {}
    read = {source for view in views for source in view.properties.get(SOURCES, ())}
    return {source: place for source, place in there.vector.items() if source in read}


def images_of_group(context: Context, plan: GroupPlan) -> dict[str, Any]:
    """The relations of a group at its vector."""
    relations = {name: one for how in plan.views for name, one in how.view.relations.items()}
    sources = {one.source: context.sources.source(one.source) for one in relations.values()}
    with context.writer.staging() as folder:
        place = f"{STAGING}/{folder}"
        contents, _ = image_at(
            sources,
            relations,
            plan.vector,
            lambda relation: CollectedRows(relation, context.engines, context.files.store, place),
        )
        return contents


@contextmanager
def images_at(
    context: Context,
    wanted: Mapping[str, Relation],
    vector: Vector,
    read: Mapping[str, frozenset[str]] | None = None,
) -> Iterator[tuple[dict[str, Any], dict[str, Position]]]:
    """Relations at a vector, as they are now in sources that it does not name; rows count as progress of the load.
    `read` are the columns that matter."""
    # What a lattice follows may lack columns that were added since; a source has them all.
    registered = context.sources.relations()
    relations = {name: registered.get(name, one) for name, one in wanted.items()}
    sources = {one.source: context.sources.source(one.source) for one in relations.values()}
    context.loads.begin()
    with context.writer.staging() as folder:

        def collect(relation: Relation) -> CollectedRows:
            come = context.loads.reading(sources[relation.source], relation)
            return CollectedRows(relation, context.engines, context.files.store, f"{STAGING}/{folder}", come)

        spanning = context.views.spanning(tuple(sources))
        contents, at = image_at(sources, relations, vector, collect, spanning=spanning, read=read)
        for name, one in wanted.items():
            if one.columns != relations[name].columns:
                contents[name] = contents[name].keep(one.columns)
        context.loads.computing()
        if context.sampler is not None:
            sampler, context.sampler = context.sampler, None
            sampler(contents)
        yield contents, at
