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
from viewkeeper.errors import UnsupportedClause, UsageError
from viewkeeper.lake.log.catalog import Catalog
from viewkeeper.levels import Level
from viewkeeper.mediator.choice import choose
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.planner.canonical import Parsed
from viewkeeper.planner.composed.composed_view import ComposedView
from viewkeeper.planner.composed.naming import COMPOSED, in_own_group
from viewkeeper.planner.kept_views import (
    Company,
    Kept,
    KeptViews,
    free_group,
    one_group,
    refuse_loaded,
    refuse_over_views,
)
from viewkeeper.planner.overview import Overview
from viewkeeper.planner.self_maintained.automatic import REMOTE, Decision
from viewkeeper.planner.self_maintained.choosing import refuse_storage
from viewkeeper.planner.self_maintained.kept_view import SELF_MAINTAINED, self_maintained
from viewkeeper.planner.self_maintained.planned import refuse_company, supposed
from viewkeeper.planner.summaries.feeds import select_all
from viewkeeper.planner.summaries.lattice import Facts
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.planner.summary_places import place_summary
from viewkeeper.planner.view_plan import PlannedSummary, QueriedJoin, StoredJoin, ViewPlan
from viewkeeper.planner.view_properties import LEVEL, VIEWS
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.sql.view import View


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
    """of the views that are recreated: their groups so far"""
    catalog: Catalog = field(default_factory=dict)
    """what is stored"""

    @classmethod
    def of(
        cls, overview: Overview, kept: Mapping[str, Kept] | None = None, homes: Mapping[str, str | None] | None = None
    ) -> "Groups":
        """Those of a warehouse; `kept` are its joins, if they are known already."""
        catalog = overview.catalog
        stored = {name: one.properties[SELF_MAINTAINED] for name, one in self_maintained(catalog).items()}
        composed = {name: one for name, one in catalog.items() if COMPOSED in one.properties}
        alone = {name: one.properties[LEVEL] for name, one in composed.items() if in_own_group(one)}
        levels = {**{name: view["level"] for name, view in stored.items()}, **alone}
        tables = {name: one.properties[COMPOSED]["tables"] for name, one in composed.items()}
        tables |= {name: view["tables"] for name, view in stored.items()}
        lattices: dict[str, tuple[Facts, list[str]]] = {}
        for name, one in catalog.items():
            if (summary := one.properties.get(SUMMARY)) is not None:
                _, visible = lattices.setdefault(one.group, (Facts(**summary["facts"]), []))
                if not one.hidden:
                    visible.append(name)
        return cls(
            {name: one.group for name, one in catalog.items()},
            dict(KeptViews(lambda: catalog, overview.sources).all() if kept is None else kept),
            {name: Level[level.upper()] for name, level in levels.items()},
            {name: tuple(some) for name, some in tables.items()},
            lattices,
            set(overview.halts),
            dict(homes or {}),
            catalog,
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
        self,
        new: Parsed,
        relations: Mapping[str, Relation],
        transactions: Callable[[Sequence[str]], Transactions],
        decision: Decision | None = None,
    ) -> ViewPlan | None:
        """Give a view its place; the error that creating it there would end with.

        `decision` is on its storage. Without one it is taken from the properties; None is returned if they leave it
        to the sizes of the relations.
        """
        if isinstance(new, SummaryView | Family):
            return self._place_summary(new, relations, transactions)
        storage = refuse_storage(new)
        if decision is None and storage is None:
            asked = dict(new.properties).get("group")
            self.groups[new.name] = asked or free_group(new.name, set(self.groups.values()))
            return None
        decision = decision or Decision(str(storage), ())
        if decision.storage == REMOTE:
            assert isinstance(new, View)
            return self._place_join(new, transactions, decision)
        return self._place_stored(new, decision)

    def _place_join(
        self, view: View, transactions: Callable[[Sequence[str]], Transactions], decision: Decision
    ) -> QueriedJoin:
        over_views = VIEWS in view.sources
        if over_views:
            refuse_over_views(view)
            refuse_loaded(view.relations, self.catalog)
        how = Maintenance(view, "batched-sweep") if over_views else choose(view, transactions(view.sources))
        group = self._company().group_for(view, how)
        if halted := [name for name in view.relations if name in self.halted]:
            raise UsageError(f"{view.name} reads {halted[0]}, which is halted", f"reload {halted[0]} first")
        self._keep(view.name, how, group)
        return QueriedJoin(view, group, how, decision.reasons)

    def _keep(self, name: str, how: Maintenance, group: str) -> None:
        self.kept[name] = Kept(how, group)
        self.groups[name] = group

    def _company(self) -> Company:
        return Company(self.kept, self.groups, {self.groups[name] for name in self.stored}, self.homes)

    def _place_stored(self, view: View | OuterJoinView, decision: Decision) -> StoredJoin:
        kept = supposed(view, decision)
        if "group" not in dict(view.properties):
            kept = replace(kept, group=free_group(view.name, set(self.groups.values())))
        others = {name: level for name, level in self.stored.items() if self.groups[name] == kept.group}
        mine = {*others, *(table for name in others for table in self.tables_of[name])}
        strangers = sorted(name for name, group in self.groups.items() if group == kept.group and name not in mine)
        refuse_company(kept, strangers, others)
        self.stored[view.name], self.tables_of[view.name] = kept.level, kept.all_tables
        self.groups |= dict.fromkeys(kept.all_tables, kept.group)
        return StoredJoin(view, kept, decision.reasons)

    def place_composed(self, view: ComposedView) -> ComposedView:
        """The view in its group: that of the views that it reads, else the one that it asks for, else its own."""
        if view.views:
            group = self._group_read(view)
        elif "group" in dict(view.properties):
            group = view.group
            others = {name: level for name, level in self.stored.items() if self.groups[name] == group}
            mine = {*others, *(table for name in others for table in self.tables_of[name])}
            strangers = sorted(name for name, where in self.groups.items() if where == group and name not in mine)
            refuse_company(view, strangers, others)
        else:
            home = self.homes.get(view.name)
            group = home if home is not None and home not in self.groups.values() else self._free(view.name)
        view = replace(view, group=group)
        self.groups |= dict.fromkeys(view.all_tables, group)
        self.tables_of[view.name] = view.all_tables
        if not view.views:
            self.stored[view.name] = view.level
        return view

    def _free(self, name: str) -> str:
        return free_group(name, set(self.groups.values()))

    def _group_read(self, view: ComposedView) -> str:
        """The group of the views that a view reads."""
        refuse_loaded(view.views, self.catalog)
        if halted := [name for name in view.views if name in self.halted]:
            raise UsageError(f"{view.name} reads {halted[0]}, which is halted", f"reload {halted[0]} first")
        if "group" in dict(view.properties):
            raise UnsupportedClause(
                f"{view.name} follows the views that it reads, so the property group does not apply to it",
                "leave it out, or set it at those",
            )
        return one_group(view.name, {self.groups[name] for name in view.views})

    def _place_summary(
        self,
        new: SummaryView | Family,
        relations: Mapping[str, Relation],
        transactions: Callable[[Sequence[str]], Transactions],
    ) -> PlannedSummary:
        plan = place_summary(
            new, relations, self.catalog, self.lattices, self.groups.__getitem__, set(self.groups.values())
        )
        facts = plan.facts
        for name, view in {facts.fact: facts.feed, **facts.copies}.items():
            if view not in self.groups:
                how = self._internal(view, plan.relations[name], plan.relations, transactions, facts.core)
                self._keep(view, how, facts.core)
        _, visible = self.lattices.get(plan.group, (facts, ()))
        names = [view.name for view in plan.views]
        self.lattices[plan.group] = facts, [*visible, *names]
        self.groups |= dict.fromkeys(names, plan.group)
        return plan

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
