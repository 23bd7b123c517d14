"""The contract of a source, checked from outside: every reading is the replay of the stream up to its position.

with Recorded(source) as recorded:          # runs through the stream in a thread
    ... writers write, readers call recorded.read(fetch) ...
    recorded.catch_up()
recorded.check()
"""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.messages import Fetch, Transaction
from viewkeeper.sources.base import Source
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import Operand

Bag = Counter[tuple[Any, ...]]


def operand(relation: Relation, alias: str = "r", index: int = 0) -> Operand:
    return Operand(index, alias, relation)


def whole(relation: Relation) -> Fetch:
    """Every row of a relation."""
    only = operand(relation)
    return Fetch((only,), only.columns)


def matching(relation: Relation, column: str, *values: Any) -> Fetch:
    """The rows of a relation with one of these values in a column."""
    only = operand(relation)
    return Fetch((only,), only.columns, (), (f"r.{column}",), tuple((value,) for value in dict.fromkeys(values)))


def read(source: Source, *fetches: Fetch) -> tuple[str, list[Bag]]:
    """What a source answers: the position, and a bag per fetch."""
    with source.reading(fetches) as reading:
        bags = []
        for batches, corrections in zip(reading.rows, reading.corrections, strict=True):
            bag: Bag = Counter()
            for batch in batches:
                bag.update(tuple(row) for row in batch)
            for row, weight in corrections:
                bag[row] += weight
            bags.append(Counter({row: count for row, count in bag.items() if count}))
        return reading.position, bags


@dataclass(frozen=True)
class Answered:
    fetches: tuple[Fetch, ...]
    position: str
    bags: list[Bag]


class Recorded:
    """A source whose stream is kept, from a first reading of all its relations on."""

    def __init__(self, source: Source, after: str | None = None) -> None:
        self.source = source
        self.events: list[Any] = []
        self.failure: Exception | None = None
        self.answers: list[Answered] = []
        self._after = after
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.start: tuple[str, Mapping[str, Bag]] = ("", {})

    def __enter__(self) -> "Recorded":
        self._thread.start()
        names = list(self.source.relations)
        position, bags = read(self.source, *(whole(self.source.relations[name]) for name in names))
        self.start = (position, dict(zip(names, bags, strict=True)))
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(20)
        assert not self._thread.is_alive(), "transactions() does not end when it is told to stop"
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        for _ in range(600):
            try:
                for batch in self.source.transactions(self._after, self._stop):
                    self.events.extend(batch.events)
            except Exception as error:
                # The server may still be ending the session of a stream before this one; a feed tries again, too.
                if "is active for PID" in str(error) and not self._stop.wait(0.1):
                    continue
                self.failure = error
                self.source.stream_broke(error)
            return

    def read(self, *fetches: Fetch) -> Answered:
        answered = Answered(fetches, *read(self.source, *fetches))
        self.answers.append(answered)
        return answered

    def catch_up(self) -> None:
        self.source.wait_for_stream(self.source.end())

    @property
    def transactions(self) -> list[Transaction]:
        return [event for event in self.events if isinstance(event, Transaction)]

    def check(self) -> None:
        """Every answer equals the replay at its position; positions rise; no weight ever falls below 0."""
        begin, first = self.start
        contents = {name: Counter(bag) for name, bag in first.items()}
        places = [transaction.position for transaction in self.transactions]
        assert places == sorted(set(places)), "positions do not rise"
        todo = [transaction for transaction in self.transactions if transaction.position > begin]
        for answered in sorted(self.answers, key=lambda one: one.position):
            while todo and todo[0].position <= answered.position:
                self._apply(contents, todo.pop(0))
            for fetch, bag in zip(answered.fetches, answered.bags, strict=True):
                assert bag == evaluated(fetch, contents), f"the answer at {answered.position} is not exact: {fetch}"
        for transaction in todo:
            self._apply(contents, transaction)
        self.contents = contents

    @staticmethod
    def _apply(contents: dict[str, Bag], transaction: Transaction) -> None:
        for change in transaction.changes:
            contents[change.relation][change.row] += change.count
        for change in transaction.changes:
            weight = contents[change.relation][change.row]
            assert weight >= 0, f"{change} at {transaction.position} deletes what is not there"
            if weight == 0:
                del contents[change.relation][change.row]


def evaluated(fetch: Fetch, contents: Mapping[str, Bag]) -> Bag:
    """A fetch over known contents, by nested loops."""
    joined: list[tuple[dict[str, Any], int]] = [({}, 1)]
    for one in fetch.operands:
        joined = [
            ({**left, **dict(zip(one.columns, row, strict=True))}, weight * count)
            for left, weight in joined
            for row, count in contents[one.relation.name].items()
        ]
    keys = None if fetch.keys is None else set(fetch.keys)
    if fetch.among is not None:
        keys = {row for row in evaluated(fetch.among, contents) if None not in row}
    bag: Bag = Counter()
    for row, weight in joined:
        equal = all(row[a] is not None and row[a] == row[b] for a, b in fetch.equal)
        if equal and (keys is None or tuple(row[column] for column in fetch.matched) in keys):
            bag[tuple(row[column] for column in fetch.columns)] += weight
    return bag
