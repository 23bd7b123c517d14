"""From pointers to rows: the view, and what changes in it, out of the copies of its operands.

    V    = π output ( σ where ( P ⋈ copy_0 ⋈ ... ⋈ copy_n-1 ) )          by ids
    ΔV   = V over P_new ⋉ C  -  V over P_old ⋉ C                          C: the rows that come or go at the operands

for a row of the view changes only with one of the rows that it points to.
"""

from collections.abc import Mapping

from viewkeeper.storage.change_sets import both_ways
from viewkeeper.storage.join_tree import JoinTree
from viewkeeper.storage.pairs import with_columns_of
from viewkeeper.storage.storage import all_keys
from viewkeeper.storage.tables import After, Changes, Tables, Z


def of_pointers(tree: JoinTree, pairs: str, tables: Tables[Z], leaves: Mapping[int, Z], changes: Changes[Z]) -> Z:
    """ΔV."""
    before = _pointing_to(tree, pairs, tables, leaves)
    after: Tables[Z] = After(tables, changes)
    # All that changes among the pairs points to a row that comes or goes.
    behind = before + changes[pairs].keep(before.columns)
    return materialized(tree, after, behind) - materialized(tree, tables, before)


def materialized(tree: JoinTree, tables: Tables[Z], pairs: Z) -> Z:
    """The rows of the view that pairs of ids stand for."""
    for number, leaf in enumerate(tree.leaves):
        rows = tables.matching(f"copy {number}", leaf.ids, pairs.keep(leaf.ids))
        pairs = with_columns_of(pairs, rows, leaf.ids)
    return pairs.select(tree.where).project(tree.output)


def _pointing_to(tree: JoinTree, pairs: str, tables: Tables[Z], leaves: Mapping[int, Z]) -> Z:
    """The pairs, as stored, of which one row comes or goes."""
    found = None
    for number, leaf in enumerate(tree.leaves):
        more = tables.matching(pairs, leaf.ids, all_keys(leaves[number], leaf.ids)).keep(tree.last.ids)
        found = more if found is None else both_ways(found, more)
    assert found is not None
    return found
