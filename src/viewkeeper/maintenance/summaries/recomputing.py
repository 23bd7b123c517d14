"""All tables of a lattice recomputed, and what that changes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from viewkeeper.lake.log.record import Record
from viewkeeper.maintenance.context import Context
from viewkeeper.maintenance.summaries.in_spark import InSpark
from viewkeeper.maintenance.summaries.input_changes import Changes
from viewkeeper.planner.summaries.lattice import Lattice
from viewkeeper.summary.node import Node, rest_column
from viewkeeper.summary.plan import CHANGES
from viewkeeper.summary.statements import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def recomputed_tables(
    context: Context, in_spark: InSpark, lattice: Lattice, record: Record, changes: Changes
) -> dict[str, Any]:
    """For each table the difference between what it should hold and what it holds, as a Z-set."""
    fact = in_spark.fact(lattice, record, changes)
    dimensions = {path: in_spark.dimension(lattice, view, record, changes)[1] for path, view in lattice.paths.items()}
    return differences(context, lattice, record, fact, dimensions)


def differences(
    context: Context,
    lattice: Lattice,
    record: Record,
    fact: "DataFrame",
    dimensions: "dict[str, DataFrame]",
) -> dict[str, Any]:
    """The same from a fact with weights and dimensions by path."""
    from viewkeeper.summary.whole_tables import WholeTables

    plan = lattice.loading.plan(lambda name: 1e18 if name == CHANGES else 1.0)
    engines = context.engines
    with WholeTables(context.files.spark(), plan.edges, {CHANGES: fact}, dimensions, lattice.nodes) as whole:
        made = {}
        for name, table in lattice.tables.items():
            new = engines.of_frame(stored_columns(table.node, table.definition.names, whole.frames[name]))
            difference = new - engines.of_frame(context.contents.frame(name, record))
            if not difference.is_empty():
                made[name] = difference
        return made


def stored_columns(node: Node, names: Sequence[str], frame: "DataFrame") -> "DataFrame":
    """The columns of a table in their order, with room for the rounding errors of sums."""
    from viewkeeper.algebra.pyspark_names import F

    rests = {rest_column(column) for measure, column in node.measures.items() if measure.floating}
    return frame.select(*[F.lit(0.0).alias(name) if name in rests else F.col(quoted(name)) for name in names])
