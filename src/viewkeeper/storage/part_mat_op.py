"""PartMatOp (section 4.3 of the paper): a ViewCache whose operands are also stored as ids and predicate attributes.

pairs k        as in the ViewCache
operand i      ids and predicate attributes of each row of an operand: partners are looked up here
left k         the same of the left side of a later join, which is a join itself
copy i         the operands, only to materialize the view from
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic

from viewkeeper.storage.copies import of_pointers
from viewkeeper.storage.join_tree import Columns, JoinTree, Side
from viewkeeper.storage.pairs import OperandRows, dereferenced, refresh_pairs
from viewkeeper.storage.storage import copies_of, pairs_of
from viewkeeper.storage.tables import Changes, Structure, Tables, Z, computed_once


class PartMatOp:
    """A view stored as pointers, with dense operands to find partners in."""

    def __init__(self, tree: JoinTree) -> None:
        self.tree = tree
        copies = copies_of(tree)
        dense = [_dense("operand 0", tree.joins[0].left, tree.joins[0].left_on)]
        for join in tree.joins:
            dense.append(_dense(f"operand {join.number}", join.right, join.right_on))
            if join.number > 1:
                dense.append(_dense(f"left {join.number}", join.left, join.left_on))
        pairs = (pairs_of(join) for join in tree.joins)
        self.structures = (*pairs, *dense, *copies)
        self.read_from = f"pairs {tree.last.number}"

    def refresh(self, tables: Tables[Z], leaves: Mapping[int, Z]) -> Changes[Z]:
        changes: Changes[Z] = {f"copy {number}": change for number, change in leaves.items()}
        left = leaves[0]
        for join, later in zip(self.tree.joins, (*self.tree.joins[1:], None), strict=True):
            left, right = left.keep(join.left.pointers), leaves[join.number].keep(join.right.pointers)
            changes |= {_left(join.number): left, f"operand {join.number}": right}
            operands: tuple[OperandRows[Z], OperandRows[Z]] = (
                DenseOperand(tables, _left(join.number)),
                DenseOperand(tables, f"operand {join.number}"),
            )
            pairs = refresh_pairs(join, tables, f"pairs {join.number}", operands, left, right)
            changes[f"pairs {join.number}"] = pairs.of(join.ids)
            if later is not None:
                gone = dereferenced(join, operands, pairs.gone, later.left.pointers)
                left = computed_once(pairs.come.keep(later.left.pointers) - gone)
        return changes

    def of_view(self, tables: Tables[Z], leaves: Mapping[int, Z], changes: Changes[Z]) -> Z:
        return of_pointers(self.tree, self.read_from, tables, leaves, changes)

    def rows_of_leaf(self, tables: Tables[Z], leaf: int, columns: Columns, keys: Z) -> Z:
        return tables.matching(f"copy {leaf}", columns, keys)


def _dense(name: str, side: Side, on: Columns) -> Structure:
    return Structure(name, side.pointers, side.ids, (on,))


def _left(number: int) -> str:
    return "operand 0" if number == 1 else f"left {number}"


@dataclass(frozen=True)
class DenseOperand(Generic[Z]):
    """One side of a join, as ids and predicate attributes."""

    tables: Tables[Z]
    name: str

    def matching(self, columns: Columns, keys: Z) -> Z:
        return self.tables.matching(self.name, columns, keys)
