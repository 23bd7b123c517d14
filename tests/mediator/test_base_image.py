"""Relations as they were at a vector, while writers write."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from live_memory import LiveMemorySource
from live_shop import CATALOG, Shop

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.errors import PositionLost, SourceUnavailable
from viewkeeper.mediator.base_image import TRIES, image_at
from viewkeeper.mediator.feed import Feed
from viewkeeper.messages import Change, Fetch, Position, position
from viewkeeper.sources.base import Batch, Reading
from viewkeeper.sql.relation import Relation
from waiting import joined

NUMBERS = Relation("x.numbers", "x", ("n",), ("BIGINT",), ("n",))


class Collected:
    """Rows in memory."""

    def __init__(self, relation: Relation) -> None:
        self.rows = MemoryZSet(relation.columns)

    def add(self, rows: Sequence[Row], weight: int = 1) -> None:
        self.rows = self.rows + MemoryZSet(self.rows.columns, [(row, weight) for row in rows])

    def result(self) -> MemoryZSet:
        return self.rows


def same(one: MemoryZSet, other: MemoryZSet) -> bool:
    return dict(one.weights()) == dict(other.weights())


def test_every_vector_of_the_past_while_writers_write() -> None:
    shop = Shop()
    vectors = [{name: source.end() for name, source in shop.sources.items()}]
    for number in range(15):
        vectors.append({name: source.end() for name, source in shop.sources.items()})
        writers = shop.write_all(8, first=8 * number)
        vector = vectors[len(vectors) // 2]
        contents, at = image_at(shop.sources, CATALOG, vector, Collected)
        assert at == vector
        for name, source in shop.sources.items():
            for relation, rows in source.at(vector[name]).items():
                assert same(contents[relation], rows)
        joined(*writers)


def test_without_a_position_it_is_as_read_and_nothing_is_kept_of_the_stream() -> None:
    shop = Shop()
    writers = shop.write_all(40)
    contents, at = image_at(shop.sources, CATALOG, {"crm": position(2)}, Collected)
    joined(*writers)
    assert at["crm"] == position(2)
    for name, source in shop.sources.items():
        for relation, rows in source.at(at[name]).items():
            assert same(contents[relation], rows)


def numbers(count: int, source: Any = None) -> Any:
    source = source or LiveMemorySource("x", NUMBERS)
    for number in range(count):
        source.commit(Change("x.numbers", (number,), 1))
    return source


def test_far_behind_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    """More events than a feed lets wait, at a source whose readings wait for its stream."""

    class Waiting(LiveMemorySource):
        @contextmanager
        def reading(self, fetches: Sequence[Fetch]) -> Iterator[Reading]:
            self.wait_for_stream(self.end(), patience=5)
            with super().reading(fetches) as reading:
                yield reading

    monkeypatch.setitem(Feed.__init__.__kwdefaults__, "most_waiting", 10)
    source = numbers(500, Waiting("x", NUMBERS))
    source.batch = 5
    contents, at = image_at({"x": source}, {"x.numbers": NUMBERS}, {"x": position(3)}, Collected)
    assert at == {"x": position(3)}
    assert same(contents["x.numbers"], source.at(position(3))["x.numbers"])
    assert source.readings == 1


def test_what_the_stream_does_not_tell_is_said() -> None:
    source = numbers(5)
    source.disrupt("x.numbers", "it was truncated")
    numbers(5, source)
    with pytest.raises(PositionLost, match=r"what x\.numbers was before"):
        image_at({"x": source}, {"x.numbers": NUMBERS}, {"x": position(3)}, Collected)
    contents, _ = image_at({"x": source}, {"x.numbers": NUMBERS}, {"x": position(6)}, Collected)
    assert same(contents["x.numbers"], source.at(position(6))["x.numbers"])


def test_a_position_that_is_gone_is_said() -> None:
    source = numbers(9)
    source.acknowledge(position(5))
    with pytest.raises(PositionLost, match="forgotten"):
        image_at({"x": source}, {"x.numbers": NUMBERS}, {"x": position(3)}, Collected)


def test_a_source_that_goes_away_is_tried_again_and_then_said() -> None:
    class Leaving(LiveMemorySource):
        tries = 0

        @contextmanager
        def reading(self, fetches: Sequence[Fetch]) -> Iterator[Reading]:
            self.tries += 1
            with super().reading(fetches) as reading:
                # Some rows have come by then.
                yield reading
            if self.tries < self.leaves:
                raise SourceUnavailable("it went away")

        leaves = 0

    source = numbers(20, Leaving("x", NUMBERS))
    source.leaves = TRIES
    contents, _ = image_at({"x": source}, {"x.numbers": NUMBERS}, {"x": position(7)}, Collected)
    assert same(contents["x.numbers"], source.at(position(7))["x.numbers"])
    source.leaves = 100
    with pytest.raises(SourceUnavailable, match="went away"):
        image_at({"x": source}, {"x.numbers": NUMBERS}, {"x": position(7)}, Collected)


def test_a_stream_behind_its_readings_is_waited_for() -> None:
    """What a reading shows comes late in the stream, and batch by batch."""

    class Late(LiveMemorySource):
        def transactions(self, after: Position | None, stop: threading.Event) -> Iterator[Batch]:
            self.stream_starts(after)
            for event in self._events[int(after or 0) :]:
                stop.wait(0.002)
                self.passed(event.position)
                yield Batch([event], event.position)
            stop.wait()

    source = numbers(30, Late("x", NUMBERS))
    contents, _ = image_at({"x": source}, {"x.numbers": NUMBERS}, {"x": position(4)}, Collected)
    assert same(contents["x.numbers"], source.at(position(4))["x.numbers"])


def test_an_image_shows_no_global_transaction_half() -> None:
    """One part is committed before the image is read, the other while it is: the image is brought forward to it."""
    shop = Shop()
    shop.shop.commit(Change("shop.orders", (1, 2, 10), 1))
    both = {"global_id": "g", "participants": ("shop", "crm")}

    def write() -> None:
        pause = threading.Event()
        pause.wait(0.3)
        shop.shop.commit(Change("shop.orders", (2, 2, 20), 1), **both)
        pause.wait(1.5)
        shop.shop.commit(Change("shop.orders", (3, 2, 30), 1))
        shop.crm.commit(Change("crm.people", (8, 1), 1))
        shop.crm.commit(Change("crm.people", (9, 1), 1), **both)
        shop.crm.commit(Change("crm.people", (10, 1), 1))

    writer = threading.Thread(target=write)
    writer.start()
    contents, at = image_at(shop.sources, CATALOG, {}, Collected, spanning=("shop", "crm"))
    joined(writer)
    orders = {row[0] for row, _ in contents["shop.orders"].weights()}
    people = {row[0] for row, _ in contents["crm.people"].weights()}
    assert 2 in orders
    assert {8, 9} <= people, "the other part, and what came before it"
    assert 10 not in people
    for name, source in shop.sources.items():
        for relation, rows in source.at(at[name]).items():
            assert dict(contents[relation].weights()) == dict(rows.weights())
