"""The groups that views will be in, found before any of them is created.

    join of tables       the group that it asks for, if the views there are maintained alike; else one that shares a
                         source and is maintained alike; else its own
    stored join          the group that it asks for, if the views there are stored too, at the same level; else its own
    view over views      the group of all the views that it reads
    summary              the lattice of the group that it asks for, or of its fact; its core is the group of its feed

Each view is placed after those that were placed before it: what creating them one after the other would refuse is
refused here, with the same words.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from viewkeeper.algorithms.registry import Transactions
from viewkeeper.errors import UsageError
from viewkeeper.levels import Level
from viewkeeper.mediator.choice import choose
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.planner.altering.canonical import Parsed
from viewkeeper.planner.kept_views import Company, Kept, KeptViews, free_group
from viewkeeper.planner.overview import Overview
from viewkeeper.planner.self_maintained.automatic import REMOTE, Decision
from viewkeeper.planner.self_maintained.choosing import refuse_storage
from viewkeeper.planner.self_maintained.kept_view import SELF_MAINTAINED, self_maintained
from viewkeeper.planner.self_maintained.planned import refuse_company, supposed
from viewkeeper.planner.summaries.feeds import copy_of, facts_of, select_all
from viewkeeper.planner.summaries.lattice import Facts, lattice_name
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.planner.summaries.refused import refuse_apart, refuse_joining, refuse_unreadable, taken_group
from viewkeeper.planner.view_properties import VIEWS
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.sql.view import View
from viewkeeper.summary.defined import defined


@dataclass
class Groups:
    """Views that are there or will be, and their groups."""

    groups: dict[str, str] = field(default_factory=dict)
    """of every view, hidden ones included"""
    kept: dict[str, Kept] = field(default_factory=dict)
    """the joins that an algorithm maintains"""
    stored: dict[str, Level] = field(default_factory=dict)
    """the joins that are maintained by what is stored for them"""
    tables_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """the hidden tables of each of these"""
    lattices: dict[str, tuple[Facts, list[str]]] = field(default_factory=dict)
    """each with its summaries"""
    halted: set[str] = field(default_factory=set)
    homes: dict[str, str | None] = field(default_factory=dict)
    """of the views that are made again: their groups so far"""

    @classmethod
    def of(cls, overview: Overview) -> "Groups":
        """Those of a warehouse."""
        catalog = overview.catalog
        stored = {name: one.properties[SELF_MAINTAINED] for name, one in self_maintained(catalog).items()}
        lattices: dict[str, tuple[Facts, list[str]]] = {}
        for name, one in catalog.items():
            if (summary := one.properties.get(SUMMARY)) is not None:
                _, visible = lattices.setdefault(one.group, (Facts(**summary["facts"]), []))
                if not one.hidden:
                    visible.append(name)
        return cls(
            {name: one.group for name, one in catalog.items()},
            KeptViews(lambda: catalog, overview.sources).all(),
            {name: Level[view["level"].upper()] for name, view in stored.items()},
            {name: tuple(view["tables"]) for name, view in stored.items()},
            lattices,
            set(overview.halts),
        )

    def leave(self, name: str, *, again: bool) -> None:
        """A view is dropped, or made `again`."""
        group = self.groups.pop(name, None)
        if again and group is not None:
            in_lattice = any(name in visible for _, visible in self.lattices.values())
            self.homes[name] = None if in_lattice else group
        self.kept.pop(name, None)
        self.stored.pop(name, None)
        for table in self.tables_of.pop(name, ()):
            self.groups.pop(table, None)
            self.kept.pop(table, None)
        for lattice, (_, visible) in tuple(self.lattices.items()):
            if name in visible:
                visible.remove(name)
                if not visible:
                    del self.lattices[lattice]
                    self.groups = {view: where for view, where in self.groups.items() if where != lattice}
        self.halted.discard(name)

    def place(
        self, new: Parsed, relations: Mapping[str, Relation], transactions: Callable[[Sequence[str]], Transactions]
    ) -> None:
        """Give a view its place; the error that creating it there would end with."""
        if isinstance(new, SummaryView | Family):
            self._place_summary(new, relations, transactions)
            return
        storage = refuse_storage(new)
        if storage == REMOTE:
            assert isinstance(new, View)
            self._place_join(new, transactions)
        elif storage is not None:
            self._place_stored(new, storage)
        else:
            # How it is maintained depends on how large its relations are.
            asked = dict(new.properties).get("group")
            self.groups[new.name] = asked or free_group(new.name, set(self.groups.values()))

    def _place_join(self, view: View, transactions: Callable[[Sequence[str]], Transactions]) -> None:
        over_views = VIEWS in view.sources
        if halted := [name for name in view.relations if name in self.halted]:
            raise UsageError(f"{view.name} reads {halted[0]}, which is halted", f"reload {halted[0]} first")
        how = Maintenance(view, "batched-sweep") if over_views else choose(view, transactions(view.sources))
        self._keep(view.name, how, self._company().group_for(view, how))

    def _keep(self, name: str, how: Maintenance, group: str) -> None:
        self.kept[name] = Kept(how, group)
        self.groups[name] = group

    def _company(self) -> Company:
        return Company(self.kept, self.groups, {self.groups[name] for name in self.stored}, self.homes)

    def _place_stored(self, view: View | OuterJoinView, storage: str) -> None:
        kept = supposed(view, Decision(storage, ()))
        if "group" not in dict(view.properties):
            kept = replace(kept, group=free_group(view.name, set(self.groups.values())))
        others = {name: level for name, level in self.stored.items() if self.groups[name] == kept.group}
        mine = {*others, *(table for name in others for table in self.tables_of[name])}
        strangers = sorted(name for name, group in self.groups.items() if group == kept.group and name not in mine)
        refuse_company(kept, strangers, others)
        self.stored[view.name], self.tables_of[view.name] = kept.level, kept.all_tables
        self.groups |= dict.fromkeys(kept.all_tables, kept.group)

    def _place_summary(
        self,
        new: SummaryView | Family,
        relations: Mapping[str, Relation],
        transactions: Callable[[Sequence[str]], Transactions],
    ) -> None:
        members = [member.view for member in new.members] if isinstance(new, Family) else [new]
        properties = dict(new.properties)
        stars = [defined(view, recompute=properties.get("minmax") == "recompute").star for view in members]
        fact, name = stars[0].fact, lattice_name(stars[0].fact.name, properties)
        if name in self.lattices:
            facts, visible = self.lattices[name]
            refuse_joining(name, facts, visible, new, fact)
        elif name in self.groups.values():
            raise taken_group(name, fact)
        else:
            facts = facts_of(name, fact, properties, self.groups[fact.name] if fact.source == VIEWS else None)
            visible = []
        dimensions = {one.relation.name: one.relation for star in stars for one in star.dimensions}
        for dimension in dimensions.values():
            if dimension.source == VIEWS:
                refuse_apart(new, dimension.name, self.groups[dimension.name], facts.core)
        refuse_unreadable(new, readable=facts.readable)
        needed = {facts.feed: fact, **{copy_of(name, one): one for one in dimensions.values()}}
        for view, relation in needed.items():
            if view not in self.groups:
                self._keep(view, self._internal(view, relation, relations, transactions, facts.core), facts.core)
        self.lattices[name] = facts, [*visible, *(view.name for view in members)]
        self.groups |= dict.fromkeys((view.name for view in members), name)

    def _internal(
        self,
        name: str,
        relation: Relation,
        relations: Mapping[str, Relation],
        transactions: Callable[[Sequence[str]], Transactions],
        group: str,
    ) -> Maintenance:
        """How a view of viewkeeper's own is maintained, with the others of its group."""
        before = next((one.how.algorithm for one in self.kept.values() if one.group == group), None)
        view = parse_view(select_all(relation), relations, name=name)
        return choose(view, transactions(view.sources), before=before)
