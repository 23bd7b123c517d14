"""The summary tables over one fact that are refreshed together, as the catalog has them.

    core group                                       lattice group
    feed       the changes of the fact        ──▶    tables, seen and hidden
    copies     the dimensions                        one state per refresh

Feed and copies are maintained as any view over one relation, so the core group has one order of states and one vector.
The tables have states of their own: each shows the core at one of its vectors. A fact or dimension that is itself a
view needs no feed and no copy.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from viewkeeper.lake.log.catalog import Catalog, Definition
from viewkeeper.lake.log.columns import HIDDEN, RESERVED, WEIGHT
from viewkeeper.levels import Level
from viewkeeper.planner.summaries.foreign_keys import DeclaredForeignKeys
from viewkeeper.planner.summaries.naming import SUMMARY, log_name, pending_name, waiting_group
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.refresh_mode import PROPERTY as REFRESH
from viewkeeper.sql.refresh_mode import Refresh, RefreshMode, refresh_of
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.sql.type_families import type_named
from viewkeeper.sql.view import columns_read
from viewkeeper.summary.defined import Defined, defined
from viewkeeper.summary.derivation import Determined
from viewkeeper.summary.hidden_nodes import Part, extreme_node, remade
from viewkeeper.summary.measures import OF_ALL_VALUES
from viewkeeper.summary.node import Extreme, Node
from viewkeeper.summary.plan import Lineage, changes_of
from viewkeeper.summary.star import Dimension
from viewkeeper.summary.statements import stored_types, sum_type


@dataclass(frozen=True)
class Facts:
    """Where a lattice gets its facts and dimensions from; the same in the properties of each of its tables."""

    core: str
    """the group"""
    feed: str
    """the view whose changes are those of the fact"""
    fact: str
    """the relation"""
    readable: bool
    """whether the feed is stored, and not only passed on"""
    copies: Mapping[str, str] = field(default_factory=dict)
    """the view that holds each dimension, by relation"""

    def as_json(self) -> dict[str, Any]:
        return {
            "core": self.core,
            "feed": self.feed,
            "fact": self.fact,
            "readable": self.readable,
            "copies": dict(self.copies),
        }


@dataclass(frozen=True)
class Table:
    """One stored table of a lattice."""

    definition: Definition
    node: Node
    defined: Defined
    """what it was made for"""

    @property
    def name(self) -> str:
        return self.node.name


@dataclass(frozen=True)
class Lattice:
    """The tables that are refreshed together."""

    name: str
    facts: Facts
    fact: Relation
    refresh: Refresh
    level: Level
    tables: Mapping[str, Table]
    virtual: Mapping[str, Node] = field(default_factory=dict)
    """nodes that have a summary-delta and are not stored"""
    determined: Determined | None = None
    foreign_keys: DeclaredForeignKeys | None = None

    @property
    def complete(self) -> bool:
        return self.level is Level.COMPLETE

    @property
    def deferred(self) -> bool:
        return self.refresh.mode is not RefreshMode.CONTINUOUS

    @cached_property
    def nodes(self) -> dict[str, Node]:
        return {**{name: table.node for name, table in self.tables.items()}, **self.virtual}

    @cached_property
    def lineage(self) -> Lineage:
        """All ways to derive its summary-deltas while no dimension changes."""
        return self._lineage(facts_only=True)

    @cached_property
    def moving(self) -> Lineage:
        """All ways to derive them when dimensions change too."""
        return self._lineage(facts_only=False)

    def _lineage(self, *, facts_only: bool) -> Lineage:
        return Lineage(
            list(self.nodes.values()),
            changes_of(self.fact, WEIGHT),
            core_readable=self.facts.readable,
            determined=self.determined,
            facts_only=facts_only,
            relied=self.relied,
        )

    @cached_property
    def dimensions(self) -> dict[str, Dimension]:
        """Those that its tables join, by path; each after those that it is reached through."""
        return {one.path: one for node in self.nodes.values() for one in node.dimensions}

    @cached_property
    def relied(self) -> frozenset[str]:
        """The paths of dimensions in which every fact is promised to find its row."""
        if self.foreign_keys is None:
            return frozenset()
        return self.foreign_keys.relied(self.fact, self.dimensions.values())

    @cached_property
    def loading(self) -> Lineage:
        """All ways to compute its nodes from the fact itself."""
        return Lineage(list(self.nodes.values()), changes_of(self.fact, WEIGHT), core_readable=True)

    @cached_property
    def paths(self) -> dict[str, str]:
        """The view that holds each dimension, by path."""
        return {path: self.facts.copies[one.relation.name] for path, one in self.dimensions.items()}

    @property
    def visible(self) -> dict[str, Table]:
        return {name: table for name, table in self.tables.items() if not table.node.hidden}

    def log(self, view: str) -> str:
        """The table of the noted changes of the feed, or of a dimension."""
        return log_name(self.name, view)

    def pending(self, node: str) -> str:
        """The table of a summary-delta that waits for the refresh."""
        return pending_name(node)

    @cached_property
    def input_relations(self) -> dict[str, Relation]:
        """The views that its changes come from, and the relations that they stand for."""
        dimensions = {d.relation.name: d.relation for node in self.nodes.values() for d in node.dimensions}
        held = {view: dimensions[name] for name, view in self.facts.copies.items() if name in dimensions}
        return {self.facts.feed: self.fact, **held}

    @cached_property
    def read(self) -> dict[str, dict[str, frozenset[str]]]:
        """Of the views that its changes come from, the columns of their relation that its tables depend on."""
        columns: dict[str, frozenset[str]] = {}
        for table in self.tables.values():
            for name, used in columns_read(table.defined.view.core).items():
                columns[name] = columns.get(name, frozenset()) | used
        return {view: {one.name: columns.get(one.name, frozenset())} for view, one in self.input_relations.items()}

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(self.input_relations)

    def relation_of(self, view: str) -> str:
        return self.input_relations[view].name

    @property
    def waiting_group(self) -> str:
        """The group of the summary-deltas that wait. Its states mean nothing."""
        return waiting_group(self.name)


def lattice_name(fact: str, properties: Mapping[str, str]) -> str:
    """The group of a summary of a fact: the one that it asks for, or that of all that are refreshed alike."""
    refresh = properties.get(REFRESH, RefreshMode.CONTINUOUS)
    parts = [fact, "summaries"]
    if refresh != RefreshMode.CONTINUOUS:
        parts.append(refresh)
    if properties.get("consistency") == "complete":
        parts.append("complete")
    return properties.get("group") or " ".join(parts)


def is_lattice(group: str, name: str) -> bool:
    """Whether a group is the lattice of this name, or one beside it: for columns that the first does not follow."""
    return group == name or re.fullmatch(rf"{re.escape(name)} \d+", group) is not None


def followed(facts: Facts, relations: Mapping[str, Relation], stored: Catalog) -> dict[str, Relation]:
    """The relations as a lattice has them: with the columns that its feed and its copies have. Those that a table was
    given later are for lattices that are made later."""
    found = dict(relations)
    for name, view in {**facts.copies, facts.fact: facts.feed}.items():
        if view.startswith(RESERVED) and view in stored and name in found:
            types = dict(zip(found[name].columns, found[name].types, strict=True))
            columns = tuple(column for column, _ in stored[view].columns if not column.startswith(HIDDEN))
            if types.keys() > set(columns):
                key, gone = found[name].key, found[name].gone
                found[name] = replace(
                    found[name],
                    columns=columns,
                    types=tuple(types[column] for column in columns),
                    key=key if key and set(key) <= set(columns) else None,
                    gone=tuple(column for column in gone if column in columns),
                )
    return found


def lattices_of(
    catalog: Catalog,
    relations: Mapping[str, Relation],
    determined: Determined | None,
    foreign_keys: DeclaredForeignKeys | None = None,
    *,
    stored: Catalog,
) -> dict[str, Lattice]:
    """The lattices of some groups, by their names; DefinitionError if a source has lost what one needs. `stored` has
    their feeds and copies too."""
    found: dict[str, list[Table]] = {}
    for definition in sorted(catalog.values(), key=lambda one: (one.created, one.name)):
        if SUMMARY in definition.properties:
            own = followed(Facts(**definition.properties[SUMMARY]["facts"]), relations, stored)
            found.setdefault(definition.group, []).append(table_of(definition, own))
    return {name: _lattice(name, tables, determined, foreign_keys) for name, tables in found.items()}


def table_of(definition: Definition, relations: Mapping[str, Relation]) -> Table:
    """The table that a definition stands for."""
    told = definition.properties[SUMMARY]
    made = defined_by(told, relations)
    if "part" in told:
        one = told["part"]
        part = Part(one["extreme"], tuple(one["root_of"]), one.get("whole", False))
        node = remade(made, part)
        if node.name != definition.name:
            node = replace(node, name=definition.name)
        return Table(definition, node, made)
    recompute = told["recompute"]
    extremes = tuple(
        Extreme(column, function, value, told["extremes"][column], recompute and function not in OF_ALL_VALUES)
        for column, function, value in made.extremes
        if column in told["extremes"]
    )
    return Table(definition, replace(made.node, extremes=extremes), made)


def is_stored_otherwise(table: Table) -> bool:
    """Whether a table has other columns than it would be given now: an earlier viewkeeper has stored something else for
    the same aggregates."""
    stored = {column: type_named(type) for column, type in table.definition.columns}
    sums = {column: type_named(sum_type(measure)) for measure, column in table.node.measures.items()}
    missing = not table.node.hidden and len(table.node.extremes) < len(table.defined.extremes)
    return missing or stored.keys() != stored_types(table.node).keys() or any(stored[one] != sums[one] for one in sums)


def defined_by(told: Mapping[str, Any], relations: Mapping[str, Relation]) -> Defined:
    """The summary that was defined by the SQL in a table's properties."""
    view = view_of(told["sql"], told.get("member"), relations)
    return defined(view, recompute=told["recompute"])


def view_of(sql: str, member: int | None, relations: Mapping[str, Relation]) -> SummaryView:
    """The summary, or one of the family, that SQL defines."""
    parsed = _parsed(sql, tuple(sorted(relations.items())))
    view = parsed.members[member or 0].view if isinstance(parsed, Family) else parsed
    assert isinstance(view, SummaryView)
    return view


@lru_cache(maxsize=256)
def _parsed(sql: str, relations: tuple[tuple[str, Relation], ...]) -> object:
    """Every table of a family has the SQL of the whole family, and a lattice is built again when one table changes."""
    return parse_definition(sql, dict(relations))


def _lattice(
    name: str, tables: list[Table], determined: Determined | None, foreign_keys: DeclaredForeignKeys | None
) -> Lattice:
    facts = Facts(**tables[-1].definition.properties[SUMMARY]["facts"])
    # A table that was added later may have brought dimensions that the first ones do not know; those that a table
    # brought which is dropped by now are nobody's.
    copies: dict[str, str] = {}
    for table in tables:
        copies |= table.definition.properties[SUMMARY]["facts"]["copies"]
    joined = {dimension.relation.name for table in tables for dimension in table.node.dimensions}
    facts = replace(facts, copies={name: view for name, view in copies.items() if name in joined})
    virtual = {
        extreme.node: extreme_node(table.defined, number, stored=False)
        for table in tables
        if not table.node.hidden
        for number, extreme in enumerate(table.node.extremes)
        if extreme.recomputed and extreme.node.endswith(f"_{number}")
    }
    properties = tables[0].defined.view.properties
    complete = dict(properties).get("consistency") == "complete"
    return Lattice(
        name,
        facts,
        tables[0].defined.star.fact,
        refresh_of(properties),
        Level.COMPLETE if complete else Level.STRONG,
        {table.name: table for table in tables},
        virtual,
        determined,
        foreign_keys,
    )
