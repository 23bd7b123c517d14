"""A live source in memory: commits from any thread, a stream, readings; and faults on demand."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.errors import PositionLost, SourceUnavailable
from viewkeeper.messages import Change, Fetch, GlobalPart, Position, Transaction, position
from viewkeeper.sources.base import Batch, Disruption, Finding, Reading, Source
from viewkeeper.sources.memory import fetched
from viewkeeper.sql.relation import Relation


class LiveMemorySource(Source):
    """Relations under a lock; every commit gets the next position."""

    def __init__(self, name: str, *relations: Relation) -> None:
        super().__init__()
        self.name = name
        self.relations = {relation.name: relation for relation in relations}
        self.contents = {relation.name: MemoryZSet(relation.columns) for relation in relations}
        self.acknowledged: Position = ""
        self.out_of_reach = False
        self.unreachable_end = False
        self.stream_ends = False
        """the stream ends by itself, as often as it is requested"""
        self.may_stream = threading.Event()
        """the stream says something only when this is set"""
        self.may_stream.set()
        self.merges_at_start = False
        """the stream begins with all that is there as one transaction, as a capture that cannot tell commits apart"""
        self.streams = 0
        self.reading_fails: Exception | None = None
        self.before_reading: Callable[[], None] = lambda: None
        self.readings = 0
        self.asked: list[tuple[Fetch, ...]] = []
        self.open_gate = threading.Event()
        """a reading that has its rows gives them when this is set"""
        self.open_gate.set()
        self.batch = 1_000
        self._events: list[Transaction | Disruption] = []
        self._changed = threading.Condition()

    def commit(self, *changes: Change, global_id: str | None = None, participants: tuple[str, ...] = ()) -> None:
        self.commit_parts(*changes, parts=(GlobalPart(global_id, participants),) if global_id else ())

    def commit_parts(self, *changes: Change, parts: tuple[GlobalPart, ...]) -> None:
        """One that may hold parts of several global transactions, as a merged capture does."""
        with self._changed:
            place = position(len(self._events) + 1)
            for change in changes:
                rows = self.contents[change.relation]
                self.contents[change.relation] = rows + MemoryZSet(rows.columns, [(change.row, change.count)])
            self._events.append(Transaction(self.name, place, changes, parts, merged=len(parts) > 1))
            self._changed.notify_all()

    def at(self, place: Position) -> dict[str, MemoryZSet]:
        """The relations as they were."""
        with self._changed:
            rows: dict[str, list[Any]] = {name: [] for name in self.relations}
            for event in self._events[: int(place)]:
                for change in event.changes if isinstance(event, Transaction) else ():
                    rows[change.relation].append((change.row, change.count))
        return {name: MemoryZSet(self.relations[name].columns, of_one) for name, of_one in rows.items()}

    def disrupt(self, relation: str, reason: str) -> None:
        with self._changed:
            self._events.append(Disruption(relation, position(len(self._events) + 1), reason))
            self._changed.notify_all()

    def doctor(self) -> list[Finding]:
        return []

    def install(self) -> None:
        pass

    def remove(self) -> list[str]:
        return []

    def end(self) -> Position:
        if self.unreachable_end:
            raise SourceUnavailable(f"{self.name} is out of reach")
        with self._changed:
            return position(len(self._events))

    def transactions(self, after: Position | None, stop: threading.Event) -> Iterator[Batch]:
        self.streams += 1
        if self.acknowledged and (after or "") < self.acknowledged:
            raise PositionLost(f"{self.name} has forgotten what is behind {after}", "reload the views")
        self.stream_starts(after)
        seen = int(after or 0)
        while not self.may_stream.wait(timeout=0.01):
            if stop.is_set():
                return
        if self.merges_at_start and (merged := self._merged(seen)) is not None:
            seen = int(merged.position)
            self.passed(merged.position)
            yield Batch([merged], merged.position)
        while not stop.is_set():
            with self._changed:
                if self.stream_ends:
                    return
                if self.out_of_reach:
                    raise SourceUnavailable(f"{self.name} is out of reach")
                if len(self._events) == seen:
                    self._changed.wait(timeout=0.01)
                events: Sequence[Any] = self._events[seen : seen + self.batch]
                seen += len(events)
            self.passed(position(seen))
            yield Batch(events, position(seen))

    def _merged(self, after: int) -> Transaction | None:
        with self._changed:
            events = [event for event in self._events[after:] if isinstance(event, Transaction)]
            end = position(len(self._events))
        if not events:
            return None
        counts = Counter((part.id, part.participants) for event in events for part in event.parts)
        parts = tuple(GlobalPart(id, participants, count) for (id, participants), count in counts.items())
        changes = tuple(change for event in events for change in event.changes)
        return Transaction(self.name, end, changes, parts, merged=len(events) > 1)

    @contextmanager
    def reading(self, fetches: Sequence[Fetch]) -> Iterator[Reading]:
        self.before_reading()
        with self._changed:
            if self.out_of_reach:
                raise SourceUnavailable(f"{self.name} is out of reach")
            if self.reading_fails is not None:
                raise self.reading_fails
            self.readings += 1
            self.asked.append(tuple(fetches))
            rows = [fetched(fetch, self.contents) for fetch in fetches]
            place = position(len(self._events))
        self.open_gate.wait(timeout=20)
        yield Reading(
            place,
            tuple(iter([[row for row, count in bag.weights() for _ in range(count)]]) for bag in rows),
            tuple(() for _ in rows),
        )

    def acknowledge(self, position: Position) -> None:
        self.acknowledged = max(self.acknowledged, position)

    def close(self) -> None:
        pass
