"""A new summary: what must be stored for it, computed and created in one commit.

feed and copies     if the lattice has none yet for its fact and dimensions: loaded from the sources, at one vector
hidden nodes        as far as no table that is there serves
the table           from the cheapest table that is there, else from the fact
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.lake.commit import Commit
from viewkeeper.lake.log.catalog import Layout
from viewkeeper.lake.log.columns import RESERVED, WEIGHT
from viewkeeper.levels import Level
from viewkeeper.maintenance.contents import MOST_REWRITTEN
from viewkeeper.maintenance.images import images_of
from viewkeeper.maintenance.joins import create_internal
from viewkeeper.maintenance.summaries.first_content import Base, FirstContent, NewTable, first_contents
from viewkeeper.maintenance.summaries.lattices import Summaries
from viewkeeper.messages import Vector
from viewkeeper.planner.summaries.feeds import select_all
from viewkeeper.planner.summaries.lattice import Facts, Lattice
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.planner.view_plan import PlannedSummary
from viewkeeper.planner.view_properties import ALGORITHM, LEVEL, SOURCES, VIEWS
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.refresh_mode import RefreshMode, refresh_of
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import Family, Member, SummaryView
from viewkeeper.summary.defined import defined
from viewkeeper.summary.derivation import Derivation
from viewkeeper.summary.hidden_nodes import with_hidden
from viewkeeper.summary.node import Node
from viewkeeper.summary.plan import CHANGES, Lineage, changes_of


def create_summary(summaries: Summaries, plan: PlannedSummary) -> None:
    """Create a summary, or a family of them."""
    Creation(summaries, plan.parsed, plan.relations, plan.group, plan.facts).run()


@dataclass
class Creation:
    """One CREATE of a summary or of a family."""

    summaries: Summaries
    parsed: SummaryView | Family
    relations: Mapping[str, Relation]
    name: str
    """of the lattice"""
    facts: Facts
    tables: list[NewTable] = field(default_factory=list)

    def run(self) -> None:
        """Create everything."""
        parsed, facts = self.parsed, self.facts
        members: Sequence[tuple[SummaryView, int | None, Member | None]] = (
            [(member.view, place, member) for place, member in enumerate(parsed.members)]
            if isinstance(parsed, Family)
            else [(parsed, None, None)]
        )
        recompute = dict(parsed.properties).get("minmax") == "recompute"
        made = [(defined(view, recompute=recompute), place, member) for view, place, member in members]
        lattice = self.summaries.lattices().get(self.name)
        if lattice is not None and lattice.deferred:
            self.summaries.refresh(lattice)
        stored = list(lattice.nodes.values()) if lattice else []
        for one, place, member in made:
            names = {*self.summaries.catalog, *(table.node.name for table in self.tables)}
            whole = with_hidden(one, stored, core_readable=facts.readable, recompute=recompute, taken=names)
            new = [NewTable(node, one, part, place) for node, part in whole.hidden]
            new.append(NewTable(whole.node, one, None, place, member.padded if member else ()))
            self.tables += new
            stored += [table.node for table in new]
        self._store(facts, lattice, stored)

    # --- storing it ---

    def _store(self, facts: Facts, lattice: Lattice | None, nodes: Sequence[Node]) -> None:
        summaries = self.summaries
        fact = self.tables[0].made_for.star.fact
        edges = self._edges(nodes, fact)
        new = {
            relation: view
            for relation, view in {fact.name: facts.feed, **facts.copies}.items()
            if view not in summaries.catalog
        }
        needed = {edge.above.name for edge in edges} | {e.node for table in self.tables for e in table.node.extremes}
        with ExitStack() as stack:
            wanted = self._to_be_read(fact, facts, new, from_fact=CHANGES in needed)
            contents, at = stack.enter_context(images_of(summaries.context, wanted, facts.core))
            base = Base(summaries, lattice, facts, fact, self.relations, contents)
            base.check_hierarchies()
            nodes_by_name = {node.name: node for node in nodes}
            first = stack.enter_context(first_contents(base, edges, needed, nodes_by_name, self.tables))
            with summaries.context.new_commit() as commit:
                self._create_base(commit, facts, new, contents, at)
                self._move_lattice(commit, at)
                for table in self.tables:
                    if table.node.stored:
                        self._create_table(commit, table, first[table.node.name], facts, at)
                if refresh_of(self.parsed.properties).mode is not RefreshMode.CONTINUOUS:
                    self._create_waiting(commit, facts, lattice, first)

    def _to_be_read(
        self, fact: Relation, facts: Facts, new: Mapping[str, str], *, from_fact: bool
    ) -> dict[str, Relation]:
        """The relations that have to be read at their sources."""
        wanted = {name: self.relations[name] for name in new if name != fact.name}
        stored = facts.readable and fact.name not in new
        if fact.source != VIEWS and ((from_fact and not stored) or (facts.readable and fact.name in new)):
            wanted[fact.name] = fact
        return wanted

    def _edges(self, nodes: Sequence[Node], fact: Relation) -> list[Derivation]:
        """How the new tables are computed now: from tables that are there if one will do."""
        sizes = self.summaries.sizes()
        new = {table.node.name for table in self.tables}
        # What another table has only a summary-delta of has no rows to begin with.
        there = [node for node in nodes if node.stored or node.name in new]
        lineage = Lineage(there, changes_of(fact, WEIGHT), core_readable=True)
        plan = lineage.plan(lambda name: 1e18 if name == CHANGES else float(sizes.get(name, 1e9)))
        return [edge for edge in plan.edges if edge.below.name in new]

    def _create_base(
        self, commit: Commit, facts: Facts, new: Mapping[str, str], contents: Mapping[str, Any], at: Vector
    ) -> None:
        there = self.summaries.writer.last.groups.get(facts.core)
        if there is not None and (moved := {n: place for n, place in at.items() if there.vector.get(n) != place}):
            commit.state(facts.core, moved)
        for name, view in new.items():
            select = parse_view(select_all(self.relations[name]), self.relations, name=view)
            rows = None if name == facts.fact and not facts.readable else contents[name]
            create_internal(self.summaries.context, commit, select, facts.core, rows, at)

    def _move_lattice(self, commit: Commit, at: Vector) -> None:
        """A lattice that is there already goes to the vector of its core, if that has moved on."""
        there = self.summaries.writer.last.groups.get(self.name)
        if there is not None and (moved := {n: place for n, place in at.items() if there.vector.get(n) != place}):
            commit.state(self.name, moved, resume=there.resume)

    def _create_table(self, commit: Commit, table: NewTable, first: FirstContent, facts: Facts, at: Vector) -> None:
        commit.create(
            table.node.name,
            [column for column in first.columns if not column[0].startswith(RESERVED)],
            hidden={name: type for name, type in first.columns if name.startswith(RESERVED)},
            rows=first.rows,
            group=self.name,
            vector=at,
            layout=Layout.REWRITTEN if table.part is None and first.size <= MOST_REWRITTEN else Layout.APPENDED,
            distinct=True,
            retention=dict(self.parsed.properties).get("retention"),
            properties=self._told(table, first, facts),
        )

    def _told(self, table: NewTable, first: FirstContent, facts: Facts) -> dict[str, Any]:
        """The properties of a table."""
        properties, made = dict(self.parsed.properties), table.made_for
        told: dict[str, Any] = {
            "sql": self.parsed.sql,
            "recompute": properties.get("minmax") == "recompute",
            "facts": facts.as_json(),
        }
        if table.member is not None:
            told["member"] = table.member
        if table.part is not None:
            told["part"] = {"extreme": table.part.extreme, "root_of": list(table.part.root_of)}
            return {SUMMARY: told}
        told["extremes"] = {extreme.column: extreme.node for extreme in table.node.extremes}
        relations = [self.relations[name] for name in (facts.fact, *facts.copies)]
        level = Level.COMPLETE if properties.get("consistency") == "complete" else Level.STRONG
        return {
            **properties,
            SUMMARY: told,
            ALGORITHM: "summary-delta",
            LEVEL: str(level),
            SOURCES: sorted({relation.source for relation in relations} - {VIEWS}),
            "shown": [[name, sql, first.shown[name]] for name, sql in made.shown],
            "having": made.having,
            **({"family": made.view.family, "padded": [list(p) for p in table.padded]} if made.view.family else {}),
        }

    def _create_waiting(
        self, commit: Commit, facts: Facts, lattice: Lattice | None, first: Mapping[str, FirstContent]
    ) -> None:
        """Tables for what waits for a refresh."""
        waiting = self.summaries.waiting
        views = {facts.feed: self.relations[facts.fact]}
        views |= {view: self.relations[name] for name, view in facts.copies.items()}
        known = lattice.inputs if lattice is not None else ()
        waiting.create_logs(
            commit, self.name, facts.core, {view: one for view, one in views.items() if view not in known}
        )
        deltas = {}
        for table in self.tables:
            types = dict(first[table.node.name].columns)
            deltas[table.node.name] = tuple((column, types[column]) for column in table.node.columns)
        waiting.create_deltas(commit, self.name, deltas)
