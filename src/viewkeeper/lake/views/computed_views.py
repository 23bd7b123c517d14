"""A view that is computed from hidden tables whenever it is read.

    V = π shown ( σ having ( rows ⋈ copy_0 ⋈ copy_1 ... ) )          by ids; all tables at one state

The tables are sets. Without copies, `rows` has everything; with copies it points into them. Spark reads the columns
that a query needs: of an operand that it asks nothing of, only the ids.

Spark evaluates a condition as early as it can, also on rows that a pending delta deletes. What can fail on a row is
therefore tied to the place where it stands: there it sees the rows that are there, and no others.
"""

from collections.abc import Callable, Sequence
from functools import cached_property

from viewkeeper.algebra.pyspark_names import Column, DataFrame, F
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import WEIGHT
from viewkeeper.lake.tables.signed_frames import quoted
from viewkeeper.lake.tables.spark_tables import AppendedView, RewrittenView, added_up
from viewkeeper.lake.views.computed_expressions import ComputedExpressions, pointing_columns

StoredTable = AppendedView | RewrittenView


class ComputedView:
    """A computed view at one state. `once` is given its rows, if they are a join, and may keep them for other reads."""

    def __init__(
        self,
        view: Definition,
        tables: Sequence[Definition],
        stored: Sequence[StoredTable],
        once: Callable[[DataFrame], DataFrame],
    ) -> None:
        self._view, self._stored, self._once = view, stored, once
        self._expressions = ComputedExpressions(view, tables)
        self._kept = pointing_columns(view, tables)

    def signed(self) -> DataFrame:
        """Rows with weights that add up to the view."""
        if len(self._stored) > 1 or self._expressions.can_fail:
            return _once_each(self.bag())
        return evaluated(self._stored[0].signed(), self._expressions, WEIGHT)

    def bag(self) -> DataFrame:
        """Every row, as often as it is there."""
        return self._rows

    def weights(self) -> DataFrame:
        """Every distinct row once, with its count."""
        return added_up(_once_each(self._rows))

    @cached_property
    def _rows(self) -> DataFrame:
        rows, *copies = (stored.bag() for stored in self._stored)
        if not copies:
            return evaluated(rows, self._expressions)
        assert self._view.computed is not None
        rows = rows.select(*map(quoted, self._kept))
        for copy, (_, ids) in zip(copies, self._view.computed.copies, strict=True):
            rows = rows.join(copy, list(ids))
        return self._once(evaluated(rows, self._expressions))


def evaluated(frame: DataFrame, expressions: ComputedExpressions, *kept: str) -> DataFrame:
    """The rows of hidden tables, joined, as readers see them, with columns that are kept beside them."""
    having = expressions.having
    if having is not None:
        frame = frame.filter(_tied(F.expr(having.sql)) if having.can_fail else F.expr(having.sql))
    columns = [
        (_tied(F.expr(made.sql)) if made.can_fail else F.expr(made.sql)).cast(type).alias(name)
        for name, made, type in expressions.shown
    ]
    return frame.select(*columns, *kept)


def _tied(column: Column) -> Column:
    """The same value, evaluated where it stands: Spark moves nothing that may depend on the partition."""
    return F.when(F.spark_partition_id() >= 0, column)


def _once_each(rows: DataFrame) -> DataFrame:
    return rows.withColumn(WEIGHT, F.lit(1).cast("bigint"))
