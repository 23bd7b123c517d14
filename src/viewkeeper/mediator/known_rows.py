"""Rows that are known by their keys: what need not be asked again.

Copies of what is most often asked for (Strobe paper, section 7, point 4), for every algorithm. What the view itself
answers, point 3, is in `algorithms/key_information.py`.

    a hop that joins on the key of R_j, and every shipped key is known   ⟹   the answer is known, and no query is sent

A row is known from an answer that brought it, or a key from one that did not, and what has been delivered since is
applied to it. So what is known is always R_j behind everything that was delivered: exactly what an answer would show
that came now.
"""

from collections.abc import Iterable, Sequence

from viewkeeper.algebra.zset import Row
from viewkeeper.algorithms.update_queue import net
from viewkeeper.messages import Change, Fetch, Transaction
from viewkeeper.sql.relation import Relation

MOST_KNOWN = 200_000
"""Keys that a group remembers; those that it has by then stay."""
MOST_AT_ONCE = 20_000
"""A question with more keys is a bulk: it is asked, and not remembered."""


class KnownRows:
    """What one group knows of the relations of its sources."""

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._tables: dict[str, dict[tuple[str, ...], KnownTable]] = {}
        self._without_key: set[str] = set()

    def table(self, fetch: Fetch) -> "KnownTable | None":
        """What is known of the rows that a fetch asks for; None unless it asks for them by their key."""
        if len(fetch.reads) != 1 or fetch.keys is None or len(fetch.keys) > MOST_AT_ONCE:
            return None
        relation = fetch.operands[0].relation
        matched = tuple(column.partition(".")[2] for column in fetch.matched)
        if relation.key is None or set(matched) != set(relation.key) or relation.name in self._without_key:
            return None
        columns = tuple(column.partition(".")[2] for column in fetch.columns)
        tables = self._tables.setdefault(relation.name, {})
        return tables.setdefault((*matched, "", *columns), KnownTable(relation, matched, columns))

    @property
    def full(self) -> bool:
        return sum(len(table.rows) for tables in self._tables.values() for table in tables.values()) >= self._most

    def delivered(self, transaction: Transaction) -> None:
        """Apply a transaction to what is known."""
        for name in transaction.relations & self._tables.keys():
            changes = net(change for change in transaction.changes if change.relation == name)
            if not all(table.apply(changes) for table in self._tables[name].values()):
                # Two rows with one key: it is none.
                self._without_key.add(name)
                del self._tables[name]


class KnownTable:
    """Rows of one relation in some of its columns, by key; None where it is known that there is none."""

    def __init__(self, relation: Relation, key: tuple[str, ...], columns: tuple[str, ...]) -> None:
        self.rows: dict[Row, Row | None] = {}
        self._key = [relation.columns.index(column) for column in key]
        self._columns = [relation.columns.index(column) for column in columns]
        self._key_in_row = [columns.index(column) for column in key]

    def missing(self, keys: Iterable[Row]) -> tuple[Row, ...]:
        return tuple(key for key in keys if key not in self.rows)

    def of(self, keys: Iterable[Row]) -> list[tuple[Row, int]]:
        """The rows with these keys, all of which are known."""
        found = (self.rows[key] for key in keys)
        return [(row, 1) for row in found if row is not None]

    def answered(
        self, keys: Sequence[Row], rows: Iterable[tuple[Row, int]], *, remember: bool
    ) -> list[tuple[Row, int]]:
        """What an answer says of the keys that were asked for: a source may give rows with other keys too."""
        asked = set(keys)
        brought = [(row, count) for row, count in rows if self._key_of(row) in asked]
        by_key = {self._key_of(row): row for row, count in brought if count == 1}
        # A key with two rows is none, whatever was declared: nothing of it can be known.
        if remember and len(by_key) == len(brought):
            self.rows.update(dict.fromkeys(keys))
            self.rows.update(by_key)
        return brought

    def apply(self, changes: Iterable[Change]) -> bool:
        """Net changes, deletions first; whether no key has two rows."""
        for change in changes:
            key = tuple(change.row[place] for place in self._key)
            if key in self.rows:
                if change.count > 0 and (self.rows[key] is not None or change.count > 1):
                    return False
                row = tuple(change.row[place] for place in self._columns)
                self.rows[key] = row if change.count > 0 else None
        return True

    def _key_of(self, row: Row) -> Row:
        return tuple(row[place] for place in self._key_in_row)
