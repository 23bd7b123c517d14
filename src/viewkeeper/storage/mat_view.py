"""MatView (section 3.1 of the paper): the join, materialized, and the rows of either side that join with nothing.

joined k     V of J_k = left ⋈ right, whole rows
left k       L0, whole rows of the left side without a partner
right k      R0
"""

from collections.abc import Mapping

from viewkeeper.storage.join_tree import Columns, JoinTree, TwoWayJoin
from viewkeeper.storage.parts import Parts, PartsLayout, refresh_parts
from viewkeeper.storage.storage import changed_keys
from viewkeeper.storage.tables import Changes, Structure, Tables, Z, computed_once


class MatView:
    """A view stored as materialized joins."""

    def __init__(self, tree: JoinTree) -> None:
        self.tree = tree
        self.layouts = [
            PartsLayout(join, join.left.columns, join.right.columns, join.left.columns + join.right.columns)
            for join in tree.joins
        ]
        self.structures = tuple(structure for layout in self.layouts for structure in structures_of(layout))
        self.read_from = f"joined {tree.last.number}"

    def refresh(self, tables: Tables[Z], leaves: Mapping[int, Z]) -> Changes[Z]:
        changes: Changes[Z] = {}
        left = leaves[0]
        for layout in self.layouts:
            join = layout.join
            left, right = left.keep(layout.left), leaves[join.number]
            parts = refresh_parts(layout, stored_parts(join, tables, left, right), left, right)
            changes |= {f"joined {join.number}": parts.joined}
            changes |= {f"left {join.number}": parts.left, f"right {join.number}": parts.right}
            left = computed_once(parts.joined)
        return changes

    def of_view(self, tables: Tables[Z], leaves: Mapping[int, Z], changes: Changes[Z]) -> Z:
        return changes[self.read_from].select(self.tree.where).project(self.tree.output)

    def rows_of_leaf(self, tables: Tables[Z], leaf: int, columns: Columns, keys: Z) -> Z:
        layout = self.layouts[max(leaf, 1) - 1]
        number = layout.join.number
        joined = tables.matching(f"joined {number}", columns, keys)
        alone = tables.matching(f"right {number}" if leaf else f"left {number}", columns, keys)
        return alone + (layout.right_of(joined) if leaf else layout.left_of(joined))


def structures_of(layout: PartsLayout) -> tuple[Structure, ...]:
    """The three tables of one join."""
    join = layout.join
    return (
        Structure(f"joined {join.number}", layout.joined, join.ids, (join.left_on,)),
        Structure(f"left {join.number}", layout.left, join.left.ids, (join.left_on,)),
        Structure(f"right {join.number}", layout.right, join.right.ids, (join.right_on,)),
    )


def stored_parts(join: TwoWayJoin, tables: Tables[Z], left: Z, right: Z) -> Parts[Z]:
    """The rows of the three tables that the changes may concern."""
    keys = changed_keys(join, left, right)
    return Parts(
        tables.matching(f"joined {join.number}", join.left_on, keys),
        tables.matching(f"left {join.number}", join.left_on, keys),
        tables.matching(f"right {join.number}", join.right_on, keys),
    )
