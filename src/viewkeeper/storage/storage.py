"""What the five ways to store a view have in common."""

from collections.abc import Mapping
from typing import Protocol

from viewkeeper.storage.change_sets import able_to_join, both_ways, deleted, inserted
from viewkeeper.storage.join_tree import Columns, JoinTree, TwoWayJoin
from viewkeeper.storage.tables import Changes, Structure, Tables, Z


class Storage(Protocol):
    """One of the five, for one view."""

    tree: JoinTree
    structures: tuple[Structure, ...]
    read_from: str
    """the structure that a row of the view is a row of, or points into"""

    def refresh(self, tables: Tables[Z], leaves: Mapping[int, Z]) -> Changes[Z]:
        """The changes of the structures, given those of the operands, by their place in the tree, ids included."""
        ...

    def of_view(self, tables: Tables[Z], leaves: Mapping[int, Z], changes: Changes[Z]) -> Z:
        """The change of the view itself, given those of the operands and what `refresh` made of them."""
        ...

    def rows_of_leaf(self, tables: Tables[Z], leaf: int, columns: Columns, keys: Z) -> Z:
        """The rows of an operand with these values, as they are stored."""
        ...


def changed_keys(join: TwoWayJoin, left: Z, right: Z) -> Z:
    """What the changed rows have in the columns that are compared: only rows equal to that are concerned."""
    of_left = all_keys(able_to_join(left, join.left_on), join.left_on)
    of_right = all_keys(able_to_join(right, join.right_on), join.right_on)
    return both_ways(of_left, of_right.rename(join.left_on))


def all_keys(changes: Z, columns: Columns) -> Z:
    """Every value that a changed row has there, whether it comes or goes."""
    # Kept apart: in a row that was modified elsewhere the two would cancel out.
    return both_ways(inserted(changes).keep(columns), deleted(changes).keep(columns))


def copies_of(tree: JoinTree, *, looked_up: bool = False) -> tuple[Structure, ...]:
    """The operands as they are at the sources, as far as they are needed; looked up to find partners, or only by id."""
    on = (tree.joins[0].left_on, *(join.right_on for join in tree.joins))
    return tuple(
        Structure(f"copy {number}", leaf.columns, leaf.ids, (on[number], leaf.ids) if looked_up else (leaf.ids,))
        for number, leaf in enumerate(tree.leaves)
    )


def pairs_of(join: TwoWayJoin) -> Structure:
    """The ids of the rows that each row of a join is made of."""
    return Structure(f"pairs {join.number}", join.ids, join.ids, (join.left.ids, join.right.ids))
