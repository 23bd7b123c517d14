"""One round of a lattice: changes come, summary-deltas are computed from them, and the tables are refreshed.

    propagate    changes of fact and dimensions    ⟶  a summary-delta for each node      (one Spark job)
    refresh      tables, summary-deltas            ⟶  the rows that go and the rows that come, for each table

Neither writes anything: what becomes of it is the business of a commit.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.clock import monotonic
from viewkeeper.lake.log.catalog import Layout
from viewkeeper.lake.log.columns import WEIGHT
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.tables.signed_rows import Replacement
from viewkeeper.maintenance.contents import SMALL, Contents, frame_of_table
from viewkeeper.maintenance.summaries.in_spark import InSpark
from viewkeeper.maintenance.summaries.input_changes import Changes
from viewkeeper.maintenance.summaries.on_driver import OnDriver
from viewkeeper.planner.summaries.lattice import Lattice
from viewkeeper.summary.content import ArrowContent
from viewkeeper.summary.derivation import BrokenForeignKey
from viewkeeper.summary.grouping import canonical_floats
from viewkeeper.summary.node import Node, recomputed_columns, shape_of
from viewkeeper.summary.plan import CHANGES, Expected, Plan
from viewkeeper.summary.propagate_arrow import evaluable, propagate_arrow

if TYPE_CHECKING:
    from viewkeeper.summary.refresh import Refreshed


MOST_ON_DRIVER_AT_ONCE = 1_000_000
"""Rows of a table that are joined with the change of a dimension on the driver."""


@dataclass(frozen=True)
class Propagated:
    """Summary-deltas, and how they came about."""

    deltas: Mapping[str, pa.Table]
    plan: Plan
    seconds: float
    changes: int
    broken: Mapping[str, int] = field(default_factory=dict)
    """rows of summary-deltas that found no row in a dimension where a foreign key promised one, by relation"""


@dataclass(frozen=True)
class Applied:
    """What a refresh does to each table: signed rows for the commit, and the content after it."""

    signed: Mapping[str, pa.Table | Replacement]
    contents: Mapping[str, ArrowContent]
    refreshed: "Mapping[str, Refreshed]"
    seconds: float
    recomputed: int = 0


@dataclass
class Rounds:
    """Computes rounds over the stored tables of a warehouse."""

    files: Files
    contents: Contents

    @cached_property
    def on_driver(self) -> OnDriver:
        return OnDriver(self.files, self.contents)

    @cached_property
    def in_spark(self) -> InSpark:
        return InSpark(self.files, self.contents)

    # --- propagate ---

    def propagate(
        self,
        lattice: Lattice,
        record: Record,
        changes: Changes,
        expected: Expected,
        waiting: Mapping[str, pa.Table],
    ) -> Propagated:
        """The summary-deltas of some changes. Those that are waiting are not in the tables yet."""
        begin = monotonic()
        # Theorem 5.1 is about changes of the fact.
        moved = any(changes.rows.get(view) for view in lattice.paths.values())
        lineage = lattice.moving if moved else lattice.lineage

        def computed(plan: Plan) -> Mapping[str, pa.Table]:
            if self._small(lattice, record, changes) and evaluable(plan.edges):
                inputs = self.on_driver.tables(lattice, record, changes, waiting)
                return propagate_arrow(plan.edges, inputs, self.on_driver.types(lattice), relied=plan.relied)
            from viewkeeper.lake.tables.spark_files import spark_errors
            from viewkeeper.summary.propagate import propagate

            with spark_errors(f"propagating changes of {lattice.fact.name}"):
                return propagate(self.files.spark(), plan, self.in_spark.frames(lattice, record, changes, waiting))

        plan = lineage.plan(expected)
        broken: dict[str, int] = {}
        try:
            deltas = computed(plan)
        except BrokenForeignKey as found:
            broken = {lattice.dimensions[found.path].relation.name: found.rows}
            plan = lineage.plan(expected, relying=False)
            deltas = computed(plan)
        return Propagated(deltas, plan, monotonic() - begin, sum(changes.rows.values()), broken)

    def _small(self, lattice: Lattice, record: Record, changes: Changes) -> bool:
        """Whether everything that is needed is on the driver, or soon will be."""
        if not changes.on_driver or any(record.tables[view].rows > SMALL for view in lattice.paths.values()):
            return False
        moved = any(changes.rows.get(view) for view in lattice.paths.values())
        needed = [*lattice.tables, *([lattice.facts.feed] if lattice.facts.readable else [])]
        return not moved or all(record.tables[name].rows <= MOST_ON_DRIVER_AT_ONCE for name in needed)

    # --- refresh ---

    def refresh(
        self, lattice: Lattice, record: Record, deltas: Mapping[str, pa.Table], changes: Changes | None = None
    ) -> Applied:
        """What the summary-deltas do to the tables; CorruptChange if they cannot be right."""
        from viewkeeper.summary.refresh import refresh

        begin = monotonic()
        nodes = lattice.nodes
        stored = [table for table in lattice.tables.values() if table.name in deltas]
        whole = {table.name: delta_with_extremes(table.node, deltas, nodes) for table in stored}
        contents = {table.name: self.contents.content(table.definition, record) for table in stored}
        refreshed = refresh(
            [shape_of(table.node, nodes) for table in stored],
            contents,
            whole,
            recompute=lambda wanted: self._recomputed(lattice, record, changes, wanted),
        )
        signed: dict[str, pa.Table | Replacement] = {}
        after = {}
        for table in stored:
            one = refreshed[table.name]
            content = contents[table.name]
            if one.before.num_rows or one.after.num_rows:
                changed = _signed(table.definition.names, one.before, one.after)
                signed[table.name] = changed
                if isinstance(content, ArrowContent) and one.gone is not None:
                    new = after[table.name] = content.changed(one.gone, one.after)
                    if table.definition.layout is Layout.REWRITTEN:
                        signed[table.name] = Replacement(changed, new.table.select(table.definition.names))
            elif isinstance(content, ArrowContent):
                after[table.name] = content
        return Applied(signed, after, refreshed, monotonic() - begin)

    def _recomputed(
        self, lattice: Lattice, record: Record, changes: Changes | None, wanted: Mapping[str, pa.Table]
    ) -> dict[str, pa.Table]:
        """MIN and MAX of some groups, from the stored core: one job for all tables."""
        from viewkeeper.summary.propagate import TemporaryNames, apart
        from viewkeeper.summary.statements import extremes_of_groups, tagged, whole_table

        spark = self.files.spark()
        changes = changes or Changes({}, {}, applied=True)
        with TemporaryNames(spark) as temporary:
            fact = temporary.name(self.in_spark.fact(lattice, record, changes))
            dimensions = {
                path: temporary.name(self.in_spark.dimension(lattice, view, record, changes)[1])
                for path, view in lattice.paths.items()
            }
            behind = {name: whole_table(_from_changes(lattice, name), fact, dimensions) for name in lattice.virtual}
            statements = [
                extremes_of_groups(
                    lattice.nodes[name],
                    behind,
                    lattice.nodes,
                    temporary.name(frame_of_table(spark, keys)),
                )
                for name, keys in wanted.items()
            ]
            columns = [_recomputed_columns(lattice.nodes[name]) for name in wanted]
            tables = [(f"({statement})", one) for statement, one in zip(statements, columns, strict=True)]
            answer = spark.sql(tagged(tables)).toArrow()
        return dict(zip(wanted, apart(answer, columns), strict=True))


def _recomputed_columns(node: Node) -> list[str]:
    return [*node.keys, *(extreme.column for extreme in node.extremes if extreme.recomputed)]


def _from_changes(lattice: Lattice, name: str) -> Any:
    return next(edge for edge in lattice.lineage.ways(name) if edge.above.name == CHANGES)


def delta_with_extremes(node: Node, deltas: Mapping[str, pa.Table], nodes: Mapping[str, Node]) -> pa.Table:
    """The summary-delta of a table, with the extremes of what was inserted and deleted where they are recomputed."""
    delta = deltas[node.name].select(list(node.columns))
    rows = [delta]
    for extreme in node.extremes:
        if not extreme.recomputed:
            continue
        behind = nodes[extreme.node]
        changed = _net(behind, deltas[extreme.node])
        value, count = changed[behind.groups[extreme.value]], changed[behind.count]
        inserted, deleted = recomputed_columns(extreme.column)
        nothing = pa.scalar(None, value.type)
        rows.append(
            pa.table(
                {
                    **{node.groups[group]: changed[behind.groups[group]] for group in node.groups},
                    inserted: pc.if_else(pc.greater(count, 0), value, nothing),
                    deleted: pc.if_else(pc.less(count, 0), value, nothing),
                }
            )
        )
    return pa.concat_tables(rows, promote_options="default")


def _net(node: Node, delta: pa.Table) -> pa.Table:
    """Each value once: what was inserted and deleted again while the changes waited is neither."""
    keys = {key: canonical_floats(delta[key]) for key in node.keys}
    rows = pa.table({**keys, node.count: delta[node.count]})
    total = rows.group_by(list(keys), use_threads=False).aggregate([(node.count, "sum")])
    return total.rename_columns([*keys, node.count])


def _signed(names: Iterable[str], before: pa.Table, after: pa.Table) -> pa.Table:
    """Rows that go and rows that come, as a change of the table."""
    parts = [
        rows.select(list(names)).append_column(WEIGHT, pa.repeat(pa.scalar(weight, pa.int64()), rows.num_rows))
        for rows, weight in ((before, -1), (after, 1))
        if rows.num_rows
    ]
    return pa.concat_tables(parts)
