"""A two-way join kept as pairs of row ids, beside its operands.

    P_D = σ[id in L_D](P) ∪ σ[id in R_D](P)
    P_I = ids of  L_I ⋈ R_new  ∪  L_new ⋈ R_I        with L_new = L - L_D + L_I; a pair that both find is one

The operands are queried for the rows that are equal to an inserted one in what is compared. Deletions need no operand:
a pair goes with either of its rows.
"""

from dataclasses import dataclass
from typing import Generic, Protocol

from viewkeeper.algebra.zset import On
from viewkeeper.storage.change_sets import able_to_join, both_ways, deleted, inserted
from viewkeeper.storage.join_tree import Columns, TwoWayJoin
from viewkeeper.storage.tables import Tables, Z


class OperandRows(Protocol[Z]):
    """One side of a join, before the refresh."""

    def matching(self, columns: Columns, keys: Z) -> Z:
        """Ids and predicate attributes of the rows with these values."""
        ...


@dataclass(frozen=True)
class PairChanges(Generic[Z]):
    """Pairs that go, by ids; pairs that come, with the predicate attributes of both rows."""

    gone: Z
    come: Z

    def of(self, ids: Columns) -> Z:
        """The change of the table of pairs. A row that was modified and joins as before leaves it as it is."""
        return self.come.keep(ids) - self.gone


def refresh_pairs(
    join: TwoWayJoin,
    tables: Tables[Z],
    pairs: str,
    operands: tuple[OperandRows[Z], OperandRows[Z]],
    left: Z,
    right: Z,
) -> PairChanges[Z]:
    """The pairs that the changes of both sides take away and bring."""
    left_ids, right_ids = _identity(join.left.ids), _identity(join.right.ids)
    left_gone, right_gone = deleted(left).keep(join.left.ids), deleted(right).keep(join.right.ids)
    gone = both_ways(
        tables.matching(pairs, join.left.ids, left_gone), tables.matching(pairs, join.right.ids, right_gone)
    )
    left_new = inserted(able_to_join(left, join.left_on))
    right_new = inserted(able_to_join(right, join.right_on))
    right_stays = operands[1].matching(join.right_on, left_new.keep(join.left_on)).key_delete(right_gone, right_ids)
    left_stays = operands[0].matching(join.left_on, right_new.keep(join.right_on)).key_delete(left_gone, left_ids)
    columns = join.left.pointers + join.right.pointers
    come = (
        left_new.join(right_stays + right_new, join.on, join.where, columns)
        + left_stays.join(right_new, join.on, join.where, columns)
    )  # fmt: skip
    return PairChanges(gone, come)


def dereferenced(join: TwoWayJoin, operands: tuple[OperandRows[Z], OperandRows[Z]], pairs: Z, columns: Columns) -> Z:
    """Pairs of ids with predicate attributes of the rows that they point to."""
    for side, operand in zip((join.left, join.right), operands, strict=True):
        rows = operand.matching(side.ids, pairs.keep(side.ids))
        pairs = with_columns_of(pairs, rows, side.ids)
    return pairs.keep(columns)


def with_columns_of(pairs: Z, rows: Z, ids: Columns) -> Z:
    """Pairs ⋈ rows, by id."""
    theirs = tuple(f"{column} there" if column in ids else column for column in rows.columns)
    more = tuple(column for column in rows.columns if column not in pairs.columns)
    on = tuple((column, f"{column} there") for column in ids)
    return pairs.join(rows.rename(theirs), on, (), pairs.columns + more)


def _identity(ids: Columns) -> On:
    return tuple((column, column) for column in ids)
