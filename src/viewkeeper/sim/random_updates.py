"""Random transactions: inserts, deletes, modifications, keys that are used again, pairs that undo each other.

They are drawn before the run, source by source, so that a seed means the same updates under every algorithm.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.algorithms.registry import Transactions
from viewkeeper.clock import Random
from viewkeeper.messages import Change, GlobalPart
from viewkeeper.sim.random_views import KEYS, Domain
from viewkeeper.sql.relation import Relation


@dataclass(frozen=True)
class Part:
    """What one source will commit at once."""

    source: str
    changes: tuple[Change, ...]
    global_id: str | None = None
    participants: tuple[str, ...] = ()

    @property
    def global_parts(self) -> tuple[GlobalPart, ...]:
        """The part of a global transaction that it is, if it is one."""
        return () if self.global_id is None else (GlobalPart(self.global_id, self.participants),)


Script = Mapping[str, deque[Part]]
"""source -> what it will commit, in order"""


class _Contents:
    """The rows of one source as its script has left them so far."""

    def __init__(self, random: Random, relations: list[Relation], rows: Mapping[str, MemoryZSet]) -> None:
        self._random = random
        self._domains = [Domain(relation) for relation in relations]
        self._rows: dict[str, list[Row]] = {
            relation.name: [row for row, weight in rows[relation.name].weights() for _ in range(weight)]
            for relation in relations
        }

    def actions(self, count: int) -> tuple[Change, ...]:
        """`count` tuple actions; a modification is one."""
        changes: list[Change] = []
        for _ in range(count):
            domain = self._random.choice(self._domains)
            swap = count > 1 and domain.relation.key and self._random.random() < 0.15
            changes += self._swap_keys(domain) if swap else self._action(domain)
        return tuple(changes)

    def _swap_keys(self, domain: Domain) -> list[Change]:
        """Two rows exchange their keys. For a moment one key is there twice: only the transaction as a whole counts."""
        name, rows = domain.relation.name, self._rows[domain.relation.name]
        if len(rows) < 2:
            return self._action(domain)
        one, other = (rows.pop(self._random.randrange(len(rows))) for _ in range(2))
        new_one, new_other = _with_key_of(domain.relation, one, other), _with_key_of(domain.relation, other, one)
        rows += [new_one, new_other]
        return [Change(name, one, -1), Change(name, new_one, 1), Change(name, other, -1), Change(name, new_other, 1)]

    def _action(self, domain: Domain) -> list[Change]:
        name, rows = domain.relation.name, self._rows[domain.relation.name]
        luck = self._random.random()
        # A full or an empty relation drifts back to a middling size.
        if not rows or (luck < 0.45 and len(rows) < KEYS - 2):
            row = self._new_row(domain, rows)
            rows.append(row)
            return [Change(name, row, +1)]
        old = rows.pop(self._random.randrange(len(rows)))
        if luck < 0.8:
            return [Change(name, old, -1)]
        new = self._modified(domain, rows, old)
        rows.append(new)
        halves = [Change(name, old, -1), Change(name, new, +1)]
        return halves if self._random.random() < 0.8 else halves[::-1]

    def _modified(self, domain: Domain, rows: list[Row], old: Row) -> Row:
        """Another row of the same key; now and then the key changes too."""
        if domain.relation.key and self._random.random() < 0.2:
            return self._new_row(domain, [*rows, old])
        key = domain.relation.key_of(old) if domain.relation.key else None
        while (new := domain.row(self._random, key)) == old:
            pass
        return new

    def _new_row(self, domain: Domain, rows: list[Row]) -> Row:
        if domain.relation.key is None:
            return domain.row(self._random)
        taken = {domain.relation.key_of(row) for row in rows}
        while (key := domain.key(self._random)) in taken:
            pass
        return domain.row(self._random, key)


def _with_key_of(relation: Relation, row: Row, other: Row) -> Row:
    key = relation.key or ()
    return tuple(b if column in key else a for column, a, b in zip(relation.columns, row, other, strict=True))


def random_script(
    random: Random,
    relations: Mapping[str, Relation],
    rows: Mapping[str, MemoryZSet],
    *,
    updates: int,
    transactions: Transactions,
    crossing: bool,
    repeats: bool = False,
) -> dict[str, deque[Part]]:
    """`updates` transactions over the sources; with `crossing`, parts of global ones may be done late at a source; with
    `repeats`, ids of global ones are used again, and a source may have two parts of one."""
    sources = list(dict.fromkeys(relation.source for relation in relations.values()))
    contents = {
        source: _Contents(random, [r for r in relations.values() if r.source == source], rows) for source in sources
    }
    script: dict[str, deque[Part]] = {source: deque() for source in sources}
    late: dict[str, list[tuple[str, tuple[str, ...]]]] = {source: [] for source in sources}
    used: list[tuple[str, tuple[str, ...]]] = []

    def part(source: str, global_id: str | None = None, participants: tuple[str, ...] = ()) -> None:
        count = 1 if transactions is Transactions.SINGLE else random.choice((0, 1, 1, 1, 2, 2, 2, 3, 3, 4))
        script[source].append(Part(source, contents[source].actions(count), global_id, participants))

    for number in range(1, updates + 1):
        source = random.choice(sources)
        if transactions is Transactions.GLOBAL and len(sources) > 1 and random.random() < 0.5:
            participants = random.sample(sources, random.randint(2, min(3, len(sources))))
            if repeats and random.random() < 0.15:
                participants.append(participants[0])
            name = (f"T{number}", tuple(sorted(participants)))
            if repeats and used and random.random() < 0.15:
                name = random.choice(used)
            used.append(name)
            for participant in name[1]:
                if crossing and random.random() < 0.3:
                    late[participant].append(name)
                else:
                    part(participant, *name)
        else:
            part(source)
            while late[source]:
                part(source, *late[source].pop())
    for source in sources:
        while late[source]:
            part(source, *late[source].pop())
    return script
