"""Section 7 of the Strobe paper, point 3: what the view says of its relations, and when it says nothing."""

from typing import Any

import pytest

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.driver import Driver
from viewkeeper.algorithms.key_information import KeyInformation
from viewkeeper.algorithms.registry import ALGORITHMS, Transactions, key_information, prepare
from viewkeeper.levels import Level
from viewkeeper.messages import Change, Query, Transaction, ViewDelta, position
from viewkeeper.sim.script import parse_relation
from viewkeeper.sql.parse import parse_view

R1, ROWS_1 = parse_relation("x.r1(a*, b): 1 2")
R2, ROWS_2 = parse_relation("y.r2(b*, c): 2 3; 7 8")
CATALOG = {"x.r1": R1, "y.r2": R2}
NATURAL = "SELECT r1.a AS a, r1.b AS b, r2.c AS c FROM x.r1 JOIN y.r2 ON r1.b = r2.b"


class World:
    """V = r1 ⋈ r2, B the key of r2, MV = ([1, 2, 3]): the example of the paper."""

    def __init__(self, name: str = "strobe", sql: str = NATURAL, transactions: Transactions = Transactions.SINGLE):
        view = parse_view(sql, CATALOG, name="v")
        plan, queue, process = prepare(name, view, transactions)
        self.sent: dict[int, Query] = {}
        self.mv = plan.evaluate({"x.r1": ROWS_1, "y.r2": ROWS_2})
        self.columns = view.columns
        self.known = key_information(name, plan, transactions)
        self.driver = Driver(
            process,
            queue,
            send=self.sent.__setitem__,
            install=self._install,
            read_view=lambda: self.mv,
            key_information=self.known,
        )
        self._numbers = dict.fromkeys("xy", 0)

    def _install(self, deltas: tuple[ViewDelta, ...]) -> None:
        for delta in deltas:
            self.mv += delta.delta

    def deliver(self, source: str, *changes: tuple[str, tuple[Any, ...], int]) -> None:
        self._numbers[source] += 1
        made = tuple(Change(f"{source}.{relation}", row, count) for relation, row, count in changes)
        self.driver.deliver(Transaction(source, position(self._numbers[source]), made))

    @property
    def rows(self) -> list[Any]:
        return sorted(row for row, _ in self.mv.keep(self.columns).weights())


@pytest.mark.parametrize("name", [n for n, one in ALGORITHMS.items() if one.needs_keys and not one.baseline])
def test_the_example_of_the_paper_asks_no_source(name: str) -> None:
    world = World(name)
    world.deliver("x", ("r1", (4, 2), 1))
    assert world.sent == {}
    assert world.rows == [(1, 2, 3), (4, 2, 3)]


def test_a_key_that_the_view_does_not_have_is_asked_for() -> None:
    world = World()
    world.deliver("x", ("r1", (4, 7), 1))
    (ticket,) = world.sent
    assert world.rows == [(1, 2, 3)]
    world.driver.answer(ticket, world.sent[ticket].evaluate({"y.r2": ROWS_2}))
    assert world.rows == [(1, 2, 3), (4, 7, 8)]
    world.deliver("x", ("r1", (5, 7), 1))
    assert list(world.sent) == [ticket], "now the view has it"
    assert world.rows == [(1, 2, 3), (4, 7, 8), (5, 7, 8)]


def test_a_query_with_one_unknown_key_goes_out_whole() -> None:
    world = World("t-strobe", transactions=Transactions.LOCAL)
    world.deliver("x", ("r1", (4, 2), 1), ("r1", (5, 7), 1))
    (ticket,) = world.sent
    assert world.sent[ticket].size() == 2
    world.driver.answer(ticket, world.sent[ticket].evaluate({"y.r2": ROWS_2}))
    assert world.rows == [(1, 2, 3), (4, 2, 3), (5, 7, 8)]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([(("r2", (2, 3), -1),)], [(9, 7, 8)]),
        ([(("r2", (2, 3), -1), ("r2", (2, 5), 1))], [(1, 2, 5), (4, 2, 5), (9, 7, 8)]),
        ([(("r2", (2, 3), -1),), (("r2", (2, 6), 1),)], [(1, 2, 6), (4, 2, 6), (9, 7, 8)]),
    ],
    ids=["deleted", "modified", "deleted and inserted again"],
)
def test_what_the_view_does_not_reflect_yet_counts(changes: list[Any], expected: list[Any]) -> None:
    """A query keeps Strobe from installing: the view still shows [2, 3] when [4, 2] comes, and r2 is no longer so."""
    world = World("t-strobe", transactions=Transactions.LOCAL)
    world.deliver("x", ("r1", (9, 7), 1))
    (held,) = world.sent
    for transaction in changes:
        world.deliver("y", *transaction)
    world.deliver("x", ("r1", (4, 2), 1))
    assert world.rows == [(1, 2, 3)], "nothing is installed yet"
    now = {"x.r1": MemoryZSet(R1.columns, [((1, 2), 1), ((4, 2), 1), ((9, 7), 1)]), "y.r2": ROWS_2}
    for transaction in changes:
        for _, row, count in transaction:
            now["y.r2"] += MemoryZSet(R2.columns, [(row, count)])
    assert all(query.source == "x" for ticket, query in world.sent.items() if ticket != held), "r2 is not asked again"
    for ticket, query in sorted(world.sent.items()):
        world.driver.answer(ticket, query.evaluate(now))
    assert world.rows == expected


def test_a_key_with_two_rows_is_none() -> None:
    world = World("t-strobe", transactions=Transactions.LOCAL)
    world.deliver("y", ("r2", (2, 9), 1))
    (first,) = world.sent
    world.deliver("x", ("r1", (4, 2), 1))
    assert len(world.sent) == 2, "r2 has [2, 3] and [2, 9], whatever was declared"
    world.driver.answer(first, world.sent[first].evaluate({"x.r1": ROWS_1}))
    second = max(world.sent)
    world.driver.answer(second, world.sent[second].evaluate({"y.r2": ROWS_2 + MemoryZSet(R2.columns, [((2, 9), 1)])}))
    assert world.rows == [(1, 2, 3), (1, 2, 9), (4, 2, 3), (4, 2, 9)]
    world.deliver("x", ("r1", (5, 2), 1))
    assert len(world.sent) == 3, "and so says the view"


def test_a_row_that_left_the_view_is_not_known() -> None:
    world = World()
    world.deliver("x", ("r1", (1, 2), -1))
    assert world.rows == []
    world.deliver("x", ("r1", (4, 2), 1))
    assert len(world.sent) == 1, "r2 still has it, and the view does not say so"


def test_a_column_that_the_view_does_not_show_is_asked_for() -> None:
    world = World(sql="SELECT r1.a AS a FROM x.r1 JOIN y.r2 ON r1.b = r2.b WHERE r2.c > 0")
    world.deliver("x", ("r1", (4, 2), 1))
    assert len(world.sent) == 1, "c of r2 is needed, and not stored"


def test_a_column_that_the_view_wants_equal_to_one_that_it_shows_is_known() -> None:
    sql = "SELECT r1.a AS a, r1.b AS b, r1b.b AS bb FROM x.r1 JOIN x.r1 AS r1b ON r1.b = r1b.a"
    stored = parse_view(sql, CATALOG, name="v").with_keys
    plan = JoinPlan(stored)
    known = KeyInformation(plan.view, MemoryZSet)
    assert {"r1.a", "r1.b", "r1b.a", "r1b.b"} == set(known._stored)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("transactions", Transactions)
def test_only_what_is_exact_is_relied_on(name: str, transactions: Transactions) -> None:
    plan = JoinPlan(parse_view(NATURAL, CATALOG, name="v").with_keys)
    one = ALGORITHMS[name]
    exact = one.needs_keys and one.levels.get(transactions, Level.NONE) >= Level.STRONG
    assert (key_information(name, plan, transactions) is not None) is exact
