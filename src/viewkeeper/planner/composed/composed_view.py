"""A view that is a plan of operators, as the catalog has it.

    feeds     hidden views over one table of a source each, of which only the changes are passed on
    tables    what the operators look things up in, hidden
    view      the rows of the last operator

All are in one group, so every state of the view is one of its sources.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import Columns
from viewkeeper.levels import Level
from viewkeeper.operators.node import StateTable
from viewkeeper.operators.plan import NodePlan
from viewkeeper.planner.composed.checked_texts import check_texts
from viewkeeper.planner.composed.naming import COMPOSED, OPERATORS
from viewkeeper.planner.summaries.naming import slug
from viewkeeper.planner.view_properties import ALGORITHM, KEY, LEVEL, SOURCES, VIEWS
from viewkeeper.sql.catalyst.stored_query import from_json, to_json
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.tree import Query
from viewkeeper.sql.view import View
from viewkeeper.summary.statements import quoted


@dataclass(frozen=True)
class ComposedView:
    """One view."""

    name: str
    sql: str
    properties: tuple[tuple[str, str], ...]
    query: Query
    group: str
    level: Level
    sources: tuple[str, ...]
    """of the tables that it reads"""

    @cached_property
    def plan(self) -> NodePlan:
        return NodePlan.of(self.query)

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """What it reads: tables of sources, and views."""
        return tuple(dict.fromkeys(scan.relation for scan in self.plan.scans))

    @property
    def views(self) -> tuple[str, ...]:
        """The views that it reads."""
        return tuple(name for name in self.relations if "." not in name)

    @cached_property
    def feeds(self) -> dict[str, str]:
        """The views that pass on the changes of tables of sources, and these tables."""
        tables = [name for name in self.relations if "." in name]
        return {f"_vk_feed_{slug(self.name)}_{number}": name for number, name in enumerate(tables)}

    def feed_of(self, relation: str) -> str:
        """The view that passes on the changes of a relation: itself, if it is one."""
        return next((feed for feed, table in self.feeds.items() if table == relation), relation)

    def fields(self, relation: str) -> tuple[str, ...]:
        """The columns of a relation that are read."""
        scans = [scan for scan in self.plan.scans if scan.relation == relation]
        return tuple(dict.fromkeys(field for scan in scans for field in scan.fields))

    @cached_property
    def tables(self) -> dict[str, StateTable]:
        """The stored tables of the operators, by their names in the warehouse."""
        return {self.table_of(name): table for name, (table, _) in self.plan.tables.items()}

    def table_of(self, name: str) -> str:
        return f"_vk_{slug(self.name)}_{name}"

    @property
    def all_tables(self) -> tuple[str, ...]:
        """Everything that is stored for it under a name of its own."""
        return (*self.feeds, *self.tables, self.name)

    @property
    def columns(self) -> Columns:
        return tuple(
            (name, column.type.upper()) for name, column in zip(self.query.names, self.query.root.columns, strict=True)
        )

    def as_properties(self) -> dict[str, Any]:
        """What the catalog says of it."""
        return {
            **dict(self.properties),
            COMPOSED: {
                "sql": self.sql,
                "query": to_json(self.query),
                "reads": list(self.views),
                "tables": list(self.all_tables),
            },
            ALGORITHM: OPERATORS,
            LEVEL: str(self.level),
            SOURCES: list(self.sources),
            KEY: None,
        }

    def feed(self, name: str, relations: Mapping[str, Relation]) -> View:
        """The view that passes on the changes of a table: of the columns that are read."""
        table = self.feeds[name]
        columns = ", ".join(map(quoted, self.fields(table)))
        return parse_view(f"SELECT {columns} FROM {'.'.join(map(quoted, table.split('.')))}", relations, name=name)


def columns_of(table: StateTable) -> Columns:
    """Of a stored table."""
    return tuple((column.name, column.type.upper()) for column in table.columns)


def composed_view(definition: Definition) -> ComposedView:
    """The view that a definition stands for."""
    stored, properties = definition.properties[COMPOSED], definition.properties
    known = {COMPOSED, ALGORITHM, LEVEL, SOURCES, KEY}
    query = from_json(stored["query"])
    check_texts(query)
    return ComposedView(
        definition.name,
        stored["sql"],
        tuple((name, value) for name, value in properties.items() if name not in known),
        query,
        definition.group,
        Level[properties[LEVEL].upper()],
        tuple(properties[SOURCES]),
    )


def sources_of(query: Query, relations: Mapping[str, Relation]) -> tuple[str, ...]:
    """The sources of what a query reads."""
    scans = NodePlan.of(query).scans
    return tuple(dict.fromkeys(relations[s.relation].source for s in scans if relations[s.relation].source != VIEWS))
