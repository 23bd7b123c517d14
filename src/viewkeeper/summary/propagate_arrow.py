"""Propagate on the driver: the same summary-deltas as `propagate.py`, from few changes, in Arrow.

A job of Spark takes longer than a thousand changes are worth. What is small enough, and made of expressions that the
in-memory engine evaluates as Spark does, is joined and added up here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.arrow_rows import weighted_rows
from viewkeeper.algebra.arrow_types import in_one_type
from viewkeeper.algebra.column_types import common_type
from viewkeeper.errors import ExpressionError
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.type_families import Family, type_named
from viewkeeper.summary.derivation import ABOVE, ALSO, BrokenForeignKey, Derivation
from viewkeeper.summary.grouping import canonical_floats
from viewkeeper.summary.measures import Measure
from viewkeeper.summary.plan import CHANGES
from viewkeeper.summary.star import Dimension
from viewkeeper.summary.statements import WEIGHT, sum_type

Types = Callable[[Expression, str, str], pa.DataType | None]
"""The type of a group that is computed: of which expression, in the column of which node."""
LARGEST = 2**63


@dataclass(frozen=True)
class ArrowInputs:
    """What a propagation reads, on the driver; as `propagate.Inputs`."""

    changes: pa.Table
    now: Callable[[str], pa.Table]
    old: Mapping[str, pa.Table] = field(default_factory=dict)
    new: Mapping[str, pa.Table] = field(default_factory=dict)
    changed: Mapping[str, pa.Table] = field(default_factory=dict)


def evaluable(edges: Sequence[Derivation]) -> bool:
    """Whether the in-memory engine evaluates everything along these edges."""
    for edge in edges:
        for expression in (*edge.groups.values(), *edge.where, *edge.computed.values()):
            if expression.is_column is None:
                try:
                    expression.compile(_columns(expression))
                except ExpressionError:
                    return False
        if not all(map(_comparable, edge.joins)):
            return False
    return True


def _comparable(dimension: Dimension) -> bool:
    """Whether there is a type for each key and what it is compared with."""
    try:
        for (column, key), type in zip(dimension.on, dimension.types, strict=True):
            common_type(column, type_named(type), key, type_named(dimension.type_of(key)))
    except ExpressionError:
        return False
    return True


def propagate_arrow(
    edges: Sequence[Derivation],
    inputs: ArrowInputs,
    types: Types,
    given: Mapping[str, pa.Table] | None = None,
    *,
    relied: frozenset[str] = frozenset(),
) -> dict[str, pa.Table]:
    """The summary-deltas at the lower ends of edges, each of which begins at the changes, at another, or at one that is
    given. BrokenForeignKey if rows are lost where dimensions are joined that are `relied` upon to have them all."""
    deltas: dict[str, pa.Table] = {CHANGES: inputs.changes, **(given or {})}
    for edge in edges:
        deltas[edge.below.name] = _summary_delta(edge, deltas, inputs, types, relied)
    made = {edge.below.name: deltas[edge.below.name] for edge in edges}
    return {
        name: table.select([column for column in table.column_names if not column.startswith(ALSO)])
        for name, table in made.items()
    }


def _summary_delta(
    edge: Derivation, deltas: Mapping[str, pa.Table], inputs: ArrowInputs, types: Types, relied: frozenset[str]
) -> pa.Table:
    """γ ( sd_p ⋈ D_old  ⊎  p_new ⋈ ΔD ), telescoped over the dimensions that changed."""
    paths = [dimension.path for dimension in edge.joins]
    above = deltas[edge.above.name]
    terms = [_term(edge, above, [inputs.old[path] for path in paths], types, relied)]
    for place, path in enumerate(paths):
        if path in inputs.changed:
            dimensions = [
                *(inputs.new[earlier] for earlier in paths[:place]),
                inputs.changed[path],
                *(inputs.old[later] for later in paths[place + 1 :]),
            ]
            terms.append(_term(edge, _as_it_will_be(edge, above, inputs), dimensions, types))
    return _added_up(edge, pa.concat_tables(terms))


def _as_it_will_be(edge: Derivation, delta: pa.Table, inputs: ArrowInputs) -> pa.Table:
    now = inputs.now(edge.above.name)
    if edge.above.name == CHANGES:
        return now
    return pa.concat_tables([now, delta.select(now.column_names).cast(now.schema)])


def _term(
    edge: Derivation,
    above: pa.Table,
    dimensions: Sequence[pa.Table],
    types: Types,
    relied: frozenset[str] = frozenset(),
) -> pa.Table:
    """The rows of one join, with the columns of the summary-delta, not added up."""
    rows = _named(above, ABOVE, _needed(edge) | {f"{ABOVE}.{edge.above.count}"})
    signs: list[str] = []
    for place, (dimension, on) in enumerate(zip(dimensions, edge.on, strict=True)):
        alias = f"d{place}"
        keys = [f"{alias}.{key}" for _, key in on]
        other = _named(dimension, alias, _needed(edge) | {*keys, f"{alias}.{WEIGHT}"})
        signs += [f"{alias}.{WEIGHT}"] if WEIGHT in dimension.column_names else []
        met = _joined(rows, other, [column for column, _ in on], keys)
        if edge.joins[place].path in relied and met.num_rows < rows.num_rows:
            raise BrokenForeignKey(edge.joins[place].path, rows.num_rows - met.num_rows)
        rows = met
    for condition in edge.where:
        rows = rows.filter(_value(rows, condition, pa.bool_()))
    sign = None
    for name in signs:
        sign = rows[name] if sign is None else pc.multiply_checked(sign, rows[name])
    count = rows[f"{ABOVE}.{edge.above.count}"]
    weight = count if sign is None else pc.multiply_checked(count, sign)
    node = edge.below
    made = {
        column: _value(rows, edge.groups[group], types(edge.groups[group], node.name, column))
        for group, column in node.groups.items()
    }
    made[node.count] = weight
    for measure, column in node.measures.items():
        if measure in edge.summed:
            value = rows[f"{ABOVE}.{edge.summed[measure]}"]
            made[column] = _wide(value if sign is None else _times(value, sign, measure))
        else:
            value = _value(rows, edge.computed[measure], None)
            counted = measure.kind == "count"
            made[column] = (
                pc.if_else(pc.is_null(value), _ZERO, weight) if counted else _wide(_times(value, weight, measure))
            )
    return pa.table(made)


_ZERO = pa.scalar(0, pa.int64())


def _needed(edge: Derivation) -> set[str]:
    """The flat columns that an edge uses."""
    used = {column for pairs in edge.on for column, _ in pairs}
    for expression in (*edge.groups.values(), *edge.where, *edge.computed.values()):
        used |= expression.columns
    return used | {f"{ABOVE}.{column}" for column in edge.summed.values()}


def _named(table: pa.Table, alias: str, needed: set[str]) -> pa.Table:
    names = [name for name in table.column_names if f"{alias}.{name}" in needed]
    return table.select(names).rename_columns([f"{alias}.{name}" for name in names])


def _joined(rows: pa.Table, other: pa.Table, left: list[str], right: list[str]) -> pa.Table:
    """An inner join, in which NULL meets nothing. Columns of two types are compared in the one that Spark compares
    them in, and stay what they are."""
    made = []
    for place, (mine, theirs) in enumerate(zip(left, right, strict=True)):
        if rows[mine].type != other[theirs].type:
            one, partner = in_one_type(mine, rows[mine], theirs, other[theirs])
            left[place], right[place] = f"left key {place}", f"right key {place}"
            rows, other = rows.append_column(left[place], one), other.append_column(right[place], partner)
            made += [left[place], right[place]]
    joined = rows.join(other, left, right, join_type="inner", coalesce_keys=False, use_threads=False)
    return joined.drop_columns(made) if made else joined


def _value(rows: pa.Table, expression: Expression, type: pa.DataType | None) -> pa.Array | pa.ChunkedArray:
    """The values of an expression for all rows."""
    if (name := expression.is_column) is not None:
        return rows[name]
    columns = _columns(expression)
    evaluate = expression.compile(columns)
    if not columns:
        values = [evaluate(())] * rows.num_rows
    else:
        weighted = rows.select([*columns]).append_column("weight", pa.repeat(_ZERO, rows.num_rows))
        values = [evaluate(row) for row, _ in weighted_rows(weighted)]
    return pa.array(values, type or _arrow_type(expression))


def _columns(expression: Expression) -> tuple[str, ...]:
    return tuple(sorted(expression.columns))


def _arrow_type(expression: Expression) -> pa.DataType | None:
    known = type_named(expression.type)
    if known.family is Family.DECIMAL:
        return pa.decimal128(known.precision, known.scale)
    return {Family.INTEGER: pa.int64(), Family.FLOATING: pa.float64()}.get(known.family)


def _times(value: pa.ChunkedArray, weight: pa.ChunkedArray, measure: Measure) -> pa.ChunkedArray:
    """value · weight, with every digit."""
    if measure.kind == "count" or pa.types.is_integer(value.type):
        try:
            return pc.multiply_checked(value.cast(pa.int64()), weight)
        except pa.ArrowInvalid as error:
            raise _misfit(measure, error) from error
    if pa.types.is_floating(value.type):
        return pc.multiply(value.cast(pa.float64()), weight.cast(pa.float64()))
    # Arrow gives a product the digits of both.
    wide = value.cast(pa.decimal256(38, value.type.scale))
    return pc.multiply(wide, weight.cast(pa.decimal256(20, 0)))


def _wide(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decimals with all digits that there are."""
    return column.cast(pa.decimal256(76, column.type.scale)) if pa.types.is_decimal(column.type) else column


def _fitting(column: pa.ChunkedArray, type: pa.DataType, measure: Measure | None) -> pa.ChunkedArray:
    try:
        return column.cast(type)
    except pa.ArrowInvalid as error:
        raise _misfit(measure, error) from error


def _misfit(measure: Measure | None, error: Exception) -> ExpressionError:
    what = f"a sum over {measure.expression} does not fit {sum_type(measure)}" if measure else "a count is too large"
    return ExpressionError(f"{what}: {error}", "CAST what is added up to DECIMAL(38, 0) in the definition of the view")


def _added_up(edge: Derivation, rows: pa.Table) -> pa.Table:
    """One row for each group."""
    node = edge.below
    keys, sums = list(node.groups.values()), [node.count, *node.measures.values()]
    for place, name in enumerate(rows.column_names):
        column = canonical_floats(rows[name]) if name in keys else _with_room(rows[name])
        rows = rows.set_column(place, name, column)
    if keys:
        total = rows.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in sums])
        total = total.rename_columns([*keys, *sums])
    else:
        # Without groups there is a row even if there is nothing to add up: its counts are 0, its sums NULL.
        total = pa.table({name: pa.array([pc.sum(rows[name]).as_py()], rows[name].type) for name in sums})
        for name in [node.count, *(column for measure, column in node.measures.items() if measure.kind == "count")]:
            counted = pc.fill_null(total[name], _ZERO.cast(total[name].type))
            total = total.set_column(total.column_names.index(name), name, counted)
    for measure, name in [*node.measures.items(), (None, node.count)]:
        type = pa.int64() if measure is None else _stored_type(measure)
        if total[name].type != type:
            total = total.set_column(total.column_names.index(name), name, _fitting(total[name], type, measure))
    return total


def _stored_type(measure: Measure) -> pa.DataType:
    known = type_named(sum_type(measure))
    if known.family is Family.DECIMAL:
        return pa.decimal128(known.precision, known.scale)
    return pa.int64() if known.family is Family.INTEGER else pa.float64()


def _with_room(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A type in which the sum of the column cannot overflow: Arrow's sums wrap around."""
    if pa.types.is_integer(column.type) and len(column):
        ends = pc.min_max(column)
        largest = max(abs(ends["min"].as_py() or 0), abs(ends["max"].as_py() or 0))
        if largest * len(column) >= LARGEST:
            return column.cast(pa.decimal128(38, 0))
    return column
