"""Relations as they were at a vector.

    R at q  =  R at p  −  Σ ΔR in (q, p]            p ≥ q is where the reading happens to be, the ΔR are in the stream

A reading shows a source as it is now; the stream behind q tells what to take away again. So a view can be loaded, or
checked, at the very vector of its group, while everyone writes.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from viewkeeper.algebra.zset import Row
from viewkeeper.errors import PositionLost, SourceUnavailable
from viewkeeper.mediator.feed import Event, Feed
from viewkeeper.messages import Fetch, Position, Vector
from viewkeeper.sources.base import Disruption, Source
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import Operand

TRIES = 3


class Collector(Protocol):
    """Takes the rows of one relation; how it keeps them is its own business."""

    def add(self, rows: Sequence[Row], weight: int = 1) -> None: ...

    def result(self) -> Any:
        """A Z-set under the relation's column names."""
        ...


Collect = Callable[[Relation], Collector]


def image_at(
    sources: Mapping[str, Source], relations: Mapping[str, Relation], vector: Vector, collect: Collect
) -> tuple[dict[str, Any], dict[str, Position]]:
    """The contents of relations, and the vector that they are at: the given one, and for other sources as read."""
    contents: dict[str, Any] = {}
    at: dict[str, Position] = {}
    for source in dict.fromkeys(relation.source for relation in relations.values()):
        mine = [relation for relation in relations.values() if relation.source == source]
        image, at[source] = _of_one_source(sources[source], mine, vector.get(source), collect)
        contents |= image
    return contents, at


def _of_one_source(
    source: Source, relations: list[Relation], at: Position | None, collect: Collect
) -> tuple[dict[str, Any], Position]:
    # Everything behind the vector is needed, however much it is; without one, nothing is.
    feed = Feed(source, source.end() if at is None else at, most_waiting=sys.maxsize)
    behind = None if at is None else feed.subscribe(at, lambda: None)
    feed.start()
    try:
        collectors, position = _read(feed, relations, collect)
        if at is not None and behind is not None:
            _take_away(collectors, behind.take(until=position))
            position = at
        return {name: collector.result() for name, collector in collectors.items()}, position
    finally:
        feed.close()


def _read(feed: Feed, relations: list[Relation], collect: Collect) -> tuple[dict[str, Collector], Position]:
    operands = [Operand(0, "r", relation) for relation in relations]
    fetches = [Fetch((operand,), operand.columns) for operand in operands]
    for attempt in range(1, TRIES + 1):
        collectors = {relation.name: collect(relation) for relation in relations}
        try:
            with feed.source.reading(fetches) as reading:
                for collector, batches, corrections in zip(
                    collectors.values(), reading.rows, reading.corrections, strict=True
                ):
                    for batch in batches:
                        collector.add(batch)
                    for row, weight in corrections:
                        collector.add([row], weight)
                position = reading.position
            feed.wait_until(position)
            return collectors, position
        except SourceUnavailable:
            if feed.failure is not None:
                raise feed.failure from None
            if attempt == TRIES:
                raise
    raise AssertionError("the last try returns or raises")


def _take_away(collectors: Mapping[str, Collector], events: Sequence[Event]) -> None:
    for event in events:
        if isinstance(event, Disruption):
            if event.relation in collectors:
                raise PositionLost(
                    f"what {event.relation} was before {event.position} cannot be known: {event.reason}",
                    "reload the views over it",
                )
            continue
        for change in event.changes:
            if change.relation in collectors:
                collectors[change.relation].add([change.row], -change.count)
