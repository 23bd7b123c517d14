"""The changes of one view in one commit, as signed rows.

    (row, _vk_weight, _vk_state)      row was inserted (+) or deleted (-) so many times by state _vk_state

What comes from the driver stays in Arrow and is written without a Spark job; what is in Spark is written by Spark.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.errors import BadDelta
from viewkeeper.warehouse.catalog import Definition
from viewkeeper.warehouse.columns import STATE, WEIGHT, arrow_schema, check_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Delta = Any
"""A Z-set of either engine, or an Arrow table or a DataFrame with a column _vk_weight."""


@dataclass
class SignedRows:
    """All changes of one view in one commit: those on the driver, and those in Spark."""

    view: Definition
    tables: list[pa.Table] = field(default_factory=list)
    frames: "list[tuple[int, DataFrame]]" = field(default_factory=list)

    def add(self, state: int, delta: Delta) -> None:
        """Take one change; BadDelta if it does not fit the view."""
        frame = getattr(delta, "frame", None)
        if frame is not None or hasattr(delta, "sparkSession"):
            self.frames.append((state, frame if frame is not None else delta))
            return
        table = delta if isinstance(delta, pa.Table) else table_of_zset(self.view, delta)
        table = conformed_table(self.view, table)
        if table.num_rows:
            self.tables.append(table.append_column(_state_field(), pa.repeat(pa.scalar(state), table.num_rows)))

    def on_driver(self) -> pa.Table | None:
        """The rows on the driver as one table; None if there are none."""
        return pa.concat_tables(self.tables) if self.tables else None


@dataclass(frozen=True)
class Figures:
    """What is counted of signed rows: how many there are, and the growth of the view by state."""

    rows: int = 0
    growth: dict[int, int] = field(default_factory=dict)

    def plus(self, other: "Figures") -> "Figures":
        growth = dict(self.growth)
        for state, net in other.growth.items():
            growth[state] = growth.get(state, 0) + net
        return Figures(self.rows + other.rows, growth)


def figures_of_table(table: pa.Table) -> Figures:
    """Counted on the driver."""
    grown = table.group_by(STATE, use_threads=False).aggregate([(WEIGHT, "sum")])
    return Figures(
        table.num_rows,
        dict(zip(grown[STATE].to_pylist(), grown[f"{WEIGHT}_sum"].to_pylist(), strict=True)),
    )


# --- from any form to the columns of the view ---


def table_of_zset(view: Definition, zset: Any) -> pa.Table:
    """The rows of a Z-set with their weights, typed as the view's columns."""
    check_names(view.name, view.columns, zset.columns)
    rows: list[tuple[Any, ...]] = []
    weights: list[int] = []
    for row, weight in zset.weights():
        rows.append(row)
        weights.append(weight)
    values = list(zip(*rows, strict=True)) if rows else [()] * len(view.columns)
    schema = arrow_schema(view.columns, signed=False)
    arrays = [_array(view, field, column) for field, column in zip(schema, values, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema).append_column(_weight_field(), pa.array(weights, pa.int64()))


def _array(view: Definition, field: pa.Field, values: Iterable[Any]) -> pa.Array:
    try:
        return pa.array(values, field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise BadDelta(f"a change of {view.name} does not fit column {field.name} ({field.type}): {error}") from error


def conformed_table(view: Definition, table: pa.Table) -> pa.Table:
    """Rows with weights in the view's own types: zero weights left out, each float in its one canonical form."""
    check_names(view.name, view.columns, [name for name in table.column_names if name != WEIGHT])
    if WEIGHT not in table.column_names:
        raise no_weight(view)
    schema = arrow_schema(view.columns, signed=False).append(_weight_field())
    arrays = []
    for wanted in schema:
        column = table[wanted.name]
        if column.type != wanted.type:
            try:
                column = column.cast(wanted.type)
            except pa.ArrowException as error:
                raise BadDelta(f"a change of {view.name} does not fit column {wanted.name}: {error}") from error
        arrays.append(canonical_floats(column))
    if arrays[-1].null_count:
        raise BadDelta(f"a change of {view.name} has a row without weight", "every row needs one")
    made = pa.Table.from_arrays(arrays, schema=schema)
    return made.filter(pc.not_equal(made[WEIGHT], 0))


def canonical_floats(column: Any) -> Any:
    """-0.0 as 0.0 and one NaN: values that are equal to SQL are then equal to Arrow."""
    if not pa.types.is_floating(column.type):
        return column
    zero, nan = pa.scalar(0.0, column.type), pa.scalar(float("nan"), column.type)
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))


def no_weight(view: Definition) -> BadDelta:
    """The error for rows that do not say whether they are inserted or deleted."""
    return BadDelta(
        f"a change of {view.name} has no column {WEIGHT}", "insertions have a positive weight, deletions a negative one"
    )


def _weight_field() -> pa.Field:
    return pa.field(WEIGHT, pa.int64(), nullable=False)


def _state_field() -> pa.Field:
    return pa.field(STATE, pa.int64(), nullable=False)
