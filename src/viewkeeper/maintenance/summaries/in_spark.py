"""What a propagation reads, as frames: the stored tables and the changes of their inputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from viewkeeper.lake.log.columns import WEIGHT, arrow_schema
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.tables.files import Files
from viewkeeper.maintenance.contents import Contents, frame_of_table
from viewkeeper.planner.summaries.lattice import Lattice
from viewkeeper.sql.relation import Relation
from viewkeeper.summary.node import Node, rest_column
from viewkeeper.summary.plan import CHANGES
from viewkeeper.summary.statements import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from viewkeeper.maintenance.summaries.input_changes import Changes
    from viewkeeper.summary.propagate import Inputs


@dataclass(frozen=True)
class InSpark:
    """The inputs of a lattice in Spark."""

    files: Files
    contents: Contents

    def frames(self, lattice: Lattice, record: Record, changes: "Changes", waiting: Mapping[str, pa.Table]) -> "Inputs":
        from viewkeeper.summary.propagate import Inputs

        old, new, changed = {}, {}, {}
        for path, view in lattice.paths.items():
            old[path], new[path] = self.dimension(lattice, view, record, changes)
            if (delta := changes.frame(self.files.spark(), view)) is not None:
                changed[path] = delta

        def now(name: str) -> "DataFrame":
            return self.fact(lattice, record, changes) if name == CHANGES else self.node(lattice, name, record, waiting)

        fact = changes.frame(self.files.spark(), lattice.facts.feed)
        if fact is None:
            fact = frame_of_table(self.files.spark(), no_change(lattice))
        return Inputs(fact, now, old, new, changed)

    def dimension(
        self, lattice: Lattice, view: str, record: Record, changes: "Changes"
    ) -> "tuple[DataFrame, DataFrame]":
        """A dimension before and behind the changes."""
        stored = self.contents.frame(view, record)
        delta = changes.frame(self.files.spark(), view)
        if delta is None:
            return stored, stored
        stored = stored.select(*[quoted(name) for name in delta.columns if name != WEIGHT])
        if changes.applied:
            return added_up(stored, _negated(delta)), stored
        return stored, added_up(stored, delta)

    def fact(self, lattice: Lattice, record: Record, changes: "Changes") -> "DataFrame":
        """The stored fact behind the changes, with weights."""
        stored = with_weight(self.contents.frame(lattice.facts.feed, record), lattice.fact)
        delta = changes.frame(self.files.spark(), lattice.facts.feed)
        return (
            stored if changes.applied or delta is None else stored.unionAll(delta.select(*map(quoted, stored.columns)))
        )

    def node(self, lattice: Lattice, name: str, record: Record, waiting: Mapping[str, pa.Table]) -> "DataFrame":
        """The linear part of a stored table, with what waits for it."""
        frame = linear_part(lattice.nodes[name], self.contents.frame(name, record))
        if name not in waiting:
            return frame
        return frame.unionAll(frame_of_table(self.files.spark(), waiting[name]).select(*map(quoted, frame.columns)))


def no_change(lattice: Lattice) -> pa.Table:
    """No change of the fact."""
    columns = tuple(zip(lattice.fact.columns, lattice.fact.types, strict=True))
    return arrow_schema(columns, signed=False).append(pa.field(WEIGHT, pa.int64())).empty_table()


def with_weight(stored: "DataFrame", relation: Relation) -> "DataFrame":
    """The columns of a relation, and 1 for each row."""
    from viewkeeper.algebra.pyspark_names import F

    return stored.select(*[F.col(quoted(name)) for name in relation.columns], F.lit(1).cast("bigint").alias(WEIGHT))


def linear_part(node: Node, stored: "DataFrame") -> "DataFrame":
    """The columns of a stored table that its summary-delta has; a sum of DOUBLE with its rest."""
    from viewkeeper.algebra.pyspark_names import F

    floats = {column for measure, column in node.measures.items() if measure.floating}
    return stored.select(
        *(
            (F.col(quoted(name)) + F.coalesce(F.col(quoted(rest_column(name))), F.lit(0.0))).alias(name)
            if name in floats
            else F.col(quoted(name))
            for name in node.columns
        )
    )


def added_up(stored: "DataFrame", delta: "DataFrame") -> "DataFrame":
    """The rows of a keyed table behind a change."""
    from viewkeeper.algebra.pyspark_names import F

    columns = [F.col(quoted(name)) for name in stored.columns]
    weighted = stored.select(*columns, F.lit(1).cast("bigint").alias(WEIGHT)).unionAll(delta.select(*columns, WEIGHT))
    total = weighted.groupBy(*columns).agg(F.sum(WEIGHT).alias(WEIGHT))
    return total.filter(F.col(WEIGHT) > 0).select(*columns)


def _negated(delta: "DataFrame") -> "DataFrame":
    from viewkeeper.algebra.pyspark_names import F

    return delta.withColumn(WEIGHT, -F.col(WEIGHT))
