"""The joins of a warehouse: how each is maintained and in which group, and where a new one would go.

group of a new view     the one that it asks for; else one that shares a source and is maintained alike; else a new one
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from viewkeeper.errors import DefinitionError, UnsupportedClause, ViewkeeperError
from viewkeeper.lake.log.catalog import Catalog, Definition
from viewkeeper.lake.log.columns import HIDDEN, RESERVED
from viewkeeper.mediator.choice import choose
from viewkeeper.mediator.group_plan import because_it_reads
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.planner.composed.naming import COMPOSED, in_own_group
from viewkeeper.planner.known_relations import relations_of
from viewkeeper.planner.known_sources import KnownSources
from viewkeeper.planner.self_maintained.kept_view import SELF_MAINTAINED
from viewkeeper.planner.view_properties import ALGORITHM, SOURCES, SQL, VIEWS
from viewkeeper.sql.definition import GLOBAL_TIMEOUT, OF_ALGORITHMS
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import View


@dataclass(frozen=True)
class Kept:
    """A view that is maintained: how, and in which group."""

    how: Maintenance
    group: str

    @property
    def reads(self) -> tuple[str, ...]:
        """The views that it is over; none if it is over sources."""
        return tuple(name for name, one in self.how.view.relations.items() if one.source == VIEWS)

    @property
    def hidden(self) -> set[str]:
        """The columns that are stored and not shown."""
        return {column.name for column in self.how.stored.output if column.name.startswith(HIDDEN)}

    @property
    def sources(self) -> tuple[str, ...]:
        return () if self.reads else self.how.view.sources


@dataclass
class KeptViews:
    """The joins that a catalog has, as it is whenever they are looked at."""

    now: Callable[[], Catalog]
    sources: KnownSources
    unfit: Callable[[Definition, str], None] = lambda view, reason: None
    """told of a view that its sources no longer allow"""
    homes: Mapping[str, str | None] = field(default_factory=dict)
    """the groups of views that are recreated: each stays in its own, if it can, and joins no other by itself, which
    would skip numbers for its states; None if it was a summary, whose group is no place for others"""
    _parsed: dict[str, tuple[str, Mapping[str, Relation], View]] = field(default_factory=dict)
    """each view as it was last parsed, behind what it was parsed from: binding takes 10 ms, and few change"""

    @property
    def catalog(self) -> Catalog:
        return self.now()

    def relations(self) -> dict[str, Relation]:
        """What a view can be over: the relations of the sources, and the views that are stored."""
        return relations_of(self.catalog, self.sources.relations())

    def all(self) -> dict[str, Kept]:
        """Every view that was created over sources or other views, each after those that it reads.

        One that its sources no longer allow, because a column that it names is gone, or a key by which its rows are
        found is another one, is left out.
        """
        kept: dict[str, Kept] = {}
        unfit: dict[str, str] = {}
        relations = self.relations()
        for name, view in sorted(self.catalog.items(), key=lambda entry: entry[1].created):
            if SQL in view.properties:
                try:
                    one = self.one(view, relations)
                    reason = self._why_unfit(one, view, unfit)
                except ViewkeeperError as error:
                    reason = error.detail
                if reason is None:
                    kept[name] = one
                else:
                    unfit[name] = reason
                    self.unfit(view, reason)
        return kept

    @staticmethod
    def _why_unfit(one: Kept, view: Definition, unfit: Mapping[str, str]) -> str | None:
        for read in one.reads:
            if read in unfit:
                return because_it_reads(read, unfit[read])
        if one.hidden != {column for column in view.names if column.startswith(HIDDEN)}:
            return "the keys of what it reads are not those that its rows were stored with"
        return None

    def one(self, view: Definition, relations: Mapping[str, Relation]) -> Kept:
        """A view that is stored."""
        if view.name.startswith(RESERVED):
            # What is passed on to others may have columns that are gone: those that read them are halted.
            relations = {name: replace(one, gone=()) if one.gone else one for name, one in relations.items()}
        sql, before = view.properties[SQL], self._parsed.get(view.name)
        if before is None or before[:2] != (sql, relations):
            self._parsed[view.name] = before = sql, relations, parse_view(sql, relations, name=view.name)
        parsed = before[2]
        sources = self._sources_of_group(view.group) if view.name.startswith(RESERVED) else ()
        return Kept(self.how(parsed, view.properties.get(ALGORITHM), sources), view.group)

    def _sources_of_group(self, group: str) -> tuple[str, ...]:
        """Feeds and copies are over one source each; a transaction may span those of all of them."""
        views = [view for view in self.catalog.values() if view.group == group]
        return tuple(dict.fromkeys(source for view in views for source in view.properties.get(SOURCES, ())))

    # --- how ---

    def how(self, view: View, before: str | None = None, together_with: Sequence[str] = ()) -> Maintenance:
        """How a view is maintained, or would be; `before` is the algorithm that has maintained it."""
        if VIEWS in view.sources:
            return self._over_views(view)
        sources = tuple(dict.fromkeys([*view.sources, *together_with]))
        return choose(view, self.sources.transactions(sources), before=before)

    def spanning(self, sources: Sequence[str]) -> list[str]:
        """Those of these sources whose transactions may be parts of global ones."""
        return [name for name in sources if self.sources.definition(name).global_transactions]

    def _over_views(self, view: View) -> Maintenance:
        refuse_over_views(view)
        refuse_loaded(view.relations, self.catalog)
        return Maintenance(view, "batched-sweep")

    # --- where ---

    def group_for(self, view: View, how: Maintenance) -> str:
        """The group of a new view."""
        return self.company().group_for(view, how)

    def free_group(self, name: str) -> str:
        """A group for a view alone: called as it is, and with a number if views that it left behind have that."""
        return free_group(name, {view.group for view in self.catalog.values()})

    def company(self) -> "Company":
        """The views that are there, and where they are."""
        return Company(
            self.all(),
            {name: view.group for name, view in self.catalog.items()},
            {one.group for one in self.catalog.values() if SELF_MAINTAINED in one.properties or in_own_group(one)},
            self.homes,
        )


@dataclass(frozen=True)
class Company:
    """Views with their groups: what a new one shares a group with, or must not."""

    kept: Mapping[str, Kept]
    groups: Mapping[str, str]
    """of every view, by its name"""
    self_maintaining: Collection[str]
    """groups whose views are maintained by what is stored for them"""
    homes: Mapping[str, str | None] = field(default_factory=dict)

    def group_for(self, view: View, how: Maintenance) -> str:
        """The group of a new view."""
        if VIEWS in view.sources:
            return self._group_of_views(view)
        asked = dict(view.properties).get("group")
        if asked is not None:
            self._check_group(asked, view, how)
            return asked
        if view.name in self.homes:
            home = self.homes[view.name]
            others = {one.how.algorithm for one in self.kept.values() if one.group == home}
            fits = home not in self.self_maintaining and others <= {how.algorithm}
            return home if home is not None and fits else self._free_group(view.name)
        alike = {
            one.group
            for one in self.kept.values()
            if (one.how.algorithm, one.how.options) == (how.algorithm, how.options)
            and set(one.sources) & set(view.sources)
            and "group" not in dict(one.how.view.properties)
            and _timeout(one.how.view) == _timeout(view)
            and one.group not in self.self_maintaining
        }
        # Two groups have two vectors, and stay two: a view that would connect them has a group of its own.
        return alike.pop() if len(alike) == 1 else self._free_group(view.name)

    def _group_of_views(self, view: View) -> str:
        return one_group(view.name, {self.groups[name] for name in view.relations})

    def _check_group(self, asked: str, view: View, how: Maintenance) -> None:
        if asked in self.self_maintaining:
            raise DefinitionError(
                f"the views of group {asked} are maintained by what is stored for them, and {view.name} is not",
                "give it a group of its own, or the same storage",
            )
        others = {one.how.algorithm for one in self.kept.values() if one.group == asked}
        if others - {how.algorithm}:
            raise DefinitionError(
                f"the views of group {asked} are maintained by {', '.join(others)}, and {view.name} by {how.algorithm}",
                "give it a group of its own, or the same algorithm",
            )

    def _free_group(self, name: str) -> str:
        return free_group(name, set(self.groups.values()))


def one_group(view: str, groups: set[str]) -> str:
    """The group of all views that a view reads; UnsupportedClause if they are in several."""
    if len(groups) > 1:
        raise UnsupportedClause(
            f"the views that {view} reads are in the groups {', '.join(sorted(groups))}, with states of their own",
            "create them with the same TBLPROPERTIES('group' = ...)",
        )
    (group,) = groups
    return group


def free_group(name: str, taken: Collection[str]) -> str:
    """A group for a view alone: called as it is, and with a number if others have that."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name} {number}"
    return free


def _timeout(view: View) -> str | None:
    """Views that share their states give up waiting together."""
    return dict(view.properties).get(GLOBAL_TIMEOUT)


def refuse_over_views(view: View) -> None:
    """UnsupportedClause for a view over views that cannot be one, whichever these are."""
    if len(view.sources) > 1:
        tables = [name for name, relation in view.relations.items() if relation.source != VIEWS]
        raise UnsupportedClause(
            f"{view.name} reads views and tables of sources at once",
            f"make a view of {', '.join(tables)} first, and join the views",
        )
    for name in ("consistency", "algorithm", "group", GLOBAL_TIMEOUT, *OF_ALGORITHMS):
        if name in dict(view.properties):
            raise UnsupportedClause(
                f"{view.name} follows the views that it reads, so the property {name} does not apply to it",
                "leave it out, or set it at those",
            )


def refuse_loaded(reads: Iterable[str], stored: Catalog) -> None:
    """UnsupportedClause for a view over one that a program loads: it has no group that could be followed."""
    for name in reads:
        if name in stored and not stored[name].properties.keys() & {SQL, SELF_MAINTAINED, COMPOSED}:
            raise UnsupportedClause(
                f"{name} is maintained by commits of its own, and only a summary can follow those",
                "aggregate it: SELECT ... GROUP BY ...; or keep the join of the views outside",
            )
