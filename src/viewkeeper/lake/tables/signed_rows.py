"""The changes of one view in one commit, as signed rows.

    (row, _vk_weight, _vk_state)      row was inserted (+) or deleted (-) so many times by state _vk_state

What comes from the driver stays in Arrow and is written without a Spark job; what is in Spark is written by Spark.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from types import NoneType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.errors import BadDelta
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import STATE, WEIGHT, arrow_schema, check_names
from viewkeeper.summary.grouping import canonical_floats

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Delta = Any
"""A Z-set of either engine, or an Arrow table or a DataFrame with a column _vk_weight."""


@dataclass(frozen=True)
class Replacement:
    """A change whose outcome is known: the signed rows, and all rows of the view after them."""

    signed: pa.Table
    content: pa.Table


@dataclass
class SignedRows:
    """All changes of one view in one commit: those on the driver, and those in Spark."""

    view: Definition
    tables: list[pa.Table] = field(default_factory=list)
    frames: "list[tuple[int, DataFrame]]" = field(default_factory=list)
    content: pa.Table | None = None
    """all rows of the view behind the changes, if that is known"""

    def add(self, changes: Iterable[tuple[int, Delta]]) -> None:
        """Take changes, each with its state, in order; BadDelta if one does not fit the view."""
        small = _SmallChanges(self.view)
        for state, delta in changes:
            self.content = delta.content if isinstance(delta, Replacement) else None
            delta = delta.signed if isinstance(delta, Replacement) else delta
            frame = frame_in_spark(delta)
            if frame is not None:
                self.frames.append((state, frame))
            elif (columns := table_in_arrow(delta)) is not None:
                table = conformed_table(self.view, columns)
                self.tables.append(table.append_column(_state_field(), pa.repeat(pa.scalar(state), table.num_rows)))
            else:
                small.add(state, delta)
        self.tables = [table for table in (*self.tables, small.table()) if table.num_rows]

    def extend(self, later: "SignedRows") -> None:
        """Take the changes of later states."""
        self.tables += later.tables
        self.frames += later.frames
        self.content = later.content

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


def frame_in_spark(rows: Any) -> "DataFrame | None":
    """The DataFrame of rows that are in Spark; None for what is on the driver, which then stays there."""
    if hasattr(rows, "sparkSession"):
        frame: DataFrame = rows
        return frame
    # A Z-set that goes by size could be moved to Spark, but what is here is cheaper to write from here.
    return None if getattr(rows, "on_driver", False) else getattr(rows, "frame", None)


def table_in_arrow(rows: Any) -> pa.Table | None:
    """The rows with their weights if they are columns on the driver; None for rows of Python and what is in Spark."""
    return rows if isinstance(rows, pa.Table) else getattr(rows, "columnar", None)


# --- from any form to the columns of the view ---


class _SmallChanges:
    """Z-sets on the driver: thousands of small ones become one table."""

    def __init__(self, view: Definition) -> None:
        self._view = view
        self._rows: list[tuple[Any, ...]] = []
        self._weights: list[int] = []
        self._states: list[int] = []

    def add(self, state: int, zset: Any) -> None:
        check_names(self._view.name, self._view.columns, zset.columns)
        before = len(self._rows)
        for row, weight in zset.weights():
            self._rows.append(row)
            self._weights.append(weight)
        self._states += [state] * (len(self._rows) - before)

    def table(self) -> pa.Table:
        """The rows with their weights and states, typed as the view's columns."""
        values = list(zip(*self._rows, strict=True)) if self._rows else [()] * len(self._view.columns)
        schema = arrow_schema(self._view.columns, signed=False)
        arrays = [_array(self._view, field, column) for field, column in zip(schema, values, strict=True)]
        arrays = [canonical_floats(array) for array in arrays]
        arrays += [pa.array(self._weights, pa.int64()), pa.array(self._states, pa.int64())]
        return pa.Table.from_arrays(arrays, schema=schema.append(_weight_field()).append(_state_field()))


def table_of_zset(view: Definition, zset: Any) -> pa.Table:
    """The rows of a Z-set with their weights, typed as the view's columns."""
    rows = _SmallChanges(view)
    rows.add(0, zset)
    return rows.table().drop_columns([STATE])


def _array(view: Definition, field: pa.Field, values: Sequence[Any]) -> pa.Array:
    try:
        array = pa.array(values, field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _misfit(view, field, error) from error
    # Of other types Arrow would make something: 1 of 1.5, the sixth of January of 5.
    unusual = {type(value) for value in values} - {_USUAL.get(field.type.id), NoneType}
    if field.type.id in _USUAL and unusual and array.to_pylist() != list(values):
        raise _misfit(view, field, f"it has values of type {', '.join(sorted(kind.__name__ for kind in unusual))}")
    return array


_USUAL = {
    **{pa.type_for_alias(name).id: int for name in ("int8", "int16", "int32", "int64")},
    pa.date32().id: date,
    pa.timestamp("us").id: datetime,
    pa.string().id: str,
    pa.binary().id: bytes,
}


def _misfit(view: Definition, field: pa.Field, why: object) -> BadDelta:
    return BadDelta(
        f"a change of {view.name} does not fit column {field.name} ({field.type}): {why}",
        "correct the rows, or CAST them to the types of the view",
    )


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
            if not _convertible(column.type, wanted.type):
                raise _misfit(view, wanted, f"it has values of type {column.type}")
            try:
                if pa.types.is_integer(column.type) and pa.types.is_decimal(wanted.type):
                    # Arrow wants room for every value of the type, not for those that are there.
                    column = column.cast(pa.decimal256(76, wanted.type.scale))
                column = column.cast(wanted.type)
            except pa.ArrowException as error:
                raise _misfit(view, wanted, error) from error
        arrays.append(canonical_floats(column))
    if arrays[-1].null_count:
        raise BadDelta(f"a change of {view.name} has a row without weight", "every row needs one")
    made = pa.Table.from_arrays(arrays, schema=schema)
    return made.filter(pc.not_equal(made[WEIGHT], 0))


def _convertible(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of one type can be exact values of the other; the same as for a DataFrame."""
    if pa.types.is_dictionary(given):
        given = given.value_type
    if pa.types.is_null(given) or given == wanted:
        return True
    if pa.types.is_floating(wanted):
        return bool(pa.types.is_integer(given) or (pa.types.is_floating(given) and given.bit_width <= wanted.bit_width))
    if pa.types.is_timestamp(wanted):
        return pa.types.is_timestamp(given) and (given.tz is None) == (wanted.tz is None)
    return any(wanted.id in family and given.id in family for family in _FAMILIES)


_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FAMILIES = (
    {*(pa.type_for_alias(name).id for name in _INTEGERS), pa.decimal128(1).id, pa.decimal256(1).id},
    {pa.string().id, pa.large_string().id, pa.string_view().id},
    {pa.binary().id, pa.large_binary().id, pa.binary_view().id, pa.binary(1).id},
    {pa.date32().id, pa.date64().id},
)


def no_weight(view: Definition) -> BadDelta:
    """The error for rows that do not say whether they are inserted or deleted."""
    return BadDelta(
        f"a change of {view.name} has no column {WEIGHT}", "insertions have a positive weight, deletions a negative one"
    )


def _weight_field() -> pa.Field:
    return pa.field(WEIGHT, pa.int64(), nullable=False)


def _state_field() -> pa.Field:
    return pa.field(STATE, pa.int64(), nullable=False)
