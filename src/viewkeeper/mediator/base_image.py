"""Relations as they were at a vector.

    R at q  =  R at p  −  Σ ΔR in (q, p]            p ≥ q is where the reading happens to be, the ΔR are in the stream

A reading shows a source as it is now; the stream behind q tells what to take away again. So a view can be loaded, or
checked, at the very vector of its group, while everyone writes.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from viewkeeper.algebra.zset import Row
from viewkeeper.errors import PositionLost, SourceUnavailable
from viewkeeper.mediator.feed import Feed
from viewkeeper.messages import Fetch, Position, Vector
from viewkeeper.sources.base import Disruption
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import Operand

TRIES = 3

Collect = Callable[[Relation], "Collector"]


class Collector:
    """Takes the rows of one relation; how it keeps them is its own business."""

    def add(self, rows: Sequence[Row], weight: int = 1) -> None:
        raise NotImplementedError

    def result(self) -> Any:
        """A Z-set under the relation's column names."""
        raise NotImplementedError

    def discard(self) -> None:
        """Forget all: the reading starts again."""
        raise NotImplementedError


def image_at(
    feeds: Mapping[str, Feed],
    relations: Mapping[str, Relation],
    vector: Vector,
    collect: Collect,
) -> tuple[dict[str, Any], dict[str, Position]]:
    """The contents of relations, and the vector they are at: as given, and where nothing is given, as read."""
    contents: dict[str, Any] = {}
    at: dict[str, Position] = {}
    for source in dict.fromkeys(relation.source for relation in relations.values()):
        mine = [relation for relation in relations.values() if relation.source == source]
        at[source] = _of_one_source(feeds[source], mine, vector.get(source), collect, contents)
    return contents, at


def _of_one_source(
    feed: Feed, relations: list[Relation], at: Position | None, collect: Collect, contents: dict[str, Any]
) -> Position:
    operands = [Operand(0, "r", relation) for relation in relations]
    fetches = [Fetch((operand,), operand.columns) for operand in operands]
    with ExitStack() as stack:
        behind, behind_at = None, ""
        if at is not None:
            behind, behind_at = feed.subscribe(at, lambda: None), at
            stack.callback(behind.cancel)
        for attempt in range(1, TRIES + 1):
            collectors = [collect(relation) for relation in relations]
            try:
                with feed.source.reading(fetches) as reading:
                    for collector, batches, corrections in zip(
                        collectors, reading.rows, reading.corrections, strict=True
                    ):
                        for batch in batches:
                            collector.add(batch)
                        for row, weight in corrections:
                            collector.add([row], weight)
                    position = reading.position
                feed.source.wait_for_stream(position)
                break
            except SourceUnavailable:
                for collector in collectors:
                    collector.discard()
                if attempt == TRIES:
                    raise
        if behind is not None:
            _take_away(relations, collectors, behind.take(until=position))
            position = behind_at
        for relation, collector in zip(relations, collectors, strict=True):
            contents[relation.name] = collector.result()
        return position


def _take_away(relations: list[Relation], collectors: list[Collector], events: Sequence[Any]) -> None:
    of = {relation.name: collector for relation, collector in zip(relations, collectors, strict=True)}
    for event in events:
        if isinstance(event, Disruption):
            if event.relation in of:
                raise PositionLost(
                    f"what {event.relation} was at {event.position} cannot be known: {event.reason}",
                    "reload the views over it",
                )
            continue
        for change in event.changes:
            if change.relation in of:
                of[change.relation].add([change.row], -change.count)
