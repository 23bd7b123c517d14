"""Readers never wait, and never see a lattice half refreshed.

Every snapshot shows all tables of a lattice at one vector: what they add up to is one pair of numbers, and it is that
of the vector.
"""

import threading
from collections import Counter

import pytest
from summary_shop import VIEWS, create_views, open_shop, rows_in, sales, sell, stores, total_of

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.clock import seeded
from viewkeeper.maintenance.summaries.round import Rounds
from viewkeeper.warehouse import Warehouse
from waiting import joined

REFRESHES = 30
KNOWN = stores((1, "Bern"), (2, "Bern"), (3, "Chur"))
FIRST = sales((1, "pen", 3), (2, "ink", 5), (3, "pen", 2))


def drawn(rng):
    return rng.choice([1, 2, 3]), rng.choice(["pen", "ink", "tea"]), rng.choice([1, 4, 9])


def test_every_snapshot_shows_all_tables_of_a_lattice_at_one_vector(tmp_path):
    expected = {0: (3, 10)}
    """COUNT(*) and SUM(qty) at each place of the load"""
    done, failures, seen = threading.Event(), [], set()

    def read() -> None:
        try:
            with Warehouse.open(tmp_path / "lake", read_only=True) as reader:
                while not done.is_set():
                    with reader.snapshot() as snapshot:
                        seen.add((look(snapshot, ""), look(snapshot, "_late")))
        except BaseException as error:
            failures.append(error)

    def look(snapshot, suffix: str) -> int:
        tables = [f"{name}{suffix}" for name in VIEWS]
        (place,) = {int(snapshot.vector(table)["load"]) for table in tables}
        for table in tables:
            assert total_of(snapshot, table) == expected[place], (table, place)
        cities = rows_in(snapshot, f"by_city{suffix}").to_pylist()
        assert all(row["least"] in (1, 2, 3, 4, 5, 9) for row in cities)
        return place

    with open_shop(tmp_path / "lake", FIRST, KNOWN) as wh:
        create_views(wh)
        create_views(wh, "_late", refresh="manual")
        reader = threading.Thread(target=read)
        reader.start()
        try:
            write(wh, expected, failures)
        finally:
            done.set()
            joined(reader)
    if failures:
        raise failures[0]
    assert len({place for place, _ in seen}) > 5
    assert any(late < place for place, late in seen), "deferred tables were seen behind continuous ones"


def write(wh, expected, failures) -> None:
    """Sales come and go and stores move, while old commits are swept away."""
    rng = seeded(1)
    there, moved = Counter({(1, "pen", 3): 1, (2, "ink", 5): 1, (3, "pen", 2): 1}), "Bern"
    for number in range(1, REFRESHES + 1):
        if failures:
            return
        change = Counter(drawn(rng) for _ in range(rng.randint(0, 3)))
        change.subtract(rng.sample(sorted(there.elements()), min(2, there.total())))
        there.update(change)
        there = +there
        expected[number] = there.total(), sum(qty * count for (_, _, qty), count in there.items())
        new = "Chur" if moved == "Bern" else "Bern"
        sell(wh, number, MemoryZSet(("store", "item", "qty"), change.items()), stores((2, new)) - stores((2, moved)))
        moved = new
        if number % 3 == 0:
            wh.propagate()
        if number % 5 == 0:
            wh.refresh()
        if number % 25 == 0:
            wh.vacuum(0, grace=0)


@pytest.mark.parametrize("refresh", ["continuous", "manual"])
def test_readers_read_on_while_a_refresh_is_under_way(tmp_path, monkeypatch, refresh):
    """The refresh does not end before a reader has read everything; one that waited for it would have read nothing."""
    with open_shop(tmp_path / "lake", FIRST, KNOWN) as wh:
        create_views(wh, refresh=refresh)
        read: list[tuple[int, int]] = []

        def read_everything() -> None:
            with wh.snapshot() as snapshot:
                read.extend(total_of(snapshot, name) for name in VIEWS)

        refreshing = Rounds.refresh

        def slow(*arguments, **options):
            made = refreshing(*arguments, **options)
            reader = threading.Thread(target=read_everything)
            reader.start()
            reader.join(timeout=60)
            return made

        monkeypatch.setattr(Rounds, "refresh", slow)
        sell(wh, 1, sales((1, "pen", 1)))
        if refresh == "manual":
            wh.refresh()
        assert read == [(3, 10)] * len(VIEWS), "readers see the state before"
        with wh.snapshot() as snapshot:
            assert {total_of(snapshot, name) for name in VIEWS} == {(4, 11)}
