"""ViewCache (section 4.1 of the paper): pairs of row ids, and copies of the operands.

    pairs k      the ids of the rows that each row of J_k is made of
    copy i       the operands: partners are looked up in them, and the view is materialized from them

The left side of a later join is itself a ViewCache: its rows are found through a copy, and dereferenced.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic

from viewkeeper.storage.copies import of_pointers
from viewkeeper.storage.join_tree import Columns, JoinTree, Side
from viewkeeper.storage.pairs import OperandRows, dereferenced, refresh_pairs, with_columns_of
from viewkeeper.storage.storage import copies_of, pairs_of
from viewkeeper.storage.tables import Changes, Tables, Z, computed_once, matching


class ViewCache:
    """A view stored as pointers."""

    def __init__(self, tree: JoinTree) -> None:
        self.tree = tree
        copies = copies_of(tree, looked_up=True)
        self.structures = (*(pairs_of(join) for join in tree.joins), *copies)
        self.read_from = f"pairs {tree.last.number}"

    def refresh(self, tables: Tables[Z], leaves: Mapping[int, Z]) -> Changes[Z]:
        changes: Changes[Z] = {f"copy {number}": change for number, change in leaves.items()}
        left = leaves[0]
        for join, later in zip(self.tree.joins, (*self.tree.joins[1:], None), strict=True):
            left, right = left.keep(join.left.pointers), leaves[join.number].keep(join.right.pointers)
            name = f"pairs {join.number}"
            operands = self.operands(tables, join.number)
            pairs = refresh_pairs(join, tables, name, operands, left, right)
            changes[name] = pairs.of(join.ids)
            if later is not None:
                gone = dereferenced(join, operands, pairs.gone, later.left.pointers)
                left = computed_once(pairs.come.keep(later.left.pointers) - gone)
        return changes

    def of_view(self, tables: Tables[Z], leaves: Mapping[int, Z], changes: Changes[Z]) -> Z:
        return of_pointers(self.tree, self.read_from, tables, leaves, changes)

    def rows_of_leaf(self, tables: Tables[Z], leaf: int, columns: Columns, keys: Z) -> Z:
        return tables.matching(f"copy {leaf}", columns, keys)

    def operands(self, tables: Tables[Z], number: int) -> tuple[OperandRows[Z], OperandRows[Z]]:
        """Both sides of a join, before the refresh."""
        join = self.tree.joins[number - 1]
        right = CopiedLeaf(tables, number, join.right)
        if number == 1:
            return CopiedLeaf(tables, 0, join.left), right
        return CachedJoin(self.tree, tables, number - 1, join.left), right


@dataclass(frozen=True)
class CopiedLeaf(Generic[Z]):
    """An operand of the view, in its copy."""

    tables: Tables[Z]
    number: int
    side: Side

    def matching(self, columns: Columns, keys: Z) -> Z:
        return self.tables.matching(f"copy {self.number}", columns, keys, self.side.pointers)


@dataclass(frozen=True)
class CachedJoin(Generic[Z]):
    """A join of the operands before, in its pairs and their copies."""

    tree: JoinTree
    tables: Tables[Z]
    number: int
    side: Side

    def matching(self, columns: Columns, keys: Z) -> Z:
        """Found by what the first of these columns belongs to, dereferenced, and compared with the rest."""
        keys = keys.distinct()
        leaves = self.tree.leaves[: self.number + 1]
        first = next(number for number, leaf in enumerate(leaves) if columns[0] in leaf.columns)
        of_first = [place for place, column in enumerate(columns) if column in leaves[first].columns]
        rows = self.tables.matching(
            f"copy {first}",
            tuple(columns[place] for place in of_first),
            keys.keep(tuple(keys.columns[place] for place in of_first)),
            leaves[first].ids,
        )
        found = self.tables.matching(f"pairs {self.number}", leaves[first].ids, rows)
        for number, leaf in enumerate(leaves):
            wanted = leaf.ids + tuple(c for c in self.side.pointers if c in leaf.columns and c not in leaf.ids)
            if wanted != leaf.ids:
                more = self.tables.matching(f"copy {number}", leaf.ids, found.keep(leaf.ids), wanted)
                found = with_columns_of(found, more, leaf.ids)
        return matching(found.keep(self.side.pointers), columns, keys)
