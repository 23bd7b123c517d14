"""The summary-delta join: the outer join of a summary-delta with its table, group by group.

    t  = the stored row of the group, if there is one
    δt = the sum of the group's rows in the summary-delta
    t.COUNT, t.SUM = t + δt         the group is in the table afterwards if COUNT(*) > 0

Everything here is an array with a place per affected group. The refresh makes rows of it once the extremes, which do
not add up, are known.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.summary.content import Content
from viewkeeper.summary.grouping import ONE, TRUE, ZERO, by_group, numbered
from viewkeeper.summary.node_shape import NodeShape
from viewkeeper.summary.soundness import check
from viewkeeper.summary.sums import exact_sums, float_sums


@dataclass(frozen=True)
class DeltaJoin:
    """The affected groups of a table, their stored rows, and the new values of all that adds up."""

    shape: NodeShape
    groups: pa.Table
    """the keys of the affected groups"""
    delta: pa.Table
    delta_groups: pa.Array
    """the number of the group of each row of the delta"""
    found: pa.Array
    """whether the group is in the table"""
    old: pa.Table
    """the stored row of each group, NULL throughout if it is not found"""
    positions: pa.Array | None
    """where that row is, if the content can say"""
    new: Mapping[str, pa.Array]
    """the new counts and sums, and the rests of sums"""
    insert_only: bool
    optimizations: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.found)

    @cached_property
    def stays(self) -> pa.Array:
        """Whether the group is in the table afterwards. Without keys there is always one row."""
        if self.insert_only or not self.shape.keys:
            return pa.repeat(TRUE, len(self))
        return pc.greater(self.new[self.shape.count], ZERO)

    @property
    def appeared(self) -> pa.Array:
        return pc.and_(self.stays, pc.invert(self.found))

    @property
    def disappeared(self) -> pa.Array:
        return pc.and_(self.found, pc.invert(self.stays))

    def stored(self, column: str) -> pa.Array:
        return self.old[column].combine_chunks()


def join(
    shape: NodeShape, content: Content, delta: pa.Table, also: Sequence[pa.Table] = (), only_inserts: bool = True
) -> tuple[DeltaJoin, list[pa.Array]]:
    """Join a summary-delta with its table.

    `also` are tables with the keys of further affected groups; the numbers of their rows' groups are returned beside.
    `only_inserts` is whether these tell of no deletion.
    """
    groups, (delta_groups, *other_groups) = numbered((delta, *also), shape.keys)
    # What the delta does not tell of is not known to be inserted.
    told = len(pc.unique(delta_groups)) == groups.num_rows
    insert_only = told and only_inserts and _only_inserts(shape, delta)
    found = content.find(shape.keys, groups)
    place = pc.scatter(pa.arange(0, found.rows.num_rows), found.values, max_index=groups.num_rows - 1)
    old = found.rows.take(place)
    joined = DeltaJoin(
        shape,
        groups,
        delta,
        delta_groups,
        pc.is_valid(place),
        old,
        None if found.positions is None else found.positions.take(place),
        _added(shape, groups, old, (found.values, found.rows), (delta_groups, delta)),
        insert_only,
        tuple(_optimizations(shape, delta, insert_only, groups.num_rows, found.looked_up)),
    )
    return joined, other_groups


def _optimizations(shape: NodeShape, delta: pa.Table, insert_only: bool, groups: int, looked_up: int) -> Iterator[str]:
    if insert_only and delta.num_rows:
        yield "insert-only"
    if shape.keys and groups:
        if not looked_up:
            yield "new groups only"
        elif 2 * looked_up < groups:
            yield "usually new groups"


def _only_inserts(shape: NodeShape, delta: pa.Table) -> bool:
    """Whether the delta cannot take a row, or a value of a row, away.

    A row that counts nothing may be an update: what it deletes and what it inserts cancel out in the counts.
    """
    lowest = {measure.column: ZERO for measure in shape.linear} | {shape.count: ONE}
    if any(pc.any(pc.less(delta[column], least)).as_py() for column, least in lowest.items()):
        return False
    return all(delta[extreme.deleted].null_count == delta.num_rows for extreme in shape.recomputed)


def _added(shape: NodeShape, groups: pa.Table, old: pa.Table, rows: "_Rows", delta: "_Rows") -> dict[str, pa.Array]:
    """Old values and changes, added up: NULL counts as 0, and a sum of no values is NULL."""
    floats = {measure.column: measure.rest for measure in shape.linear if measure.rest is not None}
    exact = (shape.count, *(measure.column for measure in shape.linear if measure.column not in floats))
    totals = exact_sums(groups.num_rows, (rows, delta), exact)
    check(shape, groups, old, totals)
    new = dict(totals)
    numbers, changes = delta
    changed = by_group(numbers, groups.num_rows, {column: changes[column] for column in floats}, "sum")
    for column, rest in floats.items():
        stored = (old[column].combine_chunks(), old[rest].combine_chunks())
        new[column], new[rest] = float_sums(*stored, changed[column])
    for measure in shape.linear:
        if measure.kind != "count":
            any_value = pc.not_equal(totals[measure.count or shape.count], ZERO)
            for column in filter(None, (measure.column, measure.rest)):
                new[column] = pc.if_else(any_value, new[column], pa.scalar(None, new[column].type))
    return {column: values.cast(old.schema.field(column).type) for column, values in new.items()}


_Rows = tuple[pa.Array, pa.Table]
"""rows, after the numbers of their groups"""
