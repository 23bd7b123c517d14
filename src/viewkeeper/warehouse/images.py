"""Views and relations as they follow from their sources, exact at a vector.

content     a view, to be stored for the first time or recreated
under       the relations under a view, to audit it
of          relations at the vector of a group, or as they are now
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.errors import UsageError
from viewkeeper.lake.tables.parquet_files import STAGING
from viewkeeper.mediator.base_image import image_at
from viewkeeper.mediator.group import GroupPlan
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.messages import Position, Vector
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import View, columns_read
from viewkeeper.warehouse.collected import CollectedRows
from viewkeeper.warehouse.view_properties import SOURCES, VIEWS

if TYPE_CHECKING:
    from viewkeeper.warehouse.keeper import Keeper


class Images:
    """Reads the sources of one warehouse."""

    def __init__(self, keeper: "Keeper") -> None:
        self._keeper = keeper
        self._sampler: Callable[[Mapping[str, Any]], None] | None = None

    @contextmanager
    def sampled(self, sampler: Callable[[Mapping[str, Any]], None]) -> Iterator[None]:
        """Within this, `sampler` gets the first relations that are read, before anything is computed from them."""
        self._sampler = sampler
        try:
            yield
        finally:
            self._sampler = None

    @contextmanager
    def content(self, how: Maintenance, vector: Vector) -> Iterator[tuple[Any, dict[str, Position]]]:
        """The rows of a view at a vector, as they are stored, and the vector."""
        base = self._base_of(how)
        relations = {n: one for over in base.values() for n, one in over.relations.items() if one.source != VIEWS}
        with self._read(relations, vector, _columns_of(base.values())) as (contents, at):
            if VIEWS in how.view.sources:
                for name, over in base.items():
                    contents[name] = self._keeper.self_maintained.evaluated(over, contents)
            for source, views in (how.parts.local_views if how.parts else {}).items():
                for local in views:
                    contents[f"{source}.{local.name}"] = JoinPlan(local).evaluate(contents)
            yield JoinPlan(how.stored).evaluate(contents), at

    @contextmanager
    def under(
        self, how: Maintenance, vector: Vector
    ) -> Iterator[tuple[dict[str, Any], dict[str, Relation], Mapping[str, View | OuterJoinView]]]:
        """The relations of sources under a view at a vector, what they are, and the views between, in order."""
        base = self._base_of(how)
        relations = {n: one for over in base.values() for n, one in over.relations.items() if one.source != VIEWS}
        with self._read(relations, vector, _columns_of(base.values())) as (contents, _):
            yield contents, relations, base if VIEWS in how.view.sources else {}

    @contextmanager
    def of(
        self, relations: Mapping[str, Relation], group: str, *, fresh: bool = False
    ) -> Iterator[tuple[dict[str, Any], dict[str, Position]]]:
        """The contents of relations of sources, at the vector of a group or, if it is new, as they are now."""
        there = None if fresh else self._keeper.writer.last.groups.get(group)
        with self._read(relations, self.followed(group) if there is not None else {}) as (contents, at):
            yield contents, {**(there.vector if there is not None else {}), **at}

    def followed(self, group: str) -> dict[str, Position]:
        """Where a group is in the sources that its views read. In one that only a view read which is dropped by now it
        was left behind, and what is there between may be forgotten."""
        there = self._keeper.writer.last.groups.get(group)
        views = [view for view in self._keeper.writer.catalog.values() if view.group == group]
        if there is None or any(SOURCES not in view.properties for view in views if not view.hidden):
            return dict(there.vector) if there is not None else {}
        read = {source for view in views for source in view.properties.get(SOURCES, ())}
        return {source: place for source, place in there.vector.items() if source in read}

    def at(self, plan: GroupPlan) -> dict[str, Any]:
        """The relations of a group at its vector."""
        relations = {name: one for how in plan.views for name, one in how.view.relations.items()}
        keeper = self._keeper
        sources = {one.source: keeper.sources.source(one.source) for one in relations.values()}
        with keeper.writer.staging() as folder:
            place = f"{STAGING}/{folder}"
            contents, _ = image_at(
                sources,
                relations,
                plan.vector,
                lambda relation: CollectedRows(relation, keeper.engines, keeper.files.store, place),
            )
            return contents

    @contextmanager
    def _read(
        self, wanted: Mapping[str, Relation], vector: Vector, read: Mapping[str, frozenset[str]] | None = None
    ) -> Iterator[tuple[dict[str, Any], dict[str, Position]]]:
        """Relations at a vector, as they are now in sources that it does not name; whoever watches is told of rows.
        `read` are the columns that matter."""
        keeper = self._keeper
        # What a lattice follows may lack columns that were added since; a source tells them all.
        registered = keeper.sources.relations()
        relations = {name: registered.get(name, one) for name, one in wanted.items()}
        sources = {one.source: keeper.sources.source(one.source) for one in relations.values()}
        keeper.loads.begin()
        with keeper.writer.staging() as folder:

            def collect(relation: Relation) -> CollectedRows:
                come = keeper.loads.reading(sources[relation.source], relation)
                return CollectedRows(relation, keeper.engines, keeper.files.store, f"{STAGING}/{folder}", come)

            spanning = keeper.views.spanning(tuple(sources))
            contents, at = image_at(sources, relations, vector, collect, spanning=spanning, read=read)
            for name, one in wanted.items():
                if one.columns != relations[name].columns:
                    contents[name] = contents[name].keep(one.columns)
            keeper.loads.computing()
            if self._sampler is not None:
                sampler, self._sampler = self._sampler, None
                sampler(contents)
            yield contents, at

    def _base_of(self, how: Maintenance) -> Mapping[str, View | OuterJoinView]:
        """The views that must be computed to compute a view over views, in order; or the view itself."""
        if VIEWS not in how.view.sources:
            return {how.view.name: how.view}
        kept, needed = self._keeper.kept(), list(how.view.relations)
        for name in needed:
            needed += [other for other in (kept[name].reads if name in kept else ()) if other not in needed]
        # Those that are maintained by what is stored for them read no other views.
        alone = {name: one.view for name, one in self._keeper.self_maintained.views().items() if name in needed}
        # A reader that was right before what it reads would get what that has missed twice when that is reloaded.
        halts = self._keeper.halts.all()
        if halted := [name for name in needed if name in halts or (name not in alone and name not in kept)]:
            raise UsageError(f"{how.view.name} reads {halted[0]}, which is halted", f"reload {halted[0]} first")
        return {**alone, **{name: one.how.view for name, one in kept.items() if name in needed}}


def _columns_of(views: Iterable[View | OuterJoinView]) -> dict[str, frozenset[str]] | None:
    """The columns of relations that views depend on; None if that is all of them."""
    found: dict[str, frozenset[str]] = {}
    for view in views:
        if not isinstance(view, View):
            return None
        for name, columns in columns_read(view).items():
            found[name] = found.get(name, frozenset()) | columns
    return found
