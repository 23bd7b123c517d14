"""Relations as they were at a vector.

    R at q  =  R at p  −  Σ ΔR in (q, p]            p ≥ q is where the reading happens to be, the ΔR are in the stream

A reading shows a source as it is now; the stream behind q tells what to take away again. So a view can be loaded, or
checked, at the very vector of its group, while everyone writes.
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

from viewkeeper.algebra.zset import Row
from viewkeeper.clock import monotonic
from viewkeeper.errors import PositionLost, SourceUnavailable
from viewkeeper.mediator.feed import Feed
from viewkeeper.mediator.stream import Event
from viewkeeper.messages import Fetch, Position, Transaction, Vector
from viewkeeper.sources.base import Disruption, Source
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import Operand

TRIES = 3
APART = 1.0
"""Seconds for which the streams are watched before the sources are read, where transactions may span them: parts that
are committed further apart than that are taken to be in the image, or to come."""
MARGIN = 1.0
"""Seconds more that a part is waited for, since it has to come here too."""


class Collector(Protocol):
    """Takes the rows of one relation; how it keeps them is its own business."""

    def add(self, rows: Sequence[Row], weight: int = 1) -> None: ...

    def result(self) -> Any:
        """A Z-set under the relation's column names."""
        ...


Collect = Callable[[Relation], Collector]


def image_at(
    sources: Mapping[str, Source],
    relations: Mapping[str, Relation],
    vector: Vector,
    collect: Collect,
    *,
    spanning: Collection[str] = (),
    read: Mapping[str, frozenset[str]] | None = None,
) -> tuple[dict[str, Any], dict[str, Position]]:
    """The contents of relations, and the vector that they are at: the given one, and for other sources as read.

    Transactions may span the sources named in `spanning`: what is read there shows none of them half. `read` are the
    columns that matter, by relation: what becomes of others is nobody's concern.
    """
    names = list(dict.fromkeys(relation.source for relation in relations.values()))
    whole = {name for name in names if name in spanning and name not in vector}
    images = [
        _SourceImage(
            sources[name],
            [one for one in relations.values() if one.source == name],
            vector.get(name),
            watched=len(whole) > 1 and name in whole,
            read=read,
        )
        for name in names
    ]
    with ExitStack() as stack:
        for image in images:
            stack.callback(image.feed.close)
            image.feed.start()
        if len(whole) > 1:
            threading.Event().wait(APART)
        for image in images:
            image.read(collect)
        if len(whole) > 1:
            _make_whole({name: image for name, image in zip(names, images, strict=True) if name in whole})
        contents = {name: held.result() for image in images for name, held in image.collectors.items()}
        return contents, {image.feed.source.name: image.position for image in images}


class _SourceImage:
    """The relations of one source, and the stream around the place where they are read."""

    def __init__(
        self,
        source: Source,
        relations: list[Relation],
        at: Position | None,
        *,
        watched: bool,
        read: Mapping[str, frozenset[str]] | None,
    ) -> None:
        self.at = at
        self._read_columns = read
        self.position: Position = ""
        self.collectors: dict[str, Collector] = {}
        self.parts: dict[str, tuple[str, ...]] = {}
        """the global transactions of which the image is known to show parts of this source, and their participants"""
        self.shown: Counter[str] = Counter()
        """how many parts with each id"""
        self._relations = relations
        self._ahead: list[Event] = []
        # Everything after the vector is needed, however much it is; without one, nothing is.
        self.feed = Feed(source, source.end() if at is None else at, most_waiting=sys.maxsize)
        self._stream = None if at is None and not watched else self.feed.subscribe(self.feed.upto, lambda: None)

    def read(self, collect: Collect) -> None:
        self.collectors, self.position = _read(self.feed, self._relations, collect)
        events = [] if self._stream is None else self._stream.take(until=self.position)
        if self.at is not None:
            self._apply(events, -1)
            self.position = self.at
        for event in events:
            self._note(event)

    def go_on_to(self, gid: str) -> bool:
        """Bring the image forward to this source's part of a global transaction, if that has come."""
        assert self._stream is not None, "an image that is made whole is watched"
        self._ahead += self._stream.take()
        place = next(
            (i for i, one in enumerate(self._ahead) if isinstance(one, Transaction) and gid in one.global_ids), None
        )
        if place is None:
            return False
        events, self._ahead = self._ahead[: place + 1], self._ahead[place + 1 :]
        self._apply(events, +1)
        for event in events:
            self._note(event)
        self.position = max(self.position, events[-1].position)
        return True

    def _note(self, event: Event) -> None:
        for part in event.parts if isinstance(event, Transaction) else ():
            self.parts[part.id] = part.participants
            self.shown[part.id] += part.count

    def _apply(self, events: Sequence[Event], sign: int) -> None:
        for event in events:
            if isinstance(event, Disruption):
                if event.relation in self.collectors and self._concerns(event):
                    reason = event.reason.partition(";")[0]
                    raise PositionLost(
                        f"what {event.relation} was before {event.position} cannot be known: {reason}",
                        "reload the views over it",
                    )
                continue
            for change in event.changes:
                if change.relation in self.collectors:
                    self.collectors[change.relation].add([change.row], sign * change.count)

    def _concerns(self, event: Disruption) -> bool:
        if event.columns is None or self._read_columns is None:
            return True
        return not event.columns.isdisjoint(self._read_columns.get(event.relation, event.columns))


def _make_whole(images: Mapping[str, _SourceImage]) -> None:
    """Bring each source forward until the images show every part of the global transactions that they show a part of.

    A part that does not come in time is in the image already: it was committed before the stream was watched.
    """
    noticed: dict[tuple[str, str], float] = {}
    while True:
        participants = {gid: members for image in images.values() for gid, members in image.parts.items()}
        missing = [
            (name, gid)
            for gid, members in participants.items()
            for name in images.keys() & set(members)
            if images[name].shown[gid] < _begun(gid, members, images) * members.count(name)
        ]
        waited_for = [
            (name, gid)
            for name, gid in missing
            if monotonic() - noticed.setdefault((name, gid), monotonic()) < APART + MARGIN
        ]
        if not waited_for:
            return
        if not any(images[name].go_on_to(gid) for name, gid in waited_for):
            threading.Event().wait(0.005)


def _begun(gid: str, members: tuple[str, ...], images: Mapping[str, _SourceImage]) -> int:
    """How many transactions with this id the images show parts of: an id may be used again."""
    return max(-(-images[name].shown[gid] // members.count(name)) for name in images.keys() & set(members))


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
