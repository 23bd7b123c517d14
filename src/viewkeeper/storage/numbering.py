"""Numbers for rows without a key: immutable, unique, given when a row first comes.

n copies of a row are n rows with n numbers; when one of them is deleted, the one that came last goes
"""

from collections.abc import Iterator

from viewkeeper.algebra.zset import Row
from viewkeeper.errors import CorruptChange
from viewkeeper.storage.join_tree import Leaf
from viewkeeper.storage.storage import Storage
from viewkeeper.storage.tables import Tables, Z


def numbered(storage: Storage, tables: Tables[Z], number: int, change: Z, numbers: Iterator[int]) -> Z:
    """The change of an operand without a key, with a number for each copy of each row."""
    leaf = storage.tree.leaves[number]
    made: list[tuple[Row, int]] = []
    deletions: dict[Row, int] = {}
    for row, weight in change.weights():
        if weight < 0:
            deletions[row] = -weight
        made += [((next(numbers), *row), 1) for _ in range(weight)]
    if deletions:
        keys = change.like(leaf.given, ((row, 1) for row in deletions))
        stored = storage.rows_of_leaf(tables, number, leaf.given, keys).keep(leaf.columns)
        made += [(row, -1) for row in _last_ones(leaf, stored, deletions)]
    return change.like(leaf.columns, made)


def _last_ones(leaf: Leaf, stored: Z, deletions: dict[Row, int]) -> list[Row]:
    copies: dict[Row, list[Row]] = {}
    for row, _ in stored.weights():
        copies.setdefault(row[1:], []).append(row)
    gone = []
    for row, count in deletions.items():
        there = sorted(copies.get(row, ()))[-count:] if len(copies.get(row, ())) >= count else None
        if there is None:
            raise CorruptChange(
                f"{leaf.operand.relation.name}: a row was deleted that is not there: {row}",
                "reload the view; if it happens again, its source reports changes that it did not make",
            )
        gone += there
    return gone
