"""Views over views: self-joins, several levels, views that fail below and above."""

from live_shop import THREE_WAY, WITHIN, MemoryStore, Shop, resumed

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.mediator.group_plan import GroupPlan
from viewkeeper.mediator.mediator import Mediator
from viewkeeper.messages import Change
from waiting import joined

ORDERS = "SELECT o.id AS id, o.cust AS cust, o.amount AS amount FROM shop.orders o"
PAIRS = "SELECT a.o_id AS one, b.o_id AS other, a.region AS region FROM three a JOIN three b ON a.p_id = b.p_id"
BESIDE = "SELECT t.o_id AS o_id, t.region AS region, w.item AS item FROM three t JOIN within w ON t.o_id = w.o_id"
ABOVE = "SELECT p.one AS one, p.other AS other, b.item AS item FROM pairs p JOIN beside b ON p.one = b.o_id"
OVERFLOWS = "SELECT t.id AS id, t.amount * 4611686018427387904 AS big FROM orders t"
OVER_IT = "SELECT b.id AS id, t.cust AS cust FROM bad b JOIN orders t ON b.id = t.id"


def order(number: int, amount: int = 1) -> Change:
    return Change("shop.orders", (number, 1, amount), 1)


def maintain(shop: Shop, plan: GroupPlan, store: MemoryStore) -> None:
    with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
        mediator.catch_up()


def test_self_joins_and_several_levels_are_right_in_every_state() -> None:
    for algorithm in ("batched-sweep", "t-strobe", "nested-sweep"):
        shop = Shop()
        plan = shop.group(
            "g",
            {"three": (THREE_WAY, algorithm), "within": (WITHIN, algorithm)},
            {"pairs": PAIRS, "beside": BESIDE, "above": ABOVE},
        )
        store = shop.start(plan)
        for number in range(4):
            shop.shop.commit(order(number), Change("shop.lines", (number, number, 7), 1))
        with Mediator(shop.sources, [plan], MemoryZSet, store) as mediator:
            writers = shop.write_all(12)
            mediator.catch_up()
            joined(*writers)
            mediator.catch_up()
        assert store.contents["above"].size(), "the test has something to say"
        shop.assert_all_right(plan, store)


def test_what_fails_above_is_halted_with_all_that_reads_it_and_the_rest_goes_on() -> None:
    shop = Shop()
    plan = shop.group(
        "g",
        {"orders": (ORDERS, "batched-sweep")},
        {"bad": OVERFLOWS, "over_it": OVER_IT, "fine": "SELECT o.cust AS cust FROM orders o"},
    )
    store = shop.start(plan)
    shop.shop.commit(order(1))
    maintain(shop, plan, store)
    shop.assert_all_right(plan, store)
    shop.shop.commit(order(2, amount=2), order(3))
    shop.shop.commit(order(4))
    maintain(shop, resumed(plan, store), store)
    assert list(store.halted) == ["bad", "over_it"]
    assert store.halted["over_it"].startswith("it reads bad, which is halted: ")
    assert store.contents["bad"].size() == store.contents["over_it"].size() == 1, "both as they were"
    shop.shop.commit(order(5))
    maintain(shop, resumed(plan, store), store)
    shop.assert_all_right(plan, store, "bad", "over_it")


def test_what_is_over_a_halted_view_is_halted_with_it() -> None:
    shop = Shop()
    plan = shop.group(
        "g",
        {"orders": (ORDERS, "batched-sweep"), "within": (WITHIN, "batched-sweep")},
        {
            "mine": "SELECT w.item AS item FROM within w",
            "both": "SELECT o.id AS id, m.item AS item FROM orders o JOIN mine m ON o.id = m.item",
            "fine": "SELECT o.cust AS cust FROM orders o",
        },
    )
    store = shop.start(plan)
    shop.shop.commit(order(1))
    shop.shop.disrupt("shop.lines", "it was dropped")
    shop.shop.commit(order(2))
    maintain(shop, plan, store)
    assert list(store.halted) == ["within", "mine", "both"]
    below = "it reads within, which is halted: shop.lines: it was dropped"
    assert store.halted["both"] == f"it reads mine, which is halted: {below}"
    shop.assert_all_right(plan, store, "within", "mine", "both")
    shop.shop.commit(order(3))
    maintain(shop, resumed(plan, store), store)
    shop.assert_all_right(plan, store, "within", "mine", "both")


def test_many_states_at_once() -> None:
    shop = Shop()
    plan = shop.group(
        "g",
        {"orders": (ORDERS, "batched-sweep")},
        {"same": "SELECT a.id AS one, b.id AS other FROM orders a JOIN orders b ON a.amount = b.amount"},
    )
    store = shop.start(plan)
    for number in range(150):
        shop.shop.commit(order(number, amount=number % 50))
        if number % 3 == 2:
            shop.shop.commit(Change("shop.orders", (number, 1, number % 50), -1))
    maintain(shop, plan, store)
    assert len(store.states["g"]) == 200
    assert len(store.commits) < 200
    shop.assert_all_right(plan, store)
