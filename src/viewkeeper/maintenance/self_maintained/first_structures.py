"""The first content of all structures of a view: as if all rows of its relations had just come.

few rows                              in memory
what takes an eighth of the memory    in Arrow, on the driver, which computes what several structures share once
more, or what only Spark can          in Spark, which is given a plan for each structure
"""

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.adaptive import AdaptiveZSet
from viewkeeper.algebra.arrow import ArrowZSet
from viewkeeper.lake.tables.driver_memory import share_of_memory
from viewkeeper.maintenance.self_maintained.following import evaluable
from viewkeeper.planner.self_maintained.kept_view import KeptView
from viewkeeper.sql.outer_join import JoinKind
from viewkeeper.storage.join_tree import Columns, JoinTree
from viewkeeper.storage.self_maintained import operand_changes, refresh
from viewkeeper.storage.tables import HeldTables

if TYPE_CHECKING:
    from viewkeeper.maintenance.self_maintained.views import SelfMaintainedViews

MOST_READ = 5_000_000
"""Rows of all relations together that are joined on the driver."""
MOST_JOINED = 10_000_000
"""Joined rows that are expected of them."""
MOST_BYTES = share_of_memory()
"""Bytes of the joined rows. Computing and writing them takes some three times as much."""

NUMBER = 8
"""bytes of a number"""

_ONE = pa.scalar(1, pa.int64())


def first_structures(
    views: "SelfMaintainedViews", kept: KeptView, contents: Mapping[str, AdaptiveZSet]
) -> Mapping[str, Any]:
    """The rows of each structure: Z-sets, or Arrow tables in which no row is there twice."""
    given = _in_arrow(kept, contents)
    if given is None:
        return views.computed(kept, contents)[0]
    storage = kept.storage
    tables = HeldTables({one.name: _nothing(one.columns, kept) for one in storage.structures})
    structures, _ = refresh(storage, tables, operand_changes(storage, tables, given, count()), view=False)
    return {name: zset.consolidate().table for name, zset in structures.items()}


def _nothing(columns: Columns, kept: KeptView) -> ArrowZSet:
    return ArrowZSet.of_rows(columns, (), [kept.types[column] for column in columns])


def _in_arrow(kept: KeptView, contents: Mapping[str, AdaptiveZSet]) -> dict[int, ArrowZSet] | None:
    """The operands, if they are too many rows for Python and not too many for the driver."""
    if all(rows.in_memory for rows in contents.values()) or not evaluable(kept, shown=False):
        return None
    if sum(rows.most_rows() for rows in contents.values()) > MOST_READ:
        return None
    tree = kept.storage.tree
    relations = {leaf.operand.relation.name: leaf.operand.relation for leaf in tree.leaves}
    whole = {name: contents[name].to_arrow(relation.types) for name, relation in relations.items()}
    given = {}
    for number, leaf in enumerate(tree.leaves):
        rows = whole[leaf.operand.relation.name].rename(leaf.operand.columns)
        given[number] = rows.select(leaf.own).keep(leaf.given)
    expected = expected_rows(tree, given)
    width = max(row_bytes(one.columns, given) for one in kept.storage.structures)
    return given if expected <= MOST_JOINED and expected * width <= MOST_BYTES else None


def row_bytes(columns: Columns, leaves: Mapping[int, ArrowZSet]) -> float:
    """How much a row of a structure takes: of these columns, as they are in the operands."""
    widths = {
        column: leaf.table[column].nbytes / max(leaf.table.num_rows, 1)
        for leaf in leaves.values()
        for column in leaf.columns
    }
    # A number that the storage gives to rows is in no operand.
    return float(sum(widths.get(column, NUMBER) for column in columns))


def expected_rows(tree: JoinTree, leaves: Mapping[int, ArrowZSet]) -> float:
    """How many rows the largest join of the tree will have: of two operands exactly, of more by averages.

    |J_k|  ≈  |J_{k-1}| · partners in R_k of a row of the operand that J_k compares / rows of that operand
    """
    rows = most = float(leaves[0].table.num_rows)
    for join in tree.joins:
        right = leaves[join.number]
        # If what it compares is of several operands, a row has no more partners than by those of the first alone.
        owner = next(leaf for leaf in leaves.values() if join.left_on[0] in leaf.columns)
        pairs = [(one, other) for one, other in join.on if one in owner.columns]
        rows *= _partners(owner, right, pairs) / max(owner.table.num_rows, 1)
        if join.kind is not JoinKind.INNER:
            rows += right.table.num_rows + rows
        most = max(most, rows)
    return most


def _partners(left: ArrowZSet, right: ArrowZSet, on: list[tuple[str, str]]) -> int:
    """How many pairs of rows agree in these columns."""
    counts = []
    for zset, place in ((left, 0), (right, 1)):
        keys = pa.table({f"key {n}": zset.table[pair[place]] for n, pair in enumerate(on)})
        ones = keys.append_column("rows", pa.repeat(_ONE, keys.num_rows))
        counts.append(ones.group_by(keys.column_names, use_threads=False).aggregate([("rows", "sum")]))
    names = [f"key {n}" for n in range(len(on))]
    one, other = counts
    try:
        other = other.cast(pa.schema([one.schema.field(name) for name in names] + [other.schema.field("rows_sum")]))
    except pa.ArrowInvalid:
        # Some values of one side have no equal among those of the type of the other: a guess will do.
        return int(max(left.table.num_rows, right.table.num_rows))
    both = one.join(other, names, join_type="inner", right_suffix=" there")
    return int(pc.sum(pc.multiply(both["rows_sum"], both["rows_sum there"]), min_count=0).as_py())
