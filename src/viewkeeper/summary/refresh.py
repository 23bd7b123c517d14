"""The refresh function (figure 8 and section 4.3 of the paper): summary-deltas applied to their tables.

    for each group δt of the summary-delta, t its row in the table:
        t not found                        insert δt
        t.COUNT(*) + δt.COUNT(*) = 0       delete t
        otherwise                          add the counts and sums; NULL if COUNT(e) becomes 0
                                           take the better extreme, or find it again if it may have been deleted

All groups of a table are joined at once, in Arrow. Nothing is written: the answer says which rows go and which come,
and an error in any table leaves all of them as they are. The optimizations of section 4.3 are not asked for but found:

    insert-only           nothing is tested for deletion, no extreme for being deleted
    new groups only       the ranges of the keys show that no group is in the table: nothing is looked up
    usually new groups    they show it for most of the groups: only the others are looked up
    weakly minimal        a deleted value is tested for being equal to the extreme, see `recomputed.py`
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.errors import UsageError
from viewkeeper.summary.content import Content
from viewkeeper.summary.delta_join import DeltaJoin, join
from viewkeeper.summary.extremes import ValueChanges, derive, value_changes
from viewkeeper.summary.grouping import FALSE, TRUE, ZERO, ZERO_POINT, same
from viewkeeper.summary.node_shape import FromNode, NodeShape
from viewkeeper.summary.recomputed import Kept, kept, recomputed

Recompute = Callable[[Mapping[str, pa.Table]], Mapping[str, pa.Table]]
"""From the keys of groups, by table, to the keys and all recomputed extremes of these groups after the changes."""


@dataclass(frozen=True)
class Figures:
    """How many groups the refresh of one table touched."""

    inserted: int
    updated: int
    deleted: int
    unchanged: int
    """groups whose changes cancel out: their row stays, or stays absent"""
    recomputed: int
    """groups whose extreme was found again, in a hidden node or by recomputing it"""


@dataclass(frozen=True)
class Refreshed:
    """What the refresh of one table comes to: the rows that go, and the rows that come."""

    table: str
    before: pa.Table
    """the old rows of the groups that change"""
    gone: pa.Array | None
    """where these are, if the content can say"""
    after: pa.Table
    """their new rows, with the columns and types of the table"""
    figures: Figures
    optimizations: tuple[str, ...]


def refresh(
    shapes: Sequence[NodeShape],
    contents: Mapping[str, Content],
    deltas: Mapping[str, pa.Table],
    *,
    recompute: Recompute | None = None,
) -> dict[str, Refreshed]:
    """Refresh summary tables, given their contents before and their summary-deltas.

    A table without a summary-delta, and whose hidden nodes have none, is left out of the answer, and its shape may be
    left out of the question. `recompute` is called at most once, for all tables.
    """
    tables: dict[str, _Table] = {}
    for shape in _hidden_first(shapes):
        table = _joined(shape, contents, deltas.get(shape.table), tables)
        if table is not None:
            tables[shape.table] = table
    wanted = {name: table.to_recompute for name, table in tables.items() if pc.any(table.kept.needed).as_py()}
    fresh = _asked(recompute, wanted) if wanted else {}
    refreshed = {name: _refreshed(table, fresh.get(name)) for name, table in tables.items()}
    return {shape.table: refreshed[shape.table] for shape in shapes if shape.table in refreshed}


@dataclass(frozen=True)
class _Table:
    """A table of the refresh before anything is recomputed."""

    joined: DeltaJoin
    derived: Mapping[str, pa.Array]
    looked_up: pa.Array
    kept: Kept

    @property
    def to_recompute(self) -> pa.Table:
        return self.joined.groups.filter(self.kept.needed)


def _hidden_first(shapes: Sequence[NodeShape]) -> list[NodeShape]:
    by_name = {shape.table: shape for shape in shapes}
    order = TopologicalSorter({shape.table: {each.node for each in shape.derived} for shape in shapes}).static_order()
    return [by_name[name] for name in order if name in by_name]


def _joined(
    shape: NodeShape, contents: Mapping[str, Content], delta: pa.Table | None, tables: Mapping[str, _Table]
) -> _Table | None:
    """Join a table with its delta, and derive what its hidden nodes tell; None if nothing concerns it."""
    sources: dict[tuple[str, tuple[str, ...], str], list[FromNode]] = {}
    for each in shape.derived:
        if each.node in tables:
            sources.setdefault((each.node, each.keys, each.value), []).append(each)
    changes = [
        value_changes(tables[node].joined, contents[node], columns[0], shape.keys)
        for (node, _, _), columns in sources.items()
    ]
    if delta is None:
        if not changes:
            return None
        delta = _no_delta(shape, changes[0])
    only_inserts = all(change.insert_only for change in changes)
    joined, groups = join(shape, contents[shape.table], delta, [change.rows for change in changes], only_inserts)
    # Without a change of its hidden node, what is derived stays, and a new group has no values.
    derived = {each.column: _without_change(joined, each) for each in shape.derived}
    looked_up = pa.repeat(FALSE, len(joined))
    for change, row_groups, columns in zip(changes, groups, sources.values(), strict=True):
        node = columns[0].node
        found = derive(joined, change, row_groups, tables[node].joined, contents[node], columns)
        derived.update(found.columns)
        looked_up = pc.or_(looked_up, found.looked_up)
    return _Table(joined, derived, looked_up, kept(joined))


def _without_change(joined: DeltaJoin, derived: FromNode) -> pa.Array:
    stored = joined.stored(derived.column)
    return stored.fill_null(ZERO) if derived.function == "distinct" else stored


def _no_delta(shape: NodeShape, change: ValueChanges) -> pa.Table:
    """A summary-delta without rows, for a table that only its hidden nodes change."""
    columns = {name: pa.nulls(0) for name in shape.delta_columns}
    columns |= {key: change.rows[key].slice(0, 0) for key in shape.keys}
    columns |= {name: pa.nulls(0, pa.int64()) for name in (shape.count, *(each.column for each in shape.linear))}
    return pa.table(columns)


def _asked(recompute: Recompute | None, wanted: Mapping[str, pa.Table]) -> Mapping[str, pa.Table]:
    if recompute is None:
        raise UsageError(
            f"an extreme may have been deleted from {', '.join(wanted)}, and there is nothing to recompute it from",
            "keep the rows under the summary table with 'core'='stored', or its values with 'minmax'='node'",
        )
    return recompute(wanted)


def _refreshed(table: _Table, fresh: pa.Table | None) -> Refreshed:
    """The rows that go and the rows that come."""
    joined = table.joined
    extremes = table.kept.columns if fresh is None else recomputed(joined, table.kept, fresh)
    new = {**{key: joined.groups[key] for key in joined.shape.keys}, **joined.new, **table.derived, **extremes}
    rows = pa.table(new).select(joined.old.schema.names).cast(joined.old.schema)
    stayed = pc.and_(joined.found, joined.stays)
    updated = pc.and_(stayed, pc.invert(_same_rows(joined, rows)))
    figures = Figures(
        inserted=_count(joined.appeared),
        updated=_count(updated),
        deleted=_count(joined.disappeared),
        unchanged=len(joined) - _count(joined.appeared) - _count(updated) - _count(joined.disappeared),
        recomputed=_count(pc.or_(table.looked_up, table.kept.needed)),
    )
    goes = pc.or_(updated, joined.disappeared)
    optimizations = joined.optimizations + (("weakly minimal",) if table.kept.weakly_minimal else ())
    return Refreshed(
        joined.shape.table,
        before=joined.old.filter(goes),
        gone=None if joined.positions is None else joined.positions.filter(goes),
        after=rows.filter(pc.or_(updated, joined.appeared)),
        figures=figures,
        optimizations=optimizations,
    )


def _same_rows(joined: DeltaJoin, rows: pa.Table) -> pa.Array:
    """Groups whose row is what it was. A sum that was loaded without a rest has lost nothing to rounding."""
    rests = {measure.rest for measure in joined.shape.linear}
    alike = pa.repeat(TRUE, len(joined))
    for name in joined.shape.columns:
        pair = (table[name].combine_chunks() for table in (joined.old, rows))
        old, new = (column.fill_null(ZERO_POINT) if name in rests else column for column in pair)
        alike = pc.and_(alike, same(old, new))
    return alike


def _count(mask: pa.Array) -> int:
    return int(pc.sum(mask).as_py() or 0)
