"""The parts of the search on their own: V(cut), the order of exploration, the budget."""

from itertools import product

import pytest
from history_notation import written

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.checker.case import Case
from viewkeeper.checker.history import History, HistoryRelation, State
from viewkeeper.checker.judge import check
from viewkeeper.checker.matching import Matches
from viewkeeper.checker.schedule import Cut, within
from viewkeeper.clock import Random, seeded
from viewkeeper.levels import Level
from viewkeeper.messages import Change, Transaction, position
from viewkeeper.sql.relation import Relation

RELATIONS = {
    f"{source}.{table}": Relation(f"{source}.{table}", source, ("a", "b"), ("BIGINT", "BIGINT"))
    for source, table in [("x", "r1"), ("y", "r2"), ("z", "r3"), ("x", "r4")]
}


def random_history(random: Random, view: str, transactions: int) -> History:
    """Transactions of up to three changes, over rows that meet often; one state, which is beside the point here."""
    live = {name: [_row(random) for _ in range(3)] for name in RELATIONS}
    initial = {name: MemoryZSet.of(("a", "b"), *rows) for name, rows in live.items()}
    counts = dict.fromkeys("xyz", 0)
    deliveries = []
    for _ in range(transactions):
        source = random.choice("xyz")
        counts[source] += 1
        changes = []
        for _ in range(random.randint(0, 3)):
            name = random.choice([name for name in RELATIONS if name.startswith(source)])
            if live[name] and random.random() < 0.5:
                changes.append(Change(name, live[name].pop(random.randrange(len(live[name]))), -1))
            else:
                live[name].append(_row(random))
                changes.append(Change(name, live[name][-1], 1))
        deliveries.append(Transaction(source, position(counts[source]), tuple(changes)))
    relations = {name: HistoryRelation(relation, initial[name]) for name, relation in RELATIONS.items()}
    return History(view, relations, tuple(deliveries), (State(MemoryZSet(("none",))),))


def _row(random: Random) -> Row:
    return tuple(random.choice([0, 1, 2, None]) for _ in range(2))


def evaluated(history: History, case: Case, cut: Cut) -> MemoryZSet:
    """V(cut) from scratch."""
    contents = {name: held.rows for name, held in history.relations.items()}
    for own, count in zip(case.schedule.transactions, cut, strict=True):
        for change in (change for transaction in own[:count] for change in transaction.changes):
            contents[change.relation] += MemoryZSet(("a", "b"), [(change.row, change.count)])
    return JoinPlan(history.definition).evaluate(contents)


def every_cut(case: Case) -> list[Cut]:
    return list(product(*(range(count + 1) for count in case.schedule.everything)))


VIEWS = {
    "a chain": "SELECT r1.a, r3.b FROM x.r1 JOIN y.r2 ON r1.b = r2.a JOIN z.r3 ON r2.b = r3.a",
    "two relations of a source": "SELECT r1.a, r4.b FROM x.r1 JOIN y.r2 ON r1.b = r2.a JOIN x.r4 ON r2.b = r4.a",
    "a self-join": "SELECT p.a, q.b FROM x.r1 p JOIN x.r1 q ON p.b = q.a JOIN y.r2 ON q.b = r2.a",
    "a cycle": "SELECT r1.a FROM x.r1 JOIN y.r2 ON r1.b = r2.a JOIN z.r3 ON r2.b = r3.a AND r3.b = r1.a",
    "an inequality": "SELECT r1.a, r2.b FROM x.r1 JOIN y.r2 ON r1.b < r2.a AND r2.b > 0",
    "a cross join": "SELECT r1.a + r2.b AS s FROM x.r1 CROSS JOIN y.r2 WHERE r1.b = 1",
    "one relation": "SELECT a FROM x.r1 WHERE b <> 1",
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_the_view_at_a_cut_is_the_view_over_its_contents(view: str) -> None:
    for seed in range(5):
        history = random_history(seeded(seed), view, transactions=9)
        case = Case(history)
        for cut in every_cut(case):
            expected = evaluated(history, case, cut)
            assert case.source_states.rows(cut) == expected
            assert case.source_states.at(cut) == case.source_states.fingerprint(expected.weights())


def test_every_cut_is_met_once_and_the_delivery_order_first() -> None:
    history = random_history(seeded(7), VIEWS["a chain"], transactions=10)
    case = Case(history)
    initial = case.source_states.fingerprint(case.source_states.initial.weights())
    empty = Case(History(history.view, history.relations, history.deliveries, (State(case.source_states.initial),)))
    met = Matches(empty, budget=10_000)
    met.explore(0)
    assert met.seen == len(history.deliveries) + 1
    met.explore(len(history.deliveries))
    assert met.exhausted
    assert met.seen == len(every_cut(case))
    found = met.cuts[initial]
    assert sorted(found) == [cut for cut in every_cut(case) if case.source_states.at(cut) == initial]
    assert len(set(found)) == len(found)


def test_successors_lead_to_every_closed_cut() -> None:
    case = Case(
        written("""
            SELECT r1.a FROM x.r1 CROSS JOIN y.r2 CROSS JOIN z.r3
            x.r1(a):
            y.r2(a):
            z.r3(a):
            x: +r1 1
            x T: +r1 2
            z U: +r3 1
            y: +r2 1
            y T: +r2 2
            y U: +r2 3
            z: +r3 2
            - @ x0
        """)
    )
    schedule = case.schedule
    reached, frontier = {schedule.nothing}, [schedule.nothing]
    while frontier:
        for following in schedule.successors(frontier.pop()):
            if following not in reached:
                reached.add(following)
                frontier.append(following)
    assert reached == {cut for cut in every_cut(case) if schedule.is_closed(cut)}
    assert all(within(cut, schedule.settled) for cut in reached)
    assert [len(unit.members) for unit in schedule.units] == [1, 1, 2, 2, 1]


# --- the budget ---

INDEPENDENT = """
    SELECT r1.a, r2.a AS b FROM x.r1 CROSS JOIN y.r2
    x.r1(a): 0
    y.r2(a): 0
""" + "".join(f" x: -r1 {n}, +r1 {n + 1}\n y: -r2 {n}, +r2 {n + 1}\n" for n in range(9))


def test_a_run_in_delivery_order_needs_few_looks() -> None:
    states = "\n".join(f"{(n + 1) // 2} {n // 2}" for n in range(19))
    assert check(written(INDEPENDENT + states), blind=True, budget=19).level is Level.COMPLETE


def test_without_budget_the_higher_levels_are_undecided() -> None:
    """y runs ahead of x all the way: true, and far from the delivery order."""
    states = "\n".join([*(f"0 {n}" for n in range(10)), *(f"{n} 9" for n in range(1, 10))])
    history = written(INDEPENDENT + states)
    assert check(history, blind=True).level is Level.COMPLETE
    judgement = check(history, blind=True, budget=50)
    assert judgement.level is Level.CONVERGENT
    assert list(judgement.verdict.values()) == [True, None, None, None]
    assert judgement.violation is None
    assert judgement.undecided == "more than 50 source states to look at"
    assert judgement.to_json()["verdict"]["complete"] is None


def test_without_budget_nothing_is_called_wrong() -> None:
    """A state that no source state gives: only the whole search can tell."""
    history = written(INDEPENDENT + "0 0\n 77 77\n 9 9")
    assert check(history, blind=True).verdict[Level.WEAK] is False
    assert check(history, blind=True, budget=99).verdict[Level.WEAK] is None
    assert check(history, blind=True, budget=100).verdict[Level.WEAK] is False


def test_convergence_needs_no_budget() -> None:
    judgement = check(written(INDEPENDENT + "0 0\n 8 9"), blind=True, budget=1)
    assert judgement.level is Level.NONE
    assert list(judgement.verdict.values()) == [False, False, False, False]
