"""Key information: queries that the view itself answers (Strobe paper, section 7, point 3).

    B key of r_2,  [1, 2, 3] ∈ MV = r_1 ⋈ r_2   ⟹   [2, 3] ∈ r_2:   [4, 2] ⋈ r_2 = [4, 2, 3], and no query is sent

MV is the view at a state of the sources, and whatever was delivered since is known too. So for a key k of R_j:

    row(k)  =  what the last change of k that MV does not reflect left: a row, or none
            =  π_j of a row of MV with key k, if no such change was delivered
            unknown, if MV has no row with key k: R_j may have one that joins with nothing

That is R_j after everything that was delivered, which is what an answer shows that is delivered now: to the algorithm
it is one. A query is answered here if every key that it ships is known; otherwise it is sent as it is.

It holds where MV is exact: for algorithms that reach strong, and where answers keep their place among the updates.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from viewkeeper.algebra.joins import Hop
from viewkeeper.algebra.zset import Row
from viewkeeper.algorithms.update_queue import MakeZSet, net
from viewkeeper.messages import Change, HopQuery, Query, Transaction, ViewDelta, keys_for
from viewkeeper.sql.view import Operand, View

Place = tuple[str, str]
"""a transaction: its source and its position there"""

UNKNOWN = object()


class KeyInformation:
    """What MV and the transactions that it does not reflect say of the rows of its relations."""

    def __init__(self, view: View, make_zset: MakeZSet) -> None:
        self._view = view
        self._make_zset = make_zset
        self._stored = _stored_columns(view)
        """column of an operand -> its place in MV"""
        self._rows: dict[int, _RowsInView] = {}
        """by operand, what MV has of its relation; made when it is first asked for"""
        self._since: dict[tuple[str, Row], dict[Place, _KeyChange]] = {}
        """(relation, key) -> what each transaction that MV does not reflect did to it, in their order"""
        self._touched: dict[Place, list[tuple[str, Row]]] = {}

    def delivered(self, transaction: Transaction) -> None:
        """A transaction is delivered. Its changes are net: a modification deletes first."""
        place = (transaction.source, transaction.position)
        touched = self._touched[place] = []
        for change in net(one for one in transaction.changes if one.relation in self._view.relations):
            relation = self._view.relations[change.relation]
            key = (change.relation, relation.key_of(change.row))
            self._since.setdefault(key, {}).setdefault(place, _KeyChange()).add(change)
            touched.append(key)

    def installed(self, deltas: Iterable[ViewDelta]) -> None:
        """MV has changed, and reflects more transactions."""
        for delta in deltas:
            for rows in self._rows.values():
                rows.add(delta.delta)
            for transaction in delta.transactions:
                place = (transaction.source, transaction.position)
                for key in self._touched.pop(place, ()):
                    changes = self._since.get(key, {})
                    changes.pop(place, None)
                    if not changes:
                        self._since.pop(key, None)

    def answer(self, query: Query, read_view: Callable[[], Any]) -> Any:
        """The answer to a query, as of now; None if a source has to be asked."""
        if not isinstance(query, HopQuery):
            return None
        operand = query.hop.operand
        if operand.key is None or {right for _, right in query.hop.on} != set(operand.key):
            return None
        matched, keys = keys_for(query.hop.on, query.delta)
        if keys is None:
            return None
        order = [matched.index(column) for column in operand.key]
        columns = [operand.columns.index(column) for column in query.hop.needs]
        found = []
        for key in keys:
            row = self._row(operand, tuple(key[place] for place in order), query.hop, columns, read_view)
            if row is UNKNOWN:
                return None
            if row is not None:
                found.append((row, 1))
        return query.over([self._make_zset(query.hop.needs, found)])

    def _row(self, operand: Operand, key: Row, hop: Hop, columns: list[int], read_view: Callable[[], Any]) -> Any:
        """The columns that a hop needs of the row with a key, None if there is none, or UNKNOWN."""
        found: Any = UNKNOWN
        for other in self._view.operands_of(operand.relation.name):
            # In a self-join either occurrence stands for the relation.
            needed = [other.columns[column] for column in columns]
            if all(column in self._stored for column in needed):
                rows = self._in_view(other, read_view).get(key)
                if len(rows) > 1:
                    return UNKNOWN
                found = next((tuple(row[column] for column in columns) for row in rows), found)
        for change in self._since.get((operand.relation.name, key), {}).values():
            if change.violates(found):
                return UNKNOWN
            row = change.row
            found = row and tuple(row[column] for column in columns)
        return found

    def _in_view(self, operand: Operand, read_view: Callable[[], Any]) -> "_RowsInView":
        if operand.index not in self._rows:
            self._rows[operand.index] = _RowsInView(
                [self._stored[column] for column in operand.key or ()],
                [self._stored.get(column) for column in operand.columns],
            )
            self._rows[operand.index].add(read_view())
        return self._rows[operand.index]


def _stored_columns(view: View) -> dict[str, int]:
    """The columns of operands that MV has: as they are, or because the view wants them equal to one that it has.

    Equal values of one type are the same value, but for 0.0 and -0.0.
    """
    stored = {column: place for place, output in enumerate(view.output) if (column := output.expression.is_column)}
    types = {
        column: type
        for operand in view.operands
        for column, type in zip(operand.columns, operand.relation.types, strict=False)
    }
    pairs = [pair for condition in view.conditions if (pair := condition.equality)]
    pairs += [(right, left) for left, right in pairs]
    pairs = [
        (one, other) for one, other in pairs if types.get(one) == types.get(other, "") not in ("", "FLOAT", "DOUBLE")
    ]
    while found := {other: stored[one] for one, other in pairs if one in stored and other not in stored}:
        stored |= found
    return stored


class _KeyChange:
    """What one transaction did to a key: a deletion, an insertion, or both."""

    def __init__(self) -> None:
        self.row: Row | None = None
        self._deleted = self._inserted = 0

    def add(self, change: Change) -> None:
        if change.count > 0:
            self.row = change.row
            self._inserted += change.count
        else:
            self._deleted -= change.count

    def violates(self, before: Any) -> bool:
        """Whether two rows have the key after it: a key that is none, whatever was declared, says nothing."""
        present = before is not None and before is not UNKNOWN
        return self._inserted - self._deleted + present > 1 or self._inserted > 1


class _RowsInView:
    """π_j of the rows of MV, by key. None of what is too large for this process: then sources are queried."""

    def __init__(self, key: list[int], columns: list[int | None]) -> None:
        """`columns` are the places of the operand's columns in MV; None if it does not have one."""
        self._key = key
        self._columns = columns
        self._by_key: dict[Row, dict[Row, int]] = {}
        self._fits = True

    def get(self, key: Row) -> Collection[Row]:
        """The rows of the operand with a key: at most one, if it is a key."""
        return self._by_key.get(key, ())

    def add(self, rows: Any) -> None:
        self._fits = self._fits and getattr(rows, "in_memory", True)
        if self._fits:
            self._count(rows.weights())
        else:
            self._by_key.clear()

    def _count(self, weights: Iterable[tuple[Row, int]]) -> None:
        for row, weight in weights:
            key = tuple(row[place] for place in self._key)
            part = tuple(None if place is None else row[place] for place in self._columns)
            rows = self._by_key.setdefault(key, {})
            rows[part] = rows.get(part, 0) + weight
            if not rows[part]:
                del rows[part]
            if not rows:
                del self._by_key[key]
