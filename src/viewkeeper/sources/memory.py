"""A source in memory: relations, transactions, and answers computed atomically."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.errors import ProtocolError
from viewkeeper.messages import Change, Fetch, GlobalPart, Query, Transaction, position, values_of
from viewkeeper.sql.relation import Relation


class MemorySource:
    """The relations of one source; every commit gets the next position."""

    def __init__(self, name: str, relations: Iterable[Relation], rows: Mapping[str, MemoryZSet]) -> None:
        self.name = name
        self.relations = {relation.name: relation for relation in relations}
        self.contents: dict[str, MemoryZSet] = {relation: rows[relation] for relation in self.relations}
        self.committed = 0

    def commit(self, changes: tuple[Change, ...], parts: tuple[GlobalPart, ...] = ()) -> Transaction:
        """Apply the changes, all or none, and report them as one transaction."""
        after = dict(self.contents)
        for change in changes:
            relation = after[change.relation]
            after[change.relation] = relation + MemoryZSet(relation.columns, [(change.row, change.count)])
            if after[change.relation].weight(change.row) < 0:
                raise ProtocolError(f"{self.name} deletes {change.row} from {change.relation}, where it is not")
        self.contents = after
        self.committed += 1
        return Transaction(self.name, position(self.committed), changes, parts)

    def answer(self, query: Query) -> Any:
        """ComputeJoin: the answer over the relations as they are now."""
        return query.evaluate(self.contents)

    def read(self, fetches: Sequence[Fetch]) -> list[MemoryZSet]:
        """The rows of each fetch, over the relations as they are now."""
        return [fetched(fetch, self.contents) for fetch in fetches]


def fetched(fetch: Fetch, contents: Mapping[str, MemoryZSet]) -> MemoryZSet:
    """The rows of a fetch: its relations joined, those that match its keys."""
    rows = MemoryZSet((), [((), 1)])
    for operand in fetch.operands:
        named = contents[operand.relation.name].rename(operand.columns)
        on = tuple(
            (a, b) if b in operand.columns else (b, a)
            for a, b in fetch.equal
            if {a, b} & set(operand.columns) and {a, b} & set(rows.columns)
        )
        rows = rows.join(named, on, (), rows.columns + named.columns)
    keys = fetch.keys
    if fetch.among is not None:
        keys = values_of(fetched(fetch.among, contents), fetch.among.columns)
    if keys is not None:
        places = [rows.columns.index(column) for column in fetch.matched]
        wanted = set(keys)
        matching = [(row, n) for row, n in rows.weights() if tuple(row[place] for place in places) in wanted]
        rows = MemoryZSet(rows.columns, matching)
    return rows.keep(fetch.columns)
