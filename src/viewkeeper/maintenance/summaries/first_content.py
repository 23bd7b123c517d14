"""The first content of new summary tables: computed on the driver if it comes from little, else by Spark."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from viewkeeper.lake.log.columns import RESERVED, WEIGHT, Columns, columns_of
from viewkeeper.maintenance.contents import SMALL
from viewkeeper.maintenance.summaries.first_rows import column_types, first_rows, is_known
from viewkeeper.maintenance.summaries.in_spark import with_weight
from viewkeeper.maintenance.summaries.lattices import Summaries
from viewkeeper.maintenance.summaries.on_driver import linear_table
from viewkeeper.maintenance.summaries.recomputing import stored_columns
from viewkeeper.maintenance.typed_rows import weighted_frame, weighted_table
from viewkeeper.planner.summaries.lattice import Facts, Lattice
from viewkeeper.sql.relation import Relation
from viewkeeper.summary.defined import Defined
from viewkeeper.summary.derivation import Derivation
from viewkeeper.summary.hidden_nodes import Part
from viewkeeper.summary.node import Node, rest_column
from viewkeeper.summary.plan import CHANGES
from viewkeeper.summary.propagate_arrow import ArrowInputs, evaluable
from viewkeeper.summary.statements import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class NewTable:
    """A table that is to be created."""

    node: Node
    made_for: Defined
    part: Part | None
    """what it is to the table that it is made for; None: that table itself"""
    member: int | None
    padded: tuple[tuple[str, str], ...] = ()

    def ordered(self, names: Sequence[str]) -> list[str]:
        """Its columns as the definition has them, then those that readers do not see."""
        visible = [name for name in (self.made_for.visible if self.part is None else ()) if name in names]
        others = [name for name in names if name not in visible]
        return [*visible, *sorted(others, key=lambda name: name.startswith(RESERVED))]


@dataclass(frozen=True)
class FirstContent:
    """The columns of a table, its first rows, and the types of what readers see of it."""

    columns: Columns
    rows: Any
    size: int
    shown: Mapping[str, str]


@dataclass(frozen=True)
class Base:
    """What new tables are computed from: facts and dimensions as they were read, tables that are there."""

    summaries: Summaries
    lattice: Lattice | None
    facts: Facts
    fact: Relation
    relations: Mapping[str, Relation]
    contents: Mapping[str, Any]
    """what was read at the sources"""

    def few(self, needed: set[str]) -> bool:
        """Whether all of it fits on the driver."""
        sizes = self.summaries.sizes()
        stored = [self.facts.feed if name == CHANGES else name for name in needed if name not in self.contents]
        stored += [view for name, view in self.facts.copies.items() if name not in self.contents]
        in_memory = all(getattr(zset, "in_memory", False) for zset in self.contents.values())
        return in_memory and all(sizes.get(name, 0) <= SMALL for name in stored)

    def fact_table(self) -> pa.Table:
        if self.fact.name in self.contents:
            return weighted_table(self.contents[self.fact.name], self.fact)
        stored = self.summaries.contents.table(self.facts.feed, self.summaries.writer.last)
        rows = stored.select(list(self.fact.columns))
        return rows.append_column(WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))

    def fact_frame(self) -> "DataFrame":
        if self.fact.name in self.contents:
            return weighted_frame(self.summaries.files.spark(), self.contents[self.fact.name], self.fact)
        return with_weight(self.summaries.contents.frame(self.facts.feed, self.summaries.writer.last), self.fact)

    def dimension_table(self, name: str) -> pa.Table:
        if name in self.contents:
            return weighted_table(self.contents[name], self.relations[name]).drop_columns([WEIGHT])
        rows = self.summaries.contents.table(self.facts.copies[name], self.summaries.writer.last)
        return rows.select(list(self.relations[name].columns))

    def dimension_frame(self, name: str) -> "DataFrame":
        if name in self.contents:
            spark = self.summaries.files.spark()
            return weighted_frame(spark, self.contents[name], self.relations[name]).drop(WEIGHT)
        return self.summaries.contents.frame(self.facts.copies[name], self.summaries.writer.last)

    def check_hierarchies(self) -> None:
        for name in self.facts.copies:
            if self.summaries.hierarchies.of(name) is not None:
                rows = self.contents.get(name)
                small = rows is None or getattr(rows, "in_memory", False)
                self.summaries.hierarchies.check(
                    self.relations[name], self.dimension_table(name) if small else self.dimension_frame(name).toArrow()
                )


@contextmanager
def first_contents(
    base: Base,
    edges: Sequence[Derivation],
    needed: set[str],
    nodes: Mapping[str, Node],
    tables: Sequence[NewTable],
) -> Iterator[dict[str, FirstContent]]:
    """The content of each new table, along edges; valid until the end of the block."""
    types = {table.node.name: column_types(table.node) for table in tables}
    seen = {table.node.name: _shown_types(table) for table in tables}
    if base.few(needed) and evaluable(edges) and None not in types.values() and None not in seen.values():
        yield _on_driver(base, edges, needed, nodes, tables)
        return
    with ExitStack() as stack:
        yield _in_spark(base, edges, needed, nodes, tables, stack)


def _shown_types(table: NewTable) -> dict[str, str] | None:
    """The types of what readers see; None if only Spark can tell."""
    if table.part is not None:
        return {}
    types = {column.name: column.expression.type for column in table.made_for.view.output}
    return types if all(map(is_known, types.values())) else None


def _on_driver(
    base: Base,
    edges: Sequence[Derivation],
    needed: set[str],
    nodes: Mapping[str, Node],
    tables: Sequence[NewTable],
) -> dict[str, FirstContent]:
    record, lattice = base.summaries.writer.last, base.lattice
    there = {name: lattice.tables[name] for name in needed if lattice is not None and name in lattice.tables}
    given = {
        name: linear_table(table.node, base.summaries.contents.table(name, record)) for name, table in there.items()
    }
    joined = {d.path: base.dimension_table(d.relation.name) for edge in edges for d in edge.joins}
    changes = base.fact_table() if CHANGES in needed else pa.table({})
    columns: dict[str, Columns] = {name: table.definition.columns for name, table in there.items()}
    for table in tables:
        types = column_types(table.node)
        assert types is not None
        columns[table.node.name] = tuple((name, types[name]) for name in table.ordered(list(types)))
    rows = first_rows(edges, ArrowInputs(changes, lambda name: given[name], joined), given, nodes, columns)
    return {
        name: FirstContent(columns[name], rows.get(name), rows[name].num_rows if name in rows else 0, _shown(table))
        for table in tables
        for name in [table.node.name]
    }


def _shown(table: NewTable) -> dict[str, str]:
    return _shown_types(table) or {}


def _in_spark(
    base: Base,
    edges: Sequence[Derivation],
    needed: set[str],
    nodes: Mapping[str, Node],
    tables: Sequence[NewTable],
    stack: ExitStack,
) -> dict[str, FirstContent]:
    from viewkeeper.summary.whole_tables import WholeTables

    summaries, lattice = base.summaries, base.lattice
    above = {
        name: summaries.rounds.in_spark.node(lattice, name, summaries.writer.last, {})
        for name in needed
        if lattice is not None and name in lattice.tables
    }
    if CHANGES in needed:
        above[CHANGES] = base.fact_frame()
    joined = {d.path: base.dimension_frame(d.relation.name) for edge in edges for d in edge.joins}
    whole = stack.enter_context(WholeTables(summaries.files.spark(), edges, above, joined, nodes))
    made = {}
    for table in tables:
        frame = whole.frames[table.node.name]
        rests = [rest_column(column) for measure, column in table.node.measures.items() if measure.floating]
        frame = stored_columns(table.node, table.ordered([*frame.columns, *rests]), frame).persist()
        stack.callback(frame.unpersist)
        shown = (
            frame.selectExpr(*[f"{sql} AS {quoted(name)}" for name, sql in table.made_for.shown])
            if not table.part
            else None
        )
        made[table.node.name] = FirstContent(
            columns_of(frame.schema),
            frame,
            frame.count() if table.node.stored else 0,
            dict(columns_of(shown.schema)) if shown is not None else {},
        )
    return made
