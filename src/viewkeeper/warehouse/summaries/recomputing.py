"""All tables of a lattice recomputed, and what that changes."""

from typing import TYPE_CHECKING, Any

from viewkeeper.lake.log.record import Record
from viewkeeper.summary.plan import CHANGES
from viewkeeper.warehouse.summaries.input_changes import Changes
from viewkeeper.warehouse.summaries.lattice import Lattice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from viewkeeper.warehouse.summaries.keeping import Summaries


def recomputed_tables(summaries: "Summaries", lattice: Lattice, record: Record, changes: Changes) -> dict[str, Any]:
    """For each table the difference between what it should hold and what it holds, as a Z-set."""
    fact = summaries.rounds.in_spark.fact(lattice, record, changes)
    dimensions = {
        path: summaries.rounds.in_spark.dimension(lattice, view, record, changes)[1]
        for path, view in lattice.paths.items()
    }
    return differences(summaries, lattice, record, fact, dimensions)


def differences(
    summaries: "Summaries",
    lattice: Lattice,
    record: Record,
    fact: "DataFrame",
    dimensions: "dict[str, DataFrame]",
) -> dict[str, Any]:
    """The same from a fact with weights and dimensions by path."""
    from viewkeeper.summary.whole_tables import WholeTables
    from viewkeeper.warehouse.summaries.first_content import stored_columns

    plan = lattice.loading.plan(lambda name: 1e18 if name == CHANGES else 1.0)
    engines = summaries.keeper.engines
    with WholeTables(summaries.files.spark(), plan.edges, {CHANGES: fact}, dimensions, lattice.nodes) as whole:
        made = {}
        for name, table in lattice.tables.items():
            new = engines.of_frame(stored_columns(table.node, table.definition.names, whole.frames[name]))
            difference = new - engines.of_frame(summaries.contents.frame(name, record))
            if not difference.is_empty():
                made[name] = difference
        return made
