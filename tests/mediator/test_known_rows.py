"""Rows that are known by their keys are not asked for again, and are never out of date."""

from typing import Any

from live_shop import PEOPLE, THREE_WAY, Shop

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.clock import seeded
from viewkeeper.mediator.known_rows import KnownRows
from viewkeeper.mediator.mediator import Mediator
from viewkeeper.messages import Change, Fetch, Transaction, position
from viewkeeper.sql.view import Operand

P = Operand(0, "p", PEOPLE)


def by_key(*keys: int) -> Fetch:
    return Fetch((P,), P.columns, (), ("p.id",), tuple((key,) for key in keys))


def changed(*changes: tuple[tuple[Any, ...], int], number: int = 1) -> Transaction:
    return Transaction("crm", position(number), tuple(Change("crm.people", row, count) for row, count in changes))


def test_what_an_answer_brought_is_known_and_what_it_did_not_bring_too() -> None:
    known = KnownRows()
    table = known.table(by_key(1, 2))
    assert table is not None
    assert table.missing([(1,), (2,)]) == ((1,), (2,))
    table.answered([(1,), (2,)], [((1, 7), 1), ((3, 7), 1)], remember=True)
    assert table.missing([(1,), (2,), (3,)]) == ((3,),), "what was not requested may not be all there is"
    assert table.of([(1,), (2,)]) == [((1, 7), 1)]


def test_only_questions_by_the_whole_key_are_remembered() -> None:
    known = KnownRows()
    assert known.table(Fetch((P,), P.columns, (), ("p.region",), ((1,),))) is None
    assert known.table(Fetch((P,), P.columns)) is None
    assert known.table(by_key(*range(30_000))) is None


def test_deliveries_are_applied_whatever_their_order_in_a_transaction() -> None:
    known = KnownRows()
    table = known.table(by_key(1))
    assert table is not None
    table.answered([(1,), (2,)], [((1, 7), 1)], remember=True)
    known.delivered(changed(((1, 8), 1), ((1, 7), -1)))
    assert table.of([(1,)]) == [((1, 8), 1)]
    known.delivered(changed(((2, 5), 1), ((2, 5), -1)))
    assert table.of([(2,)]) == [], "inserted and deleted again"
    known.delivered(changed(((1, 8), -1)))
    assert table.of([(1,)]) == []


def test_a_key_that_is_none_is_not_relied_on() -> None:
    known = KnownRows()
    table = known.table(by_key(1))
    assert table is not None
    table.answered([(1,)], [((1, 7), 1)], remember=True)
    known.delivered(changed(((1, 9), 1)))
    assert known.table(by_key(1)) is None


def test_an_answer_with_two_rows_of_one_key_is_not_remembered() -> None:
    table = KnownRows().table(by_key(1))
    assert table is not None
    both = [((1, 7), 1), ((1, 8), 1)]
    assert table.answered([(1,)], both, remember=True) == both
    assert table.answered([(1,)], [((1, 7), 2)], remember=True) == [((1, 7), 2)]
    assert table.missing([(1,)]) == ((1,),)


def test_no_more_is_remembered_than_there_is_room_for() -> None:
    known = KnownRows(most=3)
    table = known.table(by_key(1))
    assert table is not None
    table.answered([(1,), (2,), (3,)], [], remember=not known.full)
    assert known.full
    assert table.answered([(4,)], [((4, 1), 1)], remember=not known.full) == [((4, 1), 1)]
    assert table.missing([(4,)]) == ((4,),)


def test_random_answers_and_deliveries_against_the_relation_itself() -> None:
    for seed in range(50):
        random, known, rows = seeded(seed), KnownRows(), dict[int, int]()
        for number in range(60):
            if random.random() < 0.5:
                key = random.randrange(6)
                changes = [((key, rows.pop(key)), -1)] if key in rows else []
                if random.random() < 0.7:
                    rows[key] = random.randrange(4)
                    changes.append(((key, rows[key]), 1))
                random.shuffle(changes)
                known.delivered(changed(*changes, number=number))
            else:
                asked = tuple((key,) for key in random.sample(range(6), 3))
                table = known.table(by_key(*(key for (key,) in asked)))
                assert table is not None
                missing = table.missing(asked)
                found = table.of([key for key in asked if key not in missing])
                found += table.answered(missing, [((key, value), 1) for key, value in rows.items()], remember=True)
                assert sorted(found) == sorted(((key, rows[key]), 1) for (key,) in asked if key in rows), seed


def test_a_second_order_of_the_same_person_asks_nobody() -> None:
    shop = Shop()
    plan = shop.plan("v", THREE_WAY, "sweep")
    store = shop.start(plan)
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        shop.shop.commit(Change("shop.orders", (1, 2, 10), 1))
        mediator.catch_up()
        before = shop.crm.readings, shop.geo.readings
        assert before == (1, 1)
        shop.shop.commit(Change("shop.orders", (2, 2, 11), 1))
        mediator.catch_up()
        assert (shop.crm.readings, shop.geo.readings) == before
        # The person moves: what is known moves too.
        shop.crm.commit(Change("crm.people", (2, 2), -1), Change("crm.people", (2, 0), 1))
        shop.shop.commit(Change("shop.orders", (3, 2, 12), 1))
        mediator.catch_up()
        assert shop.crm.readings == 1
    shop.assert_all_right(plan, store)
