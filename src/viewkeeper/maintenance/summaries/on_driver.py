"""What a propagation reads, as Arrow tables: the stored tables and the changes of their inputs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.lake.log.columns import WEIGHT, arrow_schema, arrow_type
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.tables.files import Files
from viewkeeper.maintenance.contents import Contents
from viewkeeper.maintenance.summaries.in_spark import InSpark, no_change
from viewkeeper.planner.summaries.lattice import Lattice
from viewkeeper.sql.expressions import Expression
from viewkeeper.summary.node import Node, rest_column
from viewkeeper.summary.plan import CHANGES
from viewkeeper.summary.propagate_arrow import ArrowInputs

if TYPE_CHECKING:
    from viewkeeper.maintenance.summaries.input_changes import Changes


@dataclass(frozen=True)
class OnDriver:
    """The inputs of a lattice on the driver."""

    files: Files
    contents: Contents

    def tables(
        self, lattice: Lattice, record: Record, changes: "Changes", waiting: Mapping[str, pa.Table]
    ) -> ArrowInputs:
        old, new, changed = {}, {}, {}
        for path, view in lattice.paths.items():
            old[path], new[path] = self.dimension_table(lattice, view, record, changes)
            if (delta := changes.table(view)) is not None:
                changed[path] = delta

        def now(name: str) -> pa.Table:
            if name == CHANGES:
                return self.fact_table(lattice, record, changes)
            rows = linear_table(lattice.nodes[name], self.contents.table(name, record))
            return pa.concat_tables([rows, waiting[name].cast(rows.schema)]) if name in waiting else rows

        fact = changes.table(lattice.facts.feed)
        return ArrowInputs(no_change(lattice) if fact is None else fact, now, old, new, changed)

    def dimension_table(
        self, lattice: Lattice, view: str, record: Record, changes: "Changes"
    ) -> tuple[pa.Table, pa.Table]:
        """A dimension before and behind the changes, on the driver."""
        stored = self.contents.table(view, record).select(list(lattice.input_relations[view].columns))
        delta = changes.table(view)
        if delta is None:
            return (stored, stored) if view not in changes.held else self._from_spark(lattice, view, record, changes)
        if changes.applied:
            return _sum_of_rows(stored, _negated_table(delta)), stored
        return stored, _sum_of_rows(stored, delta)

    def _from_spark(self, lattice: Lattice, view: str, record: Record, changes: "Changes") -> tuple[pa.Table, pa.Table]:
        old, new = InSpark(self.files, self.contents).dimension(lattice, view, record, changes)
        return old.toArrow(), new.toArrow()

    def fact_table(self, lattice: Lattice, record: Record, changes: "Changes") -> pa.Table:
        stored = self.contents.table(lattice.facts.feed, record).select(list(lattice.fact.columns))
        stored = stored.append_column(WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), stored.num_rows))
        delta = changes.table(lattice.facts.feed)
        return stored if changes.applied or delta is None else pa.concat_tables([stored, delta.cast(stored.schema)])

    def types(self, lattice: Lattice) -> "Callable[[Expression, str, str], pa.DataType | None]":
        """Groups have the types of their stored columns."""
        schemas = {n: arrow_schema(table.definition.columns, signed=False) for n, table in lattice.tables.items()}

        def type_of(expression: Expression, node: str, column: str) -> pa.DataType | None:
            if node in schemas and column in schemas[node].names:
                return schemas[node].field(column).type
            return arrow_type(expression.type) if expression.type else None

        return type_of


def _sum_of_rows(stored: pa.Table, delta: pa.Table) -> pa.Table:
    """The rows of a keyed table behind a change."""
    once = stored.append_column(WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), stored.num_rows))
    both = pa.concat_tables([once, delta.select(once.column_names).cast(once.schema)])
    total = both.group_by(stored.column_names, use_threads=False).aggregate([(WEIGHT, "sum")])
    return total.filter(pc.greater(total[f"{WEIGHT}_sum"], 0)).select(stored.column_names)


def _negated_table(delta: pa.Table) -> pa.Table:
    return delta.set_column(delta.column_names.index(WEIGHT), WEIGHT, pc.negate(delta[WEIGHT]))


def linear_table(node: Node, stored: pa.Table) -> pa.Table:
    """The columns of a stored table that its summary-delta has; a sum of DOUBLE with its rest."""
    rows = stored.select(list(node.columns))
    for measure, column in node.measures.items():
        if measure.floating:
            rest = pc.fill_null(stored[rest_column(column)], pa.scalar(0.0))
            rows = rows.set_column(rows.column_names.index(column), column, pc.add(stored[column], rest))
    return rows
