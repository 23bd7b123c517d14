"""What the stored structures must hold, by their definitions: nested loops over the operands with their ids.

    joined k, outer k, pairs k, left k, right k, operand i, copy i

The ids of rows without a key are whatever was given; all else follows from the operands.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from viewkeeper.sql.outer_join import JoinKind
from viewkeeper.storage.join_tree import TwoWayJoin
from viewkeeper.storage.storage import Storage
from viewkeeper.storage.tables import HeldTables

Row = tuple[Any, ...]
Named = dict[str, Any]


def defined_structures(
    storage: Storage, name: str, tables: HeldTables[Any], operands: Mapping[int, Counter[Row]]
) -> dict[str, dict[Row, int]]:
    """All structures of a storage, given the rows of its operands as they are at the sources."""
    tree = storage.tree
    leaves = [_with_ids(storage, tables, number, operands[number]) for number in range(len(tree.leaves))]
    lefts: list[Named] = leaves[0]
    expected: dict[str, list[Named]] = {f"copy {number}": rows for number, rows in enumerate(leaves)}
    expected |= {f"operand {number}": rows for number, rows in enumerate(leaves)}
    for join in tree.joins:
        rights = leaves[join.number]
        pairs = [(left, right) for left in lefts for right in rights if _joins(join, left, right)]
        met_left = {id(left) for left, _ in pairs}
        met_right = {id(right) for _, right in pairs}
        alone_left = [left for left in lefts if id(left) not in met_left]
        alone_right = [right for right in rights if id(right) not in met_right]
        number = join.number
        expected[f"joined {number}"] = expected[f"pairs {number}"] = [left | right for left, right in pairs]
        expected[f"outer {number}"] = [left | right for left, right in pairs] + alone_left + alone_right
        if number > 1 and name == "partial-operand":
            expected[f"left {number}"] = lefts
        else:
            expected[f"left {number}"] = alone_left
        expected[f"right {number}"] = alone_right
        lefts = [left | right for left, right in pairs]
        lefts += alone_left if join.kind in (JoinKind.LEFT, JoinKind.FULL) else []
        lefts += alone_right if join.kind in (JoinKind.RIGHT, JoinKind.FULL) else []
    return {
        one.name: dict(Counter(tuple(row.get(column) for column in one.columns) for row in expected[one.name]))
        for one in storage.structures
    }


def _joins(join: TwoWayJoin, left: Named, right: Named) -> bool:
    both = {**dict.fromkeys((*join.left.columns, *join.right.columns)), **left, **right}
    if any(both[a] is None or both[b] is None or both[a] != both[b] for a, b in join.on):
        return False
    columns = tuple(both)
    return all(condition.compile(columns)(tuple(both.values())) is True for condition in join.where)


def _with_ids(storage: Storage, tables: HeldTables[Any], number: int, rows: Counter[Row]) -> list[Named]:
    """The rows of an operand, with what it must satisfy alone applied, and the ids that they were given."""
    leaf = storage.tree.leaves[number]
    columns = leaf.operand.columns
    wanted: Counter[Row] = Counter()
    for row in rows.elements():
        if all(condition.compile(columns)(row) is True for condition in leaf.own):
            wanted[tuple(row[columns.index(column)] for column in leaf.given)] += 1
    if not leaf.numbered:
        return [dict(zip(leaf.given, row, strict=True)) for row in wanted.elements()]
    keys = next(iter(tables.held.values())).like(leaf.given, wanted.items())
    stored = storage.rows_of_leaf(tables, number, leaf.given, keys).keep(leaf.columns)
    found = [dict(zip(leaf.columns, row, strict=True)) for row, weight in stored.weights() for _ in range(weight)]
    assert len({row[leaf.ids[0]] for row in found}) == len(found), "an id twice"
    assert Counter(tuple(row[column] for column in leaf.given) for row in found) == wanted
    return found
