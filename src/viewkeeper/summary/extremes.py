"""MIN, MAX, COUNT(DISTINCT e) and the spread of a table, from a hidden node that is grouped by e as well.

    COUNT(DISTINCT e)   old + values that appeared - values that disappeared
    MIN(e)              least(old, least that appeared), unless the old one disappeared and nothing undercuts it:
                        then the least in the hidden node's rows of the group
    Σ (e - mean)²       over the hidden node's rows of each group that changes

The refresh of the hidden node tells which (group, e) appeared and which disappeared. So its rows are read only for
groups that lost their extreme, all of them at once, and never the base. A NULL counts in nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.summary.content import Content, Found
from viewkeeper.summary.delta_join import DeltaJoin
from viewkeeper.summary.grouping import FALSE, MINUS_ONE, ONE, ZERO, by_group, canonical_floats, first, numbered, placed
from viewkeeper.summary.node_shape import FromNode
from viewkeeper.summary.ranking import Ends, Ranking
from viewkeeper.summary.soundness import corrupt

VALUE = "_vk_value"
SIGN = "_vk_sign"
"""+1 of what appeared, -1 of what disappeared"""


@dataclass(frozen=True)
class ValueChanges:
    """Which values the groups of a table got and lost, as the hidden node tells.

    The columns are the keys of the table, VALUE and SIGN.
    """

    rows: pa.Table
    """the rows of the hidden node that appeared and disappeared"""
    pairs: pa.Table
    """the (group, e) that did: not the same if the hidden node is grouped by further columns"""
    insert_only: bool


def value_changes(hidden: DeltaJoin, content: Content, source: FromNode, keys: tuple[str, ...]) -> ValueChanges:
    """What the join of a hidden node changes for a table that is derived from it; `content` is the node's, before."""
    columns = (*source.keys, source.value)
    signed = []
    for sign, mask in ((ONE, hidden.appeared), (MINUS_ONE, hidden.disappeared)):
        some = hidden.groups.filter(mask).select(columns)
        signed.append(some.append_column(SIGN, pa.repeat(sign, some.num_rows)))
    rows = pa.concat_tables(signed)
    rows = rows.filter(pc.is_valid(rows[source.value]))
    pairs = rows if set(columns) == set(hidden.shape.keys) else _pairs(rows, content, columns)
    names = [*keys, VALUE, SIGN]
    return ValueChanges(rows.rename_columns(names), pairs.rename_columns(names), hidden.insert_only)


def _pairs(rows: pa.Table, content: Content, columns: tuple[str, ...]) -> pa.Table:
    """The pairs that had no row and have one now, or the other way round."""
    pairs, (row_pairs,) = numbered((rows,), columns)
    stored = content.find(columns, pairs)
    one_each = pa.repeat(ONE, stored.rows.num_rows)
    before = by_group(stored.values, pairs.num_rows, {"rows": one_each}, "sum")["rows"].fill_null(ZERO)
    change = by_group(row_pairs, pairs.num_rows, {"rows": rows[SIGN]}, "sum")["rows"]
    was, is_now = (pc.greater(count, ZERO).cast(pa.int64()) for count in (before, pc.add(before, change)))
    pairs = pairs.append_column(SIGN, pc.subtract(is_now, was))
    return pairs.filter(pc.not_equal(pairs[SIGN], ZERO))


@dataclass(frozen=True)
class Derived:
    """The new values of derived columns, a value per group of the table, and for which groups rows were read."""

    columns: Mapping[str, pa.Array]
    looked_up: pa.Array


def derive(
    joined: DeltaJoin,
    changes: ValueChanges,
    row_groups: pa.Array,
    hidden: DeltaJoin,
    content: Content,
    columns: Sequence[FromNode],
) -> Derived:
    """The new values of all columns that are derived from the same values of the same hidden node.

    `row_groups` are the numbers of the groups of `changes.rows`; `content` is the hidden node's, before its refresh.
    """
    pair_groups = row_groups
    if changes.pairs is not changes.rows:
        _, (_, pair_groups) = numbered((joined.groups, changes.pairs), joined.shape.keys)
    signs, values = (changes.pairs[name].combine_chunks() for name in (SIGN, VALUE))
    nothing = pa.scalar(None, values.type)
    gained, lost = (pc.if_else(pc.equal(signs, sign), values, nothing) for sign in (ONE, MINUS_ONE))
    new: dict[str, pa.Array] = {}
    missing = pa.repeat(FALSE, len(joined))
    for each in columns:
        if each.function == "distinct":
            new[each.column] = _distinct(joined, each.column, pair_groups, signs)
            continue
        if each.function == "spread":
            new[each.column] = _spread(joined, hidden, content, each)
            continue
        ends = Ends.of(each.function, joined.stored(each.column), pair_groups, gained, lost)
        new[each.column] = ends.candidates
        if not joined.insert_only:
            missing = pc.or_(missing, pc.and_(ends.hit, pc.invert(ends.undercut)))
    missing = pc.and_(missing, joined.stays)
    if pc.any(missing).as_py():
        functions = {each.column: each.function for each in columns if each.function == "min" or each.function == "max"}
        for column, found in _looked_up(
            joined, changes.rows, row_groups, content, columns[0], missing, functions
        ).items():
            new[column] = pc.if_else(missing, found.cast(new[column].type), new[column])
    return Derived(new, missing)


def _distinct(joined: DeltaJoin, column: str, numbers: pa.Array, signs: pa.Array) -> pa.Array:
    change = by_group(numbers, len(joined), {column: signs}, "sum")[column].fill_null(ZERO)
    count = pc.add(joined.stored(column).cast(pa.int64()).fill_null(ZERO), change)
    if (below := first(pc.less(count, ZERO))) is not None:
        what = f"{column} would be {count[below]}, below 0 (changed by {change[below]})"
        corrupt(joined.shape, joined.groups, below, what)
    return count


def _spread(joined: DeltaJoin, hidden: DeltaJoin, content: Content, source: FromNode) -> pa.Array:
    """Σ (value - mean)² of each group, over all its values as they will be."""
    counts = (hidden.new[source.count], hidden.stored(source.count))
    after, before = (column.cast(pa.int64()).fill_null(ZERO) for column in counts)
    changed = hidden.groups.select([*source.keys, source.value]).append_column(source.count, pc.subtract(after, before))
    changed = changed.filter(pc.not_equal(changed[source.count], ZERO))
    wanted = joined.groups.rename_columns(list(source.keys)) if source.keys else joined.groups
    return content.spread(source.keys, wanted, source.value, source.count, changed)


def _looked_up(
    joined: DeltaJoin,
    changed: pa.Table,
    changed_groups: pa.Array,
    content: Content,
    source: FromNode,
    missing: pa.Array,
    functions: Mapping[str, Literal["min", "max"]],
) -> dict[str, pa.Array]:
    """The extremes in the new rows of the hidden node, for the groups that miss theirs; NULL for the others.

    The new rows are the stored ones, without what disappeared and with what appeared.
    """
    wanted = joined.groups.filter(missing)
    if source.keys:
        wanted = wanted.rename_columns(list(source.keys))
    members = pc.indices_nonzero(missing).cast(pa.int64())
    changed_places = placed(pa.arange(0, len(members)), members, len(joined)).take(changed_groups)
    # One more than disappeared of any group: whatever these are, the extreme is among the rows, if there is one.
    lost = pa.table({"place": changed_places, "sign": changed[SIGN]})
    lost = lost.filter(pc.and_(pc.is_valid(lost["place"]), pc.equal(lost["sign"], MINUS_ONE)))
    most = 1 + (pc.max(pc.value_counts(lost["place"]).field("counts")).as_py() or 0)
    extremes = {}
    found: Found | None = None
    for column, function in functions.items():
        if found is None or found.positions is None:
            # Rows that have positions are in memory, all of them.
            found = content.best(source.keys, wanted, source.value, function, most)
        stored = found.rows
        rows = pa.table(
            {
                "place": pa.concat_arrays([found.values, changed_places]),
                "value": pa.chunked_array(
                    [*stored[source.value].chunks, *changed[VALUE].cast(stored[source.value].type).chunks]
                ),
                "sign": pa.concat_arrays([pa.repeat(ONE, stored.num_rows), changed[SIGN].combine_chunks()]),
            }
        )
        rows = rows.filter(pc.is_valid(rows["place"]))
        present = rows.set_column(1, "value", canonical_floats(rows["value"])).group_by(
            ["place", "value"], use_threads=False
        )
        left = present.aggregate([("sign", "sum")])
        left = left.filter(pc.greater(left["sign_sum"], ZERO))
        places, values = left["place"].combine_chunks(), left["value"].combine_chunks()
        ranking = Ranking(function, values)
        ranks = by_group(places, len(members), {column: ranking.ranks(values)}, "min")[column]
        extremes[column] = placed(ranking.values(ranks), members, len(joined))
    return extremes
