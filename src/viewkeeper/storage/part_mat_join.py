"""PartMatJoin (section 4.2 of the paper): MatView's three tables with ids and predicate attributes only, and copies.

joined k     ids of both rows, and what is compared; of two columns that must be equal, the left one
left k       L0: ids and predicate attributes
right k      R0
copy i       the operands, to materialize the view from
"""

from collections.abc import Mapping

from viewkeeper.storage.copies import of_pointers
from viewkeeper.storage.join_tree import Columns, JoinTree, TwoWayJoin
from viewkeeper.storage.mat_view import stored_parts, structures_of
from viewkeeper.storage.parts import PartsLayout, refresh_parts
from viewkeeper.storage.storage import copies_of
from viewkeeper.storage.tables import Changes, Tables, Z, computed_once


class PartMatJoin:
    """A view stored as pointers with the values that are compared."""

    def __init__(self, tree: JoinTree) -> None:
        self.tree = tree
        self.layouts = [_layout(join) for join in tree.joins]
        copies = copies_of(tree)
        self.structures = (*(one for layout in self.layouts for one in structures_of(layout)), *copies)
        self.read_from = f"joined {tree.last.number}"

    def refresh(self, tables: Tables[Z], leaves: Mapping[int, Z]) -> Changes[Z]:
        changes: Changes[Z] = {f"copy {number}": change for number, change in leaves.items()}
        left = leaves[0]
        for layout in self.layouts:
            join = layout.join
            left, right = left.keep(layout.left), leaves[join.number].keep(layout.right)
            parts = refresh_parts(layout, stored_parts(join, tables, left, right), left, right)
            changes |= {f"joined {join.number}": parts.joined}
            changes |= {f"left {join.number}": parts.left, f"right {join.number}": parts.right}
            left = computed_once(layout.whole(parts.joined))
        return changes

    def of_view(self, tables: Tables[Z], leaves: Mapping[int, Z], changes: Changes[Z]) -> Z:
        return of_pointers(self.tree, self.read_from, tables, leaves, changes)

    def rows_of_leaf(self, tables: Tables[Z], leaf: int, columns: Columns, keys: Z) -> Z:
        return tables.matching(f"copy {leaf}", columns, keys)


def _layout(join: TwoWayJoin) -> PartsLayout:
    twice = {right for left, right in join.on if right not in join.right.ids}
    right = tuple(column for column in join.right.pointers if column not in twice)
    return PartsLayout(join, join.left.pointers, join.right.pointers, join.left.pointers + right)
