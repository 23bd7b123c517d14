"""A source in memory: relations, transactions, and answers computed atomically."""

from collections.abc import Iterable, Mapping
from typing import Any

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.errors import ProtocolError
from viewkeeper.messages import Change, GlobalPart, Query, Transaction, position
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
